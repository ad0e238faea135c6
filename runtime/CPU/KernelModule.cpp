// Loading of generated kernels: see KernelModule.h.
#include "runtime/CPU/KernelModule.h"

#include <dlfcn.h>
#include <elf.h>
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

#if defined(__x86_64__)
static constexpr uint16_t NativeMachine = EM_X86_64;
#elif defined(__aarch64__)
static constexpr uint16_t NativeMachine = EM_AARCH64;
#endif

static Status badModule(std::span<const uint8_t> image, const char *found) {
  return badInput("found a kernel module of " + std::to_string(image.size()) + " bytes that " + found +
                  ", expected an ELF shared object for this machine; compile the model again");
}

/// The loader maps what the program headers say and dies where the image ends early, so they are checked first.
static Status checkImage(std::span<const uint8_t> image) {
  Elf64_Ehdr header;
  if (image.size() < sizeof header || std::memcmp(image.data(), ELFMAG, SELFMAG) != 0)
    return badModule(image, "is no ELF image");
  std::memcpy(&header, image.data(), sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != NativeMachine || header.e_type != ET_DYN)
    return badModule(image, "is for another machine or no shared object");
  const uint64_t tableBytes = uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  const bool tableInside = header.e_phoff <= image.size() && tableBytes <= image.size() - header.e_phoff;
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 || !tableInside)
    return badModule(image, "has no readable program headers");
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, image.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_offset > image.size() || segment.p_filesz > image.size() - segment.p_offset)
      return badModule(image, "ends before its segments do");
  }
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
