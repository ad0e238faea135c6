// safetensors files (weights and checkpoints): a reader that trusts nothing in the file, and an atomic writer.
// Layout: uint64 little endian header length, header (JSON: name -> dtype, shape, data_offsets; optional string map
// "__metadata__"), then the tensors' bytes without holes.
#pragma once

#include "plimsoll/Support/Status.h"
#include "runtime/Artifact/Artifact_generated.h"
#include "runtime/Artifact/Files.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::runtime {

/// One tensor: row-major, little endian. `bytes` is valid as long as what it came from; not necessarily aligned.
struct NamedTensor {
  std::string name;
  artifact::DType dtype = artifact::DType::F32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

/// A mapped safetensors file. Everything below holds after open(): header at most 16 MiB, known dtypes, no duplicate
/// names, sizes that match shapes, tensors that cover the data section exactly once.
class SafeTensors {
public:
  /// Fails with BadInput naming the file, the tensor, what was found and what was expected.
  static Result<SafeTensors> open(const std::string &path, Links links = Links::Follow);
  /// As open, on bytes that outlive the result; `name` stands for the path in messages.
  static Result<SafeTensors> parse(std::span<const std::byte> content, const std::string &name);

  /// All tensors, sorted by name.
  const std::vector<NamedTensor> &tensors() const { return list; }
  /// The tensor called `name`, or null.
  const NamedTensor *find(std::string_view name) const;
  const std::map<std::string, std::string> &metadata() const { return notes; }
  /// The whole file, header included (what hashes are taken of).
  std::span<const std::byte> fileBytes() const { return content; }

private:
  std::vector<MappedFile> mapping; // zero or one; its address does not change when this moves
  std::span<const std::byte> content;
  std::vector<NamedTensor> list;
  std::map<std::string, std::string> notes;
};

/// Writes `tensors` and `metadata` atomically (temporary file, fsync, rename, fsync of the folder). Equal input gives
/// equal bytes whatever the order of `tensors`: data lies by falling element size, then name, so every tensor is
/// aligned to its element. Fails with BadInput (names twice, not UTF-8 or reserved; byte counts that do not match the
/// shape; disk full), and then a file already there is untouched.
Status writeSafeTensors(const std::string &path, std::span<const NamedTensor> tensors,
                        const std::map<std::string, std::string> &metadata = {});

} // namespace plimsoll::runtime
