// Writing an artifact: packed deterministically, judged by the reader's own rules, then put in place atomically.
#pragma once

#include "plimsoll/Support/Status.h"
#include "runtime/Artifact/Artifact_generated.h"

#include <cstddef>
#include <string>
#include <vector>

namespace plimsoll {

/// The artifact's bytes. Equal artifacts give equal bytes. Fails when a rule A2…A25 does not hold or the result would
/// reach 2 GiB (weights do not belong in the artifact).
Result<std::vector<std::byte>> packArtifact(const artifact::ArtifactT &artifact);

/// Packs, writes beside `path`, syncs, renames, and reads the result back: on success the file at `path` is one that
/// readArtifact accepts and holds exactly the packed bytes. On failure an existing file is untouched.
Status writeArtifact(const std::string &path, const artifact::ArtifactT &artifact);

} // namespace plimsoll
