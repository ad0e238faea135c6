// The training loop on a fake session: schedules, accumulation, resume, NaN policy, signals, memory account.
#include "tools/plimsoll-run/Trainer.h"
#include "FakeSession.h"
#include "TestSupport.h"
#include "tools/plimsoll-run/RunState.h"
#include "tools/plimsoll-run/StopSignal.h"
#include "tools/plimsoll-run/Verify.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

using namespace plimsoll;
using namespace plimsoll::runtime;

namespace {

class TrainerTest : public testing::Test {
protected:
  TempFolder folder;

  TrainOptions options(uint64_t steps) {
    std::vector<uint16_t> tokens(61);
    std::iota(tokens.begin(), tokens.end(), uint16_t(0));
    TrainOptions train;
    train.data = *parseDataSpecs({"ids=tokens(" + folder.writeValues("t.bin", tokens) + ",u16)"});
    train.steps = steps;
    train.schedule = {ScheduleKind::Cosine, 0.5, 0.1, 2, 20};
    train.out = folder.path("run");
    return train;
  }

  /// Lines of run/metrics.jsonl with a loss: their steps.
  std::vector<uint64_t> loggedSteps(const std::string &name = "run/metrics.jsonl") {
    std::vector<uint64_t> steps;
    std::istringstream lines(folder.read(name));
    for (std::string line; std::getline(lines, line);)
      if (auto json = nlohmann::json::parse(line); json.contains("loss"))
        steps.push_back(json["step"]);
    return steps;
  }

