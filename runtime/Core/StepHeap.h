// The step heap: a fixed pool for the small, short-lived requests that libraries make while a step runs (oneDNN takes
// 5 to 6 objects of 16 to 104 bytes from operator new in every primitive execution). The pool is part of the promised
// memory (Memory.runtime_bytes), so a step asks the system for nothing.
//
// The pool lives here; the object library PlimsollStepHeap (OperatorNew.cpp) puts it behind operator new and delete of
// the executables that link it. Without that, nothing uses the pool and everything still works.
//
// While any step runs, requests of *every* thread are served from the pool (a worker cannot be told from another
// thread), so a block may outlive the step; it is recognised by its address when it is freed, at any time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plimsoll::runtime {

/// Largest request the pool serves, in bytes; its blocks are this large and 64-byte aligned.
constexpr size_t kStepHeapBlock = 256;

/// Marks the process as inside a step while it exists. Nests; any thread.
class StepScope {
public:
  StepScope() noexcept;
  ~StepScope();
  StepScope(const StepScope &) = delete;
  StepScope &operator=(const StepScope &) = delete;
};

/// A block for `bytes`, or null: outside a step, when `bytes` exceeds kStepHeapBlock, or when the pool is exhausted
/// (the last two are counted). Lock-free.
void *stepHeapTake(size_t bytes) noexcept;

/// Takes a block back. False, and nothing done, when `pointer` is not from the pool. Lock-free.
bool stepHeapGive(void *pointer) noexcept;

/// What happened since the process started.
struct StepHeapCounters {
  uint64_t served = 0;    ///< requests served from the pool
  uint64_t tooLarge = 0;  ///< requests inside a step beyond kStepHeapBlock
  uint64_t exhausted = 0; ///< requests inside a step that found no free block
  uint64_t inUse = 0;     ///< blocks out at this moment
};
StepHeapCounters stepHeapCounters() noexcept;

} // namespace plimsoll::runtime
