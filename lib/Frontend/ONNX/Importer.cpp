// The importer's frame: classifies initializers, binds inputs, walks the nodes (host folding first, then lowering), and
// closes the function. Every problem becomes a finding; the walk goes on so that all of them are listed at once.
#include "lib/Frontend/ONNX/Importer.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace plimsoll::onnx {

Importer::Importer(MLIRContext &context, const Model &theModel, const ImportOptions &theOptions,
                   ImportResult &theResult)
    : model(theModel), options(theOptions), result(theResult), b(UnknownLoc::get(&context), &context) {
  context.loadDialect<graph::GraphDialect, func::FuncDialect>();
  for (auto add : {addElementwise, addActivations, addShapeOps, addSequences, addIndexing, addReductions, addLinear,
                   addConvolutions, addPooling, addNormalization, addLosses, addAttention, addResize})
    add(table);
}

void Importer::report(Severity severity, const std::string &code, const std::string &subject, const std::string &op,
                      const std::string &message, const std::string &advice, ExitCode exit) {
  result.report.add({severity, code, subject, op, message, advice, exit});
}

Status Importer::run() {
  result.module = ModuleOp::create(b.getUnknownLoc());
  for (const std::string &feature : model.unsupportedFeatures)
    report(Severity::Error, "unsupported-feature", feature, "", "is not supported",
           "export with torch.onnx.export(dynamo=True, optimize=False)", ExitCode::Unsupported);
  b.setInsertionPointToEnd(result.module->getBody());
  classifyInitializers();
  if (bindInputs()) {
    for (const Node &node : model.nodes)
      for (const std::string &input : node.inputs)
        ++remainingUses[input];
    for (const ValueInfo &output : model.outputs)
      ++remainingUses[output.name];
    for (const Node &node : model.nodes)
      importNode(node);
    if (!result.report.hasErrors())
      buildResults();
    if (!result.report.hasErrors() && verifyModule())
      settleParameters();
  }
  if (result.report.hasErrors())
    result.module = nullptr;
  return result.report.status();
}

int64_t Importer::bindDim(const ValueInfo &input, size_t d, std::set<std::string> &used) {
  std::string position = input.name + "." + std::to_string(d);
  const Dim &dim = input.dims[d];
  for (const std::string &key : {dim.symbol, position}) {
    auto bound = key.empty() ? options.bindings.end() : options.bindings.find(key);
    if (bound == options.bindings.end())
      continue;
    used.insert(key);
    if (dim.size < 0)
      return bound->second;
    if (dim.size != bound->second)
      report(Severity::Error, "bad-binding", position, "",
             "is fixed to " + std::to_string(dim.size) + " but bound to " + std::to_string(bound->second),
             "drop the binding or export with dynamic shapes", ExitCode::BadInput);
  }
  if (dim.size < 0 && used.insert("?" + (dim.symbol.empty() ? position : dim.symbol)).second) // each name once
    report(Severity::Error, "unbound-dim", dim.symbol.empty() ? position : dim.symbol, "",
           "dimension " + std::to_string(d) + " of input '" + input.name + "' has no size",
           "add --bind " + (dim.symbol.empty() ? position : dim.symbol) + "=SIZE", ExitCode::BadInput);
  return dim.size;
}

bool Importer::bindInputs() {
  std::set<std::string> used;
  SmallVector<Type> types;
  SmallVector<std::string> names;
  for (const ValueInfo &input : model.inputs) {
    Type element = elementType(*b.getContext(), input.dtype);
    if (!element || !input.hasShape || input.dims.size() > 32) {
      report(Severity::Error, "bad-input", input.name, "",
             "has element type " + dtypeName(input.dtype) + (input.hasShape ? "" : " and no shape"),
             "expected a tensor of known rank of f16, bf16, f32, f64, bool, u8 or i8 to i64", ExitCode::BadInput);
      continue;
    }
    Dims dims;
    for (size_t d = 0; d < input.dims.size(); ++d)
      dims.push_back(bindDim(input, d, used));
    if (std::optional<uint64_t> count = elementCount(dims); result.report.hasErrors() || !count || *count == 0) {
      if (!result.report.hasErrors())
        report(Severity::Error, "bad-input", input.name, "", "has an empty or impossibly large shape",
               "check its dims and --bind", ExitCode::BadInput);
      continue;
    }
    types.push_back(RankedTensorType::get(dims, element));
    names.push_back(input.name);
  }
  for (const auto &[key, size] : options.bindings)
    if (!used.count(key))
      report(Severity::Error, "unused-binding", key, "", "names no dimension of the model's inputs",
             "check --bind against the inputs' dims", ExitCode::BadInput);
  if (result.report.hasErrors())
    return false;
  function = func::FuncOp::create(b, "forward", b.getFunctionType(types, {}));
  body = function.addEntryBlock();
  for (auto [i, name] : llvm::enumerate(names)) {
    function.setArgAttr(static_cast<unsigned>(i), "graph.name", b.getStringAttr(name));
    values[name].tensor = body->getArgument(static_cast<unsigned>(i));
  }
  b.setInsertionPointToEnd(body);
  return true;
}

