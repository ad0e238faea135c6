// Initial values of variables: zeros, a constant, or tensors of the weights file.
#pragma once

#include "plimsoll/Support/Status.h"
#include "runtime/Artifact/Artifact_generated.h"
#include "runtime/Core/SessionCore.h"

#include <cstddef>
#include <functional>
#include <span>

namespace plimsoll::runtime {

/// Writes `value`, rounded to nearest even, into every element of `target`. Fails when an integer type cannot hold it.
Status fillElements(artifact::DType dtype, double value, std::span<std::byte> target);

/// Gives every variable its initial value through `storage(index)`. Everything is checked before the first byte is
/// written. The weights file is SessionOptions.weightsPath, where the user chose the content and only names, dtypes and
/// shapes are checked, or Artifact.weights_file beside the artifact, whose size and hash must be those of the
/// compilation. Fails with BadInput; all missing or mismatched tensors are listed at once.
Status initializeVariables(const artifact::ArtifactT &artifact, const SessionSource &source,
                           const std::function<std::span<std::byte>(size_t)> &storage);

} // namespace plimsoll::runtime
