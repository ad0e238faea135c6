// Adjoint rules of elementwise ops, views, data movement and reductions: one rule an op, its source named above it.
// "PyTorch" is torch's derivatives.yaml and FunctionsManual.cpp, whose choices at ties and kinks are kept, so that a
// compiled step and its PyTorch original agree there too. Elementwise rules of several operations widen the half types
// once, masks are selects, and each rule reads exactly the forward values that adjointUses() beside it lists.
#include "dialects/Graph/GraphGrads.h"

#include <cmath>

using namespace mlir;
using namespace plimsoll::graph;

using Grads = SmallVector<Value>;

//===----------------------------------------------------------------------------===//
// Elementwise, one operand
//===----------------------------------------------------------------------------===//

// An op that is linear and keeps its operand's type: nothing of the forward pass is read.
AdjointUses NegOp::adjointUses() { return {}; }
Grads NegOp::buildAdjoint(Adjoint &adjoint) { return {neg(adjoint.builder, adjoint.cotangents[0])}; }

// PyTorch abs: dy*sign(x), so 0 at 0.
AdjointUses AbsOp::adjointUses() { return {{0}, {}}; }
Grads AbsOp::buildAdjoint(Adjoint &adjoint) {
  auto &b = adjoint.builder;
  Value dy = adjoint.cotangents[0], zero = zerosLike(b, getOperand());
  Value negative = select(b, compare(b, CompareDirection::LT, getOperand(), zero), neg(b, dy), zero);
  return {select(b, compare(b, CompareDirection::GT, getOperand(), zero), dy, negative)};
}

// PyTorch sign, floor: zero everywhere.
AdjointUses SignOp::adjointUses() { return {}; }
Grads SignOp::buildAdjoint(Adjoint &) { return {Value()}; }
AdjointUses FloorOp::adjointUses() { return {}; }
Grads FloorOp::buildAdjoint(Adjoint &) { return {Value()}; }

// PyTorch exp: dy*y.
AdjointUses ExpOp::adjointUses() { return {{}, {0}}; }
Grads ExpOp::buildAdjoint(Adjoint &adjoint) { return {mul(adjoint.builder, adjoint.cotangents[0], getResult())}; }

// PyTorch log: dy/x.
AdjointUses LogOp::adjointUses() { return {{0}, {}}; }
Grads LogOp::buildAdjoint(Adjoint &adjoint) { return {div(adjoint.builder, adjoint.cotangents[0], getOperand())}; }

/// Runs `rule(dy, value)` in at least single precision and rounds once to `like`.
template <typename Rule> static Grads widened(Adjoint &adjoint, Value value, Rule rule) {
  auto &b = adjoint.builder;
  return {narrow(b, rule(b, widen(b, adjoint.cotangents[0]), widen(b, value)), value.getType())};
}

// PyTorch log1p: dy/(x + 1).
AdjointUses Log1pOp::adjointUses() { return {{0}, {}}; }
Grads Log1pOp::buildAdjoint(Adjoint &adjoint) {
  return widened(adjoint, getOperand(), [](auto &b, Value dy, Value x) { return div(b, dy, shifted(b, x, 1.0)); });
}

// PyTorch sqrt: dy/(2*y); infinite at 0.
AdjointUses SqrtOp::adjointUses() { return {{}, {0}}; }
Grads SqrtOp::buildAdjoint(Adjoint &adjoint) {
  return widened(adjoint, getResult(), [](auto &b, Value dy, Value y) { return div(b, dy, scaled(b, y, 2.0)); });
}

// PyTorch rsqrt: -dy/2*y^3.
AdjointUses RsqrtOp::adjointUses() { return {{}, {0}}; }
Grads RsqrtOp::buildAdjoint(Adjoint &adjoint) {
  return widened(adjoint, getResult(),
                 [](auto &b, Value dy, Value y) { return mul(b, scaled(b, dy, -0.5), mul(b, y, mul(b, y, y))); });
}

