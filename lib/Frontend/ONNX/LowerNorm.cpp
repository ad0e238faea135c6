// Normalisations: the graph dialect's statistics ops plus an explicit affine part, and BatchNorm's running statistics.
#include "lib/Frontend/ONNX/Importer.h"

using namespace mlir;

namespace plimsoll::onnx {

/// Statistics are f32, or f64 for f64 values.
static Type statisticsType(Value x, ArrayRef<int64_t> shape) {
  Type element = graph::tensorType(x).getElementType();
  return RankedTensorType::get(shape, element.isF64() ? element : Type(Float32Type::get(x.getContext())));
}

/// Whether input `i` is absent or a known constant that the affine part need not apply.
static bool isNeutral(const Lowering &lowering, size_t i, double neutral) {
  const HostTensor *known = lowering.host(i);
  return !lowering.has(i) || (known && (known->splat || known->count() == 1) && known->real(0) == neutral);
}

/// y*scale + bias with inputs that broadcast by numpy's rules; null when they do not fit.
static Value affine(Lowering &lowering, Value y, size_t scale, size_t bias) {
  ImplicitLocOpBuilder &b = lowering.b;
  Dims shape(shapeOf(y));
  for (size_t i : {scale, bias}) {
    if (isNeutral(lowering, i, i == scale ? 1 : 0))
      continue;
    auto fits = broadcastShapes(shape, lowering.dims(i));
    if (!fits || ArrayRef<int64_t>(*fits) != ArrayRef<int64_t>(shape) || lowering.dtype(i) != lowering.dtype(0))
      return {};
    Value spread = lowering.broadcast(i, shape);
    y = i == scale ? graph::MulOp::create(b, y, spread).getResult() : graph::AddOp::create(b, y, spread).getResult();
  }
  return y;
}

/// y*scale + bias with (C) inputs along dimension 1; null when they do not fit.
static Value channelAffine(Lowering &lowering, Value y, size_t scale, size_t bias) {
  ImplicitLocOpBuilder &b = lowering.b;
  Dims shape(shapeOf(y));
  for (size_t i : {scale, bias}) {
    if (isNeutral(lowering, i, i == scale ? 1 : 0))
      continue;
    if (lowering.dims(i) != Dims{shape[1]} || !lowering.isFloatInput(i))
      return {};
    Value vector = graph::convert(b, lowering.tensor(i), graph::tensorType(y).getElementType());
    Value spread = alongAxis(b, vector, 1, shape);
    y = i == scale ? graph::MulOp::create(b, y, spread).getResult() : graph::AddOp::create(b, y, spread).getResult();
  }
  return y;
}

static graph::LayerNormOp normalized(ImplicitLocOpBuilder &b, Value x, int64_t axis, double epsilon) {
  Type statistics = statisticsType(x, shapeOf(x).take_front(static_cast<size_t>(axis)));
  return graph::LayerNormOp::create(b, x.getType(), statistics, statistics, x, b.getI64IntegerAttr(axis),
                                    b.getF64FloatAttr(epsilon));
}

static LogicalResult lowerLayerNorm(Lowering &lowering) {
  ImplicitLocOpBuilder &b = lowering.b;
  Dims shape = lowering.dims(0);
  auto axis = normalAxis(intAttribute(lowering.node, "axis", -1), static_cast<int64_t>(shape.size()));
  if (!axis || !lowering.isFloatInput(0))
    return lowering.bad("expected a float input and an axis of it");
  auto norm = normalized(b, lowering.tensor(0), *axis, floatAttribute(lowering.node, "epsilon", 1e-5));
  Value y = affine(lowering, norm.getResult(), 1, 2);
  if (!y)
    return lowering.bad("expected scale and bias that broadcast to the input");
  Dims kept(shape);
  std::fill(kept.begin() + *axis, kept.end(), 1);
  for (size_t i : {size_t(1), size_t(2)})
    if (lowering.wants(i) &&
        failed(lowering.done(i, graph::reshape(b, i == 1 ? norm.getMean() : norm.getRstd(), kept))))
      return failure();
  return lowering.done(y);
}

static LogicalResult lowerRmsNorm(Lowering &lowering) {
  ImplicitLocOpBuilder &b = lowering.b;
  Dims shape = lowering.dims(0);
  auto axis = normalAxis(intAttribute(lowering.node, "axis", -1), static_cast<int64_t>(shape.size()));
  if (!axis || !lowering.isFloatInput(0))
    return lowering.bad("expected a float input and an axis of it");
  Value x = lowering.tensor(0);
  Type statistics = statisticsType(x, ArrayRef<int64_t>(shape).take_front(static_cast<size_t>(*axis)));
  auto norm = graph::RmsNormOp::create(b, x.getType(), statistics, x, b.getI64IntegerAttr(*axis),
                                       b.getF64FloatAttr(floatAttribute(lowering.node, "epsilon", 1e-5)));
  Value y = affine(lowering, norm.getResult(), 1, lowering.inputs());
  return y ? lowering.done(y) : lowering.bad("expected a scale that broadcasts to the input");
}

/// Normalises (N, G, everything else) rows of x (N, C, s...) by reshape and layer_norm.
static Value groupNormalized(ImplicitLocOpBuilder &b, Value x, int64_t groups, double epsilon) {
  Dims shape(shapeOf(x));
  int64_t rows = shape[0] * groups;
  Value flat = graph::reshape(b, x, {rows, productOf(shape) / rows});
  return graph::reshape(b, normalized(b, flat, 1, epsilon).getResult(), shape);
}

static LogicalResult lowerInstanceNorm(Lowering &lowering) {
  Dims shape = lowering.dims(0);
  if (shape.size() < 3 || !lowering.isFloatInput(0))
    return lowering.bad("expected a float input (N, C, s...)");
  Value y = groupNormalized(lowering.b, lowering.tensor(0), shape[1], floatAttribute(lowering.node, "epsilon", 1e-5));
  y = channelAffine(lowering, y, 1, 2);
  return y ? lowering.done(y) : lowering.bad("expected scale and bias of one value per channel");
}

/// Scale and bias are per channel from opset 21 on and per group before.
static LogicalResult lowerGroupNorm(Lowering &lowering) {
  ImplicitLocOpBuilder &b = lowering.b;
  Dims shape = lowering.dims(0);
  int64_t groups = intAttribute(lowering.node, "num_groups", 0);
  if (shape.size() < 3 || !lowering.isFloatInput(0) || groups < 1 || shape[1] % groups != 0)
    return lowering.bad("expected a float input (N, C, s...) and num_groups that divides C");
  Value y = groupNormalized(b, lowering.tensor(0), groups, floatAttribute(lowering.node, "epsilon", 1e-5));
  if (lowering.importer.model.opset >= 21 || lowering.dims(1) == Dims{shape[1]}) {
    y = channelAffine(lowering, y, 1, 2);
    return y ? lowering.done(y) : lowering.bad("expected scale and bias of one value per channel");
  }
  y = graph::reshape(b, y, {shape[0], groups, productOf(shape) / (shape[0] * groups)});
  y = channelAffine(lowering, y, 1, 2);
  return y ? lowering.done(graph::reshape(b, y, shape))
           : lowering.bad("expected scale and bias of one value per group");
}

/// running = momentum*running + (1 - momentum)*batch, written back once.
static Value updateRunning(ImplicitLocOpBuilder &b, const std::string &variable, Value batch, Type type,
                           double momentum) {
  Value old = graph::ReadOp::create(b, type, variable);
  batch = graph::convert(b, batch, graph::tensorType(old).getElementType());
  Value kept = graph::MulOp::create(b, old, constantLike(b, old, momentum));
  Value added = graph::MulOp::create(b, batch, constantLike(b, batch, 1 - momentum));
  Value next = graph::AddOp::create(b, kept, added);
  graph::WriteOp::create(b, variable, next);
  return next;
}

static bool hasExplicitTraining(const Model &model) {
  return llvm::any_of(model.nodes, [](const Node &node) {
    return node.opType == "BatchNormalization" && intAttribute(node, "training_mode", 0) == 1;
  });
}

/// Whether this node normalises with batch statistics: the recipe decides for plain exports; in a model where some
/// nodes say training_mode = 1 the others are frozen.
static bool trainsStatistics(const Lowering &lowering) {
  if (!lowering.importer.options.trainBatchNorm)
    return false;
  return intAttribute(lowering.node, "training_mode", 0) == 1 || !hasExplicitTraining(lowering.importer.model);
}

static LogicalResult lowerFrozenBatchNorm(Lowering &lowering) {
  ImplicitLocOpBuilder &b = lowering.b;
  Value x = lowering.tensor(0);
  Type element = graph::tensorType(x).getElementType();
  auto statistic = [&](size_t i) -> Value {
    std::string variable = lowering.importer.modelState(lowering.node.inputs[i]);
    Value read =
        variable.empty()
            ? lowering.tensor(i)
            : graph::ReadOp::create(
                  b, RankedTensorType::get(lowering.dims(i), elementType(*b.getContext(), lowering.dtype(i))), variable)
                  .getResult();
    return read;
  };
  Value mean = statistic(3), variance = statistic(4);
  Value shifted =
      graph::AddOp::create(b, variance, constantLike(b, variance, floatAttribute(lowering.node, "epsilon", 1e-5)));
  Value rstd = graph::RsqrtOp::create(b, shifted);
  Value centred = graph::SubOp::create(b, x, alongAxis(b, graph::convert(b, mean, element), 1, shapeOf(x)));
  Value y = graph::MulOp::create(b, centred, alongAxis(b, graph::convert(b, rstd, element), 1, shapeOf(x)));
  y = channelAffine(lowering, y, 1, 2);
  return y ? lowering.done(y) : lowering.bad("expected scale and bias of one value per channel");
}

static LogicalResult lowerTrainingBatchNorm(Lowering &lowering) {
  ImplicitLocOpBuilder &b = lowering.b;
  const Node &node = lowering.node;
  Dims shape = lowering.dims(0);
  std::string meanName = lowering.importer.modelState(node.inputs[3]),
              varianceName = lowering.importer.modelState(node.inputs[4]);
  if (meanName.empty() || varianceName.empty())
    return lowering.unsupported("its running statistics are not initializers",
                                "export with track_running_stats=True, or freeze BatchNorm");
  Value x = lowering.tensor(0);
  Type statistics = statisticsType(x, {shape[1]});
  auto context = b.getContext();
  auto norm = graph::BatchNormOp::create(
      b, x.getType(), statistics, statistics, x, b.getF64FloatAttr(floatAttribute(node, "epsilon", 1e-5)),
      FlatSymbolRefAttr::get(context, meanName), FlatSymbolRefAttr::get(context, varianceName));
  Value y = channelAffine(lowering, norm.getResult(), 1, 2);
  if (!y)
    return lowering.bad("expected scale and bias of one value per channel");
  double momentum = floatAttribute(node, "momentum", 0.9);
  int64_t count = productOf(shape) / shape[1];
  Value variance = norm.getVariance();
  bool unbiased =
      lowering.importer.model.producer == "pytorch" && intAttribute(node, "training_mode", 0) != 1 && count > 1;
  if (unbiased)
    variance = graph::MulOp::create(
        b, variance, constantLike(b, variance, static_cast<double>(count) / static_cast<double>(count - 1)));
  auto stateType = [&](size_t i) {
    return RankedTensorType::get(lowering.dims(i), elementType(*context, lowering.dtype(i)));
  };
  Value newMean = updateRunning(b, meanName, norm.getMean(), stateType(3), momentum);
  Value newVariance = updateRunning(b, varianceName, variance, stateType(4), momentum);
  if ((lowering.wants(1) && failed(lowering.done(1, newMean))) ||
      (lowering.wants(2) && failed(lowering.done(2, newVariance))))
    return failure();
  return lowering.done(y);
}

static LogicalResult lowerBatchNorm(Lowering &lowering) {
  Dims shape = lowering.dims(0);
  for (size_t i = 1; i < 5; ++i)
    if (shape.size() < 2 || !lowering.isFloatInput(0) || !lowering.has(i) || lowering.dims(i) != Dims{shape[1]} ||
        !lowering.isFloatInput(i))
      return lowering.bad(
          "expected a float input of rank >= 2 and scale, bias, running mean and variance of one value per channel");
  return trainsStatistics(lowering) ? lowerTrainingBatchNorm(lowering) : lowerFrozenBatchNorm(lowering);
}

/// x / (bias + alpha*mean of squares over `size` neighbouring channels)^beta; the window mean is an average pool that
/// counts pads.
static LogicalResult lowerLocalResponseNorm(Lowering &lowering) {
  ImplicitLocOpBuilder &b = lowering.b;
  Dims shape = lowering.dims(0);
  int64_t size = intAttribute(lowering.node, "size", 0);
  if (shape.size() < 3 || !lowering.isFloatInput(0) || size < 1 || size > 2 * shape[1])
    return lowering.bad("expected a float input (N, C, s...) and a window size");
  Value x = lowering.tensor(0);
  Value square = graph::reshape(b, graph::MulOp::create(b, x, x),
                                {shape[0], 1, shape[1], productOf(shape) / (shape[0] * shape[1])});
  Dims kernel{size, 1}, ones{1, 1}, pads{(size - 1) / 2, 0, size - 1 - (size - 1) / 2, 0};
  Value mean = graph::AvgPoolOp::create(b, square.getType(), square, kernel, ones, pads, ones, true);
  mean = graph::reshape(b, mean, shape);
  Value scaled = graph::MulOp::create(b, mean, constantLike(b, mean, floatAttribute(lowering.node, "alpha", 1e-4)));
  Value base = graph::AddOp::create(b, scaled, constantLike(b, scaled, floatAttribute(lowering.node, "bias", 1)));
  Value factor = graph::PowOp::create(b, base, constantLike(b, base, -floatAttribute(lowering.node, "beta", 0.75)));
  return lowering.done(graph::MulOp::create(b, x, factor));
}

void addNormalization(LowerTable &table) {
  table["LayerNormalization"] = lowerLayerNorm;
  table["RMSNormalization"] = lowerRmsNorm;
  table["SimplifiedLayerNormalization"] = lowerRmsNorm;
  table["InstanceNormalization"] = lowerInstanceNorm;
  table["GroupNormalization"] = lowerGroupNorm;
  table["BatchNormalization"] = lowerBatchNorm;
  table["LRN"] = lowerLocalResponseNorm;
}

} // namespace plimsoll::onnx
