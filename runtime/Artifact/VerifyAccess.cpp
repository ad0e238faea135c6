// A19: what an entry reads was written before, in this run. Persistent buffers and input ports hold values already; for
// every other buffer the commands are replayed in order with the set of bytes written so far. A strided write counts as
// the whole range it spans: the rule never refuses a correct plan, and finds every read of a buffer, or of a dense part
// of one, that nothing has produced.
#include "runtime/Artifact/Verifier.h"

#include <algorithm>

namespace plimsoll::artifact {

namespace {

/// A set of bytes as sorted, disjoint, non-touching ranges.
class ByteSet {
public:
  void add(ByteRange range) {
    if (range.begin == range.end)
      return;
    auto endsBefore = [](const ByteRange &a, uint64_t at) { return a.end < at; };
    auto first = std::lower_bound(ranges.begin(), ranges.end(), range.begin, endsBefore);
    auto last = first;
    for (; last != ranges.end() && last->begin <= range.end; ++last)
      range = {std::min(range.begin, last->begin), std::max(range.end, last->end)};
    ranges.insert(ranges.erase(first, last), range);
  }
  bool contains(const ByteRange &range) const {
    if (range.begin == range.end)
      return true;
    auto endsBefore = [](const ByteRange &a, uint64_t at) { return a.end < at; };
    auto found = std::lower_bound(ranges.begin(), ranges.end(), range.end, endsBefore);
    return found != ranges.end() && found->begin <= range.begin;
  }

private:
  std::vector<ByteRange> ranges;
};

class WriteReplay {
public:
  WriteReplay(const EntryScope &entry, Findings &list)
      : scope(entry), findings(list), written(entry.entry.buffers.size()) {}

  void write(const TensorViewT &view) {
    if (!scope.isPersistent(view.buffer))
      written[view.buffer - scope.persistentCount()].add(*reach(view));
  }
  /// `who()` gives the words for the reader; called only when there is something to say.
  template <typename Who> void read(const TensorViewT &view, const Who &who) {
    if (scope.isPersistent(view.buffer) || written[view.buffer - scope.persistentCount()].contains(*reach(view)))
      return;
    findings.add("A19", who() + " reads " + useText(scope, view) + ", which nothing has written");
  }

private:
  const EntryScope &scope;
  Findings &findings;
  std::vector<ByteSet> written;
};

} // namespace

void verifyWrittenBeforeRead(const EntryScope &scope, Findings &findings) {
  WriteReplay replay(scope, findings);
  for (const auto &port : scope.entry.inputs)
    replay.write(*port->view);
  for (size_t i = 0; i < scope.entry.commands.size() && !findings.enough(); ++i) {
    std::vector<ViewUse> uses = usesOf(*scope.entry.commands[i]);
    for (const ViewUse &use : uses)
      if (use.reads())
        replay.read(*use.view, [&] { return scope.commandText(i); });
    for (const ViewUse &use : uses)
      if (use.writes())
        replay.write(*use.view);
  }
  for (const auto &port : scope.entry.outputs)
    replay.read(*port->view, [&] { return scope.where + " output " + inQuotes(port->name); });
}

} // namespace plimsoll::artifact
