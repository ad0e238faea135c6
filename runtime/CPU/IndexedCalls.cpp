// Fast gather, scatter_add and their per-element forms. A scatter is split over the elements of its result, never over
// its indices: every sum is made by one thread in the order of the indices, so its bits do not depend on the thread
// count.
#include "runtime/CPU/CpuCalls.h"
#include "runtime/CPU/Threads.h"
#include "runtime/Kernels/Geometry.h"

#include <cstring>

namespace plimsoll::runtime {

using artifact::DType;

namespace {

/// The indexed tensor as [outer, extent, inner], `count` indices, and where faults go.
struct Indexed {
  std::string op;
  AxisSplit split;
  int64_t count = 0;
  DType indexType = DType::I64;
  FaultCell *faults = nullptr;
  unsigned threads = 1;

  int64_t raw(const void *indices, int64_t i) const {
    return indexType == DType::I64 ? static_cast<const int64_t *>(indices)[i]
                                   : static_cast<const int32_t *>(indices)[i];
  }
  int64_t read(const void *indices, int64_t i) const { return wrapIndex(raw(indices, i), split.extent); }
  void report(const void *indices, int64_t i) const {
    if (faults)
      faults->report(op, i, raw(indices, i), split.extent);
  }
};

} // namespace

static constexpr int64_t GrainBytes = 16384;

static void gatherRows(const Indexed &call, int64_t rowBytes, const void *indices, const char *data, char *out) {
  const int64_t grain = std::max<int64_t>(1, GrainBytes / rowBytes);
  parallelRange(call.threads, call.split.outer * call.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t outer = row / call.count, i = row % call.count, index = call.read(indices, i);
      char *target = out + row * rowBytes;
      if (index >= 0) {
        std::memcpy(target, data + (outer * call.split.extent + index) * rowBytes, static_cast<size_t>(rowBytes));
        continue;
      }
      std::memset(target, 0, static_cast<size_t>(rowBytes));
      call.report(indices, i);
    }
  });
}

/// Result rows [first, last) of one outer slice: zeroed, then summed in the order of the indices.
template <typename T>
static void scatterRows(const Indexed &call, const void *indices, const T *updates, T *out, int64_t first,
                        int64_t last) {
  const int64_t inner = call.split.inner;
  std::memset(out + first * inner, 0, static_cast<size_t>((last - first) * inner) * sizeof(T));
  for (int64_t i = 0; i < call.count; ++i) {
    const int64_t index = call.read(indices, i);
    if (index < 0 && first == 0)
      call.report(indices, i);
    if (index < first || index >= last)
      continue;
    T *sum = out + index * inner;
    const T *update = updates + i * inner;
    for (int64_t at = 0; at < inner; ++at)
      sum[at] += update[at];
  }
}

template <typename T> static void scatterAdd(const Indexed &call, const void *indices, const T *updates, T *out) {
  const AxisSplit &split = call.split;
  const int64_t perOuter = std::max<int64_t>(1, std::min<int64_t>(split.extent, call.threads / split.outer));
  parallelTasks(call.threads, split.outer * perOuter, [&](int64_t task, int) {
    const int64_t outer = task / perOuter, part = task % perOuter;
    scatterRows(call, indices, updates + outer * call.count * split.inner, out + outer * split.extent * split.inner,
                split.extent * part / perOuter, split.extent * (part + 1) / perOuter);
  });
}

namespace {

/// gather_elements and scatter_add_elements: a line runs along the axis through one position of the other dimensions.
struct Elements {
  Indexed call;
  std::vector<int64_t> lineShape, lineIndexed, lineIndices; ///< the other dimensions: extents and both strides
  int64_t lines = 1, length = 0;                            ///< lines, and indices along one line
  int64_t axisIndexed = 1, axisIndices = 1;                 ///< strides along the axis

  void offsets(int64_t line, int64_t &indexed, int64_t &indices) const {
    indexed = indices = 0;
    for (size_t d = lineShape.size(); d-- > 0;) {
      const int64_t at = line % lineShape[d];
      line /= lineShape[d];
      indexed += at * lineIndexed[d];
      indices += at * lineIndices[d];
    }
  }

  /// visit(position in the indices, offset in the indexed tensor or -1) for all lines, a line in one thread and in
  /// order.
  template <typename Visit> void run(const void *indices, const Visit &visit) const {
    const int64_t grain = std::max<int64_t>(1, 1024 / length);
    parallelRange(call.threads, lines, grain, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        int64_t base, position;
        offsets(line, base, position);
        for (int64_t i = 0; i < length; ++i, position += axisIndices) {
          const int64_t index = call.read(indices, position);
          if (index < 0)
            call.report(indices, position);
          visit(position, index < 0 ? -1 : base + index * axisIndexed);
        }
      }
    });
  }
};

} // namespace