// PyTorch reciprocal: -dy*y^2.
AdjointUses ReciprocalOp::adjointUses() { return {{}, {0}}; }
Grads ReciprocalOp::buildAdjoint(Adjoint &adjoint) {
  return widened(adjoint, getResult(), [](auto &b, Value dy, Value y) { return neg(b, mul(b, dy, mul(b, y, y))); });
}

// PyTorch sin: dy*cos(x); cos: -dy*sin(x).
AdjointUses SinOp::adjointUses() { return {{0}, {}}; }
Grads SinOp::buildAdjoint(Adjoint &adjoint) {
  return widened(adjoint, getOperand(), [](auto &b, Value dy, Value x) { return mul(b, dy, CosOp::create(b, x)); });
}
AdjointUses CosOp::adjointUses() { return {{0}, {}}; }
Grads CosOp::buildAdjoint(Adjoint &adjoint) {
  return widened(adjoint, getOperand(),
                 [](auto &b, Value dy, Value x) { return neg(b, mul(b, dy, SinOp::create(b, x))); });
}

// PyTorch tanh: dy*(1 - y^2).
AdjointUses TanhOp::adjointUses() { return {{}, {0}}; }
Grads TanhOp::buildAdjoint(Adjoint &adjoint) {
  return widened(adjoint, getResult(), [](auto &b, Value dy, Value y) {
    return mul(b, dy, sub(b, splat(b, y.getType(), 1.0), mul(b, y, y)));
  });
}

// PyTorch erf: dy*2/sqrt(pi)*exp(-x^2).
AdjointUses ErfOp::adjointUses() { return {{0}, {}}; }
Grads ErfOp::buildAdjoint(Adjoint &adjoint) {
  return widened(adjoint, getOperand(), [](auto &b, Value dy, Value x) {
    return mul(b, scaled(b, dy, 2.0 / std::sqrt(M_PI)), ExpOp::create(b, neg(b, mul(b, x, x))));
  });
}

// PyTorch sigmoid: dy*(1 - y)*y.
AdjointUses SigmoidOp::adjointUses() { return {{}, {0}}; }
Grads SigmoidOp::buildAdjoint(Adjoint &adjoint) {
  return widened(adjoint, getResult(), [](auto &b, Value dy, Value y) {
    return mul(b, dy, mul(b, y, sub(b, splat(b, y.getType(), 1.0), y)));
  });
}

// PyTorch relu (threshold_backward on the result): 0 where y <= 0, else dy; a NaN lets dy through. Reads the result, so
// the operand's storage may be taken over.
AdjointUses ReluOp::adjointUses() { return {{}, {0}}; }
Grads ReluOp::buildAdjoint(Adjoint &adjoint) {
  auto &b = adjoint.builder;
  Value zero = zerosLike(b, getResult());
  return {select(b, compare(b, CompareDirection::LE, getResult(), zero), zero, adjoint.cotangents[0])};
}

// PyTorch silu: dy*s*(1 + x*(1 - s)), s = sigmoid(x).
AdjointUses SiluOp::adjointUses() { return {{0}, {}}; }
Grads SiluOp::buildAdjoint(Adjoint &adjoint) {
  return widened(adjoint, getOperand(), [](auto &b, Value dy, Value x) {
    Value s = SigmoidOp::create(b, x), rest = sub(b, splat(b, x.getType(), 1.0), s);
    return mul(b, dy, mul(b, s, shifted(b, mul(b, x, rest), 1.0)));
  });
}

