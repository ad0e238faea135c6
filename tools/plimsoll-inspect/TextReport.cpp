// The summary and the command listing for people.
#include "plimsoll/Support/Units.h"
#include "runtime/Artifact/Files.h"
#include "runtime/Artifact/Types.h"
#include "tools/plimsoll-inspect/Reports.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace plimsoll::inspect {

using namespace artifact;

namespace {

/// `text` with control characters escaped, without the quotes of inQuotes.
std::string plain(const std::string &text) {
  std::string quoted = inQuotes(text);
  return quoted.size() >= 2 ? quoted.substr(1, quoted.size() - 2) : quoted;
}

std::string bytesLine(const std::string &name, uint64_t bytes, uint64_t whole) {
  double share = whole ? 100.0 * static_cast<double>(bytes) / static_cast<double>(whole) : 0.0;
  return fmt::format("  {:<20} {:>17} bytes  {:>5.1f} %\n", name, groupedDigits(bytes), share);
}

std::string header(const ArtifactT &artifact, const ReportOptions &options) {
  std::string text = fmt::format("{}: format version {}", plain(options.path), artifact.format_version);
  if (artifact.provenance)
    text += fmt::format(", model {} ({}), compiled by {}", inQuotes(artifact.provenance->model_name),
                        plain(artifact.provenance->model_hash), plain(artifact.provenance->compiler));
  text += "\n";
  if (artifact.target)
    text += fmt::format("target: {} {} {}, {} threads\n", plain(artifact.target->kind), plain(artifact.target->cpu),
                        plain(artifact.target->triple), artifact.target->threads);
  if (!artifact.weights_file.empty())
    text +=
        fmt::format("weights: {} ({} bytes)\n", inQuotes(artifact.weights_file), groupedDigits(artifact.weights_bytes));
  const SealedPlanT &plan = *artifact.plans[options.plan];
  text += fmt::format("plan: {} of {} {}", options.plan, artifact.plans.size(), inQuotes(plan.name));
  for (size_t i = 0; i < plan.dim_names.size() && i < plan.dim_values.size(); ++i)
    text += fmt::format(", {} = {}", plain(plan.dim_names[i]), plan.dim_values[i]);
  if (plan.budget_bytes)
    text += fmt::format(", budget {} bytes", groupedDigits(plan.budget_bytes));
  return text + "\n";
}

std::string promise(const MemoryT &memory) {
  std::string text = "\npromised memory\n";
  text += bytesLine("arenas", memory.arena_bytes, memory.training_bytes);
  text += bytesLine("library", memory.library_bytes, memory.training_bytes);
  text += bytesLine("data staging", memory.staging_bytes, memory.training_bytes);
  text += bytesLine("runtime", memory.runtime_bytes, memory.training_bytes);
  text += fmt::format("  {:<20} {:>17} bytes\n", "training memory", groupedDigits(memory.training_bytes));
  text += fmt::format("  {:<20} {:>17} bytes (training + {} for code, libraries and stacks)\n", "process memory",
                      groupedDigits(memory.training_bytes + memory.process_constant_bytes),
                      groupedDigits(memory.process_constant_bytes));
  return text;
}

std::string largest(const EntryAnalysis &analysis, size_t top) {
  size_t count = std::min(top, analysis.liveAtPeak.size());
  std::string text = fmt::format("  largest of {} live buffers at the peak\n", analysis.liveAtPeak.size());
  for (size_t i = 0; i < count; ++i) {
    const LiveBuffer &buffer = analysis.liveAtPeak[i];
    std::string life =
        buffer.persistent ? std::string("always") : fmt::format("{}..{}", buffer.firstCommand, buffer.lastCommand);
    text += fmt::format("  {:>17} bytes  {:<15} {:<13} {}", groupedDigits(buffer.bytes), className(buffer.klass), life,
                        plain(buffer.name));
    if (!buffer.source.empty() && buffer.source != buffer.name)
      text += fmt::format("  from {}", plain(buffer.source));
    text += "\n";
  }
  return text;
}

std::string entryText(const SealedPlanT &plan, const EntryT &entry, size_t top) {
  EntryAnalysis analysis = analyse(plan, entry);
  std::string text =
      fmt::format("\nentry {}: {} commands ({} kernels, {} library calls, {} copies, {} events)\n", plain(entry.name),
                  analysis.commands, analysis.launches, analysis.libraryCalls, analysis.copies, analysis.events);
  text += fmt::format("  peak {} bytes of arena, {} live at command {}{}\n", groupedDigits(analysis.peakBytes),
                      groupedDigits(analysis.liveBytesAtPeak), analysis.peakCommand,
                      analysis.peakLabel.empty() ? "" : " " + inQuotes(analysis.peakLabel));
  for (size_t i = 0; i < classCount; ++i)
    if (analysis.classesAtPeak[i])
      text += bytesLine(className(static_cast<BufferClass>(i)), analysis.classesAtPeak[i], analysis.liveBytesAtPeak);
  return text + largest(analysis, top);
}

std::string operandText(const SealedPlanT &plan, const EntryT &entry, const ViewUse &use) {
  size_t index = use.view->buffer;
  const BufferT &buffer =
      index < plan.buffers.size() ? *plan.buffers[index] : *entry.buffers[index - plan.buffers.size()];
  const char *access = use.workspace ? "~" : use.access == Access::Read ? "" : use.access == Access::Write ? "=" : "+=";
  return fmt::format("{}{}:{}", access, plain(buffer.name), viewText(*use.view));
}

std::string bodyText(const ArtifactT &artifact, const CommandT &command) {
  switch (command.body.type) {
  case CommandBody::Launch:
    return "kernel " + plain(artifact.kernels[command.body.AsLaunch()->kernel]->name);
  case CommandBody::LibraryCall:
    return "call " + plain(command.body.AsLibraryCall()->op);
  case CommandBody::Copy:
    return "copy";
  case CommandBody::RecordEvent:
    return fmt::format("record event {}", command.body.AsRecordEvent()->event);
  case CommandBody::WaitEvent:
    return fmt::format("wait for event {}", command.body.AsWaitEvent()->event);
  default:
    return "unknown";
  }
}

} // namespace

std::string textSummary(const ArtifactT &artifact, const ReportOptions &options) {
  const SealedPlanT &plan = *artifact.plans[options.plan];
  std::string text = header(artifact, options);
  if (plan.memory)
    text += promise(*plan.memory);
  for (const EntryT *entry : options.entries)
    text += entryText(plan, *entry, options.top);
  return text;
}

std::string commandListing(const ArtifactT &artifact, const ReportOptions &options) {
  const SealedPlanT &plan = *artifact.plans[options.plan];
  std::string text;
  for (const EntryT *entry : options.entries) {
    std::vector<uint64_t> live = liveBytes(plan, *entry);
    text += fmt::format("{}entry {}\n", text.empty() ? "" : "\n", plain(entry->name));
    for (size_t i = 0; i < entry->commands.size(); ++i) {
      const CommandT &command = *entry->commands[i];
      text += fmt::format("{:>6}  stream {}  {:>15} live  {}", i, command.stream, groupedDigits(live[i]),
                          bodyText(artifact, command));
      for (const ViewUse &use : usesOf(command))
        text += "  " + operandText(plan, *entry, use);
      text += command.label.empty() ? "\n" : fmt::format("  {}\n", inQuotes(command.label));
    }
  }
  return text;
}

} // namespace plimsoll::inspect
