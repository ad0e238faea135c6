// Small readers of a CallSpec shared by the rules, the reference kernels and the fast kernels: attributes by key,
// element counts, contiguity, and the way shapes are written in messages.
#pragma once

#include "runtime/Core/Backend.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::runtime {

/// Bytes of one element.
int64_t dtypeBytes(artifact::DType dtype);

/// "f32", "i64", "bool": the spelling used in messages.
const char *dtypeName(artifact::DType dtype);

/// The attribute called `key`, or null.
const artifact::AttributeT *findAttribute(const CallSpec &spec, std::string_view key);

/// The first integer of `key`, or `fallback` when the attribute is absent.
int64_t intAttribute(const CallSpec &spec, std::string_view key, int64_t fallback);

/// All integers of `key`, or `count` copies of `fallback` when the attribute is absent.
std::vector<int64_t> intsAttribute(const CallSpec &spec, std::string_view key, size_t count, int64_t fallback);

/// The first float of `key`, or `fallback` when the attribute is absent.
double floatAttribute(const CallSpec &spec, std::string_view key, double fallback);

/// Number of elements of a shape (1 for a scalar).
int64_t elementCount(const std::vector<int64_t> &shape);

/// Row-major strides of a shape, in elements.
std::vector<int64_t> contiguousStrides(const std::vector<int64_t> &shape);

/// Whether the elements lie row-major without gaps; dimensions of one element may have any stride.
bool isContiguous(const TensorSpec &tensor);

/// "[2, 3, 4]".
std::string shapeText(const std::vector<int64_t> &shape);

/// Offset in elements of the multi-index `index` (tensor.shape.size() numbers).
inline int64_t elementOffset(const TensorSpec &tensor, const int64_t *index) {
  int64_t offset = 0;
  for (size_t d = 0; d < tensor.shape.size(); ++d)
    offset += index[d] * tensor.strides[d];
  return offset;
}

/// Moves `index` to the next position of `shape` in row-major order; returns false after the last.
inline bool nextIndex(const std::vector<int64_t> &shape, int64_t *index) {
  for (size_t d = shape.size(); d-- > 0;) {
    if (++index[d] < shape[d])
      return true;
    index[d] = 0;
  }
  return false;
}

/// The largest rank any operation accepts; multi-indices are arrays of this length.
inline constexpr size_t MaxRank = 8;

} // namespace plimsoll::runtime
