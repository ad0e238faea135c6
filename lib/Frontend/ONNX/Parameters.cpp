// Which initializers are parameters. Non-float tensors, BatchNorm statistics, operator settings (dropout ratios, resize
// scales) and buffers are not; parameters that no gradient reaches are kept but not trained.
#include "lib/Frontend/ONNX/Importer.h"

#include <cstring>

using namespace mlir;

namespace plimsoll::onnx {

bool matchesGlob(const std::string &pattern, const std::string &name) {
  size_t p = 0, n = 0, star = std::string::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (star != std::string::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*')
    ++p;
  return p == pattern.size();
}

static bool matchesAny(const std::vector<std::string> &patterns, const std::string &name) {
  return llvm::any_of(patterns, [&](const std::string &pattern) { return matchesGlob(pattern, name); });
}

/// Input positions that hold settings rather than trainable values.
static std::vector<size_t> settingPositions(const std::string &op) {
  if (op == "Dropout" || op == "Clip" || op == "OneHot" || op == "Upsample")
    return {1, 2};
  if (op == "Resize" || op == "Pad" || op == "Range")
    return {0 + (op == "Range" ? 0u : 1u), 1, 2, 3};
  return {};
}

/// Last components of module buffers that PyTorch models commonly register as floats.
static bool namedLikeBuffer(const std::string &name) {
  static const std::set<std::string> known = {
      "inv_freq",    "original_inv_freq",       "running_mean", "running_var", "num_batches_tracked", "pe",
      "masked_bias", "relative_position_index", "freqs",        "freqs_cis",   "cos_cached",          "sin_cached"};
  return known.count(name.substr(name.rfind('.') + 1)) != 0;
}

/// The dynamo exporter lists parameters first and buffers after them, so every dotted name behind the first certain
/// buffer is one.
static void addTailBuffers(const Model &model, const std::set<std::string> &stats, std::set<std::string> &buffers) {
  bool dynamo = model.producer == "pytorch" &&
                llvm::any_of(model.nodes, [](const Node &node) { return node.name.rfind("node_", 0) == 0; });
  bool tail = false;
  for (const TensorData &tensor : model.initializers) {
    bool dotted = tensor.name.find('.') != std::string::npos;
    tail |= dynamo && dotted && (!isFloat(tensor.dtype) || stats.count(tensor.name));
    if (dotted && (tail || namedLikeBuffer(tensor.name)))
      buffers.insert(tensor.name);
  }
}

/// Whether some float is so low that the tensor can only be an attention mask.
static bool holdsMaskValues(const TensorData &tensor) {
  for (size_t at = 0; tensor.dtype == DType::F32 && at + 4 <= tensor.bytes.size(); at += 4) {
    float value = 0;
    std::memcpy(&value, tensor.bytes.data() + at, 4);
    if (value <= -1e30f)
      return true;
  }
  return false;
}

bool isInventedName(const Model &model, const std::string &name) {
  bool dotted = llvm::any_of(model.initializers,
                             [](const TensorData &tensor) { return tensor.name.find('.') != std::string::npos; });
  return model.producer == "pytorch" && (name.find("::") != std::string::npos || name.rfind("val_", 0) == 0 ||
                                         (dotted && name.find('.') == std::string::npos));
}

/// An invented name is a folded weight where a weight belongs, and a folded constant (a mask, a rotary table)
/// elsewhere.
static bool isFoldedConstant(const Model &model, const TensorData &tensor) {
  static const std::set<std::string> weightOps = {"MatMul",
                                                  "Gemm",
                                                  "Conv",
                                                  "ConvTranspose",
                                                  "Gather",
                                                  "Add",
                                                  "Identity",
                                                  "Transpose",
                                                  "Einsum",
                                                  "LayerNormalization",
                                                  "InstanceNormalization",
                                                  "GroupNormalization",
                                                  "RMSNormalization",
                                                  "BatchNormalization"};
  if (!isInventedName(model, tensor.name))
    return false;
  bool weight = llvm::any_of(model.nodes, [&](const Node &node) {
    return weightOps.count(node.opType) && llvm::is_contained(node.inputs, tensor.name);
  });
  return !weight || holdsMaskValues(tensor);
}

// PyTorch's exporter records what each initializer was; where it says nothing, names have to tell.
bool Importer::isParameter(const TensorData &tensor) const {
  if (auto kind = model.exportedKinds.find(tensor.name); kind != model.exportedKinds.end())
    return kind->second == "PARAMETER" && isFloat(tensor.dtype) && !tensor.bytes.empty() &&
           !matchesAny(options.buffers, tensor.name);
  bool constantLikeName = tensor.name.find('.') == std::string::npos && elementCount(tensor.dims).value_or(0) <= 1 &&
                          (tensor.dims.size() <= 1);
  return isFloat(tensor.dtype) && !constantLikeName && !isFoldedConstant(model, tensor) && !tensor.bytes.empty() &&
         !bufferNames.count(tensor.name) && !settingNames.count(tensor.name) && !batchNormStats.count(tensor.name) &&
         !matchesAny(options.buffers, tensor.name);
}

void Importer::declareVariable(const TensorData &tensor, graph::VariableKind kind, bool trainable) {
  auto type = RankedTensorType::get(tensor.dims, elementType(*b.getContext(), tensor.dtype));
  b.setLoc(NameLoc::get(b.getStringAttr(tensor.name)));
  SmallVector<StringRef> names;
  for (const auto &[name, other] : aliases)
    if (name == tensor.name)
      names.push_back(other);
  ArrayAttr others = names.empty() ? ArrayAttr() : b.getStrArrayAttr(names);
  variables[tensor.name] =
      graph::VariableOp::create(b, tensor.name, type, kind, trainable, nullptr, others, nullptr, nullptr);
  result.weights.add(tensor.name, {tensor.dtype, tensor.dims, tensor.bytes, tensor.owner});
  values[tensor.name].variable = tensor.name;
}

/// Other names of tied parameters: written by plimsoll.export, or Identity nodes over initializers (the TorchScript
/// exporter).
void Importer::readAliases() {
  if (auto listed = model.metadata.find("plimsoll.aliases"); listed != model.metadata.end()) {
    SmallVector<StringRef> lines;
    StringRef(listed->second).split(lines, '\n', -1, false);
    for (StringRef line : lines)
      aliases.emplace_back(line.split('\t').first.str(), line.split('\t').second.str());
  }
  for (const Node &node : model.nodes)
    if (node.opType == "Identity" && node.inputs.size() == 1 && node.outputs.size() == 1 &&
        StringRef(node.outputs[0]).contains('.') && !StringRef(node.outputs[0]).contains('/'))
      aliases.emplace_back(node.inputs[0], node.outputs[0]);
}

void Importer::classifyInitializers() {
  readAliases();
  constexpr uint64_t hostBufferLimit = uint64_t(4) << 20;
  for (const Node &node : model.nodes) {
    for (size_t i : settingPositions(node.opType))
      if (i < node.inputs.size())
        settingNames.insert(node.inputs[i]);
    if (node.opType == "BatchNormalization" && node.domain.empty())
      for (size_t i = 3; i < 5 && i < node.inputs.size(); ++i)
        batchNormStats.insert(node.inputs[i]);
  }
  if (auto listed = model.metadata.find("plimsoll.buffers"); listed != model.metadata.end()) {
    SmallVector<StringRef> lines;
    StringRef(listed->second).split(lines, '\n', -1, false);
    for (StringRef line : lines)
      bufferNames.insert(line.str());
  } else {
    addTailBuffers(model, batchNormStats, bufferNames);
  }
  for (const TensorData &tensor : model.initializers) {
    initializers[tensor.name] = &tensor;
    bool reserved = tensor.name == "forward" || tensor.name == "seed" || tensor.name.rfind("plimsoll.", 0) == 0;
    if (reserved || tensor.dtype == DType::String) {
      report(Severity::Error, "bad-initializer", tensor.name, "", reserved ? "has a reserved name" : "holds strings",
             "rename it or drop it", ExitCode::BadInput);
      values[tensor.name].poisoned = true;
    } else if (isParameter(tensor)) {
      declareVariable(tensor, graph::VariableKind::Parameter, !matchesAny(options.freeze, tensor.name));
    } else if (batchNormStats.count(tensor.name) && isFloat(tensor.dtype)) {
      declareVariable(tensor, graph::VariableKind::ModelState, false);
    } else if (isFloat(tensor.dtype) && elementCount(tensor.dims).value_or(0) > hostBufferLimit) {
      declareVariable(tensor, graph::VariableKind::Constant, false);
    } else if (std::optional<HostTensor> known = hostFrom(tensor)) {
      findSplat(*known);
      values[tensor.name].host = std::make_shared<HostTensor>(std::move(*known));
    } else {
      report(Severity::Error, "bad-initializer", tensor.name, "", "is too large to be a constant",
             "make it a graph input", ExitCode::BadInput);
      values[tensor.name].poisoned = true;
    }
  }
}

std::string Importer::modelState(const std::string &name) {
  auto variable = variables.find(name);
  return variable != variables.end() && variable->second.getKind() == graph::VariableKind::ModelState ? name : "";
}

/// Ops that a gradient coming from the results passes through, walking float values backwards.
static llvm::DenseSet<Operation *> gradientPath(ArrayRef<Value> from) {
  llvm::DenseSet<Operation *> seen;
  SmallVector<Value> work(from.begin(), from.end());
  while (!work.empty()) {
    Value next = work.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (!op || !graph::isFloatTensor(next.getType()) || !seen.insert(op).second)
      continue;
    if (isa<graph::DifferentiableOpInterface>(op))
      llvm::append_range(work, op->getOperands());
  }
  return seen;
}

void Importer::settleParameters() {
  SmallVector<Value> sources;
  for (auto [value, attributes] : llvm::zip(results, resultAttributes))
    if (auto role = attributes.getAs<StringAttr>("graph.role"); role && role.getValue() == "loss")
      sources.push_back(value);
  llvm::DenseSet<Operation *> path =
      gradientPath(sources.empty() ? ArrayRef<Value>(results) : ArrayRef<Value>(sources));
  for (const TensorData &tensor : model.initializers) {
    auto variable = variables.find(tensor.name);
    if (variable == variables.end() || variable->second.getKind() != graph::VariableKind::Parameter)
      continue;
    if (!variable->second.getTrainable()) {
      report(Severity::Note, "frozen-parameter", tensor.name, "", "is frozen by --freeze", "");
      continue;
    }
    auto read = reads.find(tensor.name);
    if (read != reads.end() && path.contains(read->second.getDefiningOp()))
      continue;
    variable->second.setTrainable(false);
    report(Severity::Warning, "dead-parameter", tensor.name, "",
           read == reads.end() ? "no node reads it on the way to the loss" : "no gradient of the loss reaches it",
           "it is kept and saved but neither trained nor decayed");
  }
}

} // namespace plimsoll::onnx
