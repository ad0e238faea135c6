// Liveness from first and last commands: a difference array over the commands, corrected for in-place pairs.
#include "tools/plimsoll-inspect/Analysis.h"

#include "plimsoll/Support/Units.h"
#include "runtime/Artifact/Files.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>

namespace plimsoll::inspect {

using artifact::BufferT;
using artifact::EntryT;
using artifact::SealedPlanT;

namespace {

bool onDevice(const SealedPlanT &plan, uint32_t arena) { return plan.arenas[arena]->tier == artifact::Tier::Device; }

LiveBuffer describe(const BufferT &buffer, bool persistent, uint32_t lastCommand) {
  return {buffer.name,
          buffer.klass,
          buffer.source,
          buffer.arena,
          buffer.offset,
          buffer.bytes,
          persistent,
          persistent ? 0 : buffer.first_command,
          persistent ? lastCommand : buffer.last_command};
}

void countCommands(const EntryT &entry, EntryAnalysis &analysis) {
  analysis.commands = entry.commands.size();
  for (const auto &command : entry.commands)
    switch (command->body.type) {
    case artifact::CommandBody::Launch:
      ++analysis.launches;
      break;
    case artifact::CommandBody::LibraryCall:
      ++analysis.libraryCalls;
      break;
    case artifact::CommandBody::Copy:
      ++analysis.copies;
      break;
    default:
      ++analysis.events;
    }
}

/// Adds the bytes of `live` (sorted by arena and offset) by class; bytes already counted are left out.
void addClasses(const std::vector<LiveBuffer> &live, std::array<uint64_t, classCount> &classes) {
  uint32_t arena = 0;
  uint64_t end = 0;
  for (const LiveBuffer &buffer : live) {
    if (buffer.arena != arena)
      end = 0;
    arena = buffer.arena;
    uint64_t begin = std::max(end, buffer.offset), last = buffer.offset + buffer.bytes;
    if (last > begin)
      classes[static_cast<size_t>(buffer.klass)] += last - begin;
    end = std::max(end, last);
  }
}

} // namespace

const char *className(artifact::BufferClass klass) {
  static const char *const names[classCount] = {"parameter",  "gradient",   "optimizer_state", "model_state",
                                                "step_state", "activation", "workspace",       "input",
                                                "output",     "constant"};
  return names[static_cast<size_t>(klass)];
}

std::vector<LiveBuffer> allBuffers(const SealedPlanT &plan, const EntryT &entry) {
  uint32_t last = entry.commands.empty() ? 0 : static_cast<uint32_t>(entry.commands.size() - 1);
  std::vector<LiveBuffer> buffers;
  for (const auto &buffer : plan.buffers)
    buffers.push_back(describe(*buffer, true, last));
  for (const auto &buffer : entry.buffers)
    buffers.push_back(describe(*buffer, false, last));
  return buffers;
}

std::vector<uint64_t> liveBytes(const SealedPlanT &plan, const EntryT &entry) {
  size_t count = std::max<size_t>(entry.commands.size(), 1);
  std::vector<int64_t> change(count + 1, 0);
  using Place = std::tuple<uint32_t, uint64_t, uint64_t, uint32_t>; // arena, offset, bytes, command
  std::map<Place, int> endings;
  for (const LiveBuffer &buffer : allBuffers(plan, entry)) {
    if (!onDevice(plan, buffer.arena) || buffer.firstCommand >= count)
      continue;
    uint32_t last = std::min<uint32_t>(buffer.lastCommand, static_cast<uint32_t>(count - 1));
    change[buffer.firstCommand] += static_cast<int64_t>(buffer.bytes);
    change[last + 1] -= static_cast<int64_t>(buffer.bytes);
    if (!buffer.persistent)
      ++endings[{buffer.arena, buffer.offset, buffer.bytes, last}];
  }
  // The only overlap the reader allows: a result takes over its operand's bytes at the command that ends the operand.
  for (const LiveBuffer &buffer : allBuffers(plan, entry)) {
    if (buffer.persistent || !onDevice(plan, buffer.arena))
      continue;
    auto pair = endings.find({buffer.arena, buffer.offset, buffer.bytes, buffer.firstCommand});
    bool itself = buffer.firstCommand == buffer.lastCommand;
    if (pair == endings.end() || pair->second <= (itself ? 1 : 0))
      continue;
    --pair->second;
    change[buffer.firstCommand] -= static_cast<int64_t>(buffer.bytes);
    change[buffer.firstCommand + 1] += static_cast<int64_t>(buffer.bytes);
  }
  std::vector<uint64_t> live(count);
  int64_t sum = 0;
  for (size_t i = 0; i < count; ++i)
    live[i] = static_cast<uint64_t>(sum += change[i]);
  return live;
}

EntryAnalysis analyse(const SealedPlanT &plan, const EntryT &entry) {
  EntryAnalysis analysis;
  analysis.name = entry.name;
  countCommands(entry, analysis);
  analysis.peakBytes = entry.peak_bytes;
  std::vector<uint64_t> live = liveBytes(plan, entry);
  size_t peak = static_cast<size_t>(std::max_element(live.begin(), live.end()) - live.begin());
  if (entry.peak_command < live.size() && live[entry.peak_command] == live[peak])
    peak = entry.peak_command;
  analysis.peakCommand = static_cast<uint32_t>(peak);
  analysis.liveBytesAtPeak = live[peak];
  if (peak < entry.commands.size())
    analysis.peakLabel = entry.commands[peak]->label;
  for (LiveBuffer &buffer : allBuffers(plan, entry))
    if (onDevice(plan, buffer.arena) && buffer.firstCommand <= peak && peak <= buffer.lastCommand)
      analysis.liveAtPeak.push_back(std::move(buffer));
  auto byPlace = [](const LiveBuffer &a, const LiveBuffer &b) {
    return std::tie(a.arena, a.offset, a.firstCommand) < std::tie(b.arena, b.offset, b.firstCommand);
  };
  std::stable_sort(analysis.liveAtPeak.begin(), analysis.liveAtPeak.end(), byPlace);
  addClasses(analysis.liveAtPeak, analysis.classesAtPeak);
  std::stable_sort(analysis.liveAtPeak.begin(), analysis.liveAtPeak.end(),
                   [](const LiveBuffer &a, const LiveBuffer &b) { return a.bytes > b.bytes; });
  return analysis;
}

Status checkStatedPeak(const SealedPlanT &plan, const EntryT &entry) {
  std::vector<uint64_t> live = liveBytes(plan, entry);
  uint64_t least = *std::max_element(live.begin(), live.end()), slack = 0;
  for (const LiveBuffer &buffer : allBuffers(plan, entry))
    slack += alignUp(buffer.bytes, plan.arenas[buffer.arena]->alignment) - buffer.bytes;
  if (entry.live_bytes_at_peak >= least && entry.live_bytes_at_peak <= least + slack)
    return Status::ok();
  return badInput(
      fmt::format("entry {} states {} live bytes at its peak, its buffers have {} to {}; compile the artifact "
                  "again",
                  inQuotes(entry.name), groupedDigits(entry.live_bytes_at_peak), groupedDigits(least),
                  groupedDigits(least + slack)));
}

} // namespace plimsoll::inspect
