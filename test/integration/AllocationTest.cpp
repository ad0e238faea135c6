// No allocation inside a step of a real artifact: every request for memory of the whole process, oneDNN and the thread
// pool included, is counted while entries run. The artifacts are compiled by the ctest fixture `allocation-artifacts`
// into the folder that $PLIMSOLL_TEST_ARTIFACTS names.
#include "plimsoll/Runtime/Session.h"
#include "test/unit/Runtime/AllocationCounter.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

using namespace plimsoll;
using namespace plimsoll::runtime;
using namespace plimsoll::test;
using artifact::DType;

namespace {

/// Class and token numbers below ten, pixels in [0, 1), a small learning rate.
void fill(std::span<std::byte> bytes, DType type, bool isRate) {
  if (type == DType::I64) {
    for (size_t i = 0; i < bytes.size() / sizeof(int64_t); ++i) {
      int64_t value = static_cast<int64_t>(i * 7 % 10);
      memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
    }
    return;
  }
  ASSERT_EQ(type, DType::F32);
  for (size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
    float value = isRate ? 1e-3f : static_cast<float>(i * 13 % 64) / 64;
    memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
}

class AllocationTest : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    const char *folder = getenv("PLIMSOLL_TEST_ARTIFACTS");
    ASSERT_NE(folder, nullptr) << "set PLIMSOLL_TEST_ARTIFACTS to a folder with compiled artifacts";
    SessionOptions options;
    options.threads = 2;
    auto opened = Session::open(std::string(folder) + "/" + GetParam() + ".plim", options);
    ASSERT_TRUE(opened) << opened.status().message();
    session = std::move(*opened);
    Status status = session->initialize();
    ASSERT_TRUE(status) << status.message();
  }

  void fillInputs(const artifact::EntryT &entry) {
    for (const auto &port : entry.inputs) {
      auto bytes = session->input(entry.name, port->name);
      ASSERT_TRUE(bytes) << bytes.status().message();
      fill(*bytes, port->view->dtype, port->name == "lr");
    }
  }

  std::unique_ptr<Session> session;
};

TEST_P(AllocationTest, entriesAllocateNothingAfterTheFirstRun) {
  if (!AllocationCounter::available())
    GTEST_SKIP() << "allocations cannot be counted under this sanitizer";
  const auto &entries = session->artifact().plans[0]->entries;
  ASSERT_GE(entries.size(), 2u);
  for (const auto &entry : entries) {
    fillInputs(*entry);
    Status status = session->run(entry->name);
    ASSERT_TRUE(status) << entry->name << ": " << status.message();
    AllocationCounter counter;
    for (int step = 0; step < 5 && status; ++step) {
      fillInputs(*entry); // a step may reuse the memory of its inputs
      status = session->run(entry->name);
    }
    EXPECT_EQ(counter.stop(), 0u) << entry->name << " asked for " << counter.bytes() << " bytes";
    EXPECT_TRUE(status) << entry->name << ": " << status.message();
  }
}

TEST_P(AllocationTest, allocatesOneArena) {
  MemoryReport memory = session->memory();
  EXPECT_EQ(memory.arenaAllocations, 1u);
  EXPECT_EQ(memory.arenaBytes, session->artifact().plans[0]->memory->arena_bytes);
}

INSTANTIATE_TEST_SUITE_P(Artifacts, AllocationTest, testing::Values("gpt", "gpt-accumulate", "cnn"),
                         [](const auto &test) {
                           return std::string(test.param) == "gpt-accumulate" ? "gptAccumulate" : test.param;
                         });

} // namespace
