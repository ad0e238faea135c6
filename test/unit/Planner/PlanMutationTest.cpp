// Damage: a right plan (schedule, addresses, pairs) gets one random edit. Whenever the edit changes what the plan
// computes on bytes, or makes a copy race with a step, validate() or validateSchedule() must refuse it. An edit of the
// program is also placed afresh, so that every address is right and validateSchedule() stands alone.
#include "ByteMachine.h"
#include "RandomSchedules.h"
#include "TrainingPrograms.h"
#include "plimsoll/Planner/ProblemText.h"

#include <array>
#include <gtest/gtest.h>

using namespace plimsoll;
using namespace plimsoll::planner;
using namespace plimsoll::planner::test;

namespace {

constexpr TransferSpeed speeds[tierCount] = {{}, {4, 8, 0.5}, {1, 2, 3}};

/// Everything that is judged together.
struct Plan {
  ScheduledProblem scheduled;
  Solution solution;
  Problem &problem() { return scheduled.problem; }
};

/// One kind of edit; false when this plan has nothing to apply it to.
class Editor {
public:
  Editor(Plan &editedPlan, std::mt19937 &source) : plan(editedPlan), random(source) {}

  using Edit = bool (Editor::*)();
  struct Named {
    const char *name;
    Edit apply;
    bool ofProgram = false; ///< edits the scheduled program, not only its placement
  };
  static const std::vector<Named> &edits() {
    static const std::vector<Named> all = {
        {"shift an offset", &Editor::shiftOffset},
        {"shift a workspace", &Editor::shiftWorkspace},
        {"swap two offsets", &Editor::swapOffsets},
        {"overlay two storages", &Editor::overlay},
        {"shrink an arena", &Editor::shrinkArena},
        {"drop an in-place pair", &Editor::dropPair},
        {"forge an in-place pair", &Editor::forgePair},
        {"swap two steps of the order", &Editor::swapOrder},
        {"move a step of the program", &Editor::moveStep, true},
        {"drop a step", &Editor::dropStep, true},
        {"drop a re-run and use the older instance", &Editor::dropRun, true},
        {"drop a transfer and use the older instance", &Editor::dropTransfer, true},
        {"repeat a step", &Editor::repeatStep, true},
        {"redirect a read", &Editor::redirectRead, true},
        {"redirect a write", &Editor::redirectWrite, true},
        {"redirect an output", &Editor::redirectOutput, true},
        {"let a wait wait for another copy", &Editor::retargetWait, true},
        {"move a wait down", &Editor::moveWaitDown, true},
        {"move a copy up", &Editor::moveCopyUp, true},
        {"change an access mode", &Editor::changeMode, true},
        {"change an origin", &Editor::changeOrigin, true},
        {"change a size", &Editor::changeSize, true},
        {"change a tier", &Editor::changeTier, true},
        {"drop persistence", &Editor::dropPersistence, true},
    };
    return all;
  }

private:
  uint32_t below(size_t n) { return static_cast<uint32_t>(random() % n); }
  Problem &problem() { return plan.scheduled.problem; }
  StepIndex anyStep() { return below(problem().steps.size()); }
  StorageId anyStorage() { return below(problem().storages.size()); }

  /// Some step of the kind, or noStep.
  StepIndex anyStep(StepKind kind) {
    std::vector<StepIndex> found;
    for (StepIndex step = 0; step < problem().steps.size(); ++step)
      if (problem().steps[step].kind == kind)
        found.push_back(step);
    return found.empty() ? noStep : found[below(found.size())];
  }

  /// Another instance of the same storage on the device, or noStorage.
  StorageId sibling(StorageId id) {
    std::vector<StorageId> found;
    for (StorageId other = 0; other < problem().storages.size(); ++other)
      if (other != id && plan.scheduled.storageOrigin[other] == plan.scheduled.storageOrigin[id] &&
          problem().storages[other].tier == Tier::Device && plan.solution.offsets[other] != noOffset)
        found.push_back(other);
    return found.empty() ? noStorage : found[below(found.size())];
  }

  uint64_t arenaBytes(StorageId id) {
    unsigned tier = static_cast<unsigned>(problem().storages[id].tier);
    return tier ? plan.solution.tierBytes[tier] : plan.solution.arenaBytes;
  }

