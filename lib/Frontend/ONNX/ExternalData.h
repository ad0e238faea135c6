// Tensors kept in files beside the model. The location text is hostile until proven otherwise: the file is reached by
// opening one folder after another without following links, so nothing outside the model's folder is ever read.
#pragma once

#include "plimsoll/Support/Status.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll::onnx {

/// Read-only memory map of a whole file, unmapped with the last owner.
struct MappedFile {
  std::span<const std::byte> bytes;
  MappedFile() = default;
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  ~MappedFile();
};

/// Maps a file named by the user (links are followed: the user chose it). Fails on folders, devices and unreadable
/// files.
Result<std::shared_ptr<MappedFile>> mapUserFile(const std::string &path);

/// Opens files of one model's folder and hands out byte ranges. Each file is mapped once.
class ExternalData {
public:
  explicit ExternalData(std::string modelFolder) : folder(std::move(modelFolder)) {}
  struct Range {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };
  /// The bytes that `entries` (location, offset, length, checksum) name; `expectedBytes` is what dtype and dims say.
  /// Fails (BadInput, naming `tensor`) on unknown or repeated keys, absolute paths, "..", links, hard links, special
  /// files, negative or overflowing numbers, and ranges past the end.
  Result<Range> read(const std::string &tensor, const std::vector<std::pair<std::string, std::string>> &entries,
                     uint64_t expectedBytes);

private:
  Result<std::shared_ptr<MappedFile>> open(const std::string &tensor, const std::string &location);
  std::string folder;
  std::map<std::string, std::shared_ptr<MappedFile>> mapped;
};

} // namespace plimsoll::onnx
