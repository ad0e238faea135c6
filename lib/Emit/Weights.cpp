// Initial values: from the model by name, or from the variable's own literal (constants made by the compiler).
#include "lib/Emit/Emit.h"

#include "dialects/Graph/Graph.h"
#include "lib/Passes/PlanProblem.h"
#include "runtime/Artifact/Hash.h"
#include "runtime/Core/SafeTensors.h"

using namespace mlir;
using namespace plimsoll;

// A literal's elements as the run time stores them: little-endian, i1 one byte each.
static std::vector<std::byte> literalBytes(DenseElementsAttr literal) {
  std::vector<std::byte> bytes;
  if (literal.getElementType().isInteger(1)) {
    for (bool value : literal.getValues<bool>())
      bytes.push_back(static_cast<std::byte>(value));
    return bytes;
  }
  ArrayRef<char> raw = literal.getRawData();
  size_t copies = literal.isSplat() ? static_cast<size_t>(literal.getNumElements()) : 1;
  bytes.reserve(raw.size() * copies);
  for (size_t copy = 0; copy < copies; ++copy)
    for (char byte : raw)
      bytes.push_back(static_cast<std::byte>(byte));
  return bytes;
}

Result<std::string> plimsoll::writeWeights(const std::string &weightsPath, ModuleOp module,
                                           const onnx::WeightStore &weights) {
  std::vector<std::vector<std::byte>> literals;
  std::vector<runtime::NamedTensor> tensors;
  literals.reserve(static_cast<size_t>(std::distance(module.getBody()->begin(), module.getBody()->end())));
  for (auto variable : module.getOps<graph::VariableOp>()) {
    if (variable.getFill())
      continue;
    RankedTensorType type = variable.getTensorType();
    runtime::NamedTensor tensor{variable.getSymName().str(),
                                *artifactType(type.getElementType()),
                                {type.getShape().begin(), type.getShape().end()},
                                {}};
    if (auto literal = dyn_cast_or_null<DenseElementsAttr>(variable.getValueAttr())) {
      literals.push_back(literalBytes(literal));
      tensor.bytes = literals.back();
    } else if (const onnx::WeightStore::Entry *entry = weights.find(tensor.name)) {
      tensor.bytes = entry->bytes;
    } else {
      return internalError("variable " + tensor.name + " has no initial value");
    }
    if (tensor.bytes.size() != graph::tensorBytes(type))
      return internalError("variable " + tensor.name + " has " + std::to_string(tensor.bytes.size()) +
                           " bytes of initial value, its type needs " + std::to_string(graph::tensorBytes(type)));
    tensors.push_back(std::move(tensor));
  }
  if (Status status = runtime::writeSafeTensors(weightsPath, tensors); !status)
    return status;
  return hashFile(weightsPath);
}