  uint64_t anyOffset(uint64_t arena, uint64_t bytes) {
    return arena < bytes ? 0 : below((arena - bytes) / problem().alignment + 1) * problem().alignment;
  }

  bool shiftOffset() {
    StorageId id = anyStorage();
    uint64_t &offset = plan.solution.offsets[id];
    if (offset == noOffset)
      return false;
    offset = anyOffset(arenaBytes(id), problem().storages[id].bytes);
    return true;
  }

  bool shiftWorkspace() {
    StepIndex step = anyStep();
    if (plan.solution.workspaceOffsets[step] == noOffset)
      return false;
    plan.solution.workspaceOffsets[step] = anyOffset(plan.solution.arenaBytes, problem().steps[step].workspaceBytes);
    return true;
  }

  bool swapOffsets() {
    StorageId a = anyStorage(), b = anyStorage();
    std::swap(plan.solution.offsets[a], plan.solution.offsets[b]);
    return plan.solution.offsets[a] != noOffset && plan.solution.offsets[b] != noOffset;
  }

  bool overlay() {
    StorageId a = anyStorage(), b = anyStorage();
    if (plan.solution.offsets[a] == noOffset || plan.solution.offsets[b] == noOffset)
      return false;
    plan.solution.offsets[a] = plan.solution.offsets[b];
    return true;
  }

  bool shrinkArena() {
    unsigned tier = below(tierCount);
    uint64_t &bytes = tier ? plan.solution.tierBytes[tier] : plan.solution.arenaBytes;
    if (bytes < problem().alignment)
      return false;
    bytes -= problem().alignment;
    return true;
  }

  bool dropPair() {
    std::vector<InPlacePair> &pairs = plan.solution.inPlace;
    if (pairs.empty())
      return false;
    pairs.erase(pairs.begin() + below(pairs.size()));
    return true;
  }

  bool forgePair() {
    StepIndex step = anyStep();
    const std::vector<InPlaceCandidate> &offers = problem().steps[step].inPlace;
    if (offers.empty())
      return false;
    InPlaceCandidate offer = offers[below(offers.size())];
    plan.solution.inPlace.push_back({step, offer.operand, offer.result});
    plan.solution.offsets[offer.result] = plan.solution.offsets[offer.operand];
    return true;
  }

  bool swapOrder() {
    size_t a = below(plan.solution.order.size());
    size_t b = below(2) ? below(plan.solution.order.size()) : std::min(a + 1, plan.solution.order.size() - 1);
    std::swap(plan.solution.order[a], plan.solution.order[b]);
    return a != b;
  }

  /// Moves a step and everything that is said about it to another position.
  bool moveTo(StepIndex from, StepIndex to) {
    if (from == to)
      return false;
    std::vector<StepIndex> oldOf(problem().steps.size());
    for (StepIndex step = 0; step < oldOf.size(); ++step)
      oldOf[step] = step;
    oldOf.erase(oldOf.begin() + from);
    oldOf.insert(oldOf.begin() + to, from);
    rearrange(oldOf);
    return true;
  }

  /// Step k of the new program is step oldOf[k] of the old one; steps may be missing or come twice.
  void rearrange(const std::vector<StepIndex> &oldOf) {
    ScheduledProblem before = plan.scheduled;
    Solution old = plan.solution;
    std::vector<StepIndex> newOf(before.problem.steps.size(), noStep);
    for (StepIndex step = static_cast<StepIndex>(oldOf.size()); step-- > 0;)
      newOf[oldOf[step]] = step;
    problem().steps.clear();
    plan.scheduled.stepOrigin.clear();
    plan.solution.workspaceOffsets.clear();
    plan.solution.order.clear();
    plan.solution.inPlace.clear();
    for (StepIndex from : oldOf) {
      Step step = before.problem.steps[from];
      if (step.waitsFor != noStep)
        step.waitsFor = newOf[step.waitsFor];
      plan.solution.order.push_back(static_cast<StepIndex>(problem().steps.size()));
      problem().steps.push_back(step);
      plan.scheduled.stepOrigin.push_back(before.stepOrigin[from]);
      plan.solution.workspaceOffsets.push_back(old.workspaceOffsets[from]);
    }
    for (InPlacePair pair : old.inPlace)
      if (newOf[pair.step] != noStep) {
        pair.step = newOf[pair.step];
        plan.solution.inPlace.push_back(pair);
      }
    forgetUnused();
  }