bool Importer::tryFold(const Node &node) {
  std::vector<const HostTensor *> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Imported *value = node.inputs[i].empty() ? nullptr : find(node.inputs[i]);
    bool typeOnly = node.opType == "CastLike" && i == 1 && value;
    if (value && !value->host && !typeOnly)
      return false;
    inputs.push_back(value ? value->host.get() : nullptr);
  }
  HostTensor likeType; // CastLike reads only the type of its second input
  if (node.opType == "CastLike" && inputs.size() == 2 && !inputs[1] && !node.inputs[1].empty()) {
    likeType = hostSplat(dtypeOf(*find(node.inputs[1])), {}, 0);
    inputs[1] = &likeType;
  }
  std::optional<std::vector<HostTensor>> folded = foldNode(node, inputs, model.opset);
  if (!folded || folded->size() < node.outputs.size())
    return false;
  for (size_t i = 0; i < node.outputs.size(); ++i)
    values[node.outputs[i]].host = std::make_shared<HostTensor>(std::move((*folded)[i]));
  return true;
}

/// Frees host constants after their last use: expanded masks and index grids are large.
void Importer::finishUses(const Node &node) {
  for (const std::string &input : node.inputs)
    if (!input.empty() && --remainingUses[input] == 0)
      values[input].host = nullptr;
}

/// Outputs that a lowering does not make (masks of dropout, indices of pooling, caches) must be unused.
void Importer::refuseMissingOutputs(Lowering &lowering) {
  for (const std::string &output : lowering.node.outputs) {
    if (output.empty() || find(output))
      continue;
    if (remainingUses[output] > 0)
      (void)lowering.unsupported("its output '" + output + "' is used", "train without it");
    values[output].poisoned = true;
  }
}

void Importer::importNode(const Node &node) {
  b.setLoc(NameLoc::get(b.getStringAttr(node.name)));
  bool poisoned = false;
  for (const std::string &input : node.inputs)
    poisoned |= !input.empty() && find(input)->poisoned;
  auto poison = [&] {
    for (const std::string &output : node.outputs)
      values[output] = Imported{{}, nullptr, "", nullptr, true};
  };
  auto lower = node.domain.empty() ? table.find(node.opType) : table.end();
  if (lower == table.end() && (poisoned || !tryFold(node))) {
    report(Severity::Error, "unsupported-node", node.name, (node.domain.empty() ? "" : node.domain + ".") + node.opType,
           "this operator cannot be trained or imported", "replace it in the model, or freeze and precompute it",
           ExitCode::Unsupported);
    poison();
  } else if (poisoned) {
    poison();
  } else if (lower != table.end() && !tryFold(node)) {
    Lowering lowering(*this, node, b);
    size_t before = result.report.findings.size();
    if (failed(lowering.checkOperands()) || failed(lower->second(lowering))) {
      if (before == result.report.findings.size())
        (void)lowering.bad("its inputs do not fit the operator");
      poison();
    } else {
      refuseMissingOutputs(lowering);
    }
  }
  finishUses(node);
}

bool Importer::verifyModule() {
  std::string first;
  ScopedDiagnosticHandler handler(b.getContext(), [&](Diagnostic &diagnostic) {
    if (first.empty()) {
      llvm::raw_string_ostream text(first);
      text << diagnostic.getLocation() << ": " << diagnostic;
    }
    return success();
  });
  if (succeeded(verify(*result.module)))
    return true;
  report(Severity::Error, "invalid-graph", "", "", "the model breaks a rule of its operators: " + first,
         "check the node's inputs", ExitCode::BadInput);
  return false;
}

Status importModel(MLIRContext &context, const Model &model, const ImportOptions &options, ImportResult &result) {
  return Importer(context, model, options, result).run();
}

Status importModel(MLIRContext &context, const ImportOptions &options, ImportResult &result) {
  Result<Model> model = readModel(options.modelPath);
  if (!model) {
    result.report.add(
        {Severity::Error, "bad-model", options.modelPath, "", model.status().message(), "", model.status().code()});
    return model.status();
  }
  return importModel(context, *model, options, result);
}

} // namespace plimsoll::onnx
