// Host evaluation of reductions, running sums and small matrix products.
#include "lib/Frontend/ONNX/Attributes.h"

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

/// Accumulates in double (floats) or wrapping 64-bit (integers).
struct Accumulator {
  double real = 0;
  uint64_t integer = 0;
  bool first = true;
};

void accumulate(Accumulator &sum, const std::string &op, const HostTensor &x, uint64_t i) {
  bool product = op == "ReduceProd", largest = op == "ReduceMax", smallest = op == "ReduceMin";
  double value = x.real(i);
  int64_t whole = x.integer(i);
  if (sum.first) {
    sum.real = value;
    sum.integer = static_cast<uint64_t>(whole);
    sum.first = false;
  } else if (product) {
    sum.real *= value;
    sum.integer *= static_cast<uint64_t>(whole);
  } else if (largest || smallest) {
    bool take = largest ? value > sum.real : value < sum.real;
    sum.real = take ? value : sum.real;
    bool takeWhole = largest ? whole > static_cast<int64_t>(sum.integer) : whole < static_cast<int64_t>(sum.integer);
    sum.integer = takeWhole ? static_cast<uint64_t>(whole) : sum.integer;
  } else {
    sum.real += value;
    sum.integer += static_cast<uint64_t>(whole);
  }
}

Folded foldReduce(const Node &node, const Inputs &inputs) {
  const HostTensor &x = *inputs[0];
  auto axes = axesOf(node, inputs, 1, static_cast<int64_t>(x.dims.size()));
  if (!axes || x.count() == 0 || x.count() > hostElementLimit)
    return std::nullopt;
  bool noop = axes->empty() && intAttribute(node, "noop_with_empty_axes", 0) != 0;
  bool keep = intAttribute(node, "keepdims", 1) != 0;
  std::vector<bool> reduced(x.dims.size(), axes->empty() && !noop);
  for (int64_t axis : *axes)
    reduced[static_cast<size_t>(axis)] = true;
  std::vector<int64_t> kept, shape;
  for (size_t d = 0; d < x.dims.size(); ++d) {
    kept.push_back(reduced[d] ? 1 : x.dims[d]);
    if (!reduced[d] || keep)
      shape.push_back(kept.back());
  }
  std::vector<int64_t> own = stridesOf(x.dims), target = stridesOf(kept);
  std::vector<Accumulator> sums(elementCount(kept).value_or(0));
  for (uint64_t i = 0; i < x.count(); ++i) {
    int64_t flat = 0;
    for (size_t d = 0; d < own.size(); ++d)
      flat += reduced[d] ? 0 : static_cast<int64_t>(i) / own[d] % x.dims[d] * target[d];
    accumulate(sums[static_cast<size_t>(flat)], node.opType, x, i);
  }
  HostTensor result;
  result.dtype = x.dtype;
  result.dims = shape;
  double each = static_cast<double>(x.count()) / static_cast<double>(sums.size());
  bool mean = node.opType == "ReduceMean";
  for (const Accumulator &sum : sums)
    if (x.holdsReals())
      result.push(mean ? sum.real / each : sum.real);
    else
      result.push(static_cast<int64_t>(sum.integer) / (mean ? static_cast<int64_t>(each) : 1));
  return one(std::move(result));
}

