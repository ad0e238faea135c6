// Comparing the fast kernels with the reference kernels over a few steps, one session after the other.
#include "tools/plimsoll-run/Verify.h"

#include "tools/plimsoll-run/RunState.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace plimsoll::runtime {
namespace {

constexpr double lossTolerance = 2e-5;

Result<std::vector<double>> losses(Session &session, const TrainOptions &options, uint64_t steps) {
  Result<StepDriver> driver = StepDriver::bind(session);
  if (!driver)
    return driver.status();
  uint64_t seed = options.seed.value_or(0);
  auto feed = openFeed(session, options.data, driver->dataPorts(), seed, options.shuffle);
  if (!feed)
    return feed.status();
  if (Status status = initializeState(session, options.weights); !status)
    return status;
  if (Status status = setSeed(session, seed); !status)
    return status;
  std::vector<double> values;
  for (uint64_t step = 0; step < steps; ++step) {
    StepResult result;
    if (Status status = driver->run(session, *feed, learningRateAt(options.schedule, step), result); !status)
      return status;
    values.push_back(result.loss);
  }
  return values;
}

} // namespace

Status verifyAgainstReference(const SessionOpener &open, const TrainOptions &options, uint64_t steps,
                              std::string &text) {
  std::vector<double> values[2];
  for (int reference = 0; reference < 2; ++reference) {
    Result<std::unique_ptr<Session>> session = open(reference == 1);
    if (!session)
      return session.status();
    Result<std::vector<double>> run = losses(**session, options, steps);
    if (!run)
      return run.status();
    values[reference] = std::move(*run);
  }
  for (uint64_t step = 0; step < steps; ++step) {
    double fast = values[0][step], reference = values[1][step];
    double difference = std::abs(fast - reference);
    text += fmt::format("verify step {}: loss {:.7g}, reference {:.7g}, difference {:.2e}\n", step + 1, fast, reference,
                        difference);
    if (!(difference <= lossTolerance * std::max(std::abs(reference), 1.0)))
      return internalError(
          fmt::format("step {}: loss {} differs from the reference kernels' {} by more than {}; please "
                      "report this with the artifact",
                      step + 1, fast, reference, lossTolerance));
  }
  return Status::ok();
}

} // namespace plimsoll::runtime
