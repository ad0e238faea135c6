// Adjoint rules of linear algebra, pooling and whole ops. Statistics and everything formed from them are single
// precision at least; results are rounded once to the operand's type.
#include "dialects/Graph/GraphGrads.h"

#include <limits>

using namespace mlir;
using namespace plimsoll::graph;

using Grads = SmallVector<Value>;

//===----------------------------------------------------------------------------===//
// Linear algebra
//===----------------------------------------------------------------------------===//

static Value dot(ImplicitLocOpBuilder &b, Type type, Value lhs, Value rhs, bool transA, bool transB) {
  return DotOp::create(b, type, lhs, rhs, transA, transB);
}

// Giles, "Collected matrix derivative results for forward and reverse mode AD" (2008), section 2.2.2: dA = dC*B^T,
// dB = A^T*dC. The flags are arranged so that the products need no transposed copy either.
AdjointUses DotOp::adjointUses() { return {{0, 1}, {}}; }
Grads DotOp::buildAdjoint(Adjoint &adjoint) {
  auto &b = adjoint.builder;
  Value dC = narrow(b, adjoint.cotangents[0], getLhs().getType());
  bool ta = getTransA(), tb = getTransB();
  Value dA, dB;
  if (adjoint.wanted[0])
    dA = ta ? dot(b, getLhs().getType(), getRhs(), dC, tb, true) : dot(b, getLhs().getType(), dC, getRhs(), false, !tb);
  if (adjoint.wanted[1])
    dB = tb ? dot(b, getRhs().getType(), dC, getLhs(), true, ta) : dot(b, getRhs().getType(), getLhs(), dC, !ta, false);
  return {dA, dB};
}

// The three convolutions are one trilinear form <conv(x, w), c>, so the adjoint of each in one argument is another of
// them (Dumoulin & Visin, arXiv 1603.07285, chapter 4; PyTorch convolution_backward, convolution_double_backward).
template <typename Conv, typename ConvLike>
static Value convLike(ImplicitLocOpBuilder &b, ConvLike op, Type type, Value lhs, Value rhs) {
  return Conv::create(b, type, lhs, rhs, op.getStrides(), op.getPads(), op.getDilations(), op.getGroups());
}

AdjointUses ConvOp::adjointUses() { return {{0, 1}, {}}; }
Grads ConvOp::buildAdjoint(Adjoint &adjoint) {
  auto &b = adjoint.builder;
  Value dy = adjoint.cotangents[0];
  return {adjoint.wanted[0] ? convLike<ConvInputGradOp>(b, *this, getInput().getType(), dy, getFilter()) : Value(),
          adjoint.wanted[1] ? convLike<ConvWeightGradOp>(b, *this, getFilter().getType(), getInput(), dy) : Value()};
}
AdjointUses ConvInputGradOp::adjointUses() { return {{0, 1}, {}}; }
Grads ConvInputGradOp::buildAdjoint(Adjoint &adjoint) {
  auto &b = adjoint.builder;
  Value dx = adjoint.cotangents[0];
  return {adjoint.wanted[0] ? convLike<ConvOp>(b, *this, getCotangent().getType(), dx, getFilter()) : Value(),
          adjoint.wanted[1] ? convLike<ConvWeightGradOp>(b, *this, getFilter().getType(), dx, getCotangent())
                            : Value()};
}
AdjointUses ConvWeightGradOp::adjointUses() { return {{0, 1}, {}}; }
Grads ConvWeightGradOp::buildAdjoint(Adjoint &adjoint) {
  auto &b = adjoint.builder;
  Value dw = adjoint.cotangents[0];
  return {adjoint.wanted[0] ? convLike<ConvInputGradOp>(b, *this, getInput().getType(), getCotangent(), dw) : Value(),
          adjoint.wanted[1] ? convLike<ConvOp>(b, *this, getCotangent().getType(), getInput(), dw) : Value()};
}

//===----------------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------------===//

