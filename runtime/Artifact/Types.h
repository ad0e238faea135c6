// Arithmetic on artifact types: element sizes, the bytes a strided view reaches, and the operands of a command. All
// arithmetic is safe on hostile values (128-bit inside, nothing wraps).
#pragma once

#include "runtime/Artifact/Artifact_generated.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll::artifact {

/// The format version this code writes and the only one it reads.
constexpr uint32_t kFormatVersion = 1;
/// Offsets of buffers are multiples of this many bytes (a cache line, and the widest CPU vector).
constexpr uint64_t kBufferAlignment = 64;
/// Most dimensions of a view.
constexpr size_t kMaxRank = 8;
/// Most streams of an entry.
constexpr unsigned kMaxStreams = 16;
/// Largest arena in bytes (the user address space of x86-64).
constexpr uint64_t kMaxArenaBytes = uint64_t{1} << 47;
/// Longest text of a proof, in bytes when unpacked.
constexpr uint64_t kMaxProofText = uint64_t{1} << 28;

/// Bytes of one element; 0 for a value outside the enumeration.
uint64_t dtypeBytes(DType dtype);
/// "f32", "bf16", "bool"…; "?" for a value outside the enumeration.
const char *dtypeName(DType dtype);

/// Product of `shape` (1 for rank 0), or nothing when a dimension is negative or the product exceeds 2^62.
std::optional<uint64_t> elementCount(const std::vector<int64_t> &shape);
/// elementCount × dtypeBytes, or nothing.
std::optional<uint64_t> byteCount(DType dtype, const std::vector<int64_t> &shape);

/// Half-open byte range.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool operator==(const ByteRange &) const = default;
};

/// The bytes a view can touch, counted from the start of its buffer: [lowest byte, highest byte + 1). An empty view
/// (a dimension of 0) touches [offset, offset). Nothing when the rank exceeds kMaxRank, shape and strides differ in
/// length, a dimension is negative, or an address leaves [0, 2^62).
std::optional<ByteRange> reach(const TensorViewT &view);

/// Dimensions of a view without those of size 1, with neighbours merged where they are contiguous: (size, stride)
/// pairs, outermost first. Two views with equal offset, element size and canonical form visit the same elements in the
/// same order.
std::vector<std::pair<int64_t, int64_t>> canonicalDims(const TensorViewT &view);

/// True when both views visit the same bytes in the same order (of buffers that start at the same byte).
bool visitsSameElements(const TensorViewT &a, const TensorViewT &b);

/// Row-major and dense (sizes of 1 may have any stride; empty views are contiguous).
bool isContiguous(const TensorViewT &view);

/// True when no two index tuples name the same element, shown by nesting: each dimension steps over everything the
/// smaller-stride ones cover. (Sufficient, not necessary; windows, transposes and dilated interiors satisfy it.)
bool isInjective(const TensorViewT &view);

/// "f32[4,8]", with strides when not contiguous: "f32[4,8]{1,4}".
std::string viewText(const TensorViewT &view);

/// One use of memory by a command.
struct ViewUse {
  const TensorViewT *view = nullptr;
  Access access = Access::Read;
  bool workspace = false;
  bool reads() const { return access != Access::Write; }
  bool writes() const { return access != Access::Read; }
};

/// The uses of a Launch, LibraryCall or Copy in operand order (Copy: source, target); none for events. Tables must be
/// present (rule A3).
std::vector<ViewUse> usesOf(const CommandT &command);

} // namespace plimsoll::artifact