// dy*(cdf(x) + x*pdf(x)) with the normal distribution.
static Value geluErfAdjoint(ImplicitLocOpBuilder &b, Value dy, Value x) {
  Value cdf = scaled(b, shifted(b, ErfOp::create(b, scaled(b, x, std::sqrt(0.5))), 1.0), 0.5);
  Value pdf = scaled(b, ExpOp::create(b, scaled(b, mul(b, x, x), -0.5)), 1.0 / std::sqrt(2.0 * M_PI));
  return mul(b, dy, add(b, cdf, mul(b, x, pdf)));
}
// gelu = x*s with s = sigmoid(w), w = 2*sqrt(2/pi)*(x + 0.044715 x^3), so dy*s*(1 + x*(1 - s)*w'): the tanh form
// without its cancellation in the left tail.
static Value geluTanhAdjoint(ImplicitLocOpBuilder &b, Value dy, Value x) {
  const double slope = 2.0 * std::sqrt(2.0 / M_PI), cubic = 0.044715;
  Value square = mul(b, x, x);
  Value s = SigmoidOp::create(b, mul(b, scaled(b, x, slope), shifted(b, scaled(b, square, cubic), 1.0)));
  Value derivative = shifted(b, scaled(b, square, slope * 3.0 * cubic), slope);
  Value rest = sub(b, splat(b, x.getType(), 1.0), s);
  return mul(b, dy, mul(b, s, shifted(b, mul(b, mul(b, x, rest), derivative), 1.0)));
}
// PyTorch gelu (gelu_backward), Hendrycks & Gimpel arXiv 1606.08415.
AdjointUses GeluOp::adjointUses() { return {{0}, {}}; }
Grads GeluOp::buildAdjoint(Adjoint &adjoint) {
  return widened(adjoint, getOperand(), getApproximate() ? geluTanhAdjoint : geluErfAdjoint);
}

//===----------------------------------------------------------------------------===//
// Elementwise, two operands
//===----------------------------------------------------------------------------===//

AdjointUses AddOp::adjointUses() { return {}; }
Grads AddOp::buildAdjoint(Adjoint &adjoint) { return {adjoint.cotangents[0], adjoint.cotangents[0]}; }

AdjointUses SubOp::adjointUses() { return {}; }
Grads SubOp::buildAdjoint(Adjoint &adjoint) {
  return {adjoint.cotangents[0], adjoint.wanted[1] ? neg(adjoint.builder, adjoint.cotangents[0]) : Value()};
}

// PyTorch mul: dy*other.
AdjointUses MulOp::adjointUses() { return {{0, 1}, {}}; }
Grads MulOp::buildAdjoint(Adjoint &adjoint) {
  auto &b = adjoint.builder;
  Value dy = adjoint.cotangents[0];
  return {adjoint.wanted[0] ? mul(b, dy, getRhs()) : Value(), adjoint.wanted[1] ? mul(b, dy, getLhs()) : Value()};
}

// PyTorch div: dy/v and -dy*(u/v)/v, here with u/v taken from the result.
AdjointUses DivOp::adjointUses() { return {{1}, {0}}; }
Grads DivOp::buildAdjoint(Adjoint &adjoint) {
  auto &b = adjoint.builder;
  Value quotient = div(b, widen(b, adjoint.cotangents[0]), widen(b, getRhs()));
  Value rhs = adjoint.wanted[1] ? narrow(b, neg(b, mul(b, quotient, widen(b, getResult()))), getType()) : Value();
  return {adjoint.wanted[0] ? narrow(b, quotient, getType()) : Value(), rhs};
}

// The number behind a splat constant, looking through views and conversions of it.
static std::optional<double> constantNumber(Value value) {
  while (auto *op = value.getDefiningOp()) {
    if (isa<BroadcastOp, ReshapeOp, ConvertOp, TransposeOp, SliceOp>(op)) {
      value = op->getOperand(0);
      continue;
    }
    auto constant = dyn_cast<ConstantOp>(op);
    auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
    if (!elements || !elements.isSplat())
      return std::nullopt;
    if (isa<FloatType>(elements.getElementType()))
      return elements.getSplatValue<APFloat>().convertToDouble();
    return static_cast<double>(elements.getSplatValue<APInt>().getSExtValue());
  }
  return std::nullopt;
}

// p*x^(p-1) for a known number p; null when it is zero everywhere.
static Value powerSlope(ImplicitLocOpBuilder &b, Value x, double p) {
  if (p == 0.0)
    return {};
  if (p == 1.0)
    return splat(b, x.getType(), 1.0);
  if (p == 2.0)
    return scaled(b, x, 2.0);
  if (p == 3.0)
    return scaled(b, mul(b, x, x), 3.0);
  if (p == 0.5)
    return scaled(b, RsqrtOp::create(b, x), 0.5);
  return scaled(b, PowOp::create(b, x, splat(b, x.getType(), p - 1.0)), p);
}

