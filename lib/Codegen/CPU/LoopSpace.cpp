// Walks, merging of dimensions and the choice of the lane dimension.
#include "lib/Codegen/CPU/LoopSpace.h"

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::codegen {

SmallVector<int64_t> parallelDims(GroupOp group) {
  SmallVector<int64_t> dims;
  for (int64_t d = 0; d < static_cast<int64_t>(group.getIteration().size()); ++d)
    if (!llvm::is_contained(group.getReduced(), d))
      dims.push_back(d);
  return dims;
}

Extent extentOf(GroupOp group, Value value) {
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  if (shape == group.getIteration())
    return Extent::Full;
  SmallVector<int64_t> parallel;
  for (int64_t d : parallelDims(group))
    parallel.push_back(group.getIteration()[d]);
  return shape == ArrayRef<int64_t>(parallel) ? Extent::Parallel : Extent::Other;
}

namespace {
class SpaceBuilder {
public:
  SpaceBuilder(GroupOp source, ArrayRef<OperandLayout> inputLayouts, ArrayRef<OperandLayout> outputLayouts)
      : group(source), inputs(inputLayouts), outputs(outputLayouts), parallel(parallelDims(source)) {}

  FailureOr<LoopSpace> build() {
    if (failed(checkLayouts()) || failed(addReads()) || failed(addWrites()))
      return failure();
    for (auto [d, size] : llvm::enumerate(group.getIteration()))
      space.dims.push_back({size, llvm::is_contained(group.getReduced(), static_cast<int64_t>(d))});
    dropUnitDims();
    mergeDims();
    chooseLane();
    return std::move(space);
  }

private:
  LogicalResult checkLayouts() {
    if (inputs.size() != group.getInputs().size() || outputs.size() != group.getOutputs().size())
      return group.emitOpError("expected one layout per operand and result, found ")
             << inputs.size() << " and " << outputs.size();
    for (auto [value, layout] : llvm::zip(group->getOperands(), inputs))
      if (failed(checkRank(value, layout)))
        return failure();
    for (auto [value, layout] : llvm::zip(group->getResults(), outputs))
      if (failed(checkRank(value, layout)))
        return failure();
    return success();
  }
  LogicalResult checkRank(Value value, const OperandLayout &layout) {
    if (static_cast<int64_t>(layout.strides.size()) == tensorType(value).getRank())
      return success();
    return group.emitOpError("layout with ") << layout.strides.size() << " strides for " << value.getType();
  }

  // Iteration dimension of dimension d of a value with this extent.
  int64_t iterationDim(Extent extent, int64_t d) const { return extent == Extent::Full ? d : parallel[d]; }

  // `dims[i]`: dimension of the walked value (full or parallel) that operand dimension i runs along.
  Walk walkOf(Value operand, const OperandLayout &layout, Extent extent, ArrayRef<int64_t> dims, unsigned number) {
    Walk walk;
    walk.strides.assign(group.getIteration().size(), 0);
    for (auto [i, d] : llvm::enumerate(dims))
      if (tensorType(operand).getDimSize(i) != 1)
        walk.strides[iterationDim(extent, d)] = layout.strides[i];
    walk.element = tensorType(operand).getElementType();
    walk.operand = number;
    walk.full = extent == Extent::Full;
    return walk;
  }
  static SmallVector<int64_t> identity(int64_t rank) { return llvm::to_vector(llvm::seq<int64_t>(0, rank)); }

  void addRead(Value value, Walk walk) {
    space.reads[value] = space.walks.size();
    space.walks.push_back(std::move(walk));
  }

  LogicalResult addReads() {
    for (auto [number, argument] : llvm::enumerate(group.getBody().getArguments())) {
      Extent extent = extentOf(group, argument);
      bool direct = llvm::any_of(argument.getUsers(), [](Operation *user) { return !isa<BroadcastOp>(user); });
      if (direct && extent == Extent::Other)
        return group.emitOpError("operand ")
               << number << " of type " << argument.getType() << " is used outside the iteration space";
      if (direct)
        addRead(argument, walkOf(argument, inputs[number], extent, identity(tensorType(argument).getRank()), number));
    }
    for (Operation &op : group.getBody().front().without_terminator())
      if (failed(addRead(op)))
        return failure();
    return success();
  }

  LogicalResult addRead(Operation &op) {
    if (auto iota = dyn_cast<IotaOp>(op)) {
      Walk walk;
      Extent extent = extentOf(group, iota);
      walk.strides.assign(group.getIteration().size(), 0);
      walk.strides[iterationDim(extent, static_cast<int64_t>(iota.getDimension()))] = 1;
      walk.element = iota.getType().getElementType();
      walk.full = extent == Extent::Full;
      walk.isIota = true;
      addRead(iota, std::move(walk));
      return success();
    }
    if (isa<ReduceSumOp, ReduceMaxOp>(op))
      return checkReduce(op);
    auto broadcast = dyn_cast<BroadcastOp>(op);
    if (!broadcast)
      return success();
    if (auto argument = dyn_cast<BlockArgument>(broadcast.getOperand())) {
      unsigned number = argument.getArgNumber();
      addRead(broadcast, walkOf(argument, inputs[number], extentOf(group, broadcast), broadcast.getDims(), number));
      return success();
    }
    return checkLocal(broadcast);
  }

  LogicalResult checkReduce(Operation &op) {
    auto dims = op.getAttrOfType<DenseI64ArrayAttr>("dims");
    if (dims.asArrayRef() == group.getReduced() && extentOf(group, op.getOperand(0)) == Extent::Full)
      return success();
    return op.emitOpError("reduces other dimensions than its group; it must stay outside the group");
  }

  // A value computed in the group may only be spread over the dimensions it was reduced from.
  LogicalResult checkLocal(BroadcastOp broadcast) {
    bool isConstant = broadcast.getOperand().getDefiningOp<ConstantOp>() != nullptr;
    bool undoesReduce = extentOf(group, broadcast) == Extent::Full &&
                        broadcast.getDims() == ArrayRef<int64_t>(parallel) &&
                        extentOf(group, broadcast.getOperand()) == Extent::Parallel;
    if (isConstant || undoesReduce || broadcast.getOperand().getType() == broadcast.getType())
      return success();
    return broadcast.emitOpError(
        "spreads a value over other dimensions than the group reduces; it must stay outside the group");
  }

  LogicalResult addWrites() {
    Operation *yield = group.getBody().front().getTerminator();
    for (auto [number, value] : llvm::enumerate(yield->getOperands())) {
      Extent extent = extentOf(group, value);
      if (extent == Extent::Other)
        return group.emitOpError("result ")
               << number << " of type " << value.getType() << " is outside the iteration space";
      space.writes.push_back(space.walks.size());
      unsigned operand = static_cast<unsigned>(group.getInputs().size() + number);
      space.walks.push_back(walkOf(value, outputs[number], extent, identity(tensorType(value).getRank()), operand));
    }
    return success();
  }

  void eraseDim(size_t d) {
    space.dims.erase(space.dims.begin() + d);
    for (Walk &walk : space.walks)
      walk.strides.erase(walk.strides.begin() + d);
  }
  void dropUnitDims() {
    for (size_t d = space.dims.size(); d-- > 0;)
      if (space.dims[d].size == 1)
        eraseDim(d);
  }
  void mergeDims() {
    for (size_t d = space.dims.size(); d-- > 1;) {
      LoopDim &outer = space.dims[d - 1], &inner = space.dims[d];
      bool mergeable = outer.reduced == inner.reduced && llvm::all_of(space.walks, [&](const Walk &walk) {
                         return walk.strides[d - 1] == walk.strides[d] * inner.size;
                       });
      if (!mergeable)
        continue;
      outer.size *= inner.size;
      for (Walk &walk : space.walks)
        walk.strides[d - 1] = walk.strides[d];
      eraseDim(d);
    }
  }

  // Contiguous bytes count for a dimension, gathered ones four times against it; ties go to the innermost.
  void chooseLane() {
    int64_t best = 0;
    for (size_t d = 0; d < space.dims.size(); ++d) {
      int64_t score = 0;
      for (const Walk &walk : space.walks) {
        if (walk.isIota || (!walk.full && !group.getReduced().empty()))
          continue;
        auto bytes = static_cast<int64_t>(std::max(1u, walk.element.getIntOrFloatBitWidth() / 8));
        int64_t stride = walk.strides[d];
        score += stride == 1 ? bytes : (stride == 0 ? 0 : -4 * bytes);
      }
      if (space.lane < 0 || score >= best) {
        best = score;
        space.lane = static_cast<int>(d);
      }
    }
  }

  GroupOp group;
  ArrayRef<OperandLayout> inputs, outputs;
  SmallVector<int64_t> parallel;
  LoopSpace space;
};
} // namespace

FailureOr<LoopSpace> buildLoopSpace(GroupOp group, ArrayRef<OperandLayout> inputs, ArrayRef<OperandLayout> outputs) {
  return SpaceBuilder(group, inputs, outputs).build();
}

} // namespace plimsoll::codegen
