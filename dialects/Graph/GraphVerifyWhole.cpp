// Verifiers of linear algebra, pooling and whole ops, by rule label G16..G28.
#include "dialects/Graph/Graph.h"

using namespace mlir;
using namespace plimsoll::graph;

// Rules G16 and G17 for dot and dot_add.
template <typename DotLike> static LogicalResult verifyProduct(DotLike op) {
  ArrayRef<int64_t> a = tensorType(op.getLhs()).getShape(), b = tensorType(op.getRhs()).getShape(), c = op.getType().getShape();
  size_t rank = a.size();
  if (rank < 2 || b.size() != rank || c.size() != rank || a.drop_back(2) != b.drop_back(2) || a.drop_back(2) != c.drop_back(2))
    return op.emitOpError("G16: ranks must be equal and at least 2 and batch dimensions must agree, found ")
           << op.getLhs().getType() << ", " << op.getRhs().getType() << " and " << op.getType();
  int64_t m = a[rank - 2], ka = a[rank - 1], kb = b[rank - 2], n = b[rank - 1];
  if (op.getTransA())
    std::swap(m, ka);
  if (op.getTransB())
    std::swap(kb, n);
  if (ka != kb || c[rank - 2] != m || c[rank - 1] != n)
    return op.emitOpError("G17: contracted sizes ") << ka << " and " << kb << ", result should be (..., " << m << ", " << n << "), found " << op.getType();
  bool oneType = tensorType(op.getLhs()).getElementType() == tensorType(op.getRhs()).getElementType();
  return oneType ? success() : op.emitOpError("G17: operands have different element types");
}

LogicalResult DotOp::verify() { return verifyProduct(*this); }
LogicalResult DotAddOp::verify() {
  if (getAccumulator().getType() != getType())
    return emitOpError("G17: the accumulator has type ") << getAccumulator().getType() << ", expected the result's, " << getType();
  return verifyProduct(*this);
}

namespace {
/// Shape arithmetic shared by convolutions and pools.
struct Window {
  ArrayRef<int64_t> kernel, strides, pads, dilations;
  /// Outputs along spatial dimension d of an input of `size`; ceil rounds a partial window up.
  int64_t outputs(size_t d, int64_t size, bool ceil = false) const {
    int64_t spatial = static_cast<int64_t>(strides.size());
    int64_t span = size + pads[d] + pads[d + spatial] - dilations[d] * (kernel[d] - 1) - 1;
    return span < 0 ? 0 : (ceil ? (span + strides[d] - 1) / strides[d] : span / strides[d]) + 1;
  }
};
} // namespace

static LogicalResult verifyAttributes(Operation *op, int64_t rank, const Window &window) {
  auto spatial = static_cast<size_t>(rank - 2);
  if (rank < 3 || rank > 5)
    return op->emitOpError("G18: expected 1 to 3 spatial dimensions, found rank ") << rank;
  if (window.kernel.size() != spatial || window.strides.size() != spatial || window.dilations.size() != spatial || window.pads.size() != 2 * spatial)
    return op->emitOpError("G18: expected ") << spatial << " kernel sizes, strides and dilations and " << 2 * spatial << " pads";
  for (int64_t value : window.strides)
    if (value < 1)
      return op->emitOpError("G18: strides must be positive");
  for (int64_t value : window.dilations)
    if (value < 1)
      return op->emitOpError("G18: dilations must be positive");
  for (int64_t value : window.pads)
    if (value < 0)
      return op->emitOpError("G18: pads must not be negative");
  return success();
}

