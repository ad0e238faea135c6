// Philox4x32-10, the counter-based generator behind random_uniform (Salmon, Moraes, Dror, Shaw: "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011, section 3.3). A pure function of key and counter: a recomputed mask is
// bit-identical.
#pragma once

#include <array>
#include <cstdint>

namespace plimsoll::runtime {

/// Four random words for a 64-bit key and a 128-bit counter (word 0 lowest).
inline std::array<uint32_t, 4> philox4x32(uint64_t key, std::array<uint32_t, 4> counter) {
  uint32_t key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

/// The counter of elements 4 * block .. 4 * block + 3 of operation `opId` in step `step`.
inline std::array<uint32_t, 4> randomCounter(uint64_t block, uint32_t opId, uint64_t step) {
  return {static_cast<uint32_t>(block), opId, static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32)};
}

/// A word as a float in [0, 1): the top 24 bits.
inline float uniformFromWord(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

} // namespace plimsoll::runtime
