// Order of ops. Autodiff emits a weight gradient beside the data gradient that frees its inputs, so the remaining
// freedom is when state is updated: an update that runs as soon as it can ends the gradient's life (PLANNING §3,
// "update immediately after dW"). Reads go to the top (they are views of persistent storage), scalar bookkeeping as
// early as its operands allow, then updates.
#include "lib/Passes/Passes.h"

namespace plimsoll {
#define GEN_PASS_DEF_PLIMSOLLSCHEDULE
#include "lib/Passes/Passes.h.inc"
} // namespace plimsoll

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::graph;

namespace {
/// The latest op among those that have to run before a moved one.
class Latest {
public:
  void consider(Operation *op) {
    if (op && (!latest || latest->isBeforeInBlock(op)))
      latest = op;
  }
  void considerOperands(Operation *op) {
    for (Value operand : op->getOperands())
      consider(operand.getDefiningOp());
  }
  Operation *op() const { return latest; }

private:
  Operation *latest = nullptr;
};
} // namespace

// Every op that looks at the elements of `value`, through views, except `self`.
static void considerUsers(Value value, Operation *self, Latest &latest) {
  for (Operation *user : value.getUsers()) {
    if (user == self)
      continue;
    latest.consider(user);
    if (user->hasTrait<GraphView>())
      considerUsers(user->getResult(0), self, latest);
  }
}

static void moveAfterOrFront(Operation *op, Operation *after) {
  if (!after)
    op->moveBefore(&op->getBlock()->front());
  else if (after->getNextNode() != op)
    op->moveAfter(after);
}

static void hoistReads(Block &block) {
  Operation *last = nullptr;
  for (ReadOp read : llvm::make_early_inc_range(block.getOps<ReadOp>())) {
    moveAfterOrFront(read, last);
    last = read;
  }
}

// Views cost nothing: right behind what they look into they hold up neither the ops that use them nor the update of
// that variable.
static void hoistViews(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    Operation *source = op.hasTrait<GraphView>() ? op.getOperand(0).getDefiningOp() : nullptr;
    if (!source)
      continue;
    Operation *before = op.getPrevNode();
    while (before != source && before->hasTrait<GraphView>())
      before = before->getPrevNode();
    if (before != source)
      op.moveAfter(source);
  }
}

static bool isScalarWork(Operation *op) {
  auto single = [](Type type) { return cast<RankedTensorType>(type).getNumElements() == 1; };
  return isMemoryEffectFree(op) && op->getNumResults() && llvm::all_of(op->getOperandTypes(), single) &&
         llvm::all_of(op->getResultTypes(), single);
}

static void hoistScalarWork(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    if (!isScalarWork(&op))
      continue;
    Latest latest;
    latest.considerOperands(&op);
    if (latest.op())
      moveAfterOrFront(&op, latest.op());
  }
}

static Operation *producerOf(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && op->hasTrait<GraphView>())
    op = op->getOperand(0).getDefiningOp();
  return op;
}

// Collects the views and writes that `op`'s results feed, views before what they feed. False when something else uses
// them.
static bool collectWrites(Operation *op, SmallVectorImpl<Operation *> &followers, SmallVectorImpl<WriteOp> &writes) {
  for (Operation *user : op->getUsers()) {
    if (user->hasTrait<GraphView>()) {
      followers.push_back(user);
      if (!collectWrites(user, followers, writes))
        return false;
      continue;
    }
    auto write = dyn_cast<WriteOp>(user);
    if (!write)
      return false;
    writes.push_back(write);
  }
  return true;
}

// Moves `producer` and the writes of its results to the first place where its operands exist and every other reader of
// the old values is done. Leaves it where it is when a result is needed by anything but a write.
static void hoistUpdate(Operation *producer, llvm::StringMap<SmallVector<ReadOp>> &reads) {
  SmallVector<Operation *> followers;
  SmallVector<WriteOp> writes;
  if (!collectWrites(producer, followers, writes))
    return;
  Latest latest;
  latest.considerOperands(producer);
  for (WriteOp write : writes)
    for (ReadOp read : reads[write.getVariable()]) {
      latest.consider(read);
      considerUsers(read.getResult(), producer, latest);
    }
  if (!latest.op() || !latest.op()->isBeforeInBlock(producer))
    return;
  llvm::stable_sort(writes, [](WriteOp a, WriteOp b) { return a->isBeforeInBlock(b); });
  llvm::append_range(followers, writes);
  moveAfterOrFront(producer, latest.op());
  Operation *last = producer;
  for (Operation *follower : followers) {
    follower->moveAfter(last);
    last = follower;
  }
}

namespace {
struct Schedule : public plimsoll::impl::PlimsollScheduleBase<Schedule> {
  void runOnOperation() override {
    if (!getOperation().getBody().hasOneBlock())
      return;
    Block &block = getOperation().getBody().front();
    hoistReads(block);
    hoistViews(block);
    hoistScalarWork(block);
    llvm::StringMap<SmallVector<ReadOp>> reads;
    for (ReadOp read : block.getOps<ReadOp>())
      reads[read.getVariable()].push_back(read);
    llvm::SetVector<Operation *> producers;
    for (WriteOp write : block.getOps<WriteOp>())
      if (Operation *producer = producerOf(write.getValue()); isa_and_nonnull<GroupOp>(producer))
        producers.insert(producer);
    for (Operation *producer : producers)
      hoistUpdate(producer, reads);
  }
};
} // namespace
