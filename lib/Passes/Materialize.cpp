// Inserts graph.copy where a consumer cannot take a strided view, so that everything below can treat views as windows.
#include "lib/Passes/Layout.h"
#include "lib/Passes/Passes.h"

namespace plimsoll {
#define GEN_PASS_DEF_PLIMSOLLMATERIALIZE
#include "lib/Passes/Passes.h.inc"
} // namespace plimsoll

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::graph;

// A matrix operand the library takes as it is: one of the last two dimensions is contiguous and the other steps over it.
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
  if (isa<DotOp>(user))
    return isMatrix(shape, window.strides);
  if (isa<AttentionOp, AttentionGradOp>(user) && shape.size() == 4)
    return use.get() == maskOf(user) || shape.back() == 1 || window.strides.back() == 1;
  return isDense(shape, window.strides);
}

static void materialise(OpOperand &use) {
  OpBuilder builder(use.getOwner());
  use.set(CopyOp::create(builder, use.get().getLoc(), use.get()));
}

// A state write needs a value with storage of its own: not a view, and not the value of an argument or another variable.
static bool ownsStorage(Value value) {
  Operation *op = value.getDefiningOp();
  return op && !op->hasTrait<GraphView>() && !isa<ReadOp>(op);
}

namespace {
struct Materialize : public plimsoll::impl::PlimsollMaterializeBase<Materialize> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (op->getParentOfType<GroupOp>())
        return;
      for (OpOperand &use : op->getOpOperands()) {
        std::optional<StorageWindow> window = windowOf(use.get());
        bool fits = window && (isa<WriteOp>(op) ? ownsStorage(use.get()) : takesWindow(use, *window));
        if (auto reshape = dyn_cast<ReshapeOp>(op); reshape && fits)
          fits = windowOf(reshape.getResult()).has_value();
        if (!fits)
          materialise(use);
      }
    });
  }
};
} // namespace
