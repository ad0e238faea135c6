// The judge of plans (rules V0..V14, documented in Validate.h).
//
// A map from byte intervals to contents, one for each tier, is replayed through the program: staging paints inputs and
// persistent storages, a workspace paints garbage, a write paints its storage, a copy paints its target. A read looks
// whether its bytes still show its storage. Nothing here computes lifetimes of storages or calls the solvers; the only
// look-ahead is the last step that touches a storage, which tells whether painting over it destroys something, and the
// number of times a storage was written before each access, which tells orders that change a result from those that do
// not.
#include "plimsoll/Planner/Validate.h"
#include "plimsoll/Support/Units.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace plimsoll::planner {

bool ValidationReport::has(std::string_view rule) const {
  return std::any_of(violations.begin(), violations.end(), [&](const Violation &v) { return v.rule == rule; });
}

Status ValidationReport::status(ExitCode code) const {
  if (isOk())
    return Status::ok();
  std::string text =
      "the plan breaks " + std::to_string(violations.size()) + (violations.size() == 1 ? " rule" : " rules");
  for (const Violation &violation : violations)
    text += "\n" + violation.rule + ": " + violation.message;
  return {code, std::move(text)};
}

namespace {

/// What a byte holds: a storage's content, or scratch of some workspace.
using Content = StorageId;
constexpr Content scratch = noStorage - 1;
constexpr Content nothing = noStorage;

/// Bytes of one tier's arena.
struct Range {
  uint64_t begin = 0, end = 0;
  Tier tier = Tier::Device;
  bool isEmpty() const { return begin == end; }
  bool operator==(const Range &) const = default;
};

/// Disjoint byte intervals, each with a content; gaps hold nothing.
class ContentMap {
public:
  /// Calls visit(content) for every interval of a content inside the range, and visit(nothing) once if there is a gap.
  template <typename Visitor> void look(Range range, Visitor visit) const {
    if (range.isEmpty())
      return;
    bool gap = false;
    uint64_t covered = range.begin;
    auto at = intervals.upper_bound(range.begin);
    if (at != intervals.begin())
      --at;
    for (; at != intervals.end() && at->first < range.end; ++at) {
      if (at->second.end <= range.begin)
        continue;
      gap |= at->first > covered;
      covered = at->second.end;
      visit(at->second.content);
    }
    if (gap || covered < range.end)
      visit(nothing);
  }

  void paint(Range range, Content content) {
    if (range.isEmpty())
      return;
    splitAt(range.begin);
    splitAt(range.end);
    intervals.erase(intervals.lower_bound(range.begin), intervals.lower_bound(range.end));
    intervals[range.begin] = {range.end, content};
  }

private:
  struct Painted {
    uint64_t end;
    Content content;
  };

  void splitAt(uint64_t byte) {
    auto at = intervals.lower_bound(byte);
    if (at == intervals.begin())
      return;
    --at;
    if (at->second.end <= byte)
      return;
    Painted upper = at->second;
    at->second.end = byte;
    intervals[byte] = upper;
  }

  std::map<uint64_t, Painted> intervals;
};

class Judge {
public:
  Judge(const Problem &judged, const Solution &verdictOn, ValidationReport &into)
      : problem(judged), solution(verdictOn), report(into) {}

  void run() {
    checkOrder();
    if (!report.isOk())
      return;
    findUses();
    checkOffsets();
    if (report.has("V2"))
      return;
    checkPlaces();
    if (report.has("V4"))
      return;
    checkPairs();
    countWrites();
    stage();
    for (now = 0; now < solution.order.size(); ++now)
      replay(problem.steps[solution.order[now]]);
    checkEnd();
  }

private:
  void add(const char *rule, const std::string &text) { report.violations.push_back({rule, text}); }
  std::string named(StorageId id) const { return "storage '" + problem.storages[id].name + "'"; }
  std::string held(Content content) const {
    return content == nothing ? "nothing" : content == scratch ? "a workspace" : named(content);
  }
  std::string here() const {
    StepIndex step = solution.order[now];
    return "step " + std::to_string(step) + " '" + problem.steps[step].name + "'";
  }

  void checkOrder() {
    std::vector<unsigned> runs(problem.steps.size(), 0);
    for (StepIndex step : solution.order) {
      if (step >= problem.steps.size())
        add("V1", "the order names step " + std::to_string(step) + " of " + std::to_string(problem.steps.size()));
      else
        ++runs[step];
    }
    for (StepIndex step = 0; step < problem.steps.size(); ++step)
      if (runs[step] != 1)
        add("V1", "step " + std::to_string(step) + " '" + problem.steps[step].name + "' runs " +
                      std::to_string(runs[step]) + " times, expected once");
  }

