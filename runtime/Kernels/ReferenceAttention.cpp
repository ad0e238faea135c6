// Reference attention and its adjoint, one query row at a time: scores, softmax, weighted sum of values. The oracle for
// the tiled kernels, which never hold a row of scores.
#include "runtime/Kernels/Geometry.h"
#include "runtime/Kernels/ReferenceCalls.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plimsoll::runtime {

namespace {

constexpr double MinusInfinity = -std::numeric_limits<double>::infinity();

/// One attention call with typed operands; scores is a row of T doubles, made at load.
template <typename T> struct Attention {
  AttentionGeometry geometry;
  TensorSpec q, k, v, mask;
  std::vector<double> scores;

  const T *row(const void *base, const TensorSpec &tensor, int64_t b, int64_t h, int64_t i) const {
    const int64_t index[4] = {b, h, i, 0};
    return static_cast<const T *>(base) + elementOffset(tensor, index);
  }

  /// What the mask adds to score (b, h, s, t): -inf where nothing may be seen.
  double maskTerm(const void *base, int64_t b, int64_t h, int64_t s, int64_t t) const {
    if (geometry.causal && t > s)
      return MinusInfinity;
    if (!geometry.hasMask)
      return 0.0;
    const int64_t index[4] = {b, h, s, t};
    const int64_t offset = elementOffset(mask, index);
    if (mask.dtype == artifact::DType::Bool)
      return static_cast<const uint8_t *>(base)[offset] ? 0.0 : MinusInfinity;
    return static_cast<const T *>(base)[offset];
  }

  /// Fills scores with scale * q.k + mask of row (b, h, s); kh is the key head of h.
  void scoreRow(const void *qBase, const void *kBase, const void *maskBase, int64_t b, int64_t h, int64_t kh,
                int64_t s) {
    const T *query = row(qBase, q, b, h, s);
    for (int64_t t = 0; t < geometry.keys; ++t) {
      const double term = maskTerm(maskBase, b, h, s, t);
      const T *key = row(kBase, k, b, kh, t);
      double sum = 0.0;
      for (int64_t d = 0; d < geometry.depth; ++d)
        sum += static_cast<double>(query[d]) * key[d];
      scores[static_cast<size_t>(t)] = term == MinusInfinity ? term : geometry.scale * sum + term;
    }
  }

  /// Turns scores into probabilities of their softmax given its log-sum-exp; a fully masked row (lse -inf) gives zeros.
  void softmaxFrom(double lse) {
    for (double &score : scores)
      score = lse == MinusInfinity ? 0.0 : std::exp(score - lse);
  }

  double logSumExp() const {
    double top = MinusInfinity, sum = 0.0;
    for (double score : scores)
      top = std::isnan(score) || score > top ? score : top;
    if (top == MinusInfinity || std::isnan(top))
      return top;
    for (double score : scores)
      sum += std::exp(score - top);
    return top + std::log(sum);
  }

  /// Calls `visit(b, h, kh, s)` for every query row.
  template <typename Visit> void visitRows(Visit visit) {
    for (int64_t b = 0; b < geometry.batch; ++b)
      for (int64_t h = 0; h < geometry.heads; ++h)
        for (int64_t s = 0; s < geometry.rows; ++s)
          visit(b, h, h / geometry.headsPerKeyHead(), s);
  }
};

template <typename T>
void writeRow(void *base, const TensorSpec &tensor, int64_t b, int64_t h, int64_t i, const double *row) {
  for (int64_t d = 0; d < tensor.shape[3]; ++d) {
    const int64_t index[4] = {b, h, i, d};
    at<T>(base, tensor, index) = static_cast<T>(row[d]);
  }
}

template <typename T> struct AttentionForward : Attention<T> {
  TensorSpec out;
  std::vector<double> outRow; ///< Dv

  void run(Operands o) {
    const bool masked = this->geometry.hasMask;
    const void *maskBase = masked ? o[3] : nullptr;
    void *outBase = o[masked ? 4 : 3];
    T *lse = static_cast<T *>(o[masked ? 5 : 4]);
    this->visitRows([&](int64_t b, int64_t h, int64_t kh, int64_t s) {
      this->scoreRow(o[0], o[1], maskBase, b, h, kh, s);
      const double logSum = this->logSumExp();
      this->softmaxFrom(logSum);
      std::fill(outRow.begin(), outRow.end(), 0.0);
      for (int64_t t = 0; t < this->geometry.keys; ++t) {
        const double weight = this->scores[static_cast<size_t>(t)];
        const T *value = this->row(o[2], this->v, b, kh, t);
        for (size_t d = 0; weight != 0.0 && d < outRow.size(); ++d)
          outRow[d] += weight * value[d];
      }
      writeRow<T>(outBase, out, b, h, s, outRow.data());
      lse[(b * this->geometry.heads + h) * this->geometry.rows + s] = static_cast<T>(logSum);
    });
  }
};

template <typename T> struct AttentionBackward : Attention<T> {
  TensorSpec dout, out, dq, dk, dv;
  std::vector<double> dqRow, dkSums, dvSums; ///< D; B * Hk * T * D; B * Hk * T * Dv

  /// Gradients of one query row: dS = P * (dP - delta) with dP = dout.v and delta = dout.out; dq += scale dS k,
  /// dk += scale dS q, dv += P dout.
  void runRow(Operands o, int64_t b, int64_t h, int64_t kh, int64_t s, double lse, const T *outRow) {
    const AttentionGeometry &g = this->geometry;
    const T *gradRow = this->row(o[0], dout, b, h, s), *query = this->row(o[1], this->q, b, h, s);
    this->scoreRow(o[1], o[2], g.hasMask ? o[4] : nullptr, b, h, kh, s);
    this->softmaxFrom(lse);
    double delta = 0.0;
    for (int64_t d = 0; d < g.valueDepth; ++d)
      delta += static_cast<double>(gradRow[d]) * outRow[d];
    for (int64_t t = 0; t < g.keys; ++t) {
      const double weight = this->scores[static_cast<size_t>(t)];
      if (weight == 0.0)
        continue;
      const T *key = this->row(o[2], this->k, b, kh, t), *value = this->row(o[3], this->v, b, kh, t);
      const int64_t keyRow = (b * g.keyHeads + kh) * g.keys + t;
      double gradWeight = 0.0;
      for (int64_t d = 0; d < g.valueDepth; ++d) {
        gradWeight += static_cast<double>(gradRow[d]) * value[d];
        dvSums[static_cast<size_t>(keyRow * g.valueDepth + d)] += weight * gradRow[d];
      }
      const double gradScore = g.scale * weight * (gradWeight - delta);
      for (int64_t d = 0; d < g.depth; ++d) {
        dqRow[static_cast<size_t>(d)] += gradScore * key[d];
        dkSums[static_cast<size_t>(keyRow * g.depth + d)] += gradScore * query[d];
      }
    }
  }

  void writeKeys(void *dkBase, void *dvBase) {
    const AttentionGeometry &g = this->geometry;
    for (int64_t b = 0; b < g.batch; ++b)
      for (int64_t kh = 0; kh < g.keyHeads; ++kh)
        for (int64_t t = 0; t < g.keys; ++t) {
          const int64_t keyRow = (b * g.keyHeads + kh) * g.keys + t;
          writeRow<T>(dkBase, dk, b, kh, t, dkSums.data() + keyRow * g.depth);
          writeRow<T>(dvBase, dv, b, kh, t, dvSums.data() + keyRow * g.valueDepth);
        }
  }

  void run(Operands o) {
    const AttentionGeometry &g = this->geometry;
    const size_t outAt = g.hasMask ? 5 : 4;
    const T *lse = static_cast<const T *>(o[outAt + 1]);
    std::fill(dkSums.begin(), dkSums.end(), 0.0);
    std::fill(dvSums.begin(), dvSums.end(), 0.0);
    this->visitRows([&](int64_t b, int64_t h, int64_t kh, int64_t s) {
      std::fill(dqRow.begin(), dqRow.end(), 0.0);
      runRow(o, b, h, kh, s, lse[(b * g.heads + h) * g.rows + s], this->row(o[outAt], out, b, h, s));
      writeRow<T>(o[outAt + 2], dq, b, h, s, dqRow.data());
    });
    writeKeys(o[outAt + 3], o[outAt + 4]);
  }
};

} // namespace

