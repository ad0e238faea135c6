// Reference max and average pools and their adjoints, one plane (n, c) after the other. avg_pool's divisor is the
// number of taps inside the input, or with count_include_pad inside the padded input; taps beyond both (ceil_mode)
// never count.
#include "runtime/Kernels/Geometry.h"
#include "runtime/Kernels/ReferenceCalls.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plimsoll::runtime {

/// Calls `visit(offset)` for every tap of window `p` that lies inside the input plane, in row-major order.
template <typename Visit>
static void visitTaps(const WindowGeometry &win, const std::array<int64_t, 3> &p, Visit visit) {
  for (int64_t k0 = 0; k0 < win.kernel[0]; ++k0)
    for (int64_t k1 = 0; k1 < win.kernel[1]; ++k1)
      for (int64_t k2 = 0; k2 < win.kernel[2]; ++k2) {
        const int64_t i0 = win.coordinate(0, p[0], k0), i1 = win.coordinate(1, p[1], k1);
        const int64_t i2 = win.coordinate(2, p[2], k2);
        if (win.inside(0, i0) && win.inside(1, i1) && win.inside(2, i2))
          visit((i0 * win.input[1] + i1) * win.input[2] + i2);
      }
}

/// Calls `visit(position, window)` for every window of a plane in row-major order.
template <typename Visit> static void visitWindows(const WindowGeometry &win, Visit visit) {
  int64_t position = 0;
  for (int64_t p0 = 0; p0 < win.output[0]; ++p0)
    for (int64_t p1 = 0; p1 < win.output[1]; ++p1)
      for (int64_t p2 = 0; p2 < win.output[2]; ++p2)
        visit(position++, std::array<int64_t, 3>{p0, p1, p2});
}

/// The divisor of window `p` of an average pool.
static int64_t windowDivisor(const WindowGeometry &win, const std::array<int64_t, 3> &p, bool countPad) {
  int64_t divisor = 1;
  for (int d = 0; d < 3; ++d) {
    int64_t taps = 0;
    for (int64_t k = 0; k < win.kernel[d]; ++k) {
      const int64_t i = win.coordinate(d, p[d], k);
      taps += countPad ? i < win.input[d] + win.padEnd[d] : win.inside(d, i);
    }
    divisor *= taps;
  }
  return std::max<int64_t>(divisor, 1);
}

/// First maximum wins; a NaN beats everything and the first NaN wins. A window wholly in the padding gives -inf, index
/// -1.
template <typename T> static void maxPool(const PoolGeometry &pool, const T *x, T *y, int32_t *indices) {
  const WindowGeometry &win = pool.window;
  for (int64_t plane = 0; plane < pool.planes; ++plane)
    visitWindows(win, [&](int64_t position, const std::array<int64_t, 3> &p) {
      T best = -std::numeric_limits<T>::infinity();
      int64_t chosen = -1;
      visitTaps(win, p, [&](int64_t offset) {
        const T value = x[plane * win.inputPlane() + offset];
        if (chosen < 0 || value > best || (std::isnan(value) && !std::isnan(best))) {
          best = value;
          chosen = offset;
        }
      });
      y[plane * win.outputPlane() + position] = best;
      indices[plane * win.outputPlane() + position] = static_cast<int32_t>(chosen);
    });
}

template <typename T> static void avgPool(const PoolGeometry &pool, bool countPad, const T *x, T *y) {
  const WindowGeometry &win = pool.window;
  for (int64_t plane = 0; plane < pool.planes; ++plane)
    visitWindows(win, [&](int64_t position, const std::array<int64_t, 3> &p) {
      double sum = 0.0;
      visitTaps(win, p, [&](int64_t offset) { sum += x[plane * win.inputPlane() + offset]; });
      y[plane * win.outputPlane() + position] =
          static_cast<T>(sum / static_cast<double>(windowDivisor(win, p, countPad)));
    });
}

