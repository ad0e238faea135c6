// The step heap: pool arithmetic, threads, and that oneDNN's requests inside a step are served by it.
#include "runtime/Core/StepHeap.h"
#include "runtime/Artifact/RuntimeBytes.h"
#include "test/unit/Runtime/AllocationCounter.h"

#include <gtest/gtest.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

using namespace plimsoll;
using namespace plimsoll::runtime;
using plimsoll::test::AllocationCounter;

TEST(StepHeap, givesNothingOutsideAStep) { EXPECT_EQ(stepHeapTake(16), nullptr); }

TEST(StepHeap, givesAlignedDistinctBlocksUntilExhausted) {
  constexpr size_t kBlocks = artifact::kStepHeapBytes / kStepHeapBlock;
  static void *blocks[kBlocks];
  uint64_t exhaustedBefore = stepHeapCounters().exhausted;
  size_t count = 0;
  bool aligned = true;
  void *beyond = nullptr;
  {
    StepScope scope;
    while (count < kBlocks && (blocks[count] = stepHeapTake(kStepHeapBlock)))
      aligned &= reinterpret_cast<uintptr_t>(blocks[count++]) % 64 == 0;
    beyond = stepHeapTake(1);
  }
  uint64_t inUse = stepHeapCounters().inUse;
  for (size_t i = 0; i < count; ++i)
    EXPECT_TRUE(stepHeapGive(blocks[i]));
  EXPECT_EQ(count, kBlocks);
  EXPECT_EQ(inUse, kBlocks);
  EXPECT_TRUE(aligned);
  EXPECT_EQ(beyond, nullptr);
  EXPECT_EQ(stepHeapCounters().exhausted, exhaustedBefore + 1);
  EXPECT_EQ(stepHeapCounters().inUse, 0u);
  std::sort(std::begin(blocks), std::end(blocks));
  EXPECT_EQ(std::adjacent_find(std::begin(blocks), std::end(blocks)), std::end(blocks));
}

TEST(StepHeap, leavesLargeRequestsToMallocAndCountsThem) {
  uint64_t before = stepHeapCounters().tooLarge;
  StepScope scope;
  EXPECT_EQ(stepHeapTake(kStepHeapBlock + 1), nullptr);
  EXPECT_EQ(stepHeapCounters().tooLarge, before + 1);
}

TEST(StepHeap, doesNotTakeForeignPointers) {
  int local = 0;
  EXPECT_FALSE(stepHeapGive(&local));
  EXPECT_FALSE(stepHeapGive(nullptr));
}

TEST(StepHeap, operatorNewUsesItInsideAStepOnly) {
  uint64_t before = stepHeapCounters().served;
  delete new int(1);
  EXPECT_EQ(stepHeapCounters().served, before);
  int *inside = nullptr;
  {
    StepScope scope;
    inside = new int(2);
  }
  EXPECT_EQ(stepHeapCounters().served, before + 1);
  EXPECT_EQ(stepHeapCounters().inUse, 1u);
  delete inside; // recognised by its address although the step is over
  EXPECT_EQ(stepHeapCounters().inUse, 0u);
}

TEST(StepHeap, fallsBackToMallocWhenExhausted) {
  StepScope scope;
  std::vector<void *> held;
  held.reserve(1000);
  for (int i = 0; i < 600; ++i)
    held.push_back(::operator new(100));
  for (void *block : held) {
    memset(block, 0x5a, 100);
    ::operator delete(block);
  }
  EXPECT_EQ(stepHeapCounters().inUse, 0u);
}

TEST(StepHeap, threadsNeverShareABlock) {
  std::vector<std::thread> threads;
  std::atomic<bool> clean = true;
  StepScope scope;
  for (unsigned char mark = 1; mark <= 4; ++mark)
    threads.emplace_back([mark, &clean] {
      for (int round = 0; round < 20000; ++round) {
        auto *a = static_cast<unsigned char *>(::operator new(kStepHeapBlock));
        auto *b = static_cast<unsigned char *>(::operator new(24));
        memset(a, mark, kStepHeapBlock);
        memset(b, mark, 24);
        clean = clean && std::all_of(a, a + kStepHeapBlock, [&](unsigned char c) { return c == mark; });
        ::operator delete(b);
        ::operator delete(a);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_TRUE(clean);
}

namespace {

/// A 128×96 · 96×64 matmul with user scratchpad, as the CPU backend makes them.
class Matmul {
public:
  Matmul() : engine(dnnl::engine::kind::cpu, 0), stream(engine) {
    using dnnl::memory;
    memory::desc a({128, 96}, memory::data_type::f32, memory::format_tag::ab);
    memory::desc b({96, 64}, memory::data_type::f32, memory::format_tag::ab);
    memory::desc c({128, 64}, memory::data_type::f32, memory::format_tag::ab);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::matmul::primitive_desc described(dnnl::matmul::desc(a, b, c), attributes, engine);
    primitive = dnnl::matmul(described);
    memories = {memory(a, engine), memory(b, engine), memory(c, engine), memory(described.scratchpad_desc(), engine)};
    for (size_t i = 0; i < 3; ++i)
      std::fill_n(static_cast<float *>(memories[i].get_data_handle()), memories[i].get_desc().get_size() / 4, 1.0f);
    static const int names[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
    for (size_t i = 0; i < 4; ++i)
      arguments[i] = {names[i], memories[i].get()};
  }
  bool execute() {
    bool done = dnnl_primitive_execute(primitive.get(), stream.get(), 4, arguments) == dnnl_success;
    return dnnl_stream_wait(stream.get()) == dnnl_success && done;
  }
  float result() const { return *static_cast<float *>(memories[2].get_data_handle()); }

private:
  dnnl::engine engine;
  dnnl::stream stream;
  dnnl::primitive primitive;
  std::vector<dnnl::memory> memories;
  dnnl_exec_arg_t arguments[4];
};

} // namespace

TEST(StepHeap, servesOneDnnInsideAStep) {
  if (!AllocationCounter::available())
    GTEST_SKIP() << "allocations cannot be counted under this sanitizer";
  Matmul matmul;
  ASSERT_TRUE(matmul.execute()); // first-use allocations of threads and caches
  AllocationCounter outside;
  matmul.execute();
  uint64_t without = outside.stop();
  uint64_t servedBefore = stepHeapCounters().served;
  uint64_t within = 0;
  {
    StepScope scope;
    AllocationCounter inside;
    for (int i = 0; i < 100; ++i)
      matmul.execute();
    within = inside.stop();
  }
  EXPECT_GT(without, 0u) << "oneDNN no longer allocates in execute: the step heap may be dropped";
  EXPECT_EQ(within, 0u);
  EXPECT_EQ(stepHeapCounters().served, servedBefore + 100 * without);
  EXPECT_EQ(matmul.result(), 96.0f);
}
