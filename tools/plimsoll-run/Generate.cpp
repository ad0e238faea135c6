// The generate command: find the ports, slide the window, sample.
#include "tools/plimsoll-run/Generate.h"

#include "runtime/Data/Shuffle.h"
#include "tools/plimsoll-run/EntryPorts.h"
#include "tools/plimsoll-run/RunState.h"
#include "tools/plimsoll-run/StopSignal.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

namespace plimsoll::runtime {
namespace {

/// The language model's two ports, resolved.
struct Model {
  EntryPorts entry;
  size_t idsIndex = 0;
  PortInfo ids;
  PortInfo logits;
  std::span<const std::byte> logitsBytes;
  uint64_t window() const { return static_cast<uint64_t>(ids.shape[1]); }
  uint64_t vocabulary() const { return static_cast<uint64_t>(logits.shape[2]); }
};

Status noPort(const GenerateOptions &options, const char *what, const std::string &wanted) {
  return badInput(fmt::format("entry {} has no {}{}; generate needs a language model compiled with ids [B, S] in and "
                              "logits [B, S, V] out",
                              options.entry, what, wanted.empty() ? "" : " called " + wanted));
}

/// The port to use: the one called `wanted`, else the one called `usual`, else the only one that `fits`.
template <typename Fits>
const PortInfo *choosePort(const std::vector<PortInfo> &ports, const std::string &wanted, const char *usual,
                           Fits fits) {
  const PortInfo *only = nullptr;
  size_t count = 0;
  for (const PortInfo &port : ports) {
    if (!fits(port))
      continue;
    if (port.name == (wanted.empty() ? usual : wanted))
      return &port;
    only = &port;
    ++count;
  }
  return wanted.empty() && count == 1 ? only : nullptr;
}

Result<Model> bindModel(Session &session, const GenerateOptions &options) {
  Result<EntryPorts> entry = EntryPorts::bind(session, options.entry);
  if (!entry)
    return entry.status();
  Model model{std::move(*entry), 0, {}, {}, {}};
  const PortInfo *ids = choosePort(model.entry.dataPorts(), options.idsPort, "ids", [](const PortInfo &port) {
    return port.shape.size() == 2 && !isFloat(port.dtype) && port.elements() > 0;
  });
  if (!ids)
    return noPort(options, "integer input [B, S]", options.idsPort);
  model.ids = *ids;
  model.idsIndex = static_cast<size_t>(ids - model.entry.dataPorts().data());
  std::vector<PortInfo> outputs;
  for (const auto &port : session.entry(options.entry)->outputs)
    outputs.push_back(portInfo(*port));
  const PortInfo *logits = choosePort(outputs, options.logitsPort, "logits", [&](const PortInfo &port) {
    return port.shape.size() == 3 && isFloat(port.dtype) && port.shape[0] == ids->shape[0] &&
           port.shape[1] == ids->shape[1] && port.shape[2] > 0;
  });
  if (!logits)
    return noPort(options, "float output [B, S, V]", options.logitsPort);
  model.logits = *logits;
  auto bytes = session.output(options.entry, logits->name);
  if (!bytes)
    return bytes.status();
  model.logitsBytes = *bytes;
  return model;
}

/// The inputs other than ids; they are the same for every token.
struct OtherInputs {
  std::vector<PortInfo> ports;
  std::vector<std::span<std::byte>> targets;
  std::optional<DataFeed> feed;

