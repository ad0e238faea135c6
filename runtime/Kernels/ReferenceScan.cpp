// Reference cumsum and random_uniform.
#include "runtime/Kernels/Geometry.h"
#include "runtime/Kernels/Philox.h"
#include "runtime/Kernels/ReferenceCalls.h"

namespace plimsoll::runtime {

using artifact::DType;

/// y[outer, i, inner] = sum of x[outer, j, inner] over j <= i (exclusive: j < i), from the end when `reverse`.
template <typename T, typename Sum>
static ReferenceCall::Body cumsumOf(const AxisSplit &split, bool exclusive, bool reverse) {
  return [=](Operands operands) {
    const T *x = static_cast<const T *>(operands[0]);
    T *y = static_cast<T *>(operands[1]);
    for (int64_t outer = 0; outer < split.outer; ++outer)
      for (int64_t inner = 0; inner < split.inner; ++inner) {
        Sum sum = 0;
        for (int64_t step = 0; step < split.extent; ++step) {
          const int64_t i = reverse ? split.extent - 1 - step : step;
          const int64_t at = (outer * split.extent + i) * split.inner + inner;
          const T element = x[at];
          if (exclusive)
            y[at] = static_cast<T>(sum);
          sum += element;
          if (!exclusive)
            y[at] = static_cast<T>(sum);
        }
      }
  };
}

static ReferenceCall::Body referenceCumsum(const CallSpec &spec) {
  const TensorSpec &x = spec.operands[0];
  const AxisSplit split = splitAt(x.shape, axisAttribute(spec, x.shape.size()));
  const bool exclusive = intAttribute(spec, "exclusive", 0) != 0, reverse = intAttribute(spec, "reverse", 0) != 0;
  switch (x.dtype) {
  case DType::F64:
    return cumsumOf<double, double>(split, exclusive, reverse);
  case DType::I64:
    return cumsumOf<int64_t, uint64_t>(split, exclusive, reverse);
  case DType::I32:
    return cumsumOf<int32_t, uint32_t>(split, exclusive, reverse);
  default:
    return cumsumOf<float, double>(split, exclusive, reverse);
  }
}

ReferenceCall::Body referenceScan(const CallSpec &spec) {
  if (spec.op == "cumsum")
    return referenceCumsum(spec);
  if (spec.op != "random_uniform")
    return {};
  const auto opId = static_cast<uint32_t>(intAttribute(spec, "op_id", 0));
  return [opId, count = elementCount(spec.operands[1].shape)](Operands operands) {
    const auto *seed = static_cast<const uint64_t *>(operands[0]);
    auto *out = static_cast<float *>(operands[1]);
    for (int64_t i = 0; i < count; ++i) {
      const auto words = philox4x32(seed[0], randomCounter(static_cast<uint64_t>(i / 4), opId, seed[1]));
      out[i] = uniformFromWord(words[static_cast<size_t>(i % 4)]);
    }
  };
}

} // namespace plimsoll::runtime
