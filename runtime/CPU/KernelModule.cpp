// Loading of generated kernels: see KernelModule.h.
#include "runtime/CPU/KernelModule.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace plimsoll::runtime {

/// Writes all of `image`, however many writes that takes.
static bool writeImage(int file, std::span<const uint8_t> image) {
  while (!image.empty()) {
    const ssize_t written = write(file, image.data(), image.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    image = image.subspan(static_cast<size_t>(written));
  }
  return true;
}

static Status checkImage(std::span<const uint8_t> image) {
  static constexpr uint8_t magic[4] = {0x7f, 'E', 'L', 'F'};
  if (image.size() < 64 || std::memcmp(image.data(), magic, sizeof magic) != 0)
    return badInput("found a kernel module of " + std::to_string(image.size()) +
                    " bytes that is no ELF image, expected an ELF shared object; compile the model again");
  return Status::ok();
}

Result<KernelModule> KernelModule::load(std::span<const uint8_t> image) {
  if (Status status = checkImage(image); !status)
    return status;
  const int file = memfd_create("plimsoll-kernels", MFD_CLOEXEC);
  if (file < 0)
    return internalError(std::string("cannot create a memory file for the kernels: ") + std::strerror(errno));
  if (!writeImage(file, image)) {
    const int reason = errno;
    close(file);
    return internalError("cannot hold " + std::to_string(image.size()) +
                         " bytes of kernels in memory: " + std::strerror(reason));
  }
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle)
    return KernelModule(handle, file);
  const char *reason = dlerror();
  close(file);
  return badInput(std::string("cannot load the kernel module: ") + (reason ? reason : "unknown reason") +
                  "; expected a shared object for this machine, compile the model again");
}

KernelModule::~KernelModule() {
  if (handle)
    dlclose(handle);
  if (file >= 0)
    close(file);
}

Result<std::vector<KernelFunction>> KernelModule::find(std::span<const std::string> symbols) const {
  std::vector<KernelFunction> functions;
  functions.reserve(symbols.size());
  for (const std::string &symbol : symbols) {
    void *address = dlsym(handle, symbol.c_str());
    if (!address)
      return badInput("found no kernel '" + symbol + "' in the kernel module, expected it; compile the model again");
    functions.push_back(reinterpret_cast<KernelFunction>(address));
  }
  return functions;
}

} // namespace plimsoll::runtime