  /// Position of the last step that touches each storage, or the end for what must survive.
  void findUses() {
    touched.assign(problem.storages.size(), false);
    lastUse.assign(problem.storages.size(), -1);
    for (size_t position = 0; position < solution.order.size(); ++position)
      for (const Access &access : problem.steps[solution.order[position]].accesses) {
        touched[access.storage] = true;
        lastUse[access.storage] = static_cast<int64_t>(position);
      }
    for (StorageId id : problem.inputs)
      touched[id] = true;
    survives.assign(problem.storages.size(), false);
    for (StorageId id : problem.outputs)
      survives[id] = true;
    for (const Storage &storage : problem.storages)
      if (storage.persistent)
        survives[storage.id] = touched[storage.id] = true;
    for (StorageId id : problem.outputs)
      touched[id] = true;
  }

  void checkOffsets() {
    if (solution.offsets.size() != problem.storages.size())
      return add("V2", std::to_string(solution.offsets.size()) + " offsets for " +
                           std::to_string(problem.storages.size()) + " storages");
    if (solution.workspaceOffsets.size() != problem.steps.size())
      return add("V2", std::to_string(solution.workspaceOffsets.size()) + " workspace offsets for " +
                           std::to_string(problem.steps.size()) + " steps");
    for (const Storage &storage : problem.storages)
      if ((solution.offsets[storage.id] != noOffset) != touched[storage.id])
        add("V2",
            named(storage.id) + (touched[storage.id] ? " is used but has no offset" : " is unused but has an offset"));
    for (StepIndex step = 0; step < problem.steps.size(); ++step)
      if ((solution.workspaceOffsets[step] != noOffset) != (problem.steps[step].workspaceBytes > 0))
        add("V2", "the workspace of step " + std::to_string(step) + " '" + problem.steps[step].name +
                      (problem.steps[step].workspaceBytes > 0 ? "' has no offset" : "' is empty but has an offset"));
  }

  void checkPlaces() {
    if (solution.arenaBytes % problem.alignment)
      add("V3", "the arena of " + groupedDigits(solution.arenaBytes) + " bytes is not a multiple of " +
                    std::to_string(problem.alignment));
    for (Tier tier : {Tier::Host, Tier::Disk})
      if (arenaBytes(tier) % problem.alignment)
        add("V3", arenaNamed(tier) + " is not a multiple of " + std::to_string(problem.alignment));
    for (const Storage &storage : problem.storages)
      if (touched[storage.id])
        checkPlace(named(storage.id), solution.offsets[storage.id], storage.bytes, storage.tier);
    for (StepIndex step = 0; step < problem.steps.size(); ++step)
      if (uint64_t bytes = problem.steps[step].workspaceBytes)
        checkPlace("the workspace of step " + std::to_string(step) + " '" + problem.steps[step].name + "'",
                   solution.workspaceOffsets[step], bytes, Tier::Device);
  }

  uint64_t arenaBytes(Tier tier) const {
    return tier == Tier::Device ? solution.arenaBytes : solution.tierBytes[static_cast<unsigned>(tier)];
  }
  std::string arenaNamed(Tier tier) const {
    return "the arena of " + groupedDigits(arenaBytes(tier)) + " bytes" +
           (tier == Tier::Device ? "" : " on the " + std::string(tierName(tier)));
  }

  void checkPlace(const std::string &what, uint64_t offset, uint64_t bytes, Tier tier) {
    if (offset % problem.alignment)
      add("V3", what + " at " + groupedDigits(offset) + " is not aligned to " + std::to_string(problem.alignment));
    if (bytes > arenaBytes(tier) || offset > arenaBytes(tier) - bytes)
      add("V4",
          what + " of " + groupedDigits(bytes) + " bytes at " + groupedDigits(offset) + " leaves " + arenaNamed(tier));
  }

