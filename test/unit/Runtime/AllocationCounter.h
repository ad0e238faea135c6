// Counts requests for memory: linked into a test binary (object library PlimsollAllocationCounter) it interposes
// malloc, calloc, realloc, posix_memalign, aligned_alloc, memalign and mmap for the whole process, shared libraries
// included. Works with glibc; under AddressSanitizer, which owns malloc, it counts nothing and available() is false.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plimsoll::test {

class AllocationCounter {
public:
  /// Whether this build can count.
  static bool available();

  /// Starts counting from zero, on all threads. One counter at a time.
  AllocationCounter();
  /// Stops.
  ~AllocationCounter();
  AllocationCounter(const AllocationCounter &) = delete;
  AllocationCounter &operator=(const AllocationCounter &) = delete;

  /// Stops counting and gives the number of requests since construction. With PLIMSOLL_TRACE_ALLOCATIONS set in the
  /// environment, the first 64 of them are printed to stderr as they happen (kind and bytes).
  uint64_t stop();
  /// Bytes asked for by those requests.
  uint64_t bytes() const;
};

} // namespace plimsoll::test
