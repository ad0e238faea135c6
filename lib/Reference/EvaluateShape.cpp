// Iota, views, copies, concat, pad and reductions.
#include "lib/Reference/Rules.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::reference {

void remap(const HostTensor &from, HostTensor &to, function_ref<int64_t(ArrayRef<int64_t>)> source) {
  int64_t position = 0;
  forEachIndex(to.shape(), [&](ArrayRef<int64_t> index) {
    int64_t at = source(index);
    if (at >= 0 && from.isFloat())
      to.floats[position] = from.floats[at];
    else if (at >= 0)
      to.ints[position] = from.ints[at];
    ++position;
  });
}

void forEachRow(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims, function_ref<void(int64_t, ArrayRef<int64_t>)> visit) {
  SmallVector<int64_t> outer, outerStrides, inner, innerStrides, strides = denseStrides(shape);
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    bool isInner = llvm::is_contained(dims, d);
    (isInner ? inner : outer).push_back(shape[d]);
    (isInner ? innerStrides : outerStrides).push_back(strides[d]);
  }
  auto offset = [](ArrayRef<int64_t> index, ArrayRef<int64_t> by) {
    int64_t sum = 0;
    for (auto [i, stride] : llvm::zip_equal(index, by))
      sum += i * stride;
    return sum;
  };
  int64_t row = 0;
  forEachIndex(outer, [&](ArrayRef<int64_t> outerIndex) {
    SmallVector<int64_t> positions;
    forEachIndex(inner, [&](ArrayRef<int64_t> innerIndex) {
      positions.push_back(offset(outerIndex, outerStrides) + offset(innerIndex, innerStrides));
    });
    visit(row++, positions);
  });
}

static void evaluateIota(IotaOp op, Frame &frame) {
  int64_t position = 0;
  forEachIndex(frame.out[0].shape(), [&](ArrayRef<int64_t> index) {
    int64_t value = index[op.getDimension()];
    if (frame.out[0].isFloat())
      frame.out[0].floats[position++] = static_cast<double>(value);
    else
      frame.out[0].ints[position++] = value;
  });
}

static void evaluateBroadcast(BroadcastOp op, Frame &frame) {
  ArrayRef<int64_t> shape = frame.in[0]->shape();
  SmallVector<int64_t> source(shape.size());
  remap(*frame.in[0], frame.out[0], [&](ArrayRef<int64_t> index) {
    for (auto [d, target] : llvm::enumerate(op.getDims()))
      source[d] = shape[d] == 1 ? 0 : index[target];
    return linearIndex(source, shape);
  });
}

static void evaluateTranspose(TransposeOp op, Frame &frame) {
  ArrayRef<int64_t> shape = frame.in[0]->shape();
  SmallVector<int64_t> source(shape.size());
  remap(*frame.in[0], frame.out[0], [&](ArrayRef<int64_t> index) {
    for (auto [d, from] : llvm::enumerate(op.getPerm()))
      source[from] = index[d];
    return linearIndex(source, shape);
  });
}

static void evaluateSlice(SliceOp op, Frame &frame) {
  ArrayRef<int64_t> shape = frame.in[0]->shape();
  SmallVector<int64_t> source(shape.size());
  remap(*frame.in[0], frame.out[0], [&](ArrayRef<int64_t> index) {
    for (size_t d = 0; d < shape.size(); ++d)
      source[d] = op.getStarts()[d] + index[d] * op.getStrides()[d];
    return linearIndex(source, shape);
  });
}

static void evaluateSameOrder(Frame &frame) {
  frame.out[0].floats = frame.in[0]->floats;
  frame.out[0].ints = frame.in[0]->ints;
}

