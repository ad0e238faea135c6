// When each storage needs its bytes, which results take over the bytes of an operand, and how many bytes are live at
// once.
#pragma once

#include "plimsoll/Planner/Problem.h"

#include <array>
#include <string>
#include <vector>

namespace plimsoll::planner {

/// Half-open interval of steps: from the step that gives the bytes their first content up to, not including, `upper`.
struct Interval {
  StepIndex lower = 0;
  StepIndex upper = 0;
  bool contains(StepIndex step) const { return lower <= step && step < upper; }
  bool operator==(const Interval &) const = default;
};

/// An in-place offer that was taken: from `step` on the operand's bytes hold the result.
struct InPlacePair {
  StepIndex step = 0;
  StorageId operand = noStorage;
  StorageId result = noStorage;
  bool operator==(const InPlacePair &) const = default;
};

/// Bytes that are placed as one: a chain of storages that take each other over, or the workspace of one step.
struct Allocation {
  std::vector<StorageId> members;   ///< in order of time; empty for a workspace
  StepIndex workspaceStep = noStep; ///< the step this is the scratch of, or noStep
  uint64_t bytes = 0;               ///< rounded up to the problem's alignment
  Interval interval;                ///< union of the members' intervals
  bool persistent = false;          ///< live over the whole program and between runs
  Tier tier = Tier::Device;         ///< of its members
};

/// One line of the list of what is live at the peak.
struct LiveEntry {
  uint32_t allocation = 0;       ///< index into Liveness::allocations
  StorageId storage = noStorage; ///< the content at the witness step; noStorage for a workspace
  uint64_t bytes = 0;            ///< rounded up to the alignment
};

struct LivenessOptions {
  bool takeInPlace = true; ///< false: no offer is taken
};

struct Liveness {
  std::vector<Interval> intervals;     ///< per storage; an unused storage has an empty interval
  std::vector<Allocation> allocations; ///< persistent ones first in id order, the rest by lower step, then id
  std::vector<uint32_t> allocationOf;  ///< per storage; noStorage for a storage that is never used
  std::vector<InPlacePair> inPlace;    ///< by step
  std::vector<uint64_t> liveBytes;     ///< per step, on the device, aligned, while it runs (outputs there, inputs not
                                       ///< yet freed)
  uint64_t persistentBytes = 0;        ///< aligned; part of every entry of liveBytes
  uint64_t maxLiveBytes = 0;           ///< no placement of this order can use fewer bytes
  StepIndex witnessStep = 0;           ///< the first step where maxLiveBytes is reached
  std::vector<LiveEntry> liveAtPeak;   ///< on the device; largest first, then by allocation
  std::array<uint64_t, tierCount> tierPersistentBytes{}; ///< per tier, aligned; the device's is persistentBytes
  std::array<uint64_t, tierCount> tierMaxLiveBytes{};    ///< per tier, aligned; the device's is maxLiveBytes
};

/// Objective: the least live bytes at every step, over all choices of in-place offers (each step's offers are matched
/// exactly, and taking one never raises the bytes of any step).
/// Input rules: problem.check() is ok. Fails if it is not (BadInput, its message).
/// Intervals: a storage is live from its first write to its last access; inputs from step 0; outputs to the end;
/// persistent storages always; a value nobody reads only during the step that writes it. A copy's source and target
/// live at least up to its wait, which reads them. Offers are taken on the device only (C13); peaks are of the device
/// unless they say otherwise.
/// Complexity: O(accesses + storages log storages), matching O(results x offers) per step. Deterministic.
Result<Liveness> computeLiveness(const Problem &problem, const LivenessOptions &options = {});

/// The peak as text: total, witness step, bytes by class and the `most` largest entries with their source names.
std::string describePeak(const Problem &problem, const Liveness &liveness, size_t most = 10);

} // namespace plimsoll::planner
