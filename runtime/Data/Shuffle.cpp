// The Feistel shuffle; the method is described in Shuffle.h.
#include "runtime/Data/Shuffle.h"

namespace plimsoll::runtime {

uint64_t mixBits(uint64_t value) {
  // Constants: Stafford's variant 13 of the MurmurHash3 finalizer.
  value ^= value >> 30;
  value *= 0xbf58476d1ce4e5b9ULL;
  value ^= value >> 27;
  value *= 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

EpochPermutation::EpochPermutation(uint64_t sampleCount, uint64_t seed, uint64_t epoch) : count(sampleCount) {
  while (halfBits < 32 && (uint64_t(1) << (2 * halfBits)) < count)
    ++halfBits;
  uint64_t state = mixBits(seed + 0x9e3779b97f4a7c15ULL) ^ mixBits(epoch * 2 + 1);
  for (uint64_t &key : keys)
    key = mixBits(state += 0x9e3779b97f4a7c15ULL);
}

uint64_t EpochPermutation::encrypt(uint64_t value) const {
  const uint64_t mask = (uint64_t(1) << halfBits) - 1;
  uint64_t left = value >> halfBits, right = value & mask;
  for (uint64_t key : keys) {
    uint64_t next = left ^ (mixBits(right ^ key) & mask);
    left = right;
    right = next;
  }
  return (left << halfBits) | right;
}

uint64_t EpochPermutation::operator()(uint64_t position) const {
  uint64_t value = position;
  do
    value = encrypt(value);
  while (value >= count);
  return value;
}

} // namespace plimsoll::runtime