// PyTorch pow_backward_self: 0 where p = 0, else dy*p*x^(p-1).
static Value powerBaseAdjoint(ImplicitLocOpBuilder &b, Value dy, Value x, Value p) {
  Value slope = mul(b, p, PowOp::create(b, x, shifted(b, p, -1.0)));
  return select(b, compare(b, CompareDirection::EQ, p, zerosLike(b, p)), zerosLike(b, dy), mul(b, dy, slope));
}
// PyTorch pow_backward_exponent: 0 where x = 0 and p >= 0, else dy*y*log(x).
static Value powerExponentAdjoint(ImplicitLocOpBuilder &b, Value dy, Value x, Value p, Value y) {
  Value zero = zerosLike(b, x);
  Value flat = AndOp::create(b, compare(b, CompareDirection::EQ, x, zero), compare(b, CompareDirection::GE, p, zero));
  return select(b, flat, zero, mul(b, dy, mul(b, y, LogOp::create(b, x))));
}

// PyTorch pow. A constant exponent needs the base only, and 0^0 or x^1 cost nothing.
AdjointUses PowOp::adjointUses() { return constantNumber(getRhs()) ? AdjointUses{{0}, {}} : AdjointUses{{0, 1}, {0}}; }
Grads PowOp::buildAdjoint(Adjoint &adjoint) {
  auto &b = adjoint.builder;
  Value dy = widen(b, adjoint.cotangents[0]), x = widen(b, getLhs());
  if (std::optional<double> number = constantNumber(getRhs())) {
    Value slope = powerSlope(b, x, *number);
    return {slope ? narrow(b, mul(b, dy, slope), getType()) : Value(), Value()};
  }
  Value p = widen(b, getRhs());
  Value base = adjoint.wanted[0] ? powerBaseAdjoint(b, dy, x, p) : Value();
  Value exponent = adjoint.wanted[1] ? powerExponentAdjoint(b, dy, x, p, widen(b, getResult())) : Value();
  return {base ? narrow(b, base, getType()) : Value(), exponent ? narrow(b, exponent, getType()) : Value()};
}

// PyTorch maximum, minimum: dy to the chosen side, half to each where equal.
static Grads choiceAdjoint(Adjoint &adjoint, Value lhs, Value rhs, CompareDirection lhsLoses,
                           CompareDirection rhsLoses) {
  auto &b = adjoint.builder;
  Value dy = adjoint.cotangents[0], zero = zerosLike(b, dy), half = scaled(b, dy, 0.5);
  Value tie = compare(b, CompareDirection::EQ, lhs, rhs);
  auto side = [&](CompareDirection loses) {
    return select(b, tie, half, select(b, compare(b, loses, lhs, rhs), zero, dy));
  };
  return {adjoint.wanted[0] ? side(lhsLoses) : Value(), adjoint.wanted[1] ? side(rhsLoses) : Value()};
}
AdjointUses MaximumOp::adjointUses() { return {{0, 1}, {}}; }
Grads MaximumOp::buildAdjoint(Adjoint &adjoint) {
  return choiceAdjoint(adjoint, getLhs(), getRhs(), CompareDirection::LT, CompareDirection::GT);
}
AdjointUses MinimumOp::adjointUses() { return {{0, 1}, {}}; }
Grads MinimumOp::buildAdjoint(Adjoint &adjoint) {
  return choiceAdjoint(adjoint, getLhs(), getRhs(), CompareDirection::GT, CompareDirection::LT);
}

// PyTorch where: dy through the taken side.
AdjointUses SelectOp::adjointUses() { return {{0}, {}}; }
Grads SelectOp::buildAdjoint(Adjoint &adjoint) {
  auto &b = adjoint.builder;
  Value dy = adjoint.cotangents[0], zero = zerosLike(b, dy);
  return {Value(), adjoint.wanted[1] ? select(b, getPredicate(), dy, zero) : Value(),
          adjoint.wanted[2] ? select(b, getPredicate(), zero, dy) : Value()};
}

