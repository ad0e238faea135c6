// bench-step-times ARTIFACT [ENTRY] [RUNS]: how long each command of an entry takes here: the least of RUNS runs, one
// line a command (position, name, seconds). Inputs are zero and variables as initialize() leaves them, so it
// needs no data. An artifact of one thread is timed in processor time, which other programs disturb less. What the cost
// model predicts is compared with this by cost_accuracy.py.
#include "runtime/Artifact/Reader.h"
#include "runtime/CPU/CpuBackend.h"
#include "runtime/Core/SessionCore.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

using namespace plimsoll;
using namespace plimsoll::runtime;

namespace {
/// Passes everything on and notes how long each command took.
class TimingBackend final : public Backend {
public:
  TimingBackend(std::unique_ptr<Backend> backend, clockid_t chosen, std::vector<double> &notes)
      : inner(std::move(backend)), clock(chosen), seconds(notes) {}

  std::string_view name() const override { return inner->name(); }
  Result<void *> allocateArena(artifact::Tier tier, uint64_t bytes, uint32_t alignment) override {
    return inner->allocateArena(tier, bytes, alignment);
  }
  void freeArena(void *base) override { inner->freeArena(base); }
  Result<std::vector<KernelFunction>> loadModule(std::span<const uint8_t> image,
                                                 std::span<const std::string> symbols) override {
    return inner->loadModule(image, symbols);
  }
  Result<std::unique_ptr<PreparedCall>> prepare(const CallSpec &spec) override { return inner->prepare(spec); }
  void launch(KernelFunction kernel, std::span<void *const> operands, int64_t extent, int64_t grain,
              unsigned stream) override {
    timed([&] { inner->launch(kernel, operands, extent, grain, stream); });
  }
  void execute(PreparedCall &call, std::span<void *const> operands, void *workspace, unsigned stream) override {
    timed([&] { inner->execute(call, operands, workspace, stream); });
  }
  void copy(void *target, const void *source, uint64_t bytes, unsigned stream) override {
    timed([&] { inner->copy(target, source, bytes, stream); });
  }
  void recordEvent(unsigned event, unsigned stream) override { inner->recordEvent(event, stream); }
  void waitEvent(unsigned event, unsigned stream) override { inner->waitEvent(event, stream); }
  Status synchronize() override { return inner->synchronize(); }
  bool runsInOrder() const override { return inner->runsInOrder(); }

private:
  template <typename Command> void timed(Command command) {
    double start = now();
    command();
    seconds.push_back(now() - start);
  }
  double now() const {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  std::unique_ptr<Backend> inner;
  clockid_t clock;
  std::vector<double> &seconds;
};
} // namespace

static int fail(const Status &status) {
  std::fprintf(stderr, "bench-step-times: %s\n", status.message().c_str());
  return static_cast<int>(status.code());
}

static std::string nameOf(const artifact::ArtifactT &content, const artifact::EntryT &entry, size_t index) {
  const artifact::CommandT &command = *entry.commands[index];
  if (const auto *launch = command.body.AsLaunch())
    return content.kernels[launch->kernel]->symbol;
  const auto *call = command.body.AsLibraryCall();
  return call ? call->op : "copy";
}

int main(int argc, char **argv) {
  if (argc < 2 || argc > 4)
    return fail({ExitCode::Usage, "usage: bench-step-times ARTIFACT [ENTRY] [RUNS]"});
  std::string entryName = argc > 2 ? argv[2] : "train_step";
  int runs = argc > 3 ? std::max(1, std::atoi(argv[3])) : 5;
  Result<artifact::ArtifactT> content = readArtifact(argv[1]);
  if (!content)
    return fail(content.status());
  CpuOptions cpu;
  cpu.threads = content->target->threads;
  std::vector<double> seconds;
  clockid_t clock = cpu.threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  auto backend = std::make_unique<TimingBackend>(createCpuBackend(cpu), clock, seconds);
  auto session = makeSession(std::move(*content), std::move(backend), {argv[1], {}});
  if (!session)
    return fail(session.status());
  if (Status status = (*session)->initialize(); !status)
    return fail(status);
  const artifact::EntryT *entry = (*session)->entry(entryName);
  if (!entry)
    return fail({ExitCode::Usage, "no entry '" + entryName + "'"});
  std::vector<double> least(entry->commands.size(), 1e30);
  for (int run = 0; run < runs; ++run) {
    for (const auto &port : entry->inputs) // their room is used again within a run
      if (auto bytes = (*session)->input(entryName, port->name))
        std::fill(bytes->begin(), bytes->end(), std::byte{0});
    seconds.clear();
    if (Status status = (*session)->run(entryName); !status)
      return fail(status);
    for (size_t i = 0; i < std::min(least.size(), seconds.size()); ++i)
      least[i] = std::min(least[i], seconds[i]);
  }
  for (size_t i = 0; i < least.size(); ++i)
    std::printf("%zu\t%s\t%.9f\n", i, nameOf((*session)->artifact(), *entry, i).c_str(), least[i]);
  return 0;
}
