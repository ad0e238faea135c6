// metrics.jsonl: one JSON object per logged step, one per line, flushed as it is written, so that the file is complete
// up to the last step whatever ends the process. A resumed run continues the same file: lines of steps that will be
// run again are cut off first, so no step appears twice.
#pragma once

#include "plimsoll/Support/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plimsoll::runtime {

/// What one training step reports. Steps are counted from 1: step n is the n-th optimizer step of the run.
struct StepMetrics {
  uint64_t step = 0;
  double loss = 0;
  double learningRate = 0;
  std::optional<double> gradNorm;      ///< global gradient norm, when the artifact has that output
  std::optional<double> countedTokens; ///< labels that counted in the loss, when the artifact has that output
  std::optional<double> tokensPerSecond;
  double samplesPerSecond = 0;
  double stepsPerSecond = 0;
  bool skipped = false;   ///< the step made no update (nothing to learn from, or overflow)
  uint64_t peakBytes = 0; ///< process high-water mark (VmHWM)
  double wallSeconds = 0; ///< since this process started training
};

/// The JSON text of one line, keys in a fixed order, no line end. A NaN or infinite number is written as null, and the
/// key "nonfinite" then holds "nan" or "inf".
std::string metricsLine(const StepMetrics &metrics);

/// The JSON text of an evaluation: {"step": n, "eval_loss": x, "eval_batches": b}.
std::string evaluationLine(uint64_t step, double loss, uint64_t batches);

/// An open metrics file. Movable, closes on destruction.
class MetricsLog {
public:
  /// Starts an empty file (an existing one is replaced). Fails with BadInput when it cannot be written.
  static Result<MetricsLog> create(const std::string &path);

  /// Continues `path` after `step`: cuts it at the first line of a later step and drops an unfinished last line; makes
  /// the file when it is missing. Fails with BadInput when a finished line is not a JSON object with a "step".
  static Result<MetricsLog> resume(const std::string &path, uint64_t step);

  MetricsLog(MetricsLog &&other) noexcept;
  MetricsLog &operator=(MetricsLog &&other) noexcept;
  ~MetricsLog();

  /// Appends one line and hands it to the system in one write. A full disk is BadInput; the run's state is unharmed.
  Status append(std::string_view line);

private:
  MetricsLog(std::string path, int opened) : filePath(std::move(path)), descriptor(opened) {}
  std::string filePath;
  int descriptor = -1;
};

} // namespace plimsoll::runtime
