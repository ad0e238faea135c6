// File access on POSIX. Files are opened non-blocking first so that a FIFO in place of a model cannot hang the tool.
#include "runtime/Artifact/Files.h"

#include "plimsoll/Support/Units.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace plimsoll {

static constexpr size_t kChunk = size_t{1} << 26; // bytes per read(2) or write(2): progress is known at this grain

static Status openFailure(const std::string &path, int error) {
  std::string why = error == ELOOP ? "it is a symbolic link; put the file itself there" : strerror(error);
  return badInput("cannot open " + inQuotes(path) + ": " + why);
}

/// Opens a regular file of at most `maxBytes` for reading; gives its size.
static Result<std::pair<int, uint64_t>> openRegular(const std::string &path, uint64_t maxBytes, Links links) {
  int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (links == Links::Refuse ? O_NOFOLLOW : 0);
  int fd = ::open(path.c_str(), flags);
  if (fd < 0)
    return openFailure(path, errno);
  struct stat info;
  std::string problem;
  if (fstat(fd, &info) != 0)
    problem = std::string("cannot be examined: ") + strerror(errno);
  else if (!S_ISREG(info.st_mode))
    problem = S_ISDIR(info.st_mode) ? "is a folder, expected a file" : "is not a regular file";
  else if (static_cast<uint64_t>(info.st_size) > maxBytes)
    problem = "has " + groupedDigits(static_cast<uint64_t>(info.st_size)) + " bytes, at most " +
              groupedDigits(maxBytes) + " are accepted";
  if (!problem.empty()) {
    close(fd);
    return badInput(inQuotes(path) + " " + problem);
  }
  return std::pair<int, uint64_t>{fd, static_cast<uint64_t>(info.st_size)};
}

Result<MappedFile> MappedFile::open(const std::string &path, uint64_t maxBytes, Links links) {
  auto opened = openRegular(path, maxBytes, links);
  if (!opened)
    return opened.status();
  auto [fd, size] = *opened;
  if (size == 0) {
    close(fd);
    return MappedFile(nullptr, 0);
  }
  void *base = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  int error = errno;
  close(fd);
  if (base == MAP_FAILED)
    return badInput("cannot map " + inQuotes(path) + ": " + strerror(error));
  return MappedFile(base, size);
}

Result<std::vector<std::byte>> readFile(const std::string &path, uint64_t maxBytes, Links links) {
  auto opened = openRegular(path, maxBytes, links);
  if (!opened)
    return opened.status();
  auto [fd, size] = *opened;
  std::vector<std::byte> content(size);
  size_t done = 0;
  ssize_t count = 1;
  while (done < size && count != 0) {
    count = ::read(fd, content.data() + done, std::min(size - done, uint64_t{kChunk}));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      break;
    done += static_cast<size_t>(count);
  }
  int error = errno;
  close(fd);
  if (count < 0)
    return badInput("cannot read " + inQuotes(path) + ": " + strerror(error));
  if (done < size)
    return badInput(inQuotes(path) + " became shorter while it was read");
  return content;
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : base(std::exchange(other.base, nullptr)), size(std::exchange(other.size, 0)) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(base, other.base);
  std::swap(size, other.size);
  return *this;
}

MappedFile::~MappedFile() {
  if (base)
    munmap(base, size);
}

void dropMappedPages(std::span<const std::byte> mapped) {
  auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto begin = (reinterpret_cast<uintptr_t>(mapped.data()) + page - 1) / page * page;
  auto end = (reinterpret_cast<uintptr_t>(mapped.data()) + mapped.size()) / page * page;
  if (begin < end)
    madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
}

void copyFromMapping(std::span<const std::byte> mapped, std::span<std::byte> target) {
  constexpr size_t block = size_t{1} << 20;
  for (size_t at = 0; at < mapped.size(); at += block) {
    size_t bytes = std::min(block, mapped.size() - at);
    memcpy(target.data() + at, mapped.data() + at, bytes);
    dropMappedPages(mapped.subspan(at, bytes));
  }
}

