// From an ONNX training export to the graph dialect: dims bound, shape arithmetic folded, parameters as variables, one
// function @forward whose results include the loss and the weight that its mean divides by.
#pragma once

#include "lib/Frontend/ONNX/Report.h"
#include "lib/Frontend/ONNX/WeightStore.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace plimsoll::onnx {

/// What the user decides about an import.
struct ImportOptions {
  std::string modelPath;
  /// Symbolic dims by name ("batch"), or by position ("x.0") where the file gives none.
  std::map<std::string, int64_t> bindings;
  /// "" = the model's own scalar output; "cross_entropy" or "mse" = computed here from output `lossOutput` (default:
  /// the only float output) and a new input "labels" (i64) or "target" (f32).
  std::string loss;
  std::string lossOutput;
  /// Which scalar output is the loss when there are several; "" = the only one, or the only one named like a loss.
  std::string lossName;
  int64_t ignoreIndex = -100;       ///< for loss = "cross_entropy"
  std::vector<std::string> freeze;  ///< glob patterns over parameter names
  std::vector<std::string> buffers; ///< glob patterns of float initializers that are not parameters
  bool trainBatchNorm = true;       ///< false: BatchNormalization normalises with its running statistics
  bool requireLoss = true;          ///< false: a model without a scalar output imports for inference
};

/// Everything an import produces. On failure `module` is null and `report` says why, completely.
struct ImportResult {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  WeightStore weights;
  ImportReport report;
};

/// Imports options.modelPath. The module holds `graph.variable`s and `func.func @forward`: arguments carry graph.name;
/// results carry graph.name and, for the loss (f32, rank 0) and the weight it divides by, graph.role = "loss" /
/// "weight". Fails with BadInput (3) for damaged or hostile files and Unsupported (4) with every unsupported node in
/// the report. Loads the graph and func dialects into `context`. Deterministic.
Status importModel(mlir::MLIRContext &context, const ImportOptions &options, ImportResult &result);
/// The same for a model that has been read already.
Status importModel(mlir::MLIRContext &context, const Model &model, const ImportOptions &options, ImportResult &result);

/// Train-readiness: everything importModel reports, plus merged, folded, dead, tied and frozen parameters, BatchNorm in
/// evaluation form, missing gradients and unbound dims, all at once. Returns the import's own status.
Status lintModel(mlir::MLIRContext &context, const ImportOptions &options, ImportReport &report);

/// The graph dialect's element type for `dtype`; null when there is none.
mlir::Type elementType(mlir::MLIRContext &context, DType dtype);
/// Whether `name` matches a shell pattern of `*` and `?` ("transformer.wte.*").
bool matchesGlob(const std::string &pattern, const std::string &name);

} // namespace plimsoll::onnx
