// How large an artifact becomes when unpacked: a bound FlatBuffers' own verifier does not give.
#pragma once

#include "runtime/Artifact/Artifact_generated.h"

#include <cstdint>

namespace plimsoll::artifact {

/// True when all texts and vectors, counted once for every table that names them, take at most `limit` bytes together.
/// Stops as soon as the limit is passed. `root` must have been verified.
bool unpackedWithin(const Artifact &root, uint64_t limit);

} // namespace plimsoll::artifact
