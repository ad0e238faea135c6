// A read-only, memory-mapped data file of which only a window of stated size is mapped while it is read, so that a
// corpus larger than memory never counts against the process-memory promise. (Dropping pages of a whole mapping is not
// enough: where the page cache holds large folios, one touched byte maps two megabytes; measured, Linux 6.18. A mapping
// cannot reach beyond its window.) Gzip files are inflated once, at open, into an unlinked temporary file and mapped
// like any other.
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
  /// Size of the file at open, in bytes.
  uint64_t fileBytes() const { return size; }

  /// The whole file, for checking it at open. Invalid after useWindow().
  std::span<const std::byte> bytes() const { return {base, mappedSize}; }

  /// From here on at most `wanted` bytes (at least two pages) are mapped at a time.
  void useWindow(uint64_t wanted);
  /// Bytes that may be resident: the window, or the whole file before useWindow().
  uint64_t windowBytes() const;
  /// Largest read that fits any window position.
  uint64_t largestRead() const;

  /// Maps `count` bytes at `offset` (inside the file, count <= largestRead()) and returns them; valid until the next
  /// call. Null when the system refuses the mapping.
  const std::byte *view(uint64_t offset, uint64_t count);

  /// True when both map the same file on disk (device and inode).
  bool sameFile(const DataFile &other) const { return device == other.device && inode == other.inode; }

  /// Fails with BadInput when the file became shorter than the mapping (reading on would raise SIGBUS). Allocates only
  /// on failure.
  Status checkUnchanged() const;

private:
  static Result<DataFile> mapDescriptor(int descriptor, const std::string &path);
  void unmap();

  std::string filePath;
  int descriptor = -1;
  const std::byte *base = nullptr;
  uint64_t mappedBegin = 0; ///< file offset of base
  size_t mappedSize = 0;
  uint64_t size = 0;
  uint64_t window = UINT64_MAX;
  uint64_t device = 0, inode = 0;
};

} // namespace plimsoll::runtime
