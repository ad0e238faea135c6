// Interposed allocation functions. They forward to glibc's own entry points and only add to counters while counting is
// on, so they may be called before main, from any thread and from inside the dynamic linker.
#include "test/unit/Runtime/AllocationCounter.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PLIMSOLL_CAN_COUNT 0
#else
#define PLIMSOLL_CAN_COUNT 1
#endif

static std::atomic<bool> counting;
static std::atomic<uint64_t> requests, requestedBytes;
static bool tracing;

namespace plimsoll::test {

bool AllocationCounter::available() { return PLIMSOLL_CAN_COUNT != 0; }

AllocationCounter::AllocationCounter() {
  tracing = getenv("PLIMSOLL_TRACE_ALLOCATIONS") != nullptr;
  requests = 0;
  requestedBytes = 0;
  counting = true;
}

AllocationCounter::~AllocationCounter() { counting = false; }

uint64_t AllocationCounter::stop() {
  counting = false;
  return requests;
}

uint64_t AllocationCounter::bytes() const { return requestedBytes; }

} // namespace plimsoll::test

#if PLIMSOLL_CAN_COUNT

/// Notes one request; printing uses write(2) because stdio may allocate.
static void note(const char *kind, size_t bytes) {
  if (!counting.load(std::memory_order_relaxed))
    return;
  uint64_t number = requests.fetch_add(1);
  requestedBytes.fetch_add(bytes);
  if (!tracing || number >= 64)
    return;
  char line[80];
  int length = snprintf(line, sizeof line, "allocation %s %zu\n", kind, bytes);
  if (write(STDERR_FILENO, line, static_cast<size_t>(length)) < 0)
    return;
}

extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t bytes) {
  note("malloc", bytes);
  return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
  note("calloc", count * bytes);
  return __libc_calloc(count, bytes);
}
void *realloc(void *pointer, size_t bytes) {
  note("realloc", bytes);
  return __libc_realloc(pointer, bytes);
}
void *memalign(size_t alignment, size_t bytes) {
  note("memalign", bytes);
  return __libc_memalign(alignment, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  note("aligned_alloc", bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void **result, size_t alignment, size_t bytes) {
  note("posix_memalign", bytes);
  *result = __libc_memalign(alignment, bytes);
  return *result ? 0 : ENOMEM;
}
void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  note("mmap", bytes);
  return reinterpret_cast<void *>(syscall(SYS_mmap, address, bytes, protection, flags, fd, offset));
}
}

#endif