  Status open(const Session &session, const GenerateOptions &options, const Model &model) {
    for (size_t i = 0; i < model.entry.dataPorts().size(); ++i) {
      if (i == model.idsIndex)
        continue;
      ports.push_back(model.entry.dataPorts()[i]);
      targets.push_back(model.entry.dataTargets()[i]);
    }
    auto opened = openFeed(session, options.data, ports, 0, false);
    if (!opened)
      return opened.status();
    feed.emplace(std::move(*opened));
    return Status::ok();
  }
  Status write() {
    if (Status status = feed->seek({}); !status)
      return status;
    return feed->next(targets);
  }
};

/// Writes the last tokens to row 0 of ids and zeros elsewhere. Returns how many were written.
uint64_t writeWindow(const Model &model, const std::vector<int64_t> &tokens) {
  std::span<std::byte> target = model.entry.dataTargets()[model.idsIndex];
  std::fill(target.begin(), target.end(), std::byte{0});
  uint64_t count = std::min<uint64_t>(tokens.size(), model.window());
  size_t width = dtypeBytes(model.ids.dtype);
  for (uint64_t i = 0; i < count; ++i)
    writeScalar(model.ids.dtype, static_cast<double>(tokens[tokens.size() - count + i]), target.data() + i * width);
  return count;
}

Status readLogits(const Model &model, uint64_t position, std::vector<double> &logits) {
  size_t width = dtypeBytes(model.logits.dtype);
  const std::byte *row = model.logitsBytes.data() + position * model.vocabulary() * width;
  bool any = false;
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = readScalar(model.logits.dtype, row + i * width);
    if (std::isnan(logits[i]) || logits[i] == HUGE_VAL)
      return {ExitCode::NumericStop,
              fmt::format("logit {} of position {} is {}; the weights are not usable", i, position, logits[i])};
    any |= std::isfinite(logits[i]);
  }
  return any ? Status::ok() : Status(ExitCode::NumericStop, "all logits are -inf; the weights are not usable");
}

Status checkPrompt(const GenerateOptions &options, const Model &model) {
  if (options.prompt.empty())
    return {ExitCode::Usage, "the prompt is empty; give --prompt or --prompt-tokens"};
  for (int64_t token : options.prompt)
    if (token < 0 || static_cast<uint64_t>(token) >= model.vocabulary())
      return {ExitCode::Usage,
              fmt::format("prompt token {} is outside the vocabulary of {}", token, model.vocabulary())};
  return Status::ok();
}

} // namespace

size_t sampleToken(const std::vector<double> &logits, double temperature, uint64_t topK, double uniform) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t(0));
  auto likelier = [&](size_t a, size_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; };
  size_t keep = topK ? std::min<size_t>(topK, order.size()) : order.size();
  if (temperature <= 0)
    keep = 1;
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(keep), order.end(), likelier);
  if (keep == 1)
    return order[0];
  std::vector<double> weights(keep);
  double total = 0;
  for (size_t i = 0; i < keep; ++i)
    total += weights[i] = std::exp((logits[order[i]] - logits[order[0]]) / temperature);
  double target = uniform * total;
  for (size_t i = 0; i < keep; ++i)
    if ((target -= weights[i]) < 0)
      return order[i];
  return order[0];
}

Status generate(Session &session, const GenerateOptions &options, const std::function<void(int64_t)> &emit) {
  Result<Model> model = bindModel(session, options);
  if (!model)
    return model.status();
  if (Status status = checkPrompt(options, *model); !status)
    return status;
  OtherInputs others;
  if (Status status = others.open(session, options, *model); !status)
    return status;
  std::vector<int64_t> tokens = options.prompt;
  std::vector<double> logits(model->vocabulary());
  for (uint64_t made = 0; made < options.tokens && !stopRequested(); ++made) {
    // Input buffers may be reused inside a run, so every input is written again before the next one.
    if (Status status = others.write(); !status)
      return status;
    uint64_t count = writeWindow(*model, tokens);
    if (Status status = session.run(options.entry); !status)
      return status;
    if (Status status = readLogits(*model, count - 1, logits); !status)
      return status;
    double uniform = static_cast<double>(mixBits(mixBits(options.seed) + made) >> 11) * 0x1.0p-53;
    auto token = static_cast<int64_t>(sampleToken(logits, options.temperature, options.topK, uniform));
    tokens.push_back(token);
    emit(token);
  }
  return Status::ok();
}

} // namespace plimsoll::runtime
