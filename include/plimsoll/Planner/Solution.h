// The planner's output for one program: an order, an address for every storage and workspace, and what it proves.
#pragma once

#include "plimsoll/Planner/Liveness.h"
#include "plimsoll/Planner/Packing.h"
#include "plimsoll/Planner/Problem.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll::planner {

/// A plan. The fields up to arenaBytes are what validate() judges; the rest explains them.
struct Solution {
  std::vector<StepIndex> order;  ///< order[k] is the step that runs as k-th; identity in this form
  std::vector<uint64_t> offsets; ///< per storage, bytes from the start of its tier's arena; noOffset if never used
  std::vector<uint64_t> workspaceOffsets;      ///< per step; noOffset where the step has no workspace
  std::vector<InPlacePair> inPlace;            ///< offers taken
  uint64_t arenaBytes = 0;                     ///< of the device; multiple of the alignment
  std::array<uint64_t, tierCount> tierBytes{}; ///< of the other tiers' arenas; the device's entry stays 0

  uint64_t persistentBytes = 0; ///< persistent storages fill [0, persistentBytes) in id order, whatever the program
                                ///< (of the device; those of every other tier fill the start of its arena likewise)
  uint64_t maxLiveBytes = 0;    ///< live bytes at the witness step (aligned)
  uint64_t lowerBoundBytes = 0; ///< proved: no placement of this order with these offers is lower
  StepIndex witnessStep = 0;    ///< where maxLiveBytes is reached
  std::string strategy;         ///< see PackingSolution::strategy
};

struct PlanOptions {
  bool takeInPlace = true;
  PackOptions pack = {};
  std::optional<uint64_t> budgetBytes = std::nullopt;     ///< the device's arena may not be larger
  std::optional<uint64_t> hostBudgetBytes = std::nullopt; ///< nor that of the host
  std::optional<uint64_t> diskBudgetBytes = std::nullopt; ///< nor that of the disk
};

/// Liveness, in-place, placement tier by tier, and validate() on the result.
/// Persistent storages come first, in id order: programs that list the same persistent storages first (a training and
/// an evaluation step) find them at the same addresses, and nothing is lost, since they conflict with everything.
/// Objective: the smallest arenaBytes, and the smallest arena of every other tier. Input rules: problem.check() is ok.
/// Fails if the problem is malformed (BadInput), no placement within the budget was found (DoesNotFit, with the bound
/// and the largest live storages), or validate() objects (Internal; a bug in the planner).
/// Complexity: that of computeLiveness() and pack(). Deterministic.
Result<Solution> plan(const Problem &problem, const PlanOptions &options = {});

} // namespace plimsoll::planner