AtomicFile::AtomicFile(std::string target, std::string temporary, int fd)
    : targetPath(std::move(target)), temporaryPath(std::move(temporary)), descriptor(fd) {}

AtomicFile::AtomicFile(AtomicFile &&other) noexcept
    : targetPath(std::move(other.targetPath)), temporaryPath(std::exchange(other.temporaryPath, {})),
      descriptor(std::exchange(other.descriptor, -1)), written(other.written) {}

AtomicFile::~AtomicFile() { discard(); }

Result<AtomicFile> AtomicFile::create(const std::string &path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    return badInput("cannot write " + inQuotes(path) + ": it is a folder");
  std::string temporary = path + ".tmp" + std::to_string(getpid());
  unlink(temporary.c_str()); // left over from a process of the same number that was killed
  int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0)
    return badInput("cannot create " + inQuotes(temporary) + ": " + strerror(errno));
  return AtomicFile(path, temporary, fd);
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::write(descriptor, bytes.data(), std::min(bytes.size(), kChunk));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return failure("write", errno);
    if (count == 0)
      return failure("write", ENOSPC);
    written += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return Status::ok();
}

Status AtomicFile::write(std::string_view text) { return write(std::as_bytes(std::span(text))); }

Status AtomicFile::commit() {
  if (fsync(descriptor) != 0)
    return failure("sync", errno);
  if (close(std::exchange(descriptor, -1)) != 0)
    return failure("close", errno);
  if (rename(temporaryPath.c_str(), targetPath.c_str()) != 0)
    return failure("rename", errno);
  temporaryPath.clear();
  int folder = ::open(folderOf(targetPath).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return Status::ok(); // the file is in place; a folder that cannot be read cannot be synced
  fsync(folder);         // some file systems refuse this on folders; the rename itself has succeeded
  close(folder);
  return Status::ok();
}

/// Removes the temporary file and says what happened to `targetPath`.
Status AtomicFile::failure(const char *what, int error) {
  discard();
  std::string text = std::string("cannot ") + what + " " + inQuotes(targetPath) + " after " + groupedDigits(written) +
                     " bytes: " + strerror(error) + "; a file already under this name is untouched";
  if (error == ENOSPC || error == EDQUOT || error == EFBIG)
    text += "; free some space or choose another folder";
  return badInput(std::move(text));
}

void AtomicFile::discard() {
  if (descriptor >= 0)
    close(std::exchange(descriptor, -1));
  if (!temporaryPath.empty())
    unlink(temporaryPath.c_str());
  temporaryPath.clear();
}

std::string inQuotes(std::string_view text) {
  static constexpr size_t kLimit = 120;
  std::string result = "'";
  for (char c : text.substr(0, kLimit)) {
    auto byte = static_cast<unsigned char>(c);
    char escape[5];
    snprintf(escape, sizeof escape, "\\x%02x", byte);
    bool control = byte < 0x20 || byte == 0x7f;
    result += control ? std::string(escape) : std::string(1, c);
  }
  return result + (text.size() > kLimit ? "…'" : "'");
}

bool isPlainFileName(std::string_view name) {
  auto unsafe = [](char c) { return c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         std::none_of(name.begin(), name.end(), unsafe);
}

std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Length of the UTF-8 sequence that starts `text`, 0 when it is malformed.
static size_t utf8Length(std::string_view text) {
  auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char lead = at(0);
  if (lead < 0x80)
    return 1;
  size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length)
    return 0;
  for (size_t i = 1; i < length; ++i)
    if ((at(i) & 0xc0) != 0x80)
      return 0;
  unsigned char second = at(1);
  bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  bool outside = (lead == 0xed && second >= 0xa0) || (lead == 0xf4 && second >= 0x90);
  return overlong || outside ? 0 : length;
}

bool isUtf8(std::string_view text) {
  while (!text.empty()) {
    size_t length = utf8Length(text);
    if (length == 0)
      return false;
    text.remove_prefix(length);
  }
  return true;
}

} // namespace plimsoll