// PyTorch to: the cotangent converted back.
AdjointUses ConvertOp::adjointUses() { return {}; }
Grads ConvertOp::buildAdjoint(Adjoint &adjoint) {
  return {isFloatTensor(getOperand().getType()) ? narrow(adjoint.builder, adjoint.cotangents[0], getOperand().getType())
                                                : Value()};
}

//===----------------------------------------------------------------------------===//
// Views: linear, so nothing of the forward pass is read
//===----------------------------------------------------------------------------===//

namespace plimsoll::graph {
Value sumToOperand(ImplicitLocOpBuilder &builder, Value cotangent, ArrayRef<int64_t> dims, RankedTensorType type) {
  SmallVector<int64_t> repeated;
  for (int64_t d = 0; d < tensorType(cotangent).getRank(); ++d) {
    const int64_t *source = llvm::find(dims, d);
    bool kept = source != dims.end() && type.getDimSize(source - dims.begin()) == tensorType(cotangent).getDimSize(d);
    if (!kept)
      repeated.push_back(d);
  }
  Value sum = repeated.empty() ? cotangent : reduceSum(builder, widen(builder, cotangent), repeated);
  return reshape(builder, narrow(builder, sum, type), type.getShape());
}
} // namespace plimsoll::graph

// PyTorch expand (sum_to_size): sum over the repeated dimensions.
AdjointUses BroadcastOp::adjointUses() { return {}; }
Grads BroadcastOp::buildAdjoint(Adjoint &adjoint) {
  return {sumToOperand(adjoint.builder, adjoint.cotangents[0], getDims(), getOperand().getType())};
}

AdjointUses ReshapeOp::adjointUses() { return {}; }
Grads ReshapeOp::buildAdjoint(Adjoint &adjoint) {
  return {reshape(adjoint.builder, adjoint.cotangents[0], getOperand().getType().getShape())};
}

// PyTorch permute: the inverse permutation.
AdjointUses TransposeOp::adjointUses() { return {}; }
Grads TransposeOp::buildAdjoint(Adjoint &adjoint) {
  SmallVector<int64_t> inverse(getPerm().size());
  for (auto [d, source] : llvm::enumerate(getPerm()))
    inverse[source] = static_cast<int64_t>(d);
  return {transpose(adjoint.builder, adjoint.cotangents[0], inverse)};
}

// StableHLO slice/pad duality: zeros before, between and after the kept elements.
AdjointUses SliceOp::adjointUses() { return {}; }
Grads SliceOp::buildAdjoint(Adjoint &adjoint) {
  auto &b = adjoint.builder;
  RankedTensorType type = getOperand().getType();
  SmallVector<int64_t> high, interior;
  for (auto [d, start] : llvm::enumerate(getStarts())) {
    int64_t size = getType().getDimSize(d), stride = getStrides()[d];
    if (size == 0)
      return {splat(b, type, 0.0)};
    high.push_back(type.getDimSize(d) - start - (size - 1) * stride - 1);
    interior.push_back(stride - 1);
  }
  return {PadOp::create(b, type, adjoint.cotangents[0], getStarts(), high, interior, APFloat(0.0))};
}

//===----------------------------------------------------------------------------===//
// Data movement
//===----------------------------------------------------------------------------===//

AdjointUses CopyOp::adjointUses() { return {}; }
Grads CopyOp::buildAdjoint(Adjoint &adjoint) { return {adjoint.cotangents[0]}; }

// PyTorch cat: each operand's slice.
AdjointUses ConcatOp::adjointUses() { return {}; }
Grads ConcatOp::buildAdjoint(Adjoint &adjoint) {
  Grads grads;
  SmallVector<int64_t> starts(getType().getRank(), 0), strides(getType().getRank(), 1);
  for (auto [index, operand] : llvm::enumerate(getOperands())) {
    bool wanted = adjoint.wanted[index];
    grads.push_back(
        wanted ? SliceOp::create(adjoint.builder, operand.getType(), adjoint.cotangents[0], starts, strides).getResult()
               : Value());
    starts[getAxis()] += tensorType(operand).getDimSize(getAxis());
  }
  return grads;
}

