// The judge of schedules (rules S0..S6, documented in Schedule.h).
//
// Contents get numbers. The original is walked once: every write makes a new number, and each access remembers the
// number it finds and the one it leaves. Then the scheduled program is replayed over its own storages: a run must find,
// access by access, the numbers its origin finds; then it leaves the numbers its origin leaves, because a step is a
// function of what it reads. A copy carries the number of its source, from its wait on. Nothing here knows how
// schedules are written out, and nothing is searched: one pass over each program, O(accesses).
#include "plimsoll/Planner/Schedule.h"

#include <algorithm>

namespace plimsoll::planner {

namespace {

/// Number of a content. 0 is what bytes hold that nobody wrote.
using ContentNumber = uint32_t;
constexpr ContentNumber undefinedContent = 0;
/// What a run leaves that did not find what it needs, and what the target of a copy holds before its wait: equal to no
/// content of the original.
constexpr ContentNumber brokenContent = std::numeric_limits<ContentNumber>::max();

/// The original, numbered.
struct Numbered {
  std::vector<std::vector<ContentNumber>> found; ///< per step and access, before the step
  std::vector<std::vector<ContentNumber>> left;  ///< per step and access, after it
  std::vector<ContentNumber> initial, final;     ///< per storage
  std::vector<std::string> names;                ///< per number, for messages
};

Numbered numberContents(const Problem &problem) {
  Numbered numbered;
  numbered.names.push_back("nothing");
  auto fresh = [&](std::string name) {
    numbered.names.push_back(std::move(name));
    return static_cast<ContentNumber>(numbered.names.size() - 1);
  };
  std::vector<ContentNumber> now(problem.storages.size(), undefinedContent);
  std::vector<char> staged(problem.storages.size(), 0);
  for (StorageId id : problem.inputs)
    staged[id] = 1;
  for (const Storage &storage : problem.storages)
    if (storage.persistent || staged[storage.id])
      now[storage.id] = fresh("'" + storage.name + "' from before the first step");
  numbered.initial = now;
  for (const Step &step : problem.steps) {
    std::vector<ContentNumber> &found = numbered.found.emplace_back(), &left = numbered.left.emplace_back();
    for (const Access &access : step.accesses) {
      found.push_back(now[access.storage]);
      if (access.writes())
        now[access.storage] = fresh("'" + problem.storages[access.storage].name + "' from '" + step.name + "'");
      left.push_back(now[access.storage]);
    }
  }
  numbered.final = now;
  return numbered;
}

class ScheduleJudge {
public:
  ScheduleJudge(const Problem &originalProblem, const ScheduledProblem &verdictOn, ValidationReport &into)
      : original(originalProblem), scheduled(verdictOn), problem(verdictOn.problem), report(into) {}

  void run() {
    checkWellFormed();
    if (!report.isOk())
      return;
    checkRuns();
    for (StepIndex step = 0; step < problem.steps.size(); ++step)
      checkShape(step);
    checkStorages();
    checkEnds();
    if (!report.isOk())
      return; // accesses may not correspond, so that contents cannot be compared
    contents = numberContents(original);
    replay();
    checkFinalContents();
  }

private:
  void add(const char *rule, const std::string &text) { report.violations.push_back({rule, text}); }
  std::string named(StorageId id) const { return "storage '" + problem.storages[id].name + "'"; }
  std::string stepNamed(StepIndex step) const {
    return "step " + std::to_string(step) + " '" + problem.steps[step].name + "'";
  }
  std::string contentNamed(ContentNumber content) const {
    return content == brokenContent ? "something else" : contents.names[content];
  }

  void checkWellFormed() {
    if (Status status = original.check(); !status)
      add("S0", "the original: " + status.message());
    if (Status status = problem.check(); !status)
      add("S0", "the scheduled problem: " + status.message());
    for (const Step &step : original.steps)
      if (step.kind != StepKind::Compute)
        add("S0", "the original has transfers, such as step '" + step.name + "'");
    if (scheduled.stepOrigin.size() != problem.steps.size() ||
        scheduled.storageOrigin.size() != problem.storages.size())
      return add("S0", "every step and every storage needs an origin");
    for (StorageId origin : scheduled.storageOrigin)
      if (origin >= original.storages.size())
        add("S0", "the original has no storage " + std::to_string(origin));
    for (StepIndex step = 0; step < problem.steps.size(); ++step)
      if (scheduled.stepOrigin[step] != noStep && scheduled.stepOrigin[step] >= original.steps.size())
        add("S0", "the original has no step " + std::to_string(scheduled.stepOrigin[step]));
  }

