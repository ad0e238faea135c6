// Verifiers of structural ops, by rule label G1..G15 and G29..G31. GraphVerifyWhole.cpp has the rest.
#include "dialects/Graph/Graph.h"

using namespace mlir;
using namespace plimsoll::graph;

LogicalResult VariableOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  return type && type.hasStaticShape() ? success() : emitOpError("G1: expected a static ranked tensor type, found ") << getType();
}

static LogicalResult verifyVariable(Operation *op, FlatSymbolRefAttr symbol, Type type, SymbolTableCollection &tables) {
  auto variable = tables.lookupNearestSymbolFrom<VariableOp>(op, symbol);
  if (!variable)
    return op->emitOpError("G1: unknown variable ") << symbol;
  if (variable.getType() != type)
    return op->emitOpError("G1: variable ") << symbol << " has type " << variable.getType() << " but " << type << " is used here";
  return success();
}
LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &tables) { return verifyVariable(*this, getVariableAttr(), getType(), tables); }
LogicalResult WriteOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyVariable(*this, getVariableAttr(), getValue().getType(), tables);
}

LogicalResult ConstantOp::verify() {
  return getValue().getType() == getType() ? success() : emitOpError("value has type ") << getValue().getType() << ", result " << getType();
}

LogicalResult IotaOp::verify() {
  if (getDimension() < static_cast<uint64_t>(getType().getRank()))
    return success();
  return emitOpError("G2: dimension ") << getDimension() << " is not below the rank " << getType().getRank();
}

static LogicalResult sameShape(Operation *op, Value a, Value b) {
  if (tensorType(a).getShape() == tensorType(b).getShape())
    return success();
  return op->emitOpError("G3: expected one shape, found ") << a.getType() << " and " << b.getType();
}
LogicalResult IsNanOp::verify() { return sameShape(*this, getOperand(), getResult()); }
LogicalResult CompareOp::verify() { return sameShape(*this, getLhs(), getResult()); }
LogicalResult SelectOp::verify() { return sameShape(*this, getPredicate(), getResult()); }
LogicalResult ConvertOp::verify() { return sameShape(*this, getOperand(), getResult()); }

static LogicalResult sameElement(Operation *op, Value a, Value b) {
  if (tensorType(a).getElementType() == tensorType(b).getElementType())
    return success();
  return op->emitOpError("expected one element type, found ") << a.getType() << " and " << b.getType();
}

LogicalResult BroadcastOp::verify() {
  RankedTensorType from = getOperand().getType(), to = getType();
  if (static_cast<int64_t>(getDims().size()) != from.getRank())
    return emitOpError("G4: expected ") << from.getRank() << " dims, found " << getDims().size();
  int64_t previous = -1;
  for (auto [d, target] : llvm::enumerate(getDims())) {
    if (target <= previous || target >= to.getRank())
      return emitOpError("G4: dims must be strictly increasing and below the result rank ") << to.getRank();
    previous = target;
    if (from.getDimSize(d) != 1 && from.getDimSize(d) != to.getDimSize(target))
      return emitOpError("G5: operand dimension ") << d << " has size " << from.getDimSize(d) << ", result dimension " << target << " has "
                                                  << to.getDimSize(target);
  }
  return sameElement(*this, getOperand(), getResult());
}

LogicalResult ReshapeOp::verify() {
  if (getOperand().getType().getNumElements() != getType().getNumElements())
    return emitOpError("G6: ") << getOperand().getType() << " and " << getType() << " have different element counts";
  return sameElement(*this, getOperand(), getResult());
}

LogicalResult TransposeOp::verify() {
  RankedTensorType from = getOperand().getType(), to = getType();
  if (static_cast<int64_t>(getPerm().size()) != from.getRank() || to.getRank() != from.getRank())
    return emitOpError("G7: expected a permutation of ") << from.getRank() << " dimensions";
  SmallVector<bool> seen(getPerm().size(), false);
  for (auto [d, source] : llvm::enumerate(getPerm())) {
    if (source < 0 || source >= from.getRank() || seen[source])
      return emitOpError("G7: perm is not a permutation");
    seen[source] = true;
    if (to.getDimSize(d) != from.getDimSize(source))
      return emitOpError("G7: result dimension ") << d << " has size " << to.getDimSize(d) << ", expected " << from.getDimSize(source);
  }
  return sameElement(*this, getOperand(), getResult());
}