  void checkPairs() {
    std::vector<size_t> positionOf(problem.steps.size());
    for (size_t position = 0; position < solution.order.size(); ++position)
      positionOf[solution.order[position]] = position;
    std::set<StorageId> operands, results;
    for (const InPlacePair &pair : solution.inPlace) {
      if (pair.step >= problem.steps.size() || pair.operand >= problem.storages.size() ||
          pair.result >= problem.storages.size()) {
        add("V8", "an in-place pair names an unknown step or storage");
        continue;
      }
      std::string text = named(pair.result) + " takes over " + named(pair.operand) + " at step " +
                         std::to_string(pair.step) + " '" + problem.steps[pair.step].name + "', but ";
      if (std::string wrong = whyIllegal(pair, positionOf[pair.step]); !wrong.empty())
        add("V8", text + wrong);
      else if (!operands.insert(pair.operand).second || !results.insert(pair.result).second)
        add("V8", text + "one of them is already in another pair");
      else
        takeovers.insert({pair.step, pair.operand, pair.result});
    }
  }

  std::string whyIllegal(const InPlacePair &pair, size_t position) const {
    const std::vector<InPlaceCandidate> &offers = problem.steps[pair.step].inPlace;
    if (std::find(offers.begin(), offers.end(), InPlaceCandidate{pair.operand, pair.result}) == offers.end())
      return "the step does not offer it";
    if (problem.storages[pair.operand].persistent)
      return "the operand is persistent";
    if (survives[pair.operand])
      return "the operand is an output";
    if (lastUse[pair.operand] > static_cast<int64_t>(position))
      return "a later step still needs the operand";
    if (solution.offsets[pair.operand] != solution.offsets[pair.result])
      return "they lie at different offsets";
    return {};
  }

  Range rangeOf(StorageId id) const {
    return {solution.offsets[id], solution.offsets[id] + problem.storages[id].bytes, problem.storages[id].tier};
  }
  ContentMap &arenaOf(Range range) { return arenas[static_cast<unsigned>(range.tier)]; }

  /// V14: how often each storage was written before each access in the listed order.
  void countWrites() {
    std::vector<unsigned> writes(problem.storages.size(), 0);
    writesBefore.resize(problem.steps.size());
    for (StepIndex step = 0; step < problem.steps.size(); ++step) {
      for (const Access &access : problem.steps[step].accesses)
        writesBefore[step].push_back(writes[access.storage]);
      for (const Access &access : problem.steps[step].accesses)
        writes[access.storage] += access.writes();
    }
    writesSoFar.assign(problem.storages.size(), 0);
  }

  void checkVersions(const Step &step) {
    for (size_t i = 0; i < step.accesses.size(); ++i) {
      StorageId id = step.accesses[i].storage;
      if (unsigned expected = writesBefore[solution.order[now]][i]; writesSoFar[id] != expected)
        add("V14", here() + " finds " + named(id) + " written " + std::to_string(writesSoFar[id]) +
                       " times, in the listed order " + std::to_string(expected) + " times");
    }
    for (const Access &access : step.accesses)
      writesSoFar[access.storage] += access.writes();
  }

  /// Before the first step: inputs are staged, persistent contents are there.
  void stage() {
    written.assign(problem.storages.size(), false);
    leaving.assign(problem.storages.size(), 0);
    arriving.assign(problem.storages.size(), 0);
    auto paint = [&](StorageId id) {
      if (written[id])
        return;
      arenaOf(rangeOf(id)).look(rangeOf(id), [&](Content found) {
        if (found != nothing)
          add("V11", named(id) + " and " + named(found) + " overlap before the first step");
      });
      arenaOf(rangeOf(id)).paint(rangeOf(id), id);
      written[id] = true;
    };
    for (const Storage &storage : problem.storages)
      if (storage.persistent)
        paint(storage.id);
    for (StorageId id : problem.inputs)
      paint(id);
  }

  void replay(const Step &step) {
    if (step.kind == StepKind::Wait)
      finishCopy(step);
    checkOverlapsInside(step);
    checkVersions(step);
    for (const Access &access : step.accesses) {
      checkTransfers(access);
      if (access.reads())
        expectIntact("V5", access.storage, here() + " reads " + named(access.storage));
      else if (written[access.storage])
        expectIntact("V12", access.storage, here() + " adds to " + named(access.storage));
    }
    if (step.workspaceBytes > 0) {
      uint64_t offset = solution.workspaceOffsets[solution.order[now]];
      cover({offset, offset + step.workspaceBytes, Tier::Device}, scratch, "the workspace of " + here());
    }
    for (const Access &access : step.accesses) {
      if (!access.writes())
        continue;
      cover(rangeOf(access.storage), access.storage, here() + " writing " + named(access.storage));
      written[access.storage] = true;
    }
    if (step.kind == StepKind::Copy)
      for (const Access &access : step.accesses)
        ++(access.writes() ? arriving : leaving)[access.storage];
  }

