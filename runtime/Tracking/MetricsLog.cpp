// Writing, cutting and continuing metrics.jsonl.
#include "runtime/Tracking/MetricsLog.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unistd.h>
#include <utility>

namespace plimsoll::runtime {
namespace {

using Json = nlohmann::ordered_json;

/// Non-finite numbers become null; the first one is named under "nonfinite".
void put(Json &object, const char *key, double value) {
  if (std::isfinite(value)) {
    object[key] = value;
    return;
  }
  object[key] = nullptr;
  object["nonfinite"] = std::isnan(value) ? "nan" : "inf";
}

Status writeFailure(const std::string &path, int error) {
  return badInput(fmt::format("cannot write {} ({}); free disk space or choose another --out", path, strerror(error)));
}

/// Bytes of `text` to keep: whole lines of steps up to `step`. Fails on a finished line that is no metrics line.
Result<size_t> keptBytes(const std::string &path, const std::string &text, uint64_t step) {
  size_t at = 0;
  for (uint64_t number = 1;; ++number) {
    size_t end = text.find('\n', at);
    if (end == std::string::npos)
      return at;
    Json line = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(at),
                            text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (!line.is_object() || !line.contains("step") || !line["step"].is_number_unsigned())
      return badInput(fmt::format("{} line {} is not a metrics line (an object with \"step\"); repair or move the file",
                                  path, number));
    if (line["step"].get<uint64_t>() > step)
      return at;
    at = end + 1;
  }
}

} // namespace

std::string metricsLine(const StepMetrics &metrics) {
  Json line;
  line["step"] = metrics.step;
  put(line, "loss", metrics.loss);
  put(line, "lr", metrics.learningRate);
  if (metrics.gradNorm)
    put(line, "grad_norm", *metrics.gradNorm);
  if (metrics.countedTokens)
    put(line, "counted_tokens", *metrics.countedTokens);
  if (metrics.skipped)
    line["skipped"] = true;
  if (metrics.tokensPerSecond)
    put(line, "tokens_per_s", *metrics.tokensPerSecond);
  put(line, "samples_per_s", metrics.samplesPerSecond);
  put(line, "it_per_s", metrics.stepsPerSecond);
  line["peak_bytes"] = metrics.peakBytes;
  put(line, "wall_s", metrics.wallSeconds);
  return line.dump();
}

std::string evaluationLine(uint64_t step, double loss, uint64_t batches) {
  Json line;
  line["step"] = step;
  put(line, "eval_loss", loss);
  line["eval_batches"] = batches;
  return line.dump();
}

Result<MetricsLog> MetricsLog::create(const std::string &path) {
  int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor < 0)
    return writeFailure(path, errno);
  return MetricsLog(path, descriptor);
}

Result<MetricsLog> MetricsLog::resume(const std::string &path, uint64_t step) {
  std::ostringstream content;
  if (std::ifstream file(path, std::ios::binary); file)
    content << file.rdbuf();
  Result<size_t> kept = keptBytes(path, content.str(), step);
  if (!kept)
    return kept.status();
  int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor < 0)
    return writeFailure(path, errno);
  MetricsLog log(path, descriptor);
  if (*kept < content.str().size() && ftruncate(descriptor, static_cast<off_t>(*kept)) != 0)
    return writeFailure(path, errno);
  return log;
}

MetricsLog::MetricsLog(MetricsLog &&other) noexcept
    : filePath(std::move(other.filePath)), descriptor(std::exchange(other.descriptor, -1)) {}

MetricsLog &MetricsLog::operator=(MetricsLog &&other) noexcept {
  std::swap(filePath, other.filePath);
  std::swap(descriptor, other.descriptor);
  return *this;
}

MetricsLog::~MetricsLog() {
  if (descriptor >= 0)
    close(descriptor);
}

Status MetricsLog::append(std::string_view line) {
  std::string text = fmt::format("{}\n", line);
  std::string_view rest = text;
  while (!rest.empty()) {
    ssize_t written = write(descriptor, rest.data(), rest.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return writeFailure(filePath, errno);
    rest.remove_prefix(static_cast<size_t>(written));
  }
  return Status::ok();
}

} // namespace plimsoll::runtime
