// Writing an artifact.
#include "runtime/Artifact/Writer.h"

#include "plimsoll/Support/Units.h"
#include "runtime/Artifact/Files.h"
#include "runtime/Artifact/Hash.h"
#include "runtime/Artifact/Reader.h"

#include <algorithm>
#include <cstring>

namespace plimsoll {

static constexpr uint64_t kPackLimit = (uint64_t{1} << 31) - (uint64_t{1} << 20);

/// A floor for the packed size: what the kernel modules alone take. FlatBuffers asserts, not fails, beyond 2 GiB.
static uint64_t moduleBytes(const artifact::ArtifactT &artifact) {
  uint64_t bytes = 0;
  for (const auto &module : artifact.modules)
    bytes += module->data.size();
  return bytes;
}

static uint64_t textBytes(const std::unique_ptr<artifact::CompressedTextT> &text) {
  return text ? text->bytes.size() : 0;
}

static uint64_t proofBytes(const artifact::PlanProofT &proof) {
  uint64_t bytes = textBytes(proof.problem) + textBytes(proof.bound->certificate) +
                   (proof.steps.size() + proof.explanations.size() * 256 + proof.curve.size() * 64) * 4;
  for (const auto &point : proof.curve)
    bytes += textBytes(point->bound->certificate);
  return bytes;
}

/// A generous ceiling for everything else, so that the builder never meets its limit.
static uint64_t tableBytes(const artifact::ArtifactT &artifact) {
  uint64_t commands = 0, proofs = 0;
  for (const auto &plan : artifact.plans)
    for (const auto &entry : plan->entries) {
      commands += entry->commands.size() + entry->buffers.size();
      proofs += entry->proof ? proofBytes(*entry->proof) : 0;
    }
  return commands * 1024 + proofs;
}

Result<std::vector<std::byte>> packArtifact(const artifact::ArtifactT &artifact) {
  if (Status status = verifyArtifact(artifact); !status)
    return status;
  if (uint64_t bytes = moduleBytes(artifact) + tableBytes(artifact); bytes > kPackLimit)
    return badInput("the artifact would take about " + humanBytes(bytes) +
                    ", at most 2 GiB fit; compile fewer entries or plans into one artifact");
  artifact::ArtifactT stamped(artifact);
  stamped.content_hash = 1; // not the default, so that there is a place for it
  flatbuffers::FlatBufferBuilder builder(size_t{1} << 20);
  artifact::FinishArtifactBuffer(builder, artifact::Artifact::Pack(builder, &stamped));
  auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  std::vector<std::byte> packed(bytes.begin(), bytes.end());
  size_t position = *contentHashPosition(packed);
  uint64_t hash = hash64Except(packed, position);
  memcpy(packed.data() + position, &hash, sizeof hash);
  return packed;
}

Status writeArtifact(const std::string &path, const artifact::ArtifactT &artifact) {
  Result<std::vector<std::byte>> packed = packArtifact(artifact);
  if (!packed)
    return packed.status();
  if (auto readable = parseArtifact(*packed, path); !readable)
    return readable.status();
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.status();
  if (Status status = file->write(*packed); !status)
    return status;
  if (Status status = file->commit(); !status)
    return status;
  Result<MappedFile> written = MappedFile::open(path);
  if (!written)
    return written.status();
  if (!std::ranges::equal(written->bytes(), *packed))
    return badInput(inQuotes(path) + " does not hold what was written to it; check the disk");
  return Status::ok();
}

} // namespace plimsoll
