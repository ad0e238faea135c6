// Expansions of whole ops into elementwise, broadcast, reduce, iota and constant ops: what a generated kernel computes.
// Statistics of half-precision tensors are formed in f32; every formula is written so that its tails keep relative
// accuracy. lib/Reference computes the same ops directly, so the two check each other.
#include "dialects/Graph/Graph.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace plimsoll::graph;

namespace {
/// Shorthand for writing formulas: every method emits one op at the builder and returns its value.
class Formula {
public:
  Formula(Operation *op, OpBuilder &builder) : b(op->getLoc(), builder) {}

  /// The tensor in the type formulas compute with: f64 stays, every other float becomes f32.
  Value wide(Value x) {
    return convert(b, x, tensorType(x).getElementType().isF64() ? b.getF64Type() : Type(b.getF32Type()));
  }
  Value narrow(Value x, Type type) { return convert(b, x, cast<RankedTensorType>(type).getElementType()); }
  Value number(Value like, double value) { return splat(b, like.getType(), value); }
  Value zeros(Value like) { return number(like, 0); }
  template <typename Op> Value make(Value x, Value y) { return Op::create(b, x, y); }
  template <typename Op> Value make(Value x) { return Op::create(b, x); }
  Value add(Value x, Value y) { return make<AddOp>(x, y); }
  Value sub(Value x, Value y) { return make<SubOp>(x, y); }
  Value mul(Value x, Value y) { return make<MulOp>(x, y); }
  Value div(Value x, Value y) { return make<DivOp>(x, y); }
  Value exp(Value x) { return make<ExpOp>(x); }
  Value select(Value predicate, Value yes, Value no) { return SelectOp::create(b, predicate, yes, no); }
  Value back(Value reduced, ArrayRef<int64_t> dims, Value like) {
    return broadcastBack(b, reduced, dims, tensorType(like).getShape());
  }
  /// x - max(x) along dims, with the maxima.
  std::pair<Value, Value> shifted(Value x, ArrayRef<int64_t> dims) {
    Value max = reduceMax(b, x, dims);
    return {sub(x, back(max, dims, x)), max};
  }
  /// x / (1 + exp(t)): x times the logistic function of -t, accurate in both tails.
  Value logisticTimes(Value x, Value t) { return div(x, add(number(x, 1), exp(t))); }

  ImplicitLocOpBuilder b;
};

SmallVector<int64_t> dimsFrom(int64_t axis, int64_t rank) {
  SmallVector<int64_t> dims(rank - axis);
  std::iota(dims.begin(), dims.end(), axis);
  return dims;
}

double countOver(Value x, ArrayRef<int64_t> dims) {
  double count = 1;
  for (int64_t d : dims)
    count *= static_cast<double>(tensorType(x).getDimSize(d));
  return count;
}

/// What a normalisation leaves: x - mean, mean and the population variance over dims.
struct Moments {
  Value centered, mean, variance;
};

/// Two passes, so that a large mean does not cancel the variance away.
Moments moments(Formula &f, Value x, ArrayRef<int64_t> dims) {
  Value sum = reduceSum(f.b, x, dims);
  Value count = f.number(sum, countOver(x, dims));
  Value mean = f.div(sum, count);
  Value centered = f.sub(x, f.back(mean, dims, x));
  Value variance = f.div(reduceSum(f.b, f.mul(centered, centered), dims), count);
  return {centered, mean, variance};
}

/// Labels as i32 with everything outside [0, classes) turned to -1, which equals no class.
Value safeLabels(Formula &f, Value labels, int64_t classes) {
  Value below = compare(f.b, CompareDirection::LT, labels, f.number(labels, static_cast<double>(classes)));
  Value fromZero = compare(f.b, CompareDirection::GE, labels, f.zeros(labels));
  Value valid = AndOp::create(f.b, below, fromZero);
  return convert(f.b, f.select(valid, labels, f.number(labels, -1)), f.b.getI32Type());
}

/// (N, C) predicate: column c is row n's label (a safe one).
Value isLabel(Formula &f, Value labels, RankedTensorType logits) {
  auto type = RankedTensorType::get(logits.getShape(), f.b.getI32Type());
  Value columns = IotaOp::create(f.b, type, 1);
  Value wanted = f.back(labels, {1}, columns);
  return compare(f.b, CompareDirection::EQ, columns, wanted);
}

Value isIgnored(Formula &f, Value labels, int64_t ignoreIndex) {
  auto type = tensorType(labels);
  Attribute scalar = f.b.getIntegerAttr(type.getElementType(), ignoreIndex);
  Value index = ConstantOp::create(f.b, DenseElementsAttr::get(type, scalar));
  return compare(f.b, CompareDirection::EQ, labels, index);
}
} // namespace