LogicalResult SliceOp::verify() {
  RankedTensorType from = getOperand().getType(), to = getType();
  auto rank = static_cast<size_t>(from.getRank());
  if (getStarts().size() != rank || getStrides().size() != rank || to.getRank() != from.getRank())
    return emitOpError("G8: expected one start and one stride for each of ") << rank << " dimensions";
  for (size_t d = 0; d < rank; ++d) {
    int64_t start = getStarts()[d], stride = getStrides()[d], size = to.getDimSize(d);
    if (start < 0 || stride < 1 || (size > 0 && start + (size - 1) * stride >= from.getDimSize(d)))
      return emitOpError("G8: dimension ") << d << ": start " << start << ", stride " << stride << " and size " << size
                                          << " leave the operand's " << from.getDimSize(d);
  }
  return sameElement(*this, getOperand(), getResult());
}

static LogicalResult axisBelowRank(Operation *op, int64_t axis, int64_t rank) {
  return axis >= 0 && axis < rank ? success() : op->emitOpError("G9: axis ") << axis << " is not in [0, " << rank << ")";
}

LogicalResult ConcatOp::verify() {
  RankedTensorType to = getType();
  auto axis = static_cast<int64_t>(getAxis());
  if (failed(axisBelowRank(*this, axis, to.getRank())))
    return failure();
  int64_t sum = 0;
  for (Value operand : getOperands()) {
    RankedTensorType from = tensorType(operand);
    if (from.getRank() != to.getRank())
      return emitOpError("G10: operand rank ") << from.getRank() << " differs from the result rank " << to.getRank();
    for (int64_t d = 0; d < to.getRank(); ++d)
      if (d != axis && from.getDimSize(d) != to.getDimSize(d))
        return emitOpError("G10: dimension ") << d << " is " << from.getDimSize(d) << " in an operand and " << to.getDimSize(d) << " in the result";
    sum += from.getDimSize(axis);
    if (failed(sameElement(*this, operand, getResult())))
      return failure();
  }
  return sum == to.getDimSize(axis) ? success() : emitOpError("G10: operands add up to ") << sum << " along the axis, the result has " << to.getDimSize(axis);
}

LogicalResult PadOp::verify() {
  RankedTensorType from = getOperand().getType(), to = getType();
  auto rank = static_cast<size_t>(from.getRank());
  if (getLow().size() != rank || getHigh().size() != rank || getInterior().size() != rank || to.getRank() != from.getRank())
    return emitOpError("G11: expected low, high and interior for each of ") << rank << " dimensions";
  for (size_t d = 0; d < rank; ++d) {
    int64_t low = getLow()[d], high = getHigh()[d], interior = getInterior()[d], n = from.getDimSize(d);
    if (low < 0 || high < 0 || interior < 0)
      return emitOpError("G11: dimension ") << d << " has a negative padding";
    int64_t size = low + high + (n > 0 ? (n - 1) * (interior + 1) + 1 : 0);
    if (size != to.getDimSize(d))
      return emitOpError("G11: dimension ") << d << " should have size " << size << ", the result has " << to.getDimSize(d);
  }
  return sameElement(*this, getOperand(), getResult());
}

// The shape (A..., I..., B...) of a gather along `axis` of (A..., D, B...).
static LogicalResult verifyGather(Operation *op, RankedTensorType data, RankedTensorType indices, RankedTensorType rows, int64_t axis) {
  if (axis < 0 || axis >= data.getRank())
    return op->emitOpError("G12: axis ") << axis << " is not in [0, " << data.getRank() << ")";
  SmallVector<int64_t> shape(data.getShape().take_front(axis));
  llvm::append_range(shape, indices.getShape());
  llvm::append_range(shape, data.getShape().drop_front(axis + 1));
  if (rows.getShape() != ArrayRef<int64_t>(shape) || rows.getElementType() != data.getElementType())
    return op->emitOpError("G12: expected ") << tensorLike(data, shape) << " beside " << data << " and " << indices << ", found " << rows;
  return success();
}
LogicalResult GatherOp::verify() { return verifyGather(*this, tensorType(getOperand()), tensorType(getIndices()), getType(), getAxis()); }
LogicalResult ScatterAddOp::verify() { return verifyGather(*this, getType(), tensorType(getIndices()), tensorType(getUpdates()), getAxis()); }