  /// A storage nobody mentions any more has no address (V2), so that an edit is not refused for that alone.
  void forgetUnused() {
    std::vector<char> used(problem().storages.size(), 0);
    for (const Step &step : problem().steps)
      for (const Access &access : step.accesses)
        used[access.storage] = 1;
    for (const std::vector<StorageId> *ends : {&problem().inputs, &problem().outputs})
      for (StorageId id : *ends)
        used[id] = 1;
    for (const Storage &storage : problem().storages)
      if (!used[storage.id] && !storage.persistent)
        plan.solution.offsets[storage.id] = noOffset;
  }

  bool moveStep() {
    StepIndex from = anyStep();
    StepIndex to = below(2)
                       ? anyStep()
                       : std::min<StepIndex>(from + 1 + below(4), static_cast<StepIndex>(problem().steps.size() - 1));
    return moveTo(from, to);
  }

  void eraseSteps(std::vector<StepIndex> erased) {
    std::vector<StepIndex> oldOf;
    for (StepIndex step = 0; step < problem().steps.size(); ++step)
      if (std::find(erased.begin(), erased.end(), step) == erased.end())
        oldOf.push_back(step);
    rearrange(oldOf);
  }

  bool dropStep() {
    eraseSteps({anyStep()});
    return true;
  }

  /// From step `from` on, reads, offers and outputs of `id` mean `instead`.
  void redirectAll(StorageId id, StorageId instead) {
    for (Step &step : problem().steps) {
      for (Access &access : step.accesses)
        if (access.storage == id)
          access.storage = instead;
      for (InPlaceCandidate &offer : step.inPlace)
        if (offer.operand == id)
          offer.operand = instead;
    }
    for (StorageId &output : problem().outputs)
      if (output == id)
        output = instead;
    for (InPlacePair &pair : plan.solution.inPlace)
      if (pair.operand == id)
        pair.operand = instead;
  }

  /// Lifetimes shortened as a planner's mistake would: what was recomputed is taken from the instance before it.
  bool dropRun() {
    std::vector<StepIndex> again;
    std::vector<char> seen(problem().steps.size(), 0);
    for (StepIndex step = 0; step < problem().steps.size(); ++step)
      if (StepIndex origin = plan.scheduled.stepOrigin[step]; origin != noStep)
        if (std::find_if(plan.scheduled.stepOrigin.begin(), plan.scheduled.stepOrigin.begin() + step,
                         [&](StepIndex o) { return o == origin; }) != plan.scheduled.stepOrigin.begin() + step)
          again.push_back(step);
    if (again.empty())
      return false;
    StepIndex dropped = again[below(again.size())];
    std::vector<Access> accesses = problem().steps[dropped].accesses;
    eraseSteps({dropped});
    for (const Access &access : accesses)
      if (StorageId other = sibling(access.storage); access.writes() && other != noStorage)
        redirectAll(access.storage, other);
    forgetUnused();
    return true;
  }

  bool dropTransfer() {
    StepIndex wait = anyStep(StepKind::Wait);
    if (wait == noStep)
      return false;
    StepIndex copy = problem().steps[wait].waitsFor;
    StorageId target = problem().steps[copy].accesses[1].storage;
    StorageId other = sibling(target);
    eraseSteps({copy, wait});
    if (other != noStorage && problem().storages[target].tier == Tier::Device)
      redirectAll(target, other);
    forgetUnused();
    return true;
  }

  bool repeatStep() {
    StepIndex step = anyStep(StepKind::Compute);
    std::vector<StepIndex> oldOf;
    StepIndex at = below(2) ? step : anyStep();
    for (StepIndex i = 0; i < problem().steps.size(); ++i) {
      oldOf.push_back(i);
      if (i == at)
        oldOf.push_back(step);
    }
    rearrange(oldOf);
    return true;
  }

