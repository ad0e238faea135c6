// Lifetimes of one entry's buffers: A13 (intervals), A14 (apart from persistent bytes), A15 (two buffers alive at once
// share no byte, except where one command replaces one by the other in place). Method for A15: buffers enter a set
// ordered by offset when they are born and leave it when they die, so a clash shows with a neighbour at birth. At most
// one live buffer covers a byte, hence O(n log n).
#include "runtime/Artifact/Verifier.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>

namespace plimsoll::artifact {

std::string useText(const EntryScope &entry, const TensorViewT &view) {
  return viewText(view) + " of " + entry.bufferText(view.buffer);
}

static bool checkIntervals(const EntryScope &scope, Findings &findings) {
  bool sound = true;
  for (size_t i = scope.persistentCount(); i < scope.bufferCount() && !findings.enough(); ++i) {
    const BufferT &buffer = scope.buffer(i);
    if (buffer.first_command <= buffer.last_command && buffer.last_command < scope.entry.commands.size())
      continue;
    sound = false;
    findings.add("A13", scope.where + " " + scope.bufferText(i) + " lives from command " +
                            std::to_string(buffer.first_command) + " to " + std::to_string(buffer.last_command) +
                            " of " + std::to_string(scope.entry.commands.size()));
  }
  return sound;
}

/// Indices of buffers [begin, end) with at least one byte, by (arena, offset).
static std::vector<size_t> byPlace(const EntryScope &scope, size_t begin, size_t end) {
  std::vector<size_t> order(end - begin);
  std::iota(order.begin(), order.end(), begin);
  std::erase_if(order, [&](size_t i) { return scope.buffer(i).bytes == 0; });
  auto place = [&](size_t i) { return std::tuple(scope.buffer(i).arena, scope.buffer(i).offset, i); };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return place(a) < place(b); });
  return order;
}

/// A14. Persistent buffers are disjoint (A11), so only the last one that starts before the end can clash.
static void checkApartFromPersistent(const EntryScope &scope, Findings &findings) {
  std::vector<size_t> persistent = byPlace(scope, 0, scope.persistentCount());
  for (size_t i = scope.persistentCount(); i < scope.bufferCount() && !findings.enough(); ++i) {
    const BufferT &buffer = scope.buffer(i);
    ByteRange range = rangeOf(buffer);
    auto startsBefore = [&](size_t other, const std::pair<uint32_t, uint64_t> &end) {
      return std::pair(scope.buffer(other).arena, scope.buffer(other).offset) < end;
    };
    auto after =
        std::lower_bound(persistent.begin(), persistent.end(), std::pair(buffer.arena, range.end), startsBefore);
    if (buffer.bytes == 0 || after == persistent.begin())
      continue;
    const BufferT &other = scope.buffer(*std::prev(after));
    if (other.arena == buffer.arena && overlap(rangeOf(other), range))
      findings.add("A14", scope.where + " " + scope.bufferText(i) + " " + rangeText(range) +
                              " shares bytes with the persistent " + scope.bufferText(*std::prev(after)) + " " +
                              rangeText(rangeOf(other)));
  }
}

static bool isPort(const std::vector<std::unique_ptr<PortT>> &ports, size_t buffer) {
  return std::any_of(ports.begin(), ports.end(), [&](const auto &port) { return port->view->buffer == buffer; });
}

/// True when the last command of `before` is the first of `after`, and that command only reads the one, only writes the
/// other, element by element at the same place: the declared in-place pair.
static bool isInPlacePair(const EntryScope &scope, size_t before, size_t after) {
  const BufferT &a = scope.buffer(before), &b = scope.buffer(after);
  if (a.last_command != b.first_command || a.arena != b.arena || a.offset != b.offset || a.bytes != b.bytes)
    return false;
  if (isPort(scope.entry.outputs, before) || isPort(scope.entry.inputs, after))
    return false;
  const CommandT &command = *scope.entry.commands[a.last_command];
  if (!command.body.AsLaunch() && !command.body.AsLibraryCall())
    return false;
  std::vector<const TensorViewT *> read, written;
  for (const ViewUse &use : usesOf(command)) {
    if ((use.view->buffer == before && use.access != Access::Read) ||
        (use.view->buffer == after && use.access != Access::Write))
      return false;
    if (use.view->buffer == before)
      read.push_back(use.view);
    if (use.view->buffer == after)
      written.push_back(use.view);
  }
  if (read.empty() || written.empty())
    return false;
  for (const TensorViewT *source : read)
    for (const TensorViewT *target : written)
      if (!visitsSameElements(*source, *target))
        return false;
  return true;
}

namespace {

/// The buffers alive at one command, by place.
class LiveSet {
public:
  LiveSet(const EntryScope &entry, Findings &list) : scope(entry), findings(list) {}

  /// Adds buffer `index`, born at its first command; buffers must come in order of birth.
  void insert(size_t index) {
    const BufferT &buffer = scope.buffer(index);
    expire(buffer.first_command);
    auto &live = byOffset[buffer.arena];
    auto next = live.lower_bound(buffer.offset);
    if (next != live.begin() && rangeOf(scope.buffer(std::prev(next)->second)).end > buffer.offset)
      --next;
    while (next != live.end() && next->first < rangeOf(buffer).end) {
      if (!isInPlacePair(scope, next->second, index))
        report(next->second, index);
      next = live.erase(next);
    }
    live.emplace(buffer.offset, index);
    deaths.emplace(buffer.last_command, index);
  }

private:
  void expire(uint32_t command) {
    while (!deaths.empty() && deaths.top().first < command) {
      size_t index = deaths.top().second;
      deaths.pop();
      auto &live = byOffset[scope.buffer(index).arena];
      auto found = live.find(scope.buffer(index).offset);
      if (found != live.end() && found->second == index)
        live.erase(found);
    }
  }
  void report(size_t a, size_t b) {
    findings.add("A15", scope.where + " " + scope.bufferText(a) + " " + rangeText(rangeOf(scope.buffer(a))) + " and " +
                            scope.bufferText(b) + " " + rangeText(rangeOf(scope.buffer(b))) +
                            " share bytes while both live at command " + std::to_string(scope.buffer(b).first_command));
  }

  using Death = std::pair<uint32_t, size_t>;
  const EntryScope &scope;
  Findings &findings;
  std::map<uint32_t, std::map<uint64_t, size_t>> byOffset;
  std::priority_queue<Death, std::vector<Death>, std::greater<>> deaths;
};

} // namespace

static void checkLifetimes(const EntryScope &scope, Findings &findings) {
  std::vector<size_t> order = byPlace(scope, scope.persistentCount(), scope.bufferCount());
  auto birth = [&](size_t i) { return std::pair(scope.buffer(i).first_command, i); };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return birth(a) < birth(b); });
  LiveSet live(scope, findings);
  for (size_t i = 0; i < order.size() && !findings.enough(); ++i)
    live.insert(order[i]);
}

void verifyEntry(const PlanScope &scope, const EntryT &entry, Findings &findings) {
  EntryScope place{scope, entry, "entry " + inQuotes(entry.name)};
  if (!checkIntervals(place, findings) || !verifyCommands(place, findings))
    return;
  checkApartFromPersistent(place, findings);
  checkLifetimes(place, findings);
  verifyWrittenBeforeRead(place, findings);
  verifyStreamOrder(place, findings);
}

} // namespace plimsoll::artifact
