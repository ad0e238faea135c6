// The training loop, one method a stage: prepare, resume or start, step, log, evaluate, save, close the account.
#include "tools/plimsoll-run/Trainer.h"

#include "runtime/Checkpoint/CheckpointFolder.h"
#include "runtime/Tracking/MemoryUse.h"
#include "tools/plimsoll-run/RunState.h"
#include "tools/plimsoll-run/StopSignal.h"

#include <chrono>
#include <cmath>
#include <fmt/format.h>

namespace plimsoll::runtime {
namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

class Trainer {
public:
  Trainer(Session &trained, const TrainOptions &trainOptions, TrainReport &trainReport)
      : session(trained), options(trainOptions), report(trainReport), progress(options.steps, options.logEvery),
        folder(options.out, options.keep) {}

  Status run() {
    if (Status status = prepare(); !status)
      return status;
    started = lastLog = Clock::now();
    Status status = loop();
    report.steps = completed;
    report.seconds = secondsSince(started);
    progress.finish();
    return status ? close() : status;
  }

private:
  Status prepare();
  Status startOrResume();
  Status restore();
  Status openMetrics();
  Status openEvaluation();
  Status loop();
  Status oneStep();
  Status checkLoss(double loss);
  Status log(const StepResult &result, double learningRate);
  Status evaluateNow();
  Status save();
  Status close();
  bool due(uint64_t every) const { return every != 0 && completed % every == 0; }