static void evaluateConcat(ConcatOp op, Frame &frame) {
  auto axis = static_cast<size_t>(op.getAxis());
  int64_t start = 0;
  for (const HostTensor *part : frame.in) {
    remap(*part, frame.out[0], [&](ArrayRef<int64_t> index) -> int64_t {
      SmallVector<int64_t> source(index);
      source[axis] -= start;
      bool inside = source[axis] >= 0 && source[axis] < part->shape()[axis];
      return inside ? linearIndex(source, part->shape()) : -1;
    });
    start += part->shape()[axis];
  }
}

static void evaluatePad(PadOp op, Frame &frame) {
  double value = op.getValue().convertToDouble();
  std::fill(frame.out[0].floats.begin(), frame.out[0].floats.end(), value);
  std::fill(frame.out[0].ints.begin(), frame.out[0].ints.end(), static_cast<int64_t>(value));
  ArrayRef<int64_t> shape = frame.in[0]->shape();
  SmallVector<int64_t> source(shape.size());
  remap(*frame.in[0], frame.out[0], [&](ArrayRef<int64_t> index) -> int64_t {
    for (size_t d = 0; d < shape.size(); ++d) {
      int64_t offset = index[d] - op.getLow()[d], step = op.getInterior()[d] + 1;
      if (offset < 0 || offset % step || offset / step >= shape[d])
        return -1;
      source[d] = offset / step;
    }
    return linearIndex(source, shape);
  });
}

static void evaluateReduceSum(ReduceSumOp op, Frame &frame) {
  forEachRow(frame.in[0]->shape(), op.getDims(), [&](int64_t row, ArrayRef<int64_t> positions) {
    for (int64_t at : positions) {
      if (frame.in[0]->isFloat())
        frame.out[0].floats[row] += frame.in[0]->floats[at];
      else
        frame.out[0].ints[row] = static_cast<int64_t>(static_cast<uint64_t>(frame.out[0].ints[row]) +
                                                      static_cast<uint64_t>(frame.in[0]->ints[at]));
    }
  });
}

// The maximum over nothing is -infinity (floats) or the type's smallest number.
static void evaluateReduceMax(ReduceMaxOp op, Frame &frame) {
  Type element = frame.out[0].type.getElementType();
  forEachRow(frame.in[0]->shape(), op.getDims(), [&](int64_t row, ArrayRef<int64_t> positions) {
    if (frame.in[0]->isFloat()) {
      double best = -std::numeric_limits<double>::infinity();
      for (int64_t at : positions)
        best = std::isnan(best) || std::isnan(frame.in[0]->floats[at]) ? std::nan("")
                                                                       : std::max(best, frame.in[0]->floats[at]);
      frame.out[0].floats[row] = best;
      return;
    }
    unsigned width = element.getIntOrFloatBitWidth();
    int64_t best = element.isUnsignedInteger() || width == 1 ? 0 : static_cast<int64_t>(~uint64_t{0} << (width - 1));
    for (int64_t at : positions)
      best = std::max(best, frame.in[0]->ints[at]);
    frame.out[0].ints[row] = best;
  });
}

FailureOr<bool> evaluateShape(Frame &frame) {
  return TypeSwitch<Operation *, bool>(frame.op)
      .Case<IotaOp>([&](auto op) { return evaluateIota(op, frame), true; })
      .Case<BroadcastOp>([&](auto op) { return evaluateBroadcast(op, frame), true; })
      .Case<TransposeOp>([&](auto op) { return evaluateTranspose(op, frame), true; })
      .Case<SliceOp>([&](auto op) { return evaluateSlice(op, frame), true; })
      .Case<ReshapeOp, CopyOp>([&](auto) { return evaluateSameOrder(frame), true; })
      .Case<ConcatOp>([&](auto op) { return evaluateConcat(op, frame), true; })
      .Case<PadOp>([&](auto op) { return evaluatePad(op, frame), true; })
      .Case<ReduceSumOp>([&](auto op) { return evaluateReduceSum(op, frame), true; })
      .Case<ReduceMaxOp>([&](auto op) { return evaluateReduceMax(op, frame), true; })
      .Default([](Operation *) { return false; });
}

} // namespace plimsoll::reference