// PyTorch max_pool2d_with_indices_backward: the cotangent goes to the recorded position.
AdjointUses MaxPoolOp::adjointUses() { return {{}, {1}}; }
Grads MaxPoolOp::buildAdjoint(Adjoint &adjoint) {
  return {MaxPoolGradOp::create(adjoint.builder, getInput().getType(), adjoint.cotangents[0], getIndices(), getKernel(),
                                getStrides(), getPads(), getDilations())};
}

// PyTorch avg_pool2d_backward: linear, each the other's adjoint.
AdjointUses AvgPoolOp::adjointUses() { return {}; }
Grads AvgPoolOp::buildAdjoint(Adjoint &adjoint) {
  return {AvgPoolGradOp::create(adjoint.builder, getInput().getType(), adjoint.cotangents[0], getKernel(), getStrides(),
                                getPads(), getDilations(), getCountIncludePad())};
}
AdjointUses AvgPoolGradOp::adjointUses() { return {}; }
Grads AvgPoolGradOp::buildAdjoint(Adjoint &adjoint) {
  return {AvgPoolOp::create(adjoint.builder, getCotangent().getType(), adjoint.cotangents[0], getKernel(), getStrides(),
                            getPads(), getDilations(), getCountIncludePad())};
}

//===----------------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------------===//

// PyTorch _softmax_backward_data: y*(dy - sum(dy*y)).
AdjointUses SoftmaxOp::adjointUses() { return {{}, {0}}; }
Grads SoftmaxOp::buildAdjoint(Adjoint &adjoint) {
  auto &b = adjoint.builder;
  auto axis = static_cast<int64_t>(getAxis());
  Value dy = widen(b, adjoint.cotangents[0]), y = widen(b, getResult());
  Value sum = broadcastBack(b, reduceSum(b, mul(b, dy, y), axis), axis, getType().getShape());
  return {narrow(b, mul(b, y, sub(b, dy, sum)), getType())};
}

// PyTorch _log_softmax_backward_data: dy - exp(y)*sum(dy).
AdjointUses LogSoftmaxOp::adjointUses() { return {{}, {0}}; }
Grads LogSoftmaxOp::buildAdjoint(Adjoint &adjoint) {
  auto &b = adjoint.builder;
  auto axis = static_cast<int64_t>(getAxis());
  Value dy = widen(b, adjoint.cotangents[0]), y = widen(b, getResult());
  Value sum = broadcastBack(b, reduceSum(b, dy, axis), axis, getType().getShape());
  return {narrow(b, sub(b, dy, mul(b, ExpOp::create(b, y), sum)), getType())};
}

//===----------------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------------===//

namespace {
/// The shared part of the three norms: x seen as rows over `dims`, everything in the statistics' type.
struct Rows {
  ImplicitLocOpBuilder &b;
  SmallVector<int64_t> dims, shape;

  Rows(ImplicitLocOpBuilder &builder, RankedTensorType type, SmallVector<int64_t> over)
      : b(builder), dims(std::move(over)), shape(type.getShape()) {}
  double count() const {
    double product = 1;
    for (int64_t d : dims)
      product *= static_cast<double>(shape[d]);
    return product;
  }
  Value full(Value row) const { return broadcastBack(b, row, dims, shape); }
  Value mean(Value x) const { return scaled(b, reduceSum(b, x, dims), 1.0 / count()); }
  /// A statistic in the statistics' type of `x`.
  Value statistic(Value row, Value x) const { return narrow(b, row, x.getType()); }

  /// rstd*(dy - [centered] mean(dy) - xhat*mean(dy*xhat)).
  Value normalised(Value dy, Value xhat, Value rstd, bool centered) const {
    Value projected = mul(b, xhat, full(mean(mul(b, dy, xhat))));
    Value inner = centered ? sub(b, dy, full(mean(dy))) : dy;
    return mul(b, full(rstd), sub(b, inner, projected));
  }
  /// Adjoint of mean = sum(x)/n, and of rstd = (moment + eps)^(-1/2): -drstd*rstd^2*xhat/n.
  Value fromMean(Value dMean) const { return full(scaled(b, dMean, 1.0 / count())); }
  Value fromRstd(Value dRstd, Value xhat, Value rstd) const {
    return mul(b, xhat, full(scaled(b, mul(b, dRstd, mul(b, rstd, rstd)), -1.0 / count())));
  }
};
} // namespace

