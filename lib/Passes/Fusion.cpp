// --plimsoll-fuse: turns a partition of a function's ops into kernel groups.
//
// A value that another group computes cheaply (a few additions and products) is recomputed instead of read when
// everything it is made of is in memory at that point anyway: the normalised activations a norm's backward needs come
// from x, mean and rstd, so the forward pass does not have to keep them.
#include "lib/Passes/Fusion.h"
#include "lib/Passes/Passes.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace plimsoll {
#define GEN_PASS_DEF_PLIMSOLLFUSE
#include "lib/Passes/Passes.h.inc"
} // namespace plimsoll

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::fusion {
namespace {

constexpr uint64_t recomputeFromBytes = 4096; // smaller values are read
constexpr unsigned recomputeDepth = 4;
constexpr size_t mostInputs = 24; // recomputing may not push a group over 32 operands

bool isLight(Operation *op) {
  return isa<AddOp, SubOp, MulOp, NegOp, MaximumOp, MinimumOp, ReluOp, CompareOp, SelectOp, AndOp, OrOp, NotOp,
             ConvertOp, AbsOp>(op);
}

/// Where every op runs: positions in the partition's order, and library ops before each.
class Timeline {
public:
  explicit Timeline(const Partition &source) : partition(source) {
    for (auto [position, op] : llvm::enumerate(partition.order)) {
      positions[op] = position;
      heavyBefore.push_back(heavy);
      heavy += op->hasTrait<GraphLibrary>() ? 1 : 0;
    }
  }
  size_t positionOf(Operation *op) const {
    auto group = partition.groupOf.find(op);
    return positions.lookup(group == partition.groupOf.end() ? op : partition.groups[group->second].members.front());
  }
  /// Whether the value is in memory at `position`, or was until the last library op before it.
  bool liveAt(Value value, size_t position) const {
    if (!value.getDefiningOp())
      return true;
    size_t last = 0;
    SmallVector<Operation *> work(value.getUsers());
    while (!work.empty()) {
      Operation *user = work.pop_back_val();
      last = std::max(last, positionOf(user));
      if (user->hasTrait<GraphView>())
        llvm::append_range(work, user->getUsers());
    }
    return last >= position || (!readsState(value) && heavyBefore[last] == heavyBefore[position]);
  }

private:
  // A variable's value may be overwritten right after its last use.
  static bool readsState(Value value) {
    Operation *source = value.getDefiningOp();
    while (source && source->hasTrait<GraphView>())
      source = source->getOperand(0).getDefiningOp();
    return isa_and_nonnull<ReadOp>(source);
  }

  const Partition &partition;
  llvm::DenseMap<Operation *, size_t> positions;
  SmallVector<size_t> heavyBefore;
  size_t heavy = 0;
};

/// What became of the ops of groups built so far.
struct Built {
  llvm::DenseMap<Value, Operation *> origin; ///< group result -> op it came from
  llvm::DenseMap<Value, Value> stored;       ///< op result -> group result that holds it
};

/// Builds one group op at `builder`, lets everything outside the group read its results, and adds them to `built`.
class GroupBuilder {
public:
  GroupBuilder(const Group &source, const Timeline &time, Built &earlier, OpBuilder &builder)
      : group(source), timeline(time), built(earlier), b(builder),
        members(source.members.begin(), source.members.end()) {}

  GroupOp build() {
    position = timeline.positionOf(group.members.front());
    for (Operation *member : group.members)
      countInputs(member);
    OpBuilder inside(b.getContext());
    inside.setInsertionPointToEnd(body);
    SmallVector<Value> results;
    SmallVector<Location> locations;
    for (Operation *member : group.members) {
      copyInto(member, inside, 0);
      locations.push_back(member->getLoc());
      if (neededOutside(member->getResult(0)))
        results.push_back(member->getResult(0));
    }
    SmallVector<Value> yielded;
    for (Value result : results)
      yielded.push_back(mapping.lookup(result));
    YieldOp::create(inside, b.getFusedLoc(locations), yielded);
    auto op = GroupOp::create(b, b.getFusedLoc(locations), ValueRange(yielded).getTypes(), inputs.getArrayRef(),
                              group.space.iteration, group.space.reduced);
    op.getBody().push_back(body);
    for (auto [old, fresh] : llvm::zip(results, op.getOutputs())) {
      old.replaceUsesWithIf(fresh, [&](OpOperand &use) { return !members.contains(use.getOwner()); });
      built.origin[fresh] = old.getDefiningOp();
      built.stored[old] = fresh;
    }
    return op;
  }

private:
  void countInputs(Operation *op) {
    for (Value operand : op->getOperands())
      direct.insert(operand);
  }
  bool neededOutside(Value value) const {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      if (!isa<BroadcastOp>(user))
        return !members.contains(user);
      return llvm::any_of(user->getUsers(), [&](Operation *reader) { return !members.contains(reader); });
    });
  }

  void copyInto(Operation *op, OpBuilder &inside, unsigned depth) {
    for (Value operand : op->getOperands())
      if (!mapping.contains(operand))
        resolve(operand, inside, depth);
    inside.clone(*op, mapping);
  }
  void resolve(Value operand, OpBuilder &inside, unsigned depth) {
    Operation *source = operand.getDefiningOp();
    if (source && isCloned(source)) {
      copyInto(source, inside, depth);
      return;
    }
    if (Value stored = built.stored.lookup(operand)) { // met inside the formula of an earlier group
      if (!mapping.contains(stored))
        resolve(stored, inside, depth);
      mapping.map(operand, mapping.lookup(stored));
      return;
    }
    if (Operation *formula = recomputable(operand, depth)) {
      copyInto(formula, inside, depth + 1);
      mapping.map(operand, mapping.lookup(formula->getResult(0)));
      return;
    }
    inputs.insert(operand);
    mapping.map(operand, body->addArgument(operand.getType(), operand.getLoc()));
  }

  /// The op that computed a result of an earlier group, if computing it again here is cheaper than reading it.
  Operation *recomputable(Value value, unsigned depth) const {
    if (!storedForm(value)) // reached through a formula found cheap
      return value.getDefiningOp();
    Operation *formula = built.origin.lookup(value);
    bool fits = depth < recomputeDepth && inputs.size() + direct.size() < mostInputs &&
                tensorBytes(value.getType()) >= recomputeFromBytes;
    bool spaceFits = tensorType(value).getShape() == ArrayRef<int64_t>(group.space.iteration);
    if (!formula || !fits || !spaceFits || !isLight(formula))
      return nullptr;
    unsigned large = 0;
    for (Value operand : formula->getOperands())
      if (!isCheapHere(operand, value, depth + 1, large))
        return nullptr;
    return large <= 1 ? formula : nullptr;
  }
  bool isCheapHere(Value operand, Value wanted, unsigned depth, unsigned &large) const {
    if (Operation *source = operand.getDefiningOp(); source && isCloned(source)) {
      auto broadcast = dyn_cast<BroadcastOp>(source);
      return !broadcast || isCheapHere(broadcast.getOperand(), wanted, depth, large);
    }
    Value stored = storedForm(operand);
    operand = stored ? stored : operand;
    if (Operation *formula =
            stored ? nullptr : operand.getDefiningOp()) // inner value of an earlier group: follow its formula
      return depth < recomputeDepth && isLight(formula) && llvm::all_of(formula->getOperands(), [&](Value inner) {
               return isCheapHere(inner, wanted, depth + 1, large);
             });
    bool isSmall = tensorBytes(operand.getType()) * 16 <= tensorBytes(wanted.getType());
    if (!isSmall && !direct.contains(operand))
      ++large;
    return isSmall || direct.contains(operand) || timeline.liveAt(operand, position);
  }
  /// The value itself when it has storage; null when it is an inner value of a group built earlier.
  Value storedForm(Value operand) const {
    Operation *source = operand.getDefiningOp();
    return source && isRoot(source) ? built.stored.lookup(operand) : operand;
  }

  const Group &group;
  const Timeline &timeline;
  Built &built;
  OpBuilder &b;
  llvm::DenseSet<Operation *> members;
  llvm::DenseSet<Value> direct;
  llvm::SetVector<Value> inputs;
  IRMapping mapping;
  Block *body = new Block;
  size_t position = 0;
};

