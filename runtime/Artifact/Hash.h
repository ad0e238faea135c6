// Content hashes of the project: xxh3-64, written as 16 lower-case hexadecimal digits. They find damage and mix-ups
// (the wrong weights file, a stale checkpoint); they are no defence against a forger.
#pragma once

#include "plimsoll/Support/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace plimsoll {

/// xxh3-64 (seed 0) of `bytes`.
uint64_t hash64(std::span<const std::byte> bytes);
uint64_t hash64(std::string_view text);

/// hash64 with the eight bytes at `position` taken as zero: a content may carry its own hash there. They must lie inside.
uint64_t hash64Except(std::span<const std::byte> bytes, size_t position);

/// hash64 of a file mapping, block by block; at most one block of it stays resident.
uint64_t hashMapping(std::span<const std::byte> mapped);

/// "00ff12…": exactly 16 lower-case hexadecimal digits.
std::string hashText(uint64_t hash);

/// hashText of a whole regular file, through a mapping. Fails with BadInput when it cannot be read.
Result<std::string> hashFile(const std::string &path);

} // namespace plimsoll
