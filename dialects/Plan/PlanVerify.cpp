// The invariants of a memory-planned step, P1..P7 (README.md). planner::validate and the artifact reader judge the same
// plan again with their own code; this verifier is what keeps textual plans honest.
#include "dialects/Plan/Plan.h"

using namespace mlir;
using namespace plimsoll::plan;

namespace {
/// A buffer with its live range; persistent buffers live over every command, inputs from before command 0.
struct Placed {
  BufferOp op;
  uint64_t begin, end;
  int64_t first, last;
  bool persistent;
};
} // namespace

// P1: the arena exists, the range lies inside it, the offset is aligned.
static LogicalResult verifyPlacement(ProgramOp program, BufferOp buffer) {
  auto arena = program.lookupSymbol<ArenaOp>(buffer.getArenaAttr());
  if (!arena)
    return buffer.emitOpError("P1: unknown arena ") << buffer.getArenaAttr();
  uint64_t offset = buffer.getOffset(), bytes = buffer.getBytes();
  if (offset > arena.getBytes() || bytes > arena.getBytes() - offset)
    return buffer.emitOpError("P1: bytes [")
           << offset << ", " << offset + bytes << ") leave the arena's " << arena.getBytes();
  if (arena.getAlignment() && offset % arena.getAlignment())
    return buffer.emitOpError("P1: offset ")
           << offset << " is not a multiple of the arena's alignment " << arena.getAlignment();
  return success();
}

static Placed placed(BufferOp op, bool persistent) {
  int64_t first = persistent ? INT64_MIN : static_cast<int64_t>(*op.getFirst());
  int64_t last = persistent ? INT64_MAX : static_cast<int64_t>(*op.getLast());
  return {op, op.getOffset(), op.getOffset() + op.getBytes(), first, last, persistent};
}

// Whether `result` takes over the bytes of `operand`: exactly those, at the operand's last command, the operand defined
// before.
static bool takesOver(Placed operand, Placed result) {
  bool transient = !operand.persistent && !result.persistent;
  bool scratch = operand.op.getKlass() == BufferClass::Workspace || result.op.getKlass() == BufferClass::Workspace;
  bool sameBytes = operand.begin == result.begin && operand.end == result.end;
  return transient && !scratch && sameBytes && operand.first < result.first && operand.last == result.first;
}

// P2: buffers that are live at one command are disjoint, but for a result that takes over an operand.
static bool conflict(Placed a, Placed b) {
  if (a.begin == a.end || b.begin == b.end || a.op.getArenaAttr() != b.op.getArenaAttr())
    return false;
  bool bytesOverlap = a.begin < b.end && b.begin < a.end;
  bool timesOverlap = a.first <= b.last && b.first <= a.last;
  return bytesOverlap && timesOverlap && !takesOver(a, b) && !takesOver(b, a);
}

static LogicalResult verifyDisjoint(SmallVector<Placed> buffers) {
  llvm::stable_sort(buffers, [](const Placed &a, const Placed &b) { return a.begin < b.begin; });
  for (size_t i = 0; i < buffers.size(); ++i)
    for (size_t j = i + 1; j < buffers.size() && buffers[j].begin < buffers[i].end; ++j)
      if (conflict(buffers[i], buffers[j]))
        return buffers[j].op.emitOpError("P2: overlaps ") << buffers[i].op.getSymName() << " in bytes and time";
  return success();
}

namespace {
/// Checks one entry against its program.
class EntryVerifier {
public:
  EntryVerifier(ProgramOp owner, EntryOp checked) : program(owner), entry(checked) {}

