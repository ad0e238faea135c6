// Convolution and its two adjoints, as one triple product over (batch, output channel, output, input channel, tap).
#include "lib/Reference/Rules.h"

#include "lib/Reference/Windows.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::reference {
namespace {

/// Shapes of input (N, C, s...), filter (O, C/groups, k...) and output (N, O, t...), whichever of them is computed.
struct ConvShapes {
  ArrayRef<int64_t> input, filter, output;
};

} // namespace

static int64_t product(ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

/// Calls visit(input, filter, output positions) for every multiply-add of the convolution.
template <typename ConvLike>
static void forEachProduct(ConvLike op, ConvShapes shapes, function_ref<void(int64_t, int64_t, int64_t)> visit) {
  Windows windows{shapes.input.drop_front(2), shapes.filter.drop_front(2), op.getStrides(), op.getPads(),
                  op.getDilations()};
  int64_t plane = windows.planeSize(), taps = product(windows.kernel), channels = shapes.input[1],
          perGroup = shapes.filter[1];
  int64_t outputsPerGroup = shapes.filter[0] / static_cast<int64_t>(op.getGroups()), output = 0;
  for (int64_t n = 0; n < shapes.output[0]; ++n)
    for (int64_t o = 0; o < shapes.output[1]; ++o)
      forEachIndex(shapes.output.drop_front(2), [&](ArrayRef<int64_t> index) {
        int64_t firstChannel = o / outputsPerGroup * perGroup;
        windows.forEachTap(index, [&](int64_t tap, int64_t at) {
          for (int64_t c = 0; c < perGroup; ++c)
            visit((n * channels + firstChannel + c) * plane + at, (o * perGroup + c) * taps + tap, output);
        });
        ++output;
      });
}

FailureOr<bool> evaluateConv(Frame &frame) {
  std::vector<double> &result = frame.out.front().floats;
  auto shape = [&](size_t operand) { return frame.in[operand]->shape(); };
  return TypeSwitch<Operation *, bool>(frame.op)
      .Case<ConvOp>([&](auto op) {
        forEachProduct(op, {shape(0), shape(1), frame.out[0].shape()}, [&](int64_t x, int64_t w, int64_t y) {
          result[y] += frame.in[0]->floats[x] * frame.in[1]->floats[w];
        });
        return true;
      })
      .Case<ConvInputGradOp>([&](auto op) {
        forEachProduct(op, {frame.out[0].shape(), shape(1), shape(0)}, [&](int64_t x, int64_t w, int64_t y) {
          result[x] += frame.in[0]->floats[y] * frame.in[1]->floats[w];
        });
        return true;
      })
      .Case<ConvWeightGradOp>([&](auto op) {
        forEachProduct(op, {shape(0), frame.out[0].shape(), shape(1)}, [&](int64_t x, int64_t w, int64_t y) {
          result[w] += frame.in[0]->floats[x] * frame.in[1]->floats[y];
        });
        return true;
      })
      .Default([](Operation *) { return false; });
}

} // namespace plimsoll::reference
