// Batched matrix product and pooling.
#include "lib/Reference/Rules.h"

#include "lib/Reference/Windows.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::reference {

template <typename DotLike> static void evaluateDot(DotLike op, Frame &frame) {
  ArrayRef<int64_t> a = frame.in[0]->shape(), c = frame.out[0].shape();
  size_t rank = a.size();
  int64_t m = c[rank - 2], n = c[rank - 1], k = op.getTransA() ? a[rank - 2] : a[rank - 1], batches = 1;
  for (int64_t size : c.drop_back(2))
    batches *= size;
  auto lhs = [&](int64_t batch, int64_t i, int64_t j) {
    return frame.in[0]->floats[batch * m * k + (op.getTransA() ? j * m + i : i * k + j)];
  };
  auto rhs = [&](int64_t batch, int64_t i, int64_t j) {
    return frame.in[1]->floats[batch * k * n + (op.getTransB() ? j * k + i : i * n + j)];
  };
  for (int64_t batch = 0; batch < batches; ++batch)
    for (int64_t row = 0; row < m; ++row)
      for (int64_t column = 0; column < n; ++column) {
        double sum = frame.in.size() > 2 ? frame.in[2]->floats[(batch * m + row) * n + column] : 0;
        for (int64_t t = 0; t < k; ++t)
          sum += lhs(batch, row, t) * rhs(batch, t, column);
        frame.out[0].floats[(batch * m + row) * n + column] = sum;
      }
}

template <typename PoolLike> static Windows poolWindows(PoolLike op, ArrayRef<int64_t> input) {
  return {input.drop_front(2), op.getKernel(), op.getStrides(), op.getPads(), op.getDilations()};
}

// Planes are (N, C) pairs; `visit(plane, output position, output index)` sees every output of every plane.
static void forEachOutput(ArrayRef<int64_t> output, function_ref<void(int64_t, int64_t, ArrayRef<int64_t>)> visit) {
  int64_t position = 0, perPlane = 1;
  for (int64_t size : output.drop_front(2))
    perPlane *= size;
  for (int64_t plane = 0; plane < output[0] * output[1]; ++plane)
    forEachIndex(output.drop_front(2), [&](ArrayRef<int64_t> index) {
      visit(plane, position, index);
      ++position;
    });
}

static void evaluateMaxPool(MaxPoolOp op, Frame &frame) {
  Windows windows = poolWindows(op, frame.in[0]->shape());
  int64_t perPlane = windows.planeSize();
  forEachOutput(frame.out[0].shape(), [&](int64_t plane, int64_t position, ArrayRef<int64_t> index) {
    double best = -std::numeric_limits<double>::infinity();
    int64_t where = -1;
    windows.forEachTap(index, [&](int64_t, int64_t at) {
      double value = frame.in[0]->floats[plane * perPlane + at];
      if (where < 0 || value > best || (std::isnan(value) && !std::isnan(best)))
        best = value, where = at;
    });
    frame.out[0].floats[position] = best;
    frame.out[1].ints[position] = std::max<int64_t>(where, 0);
  });
}

static void evaluateMaxPoolGrad(MaxPoolGradOp op, Frame &frame) {
  int64_t perPlane = poolWindows(op, frame.out[0].shape()).planeSize();
  forEachOutput(frame.in[0]->shape(), [&](int64_t plane, int64_t position, ArrayRef<int64_t>) {
    frame.out[0].floats[plane * perPlane + frame.in[1]->ints[position]] += frame.in[0]->floats[position];
  });
}

// The divisor of one averaging window: taps inside the input, or inside the padded input when pads count.
static int64_t divisor(const Windows &windows, ArrayRef<int64_t> index, bool countPads) {
  int64_t count = 0;
  windows.forEachTap(index, [&](int64_t, int64_t) { ++count; });
  return countPads ? windows.paddedTaps(index) : std::max<int64_t>(count, 1);
}

static void evaluateAvgPool(AvgPoolOp op, Frame &frame) {
  Windows windows = poolWindows(op, frame.in[0]->shape());
  int64_t perPlane = windows.planeSize();
  forEachOutput(frame.out[0].shape(), [&](int64_t plane, int64_t position, ArrayRef<int64_t> index) {
    double sum = 0;
    windows.forEachTap(index, [&](int64_t, int64_t at) { sum += frame.in[0]->floats[plane * perPlane + at]; });
    frame.out[0].floats[position] = sum / static_cast<double>(divisor(windows, index, op.getCountIncludePad()));
  });
}

static void evaluateAvgPoolGrad(AvgPoolGradOp op, Frame &frame) {
  Windows windows = poolWindows(op, frame.out[0].shape());
  int64_t perPlane = windows.planeSize();
  forEachOutput(frame.in[0]->shape(), [&](int64_t plane, int64_t position, ArrayRef<int64_t> index) {
    double share =
        frame.in[0]->floats[position] / static_cast<double>(divisor(windows, index, op.getCountIncludePad()));
    windows.forEachTap(index, [&](int64_t, int64_t at) { frame.out[0].floats[plane * perPlane + at] += share; });
  });
}

FailureOr<bool> evaluateLinear(Frame &frame) {
  return TypeSwitch<Operation *, bool>(frame.op)
      .Case<DotOp, DotAddOp>([&](auto op) { return evaluateDot(op, frame), true; })
      .Case<MaxPoolOp>([&](auto op) { return evaluateMaxPool(op, frame), true; })
      .Case<MaxPoolGradOp>([&](auto op) { return evaluateMaxPoolGrad(op, frame), true; })
      .Case<AvgPoolOp>([&](auto op) { return evaluateAvgPool(op, frame), true; })
      .Case<AvgPoolGradOp>([&](auto op) { return evaluateAvgPoolGrad(op, frame), true; })
      .Default([](Operation *) { return false; });
}

} // namespace plimsoll::reference
