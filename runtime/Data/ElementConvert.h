// Conversion of stored data elements to a port's element type, with range and NaN checks.
#pragma once

#include "plimsoll/Support/Status.h"
#include "runtime/Artifact/Types.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plimsoll::runtime {

/// Element types data files hold (more than ports have: unsigned 16 and 32 bits).
enum class Element : uint8_t { F32, F64, F16, BF16, I64, I32, I16, I8, U8, U16, U32, Bool };

size_t elementBytes(Element element);
std::string_view elementName(Element element);
bool isFloat(Element element);

/// Whether a port's type is a floating-point type (artifact::dtypeBytes and dtypeName give its size and name).
bool isFloat(artifact::DType dtype);

/// How rows of one source are stored and scaled: value = stored * scale + offset.
struct ElementFormat {
  Element element = Element::F32;
  bool swapBytes = false; ///< stored big endian
  double scale = 1.0;
  double offset = 0.0;
  bool isPlain() const { return !swapBytes && scale == 1.0 && offset == 0.0; }
};

/// Why an element cannot be converted: its index in the row and the reason ("NaN", "70000 does not fit i16").
struct ConvertFault {
  size_t index = 0;
  std::string reason;
};

/// Whether `format` can feed `target` at all: floats and scaled values only feed float ports. Fails with Usage; `what`
/// names source and port in the message.
Status checkConvertible(const ElementFormat &format, artifact::DType target, std::string_view what);

/// Converts `count` stored elements at `source` (any alignment) to `target` elements at `out`. Integers are range
/// checked, floats must not be NaN and must not overflow to infinity. Rounds to nearest even. Returns the first fault.
/// Allocates only on a fault.
std::optional<ConvertFault> convertElements(const ElementFormat &format, const std::byte *source, size_t count,
                                            artifact::DType target, std::byte *out);

/// Value of one port element as double (loss, lr, counters).
double readScalar(artifact::DType dtype, const std::byte *source);

/// Stores `value` as one element of `dtype`, rounding to nearest.
void writeScalar(artifact::DType dtype, double value, std::byte *out);

} // namespace plimsoll::runtime
