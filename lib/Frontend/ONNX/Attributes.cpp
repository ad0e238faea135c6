// Attribute access and the shape rules that host folding and lowering share.
#include "lib/Frontend/ONNX/Attributes.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace plimsoll::onnx {

const Attribute *findAttribute(const Node &node, const char *name) {
  for (const Attribute &attribute : node.attributes)
    if (attribute.name == name)
      return &attribute;
  return nullptr;
}

int64_t intAttribute(const Node &node, const char *name, int64_t otherwise) {
  const Attribute *found = findAttribute(node, name);
  return found && found->kind == Attribute::Kind::Int ? found->intValue : otherwise;
}

double shortestDecimal(float value) {
  char text[32];
  auto [end, error] = std::to_chars(text, text + sizeof text, value);
  double decimal = value;
  if (error == std::errc())
    std::from_chars(text, end, decimal);
  return decimal;
}

double floatAttribute(const Node &node, const char *name, double otherwise) {
  const Attribute *found = findAttribute(node, name);
  return found && found->kind == Attribute::Kind::Float ? shortestDecimal(found->floatValue) : otherwise;
}

std::string textAttribute(const Node &node, const char *name, const std::string &otherwise) {
  const Attribute *found = findAttribute(node, name);
  return found && found->kind == Attribute::Kind::String ? found->text : otherwise;
}

std::vector<int64_t> intsAttribute(const Node &node, const char *name, std::vector<int64_t> otherwise) {
  const Attribute *found = findAttribute(node, name);
  return found && found->kind == Attribute::Kind::Ints ? found->ints : otherwise;
}

std::optional<int64_t> normalAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return std::nullopt;
  return axis < 0 ? axis + rank : axis;
}

std::optional<std::vector<int64_t>> axesOf(const Node &node, const std::vector<const HostTensor *> &inputs,
                                           size_t position, int64_t rank) {
  std::vector<int64_t> axes = intsAttribute(node, "axes");
  if (position < node.inputs.size() && !node.inputs[position].empty()) {
    if (position >= inputs.size() || !inputs[position] || inputs[position]->count() > 64)
      return std::nullopt;
    axes.clear();
    for (uint64_t i = 0; i < inputs[position]->count(); ++i)
      axes.push_back(inputs[position]->integer(i));
  }
  for (int64_t &axis : axes) {
    std::optional<int64_t> normal = normalAxis(axis, rank);
    if (!normal)
      return std::nullopt;
    axis = *normal;
  }
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    return std::nullopt;
  return axes;
}

std::optional<std::vector<int64_t>> reshapeTarget(const HostTensor &wanted, std::span<const int64_t> from,
                                                  bool allowZero) {
  if (wanted.dims.size() != 1 || wanted.count() > 32)
    return std::nullopt;
  std::vector<int64_t> target;
  std::optional<size_t> open;
  for (uint64_t i = 0; i < wanted.count(); ++i) {
    int64_t dim = wanted.integer(i);
    if (dim == 0 && !allowZero) {
      if (i >= from.size())
        return std::nullopt;
      dim = from[i];
    }
    if (dim < -1 || (dim == -1 && open))
      return std::nullopt;
    if (dim == -1)
      open = i;
    target.push_back(dim == -1 ? 1 : dim);
  }
  std::optional<uint64_t> have = elementCount(from), known = elementCount(target);
  if (!have || !known || (open ? *known == 0 || *have % *known != 0 : *have != *known))
    return std::nullopt;
  if (open)
    target[*open] = static_cast<int64_t>(*have / *known);
  return target;
}

/// Element `i` of known input `position`, or `otherwise` when the input is absent.
static std::optional<int64_t> element(const Node &node, const std::vector<const HostTensor *> &inputs, size_t position,
                                      uint64_t i, int64_t otherwise) {
  if (position >= node.inputs.size() || node.inputs[position].empty())
    return otherwise;
  if (position >= inputs.size() || !inputs[position] || i >= inputs[position]->count())
    return std::nullopt;
  return inputs[position]->integer(i);
}

/// Clamps one Slice dimension as the operator's text says.
static bool resolveSlice(int64_t size, int64_t start, int64_t end, int64_t step, int64_t &first, int64_t &length) {
  if (step == 0 || step == std::numeric_limits<int64_t>::min())
    return false;
  auto fromEnd = [size](int64_t at) { return at < 0 ? std::max(at + size, int64_t(-1) - size) : at; };
  start = fromEnd(start);
  end = end < -size ? -1 : end < 0 ? end + size : end;
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, size);
    end = std::clamp<int64_t>(end, 0, size);
    length = end > start ? (end - start - 1) / step + 1 : 0;
  } else {
    start = std::clamp<int64_t>(start, 0, std::max<int64_t>(size - 1, 0));
    end = std::clamp<int64_t>(end, -1, std::max<int64_t>(size - 1, 0));
    length = size > 0 && start > end ? (start - end - 1) / -step + 1 : 0;
  }
  first = start;
  return true;
}

std::optional<SliceDims> sliceDims(const Node &node, const std::vector<const HostTensor *> &inputs,
                                   std::span<const int64_t> from) {
  int64_t rank = static_cast<int64_t>(from.size());
  SliceDims result{
      std::vector<int64_t>(from.size(), 0), std::vector<int64_t>(from.size(), 1), {from.begin(), from.end()}};
  if (inputs.size() < 3 || !inputs[1] || !inputs[2] || inputs[1]->count() != inputs[2]->count())
    return std::nullopt;
  std::vector<bool> seen(from.size(), false);
  for (uint64_t i = 0; i < inputs[1]->count(); ++i) {
    std::optional<int64_t> axis = element(node, inputs, 3, i, static_cast<int64_t>(i)),
                           step = element(node, inputs, 4, i, 1);
    std::optional<int64_t> normal = axis ? normalAxis(*axis, rank) : std::nullopt;
    if (!step || !normal || seen[static_cast<size_t>(*normal)])
      return std::nullopt;
    size_t d = static_cast<size_t>(*normal);
    seen[d] = true;
    result.steps[d] = *step;
    if (!resolveSlice(from[d], inputs[1]->integer(i), inputs[2]->integer(i), *step, result.starts[d], result.sizes[d]))
      return std::nullopt;
  }
  return result;
}

std::optional<std::vector<int64_t>> splitSizes(const Node &node, const HostTensor *sizes, int64_t size, int64_t opset) {
  std::vector<int64_t> parts;
  bool sequence = node.opType == "SplitToSequence";
  if (sizes && !(sequence && sizes->dims.empty())) {
    for (uint64_t i = 0; i < sizes->count() && i < 65536; ++i)
      parts.push_back(sizes->integer(i));
  } else {
    int64_t pieces = intAttribute(node, "num_outputs", static_cast<int64_t>(node.outputs.size()));
    if (!sequence && pieces < 1)
      return std::nullopt;
    int64_t each = sequence ? (sizes ? sizes->integer(0) : 1) : (size + pieces - 1) / pieces;
    if (each < 1 || size / each > 65536)
      return std::nullopt;
    for (int64_t at = 0; at < size; at += each)
      parts.push_back(std::min(each, size - at));
  }
  int64_t total = 0;
  for (int64_t part : parts)
    if (part < 0 || part > size || (total += part) > size)
      return std::nullopt;
  return total == size ? std::optional(parts) : std::nullopt;
}

std::vector<int64_t> stridesOf(std::span<const int64_t> dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;)
    strides[d - 1] = strides[d] * dims[d];
  return strides;
}

} // namespace plimsoll::onnx
