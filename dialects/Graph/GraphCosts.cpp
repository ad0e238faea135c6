// Cost and in-place answers: flops from shapes, bytes from types. A multiply-add counts 2, a transcendental 1.
#include "dialects/Graph/Graph.h"

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::graph {

uint64_t tensorBytes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  uint64_t bits = tensor.getElementType().getIntOrFloatBitWidth();
  return static_cast<uint64_t>(tensor.getNumElements()) * std::max<uint64_t>(bits / 8, 1);
}

static OpCost costOf(Operation *op, uint64_t flops) {
  OpCost cost{flops, 0, 0, 0};
  for (Value operand : op->getOperands())
    cost.bytesRead += tensorBytes(operand.getType());
  for (Value result : op->getResults())
    cost.bytesWritten += tensorBytes(result.getType());
  return cost;
}

static uint64_t elements(Value value) { return static_cast<uint64_t>(tensorType(value).getNumElements()); }

OpCost elementwiseCost(Operation *op) { return costOf(op, op->getNumResults() ? elements(op->getResult(0)) : 0); }

SmallVector<unsigned> elementwiseInPlaceOperands(Operation *op, unsigned result) {
  SmallVector<unsigned> operands;
  for (auto [index, type] : llvm::enumerate(op->getOperandTypes()))
    if (type == op->getResult(result).getType())
      operands.push_back(index);
  return operands;
}

} // namespace plimsoll::graph

// flops per element of the op's main operand, for row-wise whole ops.
#define PLIMSOLL_ROW_COST(Op, FLOPS) \
  plimsoll::graph::OpCost Op::cost() { return costOf(*this, FLOPS * elements(getOperand())); }
PLIMSOLL_ROW_COST(ReduceSumOp, 1)
PLIMSOLL_ROW_COST(ReduceMaxOp, 1)
PLIMSOLL_ROW_COST(SoftmaxOp, 5)
PLIMSOLL_ROW_COST(LogSoftmaxOp, 5)
PLIMSOLL_ROW_COST(LayerNormOp, 7)
PLIMSOLL_ROW_COST(RmsNormOp, 4)
PLIMSOLL_ROW_COST(BatchNormOp, 7)
PLIMSOLL_ROW_COST(DropoutOp, 20)
#undef PLIMSOLL_ROW_COST

plimsoll::graph::OpCost CrossEntropyOp::cost() { return costOf(*this, 4 * elements(getLogits())); }
plimsoll::graph::OpCost CrossEntropyGradOp::cost() { return costOf(*this, 5 * elements(getLogits())); }

// A gather looks only at the rows or elements that it picks, a scatter adds only where its updates go.
static OpCost gatherCost(Value indices, Value picked) {
  uint64_t bytes = tensorBytes(picked.getType());
  return {elements(picked), tensorBytes(indices.getType()) + bytes, bytes, 0};
}
plimsoll::graph::OpCost GatherOp::cost() { return gatherCost(getIndices(), getResult()); }
plimsoll::graph::OpCost GatherElementsOp::cost() { return gatherCost(getIndices(), getResult()); }
plimsoll::graph::OpCost ScatterAddOp::cost() { return costOf(*this, elements(getUpdates())); }
plimsoll::graph::OpCost ScatterAddElementsOp::cost() { return costOf(*this, elements(getUpdates())); }

// Multiply-adds of a matrix product.
template <typename DotLike> static uint64_t productFlops(DotLike op) {
  ArrayRef<int64_t> shape = op.getLhs().getType().getShape();
  auto contracted = static_cast<uint64_t>(op.getTransA() ? shape[shape.size() - 2] : shape.back());
  return 2 * contracted * elements(op.getResult());
}
plimsoll::graph::OpCost DotOp::cost() { return costOf(*this, productFlops(*this)); }
plimsoll::graph::OpCost DotAddOp::cost() { return costOf(*this, productFlops(*this)); }
SmallVector<unsigned> DotAddOp::inPlaceOperands(unsigned) { return {2}; }

