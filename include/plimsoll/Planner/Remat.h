// Choosing a schedule under a byte budget: bounds from the stage model, incumbents from search and rounding.
#pragma once

#include "plimsoll/Planner/Certificate.h"
#include "plimsoll/Planner/Schedule.h"

#include <array>
#include <optional>
#include <vector>

namespace plimsoll::planner {

/// How much work the solvers may do. Work is counted, never timed, so results are equal on every machine; the seconds
/// are what the work takes on two cores of 2026 for a program of about 1,500 steps.
enum class PlanEffort : uint8_t {
  Fast,    ///< about 2 s: greedy and a short search, linear bound
  Default, ///< at most 30 s
  Best,    ///< at most 10 minutes
};
/// "fast", "default", "best".
std::string_view planEffortName(PlanEffort effort);
Result<PlanEffort> parsePlanEffort(std::string_view name);

/// What the device and the other tiers offer. Bytes are live bytes with alignment, not yet placed.
struct RematLimits {
  uint64_t deviceBytes = 0;                    ///< persistent bytes on the device included
  std::array<uint64_t, tierCount> tierBytes{}; ///< Host and Disk: room for moved bytes; 0 = tier not used
  TransferSpeed speeds[tierCount];
  std::vector<StorageId> pinned; ///< persistent storages that may not leave the device (other programs use them too)
};

/// Lower bounds for every schedule within the limits.
struct TimeBound {
  double extraSeconds = 0; ///< over running every step once
  BoundProof proof = BoundProof::None;
  Certificate certificate; ///< when proof is Certificate
  bool infeasible = false; ///< proved: no schedule of the class fits
};

/// Proves how much extra time the budget costs at least (stage model, LOWER in PLANNING §1.2), with a certificate that
/// has been re-checked. `target` (extra seconds of the best schedule known) tells when the proof is good enough: the
/// tree stops once bound >= target - `tolerance`.
/// Objective: the largest bound within the effort. Deterministic.
Result<TimeBound> boundExtraTime(const Problem &problem, uint64_t deviceBytes, double target, double tolerance,
                                 PlanEffort effort);

/// Schedules from the stage model (UPPER: LP and MIP, rounded and repaired), best first; each fits deviceBytes by live
/// bytes and passes validateSchedule(). Empty when none was found.
std::vector<Schedule> solveStages(const Problem &problem, uint64_t deviceBytes, const std::vector<Schedule> &incumbents,
                                  PlanEffort effort);

/// The fastest schedule that local search over keep / recompute / offload decisions finds within the limits, starting
/// from each of `starts` (or from keep-all). Recomputes that cost nothing come first. When nothing fits, the result is
/// the schedule of least peak seen, so that callers can say how close they came.
/// Objective: least predictTiming().totalSeconds() with live bytes within the limits. Deterministic.
Schedule searchSchedule(const Problem &problem, const RematLimits &limits, const std::vector<Schedule> &starts,
                        PlanEffort effort);

/// Proved: no schedule of any kind that runs every step needs fewer device bytes.
struct PeakFloor {
  uint64_t bytes = 0;           ///< persistent bytes + the largest working set of one step
  uint64_t persistentBytes = 0; ///< on the device whatever is done
  StepIndex step = noStep;      ///< whose working set it is
};
/// `relocatable`: persistent storages may move to other tiers, so that only what the step touches counts.
PeakFloor peakFloor(const Problem &problem, bool relocatable);

} // namespace plimsoll::planner