  bool redirect(bool writes) {
    for (unsigned attempt = 0; attempt < 10; ++attempt) {
      Step &step = problem().steps[anyStep()];
      if (step.accesses.empty())
        continue;
      Access &access = step.accesses[below(step.accesses.size())];
      StorageId other = sibling(access.storage);
      if (access.writes() != writes || other == noStorage)
        continue;
      for (InPlaceCandidate &offer : step.inPlace) {
        StorageId &mentioned = writes ? offer.result : offer.operand;
        if (mentioned == access.storage)
          mentioned = other;
      }
      access.storage = other;
      forgetUnused();
      return true;
    }
    return false;
  }
  bool redirectRead() { return redirect(false); }
  bool redirectWrite() { return redirect(true); }

  bool redirectOutput() {
    StorageId &output = problem().outputs[below(problem().outputs.size())];
    StorageId other = sibling(output);
    if (other == noStorage)
      return false;
    output = other;
    return true;
  }

  bool retargetWait() {
    StepIndex wait = anyStep(StepKind::Wait), copy = anyStep(StepKind::Copy);
    if (wait == noStep || problem().steps[wait].waitsFor == copy)
      return false;
    problem().steps[wait].waitsFor = copy;
    if (below(2))
      for (size_t i = 0; i < 2; ++i)
        problem().steps[wait].accesses[i].storage = problem().steps[copy].accesses[i].storage;
    return true;
  }

  bool moveWaitDown() {
    StepIndex wait = anyStep(StepKind::Wait);
    if (wait == noStep)
      return false;
    return moveTo(wait, std::min(wait + 1 + below(12), static_cast<StepIndex>(problem().steps.size() - 1)));
  }

  bool moveCopyUp() {
    StepIndex copy = anyStep(StepKind::Copy);
    if (copy == noStep)
      return false;
    return moveTo(copy, copy - std::min(copy, 1 + below(12)));
  }

  bool changeMode() {
    Step &step = problem().steps[anyStep()];
    if (step.accesses.empty())
      return false;
    Access &access = step.accesses[below(step.accesses.size())];
    access.mode = static_cast<AccessMode>((static_cast<unsigned>(access.mode) + 1 + below(2)) % 3);
    return true;
  }

  bool changeOrigin() {
    StepIndex a = anyStep(StepKind::Compute), b = anyStep(StepKind::Compute);
    std::swap(plan.scheduled.stepOrigin[a], plan.scheduled.stepOrigin[b]);
    return plan.scheduled.stepOrigin[a] != plan.scheduled.stepOrigin[b];
  }

  bool changeSize() {
    Storage &storage = problem().storages[anyStorage()];
    storage.bytes += below(2) || storage.bytes == 0 ? 1 + below(8) : uint64_t{0} - 1;
    return plan.solution.offsets[storage.id] != noOffset;
  }

  bool changeTier() {
    Storage &storage = problem().storages[anyStorage()];
    storage.tier = static_cast<Tier>((static_cast<unsigned>(storage.tier) + 1 + below(2)) % tierCount);
    return plan.solution.offsets[storage.id] != noOffset;
  }

  bool dropPersistence() {
    Storage &storage = problem().storages[anyStorage()];
    storage.persistent = !storage.persistent;
    return plan.solution.offsets[storage.id] != noOffset;
  }

  Plan &plan;
  std::mt19937 &random;
};

/// Counts per kind of edit.
struct Tally {
  unsigned edits = 0, changed = 0, refused = 0, missed = 0;
  unsigned bySchedule = 0, byPlacement = 0;   ///< of the changed ones: refused by this judge alone
  unsigned replaced = 0, replacedChanged = 0; ///< placed afresh
};

class MutationTest {
public:
  void run() {
    for (uint32_t seed = 0; seed < 500; ++seed)
      damage(seed);
  }

