// Reference copy and fill: one element at a time through the strides of both sides.
#include "runtime/Kernels/ReferenceCalls.h"

#include <cstring>

namespace plimsoll::runtime {

using artifact::DType;

static void copyElements(const TensorSpec &src, const TensorSpec &dst, const void *from, void *to) {
  const int64_t bytes = dtypeBytes(src.dtype);
  int64_t index[MaxRank] = {};
  do {
    const auto *source = static_cast<const char *>(from) + elementOffset(src, index) * bytes;
    auto *target = static_cast<char *>(to) + elementOffset(dst, index) * bytes;
    std::memcpy(target, source, static_cast<size_t>(bytes));
  } while (nextIndex(src.shape, index));
}

template <typename T> static ReferenceCall::Body fillOf(const TensorSpec &dst, double value) {
  return [dst, element = static_cast<T>(value)](Operands operands) {
    int64_t index[MaxRank] = {};
    do
      at<T>(operands[0], dst, index) = element;
    while (nextIndex(dst.shape, index));
  };
}

/// The bits of a 16-bit float: bf16 keeps the top half of f32 (round to nearest even), f16 converts.
static uint16_t halfBits(DType dtype, double value) {
  const auto single = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &single, sizeof bits);
  if (dtype == DType::BF16)
    return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const int exponent = static_cast<int>((bits >> 23) & 0xff) - 127 + 15;
  if (exponent >= 31)
    return static_cast<uint16_t>(sign | 0x7c00 | (single != single ? 0x200 : 0));
  if (exponent < -10)
    return static_cast<uint16_t>(sign);
  const int shift = exponent <= 0 ? 14 - exponent : 13;
  const uint32_t mantissa = (bits & 0x7fffff) | (exponent <= 0 ? 0x800000 : 0);
  const uint32_t rounding = (1u << (shift - 1)) - 1 + ((mantissa >> shift) & 1);
  const uint32_t biased = exponent <= 0 ? 0 : static_cast<uint32_t>(exponent) << 10;
  return static_cast<uint16_t>(sign | (biased + ((mantissa + rounding) >> shift)));
}

static ReferenceCall::Body referenceFill(const TensorSpec &dst, double value) {
  switch (dst.dtype) {
  case DType::F64:
    return fillOf<double>(dst, value);
  case DType::F32:
    return fillOf<float>(dst, value);
  case DType::I64:
    return fillOf<int64_t>(dst, value);
  case DType::I32:
    return fillOf<int32_t>(dst, value);
  case DType::I16:
    return fillOf<int16_t>(dst, value);
  case DType::I8:
    return fillOf<int8_t>(dst, value);
  case DType::U8:
    return fillOf<uint8_t>(dst, value);
  case DType::Bool:
    return fillOf<uint8_t>(dst, value != 0.0 ? 1 : 0);
  case DType::F16:
  case DType::BF16:
    return fillOf<uint16_t>(dst, halfBits(dst.dtype, value));
  }
  return {};
}

ReferenceCall::Body referenceMovement(const CallSpec &spec) {
  if (spec.op == "fill")
    return referenceFill(spec.operands[0], floatAttribute(spec, "value", 0.0));
  if (spec.op != "copy")
    return {};
  return [src = spec.operands[0], dst = spec.operands[1]](Operands operands) {
    copyElements(src, dst, operands[0], operands[1]);
  };
}

} // namespace plimsoll::runtime
