// Before grouping: whole ops become formulas, chains of broadcasts become one, and dimensions of size 1 go away.
//
// A reduction that keeps its dimension leaves (N, 1); the same statistics without it are (N). Only with one spelling
// can a row's statistics meet the row they came from, so fusible ops are rewritten on shapes without size-1 dimensions.
// The reshapes this leaves between them cancel; those at the borders are views and move no data.
#include "lib/Passes/Fusion.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::fusion {

SmallVector<int64_t> Space::parallelDims() const {
  SmallVector<int64_t> dims;
  for (int64_t d = 0; d < static_cast<int64_t>(iteration.size()); ++d)
    if (!llvm::is_contained(reduced, d))
      dims.push_back(d);
  return dims;
}
SmallVector<int64_t> Space::parallelShape() const {
  SmallVector<int64_t> shape;
  for (int64_t d : parallelDims())
    shape.push_back(iteration[d]);
  return shape;
}

static bool isSplat(Operation *op) {
  auto constant = dyn_cast<ConstantOp>(op);
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  return elements && elements.isSplat();
}
bool isRoot(Operation *op) {
  return (op->hasTrait<GraphElementwise>() && !isa<DecomposableOpInterface>(op)) || isa<ReduceSumOp, ReduceMaxOp>(op);
}
bool isCloned(Operation *op) { return isa<BroadcastOp, IotaOp>(op) || isSplat(op); }

static void expandWholeOps(func::FuncOp function) {
  SmallVector<Operation *> whole;
  function.walk([&](DecomposableOpInterface op) { whole.push_back(op); });
  for (Operation *op : whole) {
    OpBuilder builder(op);
    SmallVector<Value> results = cast<DecomposableOpInterface>(op).decompose(builder);
    op->replaceAllUsesWith(results);
    op->erase();
  }
}

namespace {
/// Rewrites one op on shapes without size-1 dimensions.
class UnitDims {
public:
  UnitDims(Operation *target, llvm::DenseMap<Value, Value> &views)
      : op(target), squeezedViews(views), b(target->getLoc(), target) {}

  static bool hasUnit(Type type) { return llvm::is_contained(cast<RankedTensorType>(type).getShape(), 1); }
  bool applies() const {
    bool any = llvm::any_of(op->getOperandTypes(), hasUnit) || llvm::any_of(op->getResultTypes(), hasUnit);
    return any && (isRoot(op) || isa<BroadcastOp, IotaOp>(op));
  }

  void rewrite() {
    Value result = rewritten();
    result = reshape(b, result, tensorType(op->getResult(0)).getShape());
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }

private:
  static SmallVector<int64_t> squeezed(ArrayRef<int64_t> shape) {
    SmallVector<int64_t> kept;
    llvm::copy_if(shape, std::back_inserter(kept), [](int64_t size) { return size != 1; });
    return kept;
  }
  /// For each dimension its number among those that stay, or -1.
  static SmallVector<int64_t> numbering(ArrayRef<int64_t> shape) {
    SmallVector<int64_t> numbers;
    int64_t next = 0;
    for (int64_t size : shape)
      numbers.push_back(size == 1 ? -1 : next++);
    return numbers;
  }
  Value squeeze(Value value) {
    SmallVector<int64_t> shape = squeezed(tensorType(value).getShape());
    while (auto view = value.getDefiningOp<ReshapeOp>()) {
      if (squeezed(tensorType(view.getOperand()).getShape()) != shape)
        break;
      value = view.getOperand();
    }
    if (Operation *source = value.getDefiningOp(); source && isSplat(source)) {
      auto elements = cast<DenseElementsAttr>(cast<ConstantOp>(source).getValue());
      return ConstantOp::create(b, elements.resizeSplat(tensorLike(value.getType(), shape)));
    }
    Value &view = squeezedViews[value];
    if (!view)
      view = reshape(b, value, shape);
    return view;
  }

  Value rewritten() {
    RankedTensorType type = tensorType(op->getResult(0));
    SmallVector<int64_t> shape = squeezed(type.getShape()), numbers = numbering(type.getShape());
    if (auto iota = dyn_cast<IotaOp>(op)) {
      int64_t dim = numbers[iota.getDimension()];
      return dim < 0 ? splat(b, tensorLike(type, shape), 0) : Value(IotaOp::create(b, tensorLike(type, shape), dim));
    }
    if (auto broadcastOp = dyn_cast<BroadcastOp>(op)) {
      SmallVector<int64_t> dims;
      for (auto [d, target] : llvm::enumerate(broadcastOp.getDims()))
        if (tensorType(broadcastOp.getOperand()).getDimSize(d) != 1)
          dims.push_back(numbers[target]);
      return broadcast(b, squeeze(broadcastOp.getOperand()), dims, shape);
    }
    if (isa<ReduceSumOp, ReduceMaxOp>(op))
      return reduced();
    Operation *copy = b.clone(*op);
    for (OpOperand &operand : copy->getOpOperands()) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(copy);
      operand.set(squeeze(operand.get()));
    }
    copy->getResult(0).setType(tensorLike(type, shape));
    return copy->getResult(0);
  }
  Value reduced() {
    Value operand = op->getOperand(0);
    SmallVector<int64_t> numbers = numbering(tensorType(operand).getShape()), dims;
    for (int64_t d : op->getAttrOfType<DenseI64ArrayAttr>("dims").asArrayRef())
      if (numbers[d] >= 0)
        dims.push_back(numbers[d]);
    Value source = squeeze(operand);
    return isa<ReduceSumOp>(op) ? reduceSum(b, source, dims) : reduceMax(b, source, dims);
  }

  Operation *op;
  llvm::DenseMap<Value, Value> &squeezedViews; ///< of values met so far, so that each has one
  ImplicitLocOpBuilder b;
};
} // namespace

static void composeBroadcasts(func::FuncOp function) {
  for (BroadcastOp op : function.getOps<BroadcastOp>()) {
    while (auto inner = op.getOperand().getDefiningOp<BroadcastOp>()) {
      SmallVector<int64_t> dims;
      for (int64_t d : inner.getDims())
        dims.push_back(op.getDims()[d]);
      op.setDims(dims);
      op.getOperandMutable().assign(inner.getOperand());
    }
    Operation *source = op.getOperand().getDefiningOp();
    if (!source || !isSplat(source))
      continue;
    OpBuilder builder(op);
    auto elements = cast<DenseElementsAttr>(cast<ConstantOp>(source).getValue());
    op.getResult().replaceAllUsesWith(ConstantOp::create(builder, op.getLoc(), elements.resizeSplat(op.getType())));
  }
}

// Back to front, so that whole chains go.
static void eraseDead(func::FuncOp function) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
    if (op.use_empty() && isMemoryEffectFree(&op) && !op.hasTrait<OpTrait::IsTerminator>())
      op.erase();
}

void prepare(func::FuncOp function) {
  expandWholeOps(function);
  llvm::DenseMap<Value, Value> squeezedViews;
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front()))
    if (UnitDims rewriter(&op, squeezedViews); rewriter.applies())
      rewriter.rewrite();
  composeBroadcasts(function);
  eraseDead(function);
}

} // namespace plimsoll::fusion
