// No allocation inside a step: counted on a session over the fake backend. (The full product is counted in
// test/integration with the same counter.)
#include "runtime/Core/SessionCore.h"
#include "test/unit/Runtime/AllocationCounter.h"
#include "test/unit/Runtime/FakeBackend.h"
#include "test/unit/Runtime/TinyArtifact.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sys/mman.h>

using namespace plimsoll;
using namespace plimsoll::runtime;
using namespace plimsoll::test;

TEST(AllocationCounter, countsEveryWayToAskForMemory) {
  if (!AllocationCounter::available())
    GTEST_SKIP() << "allocations cannot be counted under this sanitizer";
  void *volatile blocks[6];
  AllocationCounter counter;
  blocks[0] = malloc(10);
  blocks[1] = calloc(2, 10);
  blocks[2] = realloc(nullptr, 10);
  blocks[3] = aligned_alloc(64, 64);
  void *aligned = nullptr;
  EXPECT_EQ(posix_memalign(&aligned, 64, 64), 0);
  blocks[4] = aligned;
  blocks[5] = ::operator new(10);
  void *mapped = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(counter.stop(), 7u);
  EXPECT_EQ(counter.bytes(), 10u + 20 + 10 + 64 + 64 + 10 + 4096);
  munmap(mapped, 4096);
  for (size_t i = 0; i < 5; ++i)
    free(blocks[i]);
  ::operator delete(blocks[5]);
}

TEST(AllocationCounter, aStepAllocatesNothing) {
  if (!AllocationCounter::available())
    GTEST_SKIP() << "allocations cannot be counted under this sanitizer";
  FakeJournal journal;
  auto session = makeSession(tinyArtifact(), createFakeBackend(journal), {"tiny.plim", {}});
  ASSERT_TRUE(session) << session.status().message();
  AllocationCounter counter;
  bool good = true;
  for (int step = 0; step < 10; ++step) {
    good &= static_cast<bool>((*session)->run("train_step"));
    good &= static_cast<bool>((*session)->input("train_step", "x"));
    good &= static_cast<bool>((*session)->output("train_step", "loss"));
  }
  EXPECT_EQ(counter.stop(), 0u);
  EXPECT_TRUE(good);
  EXPECT_EQ(journal.launches, 30u);
}
