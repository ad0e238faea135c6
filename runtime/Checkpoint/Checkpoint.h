// A checkpoint is one safetensors file: every variable whose checkpoint flag is set, under its own name, and under the
// metadata key "plimsoll.checkpoint" a JSON object with everything else a resumed run needs to be bit-identical to one
// that never stopped. docs/Runner.md describes the format so that it could be re-implemented.
#pragma once

#include "plimsoll/Runtime/Session.h"

#include <cstdint>
#include <string>
#include <vector>

namespace plimsoll::runtime {

/// What a checkpoint records beside the tensors.
struct CheckpointInfo {
  uint64_t step = 0;      ///< optimizer steps completed
  uint64_t seed = 0;      ///< seed of shuffling and of the artifact's random numbers
  bool shuffle = true;    ///< whether samples are taken in shuffled order
  uint64_t epoch = 0;     ///< data cursor: epochs completed
  uint64_t position = 0;  ///< data cursor: samples consumed of this epoch
  uint64_t samples = 0;   ///< samples of the data, to recognise other data
  std::string modelHash;  ///< provenance.model_hash of the artifact (filled by saveCheckpoint)
  std::string recipeHash; ///< provenance.recipe_hash (filled by saveCheckpoint)
};

/// Writes the session's state to `path`, atomically: a failure (disk full) leaves a file already there as it was.
Status saveCheckpoint(const std::string &path, Session &session, CheckpointInfo info);

/// Reads a checkpoint into the session: every saved variable, and the initial value of those not saved. All names,
/// types, shapes and the model hash are checked before anything is written; every difference is listed in one message,
/// with VersionMismatch when the file belongs to another model and BadInput when the file itself is wrong.
Result<CheckpointInfo> loadCheckpoint(const std::string &path, Session &session);

/// Reads parameters and model state (BatchNorm statistics) only, from a checkpoint or exported weights; optimizer state
/// in the file is left alone. Tensors are found by a variable's name or one of its aliases. Fails with BadInput listing
/// all that are missing or of another type or shape.
Status loadWeights(const std::string &path, Session &session);

/// Writes parameters and model state, each variable once (tied weights are one tensor).
Status exportWeights(const std::string &path, Session &session);

// The JSON under "plimsoll.checkpoint" (CheckpointNotes.cpp).
std::string checkpointNotes(const CheckpointInfo &info);
/// Fails with BadInput on text that is not a checkpoint's, VersionMismatch on another format version.
Result<CheckpointInfo> parseCheckpointNotes(const std::string &text, const std::string &path);

} // namespace plimsoll::runtime