  LogicalResult verify(ArrayRef<Placed> persistent) {
    SmallVector<Placed> buffers(persistent);
    llvm::SmallDenseSet<StringAttr> inputs;
    for (PortAttr port : entry.getInputs().getAsRange<PortAttr>())
      inputs.insert(port.getView().getBuffer().getAttr());
    for (BufferOp buffer : entry.getBody().getOps<BufferOp>()) {
      if (!buffer.getFirst() || !buffer.getLast() || *buffer.getFirst() > *buffer.getLast())
        return buffer.emitOpError("P3: a transient buffer needs a live range first <= last");
      if (failed(verifyPlacement(program, buffer)))
        return failure();
      buffers.push_back(placed(buffer, false));
      if (inputs.contains(buffer.getSymNameAttr()))
        buffers.back().first = -1; // staged before the entry runs
    }
    return failed(verifyDisjoint(buffers)) || failed(verifyPorts()) ? failure() : verifyCommands();
  }

private:
  // P4: a window names a buffer of the entry or the program and stays inside it.
  LogicalResult verifyWindow(Operation *user, OperandAttr window, int64_t command) {
    auto buffer = entry.lookupSymbol<BufferOp>(window.getBuffer());
    bool persistent = !buffer;
    if (persistent)
      buffer = program.lookupSymbol<BufferOp>(window.getBuffer());
    if (!buffer)
      return user->emitOpError("P4: unknown buffer ") << window.getBuffer();
    if (window.getStrides().size() != static_cast<size_t>(window.getType().getRank()))
      return user->emitOpError("P4: expected one stride per dimension of ") << window.getType();
    if (window.getOffset() < 0 || llvm::any_of(window.getStrides(), [](int64_t stride) { return stride < 0; }))
      return user->emitOpError("P4: window of ") << window.getBuffer() << " has a negative offset or stride";
    uint64_t offset = static_cast<uint64_t>(window.getOffset());
    if (offset > buffer.getBytes() || windowBytes(window) > buffer.getBytes() - offset)
      return user->emitOpError("P4: window leaves buffer ")
             << window.getBuffer() << " of " << buffer.getBytes() << " bytes";
    bool live =
        persistent || command < 0 ||
        (command >= static_cast<int64_t>(*buffer.getFirst()) && command <= static_cast<int64_t>(*buffer.getLast()));
    return live ? success()
                : user->emitOpError("P5: command ")
                      << command << " uses " << window.getBuffer() << " outside its live range";
  }

  LogicalResult verifyPorts() {
    for (ArrayAttr ports : {entry.getInputs(), entry.getOutputs()})
      for (PortAttr port : ports.getAsRange<PortAttr>())
        if (failed(verifyWindow(entry, port.getView(), -1)))
          return failure();
    return success();
  }

  // P5: operands are live; P6: an event is recorded before it is waited for; P7: the workspace index is an operand or
  // -1.
  LogicalResult verifyCommands() {
    int64_t command = 0;
    llvm::SmallDenseSet<int64_t> recorded;
    for (Operation &op : entry.getBody().front()) {
      if (isa<BufferOp>(op))
        continue;
      if (failed(verifyCommand(op, command, recorded)))
        return failure();
      ++command;
    }
    return success();
  }

  LogicalResult verifyCommand(Operation &op, int64_t command, llvm::SmallDenseSet<int64_t> &recorded) {
    if (auto record = dyn_cast<RecordOp>(op))
      recorded.insert(record.getEvent());
    if (auto wait = dyn_cast<WaitOp>(op); wait && !recorded.contains(wait.getEvent()))
      return wait.emitOpError("P6: event ") << wait.getEvent() << " is waited for before it is recorded";
    if (auto copy = dyn_cast<CopyOp>(op))
      return failed(verifyWindow(&op, copy.getSource(), command)) ? failure()
                                                                  : verifyWindow(&op, copy.getTarget(), command);
    auto operands = op.getAttrOfType<ArrayAttr>("arguments");
    for (Attribute operand : operands ? operands.getValue() : ArrayRef<Attribute>())
      if (failed(verifyWindow(&op, cast<OperandAttr>(operand), command)))
        return failure();
    auto call = dyn_cast<CallOp>(op);
    int64_t workspace = call ? static_cast<int64_t>(call.getWorkspace()) : -1;
    if (workspace < -1 || workspace >= static_cast<int64_t>(operands ? operands.size() : 0))
      return op.emitOpError("P7: workspace index ") << workspace << " is neither an operand nor -1";
    return success();
  }

  ProgramOp program;
  EntryOp entry;
};
} // namespace

LogicalResult ProgramOp::verifyRegions() {
  SmallVector<Placed> persistent;
  for (BufferOp buffer : getBody().getOps<BufferOp>()) {
    if (failed(verifyPlacement(*this, buffer)))
      return failure();
    persistent.push_back(placed(buffer, true));
  }
  if (failed(verifyDisjoint(persistent)))
    return failure();
  for (EntryOp entry : getBody().getOps<EntryOp>())
    if (failed(EntryVerifier(*this, entry).verify(persistent)))
      return failure();
  return success();
}
