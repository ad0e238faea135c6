// Reference dot: c[batch..., m, n] = sum over k of a[batch..., m, k] * b[batch..., k, n], plus c when accumulating.
#include "runtime/Kernels/ReferenceCalls.h"

namespace plimsoll::runtime {

namespace {
struct Dot {
  TensorSpec a, b, c;
  bool accumulate = false;
};
} // namespace

template <typename T> static void dot(const Dot &call, const T *a, const T *b, T *c) {
  const size_t rank = call.c.shape.size(), m = rank - 2, n = rank - 1;
  const int64_t terms = call.a.shape[n];
  int64_t index[MaxRank] = {};
  do { // one element of c
    const int64_t batchA = elementOffset(call.a, index) - index[n] * call.a.strides[n];
    const int64_t batchB = elementOffset(call.b, index) - index[m] * call.b.strides[m];
    T &target = c[elementOffset(call.c, index)];
    double sum = call.accumulate ? static_cast<double>(target) : 0.0;
    for (int64_t k = 0; k < terms; ++k)
      sum += static_cast<double>(a[batchA + k * call.a.strides[n]]) * b[batchB + k * call.b.strides[m]];
    target = static_cast<T>(sum);
  } while (nextIndex(call.c.shape, index));
}

ReferenceCall::Body referenceDot(const CallSpec &spec) {
  if (spec.op != "dot")
    return {};
  const Dot call{spec.operands[0], spec.operands[1], spec.operands[2], intAttribute(spec, "accumulate", 0) != 0};
  return makeForFloat(call.c.dtype, [&](auto zero) -> ReferenceCall::Body {
    using T = decltype(zero);
    return [call](Operands o) {
      dot(call, static_cast<const T *>(o[0]), static_cast<const T *>(o[1]), static_cast<T *>(o[2]));
    };
  });
}

} // namespace plimsoll::runtime
