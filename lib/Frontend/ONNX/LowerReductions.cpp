// Reductions in every axes form (attribute or input, empty, noop) and arg-reductions.
#include "lib/Frontend/ONNX/Importer.h"

using namespace mlir;
using plimsoll::graph::CompareDirection;

namespace plimsoll::onnx {

enum class Reduction { Sum, Mean, Max, Min, Prod, L1, L2, SumSquare, LogSum, LogSumExp };

static Value reduceMin(ImplicitLocOpBuilder &b, Value x, ArrayRef<int64_t> dims) {
  return graph::NegOp::create(b, graph::reduceMax(b, graph::NegOp::create(b, x), dims));
}

static Value logSumExp(ImplicitLocOpBuilder &b, Value x, ArrayRef<int64_t> dims) {
  Value largest = graph::reduceMax(b, x, dims);
  Value shifted = graph::SubOp::create(b, x, graph::broadcastBack(b, largest, dims, shapeOf(x)));
  return graph::AddOp::create(b, graph::LogOp::create(b, graph::reduceSum(b, graph::ExpOp::create(b, shifted), dims)),
                              largest);
}

/// The norm with gradient 0 at 0, as PyTorch.
static Value norm2(ImplicitLocOpBuilder &b, Value x, ArrayRef<int64_t> dims) {
  Value squares = graph::reduceSum(b, graph::MulOp::create(b, x, x), dims), zero = constantLike(b, squares, 0);
  Value positive = graph::compare(b, CompareDirection::GT, squares, zero);
  Value root = graph::SqrtOp::create(b, selectOf(b, positive, squares, constantLike(b, squares, 1)));
  return selectOf(b, positive, root, zero);
}

/// Product over few elements as a chain of multiplications; null when there are many.
static Value productOver(ImplicitLocOpBuilder &b, Value x, ArrayRef<int64_t> dims) {
  for (int64_t d : llvm::reverse(dims)) {
    Dims sizes(shapeOf(x)), starts(sizes.size(), 0), ones(sizes.size(), 1), kept = sizes;
    int64_t length = sizes[static_cast<size_t>(d)];
    if (length > 64)
      return {};
    sizes[static_cast<size_t>(d)] = 1;
    kept.erase(kept.begin() + d);
    Value product;
    for (int64_t i = 0; i < length; ++i) {
      starts[static_cast<size_t>(d)] = i;
      Value slice = graph::reshape(b, sliceOf(b, x, starts, sizes, ones), kept);
      product = product ? graph::MulOp::create(b, product, slice).getResult() : slice;
    }
    x = product;
  }
  return x;
}

static Value reduced(ImplicitLocOpBuilder &b, Reduction kind, Value x, ArrayRef<int64_t> dims) {
  switch (kind) {
  case Reduction::Sum:
    return graph::reduceSum(b, x, dims);
  case Reduction::Mean:
    return meanOf(b, x, dims);
  case Reduction::Max:
    return graph::reduceMax(b, x, dims);
  case Reduction::Min:
    return reduceMin(b, x, dims);
  case Reduction::Prod:
    return productOver(b, x, dims);
  case Reduction::L1:
    return graph::reduceSum(b, graph::AbsOp::create(b, x), dims);
  case Reduction::L2:
    return norm2(b, x, dims);
  case Reduction::SumSquare:
    return graph::reduceSum(b, graph::MulOp::create(b, x, x), dims);
  case Reduction::LogSum:
    return graph::LogOp::create(b, graph::reduceSum(b, x, dims));
  case Reduction::LogSumExp:
    return logSumExp(b, x, dims);
  }
  return {};
}

template <Reduction kind> static LogicalResult lowerReduce(Lowering &lowering) {
  ImplicitLocOpBuilder &b = lowering.b;
  Dims shape = lowering.dims(0), kept;
  auto axes = axesOf(lowering.node, lowering.hosts(), 1, static_cast<int64_t>(shape.size()));
  Value x = lowering.tensor(0);
  constexpr bool floatOnly = kind == Reduction::L2 || kind == Reduction::LogSum || kind == Reduction::LogSumExp;
  if (!axes || !x || (floatOnly && !lowering.isFloatInput(0)))
    return lowering.bad("expected known axes of the input");
  if (axes->empty() && intAttribute(lowering.node, "noop_with_empty_axes", 0) == 0)
    for (size_t d = 0; d < shape.size(); ++d)
      axes->push_back(static_cast<int64_t>(d));
  for (size_t d = 0; d < shape.size(); ++d) {
    bool gone = llvm::is_contained(*axes, static_cast<int64_t>(d));
    if (!gone || intAttribute(lowering.node, "keepdims", 1) != 0)
      kept.push_back(gone ? 1 : shape[d]);
  }
  bool boolean = lowering.dtype(0) == DType::Bool;
  Value result = reduced(b, kind, boolean ? graph::convert(b, x, b.getI32Type()) : x, *axes);
  if (!result)
    return lowering.unsupported("a product of more than 64 elements", "use a sum of logarithms");
  result = graph::reshape(b, boolean ? graph::convert(b, result, b.getI1Type()) : result, kept);
  if (kind == Reduction::Mean && productOf(kept) == 1 &&
      lowering.wants(0)) // a mean loss: its weight is what it divides by
    lowering.importer.lossWeights[lowering.node.outputs[0]] =
        graph::splat(b, RankedTensorType::get({}, b.getF32Type()), static_cast<double>(productOf(shape)));
  return lowering.done(result);
}

/// The first (or last) position of the largest element, as i64.
template <bool largest> static LogicalResult lowerArg(Lowering &lowering) {
  ImplicitLocOpBuilder &b = lowering.b;
  Dims shape = lowering.dims(0), kept;
  auto axis = normalAxis(intAttribute(lowering.node, "axis", 0), static_cast<int64_t>(shape.size()));
  Value x = lowering.tensor(0);
  if (!axis || !x || lowering.dtype(0) == DType::Bool)
    return lowering.bad("expected an axis of the input");
  if (!largest)
    x = graph::NegOp::create(b, x);
  Value best = graph::broadcastBack(b, graph::reduceMax(b, x, {*axis}), {*axis}, shape);
  auto type = RankedTensorType::get(shape, b.getI64Type());
  Value position = graph::IotaOp::create(b, type, *axis), hit = graph::compare(b, CompareDirection::EQ, x, best);
  bool last = intAttribute(lowering.node, "select_last_index", 0) != 0;
  Value candidates = selectOf(
      b, hit, position, graph::splat(b, type, last ? -1.0 : static_cast<double>(shape[static_cast<size_t>(*axis)])));
  Value result = last ? graph::reduceMax(b, candidates, {*axis}) : reduceMin(b, candidates, {*axis});
  for (size_t d = 0; d < shape.size(); ++d)
    if (static_cast<int64_t>(d) != *axis || intAttribute(lowering.node, "keepdims", 1) != 0)
      kept.push_back(static_cast<int64_t>(d) == *axis ? 1 : shape[d]);
  return lowering.done(graph::reshape(b, result, kept));
}

static LogicalResult lowerLpNormalization(Lowering &lowering) {
  ImplicitLocOpBuilder &b = lowering.b;
  Dims shape = lowering.dims(0);
  auto axis = normalAxis(intAttribute(lowering.node, "axis", -1), static_cast<int64_t>(shape.size()));
  int64_t p = intAttribute(lowering.node, "p", 2);
  if (!axis || !lowering.isFloatInput(0) || (p != 1 && p != 2))
    return lowering.bad("expected a float input, an axis of it and p 1 or 2");
  Value x = lowering.tensor(0);
  Value norm = reduced(b, p == 1 ? Reduction::L1 : Reduction::L2, x, {*axis});
  Value positive = graph::compare(b, CompareDirection::GT, norm, constantLike(b, norm, 0)); // 0/0 is 0
  norm = selectOf(b, positive, norm, constantLike(b, norm, 1));
  return lowering.done(graph::DivOp::create(b, x, graph::broadcastBack(b, norm, {*axis}, shape)));
}

void addReductions(LowerTable &table) {
  table["ReduceSum"] = lowerReduce<Reduction::Sum>;
  table["ReduceMean"] = lowerReduce<Reduction::Mean>;
  table["ReduceMax"] = lowerReduce<Reduction::Max>;
  table["ReduceMin"] = lowerReduce<Reduction::Min>;
  table["ReduceProd"] = lowerReduce<Reduction::Prod>;
  table["ReduceL1"] = lowerReduce<Reduction::L1>;
  table["ReduceL2"] = lowerReduce<Reduction::L2>;
  table["ReduceSumSquare"] = lowerReduce<Reduction::SumSquare>;
  table["ReduceLogSum"] = lowerReduce<Reduction::LogSum>;
  table["ReduceLogSumExp"] = lowerReduce<Reduction::LogSumExp>;
  table["ArgMax"] = lowerArg<true>;
  table["ArgMin"] = lowerArg<false>;
  table["LpNormalization"] = lowerLpNormalization;
}

} // namespace plimsoll::onnx
