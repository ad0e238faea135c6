// Expands one optimizer update into graph ops. TrainingStep.cpp calls it once per parameter.
#pragma once

#include "dialects/Graph/Graph.h"
#include "lib/Passes/TrainingStep.h"

namespace plimsoll {

/// Emits optimizer state, updates and guarded writes at a builder's insertion point.
class OptimizerBuilder {
public:
  /// `learningRate` is a scalar of f32; `proceed` a scalar of i1, or null when the update always happens.
  OptimizerBuilder(mlir::ModuleOp module, mlir::ImplicitLocOpBuilder &builder, const OptimizerRecipe &recipe,
                   mlir::Value learningRate, mlir::Value proceed);

  /// Updates `parameter` (its current value `value`) with `gradient`, both of the variable's type.
  void update(graph::VariableOp parameter, mlir::Value value, mlir::Value gradient);

private:
  mlir::Value sgd(graph::VariableOp parameter, mlir::Value value, mlir::Value gradient);
  mlir::Value adam(graph::VariableOp parameter, mlir::Value value, mlir::Value gradient);
  bool decays(graph::VariableOp parameter) const;
  /// Advances a power of `beta` kept in f64 (exact to rounding at any step) and returns 1 - beta^t as f64.
  mlir::Value biasCorrection(llvm::StringRef name, double beta);
  /// Reads a slot of `parameter`, creating it zero-filled.
  mlir::Value slot(graph::VariableOp parameter, llvm::StringRef name);
  void write(llvm::StringRef variable, mlir::Value fresh, mlir::Value old);
  mlir::Value scaled(mlir::Value tensor, double factor);
  mlir::Value spread(mlir::Value scalar, mlir::Type like);

  mlir::ModuleOp module;
  mlir::ImplicitLocOpBuilder &builder;
  const OptimizerRecipe &recipe;
  mlir::Value learningRate, proceed;
  mlir::Value stepSize, secondCorrectionRoot; // adam: lr/(1-beta1^t) and sqrt(1-beta2^t), f32 scalars
};

/// The variable `name`, created after the last variable when missing.
graph::VariableOp ensureVariable(mlir::ModuleOp module, llvm::StringRef name, mlir::RankedTensorType type,
                                 graph::VariableKind kind, double fill, llvm::StringRef owner = "");

} // namespace plimsoll
