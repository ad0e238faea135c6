// Reference kernels against values worked out by hand: the oracle's own anchor, one small case per operation at least.
#include "runtime/Kernels/Philox.h"
#include "test/conformance/Harness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plimsoll::runtime::conformance {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::Pointwise;
using Values = std::vector<double>;

static constexpr double Infinity = std::numeric_limits<double>::infinity();
static constexpr DType F64 = DType::F64;

TEST(HandWorked, CopyTransposes) {
  const CallSpec spec{"copy", {read({3, 2}, F64, {1, 3}), written({3, 2}, F64)}, {}};
  EXPECT_THAT(evaluate(spec, {{1, 2, 3, 4, 5, 6}})[0], ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(HandWorked, FillConvertsToTheType) {
  EXPECT_THAT(evaluate({"fill", {written({2}, DType::I32)}, {number("value", 3.9)}}, {})[0], ElementsAre(3, 3));
  // 1.0 is 0x3f80 in bf16 and 0x3c00 in f16; 65504 + half a unit rounds up to infinity, 2^-24 is the least f16.
  EXPECT_THAT(evaluate({"fill", {written({1}, DType::BF16)}, {number("value", 1.0)}}, {})[0], ElementsAre(0x3f80));
  EXPECT_THAT(evaluate({"fill", {written({1}, DType::F16)}, {number("value", 1.0)}}, {})[0], ElementsAre(0x3c00));
  EXPECT_THAT(evaluate({"fill", {written({1}, DType::F16)}, {number("value", 65520.0)}}, {})[0], ElementsAre(0x7c00));
  EXPECT_THAT(evaluate({"fill", {written({1}, DType::F16)}, {number("value", 0x1p-24)}}, {})[0], ElementsAre(1));
}

TEST(HandWorked, DotAccumulates) {
  CallSpec spec{"dot", {read({2, 2}, F64), read({2, 2}, F64, {1, 2}), written({2, 2}, F64)}, {}};
  // a = [1 2; 3 4], b transposed in memory: b = [5 7; 6 8].
  EXPECT_THAT(evaluate(spec, {{1, 2, 3, 4}, {5, 6, 7, 8}})[0], ElementsAre(17, 23, 39, 53));
  spec.operands[2].access = Access::ReadWrite;
  spec.attributes = {ints("accumulate", {1})};
  EXPECT_THAT(evaluate(spec, {{1, 2, 3, 4}, {5, 6, 7, 8}, {100, 0, 0, -100}})[0], ElementsAre(117, 23, 39, -47));
}

TEST(HandWorked, ConvAndItsAdjoints) {
  // x = [1 2 3 4] padded with one zero in front, kernel (1, 10) at stride 2: windows (0 1), (2 3).
  const std::vector<artifact::AttributeT> attributes = {ints("pads", {1, 0}), ints("strides", {2})};
  const TensorSpec x = read({1, 1, 4}, F64), w = read({1, 1, 2}, F64), y = read({1, 1, 2}, F64);
  EXPECT_THAT(evaluate({"conv", {x, w, written({1, 1, 2}, F64)}, attributes}, {{1, 2, 3, 4}, {1, 10}})[0],
              ElementsAre(10, 32));
  // dy = (1, 100): dx[0] = 10 * 1, dx[1] = 1 * 100, dx[2] = 10 * 100, x[3] is in no window.
  EXPECT_THAT(evaluate({"conv_input_grad", {y, w, written({1, 1, 4}, F64)}, attributes}, {{1, 100}, {1, 10}})[0],
              ElementsAre(10, 100, 1000, 0));
  // dw[0] = 0 * 1 + 2 * 100, dw[1] = 1 * 1 + 3 * 100.
  EXPECT_THAT(evaluate({"conv_weight_grad", {x, y, written({1, 1, 2}, F64)}, attributes}, {{1, 2, 3, 4}, {1, 100}})[0],
              ElementsAre(200, 301));
}

TEST(HandWorked, ConvGroupsSeeTheirChannelsOnly) {
  const CallSpec spec{
      "conv", {read({1, 2, 1}, F64), read({4, 1, 1}, F64), written({1, 4, 1}, F64)}, {ints("groups", {2})}};
  EXPECT_THAT(evaluate(spec, {{3, 5}, {1, 10, 100, 1000}})[0], ElementsAre(3, 30, 500, 5000));
}

TEST(HandWorked, MaxPoolTakesTheFirstMaximum) {
  const CallSpec spec{"max_pool",
                      {read({1, 1, 2, 4}, F64), written({1, 1, 1, 2}, F64), written({1, 1, 1, 2}, DType::I32)},
                      {ints("kernel", {2, 2}), ints("strides", {2, 2})}};
  auto out = evaluate(spec, {{1, 7, 2, 2, 7, 0, 2, 2}});
  EXPECT_THAT(out[0], ElementsAre(7, 2));
  EXPECT_THAT(out[1], ElementsAre(1, 2));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  out = evaluate(spec, {{1, 7, -Infinity, -Infinity, nan, nan, -Infinity, -Infinity}});
  EXPECT_TRUE(std::isnan(out[0][0]));
  EXPECT_EQ(out[0][1], -Infinity);
  EXPECT_THAT(out[1], ElementsAre(4, 2)); // the first NaN; the first of equal minus infinities
}

TEST(HandWorked, MaxPoolGradAddsToTheWinners) {
  const CallSpec spec{
      "max_pool_grad", {read({1, 1, 3}, F64), read({1, 1, 3}, DType::I32), written({1, 1, 4}, F64)}, {}};
  EXPECT_THAT(evaluate(spec, {{1, 10, 100}, {2, 2, 0}})[0], ElementsAre(100, 0, 11, 0));
}

TEST(HandWorked, AvgPoolDivisors) {
  // x = [6 12], kernel 3 with one zero on each side: windows (0 6 12), (6 12 0).
  CallSpec spec{
      "avg_pool", {read({1, 1, 2}, F64), written({1, 1, 2}, F64)}, {ints("kernel", {3}), ints("pads", {1, 1})}};
  EXPECT_THAT(evaluate(spec, {{6, 12}})[0], ElementsAre(9, 9));
  spec.attributes.push_back(ints("count_include_pad", {1}));
  EXPECT_THAT(evaluate(spec, {{6, 12}})[0], ElementsAre(6, 6));
  // Ceil mode: x = [1 2 3 4 9], kernel 2 at stride 2 has a last window half beyond the end, whose divisor is 1.
  const CallSpec ceil{"avg_pool",
                      {read({1, 1, 5}, F64), written({1, 1, 3}, F64)},
                      {ints("kernel", {2}), ints("strides", {2}), ints("count_include_pad", {1})}};
  EXPECT_THAT(evaluate(ceil, {{1, 2, 3, 4, 9}})[0], ElementsAre(1.5, 3.5, 9));
}

TEST(HandWorked, AvgPoolGradSpreadsTheShare) {
  const CallSpec spec{
      "avg_pool_grad", {read({1, 1, 2}, F64), written({1, 1, 2}, F64)}, {ints("kernel", {3}), ints("pads", {1, 1})}};
  EXPECT_THAT(evaluate(spec, {{2, 20}})[0], ElementsAre(11, 11));
}

TEST(HandWorked, GatherCountsNegativesFromTheEnd) {
  const CallSpec spec{"gather", {read({3, 2}, F64), read({2}, DType::I64), written({2, 2}, F64)}, {ints("axis", {0})}};
  EXPECT_THAT(evaluate(spec, {{1, 2, 3, 4, 5, 6}, {-1, 0}})[0], ElementsAre(5, 6, 1, 2));
  const CallSpec inner{
      "gather", {read({2, 3}, F64), read({2}, DType::I32), written({2, 2}, F64)}, {ints("axis", {-1})}};
  EXPECT_THAT(evaluate(inner, {{1, 2, 3, 4, 5, 6}, {2, 0}})[0], ElementsAre(3, 1, 6, 4));
}

TEST(HandWorked, ScatterAddSumsCollisions) {
  const CallSpec spec{
      "scatter_add", {read({3}, DType::I64), read({3, 2}, F64), written({2, 2}, F64)}, {ints("axis", {0})}};
  EXPECT_THAT(evaluate(spec, {{1, -1, 0}, {1, 2, 10, 20, 5, 6}})[0], ElementsAre(5, 6, 11, 22));
}

TEST(HandWorked, GatherElementsAndItsAdjoint) {
  const CallSpec gather{
      "gather_elements", {read({2, 3}, F64), read({2, 1}, DType::I64), written({2, 1}, F64)}, {ints("axis", {1})}};
  EXPECT_THAT(evaluate(gather, {{1, 2, 3, 4, 5, 6}, {2, -3}})[0], ElementsAre(3, 4));
  const CallSpec scatter{
      "scatter_add_elements", {read({2, 2}, DType::I64), read({2, 2}, F64), written({2, 3}, F64)}, {ints("axis", {1})}};
  EXPECT_THAT(evaluate(scatter, {{2, 2, 0, 1}, {1, 10, 7, 8}})[0], ElementsAre(0, 0, 11, 7, 8, 0));
}

TEST(HandWorked, CumsumDirections) {
  CallSpec spec{"cumsum", {read({4}, F64), written({4}, F64)}, {ints("axis", {0})}};
  EXPECT_THAT(evaluate(spec, {{1, 2, 3, 4}})[0], ElementsAre(1, 3, 6, 10));
  spec.attributes.push_back(ints("exclusive", {1}));
  EXPECT_THAT(evaluate(spec, {{1, 2, 3, 4}})[0], ElementsAre(0, 1, 3, 6));
  spec.attributes.push_back(ints("reverse", {1}));
  EXPECT_THAT(evaluate(spec, {{1, 2, 3, 4}})[0], ElementsAre(9, 7, 4, 0));
}

TEST(HandWorked, PhiloxMatchesThePublishedVectors) {
  // Known-answer vectors of philox4x32-10 that accompany the paper's code: zeros, all ones, digits of pi.
  EXPECT_THAT(philox4x32(0, {0, 0, 0, 0}), ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(philox4x32(~uint64_t{0}, {~0u, ~0u, ~0u, ~0u}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(philox4x32(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(HandWorked, RandomUniformTakesWordsInOrder) {
  const CallSpec spec{"random_uniform", {read({2}, DType::I64), written({5})}, {ints("op_id", {0})}};
  const Values out = evaluate(spec, {{0, 0}})[0];
  EXPECT_EQ(out[0], 0x6627e8p-24);
  EXPECT_EQ(out[3], 0x9b00dbp-24);
  EXPECT_EQ(out[4], (philox4x32(0, {1, 0, 0, 0})[0] >> 8) * 0x1p-24);
  const CallSpec other{"random_uniform", {read({2}, DType::I64), written({1})}, {ints("op_id", {9})}};
  EXPECT_EQ(evaluate(other, {{5, 3}})[0][0], (philox4x32(5, {0, 9, 3, 0})[0] >> 8) * 0x1p-24);
}

/// One head, S = 2, T = 2, D = Dv = 1, scale 1: q = (1, 2), k = (0, ln 3), v = (10, 20).
static CallSpec smallAttention(bool causal, bool masked) {
  CallSpec spec{"attention",
                {read({1, 1, 2, 1}, F64), read({1, 1, 2, 1}, F64), read({1, 1, 2, 1}, F64)},
                {number("scale", 1.0), ints("causal", {causal}), ints("has_mask", {masked})}};
  if (masked)
    spec.operands.push_back(read({1, 1, 2, 2}, DType::Bool));
  spec.operands.push_back(written({1, 1, 2, 1}, F64));
  spec.operands.push_back(written({1, 1, 2}, F64));
  return spec;
}

TEST(HandWorked, AttentionWeighsBySoftmax) {
  const Values q = {1, 2}, k = {0, std::log(3.0)}, v = {10, 20};
  // Row 0 weighs 1 : 3, row 1 weighs 1 : 9.
  const auto out = evaluate(smallAttention(false, false), {q, k, v});
  EXPECT_THAT(out[0], Pointwise(DoubleNear(1e-14), Values{17.5, 19}));
  EXPECT_THAT(out[1], Pointwise(DoubleNear(1e-14), Values{std::log(4.0), std::log(10.0)}));
  const auto causal = evaluate(smallAttention(true, false), {q, k, v});
  EXPECT_THAT(causal[0], Pointwise(DoubleNear(1e-14), Values{10, 19}));
}

TEST(HandWorked, AttentionRowWithoutKeysIsZero) {
  const Values q = {1, 2}, k = {0, std::log(3.0)}, v = {10, 20};
  const auto out = evaluate(smallAttention(false, true), {q, k, v, {0, 0, 0, 1}});
  EXPECT_THAT(out[0], ElementsAre(0, 20));
  EXPECT_EQ(out[1][0], -Infinity);
}

TEST(HandWorked, AttentionGradOfTwoKeys) {
  // One row q = 1, k = (0, ln 3), v = (10, 20), dout = 1: p = (1/4, 3/4), out = 17.5, dP - delta = (-7.5, 2.5),
  // dS = (-1.875, 1.875); dq = dS . k, dk = dS q, dv = p.
  const CallSpec spec{"attention_grad",
                      {read({1, 1, 1, 1}, F64), read({1, 1, 1, 1}, F64), read({1, 1, 2, 1}, F64),
                       read({1, 1, 2, 1}, F64), read({1, 1, 1, 1}, F64), read({1, 1, 1}, F64),
                       written({1, 1, 1, 1}, F64), written({1, 1, 2, 1}, F64), written({1, 1, 2, 1}, F64)},
                      {number("scale", 1.0)}};
  const auto out = evaluate(spec, {{1}, {1}, {0, std::log(3.0)}, {10, 20}, {17.5}, {std::log(4.0)}});
  EXPECT_THAT(out[0], Pointwise(DoubleNear(1e-14), Values{1.875 * std::log(3.0)}));
  EXPECT_THAT(out[1], Pointwise(DoubleNear(1e-14), Values{-1.875, 1.875}));
  EXPECT_THAT(out[2], Pointwise(DoubleNear(1e-14), Values{0.25, 0.75}));
}

} // namespace plimsoll::runtime::conformance
