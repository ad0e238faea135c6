// Results of @forward: the model's outputs, the loss (the model's own or one added here) and the weight its mean
// divides by.
#include "lib/Frontend/ONNX/Importer.h"
#include "lib/Frontend/ONNX/LossOps.h"

using namespace mlir;

namespace plimsoll::onnx {

static bool isScalar(ArrayRef<int64_t> dims) { return productOf(dims) == 1; }

std::string Importer::pickLoss() {
  std::vector<std::string> scalars, named;
  for (const ValueInfo &output : model.outputs) {
    const Imported &value = *find(output.name);
    if (!isFloat(dtypeOf(value)) || !isScalar(dimsOf(value)))
      continue;
    scalars.push_back(output.name);
    if (StringRef(output.name).contains_insensitive("loss"))
      named.push_back(output.name);
    if (output.name == options.lossName)
      return output.name;
  }
  if (scalars.size() == 1 && options.lossName.empty())
    return scalars.front();
  if (named.size() == 1 && options.lossName.empty())
    return named.front();
  if (options.lossName.empty() && !options.requireLoss)
    return "";
  std::string list;
  for (const ValueInfo &output : model.outputs)
    list += (list.empty() ? "" : ", ") + output.name;
  report(Severity::Error, "no-loss", options.lossName, "",
         scalars.empty() ? "the model has no scalar float output to be the loss (outputs: " + list + ")"
                         : "several scalar outputs could be the loss (outputs: " + list + ")",
         "export the loss inside the graph, or ask for loss = \"cross_entropy\" or \"mse\", or name the loss output",
         ExitCode::BadInput);
  return "";
}

/// Labels of logits (N, C), (N, S, C) or (N, C, H, W...): the class dimension is 1 from rank 4 on and the last one
/// below.
static size_t classDimension(size_t rank) { return rank >= 4 ? 1 : rank - 1; }

Value Importer::addedLoss(Value &weight) {
  std::string name = options.lossOutput;
  for (const ValueInfo &output : model.outputs)
    if (name.empty() && isFloat(dtypeOf(*find(output.name))))
      name = output.name;
  bool isOutput = llvm::any_of(model.outputs, [&](const ValueInfo &output) { return output.name == name; });
  const Imported *output = isOutput ? find(name) : nullptr;
  std::vector<int64_t> dims = output ? dimsOf(*output) : std::vector<int64_t>();
  bool crossEntropy = options.loss == "cross_entropy";
  if (!output || !isFloat(dtypeOf(*output)) || dims.empty() || (crossEntropy && dims.size() < 2) ||
      (!crossEntropy && options.loss != "mse")) {
    report(Severity::Error, "no-loss", name.empty() ? options.loss : name, "",
           "loss '" + options.loss + "' cannot be added on this output",
           "expected loss \"cross_entropy\" or \"mse\" and a float output of rank >= " +
               std::string(crossEntropy ? "2" : "1"),
           ExitCode::BadInput);
    return {};
  }
  Value logits = materialize(*output);
  size_t classAt = classDimension(dims.size());
  Dims labelDims(dims.begin(), dims.end());
  if (crossEntropy)
    labelDims.erase(labelDims.begin() + static_cast<long>(classAt));
  std::string inputName = crossEntropy ? "labels" : "target";
  Type type = RankedTensorType::get(labelDims, crossEntropy ? Type(b.getI64Type()) : Type(b.getF32Type()));
  auto attributes = b.getDictionaryAttr(b.getNamedAttr("graph.name", b.getStringAttr(inputName)));
  unsigned position = function.getNumArguments();
  if (find(inputName) || failed(function.insertArgument(position, type, attributes, b.getLoc()))) {
    report(Severity::Error, "no-loss", inputName, "", "the model has a value of this name already",
           "rename it in the model", ExitCode::BadInput);
    return {};
  }
  Value labels = body->getArgument(position);
  return crossEntropy ? meanCrossEntropy(b, logits, labels, static_cast<int64_t>(classAt), options.ignoreIndex, weight)
                      : meanSquaredError(b, logits, labels, weight);
}

void Importer::appendResult(const std::string &name, Value value, const char *role) {
  NamedAttrList attributes;
  attributes.set("graph.name", b.getStringAttr(name));
  if (role)
    attributes.set("graph.role", b.getStringAttr(role));
  results.push_back(value);
  resultAttributes.push_back(attributes.getDictionary(b.getContext()));
}

/// The value as a rank-0 f32 tensor.
static Value scalarF32(ImplicitLocOpBuilder &b, Value value) {
  return graph::convert(b, graph::reshape(b, value, {}), b.getF32Type());
}

void Importer::buildResults() {
  b.setLoc(NameLoc::get(b.getStringAttr("results")));
  std::string lossName = options.loss.empty() ? pickLoss() : "";
  std::set<std::string> seen;
  Value weight;
  for (const ValueInfo &output : model.outputs) {
    const Imported &imported = *find(output.name);
    Value value = materialize(imported);
    if (!value || !seen.insert(output.name).second || productOf(shapeOf(value)) == 0) {
      report(Severity::Error, "bad-output", output.name, "", "is a sequence, empty, or listed twice",
             "expected distinct tensor outputs", ExitCode::BadInput);
      return;
    }
    bool isLoss = output.name == lossName;
    if (isLoss && lossWeights.count(lossName))
      weight = lossWeights[lossName];
    appendResult(output.name, isLoss ? scalarF32(b, value) : value, isLoss ? "loss" : nullptr);
  }
  if (!options.loss.empty()) {
    Value loss = addedLoss(weight);
    if (!loss)
      return;
    appendResult(seen.count("loss") ? "plimsoll.loss" : "loss", scalarF32(b, loss), "loss");
  }
  bool hasLoss = !options.loss.empty() || !lossName.empty();
  if (hasLoss)
    appendResult("weight",
                 weight ? scalarF32(b, weight) : graph::splat(b, RankedTensorType::get({}, b.getF32Type()), 1.0),
                 "weight");
  func::ReturnOp::create(b, results);
  SmallVector<Type> types(llvm::map_range(results, [](Value value) { return value.getType(); }));
  function.setFunctionType(b.getFunctionType(function.getArgumentTypes(), types));
  for (auto [i, attributes] : llvm::enumerate(resultAttributes))
    function.setResultAttrs(static_cast<unsigned>(i), attributes);
}

} // namespace plimsoll::onnx
