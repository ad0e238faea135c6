// Global operator new and delete of executables that link PlimsollStepHeap: inside a step small requests come from the
// step heap, everything else is malloc. The array and nothrow forms are replaced too: the standard library's would
// reach these, but a sanitizer's would not. Over-aligned ones keep their default and are not served from the pool.
#include "runtime/Core/StepHeap.h"

#include <cstdlib>
#include <new>

void *operator new(std::size_t bytes) {
  if (void *block = plimsoll::runtime::stepHeapTake(bytes))
    return block;
  for (;;) {
    if (void *block = std::malloc(bytes ? bytes : 1))
      return block;
    std::new_handler handler = std::get_new_handler();
    if (!handler)
      throw std::bad_alloc();
    handler();
  }
}

void operator delete(void *pointer) noexcept {
  if (!plimsoll::runtime::stepHeapGive(pointer))
    std::free(pointer);
}

void operator delete(void *pointer, std::size_t) noexcept { operator delete(pointer); }

void *operator new(std::size_t bytes, const std::nothrow_t &) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}
void *operator new[](std::size_t bytes) { return operator new(bytes); }
void *operator new[](std::size_t bytes, const std::nothrow_t &tag) noexcept { return operator new(bytes, tag); }
void operator delete(void *pointer, const std::nothrow_t &) noexcept { operator delete(pointer); }
void operator delete[](void *pointer) noexcept { operator delete(pointer); }
void operator delete[](void *pointer, std::size_t) noexcept { operator delete(pointer); }
void operator delete[](void *pointer, const std::nothrow_t &) noexcept { operator delete(pointer); }
