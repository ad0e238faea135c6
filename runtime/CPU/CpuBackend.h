// The embedded backend: generated kernels as an ELF shared object, library calls by oneDNN and kernels of our own,
// threads by OpenMP. Commands run at once and in order, so streams and events need no work.
#pragma once

#include "runtime/Core/Backend.h"

#include <memory>

namespace plimsoll::runtime {

struct CpuOptions {
  unsigned threads = 0;          ///< worker threads; 0 = one per processor this process may use
  bool referenceKernels = false; ///< run library calls by the naive reference kernels (the oracle)
};

std::unique_ptr<Backend> createCpuBackend(const CpuOptions &options = {});

/// The workspace bytes that prepare() of a CPU backend with `threads` threads (0 = one per processor) asks for on this
/// machine: exact, made by preparing the call. Fails like prepare().
Result<uint64_t> cpuWorkspaceBytes(const CallSpec &spec, unsigned threads);

} // namespace plimsoll::runtime
