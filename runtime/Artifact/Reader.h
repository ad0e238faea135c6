// Reading an artifact that may be damaged or hostile. Nothing in the file is used before every rule A1…A27 of
// docs/Artifact.md holds; the messages carry the rule's label.
#pragma once

#include "plimsoll/Support/Status.h"
#include "runtime/Artifact/Artifact_generated.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace plimsoll {

/// Reads, verifies and unpacks the artifact at `path` (a regular file below 2 GiB). Fails with BadInput, or with
/// VersionMismatch for another format version and for what only later versions run. The message starts with the path.
Result<artifact::ArtifactT> readArtifact(const std::string &path);

/// As readArtifact, from memory aligned to 8 bytes. `name` stands for the path in messages.
Result<artifact::ArtifactT> parseArtifact(std::span<const std::byte> bytes, const std::string &name);

/// Position of `Artifact.content_hash` in a packed artifact that is a sound FlatBuffer, or nothing when it records none.
std::optional<size_t> contentHashPosition(std::span<const std::byte> bytes);

/// Rules A2…A27 on an unpacked artifact. Lists up to eight violations, then counts the rest; deterministic order.
/// Complexity: O(n log n) in buffers and commands for valid artifacts.
Status verifyArtifact(const artifact::ArtifactT &artifact);

} // namespace plimsoll
