// Attacks on the artifact reader: truncation and seeded random damage. Whatever the bytes, the reader returns; what it
// accepts is then judged again by a checker that shares no code with it, and executed on the fake backend under bounds
// that the sanitizers watch.
#include "runtime/Artifact/Reader.h"
#include "runtime/Artifact/Writer.h"
#include "runtime/Core/SessionCore.h"
#include "test/unit/Runtime/FakeBackend.h"
#include "test/unit/Runtime/TinyArtifact.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

using namespace plimsoll;
using namespace plimsoll::artifact;
using namespace plimsoll::test;

namespace {

constexpr int kFlips = 20000;
constexpr int kSplices = 20000;

std::vector<std::byte> packed() { return *packArtifact(tinyArtifact()); }

unsigned long elementBytes(DType dtype) {
  static const unsigned long sizes[] = {4, 8, 2, 2, 8, 4, 2, 1, 1, 1};
  return sizes[static_cast<size_t>(dtype)];
}

/// Visits every element of `view` up to a budget; false when one lies outside its buffer or the buffer outside its
/// arena.
bool staysInside(const SealedPlanT &plan, const EntryT &entry, const TensorViewT &view) {
  size_t persistent = plan.buffers.size();
  const BufferT &buffer =
      view.buffer < persistent ? *plan.buffers.at(view.buffer) : *entry.buffers.at(view.buffer - persistent);
  const ArenaT &arena = *plan.arenas.at(buffer.arena);
  if (static_cast<__int128>(buffer.offset) + buffer.bytes > arena.bytes)
    return false;
  std::vector<int64_t> index(view.shape.size(), 0);
  for (int64_t size : view.shape)
    if (size == 0)
      return true;
  for (int visited = 0; visited < 10000; ++visited) {
    __int128 at = static_cast<__int128>(view.offset);
    for (size_t d = 0; d < index.size(); ++d)
      at += static_cast<__int128>(index[d]) * view.strides.at(d) * elementBytes(view.dtype);
    if (at < 0 || at + elementBytes(view.dtype) > buffer.bytes)
      return false;
    size_t d = index.size();
    while (d > 0 && ++index[d - 1] == view.shape[d - 1])
      index[--d] = 0;
    if (d == 0)
      return true;
  }
  return true;
}

/// The independent judge of an accepted artifact's memory safety.
bool isMemorySafe(const ArtifactT &artifact) {
  bool safe = true;
  for (const auto &plan : artifact.plans)
    for (const auto &entry : plan->entries) {
      auto view = [&](const TensorViewT &v) { safe = safe && staysInside(*plan, *entry, v); };
      for (const auto &port : entry->inputs)
        view(*port->view);
      for (const auto &port : entry->outputs)
        view(*port->view);
      for (const auto &command : entry->commands) {
        if (const LaunchT *launch = command->body.AsLaunch())
          for (const auto &operand : launch->operands)
            view(*operand->view);
        if (const LibraryCallT *call = command->body.AsLibraryCall())
          for (const auto &operand : call->operands)
            view(*operand->view);
        if (const CopyT *copy = command->body.AsCopy()) {
          view(*copy->source);
          view(*copy->target);
        }
      }
    }
  return safe;
}

/// The independent judge of an accepted artifact's proofs: numbers are numbers, budgets hold, curves fall.
bool isSoundProof(const EntryT &entry) {
  const PlanProofT &proof = *entry.proof;
  bool sound = proof.seconds >= proof.stall_seconds && proof.stall_seconds >= 0 && proof.seconds < INFINITY &&
               proof.keep_all_seconds >= 0 && proof.keep_all_seconds < INFINITY && !proof.steps.empty() &&
               (proof.budget_bytes == 0 || proof.budget_bytes >= entry.peak_bytes) &&
               proof.peak_floor_bytes <= entry.peak_bytes && proof.problem->text_bytes <= 1u << 28 &&
               proof.bound->seconds >= 0 && proof.bound->seconds < INFINITY;
  uint64_t budget = UINT64_MAX, bytes = UINT64_MAX;
  double seconds = 0;
  for (const auto &point : proof.curve) {
    sound = sound && point->arena_bytes <= point->budget_bytes && point->arena_bytes <= bytes &&
            (point->budget_bytes < budget || &point == &proof.curve.front()) && point->extra_seconds >= seconds &&
            point->extra_seconds < INFINITY && point->bound->seconds >= 0;
    budget = point->budget_bytes;
    bytes = point->arena_bytes;
    seconds = point->extra_seconds;
  }
  return sound;
}

/// A journal of arenas small enough to allocate: damage may have grown one within what A9 allows.
bool isSmall(const ArtifactT &artifact) {
  for (const auto &arena : artifact.plans[0]->arenas)
    if (arena->bytes > (1u << 20) || arena->alignment > 4096)
      return false;
  return true;
}

/// Loads an accepted artifact; views may be used by kernels that expect other shapes, so nothing is run.
void load(ArtifactT artifact) {
  FakeJournal journal;
  journal.sumWorkspace = 0;
  auto session = runtime::makeSession(std::move(artifact), createFakeBackend(journal), {"fuzz.plim", {}});
  if (!session)
    return;
  const ArtifactT &content = (*session)->artifact();
  for (size_t i = 0; i < content.variables.size(); ++i)
    for (std::byte &byte : (*session)->variable(i))
      byte = std::byte{1};
  for (const auto &entry : content.plans[0]->entries) {
    for (const auto &port : entry->inputs)
      if (auto bytes = (*session)->input(entry->name, port->name))
        std::ranges::fill(*bytes, std::byte{1});
    for (const auto &port : entry->outputs)
      (void)(*session)->output(entry->name, port->name);
  }
}

/// Reads damaged bytes; true when they were accepted (and are harmless).
bool survives(const std::vector<std::byte> &bytes) {
  Result<ArtifactT> read = parseArtifact(bytes, "fuzz.plim");
  if (!read) {
    EXPECT_TRUE(read.status().code() == ExitCode::BadInput || read.status().code() == ExitCode::VersionMismatch);
    EXPECT_FALSE(read.status().message().empty());
    return false;
  }
  EXPECT_TRUE(isMemorySafe(*read));
  for (const auto &plan : read->plans)
    for (const auto &entry : plan->entries)
      EXPECT_TRUE(!entry->proof || isSoundProof(*entry));
  EXPECT_TRUE(packArtifact(*read)) << "an accepted artifact can be written again";
  if (isSmall(*read))
    load(std::move(*read));
  return true;
}

} // namespace

