// The fake backend. Nothing here allocates between load and destruction except the fault text.
#include "test/unit/Runtime/FakeBackend.h"

#include <cstdlib>
#include <cstring>

namespace plimsoll::test {

using namespace runtime;

static float *floats(void *const *operands, size_t i) { return static_cast<float *>(operands[i]); }

static void mulKernel(void *const *operands, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    floats(operands, 2)[i] = floats(operands, 0)[i] * floats(operands, 1)[i];
}

static void addKernel(void *const *operands, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    floats(operands, 2)[i] = floats(operands, 0)[i] + floats(operands, 1)[i];
}

static void sgdKernel(void *const *operands, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    floats(operands, 0)[i] -= *floats(operands, 3) * floats(operands, 2)[i];
    floats(operands, 1)[i] += floats(operands, 2)[i];
  }
}

namespace {

class FakeCall final : public PreparedCall {
public:
  FakeCall(CallSpec described, FakeJournal &notes) : spec(std::move(described)), journal(notes) {}
  const std::string &op() const { return spec.op; }
  uint64_t workspaceBytes() const override { return spec.op == "sum" ? journal.sumWorkspace : 0; }
  void execute(std::span<void *const> operands, void *workspace) override {
    auto count = static_cast<size_t>(spec.operands[0].shape[0]);
    if (spec.op == "copy")
      memcpy(operands[1], operands[0], count * sizeof(float));
    if (spec.op != "sum")
      return;
    auto *partial = static_cast<float *>(workspace);
    *partial = 0;
    for (size_t i = 0; i < count; ++i)
      *partial += floats(operands.data(), 0)[i];
    *floats(operands.data(), 1) = *partial;
  }

private:
  CallSpec spec;
  FakeJournal &journal;
};

class FakeBackend final : public Backend {
public:
  explicit FakeBackend(FakeJournal &notes) : journal(notes) {}
  std::string_view name() const override { return "fake"; }

  Result<void *> allocateArena(artifact::Tier, uint64_t bytes, uint32_t alignment) override {
    void *base = journal.refuseArena ? nullptr : std::aligned_alloc(alignment, bytes);
    if (!base)
      return badInput("no memory");
    journal.arenaBytes.push_back(bytes);
    memset(base, 0, bytes);
    return base;
  }
  void freeArena(void *base) override {
    ++journal.arenasFreed;
    std::free(base);
  }
  Result<std::vector<KernelFunction>> loadModule(std::span<const uint8_t> image,
                                                 std::span<const std::string> symbols) override {
    std::vector<KernelFunction> kernels;
    for (const std::string &symbol : symbols) {
      journal.loaded.push_back(symbol);
      kernels.push_back(symbol == "kernel_mul"   ? mulKernel
                        : symbol == "kernel_add" ? addKernel
                        : symbol == "kernel_sgd" ? sgdKernel
                                                 : nullptr);
    }
    return kernels;
  }
  Result<std::unique_ptr<PreparedCall>> prepare(const CallSpec &spec) override {
    if (spec.op == journal.refuseOp)
      return badInput("the operands are wrong");
    return std::unique_ptr<PreparedCall>(std::make_unique<FakeCall>(spec, journal));
  }
  void launch(KernelFunction kernel, std::span<void *const> operands, int64_t extent, int64_t grain,
              unsigned) override {
    ++journal.launches;
    for (int64_t begin = 0; begin < extent; begin += grain)
      kernel(operands.data(), begin, std::min(begin + grain, extent));
  }
  void execute(PreparedCall &call, std::span<void *const> operands, void *workspace, unsigned) override {
    ++journal.calls;
    call.execute(operands, workspace);
    faulted |= static_cast<FakeCall &>(call).op() == journal.faultOp;
  }
  void copy(void *target, const void *source, uint64_t bytes, unsigned) override {
    ++journal.copies;
    memcpy(target, source, bytes);
  }
  void recordEvent(unsigned, unsigned) override { ++journal.records; }
  void waitEvent(unsigned, unsigned) override { ++journal.waits; }
  Status synchronize() override {
    ++journal.synchronizations;
    return std::exchange(faulted, false) ? badInput("index 300 out of range [-256, 256) in gather") : Status::ok();
  }
  bool runsInOrder() const override { return journal.inOrder; }

private:
  FakeJournal &journal;
  bool faulted = false;
};

} // namespace

std::unique_ptr<Backend> createFakeBackend(FakeJournal &journal) { return std::make_unique<FakeBackend>(journal); }

} // namespace plimsoll::test