template <typename T> static void avgPoolGrad(const PoolGeometry &pool, bool countPad, const T *dy, T *dx) {
  const WindowGeometry &win = pool.window;
  std::vector<double> sums(static_cast<size_t>(win.inputPlane()));
  for (int64_t plane = 0; plane < pool.planes; ++plane) {
    std::fill(sums.begin(), sums.end(), 0.0);
    visitWindows(win, [&](int64_t position, const std::array<int64_t, 3> &p) {
      const double share =
          dy[plane * win.outputPlane() + position] / static_cast<double>(windowDivisor(win, p, countPad));
      visitTaps(win, p, [&](int64_t offset) { sums[static_cast<size_t>(offset)] += share; });
    });
    for (int64_t i = 0; i < win.inputPlane(); ++i)
      dx[plane * win.inputPlane() + i] = static_cast<T>(sums[static_cast<size_t>(i)]);
  }
}

namespace {
/// max_pool_grad needs no window: planes of dx, positions of dy, and who won each.
struct MaxPoolGrad {
  std::string op;
  int64_t planes, inputPlane, outputPlane;
  FaultCell *faults;
};
} // namespace

/// dx = 0; dx[index] += dy in the order of the windows. Index -1 (window in the padding) has no receiver.
template <typename T> static void maxPoolGrad(const MaxPoolGrad &call, const T *dy, const int32_t *indices, T *dx) {
  std::vector<double> sums(static_cast<size_t>(call.inputPlane));
  for (int64_t plane = 0; plane < call.planes; ++plane) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t i = 0; i < call.outputPlane; ++i) {
      const int64_t position = plane * call.outputPlane + i, index = indices[position];
      if (index >= 0 && index < call.inputPlane)
        sums[static_cast<size_t>(index)] += dy[position];
      else if (index != -1 && call.faults)
        call.faults->report(call.op, position, index, call.inputPlane);
    }
    for (int64_t i = 0; i < call.inputPlane; ++i)
      dx[plane * call.inputPlane + i] = static_cast<T>(sums[static_cast<size_t>(i)]);
  }
}

template <typename T> static ReferenceCall::Body poolBody(const CallSpec &spec, FaultCell *faults) {
  const std::vector<TensorSpec> &o = spec.operands;
  const bool countPad = intAttribute(spec, "count_include_pad", 0) != 0;
  if (spec.op == "max_pool")
    return [pool = poolGeometry(spec, o[0], o[1])](Operands a) {
      maxPool(pool, static_cast<const T *>(a[0]), static_cast<T *>(a[1]), static_cast<int32_t *>(a[2]));
    };
  if (spec.op == "avg_pool")
    return [pool = poolGeometry(spec, o[0], o[1]), countPad](Operands a) {
      avgPool(pool, countPad, static_cast<const T *>(a[0]), static_cast<T *>(a[1]));
    };
  if (spec.op == "avg_pool_grad")
    return [pool = poolGeometry(spec, o[1], o[0]), countPad](Operands a) {
      avgPoolGrad(pool, countPad, static_cast<const T *>(a[0]), static_cast<T *>(a[1]));
    };
  const int64_t planes = o[2].shape[0] * o[2].shape[1];
  const MaxPoolGrad call{spec.op, planes, elementCount(o[2].shape) / planes, elementCount(o[0].shape) / planes, faults};
  return [call](Operands a) {
    maxPoolGrad(call, static_cast<const T *>(a[0]), static_cast<const int32_t *>(a[1]), static_cast<T *>(a[2]));
  };
}

ReferenceCall::Body referencePool(const CallSpec &spec, FaultCell *faults) {
  if (spec.op.find("_pool") == std::string::npos)
    return {};
  return makeForFloat(spec.operands[0].dtype,
                      [&](auto zero) -> ReferenceCall::Body { return poolBody<decltype(zero)>(spec, faults); });
}

} // namespace plimsoll::runtime
