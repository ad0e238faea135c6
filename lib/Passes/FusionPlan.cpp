// Decides which ops run as one kernel.
//
// Problem. Partition the elementwise and reduce ops of a block so that each part has one iteration space, the parts
// with the other ops form no cycle, and storage does not grow: a kernel reads operands and writes results, everything
// inside is free.
//
// Method. Ops are visited in order; each starts as a part of its own and is merged with the parts of its producers,
// then parts of one space that read a common value are merged (two column sums over one gradient). A merge needs:
// compatible spaces (equal, or one is the parallel part of the other); only local edges inside (same element, or a
// statistic back to its row); no path that leaves and re-enters; at most `mostOperands` operands; and no harm to
// lifetimes (see `harmless`). Broadcasts, splat constants and index values are cloned by every consumer and so never
// keep storage.
//
// Why it stops. Each merge lowers the number of parts. Complexity: a merge looks at paths only within the span between
// the two parts, and gives up (refuses) after `pathLimit` ops, so the whole is near-linear in practice. Deterministic:
// only block order decides.
#include "lib/Passes/Fusion.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>
#include <queue>

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::fusion {
namespace {

constexpr size_t mostOperands = 32, mostMembers = 96, pathLimit = 4000;

/// A value that a root op reads, seen through the broadcast (if any) that it would clone.
struct Edge {
  Value source;
  BroadcastOp through;
};

/// A group in the making. `first` and `last` are positions of members in the block.
struct Part {
  Space space;
  std::vector<size_t> members;
  bool alive = false;
  size_t first() const { return members.front(); }
  size_t last() const { return members.back(); }
};

class Planner {
public:
  explicit Planner(func::FuncOp source) : function(source) {
    for (Operation &op : function.getBody().front()) {
      place[&op] = ops.size();
      ops.push_back(&op);
    }
    partOf.assign(ops.size(), 0);
    parts.resize(ops.size());
    heavyBefore.assign(ops.size() + 1, 0);
    for (size_t i = 0; i < ops.size(); ++i) {
      partOf[i] = i;
      parts[i].members = {i};
      heavyBefore[i + 1] = heavyBefore[i] + (ops[i]->hasTrait<GraphLibrary>() ? 1 : 0);
    }
    linkState();
  }

  Partition plan() {
    for (size_t i = 0; i < ops.size(); ++i)
      if (isRoot(ops[i]))
        visit(i);
    mergeSiblings();
    for (size_t i = 0; i < ops.size(); ++i) // a part that learnt what it reduces can take in statistics now
      if (isRoot(ops[i]))
        mergeProducers(i);
    return result();
  }

private:
  // --- the graph -----------------------------------------------------------------------------------------------------

  // A write waits for every use of the value it replaces; a read waits for the write before it.
  void linkState() {
    after.resize(ops.size());
    llvm::StringMap<SmallVector<size_t>> readers;
    llvm::StringMap<size_t> writer;
    for (size_t i = 0; i < ops.size(); ++i) {
      if (auto read = dyn_cast<ReadOp>(ops[i])) {
        readers[read.getVariable()].push_back(i);
        if (auto last = writer.find(read.getVariable()); last != writer.end())
          after[last->second].push_back(i);
      }
      auto write = dyn_cast<WriteOp>(ops[i]);
      if (!write)
        continue;
      for (size_t reader : readers[write.getVariable()]) {
        after[reader].push_back(i);
        for (Operation *user : usersThroughViews(ops[reader]))
          if (place.lookup(user) < i)
            after[place.lookup(user)].push_back(i);
      }
      writer[write.getVariable()] = i;
    }
  }
  /// Users that read an op's storage: direct ones, and those behind views.
  static SmallVector<Operation *> usersThroughViews(Operation *op) {
    SmallVector<Operation *> users, work{op};
    while (!work.empty())
      for (Operation *user : work.pop_back_val()->getUsers()) {
        users.push_back(user);
        if (user->hasTrait<GraphView>())
          work.push_back(user);
      }
    return users;
  }
  /// Ops that must run after `op`. A broadcast is passed through to the roots that clone it; on its own it only
  /// precedes the other users, which take it as a view.
  void forEachSuccessor(size_t op, llvm::function_ref<void(size_t)> visitSuccessor) const {
    bool clones = isCloned(ops[op]);
    for (Operation *user : ops[op]->getUsers()) {
      if (clones && isRoot(user))
        continue;
      visitSuccessor(place.lookup(user));
      if (!isa<BroadcastOp>(user))
        continue;
      for (Operation *reader : user->getUsers())
        if (isRoot(reader))
          visitSuccessor(place.lookup(reader));
    }
    for (size_t next : after[op])
      visitSuccessor(next);
  }

  static SmallVector<Edge> edgesOf(Operation *op) {
    SmallVector<Edge> edges;
    for (Value operand : op->getOperands()) {
      Operation *source = operand.getDefiningOp();
      if (auto broadcast = dyn_cast_or_null<BroadcastOp>(source))
        edges.push_back({broadcast.getOperand(), broadcast});
      else if (!source || !isCloned(source))
        edges.push_back({operand, nullptr});
    }
    return edges;
  }
  std::optional<size_t> partOfValue(Value value) const {
    Operation *op = value.getDefiningOp();
    return op && isRoot(op) ? std::optional<size_t>(partOf[place.lookup(op)]) : std::nullopt;
  }

  // --- spaces
  // ----------------------------------------------------------------------------------------------------------

  static Space spaceOf(Operation *op) {
    if (!isa<ReduceSumOp, ReduceMaxOp>(op))
      return {SmallVector<int64_t>(tensorType(op->getResult(0)).getShape()), {}};
    auto dims = op->getAttrOfType<DenseI64ArrayAttr>("dims").asArrayRef();
    return {SmallVector<int64_t>(tensorType(op->getOperand(0)).getShape()), SmallVector<int64_t>(dims)};
  }
  static std::optional<Space> joined(const Space &x, const Space &y) {
    if (x == y)
      return x;
    const Space &reducing = x.reduced.empty() ? y : x, &plain = x.reduced.empty() ? x : y;
    bool fits = plain.reduced.empty() && !reducing.reduced.empty() &&
                (plain.iteration == reducing.iteration || plain.iteration == reducing.parallelShape());
    return fits ? std::optional<Space>(reducing) : std::nullopt;
  }
  /// Inside a group, an element may only meet the same element, or the statistic of its own row.
  static bool isLocal(Edge edge, const Space &space) {
    if (!edge.through)
      return true;
    return !space.reduced.empty() && tensorType(edge.source).getShape() == ArrayRef<int64_t>(space.parallelShape()) &&
           tensorType(edge.through.getResult()).getShape() == ArrayRef<int64_t>(space.iteration) &&
           edge.through.getDims() == ArrayRef<int64_t>(space.parallelDims());
  }
  bool edgesAreLocal(size_t from, size_t to, const Space &space) const {
    for (size_t member : parts[to].members)
      for (const Edge &edge : edgesOf(ops[member]))
        if (std::optional<size_t> part = partOfValue(edge.source); part == from && !isLocal(edge, space))
          return false;
    return true;
  }

  // --- conditions of a merge
  // -------------------------------------------------------------------------------------------

  /// Whether a path leads from part `from` to part `to` through an op of neither.
  bool pathOutside(size_t from, size_t to) const {
    llvm::DenseSet<size_t> seen{from, to};
    SmallVector<size_t> work;
    auto enter = [&](size_t op) {
      size_t part = partOf[op];
      if (parts[part].first() <= parts[to].last() && seen.insert(part).second)
        work.push_back(part);
    };
    for (size_t member : parts[from].members)
      forEachSuccessor(member, enter);
    bool found = false;
    while (!work.empty() && !found) {
      if (seen.size() > pathLimit)
        return true;
      for (size_t member : parts[work.pop_back_val()].members)
        forEachSuccessor(member, [&](size_t next) {
          found |= partOf[next] == to;
          enter(next);
        });
    }
    return found;
  }

  llvm::SetVector<Value> externalInputs(ArrayRef<size_t> mergedParts) const {
    llvm::SetVector<Value> inputs;
    for (size_t part : mergedParts)
      for (size_t member : parts[part].members)
        for (const Edge &edge : edgesOf(ops[member])) {
          std::optional<size_t> source = partOfValue(edge.source);
          if (!source || !llvm::is_contained(mergedParts, *source))
            inputs.insert(edge.source);
        }
    return inputs;
  }
  bool usedOutside(Value value, ArrayRef<size_t> mergedParts) const {
    SmallVector<Operation *> work(value.getUsers());
    while (!work.empty()) {
      Operation *user = work.pop_back_val();
      if (isa<BroadcastOp>(user))
        llvm::append_range(work, user->getUsers());
      else if (!llvm::is_contained(mergedParts, partOf[place.lookup(user)]))
        return true;
    }
    return false;
  }
  size_t operandCount(ArrayRef<size_t> mergedParts) const {
    size_t count = externalInputs(mergedParts).size();
    for (size_t part : mergedParts)
      for (size_t member : parts[part].members)
        count += usedOutside(ops[member]->getResult(0), mergedParts) ? 1 : 0;
    return count;
  }

  size_t lastUse(Value value) const {
    size_t last = 0;
    SmallVector<Operation *> work(value.getUsers());
    while (!work.empty()) {
      Operation *user = work.pop_back_val();
      last = std::max(last, place.lookup(user));
      if (user->hasTrait<GraphView>())
        llvm::append_range(work, user->getUsers());
    }
    return last;
  }
  static bool isPersistent(Value value) {
    return !value.getDefiningOp() || isa<ReadOp, ConstantOp>(value.getDefiningOp());
  }

  /// Merging delays the earlier part to the place of the later one. With no library op between them nothing changes;
  /// across one it must pay: what the earlier part reads and would have freed may not exceed what no longer needs
  /// storage, and nobody else may wait for its results.
  bool harmless(size_t x, size_t y) const {
    size_t earlier = parts[x].last() < parts[y].last() ? x : y, later = earlier == x ? y : x;
    size_t from = parts[earlier].last(), to = parts[later].last();
    if (heavyBefore[to] == heavyBefore[from])
      return true;
    uint64_t held = 0, saved = 0;
    for (Value input : externalInputs({earlier}))
      if (!isPersistent(input) && lastUse(input) < to)
        held += tensorBytes(input.getType());
    for (size_t member : parts[earlier].members) {
      Value value = ops[member]->getResult(0);
      if (!usedOutside(value, {earlier}))
        continue;
      if (!usedOutside(value, {x, y}))
        saved += tensorBytes(value.getType());
      else if (firstUseOutside(value, {x, y}) < to)
        return false;
    }
    return saved > 0 && saved >= held;
  }
  size_t firstUseOutside(Value value, ArrayRef<size_t> mergedParts) const {
    size_t first = ops.size();
    SmallVector<Operation *> work(value.getUsers());
    while (!work.empty()) {
      Operation *user = work.pop_back_val();
      if (isa<BroadcastOp>(user))
        llvm::append_range(work, user->getUsers());
      else if (!llvm::is_contained(mergedParts, partOf[place.lookup(user)]))
        first = std::min(first, place.lookup(user));
    }
    return first;
  }

  /// A sum over rows reads columns; a tensor that feeds it and must be written anyway is written faster row by row on
  /// its own.
  bool spoilsStreaming(size_t x, size_t y, const Space &space) const {
    bool column = !space.reduced.empty() && space.reduced.back() + 1 != static_cast<int64_t>(space.iteration.size());
    size_t plain = parts[x].space.reduced.empty() ? x : y, reducing = plain == x ? y : x;
    if (!column || !parts[plain].space.reduced.empty() || parts[reducing].space.reduced.empty())
      return false;
    bool feeds = false, written = false;
    for (size_t member : parts[plain].members) {
      Value value = ops[member]->getResult(0);
      if (tensorType(value).getShape() != ArrayRef<int64_t>(space.iteration))
        continue;
      for (Operation *user : value.getUsers()) {
        feeds |= isRoot(user) && partOf[place.lookup(user)] == reducing;
        written |= !isRoot(user);
      }
    }
    return feeds && written;
  }

  bool tryMerge(size_t x, size_t y) {
    if (x == y)
      return true;
    std::optional<Space> space = joined(parts[x].space, parts[y].space);
    if (!space || parts[x].members.size() + parts[y].members.size() > mostMembers)
      return false;
    if (!edgesAreLocal(x, y, *space) || !edgesAreLocal(y, x, *space) || spoilsStreaming(x, y, *space) ||
        !harmless(x, y))
      return false;
    if (pathOutside(x, y) || pathOutside(y, x) || operandCount({x, y}) > mostOperands)
      return false;
    merge(x, y, *space);
    return true;
  }
  void merge(size_t into, size_t from, const Space &space) {
    std::vector<size_t> members;
    std::merge(parts[into].members.begin(), parts[into].members.end(), parts[from].members.begin(),
               parts[from].members.end(), std::back_inserter(members));
    parts[into].members = std::move(members);
    parts[into].space = space;
    for (size_t member : parts[from].members)
      partOf[member] = into;
    parts[from].alive = false;
    parts[from].members.clear();
  }

  // --- the order of merges
  // -----------------------------------------------------------------------------------------------

  void visit(size_t op) {
    parts[op].space = spaceOf(ops[op]);
    parts[op].alive = true;
    mergeProducers(op);
  }
  void mergeProducers(size_t op) {
    for (const Edge &edge : edgesOf(ops[op]))
      if (std::optional<size_t> producer = partOfValue(edge.source))
        tryMerge(*producer, partOf[op]);
  }

  void mergeSiblings() {
    for (size_t op = 0; op < ops.size(); ++op)
      for (Value value : ops[op]->getResults())
        mergeReaders(value);
    for (Value argument : function.getArguments())
      mergeReaders(argument);
  }
  void mergeReaders(Value value) {
    SmallVector<size_t> readers; // in block order of use
    SmallVector<Operation *> users(value.getUsers());
    llvm::sort(users, [&](Operation *l, Operation *r) { return place.lookup(l) < place.lookup(r); });
    for (Operation *user : users)
      if (isRoot(user) && place.count(user))
        readers.push_back(place.lookup(user));
    for (size_t i = 1; i < readers.size(); ++i) {
      size_t previous = partOf[readers[i - 1]], next = partOf[readers[i]];
      bool reads = parts[previous].space == parts[next].space &&
                   tensorType(value).getShape() == ArrayRef<int64_t>(parts[next].space.iteration);
      if (previous != next && reads)
        tryMerge(previous, next);
    }
  }

  // --- result
  // ------------------------------------------------------------------------------------------------------------

  Partition result() {
    Partition partition;
    for (size_t op = 0; op < ops.size(); ++op) {
      const Part &part = parts[partOf[op]];
      if (!part.alive || part.first() != op)
        continue;
      Group group{part.space, {}};
      for (size_t member : part.members) {
        group.members.push_back(ops[member]);
        partition.groupOf[ops[member]] = static_cast<unsigned>(partition.groups.size());
      }
      partition.groups.push_back(std::move(group));
    }
    orderParts(partition);
    return partition;
  }

  // Kahn's algorithm; among the ready, the part whose last member came first.
  void orderParts(Partition &partition) {
    std::vector<size_t> waiting(parts.size(), 0);
    auto forEachEdge = [&](llvm::function_ref<void(size_t, size_t)> visitEdge) {
      for (size_t op = 0; op < ops.size(); ++op)
        forEachSuccessor(op, [&](size_t next) {
          if (partOf[op] != partOf[next])
            visitEdge(partOf[op], partOf[next]);
        });
    };
    forEachEdge([&](size_t, size_t to) { ++waiting[to]; });
    using Entry = std::pair<size_t, size_t>; // (last member, part)
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    for (size_t part = 0; part < parts.size(); ++part)
      if (!parts[part].members.empty() && waiting[part] == 0)
        ready.push({parts[part].last(), part});
    while (!ready.empty()) {
      size_t part = ready.top().second;
      ready.pop();
      partition.order.push_back(ops[parts[part].first()]);
      for (size_t member : parts[part].members)
        forEachSuccessor(member, [&](size_t next) {
          size_t to = partOf[next];
          if (to != part && --waiting[to] == 0)
            ready.push({parts[to].last(), to});
        });
    }
    auto alive = llvm::count_if(parts, [](const Part &part) { return !part.members.empty(); });
    partition.complete = partition.order.size() == static_cast<size_t>(alive);
  }

  func::FuncOp function;
  std::vector<Operation *> ops;
  llvm::DenseMap<Operation *, size_t> place;
  std::vector<size_t> partOf;
  std::vector<Part> parts;
  std::vector<size_t> heavyBefore;           ///< library ops before a position
  std::vector<SmallVector<size_t, 1>> after; ///< order between ops that share state
};
} // namespace

Partition partition(func::FuncOp function) { return Planner(function).plan(); }

} // namespace plimsoll::fusion
