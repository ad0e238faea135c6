// Fast cumsum and random_uniform: the reference loops, split over lines and over blocks of the counter. Same bits as
// the reference.
#include "runtime/CPU/CpuCalls.h"
#include "runtime/CPU/Threads.h"
#include "runtime/Kernels/Geometry.h"
#include "runtime/Kernels/Philox.h"

namespace plimsoll::runtime {

using artifact::DType;

namespace {
struct Scan {
  AxisSplit split;
  bool exclusive = false, reverse = false;
  unsigned threads = 1;
};
} // namespace

template <typename T, typename Sum> static void cumsumLine(const Scan &scan, const T *x, T *y) {
  Sum sum = 0;
  for (int64_t step = 0; step < scan.split.extent; ++step) {
    const int64_t at = (scan.reverse ? scan.split.extent - 1 - step : step) * scan.split.inner;
    const Sum next = sum + static_cast<Sum>(x[at]);
    y[at] = static_cast<T>(scan.exclusive ? sum : next);
    sum = next;
  }
}

template <typename T, typename Sum> static CallPointer cumsumCall(const Scan &scan) {
  return makeBodyCall([scan](Operands o) {
    const int64_t lines = scan.split.outer * scan.split.inner;
    const int64_t grain = std::max<int64_t>(1, 4096 / scan.split.extent);
    parallelRange(scan.threads, lines, grain, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t offset = line / scan.split.inner * scan.split.extent * scan.split.inner + line % scan.split.inner;
        cumsumLine<T, Sum>(scan, static_cast<const T *>(o[0]) + offset, static_cast<T *>(o[1]) + offset);
      }
    });
  });
}

static CallPointer makeCumsum(const CallSpec &spec, const CallContext &context) {
  const TensorSpec &x = spec.operands[0];
  const Scan scan{splitAt(x.shape, axisAttribute(spec, x.shape.size())), intAttribute(spec, "exclusive", 0) != 0,
                  intAttribute(spec, "reverse", 0) != 0, context.threads};
  switch (x.dtype) {
  case DType::F64:
    return cumsumCall<double, double>(scan);
  case DType::I64:
    return cumsumCall<int64_t, uint64_t>(scan);
  case DType::I32:
    return cumsumCall<int32_t, uint32_t>(scan);
  default:
    return cumsumCall<float, double>(scan);
  }
}

static void randomBlocks(const uint64_t *seed, uint32_t opId, float *out, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i += 4) {
    const auto words = philox4x32(seed[0], randomCounter(static_cast<uint64_t>(i / 4), opId, seed[1]));
    for (int64_t lane = 0; lane < std::min<int64_t>(4, end - i); ++lane)
      out[i + lane] = uniformFromWord(words[static_cast<size_t>(lane)]);
  }
}

CallPointer makeScanCall(const CallSpec &spec, const CallContext &context) {
  if (spec.op == "cumsum")
    return makeCumsum(spec, context);
  if (spec.op != "random_uniform")
    return nullptr;
  const auto opId = static_cast<uint32_t>(intAttribute(spec, "op_id", 0));
  return makeBodyCall([opId, count = elementCount(spec.operands[1].shape), threads = context.threads](Operands o) {
    parallelRange(threads, count, 4096, [&](int64_t begin, int64_t end) {
      randomBlocks(static_cast<const uint64_t *>(o[0]), opId, static_cast<float *>(o[1]), begin, end);
    });
  });
}

} // namespace plimsoll::runtime
