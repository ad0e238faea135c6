// The step heap's pool: equal blocks in static storage and one bit per block. Taking a block clears the lowest set bit
// of a word by compare-and-exchange, giving it back sets it: no lists, so no ABA problem and nothing to initialise
// before main. A thread starts at the word it used last, so threads rarely meet.
#include "runtime/Core/StepHeap.h"

#include "runtime/Artifact/RuntimeBytes.h"

#include <atomic>
#include <bit>

namespace plimsoll::runtime {

static constexpr size_t kBlocks = artifact::kStepHeapBytes / kStepHeapBlock;
static constexpr size_t kWords = kBlocks / 64;
static_assert(kWords * 64 * kStepHeapBlock == artifact::kStepHeapBytes, "whole words of whole blocks");

alignas(64) static std::byte pool[artifact::kStepHeapBytes];
static std::atomic<uint64_t> taken[kWords]; // bit set = block out
static std::atomic<int> stepsRunning;
static std::atomic<uint64_t> servedCount, tooLargeCount, exhaustedCount;
static thread_local unsigned lastWord = 0;

StepScope::StepScope() noexcept { stepsRunning.fetch_add(1, std::memory_order_relaxed); }
StepScope::~StepScope() { stepsRunning.fetch_sub(1, std::memory_order_relaxed); }

/// Takes a block of `word`; null when it has none.
static void *takeFrom(size_t word) noexcept {
  uint64_t bits = taken[word].load(std::memory_order_relaxed);
  while (bits != ~uint64_t{0}) {
    auto bit = static_cast<size_t>(std::countr_one(bits));
    if (taken[word].compare_exchange_weak(bits, bits | uint64_t{1} << bit, std::memory_order_acquire,
                                          std::memory_order_relaxed))
      return pool + (word * 64 + bit) * kStepHeapBlock;
  }
  return nullptr;
}

void *stepHeapTake(size_t bytes) noexcept {
  if (stepsRunning.load(std::memory_order_relaxed) == 0)
    return nullptr;
  if (bytes > kStepHeapBlock) {
    tooLargeCount.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  for (size_t i = 0; i < kWords; ++i) {
    size_t word = (lastWord + i) % kWords;
    if (void *block = takeFrom(word)) {
      lastWord = static_cast<unsigned>(word);
      servedCount.fetch_add(1, std::memory_order_relaxed);
      return block;
    }
  }
  exhaustedCount.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

bool stepHeapGive(void *pointer) noexcept {
  auto address = reinterpret_cast<uintptr_t>(pointer), start = reinterpret_cast<uintptr_t>(pool);
  if (address < start || address >= start + sizeof pool)
    return false;
  size_t block = (address - start) / kStepHeapBlock;
  taken[block / 64].fetch_and(~(uint64_t{1} << block % 64), std::memory_order_release);
  return true;
}

StepHeapCounters stepHeapCounters() noexcept {
  StepHeapCounters counters{servedCount.load(), tooLargeCount.load(), exhaustedCount.load(), 0};
  for (const auto &word : taken)
    counters.inUse += static_cast<uint64_t>(std::popcount(word.load()));
  return counters;
}

} // namespace plimsoll::runtime
