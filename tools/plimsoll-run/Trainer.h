// The training loop: data, steps, metrics, evaluation, checkpoints, and the memory account at the end.
#pragma once

#include "runtime/Data/DataFeed.h"
#include "runtime/Tracking/Progress.h"
#include "tools/plimsoll-run/Evaluate.h"
#include "tools/plimsoll-run/MemoryAccount.h"
#include "tools/plimsoll-run/Schedule.h"
#include "tools/plimsoll-run/StepDriver.h"

#include <optional>
#include <string>
#include <vector>

namespace plimsoll::runtime {

/// What to do when a loss is NaN or infinite.
enum class NanPolicy : uint8_t {
  Stop,       ///< stop at once; the poisoned state is not saved; exit 7
  SkipReport, ///< keep going, report the steps at the end; exit 7 then
};

struct TrainOptions {
  std::vector<DataSpec> data;
  std::vector<DataSpec> evalData; ///< empty = no evaluation
  uint64_t steps = 0;             ///< total optimizer steps of the run, resumed ones included
  Schedule schedule;
  std::optional<uint64_t> seed; ///< default 0; a resumed run keeps the recorded one
  bool shuffle = true;
  std::string weights;     ///< initial weights from a checkpoint or export; empty = the artifact's own
  std::string out;         ///< run folder for metrics and checkpoints; empty = no checkpoints
  std::string metricsPath; ///< metrics file; empty = out/metrics.jsonl
  bool overwrite = false;
  std::string resume;           ///< "latest" or a checkpoint's path; empty = start anew
  uint64_t checkpointEvery = 0; ///< steps; 0 = only at the end
  uint64_t keep = 3;            ///< checkpoints kept; 0 = all
  uint64_t logEvery = 1;        ///< steps between metrics lines
  uint64_t evalEvery = 0;       ///< steps; 0 = only at the end
  uint64_t evalBatches = 0;     ///< 0 = all of the evaluation data
  NanPolicy onNan = NanPolicy::Stop;
  std::string exportWeights; ///< written at the end; empty = not
};

struct TrainReport {
  uint64_t steps = 0;              ///< completed, counted from the start of the run
  double loss = 0;                 ///< of the last step
  std::optional<double> firstLoss; ///< of the first step of this process
  std::optional<double> evalLoss;
  uint64_t skippedSteps = 0;
  uint64_t nonFiniteSteps = 0;
  bool interrupted = false;
  std::string checkpoint; ///< path of the last one written by this process
  double seconds = 0;
  MemoryAccount memory;
};

/// Trains until options.steps. Failure leaves the last checkpoint as it was. The report is filled as far as the run
/// came, also on failure. Fails with Usage, BadInput, NumericStop or BrokenPromise.
Status train(Session &session, const TrainOptions &options, TrainReport &report);

} // namespace plimsoll::runtime