template <typename ConvLike>
static LogicalResult verifyConv(ConvLike op, RankedTensorType input, RankedTensorType filter, RankedTensorType output) {
  if (filter.getRank() != input.getRank() || output.getRank() != input.getRank())
    return op.emitOpError("G18: ranks differ: ") << input << ", " << filter << ", " << output;
  Window window{filter.getShape().size() > 2 ? filter.getShape().drop_front(2) : ArrayRef<int64_t>(), op.getStrides(), op.getPads(), op.getDilations()};
  if (failed(verifyAttributes(op, input.getRank(), window)))
    return failure();
  auto groups = static_cast<int64_t>(op.getGroups());
  if (groups < 1 || input.getDimSize(1) != filter.getDimSize(1) * groups || filter.getDimSize(0) % groups || output.getDimSize(1) != filter.getDimSize(0))
    return op.emitOpError("G19: channels of ") << input << ", " << filter << " and " << output << " do not fit " << groups << " groups";
  bool fits = input.getDimSize(0) == output.getDimSize(0);
  for (int64_t d = 2; d < input.getRank(); ++d)
    fits &= output.getDimSize(d) == window.outputs(d - 2, input.getDimSize(d));
  return fits ? success() : op.emitOpError("G20: output ") << output << " does not follow from " << input << " and " << filter;
}
LogicalResult ConvOp::verify() { return verifyConv(*this, tensorType(getInput()), tensorType(getFilter()), getType()); }
LogicalResult ConvInputGradOp::verify() { return verifyConv(*this, getType(), tensorType(getFilter()), tensorType(getCotangent())); }
LogicalResult ConvWeightGradOp::verify() { return verifyConv(*this, tensorType(getInput()), getType(), tensorType(getCotangent())); }

template <typename PoolLike> static LogicalResult verifyPool(PoolLike op, RankedTensorType input, RankedTensorType output) {
  if (output.getRank() != input.getRank())
    return op.emitOpError("G18: ranks differ: ") << input << ", " << output;
  Window window{op.getKernel(), op.getStrides(), op.getPads(), op.getDilations()};
  if (failed(verifyAttributes(op, input.getRank(), window)))
    return failure();
  bool fits = input.getDimSize(0) == output.getDimSize(0) && input.getDimSize(1) == output.getDimSize(1);
  for (int64_t d = 2; d < input.getRank(); ++d)
    fits &= output.getDimSize(d) == window.outputs(d - 2, input.getDimSize(d)) || output.getDimSize(d) == window.outputs(d - 2, input.getDimSize(d), true);
  return fits ? success() : op.emitOpError("G20: output ") << output << " does not follow from " << input;
}
LogicalResult MaxPoolOp::verify() {
  if (tensorType(getIndices()).getShape() != tensorType(getResult()).getShape())
    return emitOpError("G21: indices and result have different shapes");
  return verifyPool(*this, tensorType(getInput()), tensorType(getResult()));
}
LogicalResult MaxPoolGradOp::verify() {
  if (tensorType(getIndices()).getShape() != tensorType(getCotangent()).getShape())
    return emitOpError("G21: indices and cotangent have different shapes");
  return verifyPool(*this, tensorType(getResult()), tensorType(getCotangent()));
}
LogicalResult AvgPoolOp::verify() { return verifyPool(*this, tensorType(getInput()), getType()); }
LogicalResult AvgPoolGradOp::verify() { return verifyPool(*this, getType(), tensorType(getCotangent())); }

static LogicalResult verifyAxis(Operation *op, int64_t axis, int64_t rank) {
  return axis >= 0 && axis < rank ? success() : op->emitOpError("G9: axis ") << axis << " is not in [0, " << rank << ")";
}
LogicalResult SoftmaxOp::verify() { return verifyAxis(*this, getAxis(), getType().getRank()); }
LogicalResult LogSoftmaxOp::verify() { return verifyAxis(*this, getAxis(), getType().getRank()); }

