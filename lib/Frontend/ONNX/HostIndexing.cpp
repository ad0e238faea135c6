// Host evaluation of gathers, scatters and one-hot.
#include "lib/Frontend/ONNX/Attributes.h"

namespace plimsoll::onnx {

namespace {
using Inputs = std::vector<const HostTensor *>;
using Folded = std::optional<std::vector<HostTensor>>;

Folded one(HostTensor tensor) {
  std::vector<HostTensor> result;
  result.push_back(std::move(tensor));
  return result;
}

HostTensor emptyLike(const HostTensor &x, std::vector<int64_t> dims) {
  HostTensor result;
  result.dtype = x.dtype;
  result.dims = std::move(dims);
  return result;
}

bool fits(const std::vector<int64_t> &dims) {
  std::optional<uint64_t> count = elementCount(dims);
  return count && *count <= hostElementLimit;
}

Folded foldGather(const Node &node, const HostTensor &x, const HostTensor &indices) {
  auto axis = normalAxis(intAttribute(node, "axis", 0), static_cast<int64_t>(x.dims.size()));
  if (!axis || indices.holdsReals())
    return std::nullopt;
  auto begin = x.dims.begin(), middle = begin + *axis;
  std::vector<int64_t> dims(begin, middle);
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), middle + 1, x.dims.end());
  if (!fits(dims))
    return std::nullopt;
  uint64_t inner = elementCount(std::span(x.dims).subspan(static_cast<size_t>(*axis) + 1)).value_or(0),
           count = indices.count();
  uint64_t outer = elementCount(std::span(x.dims).first(static_cast<size_t>(*axis))).value_or(0);
  int64_t size = *middle;
  HostTensor result = emptyLike(x, dims);
  for (uint64_t o = 0; o < outer; ++o)
    for (uint64_t i = 0; i < count; ++i) {
      int64_t at = indices.integer(i) + (indices.integer(i) < 0 ? size : 0);
      if (at < 0 || at >= size)
        return std::nullopt;
      for (uint64_t j = 0; j < inner; ++j)
        result.pushFrom(x, (o * static_cast<uint64_t>(size) + static_cast<uint64_t>(at)) * inner + j);
    }
  return one(std::move(result));
}

Folded foldGatherElements(const Node &node, const HostTensor &x, const HostTensor &indices) {
  auto axis = normalAxis(intAttribute(node, "axis", 0), static_cast<int64_t>(x.dims.size()));
  if (!axis || indices.dims.size() != x.dims.size() || !fits(indices.dims) || indices.holdsReals())
    return std::nullopt;
  for (size_t d = 0; d < x.dims.size(); ++d)
    if (static_cast<int64_t>(d) != *axis && indices.dims[d] > x.dims[d])
      return std::nullopt;
  std::vector<int64_t> own = stridesOf(x.dims), other = stridesOf(indices.dims);
  HostTensor result = emptyLike(x, indices.dims);
  for (uint64_t i = 0; i < indices.count(); ++i) {
    int64_t flat = 0;
    for (size_t d = 0; d < own.size(); ++d) {
      int64_t at = static_cast<int64_t>(i) / other[d] % indices.dims[d];
      if (static_cast<int64_t>(d) == *axis) {
        at = indices.integer(i) + (indices.integer(i) < 0 ? x.dims[d] : 0);
        if (at < 0 || at >= x.dims[d])
          return std::nullopt;
      }
      flat += at * own[d];
    }
    result.pushFrom(x, static_cast<uint64_t>(flat));
  }
  return one(std::move(result));
}

/// Flat offset of the block that index tuple `tuple` names in x[dims from `first` on]; negative when out of range.
int64_t blockOffset(const HostTensor &x, const HostTensor &indices, uint64_t tuple, size_t first,
                    const std::vector<int64_t> &strides) {
  size_t width = static_cast<size_t>(indices.dims.back());
  int64_t flat = 0;
  for (size_t k = 0; k < width; ++k) {
    int64_t at = indices.integer(tuple * width + k), size = x.dims[first + k];
    at += at < 0 ? size : 0;
    if (at < 0 || at >= size)
      return -1;
    flat += at * strides[first + k];
  }
  return flat;
}

