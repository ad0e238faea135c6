// Short ways to write library calls in tests.
#pragma once

#include "runtime/Kernels/CallTools.h"

namespace plimsoll::runtime::conformance {

using artifact::Access;
using artifact::DType;
using Dims = std::vector<int64_t>;

/// A read operand; without strides it is contiguous.
inline TensorSpec read(const Dims &shape, DType dtype = DType::F32, const Dims &strides = {}) {
  return {dtype, shape, strides.empty() ? contiguousStrides(shape) : strides, Access::Read};
}

/// A written operand; without strides it is contiguous.
inline TensorSpec written(const Dims &shape, DType dtype = DType::F32, const Dims &strides = {}) {
  return {dtype, shape, strides.empty() ? contiguousStrides(shape) : strides, Access::Write};
}

inline artifact::AttributeT ints(const char *key, const Dims &values) {
  artifact::AttributeT attribute;
  attribute.key = key;
  attribute.ints = values;
  return attribute;
}

inline artifact::AttributeT number(const char *key, double value) {
  artifact::AttributeT attribute;
  attribute.key = key;
  attribute.floats = {value};
  return attribute;
}

} // namespace plimsoll::runtime::conformance