static SmallVector<int64_t> dimsFrom(int64_t axis, RankedTensorType type) {
  return llvm::to_vector(llvm::seq(axis, type.getRank()));
}

// Ba, Kiros & Hinton arXiv 1607.06450; PyTorch native_layer_norm_backward. xhat is formed again from x, so the
// normalised result need not be kept.
AdjointUses LayerNormOp::adjointUses() { return {{0}, {1, 2}}; }
Grads LayerNormOp::buildAdjoint(Adjoint &adjoint) {
  auto &b = adjoint.builder;
  RankedTensorType type = tensorType(getOperand());
  Rows rows(b, type, dimsFrom(getAxis(), type));
  Value x = widen(b, getOperand()), rstd = rows.statistic(getRstd(), x);
  Value xhat = mul(b, sub(b, x, rows.full(rows.statistic(getMean(), x))), rows.full(rstd));
  Value dx;
  if (Value dy = adjoint.cotangents[0])
    dx = rows.normalised(widen(b, dy), xhat, rstd, /*centered=*/true);
  if (Value dMean = adjoint.cotangents[1])
    dx = addOrNull(b, dx, rows.fromMean(rows.statistic(dMean, x)));
  if (Value dRstd = adjoint.cotangents[2])
    dx = addOrNull(b, dx, rows.fromRstd(rows.statistic(dRstd, x), xhat, rstd));
  return {narrow(b, dx, type)};
}

// Zhang & Sennrich arXiv 1910.07467, section 4.
AdjointUses RmsNormOp::adjointUses() { return {{0}, {1}}; }
Grads RmsNormOp::buildAdjoint(Adjoint &adjoint) {
  auto &b = adjoint.builder;
  RankedTensorType type = tensorType(getOperand());
  Rows rows(b, type, dimsFrom(getAxis(), type));
  Value x = widen(b, getOperand()), rstd = rows.statistic(getRstd(), x);
  Value xhat = mul(b, x, rows.full(rstd)), dx;
  if (Value dy = adjoint.cotangents[0])
    dx = rows.normalised(widen(b, dy), xhat, rstd, /*centered=*/false);
  if (Value dRstd = adjoint.cotangents[1])
    dx = addOrNull(b, dx, rows.fromRstd(rows.statistic(dRstd, x), xhat, rstd));
  return {narrow(b, dx, type)};
}

// Ioffe & Szegedy arXiv 1502.03167, section 3; PyTorch native_batch_norm_backward in training mode. The statistics are
// results too (running averages), so their cotangents count: mean as sum(x)/n, variance as 2*(x - mean)/n.
AdjointUses BatchNormOp::adjointUses() { return {{0}, {1, 2}}; }
Grads BatchNormOp::buildAdjoint(Adjoint &adjoint) {
  auto &b = adjoint.builder;
  RankedTensorType type = tensorType(getOperand());
  SmallVector<int64_t> dims = dimsFrom(0, type);
  dims.erase(dims.begin() + 1);
  Rows rows(b, type, dims);
  Value x = widen(b, getOperand());
  Value centered = sub(b, x, rows.full(rows.statistic(getMean(), x))), dx;
  if (Value dy = adjoint.cotangents[0]) {
    Value rstd = RsqrtOp::create(b, shifted(b, rows.statistic(getVariance(), x), getEpsilon().convertToDouble()));
    dx = rows.normalised(widen(b, dy), mul(b, centered, rows.full(rstd)), rstd, /*centered=*/true);
  }
  if (Value dMean = adjoint.cotangents[1])
    dx = addOrNull(b, dx, rows.fromMean(rows.statistic(dMean, x)));
  if (Value dVariance = adjoint.cotangents[2])
    dx = addOrNull(b, dx, mul(b, centered, rows.full(scaled(b, rows.statistic(dVariance, x), 2.0 / rows.count()))));
  return {narrow(b, dx, type)};
}

