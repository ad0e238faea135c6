// What a person sees while training: one line redrawn in place on a terminal, plain lines otherwise. Everything goes to
// stderr, so that stdout stays for results.
#pragma once

#include "runtime/Tracking/MetricsLog.h"

#include <chrono>
#include <cstdint>
#include <string>

namespace plimsoll::runtime {

/// The bar's line for `metrics` of a run of `totalSteps`, at most `width` columns wide (parts are dropped from the
/// right before the text is cut). No line end.
std::string progressLine(const StepMetrics &metrics, uint64_t totalSteps, unsigned width);

/// The plain log line of a step.
std::string logLine(const StepMetrics &metrics, uint64_t totalSteps);

/// "1:02:03", "4:05"; "?" when not finite.
std::string durationText(double seconds);

/// Draws progress on stderr. Not thread-safe.
class Progress {
public:
  /// `logEvery`: steps between plain lines when stderr is no terminal; 0 = none.
  Progress(uint64_t totalSteps, uint64_t logEvery);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// Shows a finished step. On a terminal at most ten times a second, and always the last step.
  void step(const StepMetrics &metrics);
  /// Prints a message on its own line, above the bar.
  void note(const std::string &text);
  /// Ends the bar's line, if one is drawn.
  void finish();

private:
  uint64_t totalSteps;
  uint64_t logEvery;
  bool terminal;
  bool drawn = false;
  std::chrono::steady_clock::time_point lastDraw{};
};

} // namespace plimsoll::runtime
