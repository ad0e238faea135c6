// Train-readiness of a model: what the exporter did to its parameters that training would regret. Everything at once.
#include "lib/Frontend/ONNX/Importer.h"

using namespace mlir;

namespace plimsoll::onnx {

namespace {
struct Use {
  const Node *node;
  size_t input;
};
using Uses = std::map<std::string, std::vector<Use>>;

Uses usesByName(const Model &model) {
  Uses uses;
  for (const Node &node : model.nodes)
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (!node.inputs[i].empty())
        uses[node.inputs[i]].push_back({&node, i});
  return uses;
}

/// Positions where a model has one small vector per layer: biases and norm weights.
bool isPerLayerPosition(const Use &use) {
  const std::string &op = use.node->opType;
  if (op == "Identity")
    return true; // the TorchScript exporter restores merged names so
  if (op == "Add" || op == "Mul" || op == "Gemm" || op == "Conv" || op == "ConvTranspose")
    return op == "Add" || op == "Mul" || use.input == 2;
  return use.input >= 1 && (op == "LayerNormalization" || op == "BatchNormalization" || op == "InstanceNormalization" ||
                            op == "GroupNormalization" || op == "RMSNormalization");
}

bool allEqual(const TensorData &tensor) {
  uint64_t width = elementBytes(tensor.dtype);
  if (width == 0 || tensor.bytes.size() < 2 * width)
    return false;
  for (size_t i = width; i < tensor.bytes.size(); i += width)
    if (!std::equal(tensor.bytes.begin(), tensor.bytes.begin() + static_cast<long>(width),
                    tensor.bytes.begin() + static_cast<long>(i)))
      return false;
  return true;
}

std::string userNames(const std::vector<Use> &uses) {
  std::string names;
  for (size_t i = 0; i < uses.size() && i < 6; ++i)
    names += (i ? ", " : "") + uses[i].node->name;
  return uses.size() > 6 ? names + ", ..." : names;
}

constexpr const char *exportAgain = "export again with optimize=False (python -m plimsoll.export does)";

void lintInitializer(const Model &model, const TensorData &tensor, const std::vector<Use> &uses, ImportReport &report) {
  if (!isFloat(tensor.dtype) || elementCount(tensor.dims).value_or(0) < 2)
    return;
  bool perLayer = uses.size() > 1 && llvm::all_of(uses, isPerLayerPosition);
  if (perLayer && allEqual(tensor))
    report.add({Severity::Warning, "merged-parameter", tensor.name, "",
                "one constant-valued tensor serves " + std::to_string(uses.size()) + " layers (" + userNames(uses) +
                    "), which the exporter may have merged",
                exportAgain, ExitCode::Ok});
  else if (uses.size() > 1 && tensor.dims.size() >= 2)
    report.add({Severity::Note, "tied-parameter", tensor.name, "",
                "is used by " + std::to_string(uses.size()) + " nodes (" + userNames(uses) + ")",
                "it is one variable with one gradient", ExitCode::Ok});
  if (isInventedName(model, tensor.name) && !uses.empty())
    report.add({Severity::Warning, "folded-parameter", tensor.name, "",
                "has a name made by the exporter: a folded or pre-transposed weight (used by " + userNames(uses) + ")",
                exportAgain, ExitCode::Ok});
}

void lintBatchNorm(const Model &model, const ImportOptions &options, ImportReport &report) {
  bool explicitTraining = false;
  for (const Node &node : model.nodes)
    explicitTraining |= node.opType == "BatchNormalization" && intAttribute(node, "training_mode", 0) == 1;
  for (const Node &node : model.nodes) {
    if (node.opType != "BatchNormalization" || intAttribute(node, "training_mode", 0) == 1)
      continue;
    bool frozen = explicitTraining || !options.trainBatchNorm;
    report.add({frozen ? Severity::Warning : Severity::Note, "batchnorm-eval-form", node.name, node.opType,
                frozen ? "normalises with its running statistics, which do not move"
                       : "is in evaluation form; it will train with batch statistics",
                frozen ? "export in training mode if it should train"
                       : "freeze BatchNorm in the recipe to keep the running statistics",
                ExitCode::Ok});
  }
}

/// Convolutions whose name says that a BatchNorm used to follow.
void lintFoldedBatchNorm(const Model &model, ImportReport &report) {
  bool anyNorm = llvm::any_of(model.nodes, [](const Node &node) { return node.opType == "BatchNormalization"; });
  for (const Node &node : model.nodes) {
    if (anyNorm || node.opType != "Conv" || node.inputs.size() < 2 || node.outputs.empty())
      continue;
    bool renamed =
        isInventedName(model, node.inputs[1]) || (node.inputs.size() > 2 && isInventedName(model, node.inputs[2]));
    StringRef output = node.outputs.front(), bias = node.inputs.size() > 2 ? StringRef(node.inputs[2]) : StringRef();
    bool named = model.producer == "pytorch" &&
                 (output.starts_with("getitem") || output.contains("norm") || bias.contains("bn"));
    if (renamed || named)
      report.add({Severity::Warning, "folded-batchnorm", node.name, node.opType,
                  "looks like a convolution with its BatchNorm folded in", exportAgain, ExitCode::Ok});
  }
}

void lintGradients(ImportResult &imported, ImportReport &report) {
  if (!imported.module)
    return;
  imported.module->walk([&](Operation *op) {
    bool floats = llvm::any_of(op->getOperandTypes(), graph::isFloatTensor) &&
                  llvm::any_of(op->getResultTypes(), graph::isFloatTensor);
    if (floats && !isa<graph::DifferentiableOpInterface>(op) && isa<graph::GraphDialect>(op->getDialect())) {
      std::string where;
      llvm::raw_string_ostream(where) << op->getLoc();
      report.add({Severity::Error, "missing-gradient", where, op->getName().getStringRef().str(), "has no gradient",
                  "freeze the parameters behind it", ExitCode::Unsupported});
    }
  });
}
} // namespace

Status lintModel(MLIRContext &context, const ImportOptions &options, ImportReport &report) {
  Result<Model> model = readModel(options.modelPath);
  if (!model) {
    report.add(
        {Severity::Error, "bad-model", options.modelPath, "", model.status().message(), "", model.status().code()});
    return model.status();
  }
  ImportResult imported;
  Status status = importModel(context, *model, options, imported);
  report = std::move(imported.report);
  Uses uses = usesByName(*model);
  for (const TensorData &tensor : model->initializers)
    if (!imported.module || imported.weights.find(tensor.name)) // what was folded into constants needs no advice
      lintInitializer(*model, tensor, uses[tensor.name], report);
  lintBatchNorm(*model, options, report);
  lintFoldedBatchNorm(*model, report);
  lintGradients(imported, report);
  return status ? report.status() : status;
}

} // namespace plimsoll::onnx