Folded foldCumSum(const Node &node, const Inputs &inputs) {
  const HostTensor &x = *inputs[0];
  if (inputs.size() < 2 || !inputs[1] || inputs[1]->count() != 1 || x.count() > hostElementLimit || x.count() == 0)
    return std::nullopt;
  auto axis = normalAxis(inputs[1]->integer(0), static_cast<int64_t>(x.dims.size()));
  if (!axis)
    return std::nullopt;
  bool exclusive = intAttribute(node, "exclusive", 0) != 0, reverse = intAttribute(node, "reverse", 0) != 0;
  uint64_t size = static_cast<uint64_t>(x.dims[static_cast<size_t>(*axis)]),
           inner = static_cast<uint64_t>(stridesOf(x.dims)[static_cast<size_t>(*axis)]);
  std::vector<double> reals(x.holdsReals() ? x.count() : 0);
  std::vector<uint64_t> ints(x.holdsReals() ? 0 : x.count());
  for (uint64_t line = 0; line < x.count() / size; ++line) {
    uint64_t base = line / inner * inner * size + line % inner, whole = 0;
    double real = 0;
    for (uint64_t k = 0; k < size; ++k) {
      uint64_t i = base + (reverse ? size - 1 - k : k) * inner;
      uint64_t wholeBefore = whole;
      double realBefore = real;
      whole += static_cast<uint64_t>(x.holdsReals() ? 0 : x.integer(i));
      real += x.holdsReals() ? x.real(i) : 0;
      if (x.holdsReals())
        reals[i] = exclusive ? realBefore : real;
      else
        ints[i] = exclusive ? wholeBefore : whole;
    }
  }
  HostTensor result;
  result.dtype = x.dtype;
  result.dims = x.dims;
  for (uint64_t i = 0; i < x.count(); ++i)
    x.holdsReals() ? result.push(reals[i]) : result.push(static_cast<int64_t>(ints[i]));
  return one(std::move(result));
}

/// Batched product of small constants (rotary position tables); larger ones are left to the graph.
Folded foldMatMul(const HostTensor &a, const HostTensor &b) {
  if (!a.holdsReals() || a.dtype != b.dtype || a.dims.size() < 2 || b.dims.size() < 2)
    return std::nullopt;
  std::span<const int64_t> aDims(a.dims), bDims(b.dims);
  int64_t m = a.dims[a.dims.size() - 2], k = a.dims.back(), n = b.dims.back();
  auto batch = broadcastShapes(aDims.first(a.dims.size() - 2), bDims.first(b.dims.size() - 2));
  if (!batch || b.dims[b.dims.size() - 2] != k)
    return std::nullopt;
  std::vector<int64_t> dims = *batch;
  dims.push_back(m);
  dims.push_back(n);
  std::optional<uint64_t> count = elementCount(dims);
  if (!count || *count > (uint64_t(1) << 24) || *count * static_cast<uint64_t>(k) > (uint64_t(1) << 28))
    return std::nullopt;
  auto batchOffset = [&](const HostTensor &x, uint64_t flat) {
    int64_t offset = 0, stride = 1, rest = static_cast<int64_t>(flat);
    for (size_t d = 0; d < batch->size(); ++d) {
      size_t from = batch->size() - 1 - d;
      int64_t at = rest % (*batch)[from];
      rest /= (*batch)[from];
      if (d + 2 < x.dims.size()) {
        int64_t size = x.dims[x.dims.size() - 3 - d];
        offset += (size == 1 ? 0 : at) * stride;
        stride *= size;
      }
    }
    return offset;
  };
  HostTensor result;
  result.dtype = a.dtype;
  result.dims = dims;
  for (uint64_t i = 0; i < *count; ++i) {
    uint64_t matrix = i / static_cast<uint64_t>(m * n);
    int64_t row = static_cast<int64_t>(i) / n % m, column = static_cast<int64_t>(i) % n;
    int64_t aBase = batchOffset(a, matrix) * m * k + row * k, bBase = batchOffset(b, matrix) * k * n + column;
    double sum = 0;
    for (int64_t j = 0; j < k; ++j)
      sum += a.real(static_cast<uint64_t>(aBase + j)) * b.real(static_cast<uint64_t>(bBase + j * n));
    result.push(sum);
  }
  return one(std::move(result));
}
} // namespace

std::optional<std::vector<HostTensor>> foldReduction(const Node &node, const Inputs &inputs) {
  if (inputs.empty() || !inputs[0])
    return std::nullopt;
  const std::string &op = node.opType;
  if (op == "ReduceSum" || op == "ReduceMean" || op == "ReduceMax" || op == "ReduceMin" || op == "ReduceProd")
    return foldReduce(node, inputs);
  if (op == "CumSum")
    return foldCumSum(node, inputs);
  if (op == "MatMul" && inputs.size() == 2 && inputs[1])
    return foldMatMul(*inputs[0], *inputs[1]);
  return std::nullopt;
}

} // namespace plimsoll::onnx
