// Initial state, seeds, run folders.
#include "tools/plimsoll-run/RunState.h"

#include <cstring>
#include <filesystem>
#include <fmt/format.h>

namespace plimsoll::runtime {

namespace fs = std::filesystem;

Status setSeed(Session &session, uint64_t seed) {
  const auto &variables = session.artifact().variables;
  for (size_t i = 0; i < variables.size(); ++i) {
    const artifact::VariableT &variable = *variables[i];
    if (variable.kind != artifact::VariableKind::StepState || variable.name != "seed")
      continue;
    if (variable.dtype != artifact::DType::I64 || variable.shape != std::vector<int64_t>{2})
      return badInput(fmt::format("variable seed is {} {}, expected i64 [2]; compile the artifact again",
                                  dtypeName(variable.dtype), dimsText(variable.shape)));
    int64_t value[2] = {static_cast<int64_t>(seed), 0};
    std::memcpy(session.variable(i).data(), value, sizeof value);
  }
  return Status::ok();
}

Result<DataFeed> openFeed(const Session &session, const std::vector<DataSpec> &specs,
                          const std::vector<PortInfo> &ports, uint64_t seed, bool shuffle, unsigned shares) {
  const auto &memory = session.artifact().plans.at(0)->memory;
  return DataFeed::open(specs, ports, {seed, shuffle, memory ? memory->staging_bytes / shares : 0});
}

Status prepareRunFolder(const std::string &folder, bool overwrite) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder, error))
    return badInput(fmt::format("cannot create the folder {} ({}); choose another --out", folder,
                                error ? error.message() : "it is a file"));
  for (const fs::directory_entry &item : fs::directory_iterator(folder, error)) {
    std::string name = item.path().filename().string();
    if (name != "metrics.jsonl" && name != "latest" && !checkpointStep(name))
      continue;
    if (!overwrite)
      return {ExitCode::Usage,
              fmt::format("{} already holds {} of an earlier run; continue it with --resume latest, or "
                          "choose another --out, or replace it with --overwrite",
                          folder, name)};
    fs::remove(item.path(), error);
  }
  return Status::ok();
}

Status checkSameData(const CheckpointInfo &info, const DataFeed &feed) {
  if (info.samples == feed.samples())
    return Status::ok();
  return badInput(fmt::format("the checkpoint was made with data of {} samples, this data has {}; resume with the same "
                              "data, or start a new run with --weights",
                              info.samples, feed.samples()));
}

Status initializeState(Session &session, const std::string &weights) {
  if (Status status = session.initialize(); !status)
    return status;
  return weights.empty() ? Status::ok() : loadWeights(weights, session);
}

} // namespace plimsoll::runtime
