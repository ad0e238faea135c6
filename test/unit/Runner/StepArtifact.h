// A whole artifact made in code out of library calls only, so that the real runtime can train it without a compiler.
//
// Model: y = x w, loss = y·y, with x f32[2,3] (port "x") and w f32[3,1], initially 1. Gradient descent on half the
// loss:
//   c = -1, z = (y c) lr, w += x^T z, so w <- w - lr x^T x w.
// Entries: train_step (x, lr -> loss), eval_step (x -> loss), forward (x -> y).
#pragma once

#include "runtime/Artifact/Artifact_generated.h"

#include <cstdint>

namespace plimsoll::test {

struct StepArtifactOptions {
  uint64_t processConstantBytes = uint64_t(1) << 30; ///< promised beyond the training memory
  uint64_t stagingBytes = 4096;
};

/// The artifact; it satisfies every rule of the reader.
artifact::ArtifactT stepArtifact(const StepArtifactOptions &options = {});

} // namespace plimsoll::test
