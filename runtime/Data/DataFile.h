// A read-only, memory-mapped data file whose resident pages can be dropped again, so that a corpus larger than memory
// never counts against the process-memory promise. Gzip files are inflated once, at open, into an unlinked temporary
// file and mapped like any other.
#pragma once

#include "plimsoll/Support/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace plimsoll::runtime {

/// Owns one mapping. Movable; not thread-safe.
class DataFile {
public:
  /// Maps `path`. Fails with BadInput when it is missing, not a regular file, empty, or (gzip) damaged.
  static Result<DataFile> open(const std::string &path);

  DataFile() = default;
  DataFile(DataFile &&other) noexcept { *this = std::move(other); }
  DataFile &operator=(DataFile &&other) noexcept;
  ~DataFile();

  const std::string &path() const { return filePath; }
  std::span<const std::byte> bytes() const { return {base, size}; }

  /// True when both map the same file on disk (device and inode).
  bool sameFile(const DataFile &other) const { return device == other.device && inode == other.inode; }

  /// Fails with BadInput when the file became shorter than the mapping (reading on would raise SIGBUS). Allocates only
  /// on failure.
  Status checkUnchanged() const;

  /// Drops the mapping's pages from this process; they stay in the system's page cache.
  void dropPages() const;

private:
  static Result<DataFile> mapDescriptor(int descriptor, const std::string &path);

  std::string filePath;
  int descriptor = -1;
  const std::byte *base = nullptr;
  size_t size = 0;
  uint64_t device = 0, inode = 0;
};

} // namespace plimsoll::runtime
