// Opening, checking and mapping data files; gzip through zlib into an unlinked temporary file.
#include "runtime/Data/DataFile.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>
#include <zlib.h>

namespace plimsoll::runtime {
namespace {

/// Windows begin at multiples of this; a multiple of every page size in use on x86-64 and 4 KiB ARM systems.
constexpr uint64_t pageBytes = 4096;

/// Closes a descriptor unless released.
struct DescriptorGuard {
  int descriptor;
  ~DescriptorGuard() {
    if (descriptor >= 0)
      close(descriptor);
  }
  int release() { return std::exchange(descriptor, -1); }
};

bool isGzip(int descriptor) {
  std::array<unsigned char, 2> magic{};
  return pread(descriptor, magic.data(), 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
}

Result<int> unlinkedTemporary(const std::string &path) {
  const char *folder = getenv("TMPDIR");
  std::string name = fmt::format("{}/plimsoll-data-XXXXXX", folder && *folder ? folder : "/tmp");
  int descriptor = mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0)
    return badInput(fmt::format("cannot inflate {}: no temporary file {} ({}); set TMPDIR to a writable folder", path,
                                name, strerror(errno)));
  unlink(name.c_str());
  return descriptor;
}

Status writeAll(int descriptor, const unsigned char *data, size_t bytes, const std::string &path) {
  while (bytes > 0) {
    ssize_t written = write(descriptor, data, bytes);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return badInput(fmt::format("cannot inflate {}: writing the temporary file failed ({}); free space or set TMPDIR",
                                  path, strerror(errno)));
    data += written;
    bytes -= static_cast<size_t>(written);
  }
  return Status::ok();
}

/// Inflates the gzip file behind `source` into `target`. The stream must end where the file ends.
Status inflateInto(int source, int target, const std::string &path) {
  gzFile stream = gzdopen(dup(source), "rb");
  if (!stream)
    return internalError(fmt::format("cannot start inflating {}", path));
  std::vector<unsigned char> block(size_t(1) << 16);
  Status status;
  int got = 0;
  while (status && (got = gzread(stream, block.data(), static_cast<unsigned>(block.size()))) > 0)
    status = writeAll(target, block.data(), static_cast<size_t>(got), path);
  int error = Z_OK;
  if (status && got < 0)
    status = badInput(fmt::format("{} is a damaged gzip file ({}); fetch it again", path, gzerror(stream, &error)));
  int closed = gzclose(stream);
  if (status && closed == Z_BUF_ERROR)
    status = badInput(fmt::format("{} is a truncated gzip file; fetch it again", path));
  return status;
}

} // namespace

DataFile &DataFile::operator=(DataFile &&other) noexcept {
  std::swap(filePath, other.filePath);
  std::swap(descriptor, other.descriptor);
  std::swap(base, other.base);
  std::swap(mappedBegin, other.mappedBegin);
  std::swap(mappedSize, other.mappedSize);
  std::swap(size, other.size);
  std::swap(window, other.window);
  std::swap(device, other.device);
  std::swap(inode, other.inode);
  return *this;
}

DataFile::~DataFile() {
  unmap();
  if (descriptor >= 0)
    close(descriptor);
}

void DataFile::unmap() {
  if (base)
    munmap(const_cast<std::byte *>(base), mappedSize);
  base = nullptr;
  mappedSize = 0;
}

Result<DataFile> DataFile::mapDescriptor(int descriptor, const std::string &path) {
  struct stat info {};
  DataFile file;
  file.filePath = path;
  file.descriptor = descriptor;
  if (fstat(descriptor, &info) != 0)
    return badInput(fmt::format("cannot read {} ({})", path, strerror(errno)));
  if (info.st_size == 0)
    return badInput(fmt::format("{} is empty, expected data", path));
  file.size = static_cast<uint64_t>(info.st_size);
  file.device = info.st_dev;
  file.inode = info.st_ino;
  if (!file.view(0, file.size))
    return badInput(fmt::format("cannot map {} ({})", path, strerror(errno)));
  return file;
}

Result<DataFile> DataFile::open(const std::string &path) {
  DescriptorGuard guard{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (guard.descriptor < 0)
    return badInput(fmt::format("cannot open {} ({})", path, strerror(errno)));
  struct stat info {};
  if (fstat(guard.descriptor, &info) != 0)
    return badInput(fmt::format("cannot read {} ({})", path, strerror(errno)));
  if (S_ISDIR(info.st_mode))
    return badInput(fmt::format("{} is a folder, expected a data file", path));
  if (!S_ISREG(info.st_mode))
    return badInput(fmt::format("{} is not a regular file, expected a data file", path));
  if (!isGzip(guard.descriptor))
    return mapDescriptor(guard.release(), path);
  Result<int> temporary = unlinkedTemporary(path);
  if (!temporary)
    return temporary.status();
  DescriptorGuard inflated{*temporary};
  if (Status status = inflateInto(guard.descriptor, inflated.descriptor, path); !status)
    return status;
  return mapDescriptor(inflated.release(), path);
}

Status DataFile::checkUnchanged() const {
  struct stat info {};
  if (fstat(descriptor, &info) == 0 && static_cast<uint64_t>(info.st_size) >= size)
    return Status::ok();
  return badInput(fmt::format("{} became shorter while it was read ({} bytes at the start); restore it and resume from "
                              "the last checkpoint",
                              filePath, size));
}

void DataFile::useWindow(uint64_t wanted) {
  unmap();
  window = std::max(wanted / pageBytes, uint64_t(2)) * pageBytes;
}

uint64_t DataFile::windowBytes() const { return std::min(window, size); }

uint64_t DataFile::largestRead() const { return window >= size ? size : window - pageBytes; }

const std::byte *DataFile::view(uint64_t offset, uint64_t count) {
  if (base && offset >= mappedBegin && offset + count <= mappedBegin + mappedSize)
    return base + (offset - mappedBegin);
  unmap();
  uint64_t begin = window >= size ? 0 : offset / pageBytes * pageBytes;
  uint64_t length = std::min(window, size - begin);
  void *mapped = mmap(nullptr, length, PROT_READ, MAP_PRIVATE, descriptor, static_cast<off_t>(begin));
  if (mapped == MAP_FAILED)
    return nullptr;
  base = static_cast<const std::byte *>(mapped);
  mappedBegin = begin;
  mappedSize = length;
  return base + (offset - begin);
}

} // namespace plimsoll::runtime