  /// True for steps whose effect is more than their results: they change what outlives the program or was there before
  /// it, or something in place.
  std::vector<char> stepsToRunOnce() const {
    std::vector<char> kept(original.storages.size(), 0), once(original.steps.size(), 0);
    for (StorageId id : original.inputs)
      kept[id] = 1;
    for (const Storage &storage : original.storages)
      kept[storage.id] |= storage.persistent;
    for (StepIndex step = 0; step < original.steps.size(); ++step)
      for (const Access &access : original.steps[step].accesses)
        once[step] |= access.writes() && (kept[access.storage] || access.mode == AccessMode::ReadWrite);
    return once;
  }

  void checkRuns() {
    std::vector<unsigned> runs(original.steps.size(), 0);
    for (StepIndex step = 0; step < problem.steps.size(); ++step) {
      StepIndex origin = scheduled.stepOrigin[step];
      if ((origin == noStep) != (problem.steps[step].kind != StepKind::Compute))
        add("S1",
            stepNamed(step) + (origin == noStep ? " computes but has no origin" : " is a transfer but has an origin"));
      if (origin != noStep)
        ++runs[origin];
    }
    std::vector<char> once = stepsToRunOnce();
    for (StepIndex origin = 0; origin < original.steps.size(); ++origin)
      if (once[origin] && runs[origin] != 1)
        add("S1", "step '" + original.steps[origin].name + "' changes what it does not define, but runs " +
                      std::to_string(runs[origin]) + " times, expected once");
  }

  void checkShape(StepIndex index) {
    StepIndex originIndex = scheduled.stepOrigin[index];
    const Step &step = problem.steps[index];
    if (step.kind != StepKind::Compute)
      return checkTransferShape(index);
    if (originIndex == noStep)
      return;
    const Step &origin = original.steps[originIndex];
    if (step.name != origin.name && !step.name.starts_with(origin.name + "."))
      add("S2", stepNamed(index) + " is a run of '" + origin.name + "' but is not named after it");
    if (!std::equal(step.accesses.begin(), step.accesses.end(), origin.accesses.begin(), origin.accesses.end(),
                    [&](const Access &a, const Access &b) {
                      return a.mode == b.mode && scheduled.storageOrigin[a.storage] == b.storage;
                    }))
      add("S2", stepNamed(index) + " does not touch instances of what '" + origin.name + "' touches, in that order");
    if (!std::equal(step.inPlace.begin(), step.inPlace.end(), origin.inPlace.begin(), origin.inPlace.end(),
                    [&](const InPlaceCandidate &a, const InPlaceCandidate &b) {
                      return scheduled.storageOrigin[a.operand] == b.operand &&
                             scheduled.storageOrigin[a.result] == b.result;
                    }))
      add("S2", stepNamed(index) + " does not make the in-place offers of '" + origin.name + "'");
    if (step.workspaceBytes != origin.workspaceBytes)
      add("S2", stepNamed(index) + " has a workspace of " + std::to_string(step.workspaceBytes) + " bytes, '" +
                    origin.name + "' has " + std::to_string(origin.workspaceBytes));
    if (step.costSeconds != origin.costSeconds)
      add("S2", stepNamed(index) + " does not cost what '" + origin.name + "' costs");
  }

  void checkTransferShape(StepIndex index) {
    const std::vector<Access> &accesses = problem.steps[index].accesses; // two of them (C11, C12)
    if (scheduled.storageOrigin[accesses[0].storage] != scheduled.storageOrigin[accesses[1].storage])
      add("S2", stepNamed(index) + " moves between instances of different storages");
  }

  void checkStorages() {
    if (problem.alignment != original.alignment)
      add("S6", "the alignment is " + std::to_string(problem.alignment) + ", the original's is " +
                    std::to_string(original.alignment));
    std::vector<unsigned> homes(original.storages.size(), 0);
    for (const Storage &storage : problem.storages) {
      const Storage &origin = original.storages[scheduled.storageOrigin[storage.id]];
      homes[origin.id] += storage.persistent;
      if (storage.bytes != origin.bytes)
        add("S6", named(storage.id) + " has " + std::to_string(storage.bytes) + " bytes, the original " +
                      std::to_string(origin.bytes));
      bool visitor = origin.persistent && !storage.persistent;
      StorageClass expected = visitor ? StorageClass::Workspace : origin.storageClass;
      if (storage.storageClass != expected)
        add("S6", named(storage.id) + " has class " + std::string(storageClassName(storage.storageClass)) +
                      ", expected " + std::string(storageClassName(expected)));
    }
    for (const Storage &origin : original.storages)
      if (homes[origin.id] != (origin.persistent ? 1u : 0u))
        add("S6", std::to_string(homes[origin.id]) + " instances of '" + origin.name + "' are persistent, expected " +
                      (origin.persistent ? "one" : "none"));
  }

