// The progress bar and the plain log lines.
#include "runtime/Tracking/Progress.h"

#include "plimsoll/Support/Units.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vector>

namespace plimsoll::runtime {
namespace {

unsigned terminalWidth() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  return 80;
}

std::string bar(uint64_t step, uint64_t total) {
  constexpr uint64_t cells = 20;
  uint64_t filled = total ? std::min(cells, cells * step / total) : 0;
  std::string text(filled, '=');
  if (filled < cells)
    text += '>';
  text.resize(cells, ' ');
  return text;
}

double secondsLeft(const StepMetrics &metrics, uint64_t total) {
  double left = total > metrics.step ? static_cast<double>(total - metrics.step) : 0.0;
  return left / metrics.stepsPerSecond;
}

/// Parts after the step counter, most important first.
std::vector<std::string> parts(const StepMetrics &metrics, uint64_t total) {
  std::vector<std::string> list;
  list.push_back(fmt::format("loss {:.4f}", metrics.loss));
  list.push_back(fmt::format("{:.3g} it/s", metrics.stepsPerSecond));
  if (metrics.tokensPerSecond)
    list.push_back(fmt::format("{:.0f} tokens/s", *metrics.tokensPerSecond));
  else
    list.push_back(fmt::format("{:.0f} samples/s", metrics.samplesPerSecond));
  list.push_back("peak " + humanBytes(metrics.peakBytes));
  list.push_back("ETA " + durationText(secondsLeft(metrics, total)));
  return list;
}

} // namespace

std::string durationText(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9)
    return "?";
  auto whole = static_cast<uint64_t>(std::llround(seconds));
  uint64_t hours = whole / 3600, minutes = whole / 60 % 60;
  return hours ? fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60)
               : fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string progressLine(const StepMetrics &metrics, uint64_t totalSteps, unsigned width) {
  std::string text = fmt::format("step {}/{}", metrics.step, totalSteps);
  std::string withBar = fmt::format("{} [{}]", text, bar(metrics.step, totalSteps));
  std::vector<std::string> list = parts(metrics, totalSteps);
  size_t all = withBar.size();
  for (const std::string &part : list)
    all += 2 + part.size();
  if (all <= width)
    text = withBar;
  for (const std::string &part : list)
    if (text.size() + 2 + part.size() <= width)
      text += "  " + part;
    else
      break;
  return text.substr(0, width);
}

std::string logLine(const StepMetrics &metrics, uint64_t totalSteps) {
  std::string text = fmt::format("step {}/{}", metrics.step, totalSteps);
  for (const std::string &part : parts(metrics, totalSteps))
    text += "  " + part;
  if (metrics.skipped)
    text += "  (no update)";
  return text;
}

Progress::Progress(uint64_t total, uint64_t every)
    : totalSteps(total), logEvery(every), terminal(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() { finish(); }

void Progress::step(const StepMetrics &metrics) {
  if (!terminal) {
    if (logEvery && (metrics.step % logEvery == 0 || metrics.step == 1 || metrics.step == totalSteps))
      fprintf(stderr, "%s\n", logLine(metrics, totalSteps).c_str());
    return;
  }
  auto now = std::chrono::steady_clock::now();
  if (drawn && metrics.step != totalSteps && now - lastDraw < std::chrono::milliseconds(100))
    return;
  lastDraw = now;
  drawn = true;
  fprintf(stderr, "\r\033[K%s", progressLine(metrics, totalSteps, terminalWidth() - 1).c_str());
  fflush(stderr);
}

void Progress::note(const std::string &text) {
  if (drawn)
    fprintf(stderr, "\r\033[K");
  drawn = false;
  fprintf(stderr, "%s\n", text.c_str());
}

void Progress::finish() {
  if (drawn)
    fprintf(stderr, "\n");
  drawn = false;
}

} // namespace plimsoll::runtime
