// plan(): liveness, placement, judgement, on one page.
#include "plimsoll/Planner/Solution.h"
#include "plimsoll/Planner/Validate.h"
#include "plimsoll/Support/Units.h"

#include <numeric>

namespace plimsoll::planner {

/// Everything that does not live through the whole program, one item an allocation, in the order of allocations.
static PackingProblem transientProblem(const Problem &problem, const Liveness &live) {
  PackingProblem packing;
  packing.alignment = problem.alignment;
  for (size_t i = 0; i < live.allocations.size(); ++i) {
    const Allocation &allocation = live.allocations[i];
    if (!allocation.persistent)
      packing.items.push_back(
          {std::to_string(i), allocation.bytes, allocation.interval.lower, allocation.interval.upper});
  }
  return packing;
}

/// Gives every member of every allocation its address: persistent ones stacked from 0, the rest above them.
static void assignOffsets(const Problem &problem, const Liveness &live, const PackingSolution &placed,
                          Solution &solution) {
  solution.offsets.assign(problem.storages.size(), noOffset);
  solution.workspaceOffsets.assign(problem.steps.size(), noOffset);
  uint64_t persistentTop = 0;
  size_t nextItem = 0;
  for (const Allocation &allocation : live.allocations) {
    uint64_t offset = persistentTop;
    if (allocation.persistent)
      persistentTop += allocation.bytes;
    else
      offset = live.persistentBytes + placed.offsets[nextItem++];
    for (StorageId id : allocation.members)
      solution.offsets[id] = offset;
    if (allocation.workspaceStep != noStep)
      solution.workspaceOffsets[allocation.workspaceStep] = offset;
  }
}

static Status checkBudget(const Problem &problem, const Liveness &live, const Solution &solution, uint64_t budget) {
  if (solution.arenaBytes <= budget)
    return Status::ok();
  return {ExitCode::DoesNotFit, "the smallest plan found needs " + groupedDigits(solution.arenaBytes) +
                                    " bytes but the budget is " + groupedDigits(budget) +
                                    "; no placement of this order is below " + groupedDigits(solution.lowerBoundBytes) +
                                    "; " + describePeak(problem, live)};
}

Result<Solution> plan(const Problem &problem, const PlanOptions &options) {
  Result<Liveness> live = computeLiveness(problem, {options.takeInPlace});
  if (!live)
    return live.status();
  Result<PackingSolution> placed = pack(transientProblem(problem, *live), options.pack);
  if (!placed)
    return placed.status();

  Solution solution;
  solution.order.resize(problem.steps.size());
  std::iota(solution.order.begin(), solution.order.end(), 0u);
  assignOffsets(problem, *live, *placed, solution);
  solution.inPlace = live->inPlace;
  solution.persistentBytes = live->persistentBytes;
  solution.arenaBytes = live->persistentBytes + placed->arenaBytes;
  solution.maxLiveBytes = live->maxLiveBytes;
  solution.lowerBoundBytes = live->persistentBytes + placed->lowerBoundBytes;
  solution.witnessStep = live->witnessStep;
  solution.strategy = placed->strategy;

  if (Status status = validate(problem, solution).status(); !status)
    return internalError("the planner produced a plan its judge refuses; please report this: " + status.message());
  if (options.budgetBytes)
    if (Status status = checkBudget(problem, *live, solution, *options.budgetBytes); !status)
      return status;
  return solution;
}

} // namespace plimsoll::planner
