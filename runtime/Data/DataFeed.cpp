// Matching sources to ports, agreeing on the number of samples, and filling batches.
#include "runtime/Data/DataFeed.h"

#include <algorithm>
#include <fmt/format.h>

namespace plimsoll::runtime {
namespace {

std::string portText(const PortInfo &port) {
  return fmt::format("{} ({} {})", port.name, dtypeName(port.dtype), dimsText(port.shape));
}

std::string portList(const std::vector<PortInfo> &ports) {
  std::string text;
  for (const PortInfo &port : ports)
    text += (text.empty() ? "" : ", ") + portText(port);
  return text.empty() ? "none" : text;
}

const DataSpec *findSpec(const std::vector<DataSpec> &specs, const std::string &port) {
  for (const DataSpec &spec : specs)
    if (spec.port == port)
      return &spec;
  return nullptr;
}

/// Every port has a source and every source a port, or one message naming all that do not.
Status checkCoverage(const std::vector<DataSpec> &specs, const std::vector<PortInfo> &ports) {
  std::string missing, unknown;
  for (const PortInfo &port : ports)
    if (!findSpec(specs, port.name))
      missing += (missing.empty() ? "" : ", ") + portText(port);
  for (const DataSpec &spec : specs)
    if (std::none_of(ports.begin(), ports.end(), [&](const PortInfo &port) { return port.name == spec.port; }))
      unknown += (unknown.empty() ? "" : ", ") + spec.port;
  if (!unknown.empty())
    return {ExitCode::Usage, fmt::format("--data feeds {}, which the artifact does not have; its data ports are: {}",
                                         unknown, portList(ports))};
  if (!missing.empty())
    return {ExitCode::Usage, fmt::format("no data for port {}; give each a --data PORT=KIND(PATH,...)", missing)};
  return Status::ok();
}

} // namespace

Result<DataFeed> DataFeed::open(const std::vector<DataSpec> &specs, const std::vector<PortInfo> &ports,
                                const DataFeedOptions &options) {
  if (Status status = checkCoverage(specs, ports); !status)
    return status;
  DataFeed feed;
  feed.options = options;
  for (const PortInfo &port : ports) {
    if (port.elements() == 0)
      return Status(ExitCode::Unsupported,
                    fmt::format("port {} holds no elements; compile with sizes above 0", portText(port)));
    auto source = openSource(*findSpec(specs, port.name), port);
    if (!source)
      return source.status();
    uint64_t bytes = port.elements() * dtypeBytes(port.dtype);
    if ((*source)->unit() == SourceUnit::Sample)
      bytes /= static_cast<uint64_t>(port.shape[0]);
    feed.feeds.push_back({std::move(*source), port, bytes});
  }
  if (Status status = feed.agree(specs); !status)
    return status;
  auto mapped = static_cast<uint64_t>(std::count_if(feed.feeds.begin(), feed.feeds.end(),
                                                    [](const Feed &each) { return each.source->residentBytes() > 0; }));
  for (Feed &each : feed.feeds)
    each.source->useWindow(options.residentLimit / std::max<uint64_t>(mapped, 1));
  if (feed.sampleCount > 0 && feed.options.shuffle)
    feed.order.emplace(feed.sampleCount, options.seed, 0);
  return feed;
}

/// Decides unit, batch and number of samples. Token sources over one file may differ by their shifts; the smallest
/// count holds for all of them.
Status DataFeed::agree(const std::vector<DataSpec> &specs) {
  const Feed *first = nullptr;
  for (Feed &feed : feeds) {
    Source &source = *feed.source;
    if (source.unit() == SourceUnit::Constant)
      continue;
    if (!first) {
      first = &feed;
      sampleCount = source.count();
      batchSamples = source.unit() == SourceUnit::Batch ? 1 : static_cast<uint64_t>(feed.port.shape[0]);
      continue;
    }
    std::string pair = fmt::format("{} and {}", describe(*findSpec(specs, first->port.name)),
                                   describe(*findSpec(specs, feed.port.name)));
    if (source.unit() != first->source->unit())
      return badInput(
          fmt::format("{}: one holds whole batches (key with {{i}}), the other samples; use one form for all "
                      "ports",
                      pair));
    if (source.unit() == SourceUnit::Sample && static_cast<uint64_t>(feed.port.shape[0]) != batchSamples)
      return badInput(fmt::format("{}: ports {} and {} differ in their first dimension, expected one batch size", pair,
                                  portText(first->port), portText(feed.port)));
    bool shared = first->source->sharedFile() && source.sharedFile() &&
                  first->source->sharedFile()->sameFile(*source.sharedFile());
    if (source.count() != sampleCount && !shared)
      return badInput(fmt::format("{}: {} and {} samples, expected equally many", pair, sampleCount, source.count()));
    sampleCount = std::min(sampleCount, source.count());
  }
  if (first && first->source->unit() == SourceUnit::Batch)
    options.shuffle = false;
  if (first && sampleCount < batchSamples)
    return badInput(
        fmt::format("{}: {} samples are fewer than one batch of {}; give more data or compile with a smaller "
                    "batch",
                    describe(*findSpec(specs, first->port.name)), sampleCount, batchSamples));
  return Status::ok();
}

uint64_t DataFeed::batchesPerEpoch() const { return sampleCount ? sampleCount / batchSamples : 1; }

Status DataFeed::seek(const DataCursor &cursor) {
  if (sampleCount > 0 && cursor.position >= sampleCount)
    return badInput(
        fmt::format("the data cursor is at sample {} of epoch {}, but the data holds {} samples; resume with "
                    "the data the checkpoint was made with",
                    cursor.position, cursor.epoch, sampleCount));
  at = cursor;
  if (order)
    order.emplace(sampleCount, options.seed, at.epoch);
  return Status::ok();
}

uint64_t DataFeed::stagingBytes() const {
  uint64_t bytes = 0;
  for (const Feed &feed : feeds)
    bytes += feed.source->residentBytes();
  return bytes;
}

Status DataFeed::readSample(uint64_t position, uint64_t row, std::span<const std::span<std::byte>> targets) {
  uint64_t index = order ? (*order)(position) : position;
  for (size_t i = 0; i < feeds.size(); ++i) {
    Feed &feed = feeds[i];
    if (feed.source->unit() == SourceUnit::Constant)
      continue;
    if (Status status = feed.source->read(index, targets[i].data() + row * feed.rowBytes); !status)
      return status;
  }
  return Status::ok();
}

Status DataFeed::next(std::span<const std::span<std::byte>> targets) {
  DataCursor cursor = at;
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (Status status = feeds[i].source->checkUnchanged(); !status)
      return status;
    if (feeds[i].source->unit() == SourceUnit::Constant)
      if (Status status = feeds[i].source->read(0, targets[i].data()); !status)
        return status;
  }
  for (uint64_t row = 0; sampleCount > 0 && row < batchSamples; ++row) {
    if (Status status = readSample(cursor.position, row, targets); !status) {
      if (order)
        order.emplace(sampleCount, options.seed, at.epoch);
      return status;
    }
    if (++cursor.position < sampleCount)
      continue;
    cursor = {cursor.epoch + 1, 0};
    if (order)
      order.emplace(sampleCount, options.seed, cursor.epoch);
  }
  at = cursor;
  return Status::ok();
}

} // namespace plimsoll::runtime
