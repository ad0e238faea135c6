// Whole ops from their definitions: softmax, norms, dropout and cross-entropy. Attention has a file of its own.
#include "lib/Reference/Rules.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::reference {

// log(sum(exp)) of the named elements, shifted by their maximum.
static double logSumExp(const std::vector<double> &values, ArrayRef<int64_t> positions) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t at : positions)
    largest = std::max(largest, values[at]);
  for (int64_t at : positions)
    sum += std::exp(values[at] - largest);
  return largest + std::log(sum);
}

static void evaluateSoftmax(Operation *op, Frame &frame) {
  auto axis = op->getAttrOfType<IntegerAttr>("axis").getInt();
  bool logarithm = isa<LogSoftmaxOp>(op);
  const std::vector<double> &x = frame.in[0]->floats;
  forEachRow(frame.in[0]->shape(), axis, [&](int64_t, ArrayRef<int64_t> positions) {
    double total = logSumExp(x, positions);
    for (int64_t at : positions)
      frame.out[0].floats[at] = logarithm ? x[at] - total : std::exp(x[at] - total);
  });
}

static double meanOf(const std::vector<double> &values, ArrayRef<int64_t> positions) {
  double sum = 0;
  for (int64_t at : positions)
    sum += values[at];
  return sum / static_cast<double>(positions.size());
}
static double meanSquare(const std::vector<double> &values, ArrayRef<int64_t> positions, double center) {
  double sum = 0;
  for (int64_t at : positions)
    sum += (values[at] - center) * (values[at] - center);
  return sum / static_cast<double>(positions.size());
}

static SmallVector<int64_t> dimsFrom(int64_t axis, int64_t rank) {
  return llvm::to_vector(llvm::seq<int64_t>(axis, rank));
}

static void evaluateLayerNorm(LayerNormOp op, Frame &frame) {
  const std::vector<double> &x = frame.in[0]->floats;
  forEachRow(frame.in[0]->shape(), dimsFrom(op.getAxis(), frame.in[0]->type.getRank()),
             [&](int64_t row, ArrayRef<int64_t> positions) {
               double mean = meanOf(x, positions),
                      rstd = 1 / std::sqrt(meanSquare(x, positions, mean) + op.getEpsilon().convertToDouble());
               for (int64_t at : positions)
                 frame.out[0].floats[at] = (x[at] - mean) * rstd;
               frame.out[1].floats[row] = mean;
               frame.out[2].floats[row] = rstd;
             });
}

static void evaluateRmsNorm(RmsNormOp op, Frame &frame) {
  const std::vector<double> &x = frame.in[0]->floats;
  forEachRow(frame.in[0]->shape(), dimsFrom(op.getAxis(), frame.in[0]->type.getRank()),
             [&](int64_t row, ArrayRef<int64_t> positions) {
               double rstd = 1 / std::sqrt(meanSquare(x, positions, 0) + op.getEpsilon().convertToDouble());
               for (int64_t at : positions)
                 frame.out[0].floats[at] = x[at] * rstd;
               frame.out[1].floats[row] = rstd;
             });
}

static void evaluateBatchNorm(BatchNormOp op, Frame &frame) {
  const std::vector<double> &x = frame.in[0]->floats;
  SmallVector<int64_t> dims = dimsFrom(0, frame.in[0]->type.getRank());
  dims.erase(dims.begin() + 1);
  forEachRow(frame.in[0]->shape(), dims, [&](int64_t channel, ArrayRef<int64_t> positions) {
    double mean = meanOf(x, positions), variance = meanSquare(x, positions, mean);
    for (int64_t at : positions)
      frame.out[0].floats[at] = (x[at] - mean) / std::sqrt(variance + op.getEpsilon().convertToDouble());
    frame.out[1].floats[channel] = mean;
    frame.out[2].floats[channel] = variance;
  });
}

static void evaluateDropout(DropoutOp op, Frame &frame) {
  auto seed = static_cast<uint64_t>(frame.in[1]->ints[0]), step = static_cast<uint64_t>(frame.in[1]->ints[1]);
  double ratio = op.getRatio().convertToDouble();
  for (int64_t i = 0; i < frame.out[0].size(); ++i) {
    bool kept = philoxUniform(seed, step, op.getOpId(), static_cast<uint64_t>(i)) >= ratio;
    frame.out[0].floats[i] = kept ? frame.in[0]->floats[i] / (1 - ratio) : 0;
  }
}

static SmallVector<int64_t> rowPositions(int64_t row, int64_t classes) {
  return llvm::to_vector(llvm::seq(row * classes, (row + 1) * classes));
}

static void evaluateCrossEntropy(CrossEntropyOp op, Frame &frame) {
  const std::vector<double> &logits = frame.in[0]->floats;
  int64_t classes = frame.in[0]->shape()[1];
  for (int64_t row = 0; row < frame.in[0]->shape()[0]; ++row) {
    double total = logSumExp(logits, rowPositions(row, classes));
    int64_t label = frame.in[1]->ints[row];
    double picked = label >= 0 && label < classes ? logits[row * classes + label] : 0;
    frame.out[0].floats[row] = label == static_cast<int64_t>(op.getIgnoreIndex()) ? 0 : total - picked;
    frame.out[1].floats[row] = total;
  }
}

static void evaluateCrossEntropyGrad(CrossEntropyGradOp op, Frame &frame) {
  int64_t classes = frame.in[0]->shape()[1];
  for (int64_t row = 0; row < frame.in[0]->shape()[0]; ++row) {
    int64_t label = frame.in[1]->ints[row];
    if (label == static_cast<int64_t>(op.getIgnoreIndex()))
      continue;
    for (int64_t c = 0; c < classes; ++c) {
      double probability = std::exp(frame.in[0]->floats[row * classes + c] - frame.in[2]->floats[row]);
      frame.out[0].floats[row * classes + c] = (probability - (c == label)) * frame.in[3]->floats[row];
    }
  }
}

FailureOr<bool> evaluateWhole(Frame &frame) {
  return TypeSwitch<Operation *, bool>(frame.op)
      .Case<SoftmaxOp, LogSoftmaxOp>([&](auto op) { return evaluateSoftmax(op, frame), true; })
      .Case<LayerNormOp>([&](auto op) { return evaluateLayerNorm(op, frame), true; })
      .Case<RmsNormOp>([&](auto op) { return evaluateRmsNorm(op, frame), true; })
      .Case<BatchNormOp>([&](auto op) { return evaluateBatchNorm(op, frame), true; })
      .Case<DropoutOp>([&](auto op) { return evaluateDropout(op, frame), true; })
      .Case<CrossEntropyOp>([&](auto op) { return evaluateCrossEntropy(op, frame), true; })
      .Case<CrossEntropyGradOp>([&](auto op) { return evaluateCrossEntropyGrad(op, frame), true; })
      .Default([](Operation *) { return false; });
}

} // namespace plimsoll::reference