  void checkEnds() {
    auto correspond = [&](const std::vector<StorageId> &ends, const std::vector<StorageId> &then) {
      return std::equal(ends.begin(), ends.end(), then.begin(), then.end(),
                        [&](StorageId a, StorageId b) { return scheduled.storageOrigin[a] == b; });
    };
    if (!correspond(problem.inputs, original.inputs))
      add("S4", "the inputs are not instances of the original's inputs, in that order");
    for (StorageId id : problem.inputs)
      if (problem.storages[id].persistent != original.storages[scheduled.storageOrigin[id]].persistent)
        add("S4", "the input " + named(id) + " is staged beside its persistent instance");
    if (!correspond(problem.outputs, original.outputs))
      add("S4", "the outputs are not instances of the original's outputs, in that order");
  }

  void replay() {
    now.assign(problem.storages.size(), undefinedContent);
    leaving.assign(problem.storages.size(), 0);
    arriving.assign(problem.storages.size(), 0);
    carried.assign(problem.steps.size(), undefinedContent);
    for (const Storage &storage : problem.storages)
      if (storage.persistent)
        now[storage.id] = contents.initial[scheduled.storageOrigin[storage.id]];
    for (StorageId id : problem.inputs)
      now[id] = contents.initial[scheduled.storageOrigin[id]];
    for (StepIndex step = 0; step < problem.steps.size(); ++step) {
      if (problem.steps[step].kind == StepKind::Copy)
        replayCopy(step);
      else if (problem.steps[step].kind == StepKind::Wait)
        replayWait(step);
      else
        replayRun(step);
    }
  }

  void replayRun(StepIndex index) {
    const std::vector<Access> &accesses = problem.steps[index].accesses;
    StepIndex origin = scheduled.stepOrigin[index];
    bool sound = true;
    for (size_t i = 0; i < accesses.size(); ++i) {
      checkTransfers(index, accesses[i]);
      ContentNumber expected = contents.found[origin][i], found = now[accesses[i].storage];
      // A write that opens a storage in the original does not care what is there; one that adds does.
      bool cares = accesses[i].reads() || expected != undefinedContent;
      if (!cares || found == expected)
        continue;
      sound = false;
      add("S3", stepNamed(index) + (accesses[i].reads() ? " reads " : " adds to ") + named(accesses[i].storage) +
                    ", which holds " + contentNamed(found) + ", expected " + contentNamed(expected));
    }
    for (size_t i = 0; i < accesses.size(); ++i)
      if (accesses[i].writes())
        now[accesses[i].storage] = sound ? contents.left[origin][i] : brokenContent;
  }

  /// S5 for one access of a step that is not the wait.
  void checkTransfers(StepIndex index, const Access &access) {
    if (arriving[access.storage])
      add("S5", stepNamed(index) + " touches " + named(access.storage) + ", into which a copy is still moving");
    else if (access.writes() && leaving[access.storage])
      add("S5", stepNamed(index) + " writes " + named(access.storage) + ", from which a copy is still moving");
  }

  void replayCopy(StepIndex index) {
    for (const Access &access : problem.steps[index].accesses) {
      checkTransfers(index, access);
      if (!access.writes())
        carried[index] = now[access.storage];
    }
    for (const Access &access : problem.steps[index].accesses) {
      ++(access.writes() ? arriving : leaving)[access.storage];
      if (access.writes())
        now[access.storage] = brokenContent;
    }
  }

  void replayWait(StepIndex index) {
    StepIndex copy = problem.steps[index].waitsFor;
    for (const Access &access : problem.steps[copy].accesses) {
      --(access.writes() ? arriving : leaving)[access.storage];
      if (access.writes())
        now[access.storage] = carried[copy];
    }
  }

  void checkFinalContents() {
    auto expect = [&](StorageId id, const char *what) {
      ContentNumber expected = contents.final[scheduled.storageOrigin[id]];
      if (now[id] != expected)
        add("S4", std::string("at the end ") + what + named(id) + " holds " + contentNamed(now[id]) + ", expected " +
                      contentNamed(expected));
    };
    for (StorageId id : problem.outputs)
      expect(id, "the output ");
    for (const Storage &storage : problem.storages)
      if (storage.persistent)
        expect(storage.id, "the persistent ");
  }

  const Problem &original;
  const ScheduledProblem &scheduled;
  const Problem &problem; ///< of `scheduled`
  ValidationReport &report;
  Numbered contents;
  std::vector<ContentNumber> now;          ///< per storage of the scheduled problem
  std::vector<unsigned> leaving, arriving; ///< copies under way from and into each storage
  std::vector<ContentNumber> carried;      ///< per copy: the content it moves
};

} // namespace

ValidationReport validateSchedule(const Problem &original, const ScheduledProblem &scheduled) {
  ValidationReport report;
  ScheduleJudge(original, scheduled, report).run();
  return report;
}

} // namespace plimsoll::planner