  /// V13 for the storage an access names; cover() looks after accesses of other storages in the same bytes.
  void checkTransfers(const Access &access) {
    StorageId id = access.storage;
    if (arriving[id] || (access.writes() && leaving[id]))
      add("V13", here() + (access.writes() ? " writes " : " reads ") + named(id) +
                     (arriving[id] ? ", into which a copy is still moving" : ", from which a copy is still moving"));
  }

  void finishCopy(const Step &wait) {
    for (const Access &access : problem.steps[wait.waitsFor].accesses) {
      unsigned &pending = (access.writes() ? arriving : leaving)[access.storage];
      if (pending == 0)
        add("V13", here() + " runs before the copy it waits for");
      else
        --pending;
    }
  }

  void expectIntact(const char *rule, StorageId id, const std::string &what) {
    arenaOf(rangeOf(id)).look(rangeOf(id), [&](Content found) {
      if (found != id)
        add(rule, what + ", but its bytes hold " + held(found));
    });
  }

  /// Paints and reports what is destroyed by it.
  void cover(Range range, Content content, const std::string &what) {
    arenaOf(range).look(range, [&](Content found) {
      if (found == content || found == nothing || found == scratch)
        return;
      if (leaving[found] || arriving[found])
        add("V13", what + " covers " + named(found) + ", which a copy is still moving");
      if (problem.storages[found].persistent)
        add("V9", what + " covers persistent " + named(found));
      else if (survives[found] || lastUse[found] > static_cast<int64_t>(now))
        add("V6", what + " covers " + named(found) + ", which is still needed");
    });
    arenaOf(range).paint(range, content);
  }

  /// V7: everything a step touches at once, by offset, must be disjoint except takeovers.
  void checkOverlapsInside(const Step &step) {
    struct Touch {
      Range range;
      StorageId storage; ///< scratch for the workspace
    };
    std::vector<Touch> touches;
    for (const Access &access : step.accesses)
      if (!rangeOf(access.storage).isEmpty())
        touches.push_back({rangeOf(access.storage), access.storage});
    if (uint64_t offset = solution.workspaceOffsets[solution.order[now]]; step.workspaceBytes > 0)
      touches.push_back({{offset, offset + step.workspaceBytes, Tier::Device}, scratch});
    std::sort(touches.begin(), touches.end(), [](const Touch &a, const Touch &b) {
      return std::tuple(a.range.tier, a.range.begin, a.storage) < std::tuple(b.range.tier, b.range.begin, b.storage);
    });
    for (size_t i = 0; i < touches.size(); ++i)
      for (size_t j = i + 1; j < touches.size() && touches[j].range.tier == touches[i].range.tier &&
                             touches[j].range.begin < touches[i].range.end;
           ++j)
        if (!(touches[i].range == touches[j].range && isTakeover(touches[i].storage, touches[j].storage)))
          add("V7", here() + " touches " + held(touches[i].storage) + " and " + held(touches[j].storage) +
                        " in overlapping bytes");
  }

  bool isTakeover(StorageId a, StorageId b) const {
    StepIndex step = solution.order[now];
    return takeovers.count({step, a, b}) || takeovers.count({step, b, a});
  }

  void checkEnd() {
    for (const Storage &storage : problem.storages)
      if (survives[storage.id])
        expectIntact("V10", storage.id, "at the end " + named(storage.id) + " should be intact");
  }

  const Problem &problem;
  const Solution &solution;
  ValidationReport &report;
  ContentMap arenas[tierCount];
  size_t now = 0;                                                  ///< position in the order
  std::vector<bool> touched;                                       ///< storage needs a place
  std::vector<bool> survives;                                      ///< output or persistent
  std::vector<bool> written;                                       ///< content exists by now
  std::vector<unsigned> leaving, arriving;                         ///< copies under way from and into each storage
  std::vector<std::vector<unsigned>> writesBefore;                 ///< per step and access, in the listed order
  std::vector<unsigned> writesSoFar;                               ///< per storage, in the order judged
  std::vector<int64_t> lastUse;                                    ///< position of the last access, -1 for none
  std::set<std::tuple<StepIndex, StorageId, StorageId>> takeovers; ///< legal pairs
};

} // namespace

ValidationReport validate(const Problem &problem, const Solution &solution) {
  ValidationReport report;
  if (Status status = problem.check(); !status) {
    report.violations.push_back({"V0", status.message()});
    return report;
  }
  Judge(problem, solution, report).run();
  return report;
}

} // namespace plimsoll::planner
