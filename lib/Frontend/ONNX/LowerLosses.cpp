// Classification losses and dropout.
#include "lib/Frontend/ONNX/LossOps.h"

using namespace mlir;
using plimsoll::graph::CompareDirection;

namespace plimsoll::onnx {

Value classesLast(ImplicitLocOpBuilder &b, Value value, int64_t classAxis) {
  ArrayRef<int64_t> shape = shapeOf(value);
  int64_t rank = static_cast<int64_t>(shape.size()), classes = shape[static_cast<size_t>(classAxis)];
  Dims perm;
  for (int64_t d = 0; d < rank; ++d)
    if (d != classAxis)
      perm.push_back(d);
  perm.push_back(classAxis);
  return graph::reshape(b, graph::transpose(b, value, perm), {productOf(shape) / classes, classes});
}

/// Negated log-probability of each row's label; rows that are not `counted` look up class 0 and are masked afterwards.
static Value pickedLosses(ImplicitLocOpBuilder &b, Value logProbabilities, Value labels, Value counted) {
  Value safe = selectOf(b, counted, labels, constantLike(b, labels, 0));
  int64_t rows = shapeOf(labels)[0];
  Value column = graph::reshape(b, safe, {rows, 1});
  Value picked = graph::GatherElementsOp::create(b, graph::tensorLike(logProbabilities.getType(), {rows, 1}),
                                                 logProbabilities, column, 1);
  Value losses = graph::NegOp::create(b, graph::reshape(b, picked, {rows}));
  return selectOf(b, counted, losses, constantLike(b, losses, 0));
}

/// Per-row weights: 1 or the label's class weight, 0 where ignored.
static Value rowWeights(ImplicitLocOpBuilder &b, const ClassLoss &loss, Value labels, Value counted, Value losses) {
  if (!loss.classWeights)
    return selectOf(b, counted, constantLike(b, losses, 1), constantLike(b, losses, 0));
  Value safe = selectOf(b, counted, labels, constantLike(b, labels, 0));
  Value picked = graph::GatherOp::create(b, graph::tensorLike(loss.classWeights.getType(), shapeOf(labels)),
                                         loss.classWeights, safe, 0);
  return selectOf(b, counted, picked, constantLike(b, picked, 0));
}

static Value rowLosses(ImplicitLocOpBuilder &b, const ClassLoss &loss, Value labels, Value counted) {
  Value scores = classesLast(b, loss.scores, loss.classAxis);
  if (loss.scoresAreLogProbabilities)
    return pickedLosses(b, scores, labels, counted);
  Type rows = graph::tensorLike(scores.getType(), shapeOf(labels));
  return graph::CrossEntropyOp::create(b, rows, rows, scores, labels, loss.ignoreIndex).getLosses();
}

/// The labels, each looked up in 0..classes-1: a look-up gives a class back as it is and faults, naming the op, on what
/// is none, where the losses would silently take any number. A negative label is moved down by `classes`, for look-ups
/// count those from the end.
static Value checkedLabels(ImplicitLocOpBuilder &b, Value labels, int64_t classes, int64_t ignoreIndex) {
  Value zero = constantLike(b, labels, 0);
  Value counted =
      graph::compare(b, CompareDirection::NE, labels, constantLike(b, labels, static_cast<double>(ignoreIndex)));
  Value safe = selectOf(b, counted, labels, zero);
  Value below = graph::SubOp::create(b, safe, constantLike(b, labels, static_cast<double>(classes)));
  Value index = selectOf(b, graph::compare(b, CompareDirection::LT, safe, zero), below, safe);
  Value table = graph::IotaOp::create(b, graph::tensorLike(labels.getType(), {classes}), 0);
  return selectOf(b, counted, graph::GatherOp::create(b, labels.getType(), table, index, 0), labels);
}

Value classLoss(ImplicitLocOpBuilder &b, const ClassLoss &loss, Value &weight) {
  ArrayRef<int64_t> labelShape = shapeOf(loss.labels);
  int64_t classes = shapeOf(loss.scores)[static_cast<size_t>(loss.classAxis)];
  Value labels = checkedLabels(b, graph::reshape(b, loss.labels, {productOf(labelShape)}), classes, loss.ignoreIndex);
  Value counted =
      graph::compare(b, CompareDirection::NE, labels, constantLike(b, labels, static_cast<double>(loss.ignoreIndex)));
  Value losses = rowLosses(b, loss, labels, counted);
  Value weights = rowWeights(b, loss, labels, counted, losses);
  if (loss.classWeights)
    losses = graph::MulOp::create(b, losses, weights);
  if (loss.reduction == LossReduction::None)
    return graph::reshape(b, losses, labelShape);
  Value sum = graph::reduceSum(b, losses, {0});
  if (loss.reduction == LossReduction::Sum)
    return sum;
  // The weight is what counted, 0 when nothing did; only the divisor is guarded, so that an empty batch has loss 0.
  weight = graph::reduceSum(b, weights, {0});
  Value zero = constantLike(b, weight, 0), one = constantLike(b, weight, 1);
  return graph::DivOp::create(b, sum, selectOf(b, graph::compare(b, CompareDirection::EQ, weight, zero), one, weight));
}

Value meanCrossEntropy(ImplicitLocOpBuilder &b, Value logits, Value labels, int64_t classAxis, int64_t ignoreIndex,
                       Value &weight) {
  ClassLoss loss;
  loss.scores = graph::convert(b, logits, b.getF32Type());
  loss.labels = labels;
  loss.classAxis = classAxis;
  loss.ignoreIndex = ignoreIndex;
  return classLoss(b, loss, weight);
}

Value meanSquaredError(ImplicitLocOpBuilder &b, Value output, Value target, Value &weight) {
  Value difference = graph::SubOp::create(b, graph::convert(b, output, b.getF32Type()), target);
  Value square = graph::MulOp::create(b, difference, difference);
  Dims all;
  for (int64_t d = 0; d < static_cast<int64_t>(shapeOf(square).size()); ++d)
    all.push_back(d);
  Value mean = meanOf(b, square, all);
  weight = constantLike(b, mean, static_cast<double>(productOf(shapeOf(square))));
  return mean;
}

static std::optional<LossReduction> reductionOf(const Node &node) {
  std::string text = textAttribute(node, "reduction", "mean");
  if (text == "none")
    return LossReduction::None;
  if (text == "sum")
    return LossReduction::Sum;
  return text == "mean" ? std::optional(LossReduction::Mean) : std::nullopt;
}

/// Labels must be the scores' shape without dimension 1, and class weights (C).
static bool lossFits(Lowering &lowering) {
  Dims scores = lowering.dims(0), labels = lowering.dims(1);
  if (scores.size() < 2 || !lowering.isFloatInput(0))
    return false;
  int64_t classes = scores[1];
  scores.erase(scores.begin() + 1);
  bool labelsAreInts = lowering.dtype(1) == DType::I64 || lowering.dtype(1) == DType::I32;
  return scores == labels && labelsAreInts && (!lowering.has(2) || lowering.dims(2) == Dims{classes});
}

static LogicalResult lowerLoss(Lowering &lowering, bool logProbabilities) {
  std::optional<LossReduction> reduction = reductionOf(lowering.node);
  if (!reduction || !lossFits(lowering))
    return lowering.bad("expected float scores (N, C, ...), integer labels (N, ...), class weights (C) and reduction "
                        "none, sum or mean");
  ClassLoss loss;
  loss.scores = lowering.tensor(0);
  loss.labels = lowering.tensor(1);
  loss.classWeights = lowering.tensor(2);
  loss.ignoreIndex = intAttribute(lowering.node, "ignore_index", -(int64_t(1) << 31));
  loss.reduction = *reduction;
  loss.scoresAreLogProbabilities = logProbabilities;
  Value weight;
  Value result = classLoss(lowering.b, loss, weight);
  if (weight && lowering.wants(0))
    lowering.importer.lossWeights[lowering.node.outputs[0]] = weight;
  if (!logProbabilities && lowering.wants(1))
    if (failed(lowering.done(1, graph::LogSoftmaxOp::create(lowering.b, loss.scores.getType(), loss.scores, 1))))
      return failure();
  return lowering.done(result);
}
static LogicalResult lowerCrossEntropy(Lowering &lowering) { return lowerLoss(lowering, false); }
static LogicalResult lowerNll(Lowering &lowering) { return lowerLoss(lowering, true); }

/// Output 1, the mask, is known only in evaluation mode.
static LogicalResult lowerDropout(Lowering &lowering) {
  double ratio = lowering.host(1) && lowering.host(1)->count() == 1 ? lowering.host(1)->real(0) : 0.5;
  bool training =
      lowering.has(2) && lowering.host(2) && lowering.host(2)->count() == 1 && lowering.host(2)->integer(0) != 0;
  if ((lowering.has(1) && !lowering.host(1)) || (lowering.has(2) && !lowering.host(2)))
    return lowering.unsupported("its ratio or training mode is computed at run time", "make them constants");
  if (!(ratio >= 0 && ratio <= 1) || !lowering.isFloatInput(0))
    return lowering.bad("expected a float input and a ratio within [0, 1]");
  if (!training && lowering.wants(1))
    (void)lowering.doneHost(1, hostSplat(DType::Bool, {lowering.dims(0).begin(), lowering.dims(0).end()}, 1));
  Value x = lowering.tensor(0);
  if (!training || ratio == 0)
    return lowering.done(x);
  if (ratio == 1)
    return lowering.done(constantLike(lowering.b, x, 0));
  ratio = shortestDecimal(static_cast<float>(ratio));
  return lowering.done(graph::DropoutOp::create(lowering.b, x.getType(), x, lowering.importer.seed(),
                                                lowering.b.getF64FloatAttr(ratio),
                                                lowering.b.getI64IntegerAttr(lowering.importer.nextRandomId())));
}

void addLosses(LowerTable &table) {
  table["SoftmaxCrossEntropyLoss"] = lowerCrossEntropy;
  table["NegativeLogLikelihoodLoss"] = lowerNll;
  table["Dropout"] = lowerDropout;
}

} // namespace plimsoll::onnx
