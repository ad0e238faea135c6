// Structural checks: after these, node order is a valid evaluation order and every name means one thing.
#include "lib/Frontend/ONNX/CheckModel.h"

#include <set>

namespace plimsoll::onnx {

uint64_t elementBytes(DType dtype) {
  switch (dtype) {
  case DType::F64:
  case DType::I64:
    return 8;
  case DType::F32:
  case DType::I32:
    return 4;
  case DType::F16:
  case DType::BF16:
  case DType::I16:
    return 2;
  case DType::Bool:
  case DType::I8:
  case DType::U8:
    return 1;
  default:
    return 0;
  }
}

bool isFloat(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F64 || dtype == DType::F16 || dtype == DType::BF16;
}

std::string dtypeName(DType dtype) {
  switch (dtype) {
  case DType::F64:
    return "f64";
  case DType::I64:
    return "i64";
  case DType::F32:
    return "f32";
  case DType::I32:
    return "i32";
  case DType::F16:
    return "f16";
  case DType::BF16:
    return "bf16";
  case DType::I16:
    return "i16";
  case DType::I8:
    return "i8";
  case DType::U8:
    return "u8";
  case DType::Bool:
    return "bool";
  case DType::String:
    return "string";
  default:
    return "type " + std::to_string(static_cast<int>(dtype));
  }
}

std::optional<uint64_t> elementCount(std::span<const int64_t> dims) {
  constexpr uint64_t limit = uint64_t(1) << 43; // elements: 2^46 bytes of the widest type
  if (dims.size() > 32)
    return std::nullopt;
  uint64_t count = 1;
  bool empty = false;
  for (int64_t dim : dims) {
    if (dim < 0 || static_cast<uint64_t>(dim) > limit)
      return std::nullopt;
    empty |= dim == 0;
    if (dim != 0 && count > limit / static_cast<uint64_t>(dim))
      return std::nullopt;
    count *= dim == 0 ? 1 : static_cast<uint64_t>(dim);
  }
  return empty ? 0 : count;
}

Status checkVersions(const Model &model) {
  if (model.opset < 1)
    return badInput("the model names no opset of the standard domain, expected opset 13 to 24");
  if (model.opset < oldestOpset)
    return badInput("the model has opset " + std::to_string(model.opset) +
                    ", opset >= 13 needed; export again with opset_version=20");
  if (model.opset > newestOpset)
    return badInput("the model has opset " + std::to_string(model.opset) + ", expected at most " +
                    std::to_string(newestOpset) + "; export again with opset_version=20");
  return Status::ok();
}

static Status checkProducers(const Model &model, std::set<std::string> &produced) {
  for (const Node &node : model.nodes)
    for (const std::string &output : node.outputs)
      if (!output.empty() && !produced.insert(output).second)
        return badInput("value '" + output + "' is produced twice (again by node '" + node.name +
                        "'), expected one producer");
  return Status::ok();
}

static Status checkOrder(const Model &model, std::set<std::string> available, const std::set<std::string> &produced) {
  for (const Node &node : model.nodes) {
    for (const std::string &input : node.inputs)
      if (!input.empty() && !available.count(input))
        return badInput("node '" + node.name + "' (" + node.opType + ") reads '" + input +
                        (produced.count(input) ? "' before it is produced: the graph has a cycle or is not sorted"
                                               : "', which no input, initializer or node produces"));
    available.insert(node.outputs.begin(), node.outputs.end());
  }
  for (const ValueInfo &output : model.outputs)
    if (!available.count(output.name))
      return badInput("graph output '" + output.name + "' is not produced by any node");
  return Status::ok();
}

Status checkNames(Model &model) {
  std::set<std::string> available;
  for (const TensorData &tensor : model.initializers)
    if (tensor.name.empty() || !available.insert(tensor.name).second)
      return badInput(tensor.name.empty() ? std::string("an initializer has no name")
                                          : "initializer '" + tensor.name + "' appears twice");
  std::erase_if(model.inputs, [&](const ValueInfo &input) { return available.count(input.name) != 0; });
  for (const ValueInfo &input : model.inputs)
    if (input.name.empty() || !available.insert(input.name).second)
      return badInput("graph input '" + input.name + "' appears twice or has no name");
  std::set<std::string> produced = available;
  if (Status status = checkProducers(model, produced); !status)
    return status;
  return checkOrder(model, available, produced);
}

} // namespace plimsoll::onnx
