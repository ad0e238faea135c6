// plan(): liveness, placement, judgement, on one page.
#include "plimsoll/Planner/Solution.h"
#include "plimsoll/Planner/Validate.h"
#include "plimsoll/Support/Units.h"

#include <numeric>

namespace plimsoll::planner {

/// What does not live through the whole program in one tier, one item an allocation, in the order of allocations.
static PackingProblem transientProblem(Tier tier, const Problem &problem, const Liveness &live) {
  PackingProblem packing;
  packing.alignment = problem.alignment;
  for (size_t i = 0; i < live.allocations.size(); ++i) {
    const Allocation &allocation = live.allocations[i];
    if (allocation.tier == tier && !allocation.persistent)
      packing.items.push_back(
          {std::to_string(i), allocation.bytes, allocation.interval.lower, allocation.interval.upper});
  }
  return packing;
}

/// Gives every member of every allocation of the tier its address: persistent ones stacked from 0, the rest above them.
static void assignOffsets(Tier tier, const Liveness &live, const PackingSolution &placed, Solution &solution) {
  uint64_t persistentTop = 0;
  size_t nextItem = 0;
  for (const Allocation &allocation : live.allocations) {
    if (allocation.tier != tier)
      continue;
    uint64_t offset = persistentTop;
    if (allocation.persistent)
      persistentTop += allocation.bytes;
    else
      offset = live.tierPersistentBytes[static_cast<unsigned>(tier)] + placed.offsets[nextItem++];
    for (StorageId id : allocation.members)
      solution.offsets[id] = offset;
    if (allocation.workspaceStep != noStep)
      solution.workspaceOffsets[allocation.workspaceStep] = offset;
  }
}

/// Packs one tier into the solution and returns what the packing proves.
static Result<PackingSolution> placeTier(Tier tier, const Problem &problem, const Liveness &live,
                                         const PackOptions &options, Solution &solution) {
  Result<PackingSolution> placed = pack(transientProblem(tier, problem, live), options);
  if (!placed)
    return placed;
  assignOffsets(tier, live, *placed, solution);
  uint64_t persistent = live.tierPersistentBytes[static_cast<unsigned>(tier)];
  placed->arenaBytes += persistent;
  placed->lowerBoundBytes += persistent;
  return placed;
}

static Status checkBudget(const Problem &problem, const Liveness &live, const Solution &solution, uint64_t budget) {
  if (solution.arenaBytes <= budget)
    return Status::ok();
  return {ExitCode::DoesNotFit, "the smallest plan found needs " + groupedDigits(solution.arenaBytes) +
                                    " bytes but the budget is " + groupedDigits(budget) +
                                    "; no placement of this order is below " + groupedDigits(solution.lowerBoundBytes) +
                                    "; " + describePeak(problem, live)};
}

static Status checkTierBudget(Tier tier, const Liveness &live, const Solution &solution, uint64_t budget) {
  unsigned index = static_cast<unsigned>(tier);
  if (solution.tierBytes[index] <= budget)
    return Status::ok();
  std::string name(tierName(tier));
  return {ExitCode::DoesNotFit, "the smallest plan found needs " + groupedDigits(solution.tierBytes[index]) +
                                    " bytes of the " + name + " but its budget is " + groupedDigits(budget) + "; " +
                                    groupedDigits(live.tierMaxLiveBytes[index]) +
                                    " bytes are there at once, whatever the placement"};
}

static Status checkBudgets(const Problem &problem, const Liveness &live, const Solution &solution,
                           const PlanOptions &options) {
  if (options.budgetBytes)
    if (Status status = checkBudget(problem, live, solution, *options.budgetBytes); !status)
      return status;
  if (options.hostBudgetBytes)
    if (Status status = checkTierBudget(Tier::Host, live, solution, *options.hostBudgetBytes); !status)
      return status;
  return options.diskBudgetBytes ? checkTierBudget(Tier::Disk, live, solution, *options.diskBudgetBytes) : Status::ok();
}

Result<Solution> plan(const Problem &problem, const PlanOptions &options) {
  Result<Liveness> live = computeLiveness(problem, {options.takeInPlace});
  if (!live)
    return live.status();

  Solution solution;
  solution.order.resize(problem.steps.size());
  std::iota(solution.order.begin(), solution.order.end(), 0u);
  solution.offsets.assign(problem.storages.size(), noOffset);
  solution.workspaceOffsets.assign(problem.steps.size(), noOffset);
  Result<PackingSolution> placed = placeTier(Tier::Device, problem, *live, options.pack, solution);
  if (!placed)
    return placed.status();
  solution.inPlace = live->inPlace;
  solution.persistentBytes = live->persistentBytes;
  solution.arenaBytes = placed->arenaBytes;
  solution.maxLiveBytes = live->maxLiveBytes;
  solution.lowerBoundBytes = placed->lowerBoundBytes;
  solution.witnessStep = live->witnessStep;
  solution.strategy = placed->strategy;
  for (Tier tier : {Tier::Host, Tier::Disk}) {
    placed = placeTier(tier, problem, *live, options.pack, solution);
    if (!placed)
      return placed.status();
    solution.tierBytes[static_cast<unsigned>(tier)] = placed->arenaBytes;
  }

  if (Status status = validate(problem, solution).status(); !status)
    return internalError("the planner produced a plan its judge refuses; please report this: " + status.message());
  if (Status status = checkBudgets(problem, *live, solution, options); !status)
    return status;
  return solution;
}

} // namespace plimsoll::planner