/// Fills what both directions share; q, k, v are operands `first`.. and the mask, if any, follows them.
template <typename T> static void describe(Attention<T> &call, const CallSpec &spec, size_t first) {
  call.q = spec.operands[first];
  call.k = spec.operands[first + 1];
  call.v = spec.operands[first + 2];
  call.geometry = attentionGeometry(spec, call.q, call.k, call.v);
  if (call.geometry.hasMask)
    call.mask = spec.operands[first + 3];
  call.scores.resize(static_cast<size_t>(call.geometry.keys));
}

template <typename T> static ReferenceCall::Body forwardBody(const CallSpec &spec) {
  auto call = std::make_shared<AttentionForward<T>>();
  describe<T>(*call, spec, 0);
  call->out = spec.operands[spec.operands.size() - 2];
  call->outRow.resize(static_cast<size_t>(call->geometry.valueDepth));
  return [call](Operands o) { call->run(o); };
}

template <typename T> static ReferenceCall::Body backwardBody(const CallSpec &spec) {
  auto call = std::make_shared<AttentionBackward<T>>();
  describe<T>(*call, spec, 1);
  const size_t outAt = spec.operands.size() - 5;
  call->dout = spec.operands[0];
  call->out = spec.operands[outAt];
  call->dq = spec.operands[outAt + 2];
  call->dk = spec.operands[outAt + 3];
  call->dv = spec.operands[outAt + 4];
  call->dqRow.resize(static_cast<size_t>(call->geometry.depth));
  call->dkSums.resize(static_cast<size_t>(elementCount(call->k.shape)));
  call->dvSums.resize(static_cast<size_t>(elementCount(call->v.shape)));
  return [call](Operands o) { call->run(o); };
}

ReferenceCall::Body referenceAttention(const CallSpec &spec) {
  const bool forward = spec.op == "attention";
  if (!forward && spec.op != "attention_grad")
    return {};
  return makeForFloat(spec.operands[0].dtype, [&](auto zero) -> ReferenceCall::Body {
    using T = decltype(zero);
    return forward ? forwardBody<T>(spec) : backwardBody<T>(spec);
  });
}

} // namespace plimsoll::runtime
