// Fast pools: planes in parallel, and per window the range of taps inside the input found once instead of a test per
// tap. Sums are made in the order of the reference, in the operand's own type.
#include "runtime/CPU/CpuCalls.h"
#include "runtime/CPU/Threads.h"
#include "runtime/Kernels/Geometry.h"

#include <cmath>
#include <limits>

namespace plimsoll::runtime {

namespace {

/// The taps of one window position that lie inside the input along one dimension: input coordinates first,
/// first + dilation, ... below last; and the divisor's share of this dimension.
struct TapRange {
  int64_t first, last, taps;
};

struct Pool {
  PoolGeometry geometry;
  bool countPad = false;
  unsigned threads = 1;
  std::array<std::vector<TapRange>, 3> ranges; ///< per dimension and window position, made at load

  const WindowGeometry &window() const { return geometry.window; }
  int64_t step(int d) const { return geometry.window.dilation[d]; }

  /// Calls `visit(position, r0, r1, r2)` for every window of a plane.
  template <typename Visit> void windows(const Visit &visit) const {
    int64_t position = 0;
    for (const TapRange &r0 : ranges[0])
      for (const TapRange &r1 : ranges[1])
        for (const TapRange &r2 : ranges[2])
          visit(position++, r0, r1, r2);
  }

  /// Calls `visit(offset)` for every tap inside the plane, in row-major order.
  template <typename Visit>
  void taps(const TapRange &r0, const TapRange &r1, const TapRange &r2, const Visit &visit) const {
    const WindowGeometry &win = window();
    for (int64_t i0 = r0.first; i0 < r0.last; i0 += step(0))
      for (int64_t i1 = r1.first; i1 < r1.last; i1 += step(1)) {
        const int64_t row = (i0 * win.input[1] + i1) * win.input[2];
        for (int64_t i2 = r2.first; i2 < r2.last; i2 += step(2))
          visit(row + i2);
      }
  }

  /// Calls `visit(plane)` for all planes in parallel.
  template <typename Visit> void planes(const Visit &visit) const {
    const int64_t grain = std::max<int64_t>(1, 4096 / (window().outputPlane() * window().kernelTaps()));
    parallelRange(threads, geometry.planes, grain, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane)
        visit(plane);
    });
  }
};

} // namespace

static TapRange tapRange(const WindowGeometry &win, int d, int64_t position, bool countPad) {
  TapRange range{win.input[d], 0, 0};
  for (int64_t tap = 0; tap < win.kernel[d]; ++tap) {
    const int64_t at = win.coordinate(d, position, tap);
    range.taps += countPad ? at < win.input[d] + win.padEnd[d] : win.inside(d, at);
    if (!win.inside(d, at))
      continue;
    range.first = std::min(range.first, at);
    range.last = std::max(range.last, at + 1);
  }
  return range;
}

static Pool describePool(const CallSpec &spec, const TensorSpec &x, const TensorSpec &y, unsigned threads) {
  Pool pool{poolGeometry(spec, x, y), intAttribute(spec, "count_include_pad", 0) != 0, threads, {}};
  for (int d = 0; d < 3; ++d)
    for (int64_t position = 0; position < pool.window().output[d]; ++position)
      pool.ranges[d].push_back(tapRange(pool.window(), d, position, pool.countPad));
  return pool;
}

template <typename T> static void maxPlane(const Pool &pool, const T *x, T *y, int32_t *indices) {
  pool.windows([&](int64_t position, const TapRange &r0, const TapRange &r1, const TapRange &r2) {
    T best = -std::numeric_limits<T>::infinity();
    int64_t chosen = -1;
    pool.taps(r0, r1, r2, [&](int64_t offset) {
      const T value = x[offset];
      if (chosen < 0 || value > best || (std::isnan(value) && !std::isnan(best))) {
        best = value;
        chosen = offset;
      }
    });
    y[position] = best;
    indices[position] = static_cast<int32_t>(chosen);
  });
}

static int64_t divisor(const TapRange &r0, const TapRange &r1, const TapRange &r2) {
  return std::max<int64_t>(1, r0.taps * r1.taps * r2.taps);
}

