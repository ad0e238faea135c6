// The shuffle is a bijection for every size, depends on seed and epoch, and stays the same between versions.
#include "runtime/Data/Shuffle.h"

#include <gtest/gtest.h>
#include <vector>

using plimsoll::runtime::EpochPermutation;

namespace {

std::vector<uint64_t> order(uint64_t count, uint64_t seed, uint64_t epoch) {
  EpochPermutation permutation(count, seed, epoch);
  std::vector<uint64_t> values;
  for (uint64_t i = 0; i < count; ++i)
    values.push_back(permutation(i));
  return values;
}

TEST(Shuffle, everySizeGivesABijection) {
  for (uint64_t count = 1; count <= 600; ++count) {
    std::vector<bool> seen(count, false);
    for (uint64_t value : order(count, count * 7919, count % 5)) {
      ASSERT_LT(value, count);
      ASSERT_FALSE(seen[value]) << "count " << count << " repeats " << value;
      seen[value] = true;
    }
  }
}

TEST(Shuffle, largeSizeIsABijection) {
  constexpr uint64_t count = 1'000'003;
  std::vector<bool> seen(count, false);
  for (uint64_t value : order(count, 42, 3)) {
    ASSERT_LT(value, count);
    ASSERT_FALSE(seen[value]);
    seen[value] = true;
  }
}

TEST(Shuffle, hugeCountsStayInRange) {
  for (uint64_t count : {uint64_t(1) << 40, (uint64_t(1) << 62) + 1, UINT64_MAX}) {
    EpochPermutation permutation(count, 1, 0);
    for (uint64_t i = 0; i < 1000; ++i)
      EXPECT_LT(permutation(i), count);
  }
}

TEST(Shuffle, seedAndEpochChangeTheOrder) {
  EXPECT_NE(order(100, 1, 0), order(100, 2, 0));
  EXPECT_NE(order(100, 1, 0), order(100, 1, 1));
  EXPECT_EQ(order(100, 1, 1), order(100, 1, 1));
}

// Neighbours do not stay neighbours: the mean distance between successive samples of a random order is n / 3.
TEST(Shuffle, orderLooksRandom) {
  std::vector<uint64_t> values = order(30000, 9, 0);
  double distance = 0;
  for (size_t i = 1; i < values.size(); ++i)
    distance += std::abs(double(values[i]) - double(values[i - 1]));
  EXPECT_NEAR(distance / double(values.size()), 10000.0, 300.0);
}

// A recorded order: resuming with a newer program must visit the same samples.
TEST(Shuffle, orderIsFrozen) {
  std::vector<uint64_t> recorded = {7, 1, 6, 3, 0, 8, 4, 9, 5, 2};
  EXPECT_EQ(order(10, 1, 0), recorded);
}

} // namespace
