// Preparing a session and a run folder: initial state, seed, resume, and the checks that make a resumed run equal to
// one that never stopped.
#pragma once

#include "plimsoll/Runtime/Session.h"
#include "runtime/Checkpoint/CheckpointFolder.h"
#include "runtime/Data/DataFeed.h"

#include <optional>
#include <string>
#include <vector>

namespace plimsoll::runtime {

/// Writes {seed, 0} to the step-state variable "seed" (I64[2]); does nothing when the artifact has none.
Status setSeed(Session &session, uint64_t seed);

/// Opens the feed of `ports`. The resident limit is the artifact's promised staging divided by `shares`.
Result<DataFeed> openFeed(const Session &session, const std::vector<DataSpec> &specs,
                          const std::vector<PortInfo> &ports, uint64_t seed, bool shuffle, unsigned shares = 1);

/// Creates `folder` (with parents). Fails with Usage when it already holds metrics.jsonl or checkpoints and
/// `overwrite` is not set: a new run never destroys an earlier one silently. With `overwrite` the old ones are removed.
Status prepareRunFolder(const std::string &folder, bool overwrite);

/// Fails with BadInput when `info` was written by a run over other data.
Status checkSameData(const CheckpointInfo &info, const DataFeed &feed);

/// Initial state: the artifact's own, then `weights` (checkpoint or exported weights) over it when not empty.
Status initializeState(Session &session, const std::string &weights);

} // namespace plimsoll::runtime