//===----------------------------------------------------------------------------===//
// Dropout and losses
//===----------------------------------------------------------------------------===//

// PyTorch native_dropout_backward, with the mask drawn again from the same counter instead of kept.
AdjointUses DropoutOp::adjointUses() { return {{1}, {}}; }
Grads DropoutOp::buildAdjoint(Adjoint &adjoint) {
  return {DropoutOp::create(adjoint.builder, getType(), adjoint.cotangents[0], getSeed(), getRatio(), getOpId()),
          Value()};
}

// PyTorch nll_loss_backward through _log_softmax: (softmax - onehot)*dloss; and log-sum-exp's gradient is the softmax.
AdjointUses CrossEntropyOp::adjointUses() { return {{0, 1}, {1}}; }
Grads CrossEntropyOp::buildAdjoint(Adjoint &adjoint) {
  auto &b = adjoint.builder;
  Type type = getLogits().getType();
  Value dLogits;
  if (Value dLoss = adjoint.cotangents[0])
    dLogits = CrossEntropyGradOp::create(b, type, getLogits(), getLabels(), getLogSumExp(), dLoss, getIgnoreIndex());
  if (Value dTotal = adjoint.cotangents[1]) {
    Value logits = widen(b, getLogits());
    auto rowwise = [&](Value row) {
      return broadcastBack(b, narrow(b, row, logits.getType()), 1, tensorType(logits).getShape());
    };
    Value softmax = ExpOp::create(b, sub(b, logits, rowwise(getLogSumExp())));
    dLogits = addOrNull(b, dLogits, narrow(b, mul(b, softmax, rowwise(dTotal)), type));
  }
  return {dLogits, Value()};
}

//===----------------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------------===//

namespace {
/// Cotangent, value and result of an attention as its adjoint op takes them.
struct AttentionSaved {
  Value cotangent, value, out;
};
} // namespace

static Value appendColumn(ImplicitLocOpBuilder &b, Value rows, Value column) {
  SmallVector<int64_t> shape(tensorType(rows).getShape());
  ++shape.back();
  return ConcatOp::create(b, tensorLike(rows.getType(), shape), ValueRange{rows, column}, 3);
}

// A cotangent of log_sum_exp adds p*dlse to the scores' cotangent p*(dout·v - dout·out). The same comes from one more
// column in which v is 1, dout is dlse and out is 0: dout·v grows by dlse and dout·out stays.
static AttentionSaved withLogSumExp(ImplicitLocOpBuilder &b, AttentionSaved saved, Value dLse) {
  auto columnLike = [&](Value rows) {
    return tensorLike(rows.getType(), {tensorType(rows).getDimSize(0), tensorType(rows).getDimSize(1),
                                       tensorType(rows).getDimSize(2), 1});
  };
  Type outColumn = columnLike(saved.out);
  if (!saved.cotangent)
    saved.cotangent = zerosLike(b, saved.out);
  Value column = reshape(b, narrow(b, dLse, outColumn), cast<RankedTensorType>(outColumn).getShape());
  return {appendColumn(b, saved.cotangent, column),
          appendColumn(b, saved.value, splat(b, columnLike(saved.value), 1.0)),
          appendColumn(b, saved.out, splat(b, outColumn, 0.0))};
}

// Key or value (B, K, T, D) repeated to every query head (B, H, T, D), head by head of a group.
static Value repeatHeads(ImplicitLocOpBuilder &b, Value rows, int64_t heads) {
  ArrayRef<int64_t> s = tensorType(rows).getShape();
  if (s[1] == heads)
    return rows;
  Value repeated = broadcast(b, rows, {0, 1, 3, 4}, {s[0], s[1], heads / s[1], s[2], s[3]});
  return reshape(b, repeated, {s[0], heads, s[2], s[3]});
}

