// The CPU backend: see CpuBackend.h.
#include "runtime/CPU/CpuBackend.h"

#include "runtime/CPU/CpuCalls.h"
#include "runtime/CPU/Dnnl.h"
#include "runtime/CPU/KernelModule.h"
#include "runtime/CPU/Threads.h"
#include "runtime/Kernels/Reference.h"

#include "plimsoll/Support/Units.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace plimsoll::runtime {

static constexpr uint64_t HugePage = uint64_t{2} << 20;
static constexpr int64_t ChunksPerThread = 4;

static unsigned threadCount(unsigned asked) { return asked ? asked : static_cast<unsigned>(omp_get_num_procs()); }

namespace {

class CpuBackend final : public Backend {
public:
  explicit CpuBackend(const CpuOptions &options)
      : threads(threadCount(options.threads)), reference(options.referenceKernels) {}

  std::string_view name() const override { return "cpu"; }

  Result<void *> allocateArena(artifact::Tier tier, uint64_t bytes, uint32_t alignment) override;
  void freeArena(void *base) override { std::free(base); }
  Result<std::vector<KernelFunction>> loadModule(std::span<const uint8_t> image,
                                                 std::span<const std::string> symbols) override;
  Result<CallPointer> prepare(const CallSpec &spec) override;

  void launch(KernelFunction kernel, Operands operands, int64_t extent, int64_t grain, unsigned) override;
  void execute(PreparedCall &call, Operands operands, void *workspace, unsigned) override {
    call.execute(operands, workspace);
  }
  void copy(void *target, const void *source, uint64_t bytes, unsigned) override;
  void recordEvent(unsigned, unsigned) override {}
  void waitEvent(unsigned, unsigned) override {}
  Status synchronize() override { return faults.take(); }

private:
  unsigned threads;
  bool reference;
  DnnlEngine dnnl;
  FaultCell faults;
  std::vector<KernelModule> modules;
};

} // namespace

/// One allocation, touched here so that a machine without the memory fails now and not in the middle of a step.
Result<void *> CpuBackend::allocateArena(artifact::Tier tier, uint64_t bytes, uint32_t alignment) {
  if (tier == artifact::Tier::Disk)
    return Status(ExitCode::Unsupported,
                  "found an arena on disk, expected device or host: the cpu backend has no disk tier");
  const uint64_t memory = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (bytes > memory)
    return Status(ExitCode::DoesNotFit, "found an arena of " + groupedDigits(bytes) + " bytes, but this machine has " +
                                            groupedDigits(memory) + " bytes of memory; compile for a smaller budget");
  const uint64_t atLeast = std::max<uint64_t>({alignment, 64, bytes >= HugePage ? HugePage : 64});
  const uint64_t size = alignUp(std::max<uint64_t>(bytes, 1), atLeast);
  void *base = (alignment & (alignment - 1)) == 0 ? std::aligned_alloc(atLeast, size) : nullptr;
  if (!base)
    return Status(ExitCode::DoesNotFit, "cannot allocate an arena of " + groupedDigits(bytes) + " bytes aligned to " +
                                            std::to_string(alignment) +
                                            "; free memory or compile for a smaller budget");
  if (bytes >= HugePage)
    madvise(base, size, MADV_HUGEPAGE);
  char *begin = static_cast<char *>(base);
  parallelRange(threads, static_cast<int64_t>(size), HugePage,
                [&](int64_t from, int64_t to) { std::memset(begin + from, 0, static_cast<size_t>(to - from)); });
  return base;
}

Result<std::vector<KernelFunction>> CpuBackend::loadModule(std::span<const uint8_t> image,
                                                           std::span<const std::string> symbols) {
  Result<KernelModule> module = KernelModule::load(image);
  if (!module)
    return module.status();
  auto functions = module->find(symbols);
  if (functions)
    modules.push_back(std::move(*module));
  return functions;
}

Result<CallPointer> CpuBackend::prepare(const CallSpec &spec) {
  if (reference)
    return prepareReference(spec, &faults);
  return prepareCpuCall(spec, {threads, &faults, &dnnl, &tileKernels()});
}

void CpuBackend::launch(KernelFunction kernel, Operands operands, int64_t extent, int64_t grain, unsigned) {
  grain = std::max<int64_t>(grain, 1);
  const int64_t grains = (extent + grain - 1) / grain;
  if (threads <= 1 || grains <= 1)
    return kernel(operands.data(), 0, extent);
  const int64_t chunks = std::min<int64_t>(grains, threads * ChunksPerThread);
  parallelTasks(threads, chunks, [&](int64_t chunk, int) {
    const int64_t begin = grains * chunk / chunks * grain, end = grains * (chunk + 1) / chunks * grain;
    kernel(operands.data(), begin, std::min(end, extent));
  });
}

void CpuBackend::copy(void *target, const void *source, uint64_t bytes, unsigned) {
  parallelRange(threads, static_cast<int64_t>(bytes), 65536, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char *>(target) + begin, static_cast<const char *>(source) + begin,
                static_cast<size_t>(end - begin));
  });
}

std::unique_ptr<Backend> createCpuBackend(const CpuOptions &options) { return std::make_unique<CpuBackend>(options); }

Result<uint64_t> cpuWorkspaceBytes(const CallSpec &spec, unsigned threads) {
  static DnnlEngine dnnl;
  FaultCell faults;
  Result<CallPointer> call = prepareCpuCall(spec, {threadCount(threads), &faults, &dnnl, &tileKernels()});
  if (!call)
    return call.status();
  return (*call)->workspaceBytes();
}

} // namespace plimsoll::runtime
