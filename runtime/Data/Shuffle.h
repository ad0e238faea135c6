// A seeded permutation of [0, n) that is computed, not stored, so that shuffling a corpus of any size costs no memory
// and a resumed run continues in the same order.
//
// Method: a balanced Feistel network is a bijection on 2k-bit numbers whatever its round function is (each round only
// exchanges halves and adds a function of one half to the other). With the smallest 2^(2k) >= n, values that leave
// [0, n) are sent through the network again until they return ("cycle walking"): the walk follows a cycle of a finite
// bijection that contains an element of [0, n), so it stops, and restricting a bijection in this way gives a bijection
// of [0, n). 2^(2k) < 4n, so fewer than 4 passes are expected. Source: Black and Rogaway, "Ciphers with Arbitrary
// Finite Domains", CT-RSA 2002, section 4 (cycle walking); the round function is a 64-bit mixer, six rounds: this is a
// shuffle, not a cipher.
#pragma once

#include <array>
#include <cstdint>

namespace plimsoll::runtime {

/// The order of one epoch. Value type, a few words; thread-safe.
class EpochPermutation {
public:
  /// Permutation of [0, count) for `epoch` of a run with `seed`. count >= 1.
  EpochPermutation(uint64_t count, uint64_t seed, uint64_t epoch);

  /// The sample at `position` in [0, count); distinct positions give distinct samples.
  uint64_t operator()(uint64_t position) const;

private:
  static constexpr int rounds = 6;
  uint64_t encrypt(uint64_t value) const;

  uint64_t count;
  unsigned halfBits = 1;
  std::array<uint64_t, rounds> keys{};
};

/// 64-bit finalizer (every output bit depends on every input bit); used for keys, rounds and sampling.
uint64_t mixBits(uint64_t value);

} // namespace plimsoll::runtime