static LogicalResult verifyElements(Operation *op, RankedTensorType data, RankedTensorType indices, RankedTensorType rows, int64_t axis) {
  bool fits = data.getRank() == indices.getRank() && rows.getShape() == indices.getShape() && axis >= 0 && axis < data.getRank() &&
              rows.getElementType() == data.getElementType();
  for (int64_t d = 0; fits && d < data.getRank(); ++d)
    fits = d == axis || indices.getDimSize(d) <= data.getDimSize(d);
  return fits ? success() : op->emitOpError("G13: ") << indices << " does not index " << data << " along axis " << axis << " into " << rows;
}
LogicalResult GatherElementsOp::verify() { return verifyElements(*this, tensorType(getOperand()), tensorType(getIndices()), getType(), getAxis()); }
LogicalResult ScatterAddElementsOp::verify() { return verifyElements(*this, getType(), tensorType(getIndices()), tensorType(getUpdates()), getAxis()); }

static LogicalResult verifySeed(Operation *op, Value seed) {
  RankedTensorType type = tensorType(seed);
  bool fits = type.getElementType().isInteger(64) && type.getRank() == 1 && type.getDimSize(0) == 2;
  return fits ? success() : op->emitOpError("G14: expected a seed of type tensor<2xi64>, found ") << type;
}
LogicalResult RandomUniformOp::verify() { return verifySeed(*this, getSeed()); }
LogicalResult DropoutOp::verify() {
  double ratio = getRatio().convertToDouble();
  if (!(ratio >= 0 && ratio < 1))
    return emitOpError("G25: ratio ") << ratio << " is not in [0, 1)";
  return verifySeed(*this, getSeed());
}

LogicalResult CumsumOp::verify() { return axisBelowRank(*this, getAxis(), getType().getRank()); }

static LogicalResult verifyReduce(Operation *op, RankedTensorType from, RankedTensorType to, ArrayRef<int64_t> dims) {
  int64_t previous = -1;
  for (int64_t d : dims) {
    if (d <= previous || d >= from.getRank())
      return op->emitOpError("G15: dims must be strictly increasing and below the rank ") << from.getRank();
    previous = d;
  }
  SmallVector<int64_t> shape;
  for (int64_t d = 0; d < from.getRank(); ++d)
    if (!llvm::is_contained(dims, d))
      shape.push_back(from.getDimSize(d));
  return tensorLike(from, shape) == to ? success() : op->emitOpError("G15: expected result ") << tensorLike(from, shape) << ", found " << to;
}
LogicalResult ReduceSumOp::verify() { return verifyReduce(*this, tensorType(getOperand()), getType(), getDims()); }
LogicalResult ReduceMaxOp::verify() { return verifyReduce(*this, tensorType(getOperand()), getType(), getDims()); }

// The iteration shape with the reduced dimensions removed.
static SmallVector<int64_t> parallelShape(GroupOp group) {
  SmallVector<int64_t> shape;
  for (auto [d, size] : llvm::enumerate(group.getIteration()))
    if (!llvm::is_contained(group.getReduced(), static_cast<int64_t>(d)))
      shape.push_back(size);
  return shape;
}

static LogicalResult verifyGroupOp(GroupOp group, Operation &inner) {
  bool scalarForm = inner.hasTrait<GraphElementwise>() || isa<BroadcastOp, IotaOp, ConstantOp, ReduceSumOp, ReduceMaxOp>(inner);
  if (!scalarForm)
    return inner.emitOpError("G30: has no scalar form and cannot be in a kernel group");
  SmallVector<int64_t> parallel = parallelShape(group);
  for (Type type : inner.getResultTypes()) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
    if (shape != group.getIteration() && shape != ArrayRef<int64_t>(parallel) && !isa<ConstantOp>(inner))
      return group.emitOpError("G31: ") << inner.getName() << " has shape " << type << ", which is neither the iteration space nor its parallel part";
  }
  return success();
}

LogicalResult GroupOp::verifyRegions() {
  Block &body = getBody().front();
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (!yield)
    return emitOpError("G29: expected graph.yield at the end of the region");
  if (body.getArgumentTypes() != getInputs().getTypes())
    return emitOpError("G29: region arguments differ from the operands");
  if (yield.getValues().getTypes() != getOutputs().getTypes())
    return emitOpError("G29: yielded values differ from the results");
  for (Operation &inner : body.without_terminator())
    if (failed(verifyGroupOp(*this, inner)))
      return failure();
  return success();
}