// scale*q·kᵀ + mask (B, H, S, T) in full, in the statistics' type; -infinity where causality masks.
static Value fullScores(ImplicitLocOpBuilder &b, AttentionOp op) {
  ArrayRef<int64_t> q = tensorType(op.getQuery()).getShape();
  int64_t keys = tensorType(op.getKey()).getDimSize(2);
  SmallVector<int64_t> shape{q[0], q[1], q[2], keys};
  Value query = widen(b, op.getQuery()), key = repeatHeads(b, widen(b, op.getKey()), q[1]);
  Value scores =
      scaled(b, dot(b, tensorLike(query.getType(), shape), query, key, false, true), op.getScale().convertToDouble());
  scores = add(b, scores, broadcast(b, narrow(b, op.getMask(), scores.getType()), {0, 1, 2, 3}, shape));
  if (!op.getCausal())
    return scores;
  auto positions = RankedTensorType::get(shape, b.getI32Type());
  Value last = shifted(b, IotaOp::create(b, positions, 2), static_cast<double>(keys - q[2]));
  Value seen = compare(b, CompareDirection::LE, IotaOp::create(b, positions, 3), last);
  return select(b, seen, scores, splat(b, scores.getType(), -std::numeric_limits<double>::infinity()));
}

// A float mask's gradient is the scores' gradient p*(dout·v - dout·out + dlse), summed over the mask's size-1
// dimensions. It is S×T by nature, so it is formed explicitly; models with a learned attention bias need it (T5, Swin).
static Value maskAdjoint(ImplicitLocOpBuilder &b, AttentionOp op, ArrayRef<Value> cotangents) {
  Value scores = fullScores(b, op);
  ArrayRef<int64_t> shape = tensorType(scores).getShape();
  auto rowwise = [&](Value row) { return broadcastBack(b, narrow(b, row, scores.getType()), 3, shape); };
  Value lse = rowwise(op.getLogSumExp()), inner;
  if (Value dOut = cotangents[0]) {
    Value wide = widen(b, dOut), value = repeatHeads(b, widen(b, op.getValue()), shape[1]);
    Value along = reduceSum(b, mul(b, wide, widen(b, op.getResult())), 3);
    inner = sub(b, dot(b, scores.getType(), wide, value, false, true), rowwise(along));
  }
  if (Value dLse = cotangents[1])
    inner = addOrNull(b, inner, rowwise(dLse));
  // exp(score - lse) is 0 wherever masked, but a fully masked row has lse = score = -infinity.
  Value masked =
      compare(b, CompareDirection::EQ, scores, splat(b, scores.getType(), -std::numeric_limits<double>::infinity()));
  Value product = mul(b, ExpOp::create(b, sub(b, scores, lse)), inner);
  return sumToOperand(b, select(b, masked, zerosLike(b, product), product), {0, 1, 2, 3}, tensorType(op.getMask()));
}

// Dao et al., "FlashAttention" arXiv 2205.14135, appendix B.2.
AdjointUses AttentionOp::adjointUses() {
  AdjointUses uses{{0, 1, 2}, {0, 1}};
  if (getMask())
    uses.operands.push_back(3);
  return uses;
}
Grads AttentionOp::buildAdjoint(Adjoint &adjoint) {
  auto &b = adjoint.builder;
  Grads grads(getNumOperands());
  if (adjoint.wanted[0] || adjoint.wanted[1] || adjoint.wanted[2]) {
    AttentionSaved saved{adjoint.cotangents[0], getValue(), getResult()};
    if (adjoint.cotangents[1])
      saved = withLogSumExp(b, saved, adjoint.cotangents[1]);
    auto all = AttentionGradOp::create(b, getQuery().getType(), getKey().getType(), saved.value.getType(),
                                       saved.cotangent, getQuery(), getKey(), saved.value, getMask(), saved.out,
                                       getLogSumExp(), getScale(), getCausal());
    grads[0] = all.getQueryGrad();
    grads[1] = all.getKeyGrad();
    grads[2] = all.getValueGrad();
    if (adjoint.cotangents[1])
      grads[2] = SliceOp::create(b, getValue().getType(), grads[2], SmallVector<int64_t>{0, 0, 0, 0},
                                 SmallVector<int64_t>{1, 1, 1, 1});
  }
  if (getMask() && adjoint.wanted[3])
    grads[3] = maskAdjoint(b, *this, adjoint.cotangents);
  return grads;
}
