// Constants and sequences. A sequence is known element by element at import, so its ops only pick and pass values.
#include "lib/Frontend/ONNX/Importer.h"

using namespace mlir;

namespace plimsoll::onnx {

static LogicalResult lowerConstant(Lowering &lowering) {
  const Node &node = lowering.node;
  auto finish = [&](HostTensor tensor) { return lowering.doneHost(0, std::move(tensor)); };
  if (const Attribute *value = findAttribute(node, "value"); value && value->kind == Attribute::Kind::Tensor) {
    std::optional<HostTensor> known = hostFrom(value->tensor);
    return known ? finish(std::move(*known)) : lowering.bad("expected a numeric constant of moderate size");
  }
  if (const Attribute *value = findAttribute(node, "value_int"))
    return finish(hostInts({value->intValue}, true));
  if (const Attribute *value = findAttribute(node, "value_ints"))
    return finish(hostInts(value->ints));
  HostTensor floats;
  floats.dtype = DType::F32;
  if (const Attribute *value = findAttribute(node, "value_float")) {
    floats.push(static_cast<double>(value->floatValue));
    return finish(std::move(floats));
  }
  if (const Attribute *value = findAttribute(node, "value_floats")) {
    floats.dims = {static_cast<int64_t>(value->floats.size())};
    for (float element : value->floats)
      floats.push(static_cast<double>(element));
    return finish(std::move(floats));
  }
  return lowering.unsupported("string and sparse constants", "");
}

static LogicalResult finishSequence(Lowering &lowering, std::vector<Imported> elements) {
  if (lowering.wants(0))
    lowering.importer.values[lowering.node.outputs[0]].sequence =
        std::make_shared<const std::vector<Imported>>(std::move(elements));
  return success();
}

static LogicalResult lowerSplitToSequence(Lowering &lowering) {
  Dims dims = lowering.dims(0);
  auto axis = normalAxis(intAttribute(lowering.node, "axis", 0), static_cast<int64_t>(dims.size()));
  bool known = !lowering.has(1) || lowering.host(1);
  auto sizes = axis && known ? splitSizes(lowering.node, lowering.host(1), dims[static_cast<size_t>(*axis)],
                                          lowering.importer.model.opset)
                             : std::nullopt;
  Value x = lowering.tensor(0);
  if (!sizes || !x)
    return lowering.bad("expected known part sizes that add up to the axis");
  bool squeeze = !lowering.has(1) && intAttribute(lowering.node, "keepdims", 1) == 0;
  std::vector<Imported> parts;
  Dims starts(dims.size(), 0), ones(dims.size(), 1);
  for (int64_t size : *sizes) {
    if (size == 0)
      return lowering.unsupported("an empty part", "");
    dims[static_cast<size_t>(*axis)] = size;
    Value part = sliceOf(lowering.b, x, starts, dims, ones);
    if (squeeze) {
      Dims smaller = dims;
      smaller.erase(smaller.begin() + *axis);
      part = graph::reshape(lowering.b, part, smaller);
    }
    parts.push_back(Imported{part, nullptr, "", nullptr, false});
    starts[static_cast<size_t>(*axis)] += size;
  }
  return finishSequence(lowering, std::move(parts));
}

static LogicalResult lowerSequenceConstruct(Lowering &lowering) {
  std::vector<Imported> elements;
  for (size_t i = 0; i < lowering.inputs(); ++i)
    elements.push_back(lowering.value(i));
  return finishSequence(lowering, std::move(elements));
}

static LogicalResult lowerSequenceAt(Lowering &lowering) {
  const auto &sequence = lowering.value(0).sequence;
  const HostTensor *position = lowering.host(1);
  int64_t size = sequence ? static_cast<int64_t>(sequence->size()) : 0;
  std::optional<int64_t> at =
      position && position->count() == 1 ? normalAxis(position->integer(0), size) : std::nullopt;
  if (!at)
    return lowering.bad("expected a known position inside the sequence");
  if (lowering.wants(0))
    lowering.importer.values[lowering.node.outputs[0]] = (*sequence)[static_cast<size_t>(*at)];
  return success();
}

static LogicalResult lowerSequenceLength(Lowering &lowering) {
  if (!lowering.value(0).sequence)
    return lowering.bad("expected a sequence");
  return lowering.doneHost(0, hostInts({static_cast<int64_t>(lowering.value(0).sequence->size())}, true));
}

static LogicalResult lowerConcatFromSequence(Lowering &lowering) {
  const auto sequence = lowering.value(0).sequence;
  if (!sequence || sequence->empty())
    return lowering.bad("expected a sequence with elements");
  bool stack = intAttribute(lowering.node, "new_axis", 0) != 0;
  Value first = lowering.importer.materialize(sequence->front());
  int64_t rank = first ? static_cast<int64_t>(shapeOf(first).size()) + stack : 0;
  auto axis = normalAxis(intAttribute(lowering.node, "axis", 0), rank);
  if (!first || !axis)
    return lowering.bad("expected an axis of the elements");
  SmallVector<Value> parts;
  Dims shape;
  for (const Imported &element : *sequence) {
    Value part = lowering.importer.materialize(element);
    if (!part || graph::tensorType(part).getElementType() != graph::tensorType(first).getElementType() ||
        shapeOf(part).size() != shapeOf(first).size())
      return lowering.bad("expected tensor elements of one type and rank");
    Dims dims(shapeOf(part));
    if (stack)
      dims.insert(dims.begin() + *axis, 1);
    part = graph::reshape(lowering.b, part, dims);
    Dims rest = shape, own = dims;
    if (!parts.empty() && (rest.erase(rest.begin() + *axis), own.erase(own.begin() + *axis), rest != own))
      return lowering.bad("expected elements that agree in all dimensions but the axis");
    if (parts.empty())
      shape = dims;
    else
      shape[static_cast<size_t>(*axis)] += dims[static_cast<size_t>(*axis)];
    parts.push_back(part);
  }
  if (parts.size() == 1)
    return lowering.done(parts.front());
  return lowering.done(graph::ConcatOp::create(lowering.b, graph::tensorLike(first.getType(), shape), parts, *axis));
}

void addSequences(LowerTable &table) {
  table["Constant"] = lowerConstant;
  table["SplitToSequence"] = lowerSplitToSequence;
  table["SequenceConstruct"] = lowerSequenceConstruct;
  table["SequenceAt"] = lowerSequenceAt;
  table["SequenceLength"] = lowerSequenceLength;
  table["ConcatFromSequence"] = lowerConcatFromSequence;
}

} // namespace plimsoll::onnx
