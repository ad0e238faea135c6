// Naming, pointing at, pruning and finding checkpoints.
#include "runtime/Checkpoint/CheckpointFolder.h"

#include "runtime/Artifact/Files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <vector>

namespace plimsoll::runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view prefix = "step-", suffix = ".safetensors";

/// The checkpoint named by `folder`/latest.
Result<std::string> latestOf(const std::string &folder) {
  std::ifstream file(folder + "/latest", std::ios::binary);
  if (!file)
    return badInput(fmt::format("{} has no checkpoint to resume (no file latest); start without --resume", folder));
  std::string name(256, '\0');
  file.read(name.data(), static_cast<std::streamsize>(name.size()));
  name.resize(static_cast<size_t>(file.gcount()));
  while (!name.empty() && name.back() == '\n')
    name.pop_back();
  if (!checkpointStep(name))
    return badInput(fmt::format("{}/latest holds {}, expected a name like {}; name a checkpoint with --resume PATH",
                                folder, inQuotes(name), checkpointFileName(100)));
  return folder + "/" + name;
}

} // namespace

std::string checkpointFileName(uint64_t step) { return fmt::format("{}{:08}{}", prefix, step, suffix); }

std::optional<uint64_t> checkpointStep(std::string_view name) {
  if (name.size() < prefix.size() + 8 + suffix.size() || name.substr(0, prefix.size()) != prefix ||
      name.substr(name.size() - suffix.size()) != suffix)
    return std::nullopt;
  std::string_view digits = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  uint64_t step = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || end != digits.data() + digits.size() || checkpointFileName(step) != name)
    return std::nullopt;
  return step;
}

Result<std::string> CheckpointFolder::save(Session &session, const CheckpointInfo &info) {
  std::string name = checkpointFileName(info.step), path = folder + "/" + name;
  if (Status status = saveCheckpoint(path, session, info); !status)
    return status;
  Result<AtomicFile> pointer = AtomicFile::create(folder + "/latest");
  if (!pointer)
    return pointer.status();
  if (Status status = pointer->write(name + "\n"); !status)
    return status;
  if (Status status = pointer->commit(); !status)
    return status;
  removeOldest();
  return path;
}

void CheckpointFolder::removeOldest() const {
  if (keep == 0)
    return;
  std::vector<uint64_t> steps;
  std::error_code error;
  for (const fs::directory_entry &item : fs::directory_iterator(folder, error))
    if (auto step = checkpointStep(item.path().filename().string()))
      steps.push_back(*step);
  std::sort(steps.rbegin(), steps.rend());
  for (size_t i = keep; i < steps.size(); ++i)
    fs::remove(fs::path(folder) / checkpointFileName(steps[i]), error);
}

Result<std::string> CheckpointFolder::resolve(const std::string &resume) const {
  if (resume == "latest")
    return latestOf(folder);
  std::error_code error;
  if (fs::is_directory(resume, error))
    return latestOf(resume);
  return resume;
}

} // namespace plimsoll::runtime