static LogicalResult verifyNorm(Operation *op, int64_t axis, ValueRange statistics) {
  RankedTensorType from = tensorType(op->getOperand(0));
  if (failed(verifyAxis(op, axis, from.getRank())))
    return failure();
  if (op->getResult(0).getType() != from)
    return op->emitOpError("G22: the normalised result must have the operand's type");
  for (Value statistic : statistics)
    if (tensorType(statistic).getShape() != from.getShape().take_front(axis))
      return op->emitOpError("G22: statistics must have the shape of the first ") << axis << " dimensions, found " << statistic.getType();
  return success();
}
LogicalResult LayerNormOp::verify() { return verifyNorm(*this, getAxis(), {getMean(), getRstd()}); }
LogicalResult RmsNormOp::verify() { return verifyNorm(*this, getAxis(), {getRstd()}); }

LogicalResult BatchNormOp::verify() {
  RankedTensorType from = tensorType(getOperand());
  if (from.getRank() < 2)
    return emitOpError("G23: expected rank >= 2, found ") << from;
  for (Value statistic : {getMean(), getVariance()})
    if (tensorType(statistic).getShape() != ArrayRef<int64_t>{from.getDimSize(1)})
      return emitOpError("G24: statistics must have ") << from.getDimSize(1) << " elements, found " << statistic.getType();
  return success();
}

static LogicalResult verifyRows(Operation *op, Value logits, ValueRange rows) {
  RankedTensorType matrix = tensorType(logits);
  bool fits = matrix.getRank() == 2;
  for (Value row : rows)
    fits &= tensorType(row).getRank() == 1 && tensorType(row).getDimSize(0) == matrix.getDimSize(0);
  return fits ? success() : op->emitOpError("G26: expected logits (N, C) and one entry per row, found ") << matrix;
}
LogicalResult CrossEntropyOp::verify() { return verifyRows(*this, getLogits(), {getLabels(), getLosses(), getLogSumExp()}); }
LogicalResult CrossEntropyGradOp::verify() {
  if (getResult().getType() != getLogits().getType())
    return emitOpError("G26: the result must have the logits' type");
  return verifyRows(*this, getLogits(), {getLabels(), getLogSumExp(), getCotangent()});
}

static LogicalResult verifyAttention(Operation *op, Value query, Value key, Value value, Value mask, Value out, Value logSumExp) {
  ArrayRef<int64_t> q = tensorType(query).getShape(), k = tensorType(key).getShape(), v = tensorType(value).getShape(), o = tensorType(out).getShape();
  bool fits = q.size() == 4 && k.size() == 4 && v.size() == 4 && o.size() == 4 && q[0] == k[0] && q[0] == v[0] && k[1] == v[1] && k[1] > 0 &&
              q[1] % k[1] == 0 && q[3] == k[3] && k[2] == v[2] && o[0] == q[0] && o[1] == q[1] && o[2] == q[2] && o[3] == v[3] &&
              tensorType(logSumExp).getShape() == q.take_front(3);
  if (!fits)
    return op->emitOpError("G27: sizes do not fit: query ") << query.getType() << ", key " << key.getType() << ", value " << value.getType();
  if (!mask)
    return success();
  ArrayRef<int64_t> m = tensorType(mask).getShape();
  int64_t full[] = {q[0], q[1], q[2], k[2]};
  fits = m.size() == 4;
  for (size_t d = 0; fits && d < 4; ++d)
    fits = m[d] == 1 || m[d] == full[d];
  return fits ? success() : op->emitOpError("G28: mask ") << mask.getType() << " does not broadcast to the scores";
}
LogicalResult AttentionOp::verify() { return verifyAttention(*this, getQuery(), getKey(), getValue(), getMask(), getResult(), getLogSumExp()); }
LogicalResult AttentionGradOp::verify() {
  bool same = getQueryGrad().getType() == getQuery().getType() && getKeyGrad().getType() == getKey().getType() && getValueGrad().getType() == getValue().getType();
  if (!same)
    return emitOpError("G27: gradients must have the types of query, key and value");
  return verifyAttention(*this, getQuery(), getKey(), getValue(), getMask(), getOut(), getLogSumExp());
}
