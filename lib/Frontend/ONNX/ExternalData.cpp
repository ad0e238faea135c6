// The hardened external-data loader. Each path component is opened with openat(O_NOFOLLOW) relative to the folder
// before it; the final file must be regular and have one link, so a second hard link to a secret is refused too.
#include "lib/Frontend/ONNX/ExternalData.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace plimsoll::onnx {

namespace {
/// Closes a descriptor at scope end.
struct Descriptor {
  int fd = -1;
  explicit Descriptor(int value) : fd(value) {}
  Descriptor(Descriptor &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Descriptor() {
    if (fd >= 0)
      close(fd);
  }
};

Status refuse(const std::string &tensor, const std::string &why) {
  return badInput("external data of tensor '" + tensor + "': " + why);
}

Result<std::shared_ptr<MappedFile>> mapDescriptor(int fd, uint64_t size, const std::string &name) {
  auto file = std::make_shared<MappedFile>();
  if (size == 0)
    return file;
  void *memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (memory == MAP_FAILED)
    return badInput("cannot map '" + name + "': " + std::strerror(errno));
  file->bytes = {static_cast<const std::byte *>(memory), size};
  return file;
}

/// A decimal number without sign, spaces or overflow.
bool parseNumber(const std::string &text, uint64_t &value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

/// Splits a relative location into components; fails on anything that is not plainly below the folder.
Result<std::vector<std::string>> components(const std::string &tensor, const std::string &location) {
  if (location.empty() || location.find('\0') != std::string::npos)
    return refuse(tensor, "found an empty or malformed location, expected a file name beside the model");
  if (location[0] == '/' || location[0] == '\\' || (location.size() > 1 && location[1] == ':'))
    return refuse(tensor, "location '" + location + "' is absolute, expected a path inside the model's folder");
  std::vector<std::string> parts;
  for (size_t at = 0; at <= location.size();) {
    size_t end = std::min(location.find_first_of("/\\", at), location.size());
    std::string part = location.substr(at, end - at);
    if (part == "..")
      return refuse(tensor, "location '" + location + "' leaves the model's folder, expected a path inside it");
    if (!part.empty() && part != ".")
      parts.push_back(std::move(part));
    at = end + 1;
  }
  if (parts.empty())
    return refuse(tensor, "location '" + location + "' names no file");
  return parts;
}
} // namespace

MappedFile::~MappedFile() {
  if (!bytes.empty())
    munmap(const_cast<std::byte *>(bytes.data()), bytes.size());
}

Result<std::shared_ptr<MappedFile>> mapUserFile(const std::string &path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (file.fd < 0 || fstat(file.fd, &info) != 0)
    return badInput("cannot open '" + path + "': " + std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return badInput("'" + path + "' is not a regular file, expected a model file");
  return mapDescriptor(file.fd, static_cast<uint64_t>(info.st_size), path);
}

Result<std::shared_ptr<MappedFile>> ExternalData::open(const std::string &tensor, const std::string &location) {
  Result<std::vector<std::string>> parts = components(tensor, location);
  if (!parts)
    return parts.status();
  std::string key;
  for (const std::string &part : *parts)
    key += "/" + part;
  if (auto known = mapped.find(key); known != mapped.end())
    return known->second;
  Descriptor at(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (size_t i = 0; i < parts->size() && at.fd >= 0; ++i) {
    int kind = i + 1 < parts->size() ? O_DIRECTORY : O_NONBLOCK;
    at = Descriptor(openat(at.fd, (*parts)[i].c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind));
  }
  if (at.fd < 0)
    return refuse(tensor, errno == ELOOP || errno == EMLINK || errno == ENOTDIR
                              ? "location '" + location +
                                    "' goes through a symbolic link or a file that is no folder, expected plain "
                                    "folders and a regular file"
                              : "cannot open location '" + location + "': " + std::strerror(errno));
  struct stat info {};
  if (fstat(at.fd, &info) != 0 || !S_ISREG(info.st_mode))
    return refuse(tensor, "location '" + location + "' is not a regular file");
  if (info.st_nlink > 1)
    return refuse(tensor, "location '" + location + "' has " + std::to_string(info.st_nlink) +
                              " hard links, expected 1; copy the file");
  Result<std::shared_ptr<MappedFile>> file = mapDescriptor(at.fd, static_cast<uint64_t>(info.st_size), location);
  if (file)
    mapped[key] = *file;
  return file;
}

Result<ExternalData::Range> ExternalData::read(const std::string &tensor,
                                               const std::vector<std::pair<std::string, std::string>> &entries,
                                               uint64_t expectedBytes) {
  std::map<std::string, std::string> values;
  for (const auto &[key, value] : entries) {
    if (key != "location" && key != "offset" && key != "length" && key != "checksum")
      return refuse(tensor, "unknown key '" + key.substr(0, 60) + "', expected location, offset, length or checksum");
    if (!values.emplace(key, value).second)
      return refuse(tensor, "key '" + key + "' appears twice");
  }
  if (!values.count("location"))
    return refuse(tensor, "no location, expected a file name beside the model");
  uint64_t offset = 0, length = expectedBytes;
  for (auto [key, target] : {std::pair<const char *, uint64_t *>{"offset", &offset}, {"length", &length}})
    if (values.count(key) && !parseNumber(values[key], *target))
      return refuse(tensor, std::string(key) + " '" + values[key].substr(0, 60) + "' is not a number of bytes");
  if (length != expectedBytes)
    return refuse(tensor, "length is " + std::to_string(length) + " bytes but its type and dims need " +
                              std::to_string(expectedBytes));
  Result<std::shared_ptr<MappedFile>> file = open(tensor, values["location"]);
  if (!file)
    return file.status();
  uint64_t size = (*file)->bytes.size();
  if (offset > size || length > size - offset)
    return refuse(tensor, "range of " + std::to_string(length) + " bytes at " + std::to_string(offset) +
                              " passes the end of '" + values["location"] + "' (" + std::to_string(size) + " bytes)");
  return Range{(*file)->bytes.subspan(offset, length), *file};
}

} // namespace plimsoll::onnx
