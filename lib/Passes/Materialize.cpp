// Inserts graph.copy where a consumer cannot take a strided view, so that everything below can treat views as windows.
#include "lib/Passes/Layout.h"
#include "lib/Passes/Passes.h"

#include "llvm/ADT/StringSet.h"

namespace plimsoll {
#define GEN_PASS_DEF_PLIMSOLLMATERIALIZE
#include "lib/Passes/Passes.h.inc"
} // namespace plimsoll

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::graph;

// A matrix operand the library takes as it is: one of the last two dimensions is contiguous and the other steps over
// it.
static bool isMatrix(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides) {
  size_t m = shape.size() - 2, n = shape.size() - 1;
  auto rows = [&](size_t outer, size_t inner) {
    return (strides[inner] == 1 || shape[inner] == 1) && (strides[outer] >= shape[inner] || shape[outer] == 1);
  };
  return rows(m, n) || rows(n, m);
}

static Value maskOf(Operation *op) {
  if (auto attention = dyn_cast<AttentionOp>(op))
    return attention.getMask();
  auto gradient = dyn_cast<AttentionGradOp>(op);
  return gradient ? gradient.getMask() : Value();
}

static bool takesWindow(OpOperand &use, const StorageWindow &window) {
  Operation *user = use.getOwner();
  ArrayRef<int64_t> shape = tensorType(use.get()).getShape();
  if (user->hasTrait<GraphView>() || isa<GroupOp, CopyOp, ConcatOp, PadOp>(user))
    return true;
  if (isa<DotOp>(user) || (isa<DotAddOp>(user) && use.getOperandNumber() < 2))
    return isMatrix(shape, window.strides);
  if (isa<AttentionOp, AttentionGradOp>(user) && shape.size() == 4)
    return use.get() == maskOf(user) || shape.back() == 1 || window.strides.back() == 1;
  return isDense(shape, window.strides);
}

static void materialise(OpOperand &use) {
  OpBuilder builder(use.getOwner());
  use.set(CopyOp::create(builder, use.get().getLoc(), use.get()));
}

// The caller sees a result after the entry has run: the old value of a variable that the entry writes must be set
// aside. The copy is made where the value is read, so that the update itself can still run in the variable.
static void keepOldValue(OpOperand &use) {
  OpBuilder builder(use.getOwner()->getContext());
  builder.setInsertionPointAfterValue(use.get());
  use.set(CopyOp::create(builder, use.get().getLoc(), use.get()));
}

static bool isOverwritten(Value base, const llvm::StringSet<> &written) {
  auto read = base.getDefiningOp<ReadOp>();
  return read && written.contains(read.getVariable());
}

namespace {
struct Materialize : public plimsoll::impl::PlimsollMaterializeBase<Materialize> {
  void runOnOperation() override {
    llvm::StringSet<> written;
    getOperation().walk([&](WriteOp write) { written.insert(write.getVariable()); });
    getOperation().walk([&](Operation *op) {
      if (op->getParentOfType<GroupOp>())
        return;
      for (OpOperand &use : op->getOpOperands())
        fit(use, written);
    });
  }

  static void fit(OpOperand &use, const llvm::StringSet<> &written) {
    Operation *op = use.getOwner();
    std::optional<StorageWindow> window = windowOf(use.get());
    bool fits = window && (isa<WriteOp>(op) ? hasOwnStorage(use.get()) : takesWindow(use, *window));
    if (auto reshape = dyn_cast<ReshapeOp>(op); reshape && fits)
      fits = windowOf(reshape.getResult()).has_value();
    if (isa<func::ReturnOp>(op) && window && isOverwritten(window->base, written))
      keepOldValue(use);
    else if (!fits)
      materialise(use);
  }
};
} // namespace
