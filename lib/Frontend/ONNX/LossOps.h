// Losses built from graph ops: shared by the lowering of ONNX's loss nodes and the losses that a recipe adds.
#pragma once

#include "lib/Frontend/ONNX/Importer.h"

namespace plimsoll::onnx {

/// How per-element losses become the result.
enum class LossReduction { None, Sum, Mean };

/// Inputs of a classification loss: scores with the class dimension at `classAxis`, labels without it.
struct ClassLoss {
  mlir::Value scores, labels;
  mlir::Value classWeights; ///< (C) or null
  int64_t classAxis = 1;
  int64_t ignoreIndex = -100;
  bool hasIgnoreIndex = true;
  LossReduction reduction = LossReduction::Mean;
  bool scoresAreLogProbabilities = false;
};

/// The loss (labels' shape, or rank 0); for Mean, `weight` becomes the rank-0 count (or sum of class weights) that it
/// divides by, never zero. A fully ignored batch gives 0.
mlir::Value classLoss(mlir::ImplicitLocOpBuilder &b, const ClassLoss &loss, mlir::Value &weight);
mlir::Value meanCrossEntropy(mlir::ImplicitLocOpBuilder &b, mlir::Value logits, mlir::Value labels, int64_t classAxis,
                             int64_t ignoreIndex, mlir::Value &weight);
mlir::Value meanSquaredError(mlir::ImplicitLocOpBuilder &b, mlir::Value output, mlir::Value target,
                             mlir::Value &weight);
/// Moves dimension `classAxis` last and flattens the others: (N, C).
mlir::Value classesLast(mlir::ImplicitLocOpBuilder &b, mlir::Value value, int64_t classAxis);

} // namespace plimsoll::onnx