// Multiply-adds of a convolution: outputs times filter taps per output channel.
static uint64_t convFlops(Value output, Value filter) {
  uint64_t taps = elements(filter) / static_cast<uint64_t>(tensorType(filter).getDimSize(0));
  return 2 * elements(output) * taps;
}
plimsoll::graph::OpCost ConvOp::cost() { return costOf(*this, convFlops(getResult(), getFilter())); }
plimsoll::graph::OpCost ConvInputGradOp::cost() { return costOf(*this, convFlops(getCotangent(), getFilter())); }
plimsoll::graph::OpCost ConvWeightGradOp::cost() { return costOf(*this, convFlops(getCotangent(), getResult())); }

static uint64_t windowElements(ArrayRef<int64_t> kernel) {
  uint64_t product = 1;
  for (int64_t size : kernel)
    product *= static_cast<uint64_t>(size);
  return product;
}
plimsoll::graph::OpCost MaxPoolOp::cost() { return costOf(*this, windowElements(getKernel()) * elements(getResult())); }
plimsoll::graph::OpCost MaxPoolGradOp::cost() { return costOf(*this, elements(getCotangent())); }
plimsoll::graph::OpCost AvgPoolOp::cost() { return costOf(*this, windowElements(getKernel()) * elements(getResult())); }
plimsoll::graph::OpCost AvgPoolGradOp::cost() { return costOf(*this, windowElements(getKernel()) * elements(getCotangent())); }

// Two products of S×T×D (forward) or five (backward: scores, dV, dP, dQ, dK), plus the softmax. Under a causal mask half
// of the scores are never computed.
template <typename AttentionLike> static uint64_t attentionFlops(AttentionLike op, uint64_t products) {
  ArrayRef<int64_t> query = op.getQuery().getType().getShape();
  auto scores = static_cast<uint64_t>(query[0] * query[1] * query[2] * op.getKey().getType().getDimSize(2));
  if (op.getCausal())
    scores = (scores + 1) / 2;
  return scores * (2 * products * static_cast<uint64_t>(query[3]) + 5);
}
plimsoll::graph::OpCost AttentionOp::cost() { return costOf(*this, attentionFlops(*this, 2)); }
plimsoll::graph::OpCost AttentionGradOp::cost() { return costOf(*this, attentionFlops(*this, 5)); }

plimsoll::graph::OpCost GroupOp::cost() {
  uint64_t flops = 0;
  for (Operation &inner : getBody().front())
    if (auto costly = dyn_cast<CostOpInterface>(inner))
      flops += costly.cost().flops;
  return costOf(*this, flops);
}

// A result may take over an input of its own type that the region reads only at the result's own element: not through a
// broadcast. (Reductions read whole rows, but every row is read before its elements are stored.)
SmallVector<unsigned> GroupOp::inPlaceOperands(unsigned result) {
  SmallVector<unsigned> operands;
  for (auto [index, type] : llvm::enumerate(getInputs().getTypes())) {
    bool readElsewhere = llvm::any_of(getBody().getArgument(index).getUsers(), [](Operation *user) { return isa<BroadcastOp>(user); });
    if (type == getResult(result).getType() && !readElsewhere)
      operands.push_back(index);
  }
  return operands;
}

// Precision classes (DESIGN §4): statistics and losses stay in fp32.
#define PLIMSOLL_KEEP_FP32(Op) \
  PrecisionClass Op::precisionClass() { return PrecisionClass::KeepFp32; }
PLIMSOLL_KEEP_FP32(ReduceSumOp)
PLIMSOLL_KEEP_FP32(ReduceMaxOp)
PLIMSOLL_KEEP_FP32(SoftmaxOp)
PLIMSOLL_KEEP_FP32(LogSoftmaxOp)
PLIMSOLL_KEEP_FP32(LayerNormOp)
PLIMSOLL_KEEP_FP32(RmsNormOp)
PLIMSOLL_KEEP_FP32(BatchNormOp)
PLIMSOLL_KEEP_FP32(CrossEntropyOp)
PLIMSOLL_KEEP_FP32(CrossEntropyGradOp)
#undef PLIMSOLL_KEEP_FP32
PrecisionClass DropoutOp::precisionClass() { return PrecisionClass::FollowInputs; }