static Indexed indexedCall(const CallSpec &spec, const TensorSpec &indexed, const TensorSpec &indices,
                           const CallContext &context) {
  const AxisSplit split = splitAt(indexed.shape, axisAttribute(spec, indexed.shape.size()));
  return {spec.op, split, elementCount(indices.shape), indices.dtype, context.faults, context.threads};
}

static Elements elementsCall(const CallSpec &spec, const TensorSpec &indexed, const TensorSpec &indices,
                             const CallContext &context) {
  Elements elements;
  elements.call = indexedCall(spec, indexed, indices, context);
  const auto axis = static_cast<size_t>(axisAttribute(spec, indexed.shape.size()));
  const std::vector<int64_t> indexedStrides = contiguousStrides(indexed.shape);
  const std::vector<int64_t> indicesStrides = contiguousStrides(indices.shape);
  elements.length = indices.shape[axis];
  elements.axisIndexed = indexedStrides[axis];
  elements.axisIndices = indicesStrides[axis];
  for (size_t d = 0; d < indices.shape.size(); ++d) {
    if (d == axis)
      continue;
    elements.lineShape.push_back(indices.shape[d]);
    elements.lineIndexed.push_back(indexedStrides[d]);
    elements.lineIndices.push_back(indicesStrides[d]);
    elements.lines *= indices.shape[d];
  }
  return elements;
}

template <typename T> static CallPointer gatherElements(const Elements &elements) {
  return makeBodyCall([elements](Operands o) {
    const T *data = static_cast<const T *>(o[0]);
    T *out = static_cast<T *>(o[2]);
    elements.run(o[1], [&](int64_t position, int64_t at) { out[position] = at < 0 ? T{} : data[at]; });
  });
}

template <typename T> static CallPointer scatterCall(const CallSpec &spec, const CallContext &context) {
  const TensorSpec &indices = spec.operands[0], &out = spec.operands[2];
  if (spec.op == "scatter_add")
    return makeBodyCall([call = indexedCall(spec, out, indices, context)](Operands o) {
      scatterAdd(call, o[0], static_cast<const T *>(o[1]), static_cast<T *>(o[2]));
    });
  const int64_t bytes = elementCount(out.shape) * int64_t(sizeof(T));
  return makeBodyCall([elements = elementsCall(spec, out, indices, context), bytes](Operands o) {
    const T *updates = static_cast<const T *>(o[1]);
    T *sums = static_cast<T *>(o[2]);
    parallelRange(elements.call.threads, bytes, GrainBytes, [&](int64_t begin, int64_t end) {
      std::memset(static_cast<char *>(o[2]) + begin, 0, static_cast<size_t>(end - begin));
    });
    elements.run(o[0], [&](int64_t position, int64_t at) {
      if (at >= 0)
        sums[at] += updates[position];
    });
  });
}

static CallPointer gatherCall(const CallSpec &spec, const CallContext &context) {
  const TensorSpec &data = spec.operands[0], &indices = spec.operands[1];
  const int64_t bytes = dtypeBytes(data.dtype);
  if (spec.op == "gather") {
    const Indexed call = indexedCall(spec, data, indices, context);
    return makeBodyCall([call, rowBytes = call.split.inner * bytes](Operands o) {
      gatherRows(call, rowBytes, o[1], static_cast<const char *>(o[0]), static_cast<char *>(o[2]));
    });
  }
  const Elements elements = elementsCall(spec, data, indices, context);
  return bytes == 8   ? gatherElements<uint64_t>(elements)
         : bytes == 4 ? gatherElements<uint32_t>(elements)
         : bytes == 2 ? gatherElements<uint16_t>(elements)
                      : gatherElements<uint8_t>(elements);
}

CallPointer makeIndexedCall(const CallSpec &spec, const CallContext &context) {
  if (spec.op == "gather" || spec.op == "gather_elements")
    return gatherCall(spec, context);
  if (spec.op != "scatter_add" && spec.op != "scatter_add_elements")
    return nullptr;
  return spec.operands[2].dtype == DType::F64 ? scatterCall<double>(spec, context) : scatterCall<float>(spec, context);
}

} // namespace plimsoll::runtime
