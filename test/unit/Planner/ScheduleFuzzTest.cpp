// Random programs under random legal schedules: written out, judged, placed, judged again, and executed on bytes. The
// results must be those of the program with nothing repeated, moved or shared.
#include "ByteMachine.h"
#include "RandomSchedules.h"
#include "TrainingPrograms.h"
#include "plimsoll/Planner/ProblemText.h"

#include <gtest/gtest.h>

using namespace plimsoll;
using namespace plimsoll::planner;
using namespace plimsoll::planner::test;

namespace {

constexpr TransferSpeed speeds[tierCount] = {{}, {4, 8, 0.5}, {1, 2, 3}};

PlanOptions quickOptions(uint32_t seed) {
  PackStrategy strategy = seed % 3 == 0   ? PackStrategy::Solve
                          : seed % 3 == 1 ? PackStrategy::BestFit
                                          : PackStrategy::FirstFit;
  return {.takeInPlace = seed % 5 != 0, .pack = {strategy, 20'000}};
}

TEST(ScheduleFuzz, RandomSchedulesComputeTheSame) {
  unsigned recomputes = 0, copies = 0, relocated = 0, pairs = 0, transfersBeside = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Program program = trainingProgram(seed);
    ASSERT_EQ(program.check().message(), "");
    Schedule schedule = randomSchedule(program, seed);
    Result<ScheduledProblem> scheduled = applySchedule(program, schedule, speeds);
    ASSERT_TRUE(scheduled) << scheduled.status().message();
    ASSERT_EQ(validateSchedule(program, *scheduled).status().message(), "") << writeProblem(scheduled->problem);
    ASSERT_EQ(writeProblem(*parseProblem(writeProblem(scheduled->problem))), writeProblem(scheduled->problem));
    Result<Solution> solution = plan(scheduled->problem, quickOptions(seed));
    ASSERT_TRUE(solution) << solution.status().message();
    ASSERT_TRUE(computesTheSame(program, *scheduled, *solution, referenceResult(program)))
        << writeProblem(scheduled->problem);

    recomputes += static_cast<unsigned>(scheduled->problem.steps.size() - program.steps.size());
    relocated += static_cast<unsigned>(schedule.relocations.size());
    pairs += static_cast<unsigned>(solution->inPlace.size());
    for (StepIndex step = 0; step < scheduled->problem.steps.size(); ++step) {
      const Step &made = scheduled->problem.steps[step];
      copies += made.kind == StepKind::Copy;
      transfersBeside += made.kind == StepKind::Wait && made.waitsFor + 1 < step;
    }
  }
  recomputes -= 2 * copies;
  std::printf("recomputed steps %u, copies %u (%u beside other steps), relocated storages %u, in-place pairs %u\n",
              recomputes, copies, transfersBeside, relocated, pairs);
  EXPECT_GT(recomputes, 15'000u);
  EXPECT_GT(copies, 8'000u);
  EXPECT_GT(transfersBeside, 5'000u);
  EXPECT_GT(relocated, 1'500u);
  EXPECT_GT(pairs, 2'000u);
}

} // namespace