  std::vector<Tally> tallies = std::vector<Tally>(Editor::edits().size());

private:
  void damage(uint32_t seed) {
    Program program = trainingProgram(10'000 + seed);
    Plan right;
    Result<ScheduledProblem> scheduled = applySchedule(program, randomSchedule(program, 10'000 + seed), speeds);
    ASSERT_TRUE(scheduled) << scheduled.status().message();
    PlanOptions options{.takeInPlace = seed % 5 != 0, .pack = {PackStrategy::Solve, 20'000}};
    Result<Solution> solution = plan(scheduled->problem, options);
    ASSERT_TRUE(solution) << solution.status().message();
    MachineResult reference = referenceResult(program);
    std::mt19937 random(seed);
    for (unsigned repeat = 0; repeat < 2; ++repeat)
      for (size_t kind = 0; kind < Editor::edits().size(); ++kind) {
        Plan damaged{*scheduled, *solution};
        if ((Editor(damaged, random).*Editor::edits()[kind].apply)())
          judge(seed, kind, program, damaged, reference);
      }
  }

  void judge(uint32_t seed, size_t kind, const Program &program, Plan &damaged, const MachineResult &reference) {
    bool changed = !computesTheSame(program, damaged.scheduled, damaged.solution, reference);
    bool schedule = validateSchedule(program, damaged.scheduled).isOk();
    bool placement = validate(damaged.problem(), damaged.solution).isOk();
    Tally &tally = tallies[kind];
    ++tally.edits;
    tally.changed += changed;
    tally.refused += !schedule || !placement;
    tally.bySchedule += changed && !schedule && placement;
    tally.byPlacement += changed && schedule && !placement;
    tally.missed += changed && schedule && placement;
    EXPECT_FALSE(changed && schedule && placement)
        << "seed " << seed << ", edit: " << Editor::edits()[kind].name << "\n"
        << writeProblem(damaged.problem());
    if (Editor::edits()[kind].ofProgram)
      judgePlacedAfresh(seed, kind, program, damaged, schedule, reference);
  }

  void judgePlacedAfresh(uint32_t seed, size_t kind, const Program &program, Plan &damaged, bool schedule,
                         const MachineResult &reference) {
    Result<Solution> fresh = plan(damaged.problem(), {.pack = {PackStrategy::FirstFit, 0}});
    if (!fresh)
      return; // malformed, which validateSchedule() refuses as well (S0)
    bool changed = !computesTheSame(program, damaged.scheduled, *fresh, reference);
    Tally &tally = tallies[kind];
    ++tally.replaced;
    tally.replacedChanged += changed;
    tally.missed += changed && schedule;
    EXPECT_FALSE(changed && schedule) << "placed afresh: seed " << seed << ", edit: " << Editor::edits()[kind].name
                                      << "\n"
                                      << writeProblem(damaged.problem());
  }
};

TEST(PlanMutation, EveryEditThatChangesAResultIsRefused) {
  MutationTest test;
  test.run();
  Tally all;
  std::printf("%-45s %7s %8s %8s %9s %9s %14s\n", "edit", "edits", "changed", "refused", "by V only", "by S only",
              "placed afresh");
  auto print = [](const char *name, const Tally &tally) {
    std::printf("%-45s %7u %8u %8u %9u %9u %7u/%6u\n", name, tally.edits, tally.changed, tally.refused,
                tally.byPlacement, tally.bySchedule, tally.replacedChanged, tally.replaced);
  };
  for (size_t kind = 0; kind < Editor::edits().size(); ++kind) {
    const Tally &tally = test.tallies[kind];
    print(Editor::edits()[kind].name, tally);
    all.edits += tally.edits, all.changed += tally.changed, all.refused += tally.refused, all.missed += tally.missed;
    all.bySchedule += tally.bySchedule, all.byPlacement += tally.byPlacement;
    all.replaced += tally.replaced, all.replacedChanged += tally.replacedChanged;
    EXPECT_GT(tally.edits, 50u) << Editor::edits()[kind].name;
    EXPECT_GT(tally.changed, 5u) << Editor::edits()[kind].name;
  }
  print("all", all);
  EXPECT_EQ(all.missed, 0u);
  EXPECT_GE(all.edits, 10'000u);
  EXPECT_GE(all.changed, 5'000u);
  EXPECT_GE(all.byPlacement, 1'000u); // each judge is needed
  EXPECT_GE(all.bySchedule, 200u);
  EXPECT_GE(all.edits - all.refused, 500u); // harmless edits are let through: the judges do not just refuse everything
}

} // namespace