// StableHLO slice/pad duality: the elements at low, low + interior + 1, ...
AdjointUses PadOp::adjointUses() { return {}; }
Grads PadOp::buildAdjoint(Adjoint &adjoint) {
  auto &b = adjoint.builder;
  SmallVector<int64_t> strides;
  for (int64_t interior : getInterior())
    strides.push_back(interior + 1);
  return {SliceOp::create(b, getOperand().getType(), adjoint.cotangents[0], getLow(), strides)};
}

// PyTorch index_select/embedding (embedding_dense_backward): cotangent rows added at their indices.
AdjointUses GatherOp::adjointUses() { return {{1}, {}}; }
Grads GatherOp::buildAdjoint(Adjoint &adjoint) {
  return {ScatterAddOp::create(adjoint.builder, getOperand().getType(), getIndices(), adjoint.cotangents[0], getAxis()),
          Value()};
}
// PyTorch index_add: the cotangent read at the indices.
AdjointUses ScatterAddOp::adjointUses() { return {{0}, {}}; }
Grads ScatterAddOp::buildAdjoint(Adjoint &adjoint) {
  return {Value(),
          GatherOp::create(adjoint.builder, getUpdates().getType(), adjoint.cotangents[0], getIndices(), getAxis())};
}
// PyTorch gather and scatter_add: each the other's adjoint.
AdjointUses GatherElementsOp::adjointUses() { return {{1}, {}}; }
Grads GatherElementsOp::buildAdjoint(Adjoint &adjoint) {
  return {ScatterAddElementsOp::create(adjoint.builder, getOperand().getType(), getIndices(), adjoint.cotangents[0],
                                       getAxis()),
          Value()};
}
AdjointUses ScatterAddElementsOp::adjointUses() { return {{0}, {}}; }
Grads ScatterAddElementsOp::buildAdjoint(Adjoint &adjoint) {
  return {Value(), GatherElementsOp::create(adjoint.builder, getUpdates().getType(), adjoint.cotangents[0],
                                            getIndices(), getAxis())};
}

// PyTorch cumsum (cumsum_backward): the running sum from the other end.
AdjointUses CumsumOp::adjointUses() { return {}; }
Grads CumsumOp::buildAdjoint(Adjoint &adjoint) {
  return {
      CumsumOp::create(adjoint.builder, getType(), adjoint.cotangents[0], getAxis(), getExclusive(), !getReverse())};
}

//===----------------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------------===//

// PyTorch sum: the cotangent repeated.
AdjointUses ReduceSumOp::adjointUses() { return {}; }
Grads ReduceSumOp::buildAdjoint(Adjoint &adjoint) {
  return {broadcastBack(adjoint.builder, adjoint.cotangents[0], getDims(), tensorType(getOperand()).getShape())};
}

// PyTorch amax (scale_grad_by_count): shared evenly between the elements equal to the maximum.
AdjointUses ReduceMaxOp::adjointUses() { return {{0}, {0}}; }
Grads ReduceMaxOp::buildAdjoint(Adjoint &adjoint) {
  auto &b = adjoint.builder;
  ArrayRef<int64_t> shape = tensorType(getOperand()).getShape();
  Value isMax = compare(b, CompareDirection::EQ, getOperand(), broadcastBack(b, getResult(), getDims(), shape));
  Value dy = widen(b, adjoint.cotangents[0]);
  Value count = reduceSum(b, convert(b, isMax, tensorType(dy).getElementType()), getDims());
  Value share = narrow(b, div(b, dy, count), getType());
  Value everywhere = broadcastBack(b, share, getDims(), shape);
  return {select(b, isMax, everywhere, zerosLike(b, everywhere))};
}
