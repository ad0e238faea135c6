// Attention and its adjoint, row by row with the scores of one query in full.
#include "lib/Reference/Rules.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::reference {
namespace {

constexpr double minusInfinity = -std::numeric_limits<double>::infinity();

/// Sizes and scores of one attention: query (B, H, S, D), key (B, K, T, D), value (B, K, T, E), mask (size-1
/// broadcast).
struct Scores {
  const HostTensor &query, &key, &value;
  const HostTensor *mask;
  double scale;
  bool causal;

  int64_t heads() const { return query.shape()[1]; }
  int64_t queries() const { return query.shape()[2]; }
  int64_t keys() const { return key.shape()[2]; }
  int64_t width() const { return query.shape()[3]; }
  int64_t valueWidth() const { return value.shape()[3]; }

  /// First element of query row (b, h, s); of key or value row (b, head of the group of h, t).
  int64_t queryRow(int64_t b, int64_t h, int64_t s) const { return (b * heads() + h) * queries() + s; }
  int64_t keyRow(int64_t b, int64_t h, int64_t t) const {
    int64_t groups = key.shape()[1];
    return (b * groups + h / (heads() / groups)) * keys() + t;
  }

  /// scale * q·k plus the mask; -infinity where masked out.
  double at(int64_t b, int64_t h, int64_t s, int64_t t) const {
    if (causal && t > s + keys() - queries())
      return minusInfinity;
    double sum = 0;
    for (int64_t d = 0; d < width(); ++d)
      sum += query.floats[queryRow(b, h, s) * width() + d] * key.floats[keyRow(b, h, t) * width() + d];
    return sum * scale + bias({b, h, s, t});
  }

private:
  double bias(std::array<int64_t, 4> index) const {
    if (!mask)
      return 0;
    for (size_t d = 0; d < 4; ++d)
      index[d] = mask->shape()[d] == 1 ? 0 : index[d];
    int64_t position = linearIndex(index, mask->shape());
    if (mask->isFloat())
      return mask->floats[position];
    return mask->ints[position] ? 0 : minusInfinity;
  }
};

} // namespace

static void forEachQuery(const Scores &scores, function_ref<void(int64_t, int64_t, int64_t)> visit) {
  for (int64_t b = 0; b < scores.query.shape()[0]; ++b)
    for (int64_t h = 0; h < scores.heads(); ++h)
      for (int64_t s = 0; s < scores.queries(); ++s)
        visit(b, h, s);
}

static void evaluateForward(AttentionOp op, Frame &frame) {
  Scores scores{
      *frame.in[0],  *frame.in[1], *frame.in[2], op.getMask() ? frame.in[3] : nullptr, op.getScale().convertToDouble(),
      op.getCausal()};
  forEachQuery(scores, [&](int64_t b, int64_t h, int64_t s) {
    std::vector<double> row(scores.keys());
    double largest = minusInfinity, sum = 0;
    for (int64_t t = 0; t < scores.keys(); ++t)
      largest = std::max(largest, row[t] = scores.at(b, h, s, t));
    int64_t query = scores.queryRow(b, h, s);
    frame.out[1].floats[query] = minusInfinity;
    if (largest == minusInfinity)
      return;
    for (double &score : row)
      sum += score = std::exp(score - largest);
    frame.out[1].floats[query] = largest + std::log(sum);
    for (int64_t t = 0; t < scores.keys(); ++t)
      for (int64_t e = 0; e < scores.valueWidth(); ++e)
        frame.out[0].floats[query * scores.valueWidth() + e] +=
            row[t] / sum * scores.value.floats[scores.keyRow(b, h, t) * scores.valueWidth() + e];
  });
}

// One row of the adjoint: p = exp(score - lse), ds = p*(dout·v - dout·out).
static void adjointRow(const Scores &scores, Frame &frame, int64_t b, int64_t h, int64_t s) {
  bool masked = scores.mask != nullptr;
  const std::vector<double> &cotangent = frame.in[0]->floats, &out = frame.in[masked ? 5 : 4]->floats,
                            &lse = frame.in[masked ? 6 : 5]->floats;
  int64_t query = scores.queryRow(b, h, s), width = scores.width(), valueWidth = scores.valueWidth();
  if (lse[query] == minusInfinity)
    return;
  double dot = 0;
  for (int64_t e = 0; e < valueWidth; ++e)
    dot += cotangent[query * valueWidth + e] * out[query * valueWidth + e];
  for (int64_t t = 0; t < scores.keys(); ++t) {
    double p = std::exp(scores.at(b, h, s, t) - lse[query]), dp = 0;
    int64_t key = scores.keyRow(b, h, t);
    for (int64_t e = 0; e < valueWidth; ++e) {
      dp += cotangent[query * valueWidth + e] * scores.value.floats[key * valueWidth + e];
      frame.out[2].floats[key * valueWidth + e] += p * cotangent[query * valueWidth + e];
    }
    double ds = p * (dp - dot) * scores.scale;
    for (int64_t d = 0; d < width; ++d) {
      frame.out[0].floats[query * width + d] += ds * scores.key.floats[key * width + d];
      frame.out[1].floats[key * width + d] += ds * scores.query.floats[query * width + d];
    }
  }
}

FailureOr<bool> evaluateAttention(Frame &frame) {
  if (auto forward = dyn_cast<AttentionOp>(frame.op))
    return evaluateForward(forward, frame), true;
  auto adjoint = dyn_cast<AttentionGradOp>(frame.op);
  if (!adjoint)
    return false;
  Scores scores{*frame.in[1],
                *frame.in[2],
                *frame.in[3],
                adjoint.getMask() ? frame.in[4] : nullptr,
                adjoint.getScale().convertToDouble(),
                adjoint.getCausal()};
  forEachQuery(scores, [&](int64_t b, int64_t h, int64_t s) { adjointRow(scores, frame, b, h, s); });
  return true;
}

} // namespace plimsoll::reference