Folded foldGatherND(const Node &node, const HostTensor &x, const HostTensor &indices) {
  size_t batch = static_cast<size_t>(std::max<int64_t>(0, intAttribute(node, "batch_dims", 0)));
  if (indices.dims.empty() || indices.holdsReals() || batch >= indices.dims.size())
    return std::nullopt;
  int64_t width = indices.dims.back();
  if (width < 0 || batch + static_cast<size_t>(width) > x.dims.size() ||
      !std::equal(x.dims.begin(), x.dims.begin() + static_cast<long>(batch), indices.dims.begin()))
    return std::nullopt;
  size_t tail = batch + static_cast<size_t>(width);
  std::vector<int64_t> dims(indices.dims.begin(), indices.dims.end() - 1), strides = stridesOf(x.dims);
  dims.insert(dims.end(), x.dims.begin() + static_cast<long>(tail), x.dims.end());
  if (!fits(dims))
    return std::nullopt;
  uint64_t inner = elementCount(std::span(x.dims).subspan(tail)).value_or(0);
  uint64_t tuples = elementCount(std::span(indices.dims).first(indices.dims.size() - 1)).value_or(0);
  uint64_t batches = elementCount(std::span(x.dims).first(batch)).value_or(1);
  uint64_t batchSize = batches == 0 ? 0 : x.count() / batches;
  HostTensor result = emptyLike(x, dims);
  for (uint64_t t = 0; t < tuples; ++t) {
    int64_t flat = blockOffset(x, indices, t, batch, strides);
    if (flat < 0)
      return std::nullopt;
    uint64_t base = t / (tuples / batches) * batchSize + static_cast<uint64_t>(flat);
    for (uint64_t j = 0; j < inner; ++j)
      result.pushFrom(x, base + j);
  }
  return one(std::move(result));
}

HostTensor unpacked(const HostTensor &x) {
  HostTensor result = emptyLike(x, x.dims);
  for (uint64_t i = 0; i < x.count(); ++i)
    result.pushFrom(x, i);
  return result;
}

void assign(HostTensor &target, uint64_t at, const HostTensor &from, uint64_t i) {
  if (target.holdsReals())
    target.reals[at] = from.real(i);
  else
    target.ints[at] = from.integer(i);
}

Folded foldScatterND(const Node &node, const HostTensor &x, const HostTensor &indices, const HostTensor &updates) {
  if (textAttribute(node, "reduction", "none") != "none" || indices.dims.empty() || updates.dtype != x.dtype ||
      !fits(x.dims))
    return std::nullopt;
  size_t width = static_cast<size_t>(indices.dims.back());
  if (width > x.dims.size())
    return std::nullopt;
  uint64_t inner = elementCount(std::span(x.dims).subspan(width)).value_or(0);
  uint64_t tuples = elementCount(std::span(indices.dims).first(indices.dims.size() - 1)).value_or(0);
  if (updates.count() != tuples * inner)
    return std::nullopt;
  HostTensor result = unpacked(x);
  std::vector<int64_t> strides = stridesOf(x.dims);
  for (uint64_t t = 0; t < tuples; ++t) {
    int64_t flat = blockOffset(x, indices, t, 0, strides);
    if (flat < 0)
      return std::nullopt;
    for (uint64_t j = 0; j < inner; ++j)
      assign(result, static_cast<uint64_t>(flat) + j, updates, t * inner + j);
  }
  return one(std::move(result));
}
} // namespace

std::optional<std::vector<HostTensor>> foldIndexing(const Node &node, const Inputs &inputs) {
  if (inputs.size() < 2 || !inputs[0] || !inputs[1])
    return std::nullopt;
  if (node.opType == "Gather")
    return foldGather(node, *inputs[0], *inputs[1]);
  if (node.opType == "GatherElements")
    return foldGatherElements(node, *inputs[0], *inputs[1]);
  if (node.opType == "GatherND")
    return foldGatherND(node, *inputs[0], *inputs[1]);
  if (node.opType == "ScatterND" && inputs.size() == 3 && inputs[2])
    return foldScatterND(node, *inputs[0], *inputs[1], *inputs[2]);
  return std::nullopt;
}

} // namespace plimsoll::onnx