// An index tensor that a library op reads needs storage of its own.
void materializeIndices(func::FuncOp function) {
  for (IotaOp iota : llvm::make_early_inc_range(function.getOps<IotaOp>())) {
    OpBuilder b(iota);
    auto group = GroupOp::create(b, iota.getLoc(), TypeRange(iota.getType()), ValueRange(), iota.getType().getShape(),
                                 ArrayRef<int64_t>());
    Block &body = group.getBody().emplaceBlock();
    OpBuilder inside = OpBuilder::atBlockEnd(&body);
    Operation *copy = inside.clone(*iota);
    YieldOp::create(inside, iota.getLoc(), copy->getResults());
    iota.replaceAllUsesWith(group.getOutputs().front());
    iota.erase();
  }
}

// Results that nobody reads any more (their readers recompute them), and what only they needed.
GroupOp withoutDeadResults(GroupOp op) {
  SmallVector<unsigned> dead;
  for (OpResult result : op->getResults())
    if (result.use_empty())
      dead.push_back(result.getResultNumber());
  if (dead.empty())
    return op;
  Operation *yield = op.getBody().front().getTerminator();
  SmallVector<Value> kept, oldResults;
  for (OpResult result : op->getResults())
    if (!result.use_empty()) {
      kept.push_back(yield->getOperand(result.getResultNumber()));
      oldResults.push_back(result);
    }
  yield->setOperands(kept);
  OpBuilder b(op);
  auto slim =
      GroupOp::create(b, op.getLoc(), ValueRange(kept).getTypes(), op.getInputs(), op.getIteration(), op.getReduced());
  slim.getBody().takeBody(op.getBody());
  for (auto [old, fresh] : llvm::zip(oldResults, slim.getOutputs()))
    old.replaceAllUsesWith(fresh);
  op.erase();
  return slim;
}