// exp(x - max) / sum(exp(x - max)).
SmallVector<Value> SoftmaxOp::decompose(OpBuilder &builder) {
  Formula f(*this, builder);
  int64_t dims[] = {static_cast<int64_t>(getAxis())};
  Value x = f.wide(getOperand());
  Value power = f.exp(f.shifted(x, dims).first);
  Value scale = f.make<ReciprocalOp>(reduceSum(f.b, power, dims));
  return {f.narrow(f.mul(power, f.back(scale, dims, x)), getType())};
}

// (x - max) - log(sum(exp(x - max))).
SmallVector<Value> LogSoftmaxOp::decompose(OpBuilder &builder) {
  Formula f(*this, builder);
  int64_t dims[] = {static_cast<int64_t>(getAxis())};
  Value x = f.wide(getOperand());
  Value shifted = f.shifted(x, dims).first;
  Value logSum = f.make<LogOp>(reduceSum(f.b, f.exp(shifted), dims));
  return {f.narrow(f.sub(shifted, f.back(logSum, dims, x)), getType())};
}

SmallVector<Value> LayerNormOp::decompose(OpBuilder &builder) {
  Formula f(*this, builder);
  Value x = f.wide(getOperand());
  SmallVector<int64_t> dims = dimsFrom(getAxis(), tensorType(x).getRank());
  Moments m = moments(f, x, dims);
  Value rstd = f.make<RsqrtOp>(f.add(m.variance, f.number(m.variance, getEpsilon().convertToDouble())));
  Value y = f.mul(m.centered, f.back(rstd, dims, x));
  return {f.narrow(y, getResult().getType()), f.narrow(m.mean, getMean().getType()),
          f.narrow(rstd, getRstd().getType())};
}

SmallVector<Value> RmsNormOp::decompose(OpBuilder &builder) {
  Formula f(*this, builder);
  Value x = f.wide(getOperand());
  SmallVector<int64_t> dims = dimsFrom(getAxis(), tensorType(x).getRank());
  Value sum = reduceSum(f.b, f.mul(x, x), dims);
  Value mean = f.div(sum, f.number(sum, countOver(x, dims)));
  Value rstd = f.make<RsqrtOp>(f.add(mean, f.number(mean, getEpsilon().convertToDouble())));
  Value y = f.mul(x, f.back(rstd, dims, x));
  return {f.narrow(y, getResult().getType()), f.narrow(rstd, getRstd().getType())};
}

SmallVector<Value> BatchNormOp::decompose(OpBuilder &builder) {
  Formula f(*this, builder);
  Value x = f.wide(getOperand());
  SmallVector<int64_t> dims = dimsFrom(1, tensorType(x).getRank());
  dims[0] = 0; // every dimension but channel dimension 1
  Moments m = moments(f, x, dims);
  Value rstd = f.make<RsqrtOp>(f.add(m.variance, f.number(m.variance, getEpsilon().convertToDouble())));
  Value y = f.mul(m.centered, f.back(rstd, dims, x));
  return {f.narrow(y, getResult().getType()), f.narrow(m.mean, getMean().getType()),
          f.narrow(m.variance, getVariance().getType())};
}

