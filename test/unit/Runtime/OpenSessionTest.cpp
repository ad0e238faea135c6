// Session::open from files, on the real CPU backend: an artifact with ELF kernels and a oneDNN matmul trains a step,
// and allocates nothing while it does. Then the ways opening is refused.
#include "plimsoll/Runtime/Session.h"
#include "runtime/Artifact/Hash.h"
#include "runtime/Artifact/RuntimeBytes.h"
#include "runtime/Artifact/Writer.h"
#include "runtime/CPU/CpuBackend.h"
#include "runtime/Core/SafeTensors.h"
#include "test/unit/Runtime/AllocationCounter.h"
#include "test/unit/Runtime/TinyArtifact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

using namespace plimsoll;
using namespace plimsoll::runtime;
using namespace plimsoll::test;
using artifact::DType;
using testing::HasSubstr;

namespace {

/// The tiny artifact with its kernels compiled and its "sum" replaced by dot(kept [1,4], two [4,1]).
class OpenSessionTest : public testing::Test {
protected:
  void SetUp() override {
    static const float weights[] = {10, 20, 30, 40};
    NamedTensor tensor{"layer.w", DType::F32, {4}, std::as_bytes(std::span(weights))};
    ASSERT_TRUE(writeSafeTensors(folder.path("tiny.safetensors"), std::span(&tensor, 1)));
    content.provenance->weights_hash = *hashFile(folder.path("tiny.safetensors"));
    std::string image = slurp(PLIMSOLL_TINY_KERNELS);
    content.modules[0]->data.assign(image.begin(), image.end());
    replaceSum();
  }

  void replaceSum() {
    artifact::EntryT &entry = *content.plans[0]->entries[0];
    artifact::LibraryCallT &call = *entry.commands[8]->body.AsLibraryCall();
    call.op = "dot";
    auto workspace = std::move(call.operands[2]);
    call.operands[0]->view = makeView(Kept, DType::F32, {1, 4});
    call.operands[1]->view = makeView(Loss, DType::F32, {1, 1});
    auto two = std::make_unique<artifact::OperandT>();
    two->view = makeView(Two, DType::F32, {4, 1});
    call.operands.pop_back();
    call.operands.insert(call.operands.begin() + 1, std::move(two));
    planWorkspace(entry, call, std::move(workspace));
    artifact::MemoryT &memory = *content.plans[0]->memory;
    memory.runtime_bytes = artifact::runtimeBytes(*content.plans[0]);
    memory.arena_bytes = content.plans[0]->arenas[0]->bytes + 64;
    memory.training_bytes = memory.arena_bytes + memory.runtime_bytes;
    content.plans[0]->budget_bytes = 0;
  }

  /// Scratch as large as the backend asks for, at the end of the device arena.
  void planWorkspace(artifact::EntryT &entry, artifact::LibraryCallT &call,
                     std::unique_ptr<artifact::OperandT> workspace) {
    CallSpec spec{call.op, {}, {}};
    for (const auto &operand : call.operands)
      spec.operands.push_back({operand->view->dtype, operand->view->shape, operand->view->strides, operand->access});
    Result<uint64_t> bytes = cpuWorkspaceBytes(spec, 2);
    ASSERT_TRUE(bytes) << bytes.status().message();
    uint64_t planned = std::max<uint64_t>((*bytes + 63) / 64 * 64, 64);
    workspace->view = makeView(Scratch, DType::U8, {static_cast<int64_t>(planned)});
    call.workspace = static_cast<int32_t>(call.operands.size());
    call.operands.push_back(std::move(workspace));
    entry.buffers[Scratch - 4]->bytes = planned;
    entry.peak_bytes = 576 + planned;
    content.plans[0]->arenas[0]->bytes = 576 + planned;
  }

  Result<std::unique_ptr<Session>> open() {
    Status written = writeArtifact(folder.path("tiny.plim"), content);
    EXPECT_TRUE(written) << written.message();
    return Session::open(folder.path("tiny.plim"));
  }

  TemporaryFolder folder;
  artifact::ArtifactT content = tinyArtifact();
};

float first(std::span<const std::byte> bytes) {
  float value = 0;
  memcpy(&value, bytes.data(), sizeof value);
  return value;
}

} // namespace

TEST_F(OpenSessionTest, trainsAStepWithoutAllocating) {
  auto session = open();
  ASSERT_TRUE(session) << session.status().message();
  Status status = (*session)->initialize();
  ASSERT_TRUE(status) << status.message();
  const float x[] = {1, 2, 3, 4}, lr = 0.5f;
  memcpy((*session)->input("train_step", "x")->data(), x, sizeof x);
  memcpy((*session)->input("train_step", "lr")->data(), &lr, sizeof lr);
  status = (*session)->run("train_step");
  ASSERT_TRUE(status) << status.message();
  // t2 = x*w + 2 = 12 42 92 162; loss = 2 * their sum; w -= lr*t2
  EXPECT_EQ(first(*(*session)->output("train_step", "loss")), 616.0f);
  EXPECT_EQ(first((*session)->variable(0)), 4.0f);
  MemoryReport memory = (*session)->memory();
  EXPECT_EQ(memory.arenaBytes, content.plans[0]->memory->arena_bytes);
  EXPECT_EQ(memory.runtimeBytes, content.plans[0]->memory->runtime_bytes);
  if (!AllocationCounter::available())
    GTEST_SKIP() << "allocations cannot be counted under this sanitizer";
  AllocationCounter counter;
  for (int step = 0; step < 5; ++step)
    status = (*session)->run("train_step");
  EXPECT_EQ(counter.stop(), 0u);
  EXPECT_TRUE(status) << status.message();
}

TEST_F(OpenSessionTest, refusesAnotherTarget) {
  content.target->kind = "tpu";
  Status status = open().status();
  EXPECT_EQ(status.code(), ExitCode::VersionMismatch);
  EXPECT_THAT(status.message(), HasSubstr("tiny.plim': the artifact is for the target 'tpu', this program runs cpu"));
}

TEST_F(OpenSessionTest, refusesAnotherMachineBeforeMappingItsCode) {
  content.target->triple = "riscv64-unknown-linux-gnu";
  content.modules[0]->data = {1, 2, 3};
  Status status = open().status();
  EXPECT_EQ(status.code(), ExitCode::VersionMismatch);
  EXPECT_THAT(status.message(), HasSubstr("the artifact is for 'riscv64', this machine is"));
}

TEST_F(OpenSessionTest, refusesADamagedKernelModule) {
  content.modules[0]->data = {1, 2, 3};
  Status status = open().status();
  EXPECT_EQ(status.code(), ExitCode::BadInput);
  EXPECT_THAT(status.message(), HasSubstr("tiny.plim': kernel module 0: "));
}

TEST_F(OpenSessionTest, refusesADamagedFileNamingIt) {
  spill(folder.path("tiny.plim"), "PLIMPLIMPLIM");
  Status status = Session::open(folder.path("tiny.plim")).status();
  EXPECT_EQ(status.code(), ExitCode::BadInput);
  EXPECT_THAT(status.message(), HasSubstr("tiny.plim': A1: "));
}
