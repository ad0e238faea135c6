// Byte counts as people read and write them: "1.5GB", "512MiB", 9,663,676,416.
#pragma once

#include "plimsoll/Support/Status.h"

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

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

/// Parses "1.5GB", "512MiB", "65536": a non-negative number and an optional unit (decimal kB, MB, GB, TB or binary KiB, MiB,
/// GiB, TiB). Nothing else is accepted; nullopt on anything else or above 2^63.
inline std::optional<uint64_t> parseBytes(std::string_view text) {
  static constexpr std::pair<std::string_view, double> units[] = {
      {"TiB", 1024.0 * 1024 * 1024 * 1024}, {"GiB", 1024.0 * 1024 * 1024}, {"MiB", 1024.0 * 1024}, {"KiB", 1024.0}, {"TB", 1e12}, {"GB", 1e9},
      {"MB", 1e6}, {"kB", 1e3}, {"B", 1.0}};
  double factor = 1;
  for (auto [name, bytes] : units)
    if (text.ends_with(name)) {
      factor = bytes;
      text.remove_suffix(name.size());
      break;
    }
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return whole && number >= 0 && number * factor < 9.2e18 ? std::optional<uint64_t>(static_cast<uint64_t>(number * factor)) : std::nullopt;
}

} // namespace plimsoll
