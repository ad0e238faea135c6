// Conversions between weight stores, safetensors files and the reference evaluator's tensors.
#include "test/unit/Frontend/EvaluateModel.h"

using namespace mlir;

namespace plimsoll::test {

static reference::HostTensor tensorFrom(RankedTensorType type, std::span<const std::byte> bytes) {
  FailureOr<reference::HostTensor> tensor =
      reference::fromBytes(type, ArrayRef<char>(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
  return succeeded(tensor) ? *tensor : reference::HostTensor::zeros(type);
}

reference::VariableState stateOf(onnx::ImportResult &imported) {
  reference::VariableState state = reference::initialState(*imported.module);
  for (graph::VariableOp variable : imported.module->getOps<graph::VariableOp>())
    if (const onnx::WeightStore::Entry *entry = imported.weights.find(variable.getSymName().str()))
      state[variable.getSymName().str()] = tensorFrom(variable.getTensorType(), entry->bytes);
  return state;
}

func::FuncOp forwardOf(onnx::ImportResult &imported) { return imported.module->lookupSymbol<func::FuncOp>("forward"); }

Result<std::vector<reference::HostTensor>> argumentsOf(func::FuncOp forward, const runtime::SafeTensors &inputs,
                                                       const std::string &prefix) {
  std::vector<reference::HostTensor> arguments;
  for (unsigned i = 0; i < forward.getNumArguments(); ++i) {
    std::string name = prefix + forward.getArgAttrOfType<StringAttr>(i, "graph.name").str();
    const runtime::NamedTensor *found = inputs.find(name);
    auto type = cast<RankedTensorType>(forward.getArgumentTypes()[i]);
    if (!found || ArrayRef<int64_t>(found->shape) != type.getShape() || found->bytes.size() != graph::tensorBytes(type))
      return badInput("no tensor '" + name + "' of the argument's type");
    arguments.push_back(tensorFrom(type, found->bytes));
  }
  return arguments;
}

std::string resultName(func::FuncOp forward, unsigned i, const char *attribute) {
  auto name = forward.getResultAttrOfType<StringAttr>(i, attribute);
  return name ? name.str() : "";
}

} // namespace plimsoll::test
