// The session over the fake backend: the numbers of the tiny artifact, what is asked of the backend, and every way to
// fail at load and in a step.
#include "runtime/Artifact/RuntimeBytes.h"
#include "runtime/Core/SafeTensors.h"
#include "runtime/Core/SessionCore.h"
#include "test/unit/Runtime/FakeBackend.h"
#include "test/unit/Runtime/TinyArtifact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

using namespace plimsoll;
using namespace plimsoll::runtime;
using namespace plimsoll::test;
using testing::HasSubstr;

namespace {

template <typename T> std::vector<T> valuesOf(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <typename T> void store(std::span<std::byte> target, const std::vector<T> &values) {
  ASSERT_EQ(target.size(), values.size() * sizeof(T));
  memcpy(target.data(), values.data(), target.size());
}

class SessionTest : public testing::Test {
protected:
  void SetUp() override {
    static const float weights[] = {10, 20, 30, 40};
    NamedTensor tensor{"layer.w", artifact::DType::F32, {4}, std::as_bytes(std::span(weights))};
    ASSERT_TRUE(writeSafeTensors(folder.path("tiny.safetensors"), std::span(&tensor, 1)));
  }
  Result<std::unique_ptr<Session>> make(artifact::ArtifactT artifact = tinyArtifact()) {
    return makeSession(std::move(artifact), createFakeBackend(journal), {folder.path("tiny.plim"), {}});
  }
  /// A ready session with x = 1, 2, 3, 4 and lr = 0.5.
  std::unique_ptr<Session> ready() {
    auto session = make();
    EXPECT_TRUE(session) << session.status().message();
    Status status = (*session)->initialize();
    EXPECT_TRUE(status) << status.message();
    store<float>(*(*session)->input("train_step", "x"), {1, 2, 3, 4});
    store<float>(*(*session)->input("train_step", "lr"), {0.5f});
    return std::move(*session);
  }

  TemporaryFolder folder;
  FakeJournal journal;
};

} // namespace

TEST_F(SessionTest, runsTheStep) {
  std::unique_ptr<Session> session = ready();
  Status status = session->run("train_step");
  ASSERT_TRUE(status) << status.message();
  // t2 = x*w + 2 = 12 42 92 162, loss = their sum, w -= lr*t2, m += t2
  EXPECT_EQ(valuesOf<float>(*session->output("train_step", "loss")), (std::vector<float>{308}));
  EXPECT_EQ(valuesOf<float>(session->variable(0)), (std::vector<float>{4, -1, -16, -41}));
  EXPECT_EQ(valuesOf<float>(session->variable(1)), (std::vector<float>{12, 42, 92, 162}));
  EXPECT_EQ(valuesOf<int64_t>(session->variable(2)), (std::vector<int64_t>{7, 7}));
  EXPECT_EQ(journal.launches, 3u);
  EXPECT_EQ(journal.calls, 2u);
  EXPECT_EQ(journal.copies, 1u);
  EXPECT_EQ(journal.records, 2u);
  EXPECT_EQ(journal.waits, 2u);
}

TEST_F(SessionTest, entriesShareTheVariables) {
  std::unique_ptr<Session> session = ready();
  ASSERT_TRUE(session->run("train_step"));
  store<float>(*session->input("eval_step", "x"), {1, 1, 1, 2});
  ASSERT_TRUE(session->run("eval_step"));
  EXPECT_EQ(valuesOf<float>(*session->output("eval_step", "y")), (std::vector<float>{4, -1, -16, -82}));
}

TEST_F(SessionTest, allocatesEachArenaOnceAndFreesIt) {
  std::unique_ptr<Session> session = ready();
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(session->run("train_step"));
  EXPECT_THAT(journal.arenaBytes, testing::ElementsAre(1024, 64));
  session.reset();
  EXPECT_EQ(journal.arenasFreed, 2u);
}

TEST_F(SessionTest, loadsEachModuleOnceAndDropsItsImage) {
  std::unique_ptr<Session> session = ready();
  EXPECT_THAT(journal.loaded, testing::ElementsAre("kernel_mul", "kernel_add", "kernel_sgd"));
  EXPECT_TRUE(session->artifact().modules[0]->data.empty());
}

TEST_F(SessionTest, reportsMemoryAsPromised) {
  auto session = make();
  ASSERT_TRUE(session);
  MemoryReport before = (*session)->memory();
  const auto &promise = *(*session)->artifact().plans[0]->memory;
  EXPECT_EQ(before.arenaBytes, promise.arena_bytes);
  EXPECT_EQ(before.runtimeBytes, promise.runtime_bytes);
  // 11 records of 64 bytes; operands: 3+2+3+2+4 in train_step, 3 in eval_step (workspace and copies take none)
  EXPECT_EQ(before.runtimeBytes, artifact::kStepHeapBytes + 11 * 64 + 17 * 8);
  EXPECT_EQ(before.arenaAllocations, 2u);
  EXPECT_EQ(before.touchedPeakBytes, 0u);
  ASSERT_TRUE((*session)->initialize());
  EXPECT_EQ((*session)->memory().touchedPeakBytes, 208u); // end of 'two'
  ASSERT_TRUE((*session)->run("eval_step"));
  EXPECT_EQ((*session)->memory().touchedPeakBytes, 336u); // end of y
  ASSERT_TRUE((*session)->run("train_step"));
  EXPECT_EQ((*session)->memory().touchedPeakBytes, 704u + 16u); // end of scratch, and of 'kept' on the host
}

TEST_F(SessionTest, namesThePortsAndEntriesThatExist) {
  std::unique_ptr<Session> session = ready();
  Status port = session->input("train_step", "y").status();
  EXPECT_EQ(port.code(), ExitCode::Usage);
  EXPECT_EQ(port.message(), "entry 'train_step' has no input 'y'; it has x, lr");
  EXPECT_EQ(session->output("train_step", "x").status().message(), "entry 'train_step' has no output 'x'; it has loss");
  EXPECT_EQ(session->run("apply").message(), "the artifact has no entry 'apply'; it has train_step, eval_step");
  EXPECT_EQ(session->run("apply").code(), ExitCode::Usage);
  EXPECT_EQ(session->entry("apply"), nullptr);
  EXPECT_EQ(session->entry("eval_step")->name, "eval_step");
}

TEST_F(SessionTest, aFaultStopsTheStepBeforeTheUpdateAndNamesTheCommand) {
  journal.faultOp = "copy";
  std::unique_ptr<Session> session = ready();
  Status status = session->run("train_step");
  EXPECT_EQ(status.code(), ExitCode::BadInput);
  EXPECT_EQ(status.message(), "entry 'train_step' command 1 'copy h': index 300 out of range [-256, 256) in gather");
  EXPECT_EQ(valuesOf<float>(session->variable(0)), (std::vector<float>{10, 20, 30, 40}));
  journal.faultOp.clear();
  EXPECT_TRUE(session->run("train_step"));
}

TEST_F(SessionTest, aBackendThatRunsAheadReportsFaultsAtTheEnd) {
  journal.inOrder = false;
  journal.faultOp = "copy";
  std::unique_ptr<Session> session = ready();
  EXPECT_EQ(session->run("train_step").message(), "entry 'train_step': index 300 out of range [-256, 256) in gather");
  EXPECT_EQ(journal.synchronizations, 1u);
}

TEST_F(SessionTest, moreWorkspaceThanPlannedIsAVersionMismatch) {
  journal.sumWorkspace = 4096;
  Status status = make().status();
  EXPECT_EQ(status.code(), ExitCode::VersionMismatch);
  EXPECT_EQ(status.message(), "entry 'train_step' command 8 'loss': sum needs 4,096 bytes of workspace on this machine "
                              "but the plan holds 128; use no more threads than it was compiled for, or compile it "
                              "again here");
}

TEST_F(SessionTest, aRefusedCallNamesItsCommand) {
  journal.refuseOp = "copy";
  Status status = make().status();
  EXPECT_EQ(status.code(), ExitCode::BadInput);
  EXPECT_EQ(status.message(), "entry 'train_step' command 1 'copy h': copy: the operands are wrong");
}

TEST_F(SessionTest, aMissingKernelIsNamed) {
  artifact::ArtifactT artifact = tinyArtifact();
  artifact.kernels[1]->symbol = "kernel_nowhere";
  EXPECT_EQ(make(std::move(artifact)).status().message(), "kernel module 0 does not hold all of its 3 kernels");
  artifact = tinyArtifact();
  artifact.modules[0]->format = "ptx";
  EXPECT_EQ(make(std::move(artifact)).status().message(),
            "entry 'train_step' command 0 'mul': kernel 0 is not for the machine this artifact targets");
}

TEST_F(SessionTest, anArenaThatCannotBeHadIsNamedAndNothingLeaks) {
  journal.refuseArena = true;
  EXPECT_EQ(make().status().message(), "arena 0 of 1,024 bytes: no memory");
  EXPECT_EQ(journal.arenasFreed, journal.arenaBytes.size());
}
