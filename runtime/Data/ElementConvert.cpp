// Element conversion: every stored type is loaded as int64 or double, checked, and stored as the port's type.
#include "runtime/Data/ElementConvert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <type_traits>

namespace plimsoll::runtime {
namespace {

using artifact::DType;

/// Storage of half types: bits only.
struct HalfBits {
  uint16_t bits;
};
struct BfloatBits {
  uint16_t bits;
};

float halfToFloat(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16, exponent = (half >> 10) & 0x1f, mantissa = half & 0x3ff;
  if (exponent == 0x1f)
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) { // zero and subnormals: mantissa * 2^-24 is exact in float
    float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

/// Nearest even; overflow gives infinity.
uint16_t floatToHalf(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value), sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return static_cast<uint16_t>(sign | 0x7e00);
  if (magnitude >= 0x477ff000) // 65520: first value that rounds to infinity
    return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x38800000) { // below 2^-14: a multiple of 2^-24
    float scaled = std::ldexp(std::bit_cast<float>(magnitude), 24);
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(std::nearbyint(scaled)));
  }
  uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

uint16_t floatToBfloat(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <typename T> T loadRaw(const std::byte *source, bool swapBytes) {
  std::array<std::byte, sizeof(T)> raw;
  std::memcpy(raw.data(), source, sizeof(T));
  if (swapBytes)
    std::reverse(raw.begin(), raw.end());
  return std::bit_cast<T>(raw);
}

/// Loads one stored element as double (float types) or int64 (integer types).
template <typename Stored> auto loadValue(const std::byte *source, bool swapBytes) {
  Stored stored = loadRaw<Stored>(source, swapBytes);
  if constexpr (std::is_same_v<Stored, HalfBits>)
    return static_cast<double>(halfToFloat(stored.bits));
  else if constexpr (std::is_same_v<Stored, BfloatBits>)
    return static_cast<double>(std::bit_cast<float>(uint32_t(stored.bits) << 16));
  else if constexpr (std::is_floating_point_v<Stored>)
    return static_cast<double>(stored);
  else
    return static_cast<int64_t>(stored);
}

template <typename Target> void storeRaw(Target value, std::byte *out) { std::memcpy(out, &value, sizeof value); }

/// Stores a double in a float target; false on NaN or when a finite value would become infinite.
template <typename Target> bool storeFloat(double value, std::byte *out) {
  if (std::isnan(value))
    return false;
  bool finite = std::isfinite(value);
  if constexpr (std::is_same_v<Target, double>) {
    storeRaw(value, out);
    return true;
  } else if constexpr (std::is_same_v<Target, float>) {
    float narrowed = static_cast<float>(value);
    storeRaw(narrowed, out);
    return std::isfinite(narrowed) == finite;
  } else if constexpr (std::is_same_v<Target, HalfBits>) {
    uint16_t bits = floatToHalf(static_cast<float>(value));
    storeRaw(bits, out);
    return ((bits & 0x7c00) != 0x7c00) == finite;
  } else {
    uint16_t bits = floatToBfloat(static_cast<float>(value));
    storeRaw(bits, out);
    return ((bits & 0x7f80) != 0x7f80) == finite;
  }
}

template <typename Target> bool storeInteger(int64_t value, std::byte *out) {
  if constexpr (std::is_same_v<Target, bool>) {
    storeRaw(static_cast<uint8_t>(value != 0), out);
    return value == 0 || value == 1;
  } else {
    storeRaw(static_cast<Target>(value), out);
    return value >= std::numeric_limits<Target>::min() && value <= std::numeric_limits<Target>::max();
  }
}

template <typename Target>
constexpr bool isFloatTarget =
    std::is_floating_point_v<Target> || std::is_same_v<Target, HalfBits> || std::is_same_v<Target, BfloatBits>;

template <typename Value> ConvertFault makeFault(size_t index, Value value, DType target) {
  if constexpr (std::is_floating_point_v<Value>)
    if (std::isnan(value))
      return {index, "NaN"};
  return {index, fmt::format("{} does not fit {}", value, dtypeName(target))};
}

template <typename Stored, typename Target>
std::optional<ConvertFault> convertLoop(const ElementFormat &format, const std::byte *source, size_t count,
                                        DType target, std::byte *out) {
  constexpr size_t stride = sizeof(Target);
  for (size_t i = 0; i < count; ++i) {
    auto value = loadValue<Stored>(source + i * sizeof(Stored), format.swapBytes);
    if constexpr (isFloatTarget<Target>) {
      double scaled = static_cast<double>(value) * format.scale + format.offset;
      if (!storeFloat<Target>(scaled, out + i * stride))
        return makeFault(i, scaled, target);
    } else if constexpr (std::is_integral_v<decltype(value)>) {
      if (!storeInteger<Target>(value, out + i * stride))
        return makeFault(i, value, target);
    } else {
      return ConvertFault{i, "floating-point data cannot feed an integer port"};
    }
  }
  return std::nullopt;
}

template <typename Stored>
std::optional<ConvertFault> convertFrom(const ElementFormat &format, const std::byte *source, size_t count,
                                        DType target, std::byte *out) {
  switch (target) {
  case DType::F32:
    return convertLoop<Stored, float>(format, source, count, target, out);
  case DType::F64:
    return convertLoop<Stored, double>(format, source, count, target, out);
  case DType::F16:
    return convertLoop<Stored, HalfBits>(format, source, count, target, out);
  case DType::BF16:
    return convertLoop<Stored, BfloatBits>(format, source, count, target, out);
  case DType::I64:
    return convertLoop<Stored, int64_t>(format, source, count, target, out);
  case DType::I32:
    return convertLoop<Stored, int32_t>(format, source, count, target, out);
  case DType::I16:
    return convertLoop<Stored, int16_t>(format, source, count, target, out);
  case DType::I8:
    return convertLoop<Stored, int8_t>(format, source, count, target, out);
  case DType::U8:
    return convertLoop<Stored, uint8_t>(format, source, count, target, out);
  case DType::Bool:
    return convertLoop<Stored, bool>(format, source, count, target, out);
  }
  return ConvertFault{0, "unknown port element type"};
}

struct ElementRow {
  std::string_view name;
  size_t bytes;
  bool floating;
};

const ElementRow &elementRow(Element element) {
  static const ElementRow rows[] = {{"f32", 4, true},  {"f64", 8, true},  {"f16", 2, true},  {"bf16", 2, true},
                                    {"i64", 8, false}, {"i32", 4, false}, {"i16", 2, false}, {"i8", 1, false},
                                    {"u8", 1, false},  {"u16", 2, false}, {"u32", 4, false}, {"bool", 1, false}};
  return rows[static_cast<size_t>(element)];
}

/// The element type with the same layout as a port's type.
Element elementOf(DType dtype) {
  static const Element elements[] = {Element::F32, Element::F64, Element::F16, Element::BF16, Element::I64,
                                     Element::I32, Element::I16, Element::I8,  Element::U8,   Element::Bool};
  return elements[static_cast<size_t>(dtype)];
}

} // namespace

size_t elementBytes(Element element) { return elementRow(element).bytes; }
std::string_view elementName(Element element) { return elementRow(element).name; }
bool isFloat(Element element) { return elementRow(element).floating; }
bool isFloat(DType dtype) { return elementRow(elementOf(dtype)).floating; }

Status checkConvertible(const ElementFormat &format, DType target, std::string_view what) {
  if (isFloat(target))
    return Status::ok();
  if (isFloat(format.element))
    return {ExitCode::Usage, fmt::format("{}: {} data cannot feed a port of type {}; store the data as integers", what,
                                         elementName(format.element), dtypeName(target))};
  if (format.scale != 1.0 || format.offset != 0.0)
    return {ExitCode::Usage, fmt::format("{}: scale and offset need a floating-point port, this one is {}; remove them",
                                         what, dtypeName(target))};
  return Status::ok();
}

std::optional<ConvertFault> convertElements(const ElementFormat &format, const std::byte *source, size_t count,
                                            DType target, std::byte *out) {
  // Same integer layout: a plain copy (any bit pattern is a valid value). Bool and floats go through the checks.
  if (format.isPlain() && format.element == elementOf(target) && !isFloat(target) && target != DType::Bool) {
    std::memcpy(out, source, count * dtypeBytes(target));
    return std::nullopt;
  }
  switch (format.element) {
  case Element::F32:
    return convertFrom<float>(format, source, count, target, out);
  case Element::F64:
    return convertFrom<double>(format, source, count, target, out);
  case Element::F16:
    return convertFrom<HalfBits>(format, source, count, target, out);
  case Element::BF16:
    return convertFrom<BfloatBits>(format, source, count, target, out);
  case Element::I64:
    return convertFrom<int64_t>(format, source, count, target, out);
  case Element::I32:
    return convertFrom<int32_t>(format, source, count, target, out);
  case Element::I16:
    return convertFrom<int16_t>(format, source, count, target, out);
  case Element::I8:
    return convertFrom<int8_t>(format, source, count, target, out);
  case Element::U8:
  case Element::Bool:
    return convertFrom<uint8_t>(format, source, count, target, out);
  case Element::U16:
    return convertFrom<uint16_t>(format, source, count, target, out);
  case Element::U32:
    return convertFrom<uint32_t>(format, source, count, target, out);
  }
  return ConvertFault{0, "unknown stored element type"};
}

double readScalar(DType dtype, const std::byte *source) {
  double value = 0;
  switch (elementOf(dtype)) {
  case Element::F32:
    return loadValue<float>(source, false);
  case Element::F16:
    return loadValue<HalfBits>(source, false);
  case Element::BF16:
    return loadValue<BfloatBits>(source, false);
  case Element::I64:
    return static_cast<double>(loadValue<int64_t>(source, false));
  case Element::I32:
    return static_cast<double>(loadValue<int32_t>(source, false));
  case Element::I16:
    return static_cast<double>(loadValue<int16_t>(source, false));
  case Element::I8:
    return static_cast<double>(loadValue<int8_t>(source, false));
  case Element::U8:
  case Element::Bool:
    return static_cast<double>(loadValue<uint8_t>(source, false));
  default:
    std::memcpy(&value, source, sizeof value);
    return value;
  }
}

void writeScalar(DType dtype, double value, std::byte *out) {
  switch (dtype) {
  case DType::F32:
    return storeRaw(static_cast<float>(value), out);
  case DType::F64:
    return storeRaw(value, out);
  case DType::F16:
    return storeRaw(floatToHalf(static_cast<float>(value)), out);
  case DType::BF16:
    return storeRaw(floatToBfloat(static_cast<float>(value)), out);
  case DType::I64:
    return storeRaw(static_cast<int64_t>(std::llround(value)), out);
  case DType::I32:
    return storeRaw(static_cast<int32_t>(std::llround(value)), out);
  case DType::I16:
    return storeRaw(static_cast<int16_t>(std::llround(value)), out);
  case DType::I8:
    return storeRaw(static_cast<int8_t>(std::llround(value)), out);
  case DType::U8:
    return storeRaw(static_cast<uint8_t>(std::llround(value)), out);
  case DType::Bool:
    return storeRaw(static_cast<uint8_t>(value != 0), out);
  }
}

} // namespace plimsoll::runtime
