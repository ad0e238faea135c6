// View arithmetic, checked against brute-force enumeration of every element.
#include "runtime/Artifact/Types.h"
#include "test/unit/Runtime/TinyArtifact.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

using namespace plimsoll::artifact;
using plimsoll::test::makeView;

namespace {

/// Byte offsets of every element of a view in row-major index order; may be negative.
std::vector<int64_t> elementBytes(const TensorViewT &view) {
  std::vector<int64_t> offsets{static_cast<int64_t>(view.offset)};
  for (size_t d = 0; d < view.shape.size(); ++d) {
    std::vector<int64_t> next;
    for (int64_t base : offsets)
      for (int64_t i = 0; i < view.shape[d]; ++i)
        next.push_back(base + i * view.strides[d] * static_cast<int64_t>(dtypeBytes(view.dtype)));
    offsets = std::move(next);
  }
  return offsets;
}

TensorViewT randomView(std::mt19937 &random) {
  TensorViewT view;
  view.dtype = static_cast<DType>(random() % 10);
  view.offset = random() % 64;
  for (size_t rank = random() % 4; rank > 0; --rank) {
    view.shape.push_back(random() % 4 == 0 ? 1 : static_cast<int64_t>(random() % 5));
    view.strides.push_back(static_cast<int64_t>(random() % 13) - 2);
  }
  return view;
}

} // namespace

TEST(Types, reachEqualsEnumeration) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    TensorViewT view = randomView(random);
    auto range = reach(view);
    std::vector<int64_t> offsets = elementBytes(view);
    if (offsets.empty()) {
      ASSERT_TRUE(range && range->begin == range->end);
      continue;
    }
    auto [low, high] = std::minmax_element(offsets.begin(), offsets.end());
    ASSERT_EQ(range.has_value(), *low >= 0);
    if (!range)
      continue;
    ASSERT_EQ(range->begin, static_cast<uint64_t>(*low));
    ASSERT_EQ(range->end, static_cast<uint64_t>(*high) + dtypeBytes(view.dtype));
  }
}

TEST(Types, injectiveViewsNeverRepeatAnElement) {
  std::mt19937 random(2);
  int shown = 0;
  for (int round = 0; round < 20000; ++round) {
    TensorViewT view = randomView(random);
    std::vector<int64_t> offsets = elementBytes(view);
    bool distinct = std::set<int64_t>(offsets.begin(), offsets.end()).size() == offsets.size();
    ASSERT_TRUE(distinct || !isInjective(view)) << viewText(view);
    shown += isInjective(view) && offsets.size() > 1;
  }
  EXPECT_GT(shown, 1000);
}

TEST(Types, sameElementsMeansSameVisitOrder) {
  std::mt19937 random(3);
  int equal = 0;
  for (int round = 0; round < 50000; ++round) {
    TensorViewT a = randomView(random), b = a;
    if (round % 2)
      b = randomView(random);
    else if (!b.shape.empty())
      b.shape.push_back(1), b.strides.push_back(5);
    if (elementBytes(a).empty() || !visitsSameElements(a, b))
      continue;
    ++equal;
    ASSERT_EQ(elementBytes(a), elementBytes(b)) << viewText(a) << " " << viewText(b);
  }
  EXPECT_GT(equal, 10000);
}

TEST(Types, contiguityIgnoresSizeOneStrides) {
  auto view = makeView(0, DType::F32, {2, 1, 3});
  EXPECT_TRUE(isContiguous(*view));
  view->strides[1] = 77;
  EXPECT_TRUE(isContiguous(*view));
  view->strides[0] = 4;
  EXPECT_FALSE(isContiguous(*view));
}

TEST(Types, viewTextShowsStridesOnlyWhenTheyMatter) {
  auto view = makeView(0, DType::BF16, {2, 3});
  EXPECT_EQ(viewText(*view), "bf16[2,3]");
  std::swap(view->strides[0], view->strides[1]);
  EXPECT_EQ(viewText(*view), "bf16[2,3]{1,3}");
}
