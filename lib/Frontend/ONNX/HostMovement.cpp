// Host evaluation of nodes that only move elements or make index sequences.
#include "lib/Frontend/ONNX/Attributes.h"

#include <algorithm>
#include <cmath>

namespace plimsoll::onnx {

namespace {
using Inputs = std::vector<const HostTensor *>;
using Folded = std::optional<std::vector<HostTensor>>;

Folded one(HostTensor tensor) {
  std::vector<HostTensor> result;
  result.push_back(std::move(tensor));
  return result;
}

Folded reshaped(const HostTensor &x, std::vector<int64_t> dims) {
  HostTensor result = x;
  result.dims = std::move(dims);
  return one(std::move(result));
}

/// result[i] = x[offset + sum of at[d]*strides[d]] for a result of shape `dims`.
Folded strided(const HostTensor &x, std::vector<int64_t> dims, const std::vector<int64_t> &strides, int64_t offset) {
  HostTensor result;
  result.dtype = x.dtype;
  result.dims = std::move(dims);
  std::optional<uint64_t> count = elementCount(result.dims);
  bool single = x.splat || x.count() == 1;
  if (!count || (*count > hostElementLimit && !single))
    return std::nullopt;
  if (single && *count > 0) {
    result.splat = true;
    result.pushFrom(x, 0);
    return one(std::move(result));
  }
  std::vector<int64_t> at(result.dims.size(), 0);
  int64_t flat = offset;
  for (uint64_t i = 0; i < *count; ++i) {
    result.pushFrom(x, static_cast<uint64_t>(flat));
    for (size_t d = at.size(); d-- > 0;) {
      flat += strides[d];
      if (++at[d] < result.dims[d])
        break;
      flat -= strides[d] * result.dims[d];
      at[d] = 0;
    }
  }
  return one(std::move(result));
}

Folded foldTranspose(const Node &node, const HostTensor &x) {
  std::vector<int64_t> perm = intsAttribute(node, "perm"), own = stridesOf(x.dims), dims, strides;
  if (perm.empty())
    for (size_t d = x.dims.size(); d-- > 0;)
      perm.push_back(static_cast<int64_t>(d));
  std::vector<bool> seen(x.dims.size(), false);
  for (int64_t p : perm) {
    if (p < 0 || p >= static_cast<int64_t>(x.dims.size()) || seen[static_cast<size_t>(p)])
      return std::nullopt;
    seen[static_cast<size_t>(p)] = true;
    dims.push_back(x.dims[static_cast<size_t>(p)]);
    strides.push_back(own[static_cast<size_t>(p)]);
  }
  return perm.size() == x.dims.size() ? strided(x, dims, strides, 0) : std::nullopt;
}

Folded foldUnsqueeze(const Node &node, const Inputs &inputs) {
  std::vector<int64_t> dims = inputs[0]->dims;
  uint64_t added = intsAttribute(node, "axes").size() + (inputs.size() > 1 && inputs[1] ? inputs[1]->count() : 0);
  auto axes = axesOf(node, inputs, 1, static_cast<int64_t>(dims.size() + added));
  if (!axes)
    return std::nullopt;
  for (int64_t axis : *axes)
    dims.insert(dims.begin() + axis, 1);
  return reshaped(*inputs[0], dims);
}

Folded foldSqueeze(const Node &node, const Inputs &inputs) {
  auto axes = axesOf(node, inputs, 1, static_cast<int64_t>(inputs[0]->dims.size()));
  bool given = findAttribute(node, "axes") || (inputs.size() > 1 && inputs[1]);
  if (!axes)
    return std::nullopt;
  std::vector<int64_t> dims;
  for (size_t d = 0; d < inputs[0]->dims.size(); ++d) {
    bool named = std::find(axes->begin(), axes->end(), static_cast<int64_t>(d)) != axes->end();
    if (given && named && inputs[0]->dims[d] != 1)
      return std::nullopt;
    if (given ? !named : inputs[0]->dims[d] != 1)
      dims.push_back(inputs[0]->dims[d]);
  }
  return reshaped(*inputs[0], dims);
}

Folded foldExpand(const Inputs &inputs) {
  std::vector<int64_t> wanted;
  for (uint64_t i = 0; i < inputs[1]->count() && i < 32; ++i)
    wanted.push_back(inputs[1]->integer(i));
  auto dims = broadcastShapes(inputs[0]->dims, wanted);
  if (!dims || !elementCount(*dims))
    return std::nullopt;
  std::vector<int64_t> own = stridesOf(inputs[0]->dims), strides(dims->size(), 0);
  for (size_t d = 0; d < own.size(); ++d)
    strides[dims->size() - own.size() + d] = inputs[0]->dims[d] == 1 ? 0 : own[d];
  return strided(*inputs[0], *dims, strides, 0);
}

Folded foldTile(const Inputs &inputs) {
  const HostTensor &x = *inputs[0];
  std::vector<int64_t> dims = x.dims, own = stridesOf(x.dims);
  if (inputs[1]->count() != dims.size())
    return std::nullopt;
  for (size_t d = 0; d < dims.size(); ++d)
    if (__builtin_mul_overflow(dims[d], inputs[1]->integer(d), &dims[d]))
      return std::nullopt;
  std::optional<uint64_t> count = elementCount(dims);
  if (!count || *count > hostElementLimit)
    return std::nullopt;
  HostTensor result;
  result.dtype = x.dtype;
  result.dims = dims;
  std::vector<int64_t> outer = stridesOf(dims);
  for (uint64_t i = 0; i < *count; ++i) {
    int64_t flat = 0;
    for (size_t d = 0; d < dims.size(); ++d)
      flat += static_cast<int64_t>(i) / outer[d] % dims[d] % x.dims[d] * own[d];
    result.pushFrom(x, static_cast<uint64_t>(flat));
  }
  return one(std::move(result));
}

Folded foldSlice(const Node &node, const Inputs &inputs) {
  auto slice = sliceDims(node, inputs, inputs[0]->dims);
  if (!slice)
    return std::nullopt;
  std::vector<int64_t> own = stridesOf(inputs[0]->dims);
  int64_t offset = 0;
  for (size_t d = 0; d < own.size(); ++d) {
    offset += slice->starts[d] * own[d];
    own[d] *= slice->steps[d];
  }
  return strided(*inputs[0], slice->sizes, own, offset);
}

Folded foldSplit(const Node &node, const Inputs &inputs, int64_t opset) {
  const HostTensor &x = *inputs[0];
  auto axis = normalAxis(intAttribute(node, "axis", 0), static_cast<int64_t>(x.dims.size()));
  auto sizes =
      axis ? splitSizes(node, inputs.size() > 1 ? inputs[1] : nullptr, x.dims[static_cast<size_t>(*axis)], opset)
           : std::nullopt;
  if (!sizes || sizes->size() != node.outputs.size())
    return std::nullopt;
  std::vector<HostTensor> parts;
  std::vector<int64_t> strides = stridesOf(x.dims);
  int64_t start = 0;
  for (int64_t size : *sizes) {
    std::vector<int64_t> dims = x.dims;
    dims[static_cast<size_t>(*axis)] = size;
    Folded part = strided(x, dims, strides, start * strides[static_cast<size_t>(*axis)]);
    if (!part)
      return std::nullopt;
    parts.push_back(std::move(part->front()));
    start += size;
  }
  return parts;
}

Folded foldConcat(const Node &node, const Inputs &inputs) {
  int64_t rank = static_cast<int64_t>(inputs[0]->dims.size());
  auto axis = normalAxis(intAttribute(node, "axis", 0), rank);
  if (!axis)
    return std::nullopt;
  size_t at = static_cast<size_t>(*axis);
  HostTensor result;
  result.dtype = inputs[0]->dtype;
  result.dims = inputs[0]->dims;
  result.dims[at] = 0;
  uint64_t outer = 1;
  for (size_t d = 0; d < at; ++d)
    outer *= static_cast<uint64_t>(result.dims[d]);
  for (const HostTensor *input : inputs) {
    std::vector<int64_t> expected = result.dims;
    if (!input || input->dtype != result.dtype || input->dims.size() != expected.size())
      return std::nullopt;
    expected[at] = input->dims[at];
    if (input->dims != expected)
      return std::nullopt;
    result.dims[at] += input->dims[at];
  }
  if (!elementCount(result.dims) || result.count() > hostElementLimit)
    return std::nullopt;
  for (uint64_t o = 0; o < outer; ++o)
    for (const HostTensor *input : inputs) {
      uint64_t block = outer == 0 ? 0 : input->count() / outer;
      for (uint64_t i = 0; i < block; ++i)
        result.pushFrom(*input, o * block + i);
    }
  return one(std::move(result));
}

Folded foldRange(const Inputs &inputs) {
  if (inputs.size() != 3 || !inputs[1] || !inputs[2] || inputs[0]->count() != 1 || inputs[1]->count() != 1 ||
      inputs[2]->count() != 1)
    return std::nullopt;
  double start = inputs[0]->real(0), limit = inputs[1]->real(0), delta = inputs[2]->real(0);
  double count = std::ceil((limit - start) / delta);
  if (!(count <= static_cast<double>(hostElementLimit)))
    return std::nullopt;
  HostTensor result;
  result.dtype = inputs[0]->dtype;
  result.dims = {std::max<int64_t>(0, static_cast<int64_t>(count))};
  for (int64_t i = 0; i < result.dims[0]; ++i)
    result.push(start + static_cast<double>(i) * delta);
  return one(std::move(result));
}

Folded foldConstantOfShape(const Node &node, const Inputs &inputs) {
  std::vector<int64_t> dims;
  for (uint64_t i = 0; i < inputs[0]->count() && i < 64; ++i)
    dims.push_back(inputs[0]->integer(i));
  const Attribute *value = findAttribute(node, "value");
  std::optional<HostTensor> filler =
      value && value->kind == Attribute::Kind::Tensor ? hostFrom(value->tensor) : hostSplat(DType::F32, {1}, 0);
  std::optional<uint64_t> count = elementCount(dims);
  if (!filler || filler->count() != 1 || !count)
    return std::nullopt;
  HostTensor result;
  result.dtype = filler->dtype;
  result.dims = dims;
  result.splat = *count > 0;
  if (result.splat)
    result.pushFrom(*filler, 0);
  return one(std::move(result));
}

/// Keeps the upper (or lower) triangle from diagonal k on and zeroes the rest.
Folded foldTrilu(const Node &node, const Inputs &inputs) {
  const HostTensor &x = *inputs[0];
  if (x.dims.size() < 2 || x.count() > hostElementLimit)
    return std::nullopt;
  int64_t k = inputs.size() > 1 && inputs[1] && inputs[1]->count() == 1 ? inputs[1]->integer(0) : 0;
  bool upper = intAttribute(node, "upper", 1) != 0;
  int64_t rows = x.dims[x.dims.size() - 2], columns = x.dims.back();
  HostTensor result, zero = hostSplat(x.dtype, {}, 0);
  result.dtype = x.dtype;
  result.dims = x.dims;
  for (uint64_t i = 0; i < x.count(); ++i) {
    int64_t column = static_cast<int64_t>(i) % columns, row = static_cast<int64_t>(i) / columns % rows;
    bool keep = upper ? column - row >= k : column - row <= k;
    result.pushFrom(keep ? x : zero, keep ? i : 0);
  }
  return one(std::move(result));
}

Folded foldFlatten(const Node &node, const HostTensor &x) {
  int64_t rank = static_cast<int64_t>(x.dims.size()), axis = intAttribute(node, "axis", 1);
  if (axis < -rank || axis > rank)
    return std::nullopt;
  axis += axis < 0 ? rank : 0;
  uint64_t rows = elementCount(std::span(x.dims).first(static_cast<size_t>(axis))).value_or(0);
  uint64_t columns = elementCount(std::span(x.dims).subspan(static_cast<size_t>(axis))).value_or(0);
  return reshaped(x, {static_cast<int64_t>(rows), static_cast<int64_t>(columns)});
}
} // namespace

std::optional<std::vector<HostTensor>> foldMovement(const Node &node, const Inputs &inputs, int64_t opset) {
  if (inputs.empty() || !inputs[0])
    return std::nullopt;
  const std::string &op = node.opType;
  bool second = inputs.size() > 1 && inputs[1];
  if (op == "Reshape" && second) {
    auto target = reshapeTarget(*inputs[1], inputs[0]->dims, intAttribute(node, "allowzero", 0) != 0);
    return target ? reshaped(*inputs[0], *target) : std::nullopt;
  }
  if (op == "Flatten")
    return foldFlatten(node, *inputs[0]);
  if (op == "Squeeze")
    return foldSqueeze(node, inputs);
  if (op == "Unsqueeze")
    return foldUnsqueeze(node, inputs);
  if (op == "Transpose")
    return foldTranspose(node, *inputs[0]);
  if (op == "Expand" && second)
    return foldExpand(inputs);
  if (op == "Tile" && second)
    return foldTile(inputs);
  if (op == "Slice")
    return foldSlice(node, inputs);
  if (op == "Split")
    return foldSplit(node, inputs, opset);
  if (op == "Concat")
    return foldConcat(node, inputs);
  if (op == "Range")
    return foldRange(inputs);
  if (op == "ConstantOfShape")
    return foldConstantOfShape(node, inputs);
  if (op == "Trilu")
    return foldTrilu(node, inputs);
  if (op == "Size")
    return one(hostInts({static_cast<int64_t>(inputs[0]->count())}, true));
  return std::nullopt;
}

} // namespace plimsoll::onnx
