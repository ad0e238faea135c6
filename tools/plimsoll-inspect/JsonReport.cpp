// The summary for machines. Keys are only ever added; a change of meaning raises "schema".
#include "runtime/Artifact/Types.h"
#include "tools/plimsoll-inspect/Reports.h"

#include <nlohmann/json.hpp>

namespace plimsoll::inspect {

using namespace artifact;

namespace {

using Json = nlohmann::ordered_json;

Json memoryJson(const MemoryT &memory) {
  return {{"arena_bytes", memory.arena_bytes},
          {"library_bytes", memory.library_bytes},
          {"staging_bytes", memory.staging_bytes},
          {"runtime_bytes", memory.runtime_bytes},
          {"training_bytes", memory.training_bytes},
          {"process_constant_bytes", memory.process_constant_bytes},
          {"process_bytes", memory.training_bytes + memory.process_constant_bytes}};
}

const char *tierName(Tier tier) { return tier == Tier::Device ? "device" : tier == Tier::Host ? "host" : "disk"; }

const char *kindName(VariableKind kind) {
  static const char *const names[] = {"parameter",  "optimizer_state",      "model_state",
                                      "step_state", "gradient_accumulator", "constant"};
  return names[static_cast<size_t>(kind)];
}

Json arenasJson(const SealedPlanT &plan) {
  Json list = Json::array();
  for (const auto &arena : plan.arenas)
    list.push_back({{"device", arena->device},
                    {"tier", tierName(arena->tier)},
                    {"bytes", arena->bytes},
                    {"alignment", arena->alignment}});
  return list;
}

Json variablesJson(const ArtifactT &artifact) {
  Json list = Json::array();
  for (const auto &variable : artifact.variables)
    list.push_back({{"name", variable->name},
                    {"kind", kindName(variable->kind)},
                    {"dtype", dtypeName(variable->dtype)},
                    {"shape", variable->shape},
                    {"bytes", byteCount(variable->dtype, variable->shape).value_or(0)},
                    {"trainable", variable->trainable},
                    {"aliases", variable->aliases},
                    {"owner", variable->owner}});
  return list;
}

Json portsJson(const std::vector<std::unique_ptr<PortT>> &ports) {
  Json list = Json::array();
  for (const auto &port : ports)
    list.push_back({{"name", port->name}, {"dtype", dtypeName(port->view->dtype)}, {"shape", port->view->shape}});
  return list;
}

Json bufferJson(const LiveBuffer &buffer) {
  return {{"name", buffer.name},
          {"class", className(buffer.klass)},
          {"source", buffer.source},
          {"arena", buffer.arena},
          {"offset", buffer.offset},
          {"bytes", buffer.bytes},
          {"persistent", buffer.persistent},
          {"first_command", buffer.firstCommand},
          {"last_command", buffer.lastCommand}};
}

Json entryJson(const SealedPlanT &plan, const EntryT &entry) {
  EntryAnalysis analysis = analyse(plan, entry);
  Json json = {{"name", entry.name},
               {"inputs", portsJson(entry.inputs)},
               {"outputs", portsJson(entry.outputs)},
               {"commands", analysis.commands},
               {"launches", analysis.launches},
               {"library_calls", analysis.libraryCalls},
               {"copies", analysis.copies},
               {"events", analysis.events},
               {"peak_bytes", analysis.peakBytes},
               {"live_bytes_at_peak", analysis.liveBytesAtPeak},
               {"peak_command", analysis.peakCommand},
               {"peak_label", analysis.peakLabel}};
  Json classes = Json::object();
  for (size_t i = 0; i < classCount; ++i)
    classes[className(static_cast<BufferClass>(i))] = analysis.classesAtPeak[i];
  json["classes_at_peak"] = classes;
  Json live = Json::array();
  for (const LiveBuffer &buffer : analysis.liveAtPeak)
    live.push_back(bufferJson(buffer));
  json["live_at_peak"] = live;
  return json;
}

} // namespace

std::string jsonSummary(const ArtifactT &artifact, const ReportOptions &options) {
  const SealedPlanT &plan = *artifact.plans[options.plan];
  Json json = {{"schema", 1}, {"artifact", options.path}, {"format_version", artifact.format_version}};
  if (artifact.target)
    json["target"] = {{"kind", artifact.target->kind},
                      {"cpu", artifact.target->cpu},
                      {"triple", artifact.target->triple},
                      {"threads", artifact.target->threads}};
  if (artifact.provenance)
    json["provenance"] = {
        {"compiler", artifact.provenance->compiler},         {"model_name", artifact.provenance->model_name},
        {"model_hash", artifact.provenance->model_hash},     {"recipe_hash", artifact.provenance->recipe_hash},
        {"weights_hash", artifact.provenance->weights_hash}, {"flags", artifact.provenance->flags}};
  json["weights_file"] = artifact.weights_file;
  json["plan"] = options.plan;
  json["plans"] = artifact.plans.size();
  json["budget_bytes"] = plan.budget_bytes;
  json["arenas"] = arenasJson(plan);
  if (plan.memory)
    json["memory"] = memoryJson(*plan.memory);
  json["variables"] = variablesJson(artifact);
  json["entries"] = Json::array();
  for (const EntryT *entry : options.entries)
    json["entries"].push_back(entryJson(plan, *entry));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace plimsoll::inspect