TEST(ArtifactFuzz, truncatedAtEvery64Bytes) {
  std::vector<std::byte> whole = packed();
  for (size_t size = 0; size < whole.size(); size += 64)
    EXPECT_FALSE(survives({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)})) << size;
  EXPECT_TRUE(survives(whole));
}

TEST(ArtifactFuzz, randomBitFlips) {
  std::vector<std::byte> whole = packed();
  std::mt19937_64 random(20261201);
  int accepted = 0;
  for (int round = 0; round < kFlips && !HasFailure(); ++round) {
    std::vector<std::byte> damaged = whole;
    for (uint64_t flips = 1 + random() % 4; flips > 0; --flips)
      damaged[random() % damaged.size()] ^= std::byte{1} << random() % 8;
    accepted += survives(damaged);
  }
  // Names, labels and slack inside limits may change harmlessly; most damage must be noticed.
  EXPECT_LT(accepted, kFlips / 2);
  RecordProperty("accepted", accepted);
}

// Whole words replaced by values that stress arithmetic: the mutation that finds overflows.
TEST(ArtifactFuzz, extremeWords) {
  static const uint64_t extremes[] = {0,
                                      1,
                                      0x7f,
                                      0x80,
                                      0xff,
                                      0x7fffffff,
                                      0x80000000,
                                      0xffffffff,
                                      0xffffffc0,
                                      1ull << 62,
                                      (1ull << 63),
                                      ~0ull,
                                      ~0ull - 63,
                                      1ull << 47,
                                      1ull << 32,
                                      ~(1ull << 63),
                                      0xffffffff00000000};
  std::vector<std::byte> whole = packed();
  std::mt19937_64 random(7);
  for (int round = 0; round < kSplices && !HasFailure(); ++round) {
    std::vector<std::byte> damaged = whole;
    size_t width = size_t{1} << random() % 4;
    uint64_t value = extremes[random() % std::size(extremes)];
    size_t at = random() % (damaged.size() / width) * width;
    memcpy(damaged.data() + at, &value, std::min(width, damaged.size() - at));
    survives(damaged);
  }
}

