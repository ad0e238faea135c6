// Learning rate by optimizer step. The index moves once per optimizer step, never per micro-batch.
#pragma once

#include <cstdint>

namespace plimsoll::runtime {

enum class ScheduleKind : uint8_t { Constant, Linear, Cosine };

/// Warm-up rises linearly to `peak` over `warmupSteps`; from there to step `decaySteps` the rate falls to `minimum`
/// (linear or half a cosine) and stays there.
struct Schedule {
  ScheduleKind kind = ScheduleKind::Constant;
  double peak = 1e-3;
  double minimum = 0;
  uint64_t warmupSteps = 0;
  uint64_t decaySteps = 0; ///< step at which the minimum is reached; counted from the start of the run
};

/// Rate of the optimizer step with `index` (the first is 0). Warm-up: peak * (index + 1) / warmupSteps.
double learningRateAt(const Schedule &schedule, uint64_t index);

} // namespace plimsoll::runtime
