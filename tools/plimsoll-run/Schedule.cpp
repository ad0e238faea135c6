// Constant, linear and cosine learning-rate schedules with warm-up.
#include "tools/plimsoll-run/Schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace plimsoll::runtime {

double learningRateAt(const Schedule &schedule, uint64_t index) {
  if (index < schedule.warmupSteps)
    return schedule.peak * static_cast<double>(index + 1) / static_cast<double>(schedule.warmupSteps);
  if (schedule.kind == ScheduleKind::Constant)
    return schedule.peak;
  double span = schedule.decaySteps > schedule.warmupSteps
                    ? static_cast<double>(schedule.decaySteps - schedule.warmupSteps)
                    : 1.0;
  double done = std::min(1.0, static_cast<double>(index - schedule.warmupSteps) / span);
  double share = schedule.kind == ScheduleKind::Linear ? 1.0 - done : 0.5 * (1.0 + std::cos(std::numbers::pi * done));
  return schedule.minimum + (schedule.peak - schedule.minimum) * share;
}

} // namespace plimsoll::runtime