// Damage after parsing: every number of the unpacked artifact in turn set to an extreme, so that the semantic rules are
// met with nothing filtered out by FlatBuffers.
TEST(ArtifactFuzz, extremeViews) {
  static const int64_t extremes[] = {0, 1, -1, 5, INT64_MAX, INT64_MIN, int64_t{1} << 61, -(int64_t{1} << 61), 1 << 30};
  std::mt19937_64 random(11);
  int rejected = 0;
  for (int round = 0; round < 20000 && !HasFailure(); ++round) {
    ArtifactT artifact = tinyArtifact();
    EntryT &entry = *artifact.plans[0]->entries[random() % 2];
    LaunchT *launch = entry.commands[0]->body.AsLaunch();
    TensorViewT &view = *launch->operands[random() % 3]->view;
    view.shape.clear();
    view.strides.clear();
    for (uint64_t rank = random() % 4; rank > 0; --rank) {
      view.shape.push_back(extremes[random() % std::size(extremes)]);
      view.strides.push_back(extremes[random() % std::size(extremes)]);
    }
    view.offset = static_cast<uint64_t>(random() % 4 ? 4 * (random() % 4) : extremes[random() % std::size(extremes)]);
    Status status = verifyArtifact(artifact);
    rejected += !status;
    EXPECT_TRUE(!status || isMemorySafe(artifact));
  }
  EXPECT_GT(rejected, 5000);
}

// The numbers of a proof set to extremes, several at a time.
TEST(ArtifactFuzz, extremeProofs) {
  static const double seconds[] = {0, -0.0, 1e-6, -1e-6, 1e300, INFINITY, -INFINITY, NAN, 5e-324};
  static const uint64_t words[] = {0,         1, 255, 703, 704, 705, 1024, 1025, uint64_t{1} << 28, uint64_t{1} << 63,
                                   UINT64_MAX};
  std::mt19937_64 random(13);
  int rejected = 0;
  for (int round = 0; round < 20000 && !HasFailure(); ++round) {
    ArtifactT artifact = tinyArtifact();
    EntryT &entry = *artifact.plans[0]->entries[0];
    PlanProofT &proof = *entry.proof;
    CurvePointT &point = *proof.curve[random() % 2];
    double *times[] = {&proof.seconds,
                       &proof.stall_seconds,
                       &proof.keep_all_seconds,
                       &proof.bound->seconds,
                       &point.extra_seconds,
                       &point.bound->seconds,
                       &proof.explanations[0]->recompute_seconds};
    uint64_t *sizes[] = {&proof.budget_bytes, &proof.peak_floor_bytes, &proof.keep_all_bytes,
                         &point.budget_bytes, &point.arena_bytes,      &proof.problem->text_bytes};
    for (uint64_t edits = 1 + random() % 2; edits > 0; --edits)
      if (random() % 2)
        *times[random() % std::size(times)] = seconds[random() % std::size(seconds)];
      else
        *sizes[random() % std::size(sizes)] = words[random() % std::size(words)];
    Status status = verifyArtifact(artifact);
    rejected += !status;
    EXPECT_TRUE(!status || isSoundProof(entry));
  }
  EXPECT_GT(rejected, 5000);
  EXPECT_LT(rejected, 19000) << "harmless numbers are accepted";
}
