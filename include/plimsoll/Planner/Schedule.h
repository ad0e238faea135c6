// What the planner decides about a program before addresses: which steps run when and how often, and what moves between
// tiers. A schedule speaks about the original problem; applySchedule() turns it into a problem of its own, which
// liveness, placement and lowering treat like any other.
#pragma once

#include "plimsoll/Planner/Problem.h"
#include "plimsoll/Planner/Validate.h"

#include <vector>

namespace plimsoll::planner {

enum class ActionKind : uint8_t {
  Run,     ///< runs step `index`; a second time it defines new instances of its results (recompute)
  CopyOut, ///< starts moving the newest device instance of storage `index` to `tier`
  CopyIn,  ///< starts bringing storage `index` back into a new device instance
  Wait,    ///< waits for the transfer of storage `index` that is under way
};

struct Action {
  ActionKind kind = ActionKind::Run;
  uint32_t index = 0;       ///< StepIndex for Run, StorageId otherwise
  Tier tier = Tier::Device; ///< CopyOut: where to
  bool operator==(const Action &) const = default;
};

/// A persistent storage whose home is not the device. It is there before the first step and after the last one; steps
/// that touch it need it brought in first (CopyIn, Wait) and, if they change it, moved out again (CopyOut, Wait).
struct Relocation {
  StorageId storage = noStorage;
  Tier tier = Tier::Disk;
  bool operator==(const Relocation &) const = default;
};

struct Schedule {
  std::vector<Action> actions;
  std::vector<Relocation> relocations; ///< ascending by storage
};

/// The program as it stands: every step once, nothing moved.
Schedule keepAll(const Problem &problem);

/// Speeds of the ways between device and the other tiers, in bytes a second and seconds a transfer.
struct TransferSpeed {
  double outBytesPerSecond = 1e9;
  double inBytesPerSecond = 1e9;
  double latencySeconds = 0;
};

/// A problem made by a schedule, and where its parts come from.
struct ScheduledProblem {
  Problem problem;
  std::vector<StepIndex> stepOrigin;    ///< per step: the original step; noStep for copies and waits
  std::vector<StorageId> storageOrigin; ///< per storage: the original storage it is an instance of
};

/// Writes the schedule out as a problem.
/// Instances: the first instance of a storage keeps its id and name, so a schedule that repeats and moves nothing gives
/// the problem back unchanged (its steps too); later ones are appended as "name.2", "name.3" (recomputed),
/// "name.host"/"name.disk" (moved out) and "name.in2" (brought back). A run of a step whose storage was first written
/// by an earlier step of the same unit adds to the newest instance. Reads mean the newest device instance. Outputs are
/// the newest instances. A transfer's target counts as an instance from its wait on: until then reads mean the older
/// one, if there is one. A relocated storage keeps its id, persistent, on its tier, and counts as its own first
/// instance; its device instances are of class workspace. Other persistent storages do not move. Names that are taken
/// get a further number. Copies get the duration their bytes need at `speeds` (indexed by tier, the device's entry is
/// unused). Fails with BadInput and the action's position when an action is meaningless: a read of something not on the
/// device, a wait without a transfer, a move of a resident storage, a second transfer of one storage before its wait,
/// an index out of range, a transfer never waited for. Whether the result computes the same is validateSchedule()'s
/// business.
Result<ScheduledProblem> applySchedule(const Problem &original, const Schedule &schedule,
                                       const TransferSpeed (&speeds)[tierCount]);

/// Judges that `scheduled` computes what `original` computes; shares no code with applySchedule() or any solver. It
/// numbers contents: every run of an original step takes the numbers of what it reads to new numbers.
///   S0 both problems are well formed
///   S1 every original step that changes persistent or staged storages, or whose results cannot be made twice, runs
///      exactly once; every other one at least once if somebody needs it; nothing else but copies and waits is added
///   S2 every run has the origin's name stem, accesses (through storageOrigin), in-place offers, workspace and cost
///   S3 every read sees the very content the original step reads
///   S4 outputs and persistent storages end with the original's contents
///   S5 the bytes of a transfer under way are not written, and its target not touched, before its wait
///   S6 sizes and classes of instances match the original's; tiers are those of copies; a persistent storage has
///   exactly
///      one persistent instance, its home
/// A step's results "cannot be made twice" when it changes something in place (a ReadWrite). S3..S5 judge contents and
/// are looked at only when the rules before them and S6 hold. Complexity: O(accesses).
ValidationReport validateSchedule(const Problem &original, const ScheduledProblem &scheduled);

/// Predicted duration of a program: compute steps one after the other, copies of one tier and one direction one after
/// the other beside them, waits as long as their copy is not done.
struct Timing {
  double computeSeconds = 0; ///< sum over compute steps, recomputes included
  double stallSeconds = 0;   ///< time spent in waits
  double totalSeconds() const { return computeSeconds + stallSeconds; }
};
Timing predictTiming(const Problem &problem);

} // namespace plimsoll::planner
