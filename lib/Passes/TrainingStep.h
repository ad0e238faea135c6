// The optimizer recipe and the construction of entry functions from a differentiable forward function.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <string>
#include <vector>

namespace plimsoll {

/// How parameters are updated. Defaults are PyTorch's.
struct OptimizerRecipe {
  std::string kind = "adamw";                        ///< "sgd", "adam" or "adamw"
  double momentum = 0;                               ///< sgd
  bool nesterov = false;                             ///< sgd with momentum
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8; ///< adam, adamw
  double weightDecay = 0;                            ///< L2 in sgd and adam, decoupled in adamw
  std::vector<std::string> noDecay;                  ///< glob patterns of parameters without weight decay
  double clipNorm = 0;                               ///< global-norm clipping; 0 = none, infinity = measure only
  int64_t accumulation = 1;                          ///< micro-batches per update
  bool gradientsEntry = false; ///< also build `gradients`: loss and every parameter gradient, no state written
};

/// Replaces @forward (one result with graph.role "loss", one with "weight") by the entries of a training binary:
/// `train_step` (accumulation 1) or `accumulate` + `apply`, `eval_step` (loss without backward) and `forward` (the
/// other results). Adds optimizer variables. Fails with every op that has no gradient, or when nothing is trainable.
mlir::LogicalResult buildTrainingStep(mlir::ModuleOp module, const OptimizerRecipe &recipe);

/// Evaluation mode in place: dropout removed, batch_norm by running statistics, no state written.
mlir::LogicalResult toEvalMode(mlir::func::FuncOp function);

/// Whether `name` matches the shell pattern (`*`, `?`).
bool matchesGlob(llvm::StringRef pattern, llvm::StringRef name);

} // namespace plimsoll
