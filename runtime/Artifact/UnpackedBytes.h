// Two properties of a file's vectors that FlatBuffers' own verifier does not check: how large the artifact becomes when
// unpacked, and that numbers wider than four bytes lie on their alignment.
#pragma once

#include "runtime/Artifact/Artifact_generated.h"

#include <cstdint>

namespace plimsoll::artifact {

enum class Payload { Sound, TooLarge, Misaligned };

/// TooLarge when all texts and vectors, counted once for every table that names them, take more than `limit` bytes
/// together (found without visiting much more than that); Misaligned when a vector of numbers does not lie on a multiple
/// of their size. `root` must have been verified.
Payload checkPayload(const Artifact &root, uint64_t limit);

} // namespace plimsoll::artifact