  Session &session;
  const TrainOptions &options;
  TrainReport &report;
  Progress progress;
  CheckpointFolder folder;
  std::optional<StepDriver> driver;
  std::optional<DataFeed> feed;
  std::optional<EntryPorts> evalEntry;
  std::optional<DataFeed> evalFeed;
  std::optional<MetricsLog> metrics;
  uint64_t seed = 0;
  uint64_t tokensPerStep = 0; ///< tokens fed per step by token sources; 0 = none
  uint64_t completed = 0;
  uint64_t savedStep = UINT64_MAX;
  uint64_t evaluatedStep = UINT64_MAX;
  uint64_t stepsSinceLog = 0;
  Clock::time_point started, lastLog;
};

/// Tokens one batch takes from its first token source; labels are not counted again.
uint64_t tokensOf(const std::vector<DataSpec> &specs, const std::vector<PortInfo> &ports) {
  for (const PortInfo &port : ports)
    for (const DataSpec &spec : specs)
      if (spec.port == port.name && spec.kind == "tokens")
        return port.elements();
  return 0;
}

Status Trainer::prepare() {
  Result<StepDriver> bound = StepDriver::bind(session);
  if (!bound)
    return bound.status();
  driver.emplace(std::move(*bound));
  tokensPerStep = tokensOf(options.data, driver->dataPorts()) * driver->microBatches();
  if (Status status = startOrResume(); !status)
    return status;
  if (Status status = openEvaluation(); !status)
    return status;
  return openMetrics();
}

Status Trainer::startOrResume() {
  seed = options.seed.value_or(0);
  if (!options.resume.empty())
    return restore();
  auto opened =
      openFeed(session, options.data, driver->dataPorts(), seed, options.shuffle, options.evalData.empty() ? 1 : 2);
  if (!opened)
    return opened.status();
  feed.emplace(std::move(*opened));
  if (Status status = initializeState(session, options.weights); !status)
    return status;
  return setSeed(session, seed);
}

Status Trainer::restore() {
  Result<std::string> path = folder.resolve(options.resume);
  if (!path)
    return path.status();
  Result<CheckpointInfo> info = loadCheckpoint(*path, session);
  if (!info)
    return info.status();
  if (options.seed && *options.seed != info->seed)
    return {ExitCode::Usage, fmt::format("{} was made with --seed {}, not {}; leave --seed out when resuming", *path,
                                         info->seed, *options.seed)};
  if (options.shuffle != info->shuffle)
    return {ExitCode::Usage,
            fmt::format("{} was made {} --no-shuffle; resume the same way", *path, info->shuffle ? "without" : "with")};
  if (info->step > options.steps)
    return {ExitCode::Usage,
            fmt::format("{} is at step {}, beyond --steps {}; raise --steps", *path, info->step, options.steps)};
  seed = info->seed;
  auto opened =
      openFeed(session, options.data, driver->dataPorts(), seed, options.shuffle, options.evalData.empty() ? 1 : 2);
  if (!opened)
    return opened.status();
  feed.emplace(std::move(*opened));
  if (Status status = checkSameData(*info, *feed); !status)
    return status;
  completed = savedStep = info->step;
  if (completed == options.steps)
    evaluatedStep = completed; // nothing is left to train, so nothing new to evaluate
  progress.note(fmt::format("resumed {} at step {}", *path, completed));
  return feed->seek({info->epoch, info->position});
}

/// The last stage of preparation: only now, with everything else in order, an earlier run may be replaced.
Status Trainer::openMetrics() {
  if (!options.out.empty() && options.resume.empty())
    if (Status status = prepareRunFolder(options.out, options.overwrite); !status)
      return status;
  std::string path = options.metricsPath.empty() ? options.out + "/metrics.jsonl" : options.metricsPath;
  Result<MetricsLog> opened = completed ? MetricsLog::resume(path, completed) : MetricsLog::create(path);
  if (!opened)
    return opened.status();
  metrics.emplace(std::move(*opened));
  return Status::ok();
}

Status Trainer::openEvaluation() {
  if (options.evalData.empty())
    return Status::ok();
  Result<EntryPorts> entry = EntryPorts::bind(session, "eval_step");
  if (!entry)
    return entry.status();
  evalEntry.emplace(std::move(*entry));
  auto opened = openFeed(session, options.evalData, evalEntry->dataPorts(), seed, false, 2);
  if (!opened)
    return opened.status();
  evalFeed.emplace(std::move(*opened));
  return Status::ok();
}

Status Trainer::loop() {
  while (completed < options.steps && !stopRequested()) {
    if (Status status = oneStep(); !status)
      return status;
    if (due(options.evalEvery))
      if (Status status = evaluateNow(); !status)
        return status;
    if (due(options.checkpointEvery))
      if (Status status = save(); !status)
        return status;
  }
  report.interrupted = completed < options.steps;
  if (!report.interrupted)
    if (Status status = evaluateNow(); !status)
      return status;
  return save();
}

Status Trainer::oneStep() {
  double learningRate = learningRateAt(options.schedule, completed);
  StepResult result;
  if (Status status = driver->run(session, *feed, learningRate, result); !status)
    return {status.code(), fmt::format("step {}: {}", completed + 1, status.message())};
  ++completed;
  ++stepsSinceLog;
  report.loss = result.loss;
  if (!report.firstLoss)
    report.firstLoss = result.loss;
  report.skippedSteps += result.skipped;
  Status finite = checkLoss(result.loss);
  if (!finite || completed == options.steps || completed % std::max<uint64_t>(options.logEvery, 1) == 0)
    if (Status status = log(result, learningRate); !status)
      return status;
  return finite;
}

Status Trainer::checkLoss(double loss) {
  if (std::isfinite(loss))
    return Status::ok();
  ++report.nonFiniteSteps;
  if (options.onNan == NanPolicy::SkipReport)
    return Status::ok();
  return {ExitCode::NumericStop,
          fmt::format("the loss of step {} is {}; this step is not saved, the last checkpoint is {}; lower --lr or add "
                      "gradient clipping, or go on with --on-nan skip-report",
                      completed, std::isnan(loss) ? "NaN" : "infinite",
                      report.checkpoint.empty() ? "none of this process" : report.checkpoint)};
}

Status Trainer::log(const StepResult &result, double learningRate) {
  StepMetrics line;
  Clock::time_point now = Clock::now();
  double seconds = std::max(1e-9, std::chrono::duration<double>(now - lastLog).count());
  line.step = completed;
  line.loss = result.loss;
  line.learningRate = learningRate;
  line.gradNorm = result.gradNorm;
  line.countedTokens = result.countedTokens;
  line.skipped = result.skipped;
  line.stepsPerSecond = static_cast<double>(stepsSinceLog) / seconds;
  line.samplesPerSecond = line.stepsPerSecond * static_cast<double>(driver->samplesPerStep());
  if (tokensPerStep)
    line.tokensPerSecond = line.stepsPerSecond * static_cast<double>(tokensPerStep);
  line.peakBytes = processPeakBytes();
  line.wallSeconds = secondsSince(started);
  lastLog = now;
  stepsSinceLog = 0;
  progress.step(line);
  return metrics->append(metricsLine(line));
}

Status Trainer::evaluateNow() {
  if (!evalFeed || evaluatedStep == completed)
    return Status::ok();
  evaluatedStep = completed;
  Result<Evaluation> result = evaluate(session, *evalEntry, *evalFeed, options.evalBatches);
  if (!result)
    return result.status();
  if (stopRequested()) // a part of the evaluation says nothing
    return Status::ok();
  report.evalLoss = result->loss;
  progress.note(fmt::format("step {}: eval loss {:.4f} over {} batches", completed, result->loss, result->batches));
  lastLog = Clock::now(); // evaluation time is not training time
  return metrics->append(evaluationLine(completed, result->loss, result->batches));
}

Status Trainer::save() {
  if (options.out.empty() || savedStep == completed)
    return Status::ok();
  CheckpointInfo info;
  info.step = completed;
  info.seed = seed;
  info.shuffle = options.shuffle;
  info.epoch = feed->cursor().epoch;
  info.position = feed->cursor().position;
  info.samples = feed->samples();
  Result<std::string> path = folder.save(session, info);
  if (!path)
    return path.status();
  report.checkpoint = *path;
  savedStep = completed;
  return Status::ok();
}

Status Trainer::close() {
  uint64_t staging = feed->stagingBytes() + (evalFeed ? evalFeed->stagingBytes() : 0);
  report.memory = accountMemory(session, staging, processPeakBytes());
  if (!options.exportWeights.empty())
    if (Status status = exportWeights(options.exportWeights, session); !status)
      return status;
  if (report.nonFiniteSteps)
    return {ExitCode::NumericStop,
            fmt::format("the loss was NaN or infinite in {} of {} steps; lower --lr or add gradient "
                        "clipping",
                        report.nonFiniteSteps, completed)};
  return checkMemory(report.memory);
}

} // namespace

Status train(Session &session, const TrainOptions &options, TrainReport &report) {
  if (options.out.empty() && options.metricsPath.empty())
    return internalError("train needs a metrics path when there is no run folder");
  return Trainer(session, options, report).run();
}

} // namespace plimsoll::runtime
