// Generated kernels: an ELF shared object held in memory, loaded without touching the file system.
#pragma once

#include "runtime/Core/Backend.h"

namespace plimsoll::runtime {

/// A loaded module; unloads it when destroyed.
class KernelModule {
public:
  /// Loads `image` through a memory file. Fails with BadInput when the image is no shared object for this machine.
  static Result<KernelModule> load(std::span<const uint8_t> image);
  KernelModule(KernelModule &&other) noexcept
      : handle(std::exchange(other.handle, nullptr)), file(std::exchange(other.file, -1)) {}
  KernelModule &operator=(KernelModule &&) = delete;
  ~KernelModule();

  /// Finds `symbols` in order. Fails with BadInput naming the first that is missing.
  Result<std::vector<KernelFunction>> find(std::span<const std::string> symbols) const;

private:
  KernelModule(void *loaded, int memoryFile) : handle(loaded), file(memoryFile) {}
  void *handle;
  int file; ///< kept open: dlopen knows a module by its path, and a reused descriptor would name an older one
};

} // namespace plimsoll::runtime
