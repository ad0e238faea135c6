// The JSON metadata of a checkpoint: written with sorted keys, read with every field checked.
#include "runtime/Checkpoint/Checkpoint.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace plimsoll::runtime {
namespace {

constexpr uint64_t formatVersion = 1;

struct NotesReader {
  const nlohmann::json &notes;
  const std::string &path;
  std::string problem;

  void fail(const char *key, const char *expected) {
    if (problem.empty())
      problem = fmt::format("{}: checkpoint field {} is not {}; the file is damaged", path, key, expected);
  }
  uint64_t whole(const char *key) {
    auto found = notes.find(key);
    if (found != notes.end() && found->is_number_unsigned())
      return found->get<uint64_t>();
    fail(key, "a whole number >= 0");
    return 0;
  }
  bool truth(const char *key) {
    auto found = notes.find(key);
    if (found != notes.end() && found->is_boolean())
      return found->get<bool>();
    fail(key, "true or false");
    return false;
  }
  std::string text(const char *key) {
    auto found = notes.find(key);
    if (found != notes.end() && found->is_string())
      return found->get<std::string>();
    fail(key, "text");
    return {};
  }
};

} // namespace

std::string checkpointNotes(const CheckpointInfo &info) {
  nlohmann::json notes = {{"format_version", formatVersion},
                          {"step", info.step},
                          {"seed", info.seed},
                          {"shuffle", info.shuffle},
                          {"epoch", info.epoch},
                          {"position", info.position},
                          {"samples", info.samples},
                          {"model_hash", info.modelHash},
                          {"recipe_hash", info.recipeHash}};
  return notes.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

Result<CheckpointInfo> parseCheckpointNotes(const std::string &text, const std::string &path) {
  auto notes = nlohmann::json::parse(text, nullptr, false);
  if (!notes.is_object())
    return badInput(fmt::format("{}: the checkpoint metadata is not a JSON object; the file is damaged", path));
  NotesReader reader{notes, path, {}};
  uint64_t version = reader.whole("format_version");
  if (reader.problem.empty() && version != formatVersion)
    return Status(ExitCode::VersionMismatch, fmt::format("{}: checkpoint format version {}, this program reads {}; use "
                                                         "the plimsoll-run that wrote it",
                                                         path, version, formatVersion));
  CheckpointInfo info;
  info.step = reader.whole("step");
  info.seed = reader.whole("seed");
  info.shuffle = reader.truth("shuffle");
  info.epoch = reader.whole("epoch");
  info.position = reader.whole("position");
  info.samples = reader.whole("samples");
  info.modelHash = reader.text("model_hash");
  info.recipeHash = reader.text("recipe_hash");
  if (!reader.problem.empty())
    return badInput(reader.problem);
  return info;
}

} // namespace plimsoll::runtime
