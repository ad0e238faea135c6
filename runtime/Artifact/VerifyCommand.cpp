// What single commands and ports may do: A16 (views inside buffers), A17 (only while the buffer lives; constants are
// only read), A18 (aliasing within a command), A20 (launches), A21 (library calls), A22 (copies), A23 (streams,
// events).
#include "runtime/Artifact/Verifier.h"

#include <algorithm>
#include <set>

namespace plimsoll::artifact {

// ---- A16: the view lies inside its buffer -----------------------------------------------------------------------

/// `where()` gives the words for the place; called only when there is something to say.
template <typename Where>
static bool checkView(const EntryScope &scope, const TensorViewT &view, const Where &where, Findings &findings) {
  if (view.buffer >= scope.bufferCount()) {
    findings.add("A16", where() + " is in buffer " + std::to_string(view.buffer) + " of " +
                            std::to_string(scope.bufferCount()));
    return false;
  }
  std::optional<ByteRange> range = reach(view);
  uint64_t capacity = scope.buffer(view.buffer).bytes;
  if (!range) {
    findings.add("A16", where() + " " + viewText(view) + " has an impossible shape, strides or offset");
    return false;
  }
  if (range->end > capacity) {
    findings.add("A16", where() + " " + useText(scope, view) + " reaches byte " + groupedDigits(range->end) + " of " +
                            groupedDigits(capacity));
    return false;
  }
  if (view.offset % dtypeBytes(view.dtype) != 0) {
    findings.add("A16", where() + " " + useText(scope, view) + " starts at byte " + groupedDigits(view.offset) +
                            ", not a multiple of its element size");
    return false;
  }
  return true;
}

// ---- A17: only while the buffer lives ---------------------------------------------------------------------------

static void checkPortLifetime(const EntryScope &scope, const PortT &port, bool isInput, Findings &findings) {
  if (scope.isPersistent(port.view->buffer))
    return;
  const BufferT &buffer = scope.buffer(port.view->buffer);
  size_t commands = scope.entry.commands.size();
  if (isInput && buffer.first_command != 0)
    findings.add("A17", scope.where + " input " + inQuotes(port.name) + " is in " +
                            scope.bufferText(port.view->buffer) + ", which lives only from command " +
                            std::to_string(buffer.first_command));
  if (!isInput && buffer.last_command + size_t{1} != commands)
    findings.add("A17", scope.where + " output " + inQuotes(port.name) + " is in " +
                            scope.bufferText(port.view->buffer) + ", which dies at command " +
                            std::to_string(buffer.last_command) + " of " + std::to_string(commands));
}

static bool checkPorts(const EntryScope &scope, bool areInputs, Findings &findings) {
  bool sound = true;
  for (const auto &port : areInputs ? scope.entry.inputs : scope.entry.outputs) {
    auto where = [&] { return scope.where + (areInputs ? " input " : " output ") + inQuotes(port->name); };
    if (!checkView(scope, *port->view, where, findings)) {
      sound = false;
      continue;
    }
    if (!isContiguous(*port->view))
      findings.add("A16", where() + " " + viewText(*port->view) + " is not contiguous");
    checkPortLifetime(scope, *port, areInputs, findings);
  }
  return sound;
}

static void checkUseLifetime(const EntryScope &scope, size_t index, const ViewUse &use, Findings &findings) {
  size_t number = use.view->buffer;
  const auto &variables = scope.scope.artifact.variables;
  if (number < variables.size() && variables[number]->kind == VariableKind::Constant && use.writes())
    findings.add("A17", scope.commandText(index) + " writes the constant " + inQuotes(variables[number]->name));
  if (scope.isPersistent(number))
    return;
  const BufferT &buffer = scope.buffer(number);
  if (index < buffer.first_command || index > buffer.last_command)
    findings.add("A17", scope.commandText(index) + " uses " + scope.bufferText(number) + ", which lives from command " +
                            std::to_string(buffer.first_command) + " to " + std::to_string(buffer.last_command));
}

// ---- A18: aliasing within a command -----------------------------------------------------------------------------

/// Library operations that read an element only before they write it at the same place.
static bool allowsInPlace(const CommandT &command) {
  const LibraryCallT *call = command.body.AsLibraryCall();
  return command.body.AsLaunch() || (call && (call->op == "copy" || call->op == "cumsum"));
}

/// True when both views of this entry visit the same bytes of the same arena in the same order.
static bool samePlace(const EntryScope &scope, const TensorViewT &a, const TensorViewT &b) {
  return scope.buffer(a.buffer).offset + a.offset == scope.buffer(b.buffer).offset + b.offset &&
         dtypeBytes(a.dtype) == dtypeBytes(b.dtype) && canonicalDims(a) == canonicalDims(b);
}

static bool mayAlias(const EntryScope &scope, const CommandT &command, const ViewUse &a, const ViewUse &b) {
  if (!a.writes() && !b.writes())
    return true;
  bool sameArena = scope.buffer(a.view->buffer).arena == scope.buffer(b.view->buffer).arena;
  if (!sameArena || !overlap(arenaRange(scope, *a.view), arenaRange(scope, *b.view)))
    return true;
  return !(a.writes() && b.writes()) && allowsInPlace(command) && samePlace(scope, *a.view, *b.view);
}

static void checkAliasing(const EntryScope &scope, size_t index, const std::vector<ViewUse> &uses, Findings &findings) {
  const CommandT &command = *scope.entry.commands[index];
  for (size_t i = 0; i < uses.size() && !findings.enough(); ++i) {
    if (uses[i].writes() && !isInjective(*uses[i].view))
      findings.add("A18", scope.commandText(index) + " writes elements of " + useText(scope, *uses[i].view) +
                              " more than once");
    for (size_t j = 0; j < i; ++j)
      if (!mayAlias(scope, command, uses[j], uses[i]))
        findings.add("A18", scope.commandText(index) + " operands " + std::to_string(j) + " and " + std::to_string(i) +
                                " (" + useText(scope, *uses[j].view) + ", " + useText(scope, *uses[i].view) +
                                ") overlap and are not the same elements read and then written");
  }
}

// ---- A20, A21, A22: launches, library calls, copies -------------------------------------------------------------

static void checkLaunch(const EntryScope &scope, size_t index, const LaunchT &launch, Findings &findings) {
  const auto &kernels = scope.scope.artifact.kernels;
  static constexpr uint64_t kMaxExtent = uint64_t{1} << 62;
  if (launch.kernel >= kernels.size())
    findings.add("A20", scope.commandText(index) + " runs kernel " + std::to_string(launch.kernel) + " of " +
                            std::to_string(kernels.size()));
  if (launch.extent > kMaxExtent || launch.grain == 0 || launch.grain > kMaxExtent)
    findings.add("A20", scope.commandText(index) + " has extent " + groupedDigits(launch.extent) + " in grains of " +
                            groupedDigits(launch.grain) + ", expected at most 2^62 and at least 1");
}

static void checkWorkspace(const EntryScope &scope, size_t index, const LibraryCallT &call, Findings &findings) {
  if (call.workspace == -1)
    return;
  if (call.workspace < 0 || static_cast<size_t>(call.workspace) >= call.operands.size())
    return findings.add("A21", scope.commandText(index) + " has operand " + std::to_string(call.workspace) + " of " +
                                   std::to_string(call.operands.size()) + " as its workspace");
  const OperandT &operand = *call.operands[static_cast<size_t>(call.workspace)];
  if (operand.access != Access::Write || !isContiguous(*operand.view) || operand.view->offset % kBufferAlignment != 0)
    findings.add("A21", scope.commandText(index) + " has the workspace " + useText(scope, *operand.view) +
                            ", expected a written, contiguous view at a multiple of 64 bytes");
}

static void checkCall(const EntryScope &scope, size_t index, const LibraryCallT &call, Findings &findings) {
  if (call.op.empty())
    findings.add("A21", scope.commandText(index) + " calls no operation");
  std::set<std::string> keys;
  for (const auto &attribute : call.attributes)
    if (attribute->key.empty() || !keys.insert(attribute->key).second)
      findings.add("A21", scope.commandText(index) + " has the attribute " + inQuotes(attribute->key) +
                              " twice or without a name");
  checkWorkspace(scope, index, call, findings);
}

static void checkCopy(const EntryScope &scope, size_t index, const CopyT &copy, Findings &findings) {
  bool contiguous = isContiguous(*copy.source) && isContiguous(*copy.target);
  bool equal = byteCount(copy.source->dtype, copy.source->shape) == byteCount(copy.target->dtype, copy.target->shape);
  if (!contiguous || !equal)
    findings.add("A22", scope.commandText(index) + " copies " + viewText(*copy.source) + " to " +
                            viewText(*copy.target) + ", expected two contiguous views of equally many bytes");
}

// ---- A23: streams and events ------------------------------------------------------------------------------------

namespace {
/// Events recorded so far in command order.
class EventLog {
public:
  EventLog(const EntryScope &entry, Findings &list) : scope(entry), findings(list) {}
  void visit(size_t index) {
    const CommandT &command = *scope.entry.commands[index];
    const RecordEventT *record = command.body.AsRecordEvent();
    const WaitEventT *wait = command.body.AsWaitEvent();
    if (!record && !wait)
      return;
    uint32_t event = record ? record->event : wait->event;
    if (event >= scope.entry.events)
      fail(index, "names event " + std::to_string(event) + " of " + std::to_string(scope.entry.events));
    else if (record && !recorded.insert(event).second)
      fail(index, "records event " + std::to_string(event) + " again");
    else if (wait && !recorded.count(event))
      fail(index, "waits for event " + std::to_string(event) + ", which is not recorded before");
  }
  bool sound() const { return clean; }

private:
  void fail(size_t index, const std::string &what) {
    clean = false;
    findings.add("A23", scope.commandText(index) + " " + what);
  }
  const EntryScope &scope;
  Findings &findings;
  std::set<uint32_t> recorded;
  bool clean = true;
};
} // namespace

static bool checkStreams(const EntryScope &scope, Findings &findings) {
  if (scope.entry.streams == 0 || scope.entry.streams > kMaxStreams) {
    findings.add("A23", scope.where + " has " + std::to_string(scope.entry.streams) + " streams, expected 1 to " +
                            std::to_string(kMaxStreams));
    return false;
  }
  if (scope.entry.events > scope.entry.commands.size()) {
    findings.add("A23", scope.where + " has " + std::to_string(scope.entry.events) + " events for " +
                            std::to_string(scope.entry.commands.size()) + " commands");
    return false;
  }
  EventLog events(scope, findings);
  bool sound = true;
  for (size_t i = 0; i < scope.entry.commands.size() && !findings.enough(); ++i) {
    events.visit(i);
    if (scope.entry.commands[i]->stream < scope.entry.streams)
      continue;
    sound = false;
    findings.add("A23", scope.commandText(i) + " is on stream " + std::to_string(scope.entry.commands[i]->stream) +
                            " of " + std::to_string(scope.entry.streams));
  }
  return sound && events.sound();
}

static bool checkCommand(const EntryScope &scope, size_t index, Findings &findings) {
  const CommandT &command = *scope.entry.commands[index];
  std::vector<ViewUse> uses = usesOf(command);
  bool sound = true;
  for (size_t i = 0; i < uses.size(); ++i)
    sound &= checkView(
        scope, *uses[i].view, [&] { return scope.commandText(index) + " operand " + std::to_string(i); }, findings);
  if (!sound)
    return false;
  for (const ViewUse &use : uses)
    checkUseLifetime(scope, index, use, findings);
  checkAliasing(scope, index, uses, findings);
  if (const LaunchT *launch = command.body.AsLaunch())
    checkLaunch(scope, index, *launch, findings);
  if (const LibraryCallT *call = command.body.AsLibraryCall())
    checkCall(scope, index, *call, findings);
  if (const CopyT *copy = command.body.AsCopy())
    checkCopy(scope, index, *copy, findings);
  return true;
}

bool verifyCommands(const EntryScope &scope, Findings &findings) {
  bool sound = checkStreams(scope, findings);
  sound &= checkPorts(scope, true, findings);
  sound &= checkPorts(scope, false, findings);
  for (size_t i = 0; i < scope.entry.commands.size() && !findings.enough(); ++i)
    sound &= checkCommand(scope, i, findings);
  return sound;
}

} // namespace plimsoll::artifact