// The draw stays a library op beside the group; the mask itself never has storage.
SmallVector<Value> DropoutOp::decompose(OpBuilder &builder) {
  Formula f(*this, builder);
  Value x = getOperand();
  double ratio = getRatio().convertToDouble();
  auto type = RankedTensorType::get(tensorType(x).getShape(), f.b.getF32Type());
  Value draw = RandomUniformOp::create(f.b, type, getSeed(), getOpId());
  Value kept = compare(f.b, CompareDirection::GE, draw, f.number(draw, ratio));
  return {f.select(kept, f.mul(x, f.number(x, 1 / (1 - ratio))), f.zeros(x))};
}

// log(sum(exp(x - max))) - (x[label] - max): both terms stay small however large the logits are.
SmallVector<Value> CrossEntropyOp::decompose(OpBuilder &builder) {
  Formula f(*this, builder);
  Value x = f.wide(getLogits()), labels = getLabels();
  auto [shifted, max] = f.shifted(x, {1});
  Value logSum = f.make<LogOp>(reduceSum(f.b, f.exp(shifted), {1}));
  Value safe = safeLabels(f, labels, tensorType(x).getDimSize(1));
  Value picked = reduceSum(f.b, f.select(isLabel(f, safe, tensorType(x)), x, f.zeros(x)), {1});
  Value validLoss = f.sub(logSum, f.sub(picked, max));
  Value outside = compare(f.b, CompareDirection::LT, safe, f.zeros(safe));
  Value logSumExp = f.add(max, logSum);
  Value loss = f.select(outside, logSumExp, validLoss);
  loss = f.select(isIgnored(f, labels, getIgnoreIndex()), f.zeros(loss), loss);
  return {f.narrow(loss, getLosses().getType()), f.narrow(logSumExp, getLogSumExp().getType())};
}

SmallVector<Value> CrossEntropyGradOp::decompose(OpBuilder &builder) {
  Formula f(*this, builder);
  Value x = f.wide(getLogits()), labels = getLabels();
  Value logSumExp = f.narrow(getLogSumExp(), x.getType()), cotangent = f.narrow(getCotangent(), x.getType());
  Value probability = f.exp(f.sub(x, f.back(logSumExp, {1}, x)));
  Value hot = f.sub(probability, f.number(x, 1));
  Value safe = safeLabels(f, labels, tensorType(x).getDimSize(1));
  Value slope = f.select(isLabel(f, safe, tensorType(x)), hot, probability);
  Value grad = f.mul(slope, f.back(cotangent, {1}, x));
  Value ignored = f.back(isIgnored(f, labels, getIgnoreIndex()), {1}, x);
  return {f.narrow(f.select(ignored, f.zeros(grad), grad), getType())};
}

// Tanh form: (1 + tanh u)/2 is the logistic function of 2u, so x/(1 + exp(-2u)) with u = sqrt(2/pi)*(x + 0.044715 x^3).
SmallVector<Value> GeluOp::decompose(OpBuilder &builder) {
  Formula f(*this, builder);
  Value x = f.wide(getOperand());
  if (getApproximate()) {
    double slope = -2 * std::sqrt(2 / M_PI);
    Value cubic = f.add(f.number(x, slope), f.mul(f.number(x, slope * 0.044715), f.mul(x, x)));
    return {f.narrow(f.logisticTimes(x, f.mul(x, cubic)), getType())};
  }
  Value erf = f.make<ErfOp>(f.mul(x, f.number(x, M_SQRT1_2)));
  return {f.narrow(f.mul(f.mul(x, f.number(x, 0.5)), f.add(f.number(x, 1), erf)), getType())};
}

SmallVector<Value> SiluOp::decompose(OpBuilder &builder) {
  Formula f(*this, builder);
  Value x = f.wide(getOperand());
  return {f.narrow(f.logisticTimes(x, f.make<NegOp>(x)), getType())};
}