template <typename T> static void avgPlane(const Pool &pool, const T *x, T *y) {
  pool.windows([&](int64_t position, const TapRange &r0, const TapRange &r1, const TapRange &r2) {
    T sum = 0;
    pool.taps(r0, r1, r2, [&](int64_t offset) { sum += x[offset]; });
    y[position] = sum / static_cast<T>(divisor(r0, r1, r2));
  });
}

template <typename T> static void avgGradPlane(const Pool &pool, const T *dy, T *dx) {
  std::fill(dx, dx + pool.window().inputPlane(), T{});
  pool.windows([&](int64_t position, const TapRange &r0, const TapRange &r1, const TapRange &r2) {
    const T share = dy[position] / static_cast<T>(divisor(r0, r1, r2));
    pool.taps(r0, r1, r2, [&](int64_t offset) { dx[offset] += share; });
  });
}

namespace {
struct MaxGrad {
  std::string op;
  int64_t planes, inputPlane, outputPlane;
  FaultCell *faults;
  unsigned threads;
};
} // namespace

template <typename T>
static void maxGradPlane(const MaxGrad &call, int64_t plane, const T *dy, const int32_t *indices, T *dx) {
  std::fill(dx, dx + call.inputPlane, T{});
  for (int64_t i = 0; i < call.outputPlane; ++i) {
    const int64_t index = indices[i];
    if (index >= 0 && index < call.inputPlane)
      dx[index] += dy[i];
    else if (index != -1 && call.faults)
      call.faults->report(call.op, plane * call.outputPlane + i, index, call.inputPlane);
  }
}

template <typename T> static CallPointer maxGradCall(const CallSpec &spec, const CallContext &context) {
  const TensorSpec &dy = spec.operands[0], &dx = spec.operands[2];
  const int64_t planes = dx.shape[0] * dx.shape[1];
  const MaxGrad call{spec.op,        planes,         elementCount(dx.shape) / planes, elementCount(dy.shape) / planes,
                     context.faults, context.threads};
  return makeBodyCall([call](Operands o) {
    const int64_t grain = std::max<int64_t>(1, 8192 / (call.inputPlane + call.outputPlane));
    parallelRange(call.threads, call.planes, grain, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p)
        maxGradPlane(call, p, static_cast<const T *>(o[0]) + p * call.outputPlane,
                     static_cast<const int32_t *>(o[1]) + p * call.outputPlane,
                     static_cast<T *>(o[2]) + p * call.inputPlane);
    });
  });
}

template <typename T> static CallPointer poolCall(const CallSpec &spec, const CallContext &context) {
  const std::vector<TensorSpec> &o = spec.operands;
  if (spec.op == "max_pool_grad")
    return maxGradCall<T>(spec, context);
  const bool grad = spec.op == "avg_pool_grad";
  Pool pool = describePool(spec, o[grad ? 1 : 0], o[grad ? 0 : 1], context.threads);
  const int64_t first = grad ? pool.window().outputPlane() : pool.window().inputPlane();
  const int64_t second = grad ? pool.window().inputPlane() : pool.window().outputPlane();
  if (spec.op == "max_pool")
    return makeBodyCall([pool, first, second](Operands a) {
      pool.planes([&](int64_t p) {
        maxPlane(pool, static_cast<const T *>(a[0]) + p * first, static_cast<T *>(a[1]) + p * second,
                 static_cast<int32_t *>(a[2]) + p * second);
      });
    });
  return makeBodyCall([pool, first, second, plane = grad ? avgGradPlane<T> : avgPlane<T>](Operands a) {
    pool.planes(
        [&](int64_t p) { plane(pool, static_cast<const T *>(a[0]) + p * first, static_cast<T *>(a[1]) + p * second); });
  });
}

CallPointer makePoolCall(const CallSpec &spec, const CallContext &context) {
  if (spec.op.find("_pool") == std::string::npos)
    return nullptr;
  return spec.operands[0].dtype == artifact::DType::F64 ? poolCall<double>(spec, context)
                                                        : poolCall<float>(spec, context);
}

} // namespace plimsoll::runtime
