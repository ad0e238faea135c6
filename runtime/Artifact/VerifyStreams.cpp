// A24: commands on different streams that touch the same bytes, one of them writing, are ordered by events. Method: a
// vector clock per stream (how far it has seen each other stream; a wait takes over what the record had seen), and a
// map from arena bytes to the last read and write of each stream. Because it looks at bytes, not buffers, reuse of dead
// buffers, in-place pairs and tier copies are covered alike. Views count as the range they span, so two streams may not
// interleave strided windows without an event. Not needed, and skipped, with a single stream.
#include "runtime/Artifact/Verifier.h"

#include <algorithm>
#include <array>
#include <map>

namespace plimsoll::artifact {

namespace {

using Clock = std::array<uint32_t, kMaxStreams>; // commands finished, per stream

/// Last accesses of a run of bytes, as 1-based positions in each stream (0 = none).
struct Cell {
  uint64_t end = 0;
  Clock reads{};
  Clock writes{};
};

class StreamReplay {
public:
  StreamReplay(const EntryScope &entry, Findings &list)
      : scope(entry), findings(list), arenas(entry.scope.plan.arenas.size()), events(entry.entry.events) {}

  void visit(size_t index) {
    const CommandT &command = *scope.entry.commands[index];
    Clock &clock = streams[command.stream];
    if (const WaitEventT *wait = command.body.AsWaitEvent())
      for (unsigned s = 0; s < kMaxStreams; ++s)
        clock[s] = std::max(clock[s], events[wait->event][s]);
    for (const ViewUse &use : usesOf(command))
      check(index, use, clock);
    ++clock[command.stream];
    for (const ViewUse &use : usesOf(command))
      mark(command.stream, use);
    if (const RecordEventT *record = command.body.AsRecordEvent())
      events[record->event] = clock;
  }

private:
  static bool seen(const Clock &clock, const Clock &positions) {
    for (unsigned s = 0; s < kMaxStreams; ++s)
      if (positions[s] > clock[s])
        return false;
    return true;
  }

  /// Splits cells so that [begin, end) consists of whole cells, adds empty ones where there are none.
  std::map<uint64_t, Cell> &isolate(const ViewUse &use, ByteRange range) {
    auto &cells = arenas[scope.buffer(use.view->buffer).arena];
    split(cells, range.begin);
    split(cells, range.end);
    for (uint64_t at = range.begin; at < range.end;) {
      auto next = cells.lower_bound(at);
      if (next == cells.end() || next->first > at) {
        uint64_t end = next == cells.end() ? range.end : std::min(range.end, next->first);
        next = cells.emplace_hint(next, at, Cell{end, {}, {}});
      }
      at = next->second.end;
    }
    return cells;
  }
  static void split(std::map<uint64_t, Cell> &cells, uint64_t at) {
    auto next = cells.upper_bound(at);
    if (next == cells.begin() || std::prev(next)->second.end <= at || std::prev(next)->first == at)
      return;
    Cell tail = std::prev(next)->second;
    std::prev(next)->second.end = at;
    cells.emplace_hint(next, at, tail);
  }

  void check(size_t index, const ViewUse &use, const Clock &clock) {
    ByteRange range = arenaRange(scope, *use.view);
    auto &cells = isolate(use, range);
    for (auto cell = cells.lower_bound(range.begin); cell != cells.end() && cell->first < range.end; ++cell) {
      if (seen(clock, cell->second.writes) && (!use.writes() || seen(clock, cell->second.reads)))
        continue;
      findings.add("A24", scope.commandText(index) + " uses " + useText(scope, *use.view) +
                              " without waiting for the other stream that uses those bytes");
      return;
    }
  }
  void mark(unsigned stream, const ViewUse &use) {
    ByteRange range = arenaRange(scope, *use.view);
    auto &cells = isolate(use, range);
    for (auto cell = cells.lower_bound(range.begin); cell != cells.end() && cell->first < range.end; ++cell) {
      if (use.reads())
        cell->second.reads[stream] = streams[stream][stream];
      if (use.writes())
        cell->second.writes[stream] = streams[stream][stream];
    }
  }

  const EntryScope &scope;
  Findings &findings;
  std::vector<std::map<uint64_t, Cell>> arenas;
  std::vector<Clock> events;
  std::array<Clock, kMaxStreams> streams{};
};

} // namespace

void verifyStreamOrder(const EntryScope &scope, Findings &findings) {
  if (scope.entry.streams == 1)
    return;
  StreamReplay replay(scope, findings);
  for (size_t i = 0; i < scope.entry.commands.size() && !findings.enough(); ++i)
    replay.visit(i);
}

} // namespace plimsoll::artifact
