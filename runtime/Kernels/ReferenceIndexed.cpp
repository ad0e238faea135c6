// Reference gather, scatter_add and their per-element forms. An index outside its range is reported and skipped: the
// gathered element is 0, the scattered one is dropped.
#include "runtime/Kernels/Geometry.h"
#include "runtime/Kernels/ReferenceCalls.h"

#include <cstring>

namespace plimsoll::runtime {

namespace {

/// Everything an indexed loop needs: the split of the indexed tensor, the indices, and where faults go.
struct Indexed {
  std::string op;
  TensorSpec indexed; ///< data of a gather, out of a scatter
  TensorSpec indices;
  int64_t axis = 0;
  FaultCell *faults = nullptr;

  /// The index at `position` wrapped into the axis, or -1 after reporting.
  int64_t read(const void *base, int64_t position) const {
    const int64_t index = readIndex(base, indices.dtype, position);
    const int64_t wrapped = wrapIndex(index, indexed.shape[static_cast<size_t>(axis)]);
    if (wrapped < 0 && faults)
      faults->report(op, position, index, indexed.shape[static_cast<size_t>(axis)]);
    return wrapped;
  }
};

} // namespace

/// out[outer, i, inner] = data[outer, index[i], inner].
static void gather(const Indexed &call, const void *data, const void *indices, void *out) {
  const AxisSplit split = splitAt(call.indexed.shape, call.axis);
  const auto rowBytes = static_cast<size_t>(split.inner * dtypeBytes(call.indexed.dtype));
  const int64_t count = elementCount(call.indices.shape);
  auto *target = static_cast<char *>(out);
  for (int64_t outer = 0; outer < split.outer; ++outer)
    for (int64_t i = 0; i < count; ++i, target += rowBytes) {
      const int64_t index = call.read(indices, i);
      const auto *source = static_cast<const char *>(data) + (outer * split.extent + index) * int64_t(rowBytes);
      if (index < 0)
        std::memset(target, 0, rowBytes);
      else
        std::memcpy(target, source, rowBytes);
    }
}

/// out = 0; out[outer, index[i], inner] += updates[outer, i, inner], i rising.
template <typename T> static void scatterAdd(const Indexed &call, const void *indices, const T *updates, T *out) {
  const AxisSplit split = splitAt(call.indexed.shape, call.axis);
  const int64_t count = elementCount(call.indices.shape);
  std::vector<double> sums(static_cast<size_t>(elementCount(call.indexed.shape)), 0.0);
  for (int64_t outer = 0; outer < split.outer; ++outer)
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = call.read(indices, i);
      for (int64_t inner = 0; index >= 0 && inner < split.inner; ++inner)
        sums[static_cast<size_t>((outer * split.extent + index) * split.inner + inner)] +=
            updates[(outer * count + i) * split.inner + inner];
    }
  for (size_t i = 0; i < sums.size(); ++i)
    out[i] = static_cast<T>(sums[i]);
}

/// Walks the indices; `visit(position, offset)` gets the element of the indexed tensor each names (offset -1: fault).
template <typename Visit> static void visitElements(const Indexed &call, const void *indices, Visit visit) {
  int64_t index[MaxRank] = {};
  int64_t position = 0;
  do {
    const int64_t along = call.read(indices, position);
    int64_t target[MaxRank];
    std::memcpy(target, index, sizeof target);
    target[call.axis] = along;
    visit(position++, along < 0 ? -1 : elementOffset(call.indexed, target));
  } while (nextIndex(call.indices.shape, index));
}

static void gatherElements(const Indexed &call, const void *data, const void *indices, void *out) {
  const auto bytes = static_cast<size_t>(dtypeBytes(call.indexed.dtype));
  visitElements(call, indices, [&](int64_t position, int64_t offset) {
    auto *target = static_cast<char *>(out) + position * int64_t(bytes);
    if (offset < 0)
      std::memset(target, 0, bytes);
    else
      std::memcpy(target, static_cast<const char *>(data) + offset * int64_t(bytes), bytes);
  });
}

template <typename T>
static void scatterAddElements(const Indexed &call, const void *indices, const T *updates, T *out) {
  std::vector<double> sums(static_cast<size_t>(elementCount(call.indexed.shape)), 0.0);
  visitElements(call, indices, [&](int64_t position, int64_t offset) {
    if (offset >= 0)
      sums[static_cast<size_t>(offset)] += updates[position];
  });
  for (size_t i = 0; i < sums.size(); ++i)
    out[i] = static_cast<T>(sums[i]);
}

static Indexed indexedCall(const CallSpec &spec, size_t indexed, size_t indices, FaultCell *faults) {
  Indexed call{spec.op, spec.operands[indexed], spec.operands[indices], 0, faults};
  call.indexed.strides = contiguousStrides(call.indexed.shape);
  call.axis = axisAttribute(spec, call.indexed.shape.size());
  return call;
}

ReferenceCall::Body referenceIndexed(const CallSpec &spec, FaultCell *faults) {
  if (spec.op == "gather" || spec.op == "gather_elements") {
    const auto loops = spec.op == "gather" ? gather : gatherElements;
    return [call = indexedCall(spec, 0, 1, faults), loops](Operands o) { loops(call, o[0], o[1], o[2]); };
  }
  if (spec.op != "scatter_add" && spec.op != "scatter_add_elements")
    return {};
  return makeForFloat(spec.operands[2].dtype, [&](auto zero) -> ReferenceCall::Body {
    using T = decltype(zero);
    const auto loops = spec.op == "scatter_add" ? scatterAdd<T> : scatterAddElements<T>;
    return [call = indexedCall(spec, 2, 0, faults), loops](Operands o) {
      loops(call, o[0], static_cast<const T *>(o[1]), static_cast<T *>(o[2]));
    };
  });
}

} // namespace plimsoll::runtime
