// The planner's front door for one program: choose a schedule within the budgets, place it, judge it, bound it, explain
// it. plan() (Solution.h) is the special case that changes nothing but addresses.
#pragma once

#include "plimsoll/Planner/Remat.h"
#include "plimsoll/Planner/Solution.h"

#include <optional>
#include <string>
#include <vector>

namespace plimsoll::planner {

/// Budgets in placed bytes: offsets, alignment and workspaces included.
struct Budgets {
  std::optional<uint64_t> deviceBytes; ///< none: nothing is recomputed or moved
  uint64_t hostBytes = 0;              ///< 0: the tier is not used
  uint64_t diskBytes = 0;
};

struct ProgramOptions {
  Budgets budgets;
  TransferSpeed speeds[tierCount]; ///< of host and disk; the device's entry is unused
  PlanEffort effort = PlanEffort::Default;
  PackOptions pack;
  /// Schedules of this program under other budgets; a plan is never slower than one of these that fits.
  std::vector<Schedule> incumbents;
  std::vector<StorageId> pinned; ///< persistent storages that may not leave the device (other programs use them too)
};

/// What became of a value (or of one persistent storage).
enum class Fate : uint8_t { Kept, Recomputed, Offloaded, TakenOver, Resident };
/// "kept", "recomputed", "offloaded", "taken-over" (lives on in the bytes of an in-place result), "resident"
/// (persistent).
std::string_view fateName(Fate fate);

/// Why a value is where it is, and what the alternatives would have cost.
struct Explanation {
  StorageId storage = noStorage; ///< of the original problem
  Fate fate = Fate::Kept;
  uint64_t bytes = 0;            ///< aligned
  StepIndex lastReader = noStep; ///< original step that needs it last
  unsigned recomputes = 0;       ///< runs of its unit beyond the first
  unsigned transfers = 0;        ///< copies out and in
  double recomputeSeconds = 0;   ///< one more run of its unit; infinite when it cannot run again
  double transferSeconds = 0;    ///< out and in once at the nearest tier's speed; infinite without a tier
  std::string reason;            ///< one sentence for people
};

/// One point of the budget-time curve.
struct CurvePoint {
  uint64_t budgetBytes = 0;
  uint64_t arenaBytes = 0; ///< placed; at most the budget
  double extraSeconds = 0; ///< over running every step once
  TimeBound bound;         ///< no schedule within the budget costs less extra time
};

struct ProgramPlan {
  Schedule schedule;
  ScheduledProblem scheduled;
  Solution solution; ///< of scheduled.problem
  Timing timing;
  double keepAllSeconds = 0;   ///< every step once
  uint64_t keepAllBytes = 0;   ///< placed peak without recompute or transfers
  uint64_t peakBoundBytes = 0; ///< proved: no schedule of any kind has a smaller peak (PeakFloor)
  TimeBound bound;
  std::vector<Explanation> explanations; ///< by storage
  double extraSeconds() const { return timing.totalSeconds() - keepAllSeconds; }
};

/// Chooses, places, judges (validate, validateSchedule) and bounds.
/// Fails with BadInput when problem.check() fails, DoesNotFit with the proved bound and its parts when no plan within
/// the budgets was found, Internal when a judge objects.
/// Objective: least predicted time within the budgets. Deterministic.
Result<ProgramPlan> planProgram(const Problem &problem, const ProgramOptions &options);

/// Plans the program at each budget (device bytes, any order), reusing every plan as an incumbent of the others, so
/// that a smaller budget never gives a larger peak nor a larger budget a slower plan. Budgets that nothing fits are
/// left out. Returns Pareto points by falling budget.
Result<std::vector<CurvePoint>> budgetCurve(const Problem &problem, const ProgramOptions &options,
                                            const std::vector<uint64_t> &budgets);

} // namespace plimsoll::planner