void dropUnusedInputs(GroupOp op) {
  Block &body = op.getBody().front();
  // The block's own reverse iterators survive erasing (those of a range adaptor do not).
  for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(body)))
    if (inner.use_empty() && !inner.hasTrait<OpTrait::IsTerminator>())
      inner.erase();
  llvm::BitVector unused(body.getNumArguments());
  for (BlockArgument argument : body.getArguments())
    if (argument.use_empty())
      unused.set(argument.getArgNumber());
  body.eraseArguments(unused);
  op->eraseOperands(unused);
}

// A group that only the dead results of others needed goes with them: back to front.
void clean(func::FuncOp function) {
  IRRewriter rewriter(function.getContext());
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front()))) {
    auto group = dyn_cast<GroupOp>(op);
    bool dead = op.use_empty() && isMemoryEffectFree(&op) && !op.hasTrait<OpTrait::IsTerminator>();
    if (dead) {
      op.erase();
    } else if (group) {
      GroupOp slim = withoutDeadResults(group);
      DominanceInfo dominance(slim);
      eliminateCommonSubExpressions(rewriter, dominance, slim);
      dropUnusedInputs(slim);
    }
  }
}
} // namespace

void build(func::FuncOp function, const Partition &partition) {
  Timeline timeline(partition);
  Operation *terminator = function.getBody().front().getTerminator();
  Built built;
  OpBuilder b(terminator);
  for (Operation *op : partition.order) {
    auto found = partition.groupOf.find(op);
    if (found == partition.groupOf.end()) {
      if (op != terminator)
        op->moveBefore(terminator);
      continue;
    }
    const Group &group = partition.groups[found->second];
    GroupBuilder(group, timeline, built, b).build();
  }
  for (const Group &group : partition.groups)
    for (Operation *member : group.members)
      member->dropAllUses();
  for (const Group &group : partition.groups)
    for (Operation *member : group.members)
      member->erase();
  clean(function);
  materializeIndices(function);
}

} // namespace plimsoll::fusion

namespace {
struct PlimsollFuse : plimsoll::impl::PlimsollFuseBase<PlimsollFuse> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!llvm::hasSingleElement(function.getBody()))
      return;
    plimsoll::fusion::prepare(function);
    plimsoll::fusion::Partition partition = plimsoll::fusion::partition(function);
    if (!partition.complete) {
      function.emitError("kernel groups have no order that respects data and state; this is a bug in fusion");
      return signalPassFailure();
    }
    plimsoll::fusion::build(function, partition);
  }
};
} // namespace
