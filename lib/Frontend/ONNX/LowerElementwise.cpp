// Elementwise nodes: arithmetic with numpy broadcasting made explicit, comparisons, selection, conversion.
#include "lib/Frontend/ONNX/Importer.h"

using namespace mlir;
using plimsoll::graph::CompareDirection;

namespace plimsoll::onnx {

template <typename Op> static LogicalResult lowerUnary(Lowering &lowering) {
  if (!lowering.isFloatInput(0))
    return lowering.bad("expected a float input");
  return lowering.done(Op::create(lowering.b, lowering.tensor(0)));
}
template <typename Op> static LogicalResult lowerUnaryNumber(Lowering &lowering) {
  return lowering.done(Op::create(lowering.b, lowering.tensor(0)));
}

/// Both inputs at the broadcast shape; false when types or shapes do not fit.
static bool broadcastPair(Lowering &lowering, Value &lhs, Value &rhs, size_t first = 0) {
  if (lowering.inputs() < first + 2 || lowering.dtype(first) != lowering.dtype(first + 1))
    return false;
  auto shape = broadcastShapes(lowering.dims(first), lowering.dims(first + 1));
  if (!shape || !elementCount(*shape))
    return false;
  lhs = lowering.broadcast(first, *shape);
  rhs = lowering.broadcast(first + 1, *shape);
  return lhs && rhs;
}

static constexpr const char *pairExpected = "expected two inputs of one element type whose shapes broadcast";

template <typename Op> static LogicalResult lowerBinary(Lowering &lowering) {
  Value lhs, rhs;
  if (!broadcastPair(lowering, lhs, rhs))
    return lowering.bad(pairExpected);
  return lowering.done(Op::create(lowering.b, lhs, rhs));
}

template <typename Op> static LogicalResult lowerLogic(Lowering &lowering) {
  if (lowering.dtype(0) != DType::Bool)
    return lowering.bad("expected boolean inputs");
  return lowerBinary<Op>(lowering);
}

/// Sum, Max, Min and Mean over any number of inputs.
template <typename Op> static Value foldAll(Lowering &lowering) {
  std::vector<int64_t> shape;
  for (size_t i = 0; i < lowering.inputs(); ++i) {
    auto wider = broadcastShapes(shape, lowering.dims(i));
    if (!wider || !elementCount(*wider) || lowering.dtype(i) != lowering.dtype(0))
      return {};
    shape = *wider;
  }
  Value total;
  for (size_t i = 0; i < lowering.inputs(); ++i) {
    Value next = lowering.broadcast(i, shape);
    total = total ? Op::create(lowering.b, total, next).getResult() : next;
  }
  return total;
}
template <typename Op> static LogicalResult lowerVariadic(Lowering &lowering) {
  Value total = foldAll<Op>(lowering);
  return total ? lowering.done(total) : lowering.bad(pairExpected);
}
static LogicalResult lowerMean(Lowering &lowering) {
  Value total = foldAll<graph::AddOp>(lowering);
  if (!total || !lowering.isFloatInput(0))
    return lowering.bad(pairExpected);
  return lowering.done(
      graph::DivOp::create(lowering.b, total, constantLike(lowering.b, total, static_cast<double>(lowering.inputs()))));
}

template <CompareDirection direction> static LogicalResult lowerCompare(Lowering &lowering) {
  Value lhs, rhs;
  if (!broadcastPair(lowering, lhs, rhs))
    return lowering.bad(pairExpected);
  return lowering.done(graph::compare(lowering.b, direction, lhs, rhs));
}

/// x^y where y may have another element type; whole constants become multiplications, so that negative x keep a
/// gradient.
static LogicalResult lowerPow(Lowering &lowering) {
  ImplicitLocOpBuilder &b = lowering.b;
  auto shape = broadcastShapes(lowering.dims(0), lowering.dims(1));
  if (!shape || !elementCount(*shape))
    return lowering.bad(pairExpected);
  const HostTensor *exponent = lowering.host(1);
  bool splat = exponent && (exponent->splat || exponent->count() == 1);
  double power = splat ? exponent->real(0) : 0;
  Value x = lowering.broadcast(0, *shape);
  if (splat && (power == 2 || power == 3)) {
    Value square = graph::MulOp::create(b, x, x);
    return lowering.done(power == 2 ? square : graph::MulOp::create(b, square, x).getResult());
  }
  if (splat && power == 1)
    return lowering.done(x);
  if (!lowering.isFloatInput(0))
    return lowering.unsupported("integer powers other than 1, 2 and 3", "compute them in floating point");
  if (splat && power == 0.5)
    return lowering.done(graph::SqrtOp::create(b, x));
  if (splat && power == -0.5)
    return lowering.done(graph::RsqrtOp::create(b, x));
  if (splat && power == -1)
    return lowering.done(graph::ReciprocalOp::create(b, x));
  Value y = graph::convert(b, lowering.broadcast(1, *shape), graph::tensorType(x).getElementType());
  return lowering.done(graph::PowOp::create(b, x, y));
}

/// Float: x - y*floor(x/y) (or truncated, fmod=1). Integer: the remainder moved to the divisor's sign.
static LogicalResult lowerMod(Lowering &lowering) {
  ImplicitLocOpBuilder &b = lowering.b;
  Value x, y;
  if (!broadcastPair(lowering, x, y))
    return lowering.bad(pairExpected);
  Value quotient = graph::DivOp::create(b, x, y);
  bool truncated = intAttribute(lowering.node, "fmod", 0) == 1;
  if (lowering.isFloatInput(0)) {
    Value whole = truncated ? graph::MulOp::create(b, graph::SignOp::create(b, quotient),
                                                   graph::FloorOp::create(b, graph::AbsOp::create(b, quotient)))
                                  .getResult()
                            : graph::FloorOp::create(b, quotient).getResult();
    return lowering.done(graph::SubOp::create(b, x, graph::MulOp::create(b, whole, y)));
  }
  Value rest = graph::SubOp::create(b, x, graph::MulOp::create(b, quotient, y)), zero = constantLike(b, rest, 0);
  if (truncated)
    return lowering.done(rest);
  Value signs =
      graph::compare(b, CompareDirection::LT,
                     graph::MulOp::create(b, graph::SignOp::create(b, rest), graph::SignOp::create(b, y)), zero);
  return lowering.done(selectOf(b, signs, graph::AddOp::create(b, rest, y), rest));
}

static LogicalResult lowerWhere(Lowering &lowering) {
  if (lowering.inputs() != 3 || lowering.dtype(0) != DType::Bool || lowering.dtype(1) != lowering.dtype(2))
    return lowering.bad("expected a boolean condition and two inputs of one element type");
  auto shape = broadcastShapes(lowering.dims(0), lowering.dims(1));
  if (shape)
    shape = broadcastShapes(*shape, lowering.dims(2));
  if (!shape || !elementCount(*shape))
    return lowering.bad(pairExpected);
  Value condition = lowering.broadcast(0, *shape);
  Value onTrue = lowering.broadcast(1, *shape), onFalse = lowering.broadcast(2, *shape);
  return lowering.done(selectOf(lowering.b, condition, onTrue, onFalse));
}

static void keepLossWeight(Lowering &lowering) {
  auto &weights = lowering.importer.lossWeights;
  for (const std::string &input : lowering.node.inputs)
    if (weights.count(input) && lowering.wants(0))
      weights[lowering.node.outputs[0]] = weights[input];
}

static LogicalResult convertTo(Lowering &lowering, DType to) {
  Type element = elementType(*lowering.b.getContext(), to);
  Value x = lowering.tensor(0);
  if (!element || !x)
    return lowering.unsupported("conversion to " + dtypeName(to), "use f16, bf16, f32, f64, bool or i8 to i64");
  keepLossWeight(lowering);
  return lowering.done(graph::convert(lowering.b, x, element));
}
static LogicalResult lowerCast(Lowering &lowering) {
  return convertTo(lowering, static_cast<DType>(intAttribute(lowering.node, "to", 0)));
}
static LogicalResult lowerCastLike(Lowering &lowering) { return convertTo(lowering, lowering.dtype(1)); }

static LogicalResult lowerCeil(Lowering &lowering) {
  if (!lowering.isFloatInput(0))
    return lowering.bad("expected a float input");
  ImplicitLocOpBuilder &b = lowering.b;
  return lowering.done(graph::NegOp::create(b, graph::FloorOp::create(b, graph::NegOp::create(b, lowering.tensor(0)))));
}

/// Half to even: floor(x + 1/2), one less where that is a tie and odd.
static LogicalResult lowerRound(Lowering &lowering) {
  if (!lowering.isFloatInput(0))
    return lowering.bad("expected a float input");
  ImplicitLocOpBuilder &b = lowering.b;
  Value x = lowering.tensor(0), half = constantLike(b, x, 0.5), one = constantLike(b, x, 1),
        zero = constantLike(b, x, 0);
  Value down = graph::FloorOp::create(b, x), rest = graph::SubOp::create(b, x, down);
  Value halved = graph::MulOp::create(b, down, half);
  Value odd = graph::compare(b, CompareDirection::NE, halved, graph::FloorOp::create(b, halved));
  Value tieUp = graph::AndOp::create(b, graph::compare(b, CompareDirection::EQ, rest, half), odd);
  Value up = graph::OrOp::create(b, graph::compare(b, CompareDirection::GT, rest, half), tieUp);
  return lowering.done(graph::AddOp::create(b, down, selectOf(b, up, one, zero)));
}

static LogicalResult lowerTan(Lowering &lowering) {
  if (!lowering.isFloatInput(0))
    return lowering.bad("expected a float input");
  ImplicitLocOpBuilder &b = lowering.b;
  Value x = lowering.tensor(0);
  return lowering.done(graph::DivOp::create(b, graph::SinOp::create(b, x), graph::CosOp::create(b, x)));
}

static LogicalResult lowerIsNan(Lowering &lowering) {
  if (!lowering.isFloatInput(0))
    return lowering.bad("expected a float input");
  Value x = lowering.tensor(0);
  return lowering.done(
      graph::IsNanOp::create(lowering.b, RankedTensorType::get(shapeOf(x), lowering.b.getI1Type()), x));
}

static LogicalResult lowerIsInf(Lowering &lowering) {
  if (!lowering.isFloatInput(0))
    return lowering.bad("expected a float input");
  ImplicitLocOpBuilder &b = lowering.b;
  Value x = lowering.tensor(0), infinity = constantLike(b, x, HUGE_VAL);
  bool positive = intAttribute(lowering.node, "detect_positive", 1) != 0,
       negative = intAttribute(lowering.node, "detect_negative", 1) != 0;
  Value tested = positive && negative ? graph::AbsOp::create(b, x).getResult()
                 : negative           ? graph::NegOp::create(b, x).getResult()
                                      : x;
  return lowering.done(
      graph::compare(b, positive || negative ? CompareDirection::EQ : CompareDirection::GT, tested, infinity));
}

template <typename Op>
static LogicalResult lowerScaled(Lowering &lowering) { // keeps the loss weight through constant factors
  if (lowering.host(0) || lowering.host(1))
    keepLossWeight(lowering);
  return lowerBinary<Op>(lowering);
}

void addElementwise(LowerTable &table) {
  table["Neg"] = lowerUnaryNumber<graph::NegOp>;
  table["Abs"] = lowerUnaryNumber<graph::AbsOp>;
  table["Sign"] = lowerUnaryNumber<graph::SignOp>;
  table["Floor"] = lowerUnary<graph::FloorOp>;
  table["Exp"] = lowerUnary<graph::ExpOp>;
  table["Log"] = lowerUnary<graph::LogOp>;
  table["Sqrt"] = lowerUnary<graph::SqrtOp>;
  table["Reciprocal"] = lowerUnary<graph::ReciprocalOp>;
  table["Sin"] = lowerUnary<graph::SinOp>;
  table["Cos"] = lowerUnary<graph::CosOp>;
  table["Tanh"] = lowerUnary<graph::TanhOp>;
  table["Erf"] = lowerUnary<graph::ErfOp>;
  table["Sigmoid"] = lowerUnary<graph::SigmoidOp>;
  table["Not"] = lowerUnaryNumber<graph::NotOp>;
  table["Add"] = lowerBinary<graph::AddOp>;
  table["Sub"] = lowerBinary<graph::SubOp>;
  table["Mul"] = lowerScaled<graph::MulOp>;
  table["Div"] = lowerScaled<graph::DivOp>;
  table["And"] = lowerLogic<graph::AndOp>;
  table["Or"] = lowerLogic<graph::OrOp>;
  table["Xor"] = lowerCompare<CompareDirection::NE>;
  table["Sum"] = lowerVariadic<graph::AddOp>;
  table["Max"] = lowerVariadic<graph::MaximumOp>;
  table["Min"] = lowerVariadic<graph::MinimumOp>;
  table["Mean"] = lowerMean;
  table["Equal"] = lowerCompare<CompareDirection::EQ>;
  table["Less"] = lowerCompare<CompareDirection::LT>;
  table["LessOrEqual"] = lowerCompare<CompareDirection::LE>;
  table["Greater"] = lowerCompare<CompareDirection::GT>;
  table["GreaterOrEqual"] = lowerCompare<CompareDirection::GE>;
  table["Pow"] = lowerPow;
  table["Mod"] = lowerMod;
  table["Where"] = lowerWhere;
  table["Cast"] = lowerCast;
  table["CastLike"] = lowerCastLike;
  table["Ceil"] = lowerCeil;
  table["Round"] = lowerRound;
  table["Tan"] = lowerTan;
  table["IsNaN"] = lowerIsNan;
  table["IsInf"] = lowerIsInf;
}

} // namespace plimsoll::onnx
