// Byte counts as people read and write them: "1.5GB", "512MiB", 9,663,676,416.
#pragma once

#include "plimsoll/Support/Status.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace plimsoll {

/// Smallest multiple of `alignment` (a power of two) that is >= `bytes`.
constexpr uint64_t alignUp(uint64_t bytes, uint64_t alignment) { return (bytes + alignment - 1) & ~(alignment - 1); }

/// "9,663,676,416": exact bytes with thousands separators.
inline std::string groupedDigits(uint64_t value) {
  std::string digits = std::to_string(value);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

/// "1.93 GB": decimal units, three significant digits.
inline std::string humanBytes(uint64_t bytes) {
  static const char *const names[] = {"B", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1000.0 && unit < 4) {
    value /= 1000.0;
    ++unit;
  }
  char text[32];
  snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : value < 10 ? "%.2f %s" : value < 100 ? "%.1f %s" : "%.0f %s", value, names[unit]);
  return text;
}

} // namespace plimsoll
