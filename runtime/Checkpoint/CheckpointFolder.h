// The checkpoints of one run: OUT/step-00000100.safetensors, and OUT/latest holding the newest one's file name.
#pragma once

#include "runtime/Checkpoint/Checkpoint.h"

#include <optional>
#include <string>
#include <string_view>

namespace plimsoll::runtime {

class CheckpointFolder {
public:
  /// `keep`: how many checkpoints stay; 0 = all. Touches nothing yet.
  CheckpointFolder(std::string runFolder, uint64_t keepCount) : folder(std::move(runFolder)), keep(keepCount) {}

  /// Writes the checkpoint of info.step, then points `latest` at it, then removes the oldest ones beyond `keep`. Each
  /// stage is atomic: whenever the process ends, `latest` names a complete checkpoint. Returns the path.
  Result<std::string> save(Session &session, const CheckpointInfo &info);

  /// The path meant by --resume: "latest" (of this folder), a run folder (its latest), or a checkpoint file. Fails with
  /// BadInput when there is none or `latest` does not hold a checkpoint's file name.
  Result<std::string> resolve(const std::string &resume) const;

private:
  void removeOldest() const;
  std::string folder;
  uint64_t keep;
};

/// "step-00000100.safetensors".
std::string checkpointFileName(uint64_t step);

/// The step of a checkpoint's file name, or nothing for any other name.
std::optional<uint64_t> checkpointStep(std::string_view fileName);

} // namespace plimsoll::runtime
