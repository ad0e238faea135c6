// Reading an artifact: the FlatBuffers verifier first (rule A1), then the version, then one more structural bound that
// FlatBuffers does not give: nothing is shared. A file in which a million tables name the same megabyte of text is a
// valid FlatBuffer and a terabyte once unpacked; ours never share, so the unpacked payload cannot exceed the file.
#include "runtime/Artifact/Reader.h"

#include "plimsoll/Support/Units.h"
#include "runtime/Artifact/Files.h"
#include "runtime/Artifact/Hash.h"
#include "runtime/Artifact/Types.h"
#include "runtime/Artifact/UnpackedBytes.h"

#include <cstring>

namespace plimsoll {

static constexpr uint64_t kMaxFileBytes = (uint64_t{1} << 31) - 1; // FlatBuffers offsets are signed 32-bit
static constexpr uint32_t kMaxTableDepth = 16;                     // the schema nests 7 tables
static constexpr uint64_t kLeastTableBytes = 8;                    // vtable reference + the reference to the table

/// Rule A1, and A2 before the rest so that a newer file is told apart from a broken one.
static Status checkStructure(std::span<const std::byte> bytes) {
  const auto *data = reinterpret_cast<const uint8_t *>(bytes.data());
  if (bytes.size() < 2 * sizeof(uint32_t) || memcmp(data + 4, artifact::ArtifactIdentifier(), 4) != 0)
    return badInput("A1: not a Plimsoll artifact (the identifier 'PLIM' is missing)");
  if (bytes.size() > kMaxFileBytes)
    return badInput("A1: " + groupedDigits(bytes.size()) + " bytes, at most " + groupedDigits(kMaxFileBytes) +
                    " are accepted");
  auto maxTables = static_cast<uint32_t>(bytes.size() / kLeastTableBytes + 1);
  flatbuffers::Verifier verifier(data, bytes.size(), kMaxTableDepth, maxTables);
  if (!artifact::VerifyArtifactBuffer(verifier))
    return badInput("A1: damaged or truncated; copy or compile it again");
  const artifact::Artifact *root = artifact::GetArtifact(data);
  if (root->format_version() != artifact::kFormatVersion)
    return {ExitCode::VersionMismatch, "A2: format version " + std::to_string(root->format_version()) +
                                           ", this program reads version " + std::to_string(artifact::kFormatVersion) +
                                           "; compile the model again"};
  switch (artifact::checkPayload(*root, bytes.size())) {
  case artifact::Payload::Sound:
    return Status::ok();
  case artifact::Payload::TooLarge:
    return badInput("A1: parts of the file are shared, so that it would grow when unpacked; compile it again");
  case artifact::Payload::Misaligned:
    return badInput("A1: numbers in the file do not lie on their alignment; copy or compile it again");
  }
  return Status::ok();
}

std::optional<size_t> contentHashPosition(std::span<const std::byte> bytes) {
  const auto *start = reinterpret_cast<const uint8_t *>(bytes.data());
  const uint8_t *field =
      flatbuffers::GetRoot<flatbuffers::Table>(start)->GetAddressOf(artifact::Artifact::VT_CONTENT_HASH);
  if (!field)
    return std::nullopt;
  return static_cast<size_t>(field - start);
}

/// The last part of A1. It comes after all other rules: they have to stand alone, for a hash can be forged.
static Status checkContent(std::span<const std::byte> bytes) {
  std::optional<size_t> position = contentHashPosition(bytes);
  uint64_t recorded = artifact::GetArtifact(bytes.data())->content_hash();
  if (!position || recorded == 0 || recorded == hash64Except(bytes, *position))
    return Status::ok();
  return badInput("A1: damaged, its content does not have the hash it records; copy or compile it again");
}

Result<artifact::ArtifactT> parseArtifact(std::span<const std::byte> bytes, const std::string &name) {
  auto failed = [&](const Status &status) { return Status{status.code(), inQuotes(name) + ": " + status.message()}; };
  if (Status status = checkStructure(bytes); !status)
    return failed(status);
  artifact::ArtifactT unpacked;
  artifact::GetArtifact(bytes.data())->UnPackTo(&unpacked);
  if (Status status = verifyArtifact(unpacked); !status)
    return failed(status);
  if (Status status = checkContent(bytes); !status)
    return failed(status);
  return unpacked;
}

Result<artifact::ArtifactT> readArtifact(const std::string &path) {
  Result<std::vector<std::byte>> content = readFile(path, kMaxFileBytes);
  if (!content)
    return content.status();
  return parseArtifact(*content, path);
}

} // namespace plimsoll
