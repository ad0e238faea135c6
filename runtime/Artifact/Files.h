// File access with the rules every file of ours needs: regular files only, stated size limits, and writes that either
// replace the whole target or leave it as it was.
#pragma once

#include "plimsoll/Support/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

/// Whether the last component of a path may be a symbolic link. Refuse for names that a file (not the user) chose.
enum class Links { Follow, Refuse };

/// A read-only private mapping of a regular file. Movable; unmapped on destruction. Another process that truncates the
/// file while it is mapped ends this one (SIGBUS), as with every mapping.
class MappedFile {
public:
  /// Maps `path`. Fails with BadInput when it is missing, unreadable, not a regular file, or larger than `maxBytes`.
  static Result<MappedFile> open(const std::string &path, uint64_t maxBytes = UINT64_MAX, Links links = Links::Follow);
  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  /// The content; page-aligned. Empty for an empty file.
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte *>(base), size}; }

private:
  MappedFile(void *start, size_t length) : base(start), size(length) {}
  void *base = nullptr;
  size_t size = 0;
};

/// Gives the pages that lie wholly inside `mapped`, part of a file mapping, back to the system; they are read again when touched.
void dropMappedPages(std::span<const std::byte> mapped);

/// Copies out of a file mapping in blocks and drops what was copied, so that at most one block (1 MiB) of the file counts in
/// this process's resident memory. `target` is at least as large as `mapped`.
void copyFromMapping(std::span<const std::byte> mapped, std::span<std::byte> target);

/// The whole content of a regular file, read (not mapped), so that nobody can change it after it was checked. Fails
/// like MappedFile::open, and when the file shrinks while it is read.
Result<std::vector<std::byte>> readFile(const std::string &path, uint64_t maxBytes, Links links = Links::Follow);

/// A file being written beside its final name. commit() makes it durable and puts it in place in one step (fsync,
/// rename, fsync of the folder); without commit(), or after a failure, the target is untouched and the temporary file
/// is removed.
class AtomicFile {
public:
  /// Creates `<path>.tmp<pid>` in the folder of `path`.
  static Result<AtomicFile> create(const std::string &path);
  AtomicFile(AtomicFile &&other) noexcept;
  AtomicFile &operator=(AtomicFile &&) = delete;
  ~AtomicFile();

  /// Appends `bytes`. A full disk is BadInput, with what was written and what to do.
  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text);
  Status commit();

private:
  AtomicFile(std::string target, std::string temporary, int fd);
  Status failure(const char *what, int error);
  void discard();

  std::string targetPath;
  std::string temporaryPath;
  int descriptor = -1;
  uint64_t written = 0;
};

/// `text` in single quotes for a message: control characters as \xNN, at most 120 characters. Names that came from a
/// file go to the terminal only through this.
std::string inQuotes(std::string_view text);

/// True when `name` is one plain file name: not empty, no '/', no NUL or control character, not "." or "..".
bool isPlainFileName(std::string_view name);

/// The folder part of `path` ("." when there is none).
std::string folderOf(const std::string &path);

/// True when `text` is valid UTF-8 (RFC 3629: no overlong forms, no surrogates).
bool isUtf8(std::string_view text);

} // namespace plimsoll