  std::string losses() {
    std::string text;
    std::istringstream lines(folder.read("run/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);)
      text += nlohmann::json::parse(line).value("loss", nlohmann::json()).dump() + " ";
    return text;
  }
};

TEST(Schedule, warmupThenCosineThenMinimum) {
  Schedule schedule{ScheduleKind::Cosine, 1.0, 0.2, 4, 14};
  EXPECT_DOUBLE_EQ(learningRateAt(schedule, 0), 0.25);
  EXPECT_DOUBLE_EQ(learningRateAt(schedule, 3), 1.0);
  EXPECT_DOUBLE_EQ(learningRateAt(schedule, 4), 1.0);
  EXPECT_NEAR(learningRateAt(schedule, 9), 0.6, 1e-12);
  EXPECT_DOUBLE_EQ(learningRateAt(schedule, 14), 0.2);
  EXPECT_DOUBLE_EQ(learningRateAt(schedule, 1000), 0.2);
}

TEST(Schedule, linearAndConstant) {
  EXPECT_DOUBLE_EQ(learningRateAt({ScheduleKind::Linear, 1.0, 0.0, 0, 10}, 5), 0.5);
  EXPECT_DOUBLE_EQ(learningRateAt({ScheduleKind::Linear, 1.0, 0.0, 10, 10}, 50), 0.0);
  EXPECT_DOUBLE_EQ(learningRateAt({ScheduleKind::Constant, 0.3, 0.0, 0, 10}, 7), 0.3);
}

// Case 37: the schedule moves once per optimizer step: 8 micro-batches at accumulation 4 are 2 steps.
TEST_F(TrainerTest, scheduleMovesOncePerOptimizerStep) {
  FakeSession session({.accumulates = true, .accumulation = 4});
  TrainOptions train = options(2);
  train.schedule = {ScheduleKind::Linear, 1.0, 0.0, 0, 2};
  TrainReport report;
  ASSERT_OK(runtime::train(session, train, report));
  EXPECT_EQ(session.runs["accumulate"], 8);
  EXPECT_EQ(session.runs["apply"], 2);
  EXPECT_EQ(session.rates, (std::vector<float>{1.0f, 0.5f}));
}

// Case 33: the window's loss is the mean over tokens, not the mean of means. In file order the batches start with ids 0
// and 6, which are their token counts here; the losses are |w0| + sum(id * position), w0 = 0: 70 and 196.
TEST_F(TrainerTest, windowLossIsWeightedByTokens) {
  FakeSession session({.accumulates = true, .accumulation = 3});
  TrainOptions train = options(1);
  train.shuffle = false;
  TrainReport report;
  ASSERT_OK(runtime::train(session, train, report));
  EXPECT_DOUBLE_EQ(report.loss, (0 * 70.0 + 6 * 196.0 + 12 * 322.0) / 18);
}

// Case 35: a window in which nothing counts has loss 0, makes no update, and is counted.
TEST_F(TrainerTest, aFullyMaskedWindowIsSkippedAndCounted) {
  FakeSession session({.accumulates = true, .accumulation = 2});
  TrainOptions train = options(3);
  train.data = *parseDataSpecs({"ids=constant(0)"});
  TrainReport report;
  ASSERT_OK(runtime::train(session, train, report));
  EXPECT_EQ(report.loss, 0.0);
  EXPECT_EQ(report.skippedSteps, 3u);
  EXPECT_THAT(folder.read("run/metrics.jsonl"), testing::HasSubstr("\"counted_tokens\":0.0,\"skipped\":true"));
}

TEST_F(TrainerTest, applysOwnLossWins) {
  FakeSession session({.accumulates = true, .accumulation = 2, .applyReportsLoss = true});
  TrainReport report;
  ASSERT_OK(runtime::train(session, options(1), report));
  EXPECT_EQ(report.loss, 123.0);
}

// Case 38: a batch that straddles the end of the data is still full, and the step count does not change.
TEST_F(TrainerTest, stepCountIsIndependentOfTheDataLength) {
  FakeSession session({.accumulates = true, .accumulation = 3});
  TrainReport report;
  ASSERT_OK(runtime::train(session, options(11), report)); // 66 samples of 20
  EXPECT_EQ(report.steps, 11u);
  EXPECT_EQ(session.runs["accumulate"], 33);
}

TEST_F(TrainerTest, metricsHoldEveryStep) {
  FakeSession session;
  TrainReport report;
  ASSERT_OK(runtime::train(session, options(3), report));
  EXPECT_EQ(loggedSteps(), (std::vector<uint64_t>{1, 2, 3}));
  auto line =
      nlohmann::json::parse(folder.read("run/metrics.jsonl").substr(0, folder.read("run/metrics.jsonl").find('\n')));
  EXPECT_DOUBLE_EQ(line["lr"], 0.25);
  EXPECT_TRUE(line.contains("grad_norm"));
  EXPECT_TRUE(line.contains("counted_tokens"));
  EXPECT_TRUE(line.contains("tokens_per_s"));
  EXPECT_GT(line["peak_bytes"], 0);
}

// Case 47: n steps straight equal k steps, a stop, and n - k more, for every k: all state bitwise, and the metrics.
TEST_F(TrainerTest, resumeIsBitIdentical) {
  FakeSession straight({.accumulates = true, .accumulation = 2});
  TrainOptions train = options(10);
  train.seed = 7;
  TrainReport report;
  ASSERT_OK(runtime::train(straight, train, report));
  std::string wholeLosses = losses();
  for (uint64_t cut = 1; cut < 10; ++cut) {
    FakeSession first({.accumulates = true, .accumulation = 2}), second({.accumulates = true, .accumulation = 2});
    TrainOptions part = train;
    part.steps = cut;
    part.overwrite = true;
    ASSERT_OK(runtime::train(first, part, report));
    part = train;
    part.seed.reset();
    part.resume = "latest";
    ASSERT_OK(runtime::train(second, part, report));
    EXPECT_EQ(second.snapshot(), straight.snapshot()) << "cut at " << cut;
    EXPECT_EQ(losses(), wholeLosses) << "cut at " << cut;
  }
}

// Killed between a checkpoint and later steps: those steps are run again, and logged once.
TEST_F(TrainerTest, stepsAfterTheCheckpointAreLoggedOnce) {
  FakeSession first({.failAtStep = 8});
  TrainOptions train = options(10);
  train.checkpointEvery = 5;
  TrainReport report;
  EXPECT_FAILS(runtime::train(first, train, report), ExitCode::BadInput, "step 8: index 300 out of range");
  EXPECT_EQ(report.steps, 7u);
  EXPECT_EQ(loggedSteps(), (std::vector<uint64_t>{1, 2, 3, 4, 5, 6, 7}));
  FakeSession second;
  train.resume = "latest";
  ASSERT_OK(runtime::train(second, train, report));
  EXPECT_EQ(loggedSteps(), (std::vector<uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST_F(TrainerTest, resumeRefusesADifferentRun) {
  FakeSession session;
  TrainOptions train = options(4);
  train.seed = 1;
  TrainReport report;
  ASSERT_OK(runtime::train(session, train, report));
  train.resume = "latest";
  train.seed = 2;
  EXPECT_FAILS(runtime::train(session, train, report), ExitCode::Usage, "was made with --seed 1, not 2");
  train.seed.reset();
  train.shuffle = false;
  EXPECT_FAILS(runtime::train(session, train, report), ExitCode::Usage, "was made without --no-shuffle");
  train.shuffle = true;
  train.steps = 3;
  EXPECT_FAILS(runtime::train(session, train, report), ExitCode::Usage,
               "is at step 4, beyond --steps 3; raise --steps");
  train.steps = 6;
  folder.writeValues<uint16_t>("t.bin", std::vector<uint16_t>(31));
  EXPECT_FAILS(runtime::train(session, train, report), ExitCode::BadInput,
               "the checkpoint was made with data of 20 samples, this data has 10");
}

TEST_F(TrainerTest, anEarlierRunIsNotReplacedSilently) {
  FakeSession session;
  TrainReport report;
  ASSERT_OK(runtime::train(session, options(2), report));
  EXPECT_FAILS(runtime::train(session, options(2), report), ExitCode::Usage,
               "of an earlier run; continue it with --resume");
  TrainOptions train = options(1);
  train.overwrite = true;
  ASSERT_OK(runtime::train(session, train, report));
  EXPECT_FALSE(std::filesystem::exists(folder.path("run/step-00000002.safetensors")));
  EXPECT_FAILS(prepareRunFolder(folder.path("t.bin"), true), ExitCode::BadInput, "cannot create the folder");
}

TEST_F(TrainerTest, nanStopsAndIsNotSaved) {
  FakeSession session({.nanAtStep = 4});
  TrainOptions train = options(6);
  train.checkpointEvery = 2;
  train.logEvery = 100;
  TrainReport report;
  EXPECT_FAILS(runtime::train(session, train, report), ExitCode::NumericStop, "the loss of step 4 is NaN");
  EXPECT_TRUE(std::filesystem::exists(folder.path("run/step-00000002.safetensors")));
  EXPECT_FALSE(std::filesystem::exists(folder.path("run/step-00000004.safetensors")));
  EXPECT_THAT(folder.read("run/metrics.jsonl"), testing::HasSubstr("\"loss\":null,\"nonfinite\":\"nan\""));
}

TEST_F(TrainerTest, nanMayBeReportedAtTheEnd) {
  FakeSession session({.nanAtStep = 4});
  TrainOptions train = options(6);
  train.onNan = NanPolicy::SkipReport;
  TrainReport report;
  EXPECT_FAILS(runtime::train(session, train, report), ExitCode::NumericStop, "was NaN or infinite in 1 of 6 steps");
  EXPECT_EQ(report.steps, 6u);
}

TEST_F(TrainerTest, aStopRequestFinishesTheStepAndSaves) {
  FakeSession session({.onStep = [](uint64_t steps) { setStopRequested(steps == 3); }});
  TrainReport report;
  Status status = runtime::train(session, options(10), report);
  setStopRequested(false);
  ASSERT_OK(status);
  EXPECT_TRUE(report.interrupted);
  EXPECT_EQ(report.steps, 3u);
  EXPECT_EQ(report.checkpoint, folder.path("run/step-00000003.safetensors"));
}

TEST_F(TrainerTest, measuredAboveThePromiseIsItsOwnExitCode) {
  FakeSession tooBig({.promisedTraining = 4729}); // arena 4096 + runtime 512 + the token file of 122
  TrainReport report;
  EXPECT_FAILS(runtime::train(tooBig, options(1), report), ExitCode::BrokenPromise,
               "training memory of 4,730 bytes exceeds the promise of 4,729 bytes");
  FakeSession process({.promisedTraining = 4730, .promisedConstant = 0});
  TrainOptions train = options(1);
  train.overwrite = true;
  EXPECT_FAILS(runtime::train(process, train, report), ExitCode::BrokenPromise, "process memory of");
  EXPECT_THAT(
      memoryText(report.memory),
      testing::HasSubstr("training memory  promised           4,730 bytes, measured           4,730 bytes (100.0 %)"));
}

TEST_F(TrainerTest, evaluationIsWeightedAndLogged) {
  FakeSession session;
  TrainOptions train = options(4);
  train.evalData = train.data;
  train.evalEvery = 2;
  train.evalBatches = 3;
  TrainReport report;
  ASSERT_OK(runtime::train(session, train, report));
  EXPECT_EQ(session.runs["eval_step"], 6);
  // In file order the batches start with ids 0, 6, 12 (loss) and weigh 1 each (even ids).
  EXPECT_DOUBLE_EQ(*report.evalLoss, 6.0);
  EXPECT_THAT(folder.read("run/metrics.jsonl"),
              testing::HasSubstr("{\"step\":2,\"eval_loss\":6.0,\"eval_batches\":3}"));
}

TEST_F(TrainerTest, artifactsThatCannotTrainAreExplained) {
  FakeSession session({.accumulates = true, .accumulation = 0});
  TrainReport report;
  EXPECT_FAILS(runtime::train(session, options(1), report), ExitCode::BadInput,
               "has accumulation 0, expected a whole number from 1 to 1048576");
  FakeSession other;
  const_cast<artifact::ArtifactT &>(other.artifact())
      .plans[0]
      ->entries.erase(other.artifact().plans[0]->entries.begin());
  EXPECT_FAILS(runtime::train(other, options(1), report), ExitCode::BadInput,
               "it has neither train_step nor accumulate and apply, only eval_step, forward");
}

TEST_F(TrainerTest, missingEvaluationEntryIsNamed) {
  FakeSession session;
  TrainOptions train = options(1);
  train.evalData = train.data;
  const_cast<artifact::ArtifactT &>(session.artifact()).plans[0]->entries[1]->name = "other";
  TrainReport report;
  EXPECT_FAILS(runtime::train(session, train, report), ExitCode::BadInput,
               "has no entry eval_step, it has: train_step, other, forward");
}

TEST_F(TrainerTest, seedVariableOfAnotherTypeIsRefused) {
  FakeSession session;
  const_cast<artifact::ArtifactT &>(session.artifact()).variables[3]->dtype = artifact::DType::F32;
  EXPECT_FAILS(setSeed(session, 1), ExitCode::BadInput, "variable seed is f32 [2], expected i64 [2]");
}

TEST_F(TrainerTest, verifyComparesLosses) {
  std::string text;
  auto same = [](bool) -> Result<std::unique_ptr<Session>> { return std::unique_ptr<Session>(new FakeSession); };
  ASSERT_OK(verifyAgainstReference(same, options(2), 2, text));
  EXPECT_THAT(text, testing::HasSubstr("verify step 2: loss"));
  auto differing = [](bool reference) -> Result<std::unique_ptr<Session>> {
    return std::unique_ptr<Session>(new FakeSession({.nanAtStep = reference ? 2u : 0u}));
  };
  EXPECT_FAILS(verifyAgainstReference(differing, options(2), 2, text), ExitCode::Internal, "step 2: loss");
}

} // namespace
