// metrics.jsonl and the progress texts.
#include "TestSupport.h"
#include "runtime/Tracking/MemoryUse.h"
#include "runtime/Tracking/MetricsLog.h"
#include "runtime/Tracking/Progress.h"

#include <csignal>
#include <limits>
#include <sys/resource.h>

using namespace plimsoll;
using namespace plimsoll::runtime;

namespace {

class MetricsTest : public testing::Test {
protected:
  TempFolder folder;

  /// Resumes a file of `text` at `step` and returns what stays.
  std::string kept(const std::string &text, uint64_t step) {
    std::string path = folder.write("m.jsonl", text);
    auto log = MetricsLog::resume(path, step);
    EXPECT_TRUE(log) << log.status().message();
    return folder.read("m.jsonl");
  }
};

StepMetrics sample() {
  StepMetrics metrics;
  metrics.step = 120;
  metrics.loss = 2.5;
  metrics.learningRate = 0.001;
  metrics.stepsPerSecond = 2.0;
  metrics.samplesPerSecond = 16;
  metrics.peakBytes = 64'300'000;
  metrics.wallSeconds = 60;
  return metrics;
}

TEST_F(MetricsTest, aLineHoldsTheStatedKeysInOrder) {
  StepMetrics metrics = sample();
  EXPECT_EQ(metricsLine(metrics), "{\"step\":120,\"loss\":2.5,\"lr\":0.001,\"samples_per_s\":16.0,\"it_per_s\":2.0,"
                                  "\"peak_bytes\":64300000,\"wall_s\":60.0}");
  metrics.gradNorm = 1.5;
  metrics.countedTokens = 512;
  metrics.tokensPerSecond = 1024;
  metrics.skipped = true;
  EXPECT_EQ(metricsLine(metrics), "{\"step\":120,\"loss\":2.5,\"lr\":0.001,\"grad_norm\":1.5,\"counted_tokens\":512.0,"
                                  "\"skipped\":true,\"tokens_per_s\":1024.0,\"samples_per_s\":16.0,\"it_per_s\":2.0,"
                                  "\"peak_bytes\":64300000,\"wall_s\":60.0}");
  EXPECT_EQ(evaluationLine(3, 1.5, 10), "{\"step\":3,\"eval_loss\":1.5,\"eval_batches\":10}");
}

TEST_F(MetricsTest, nonFiniteNumbersAreNullAndNamed) {
  StepMetrics metrics = sample();
  metrics.loss = std::numeric_limits<double>::infinity();
  EXPECT_THAT(metricsLine(metrics), testing::HasSubstr("\"loss\":null,\"nonfinite\":\"inf\""));
}

TEST_F(MetricsTest, linesAreOnDiskAtOnce) {
  auto log = MetricsLog::create(folder.path("m.jsonl"));
  ASSERT_OK(log);
  ASSERT_OK(log->append("{\"step\":1}"));
  EXPECT_EQ(folder.read("m.jsonl"), "{\"step\":1}\n");
}

TEST_F(MetricsTest, resumeCutsLaterStepsAndTornLines) {
  std::string text = "{\"step\":1}\n{\"step\":2}\n{\"step\":2,\"eval_loss\":1}\n{\"step\":3}\n{\"st";
  EXPECT_EQ(kept(text, 2), "{\"step\":1}\n{\"step\":2}\n{\"step\":2,\"eval_loss\":1}\n");
  EXPECT_EQ(kept(text, 9), "{\"step\":1}\n{\"step\":2}\n{\"step\":2,\"eval_loss\":1}\n{\"step\":3}\n");
  EXPECT_EQ(kept(text, 0), "");
  EXPECT_EQ(kept("", 5), "");
  auto fresh = MetricsLog::resume(folder.path("none.jsonl"), 4);
  ASSERT_OK(fresh);
  ASSERT_OK(fresh->append("{\"step\":5}"));
  EXPECT_EQ(folder.read("none.jsonl"), "{\"step\":5}\n");
}

TEST_F(MetricsTest, foreignFilesAreNotCut) {
  std::string path = folder.write("m.jsonl", "{\"step\":1}\nmy notes\n");
  EXPECT_FAILS(MetricsLog::resume(path, 1), ExitCode::BadInput, "m.jsonl line 2 is not a metrics line");
  EXPECT_EQ(folder.read("m.jsonl"), "{\"step\":1}\nmy notes\n");
}

TEST_F(MetricsTest, unwritableFilesAreExplained) {
  EXPECT_FAILS(MetricsLog::create(folder.path("no/m.jsonl")), ExitCode::BadInput,
               "m.jsonl (No such file or directory); free disk space or choose another --out");
  auto log = MetricsLog::create(folder.path("m.jsonl"));
  ASSERT_OK(log);
  signal(SIGXFSZ, SIG_IGN);
  rlimit old{}, tight{};
  getrlimit(RLIMIT_FSIZE, &old);
  tight = old;
  tight.rlim_cur = 4;
  setrlimit(RLIMIT_FSIZE, &tight);
  Status status = log->append("{\"step\":1}");
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_FAILS(status, ExitCode::BadInput, "cannot write");
}

TEST_F(MetricsTest, progressFitsTheTerminal) {
  StepMetrics metrics = sample();
  EXPECT_EQ(progressLine(metrics, 300, 200),
            "step 120/300 [========>           ]  loss 2.5000  2 it/s  16 samples/s  peak 64.3 MB  ETA 1:30");
  for (unsigned width = 0; width < 120; ++width)
    EXPECT_LE(progressLine(metrics, 300, width).size(), width);
  EXPECT_EQ(progressLine(metrics, 300, 30), "step 120/300  loss 2.5000");
  metrics.tokensPerSecond = 819.2;
  EXPECT_THAT(logLine(metrics, 300), testing::HasSubstr("819 tokens/s"));
  metrics.skipped = true;
  EXPECT_THAT(logLine(metrics, 300), testing::EndsWith("(no update)"));
}

TEST_F(MetricsTest, durationsRead) {
  EXPECT_EQ(durationText(65), "1:05");
  EXPECT_EQ(durationText(3723), "1:02:03");
  EXPECT_EQ(durationText(std::numeric_limits<double>::infinity()), "?");
}

TEST_F(MetricsTest, processPeakIsPlausible) {
  uint64_t peak = processPeakBytes();
  EXPECT_GT(peak, uint64_t(1) << 20);
  EXPECT_LT(peak, uint64_t(1) << 40);
}

} // namespace
