// Activations. Piecewise ones are built from select, and the argument of exp is cut first, so that no side that is not
// taken turns a zero cotangent into NaN; gradients at the joints are PyTorch's.
#include "lib/Frontend/ONNX/Importer.h"

using namespace mlir;
using plimsoll::graph::CompareDirection;

namespace plimsoll::onnx {

/// Starts an activation of one float input; null after reporting.
static Value floatInput(Lowering &lowering) {
  if (lowering.has(0) && lowering.isFloatInput(0))
    return lowering.tensor(0);
  (void)lowering.bad("expected a float input");
  return {};
}
static Value positive(ImplicitLocOpBuilder &b, Value x) {
  return graph::compare(b, CompareDirection::GT, x, constantLike(b, x, 0));
}
static Value scaled(ImplicitLocOpBuilder &b, Value x, double factor) {
  return factor == 1 ? x : graph::MulOp::create(b, x, constantLike(b, x, factor)).getResult();
}
static Value shifted(ImplicitLocOpBuilder &b, Value x, double shift) {
  return shift == 0 ? x : graph::AddOp::create(b, x, constantLike(b, x, shift)).getResult();
}
/// alpha*(exp(x/width) - 1) where x <= 0, x elsewhere.
static Value exponentialUnit(ImplicitLocOpBuilder &b, Value x, double alpha, double width) {
  Value above = positive(b, x), zero = constantLike(b, x, 0);
  Value cut = selectOf(b, above, zero, x);
  Value argument = width == 1 ? cut : graph::DivOp::create(b, cut, constantLike(b, cut, width)).getResult();
  Value low = scaled(b, shifted(b, graph::ExpOp::create(b, argument), -1), alpha);
  return selectOf(b, above, x, low);
}
/// log(1 + e^x), x itself above 20 where they agree to the last bit.
static Value softplus(ImplicitLocOpBuilder &b, Value x) {
  Value large = graph::compare(b, CompareDirection::GT, x, constantLike(b, x, 20));
  Value cut = selectOf(b, large, constantLike(b, x, 0), x);
  return selectOf(b, large, x, graph::Log1pOp::create(b, graph::ExpOp::create(b, cut)));
}
/// y cut to [0, 1], with gradient 0 at both ends.
static Value unitRamp(ImplicitLocOpBuilder &b, Value y) {
  Value zero = constantLike(b, y, 0), one = constantLike(b, y, 1);
  Value low = selectOf(b, graph::compare(b, CompareDirection::LE, y, zero), zero, y);
  return selectOf(b, graph::compare(b, CompareDirection::GE, y, one), one, low);
}

static LogicalResult lowerRelu(Lowering &lowering) {
  Value x = lowering.tensor(0);
  if (lowering.isFloatInput(0))
    return lowering.done(graph::ReluOp::create(lowering.b, x));
  return lowering.done(graph::MaximumOp::create(lowering.b, x, constantLike(lowering.b, x, 0)));
}

static LogicalResult lowerLeakyRelu(Lowering &lowering) {
  Value x = floatInput(lowering);
  if (!x)
    return failure();
  return lowering.done(selectOf(lowering.b, positive(lowering.b, x), x,
                                scaled(lowering.b, x, floatAttribute(lowering.node, "alpha", 0.01))));
}

static LogicalResult lowerPRelu(Lowering &lowering) {
  Value x = floatInput(lowering);
  if (!x)
    return failure();
  auto shape = broadcastShapes(lowering.dims(0), lowering.dims(1));
  if (!shape || ArrayRef<int64_t>(*shape) != shapeOf(x) || lowering.dtype(0) != lowering.dtype(1))
    return lowering.bad("expected slopes that broadcast to the input");
  return lowering.done(selectOf(lowering.b, positive(lowering.b, x), x,
                                graph::MulOp::create(lowering.b, x, lowering.broadcast(1, *shape))));
}

static LogicalResult lowerElu(Lowering &lowering) {
  Value x = floatInput(lowering);
  return x ? lowering.done(exponentialUnit(lowering.b, x, floatAttribute(lowering.node, "alpha", 1), 1)) : failure();
}
static LogicalResult lowerCelu(Lowering &lowering) {
  Value x = floatInput(lowering);
  double alpha = floatAttribute(lowering.node, "alpha", 1);
  return x ? lowering.done(exponentialUnit(lowering.b, x, alpha, alpha)) : failure();
}
static LogicalResult lowerSelu(Lowering &lowering) {
  Value x = floatInput(lowering);
  if (!x)
    return failure();
  double alpha = floatAttribute(lowering.node, "alpha", 1.67326319217681884765625),
         gamma = floatAttribute(lowering.node, "gamma", 1.05070102214813232421875);
  return lowering.done(scaled(lowering.b, exponentialUnit(lowering.b, x, alpha, 1), gamma));
}

static LogicalResult lowerSoftplus(Lowering &lowering) {
  Value x = floatInput(lowering);
  return x ? lowering.done(softplus(lowering.b, x)) : failure();
}
static LogicalResult lowerMish(Lowering &lowering) {
  Value x = floatInput(lowering);
  return x ? lowering.done(
                 graph::MulOp::create(lowering.b, x, graph::TanhOp::create(lowering.b, softplus(lowering.b, x))))
           : failure();
}
static LogicalResult lowerSoftsign(Lowering &lowering) {
  Value x = floatInput(lowering);
  return x ? lowering.done(
                 graph::DivOp::create(lowering.b, x, shifted(lowering.b, graph::AbsOp::create(lowering.b, x), 1)))
           : failure();
}
static LogicalResult lowerHardSigmoid(Lowering &lowering) {
  Value x = floatInput(lowering);
  if (!x)
    return failure();
  Value line = shifted(lowering.b, scaled(lowering.b, x, floatAttribute(lowering.node, "alpha", 0.2)),
                       floatAttribute(lowering.node, "beta", 0.5));
  return lowering.done(unitRamp(lowering.b, line));
}
static LogicalResult lowerHardSwish(Lowering &lowering) {
  Value x = floatInput(lowering);
  if (!x)
    return failure();
  Value ramp = unitRamp(lowering.b, shifted(lowering.b, scaled(lowering.b, x, 1.0 / 6.0), 0.5));
  return lowering.done(graph::MulOp::create(lowering.b, x, ramp));
}
static LogicalResult lowerThresholdedRelu(Lowering &lowering) {
  Value x = floatInput(lowering);
  if (!x)
    return failure();
  Value above = graph::compare(lowering.b, CompareDirection::GT, x,
                               constantLike(lowering.b, x, floatAttribute(lowering.node, "alpha", 1)));
  return lowering.done(selectOf(lowering.b, above, x, constantLike(lowering.b, x, 0)));
}
static LogicalResult lowerShrink(Lowering &lowering) {
  Value x = floatInput(lowering);
  if (!x)
    return failure();
  ImplicitLocOpBuilder &b = lowering.b;
  double lambda = floatAttribute(lowering.node, "lambd", 0.5), bias = floatAttribute(lowering.node, "bias", 0);
  Value above = graph::compare(b, CompareDirection::GT, x, constantLike(b, x, lambda));
  Value below = graph::compare(b, CompareDirection::LT, x, constantLike(b, x, -lambda));
  return lowering.done(
      selectOf(b, above, shifted(b, x, -bias), selectOf(b, below, shifted(b, x, bias), constantLike(b, x, 0))));
}
static LogicalResult lowerGelu(Lowering &lowering) {
  Value x = floatInput(lowering);
  std::string form = textAttribute(lowering.node, "approximate", "none");
  if (!x || (form != "none" && form != "tanh"))
    return x ? lowering.bad("expected approximate to be none or tanh") : failure();
  return lowering.done(graph::GeluOp::create(lowering.b, x.getType(), x, form == "tanh"));
}
static LogicalResult lowerSwish(Lowering &lowering) {
  Value x = floatInput(lowering);
  if (!x)
    return failure();
  double alpha = floatAttribute(lowering.node, "alpha", 1);
  if (alpha == 1)
    return lowering.done(graph::SiluOp::create(lowering.b, x));
  return lowering.done(
      graph::MulOp::create(lowering.b, x, graph::SigmoidOp::create(lowering.b, scaled(lowering.b, x, alpha))));
}

/// One bound of Clip; a ReLU6 (hardtanh) has no gradient at its bounds, a clamp has.
static Value clipped(Lowering &lowering, Value x, size_t input, CompareDirection outside) {
  if (!lowering.has(input))
    return x;
  Value bound = lowering.broadcast(input, shapeOf(x));
  return selectOf(lowering.b, graph::compare(lowering.b, outside, x, bound), bound, x);
}
static LogicalResult lowerClip(Lowering &lowering) {
  for (size_t i = 1; i < 3; ++i)
    if (lowering.has(i) &&
        (productOf(lowering.dims(i)) != 1 || lowering.dims(i).size() > 1 || lowering.dtype(i) != lowering.dtype(0)))
      return lowering.bad("expected scalar bounds of the input's element type");
  Value x = lowering.tensor(0);
  // The dynamo exporter names the node only "n4" but its output after the PyTorch op.
  std::string name = lowering.node.name + " " + lowering.node.outputs[0];
  bool strict = StringRef(name).contains("hardtanh") || StringRef(name).contains("relu6");
  x = clipped(lowering, x, 1, strict ? CompareDirection::LE : CompareDirection::LT);
  return lowering.done(clipped(lowering, x, 2, strict ? CompareDirection::GE : CompareDirection::GT));
}

template <typename Op> static LogicalResult lowerSoftmaxLike(Lowering &lowering) {
  Value x = floatInput(lowering);
  std::optional<int64_t> axis =
      normalAxis(intAttribute(lowering.node, "axis", -1), static_cast<int64_t>(lowering.dims(0).size()));
  if (!x || !axis)
    return x ? lowering.bad("expected an axis of the input") : failure();
  return lowering.done(Op::create(lowering.b, x.getType(), x, *axis));
}

void addActivations(LowerTable &table) {
  table["Relu"] = lowerRelu;
  table["LeakyRelu"] = lowerLeakyRelu;
  table["PRelu"] = lowerPRelu;
  table["Elu"] = lowerElu;
  table["Celu"] = lowerCelu;
  table["Selu"] = lowerSelu;
  table["Softplus"] = lowerSoftplus;
  table["Mish"] = lowerMish;
  table["Softsign"] = lowerSoftsign;
  table["HardSigmoid"] = lowerHardSigmoid;
  table["HardSwish"] = lowerHardSwish;
  table["ThresholdedRelu"] = lowerThresholdedRelu;
  table["Shrink"] = lowerShrink;
  table["Gelu"] = lowerGelu;
  table["Swish"] = lowerSwish;
  table["Clip"] = lowerClip;
  table["Softmax"] = lowerSoftmaxLike<graph::SoftmaxOp>;
  table["LogSoftmax"] = lowerSoftmaxLike<graph::LogSoftmaxOp>;
}

} // namespace plimsoll::onnx
