// Every case on every set of kernels: the fast ones of this machine at one, two and three threads, and those of the
// weaker instruction sets without oneDNN, all against the reference.
#include "runtime/CPU/CpuBackend.h"
#include "runtime/CPU/CpuCalls.h"
#include "runtime/CPU/Dnnl.h"
#include "runtime/Kernels/Check.h"
#include "test/conformance/Harness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace plimsoll::runtime::conformance {

class Kernels : public testing::TestWithParam<Case> {};

static Operands runOn(Backend &backend, const Case &test) {
  Operands operands = makeOperands(test);
  auto call = backend.prepare(test.spec);
  EXPECT_TRUE(call) << call.status().message();
  if (call)
    execute(**call, operands);
  EXPECT_TRUE(backend.synchronize());
  return operands;
}

TEST_P(Kernels, FastMatchesReferenceAtEveryThreadCount) {
  const Case &test = GetParam();
  const Operands reference = runReference(test);
  const auto allowed = allowedDistance(test, reference);
  std::vector<Operands> results;
  for (unsigned threads : {1u, 2u, 3u}) {
    const auto backend = createCpuBackend({threads, false});
    results.push_back(runOn(*backend, test));
    SCOPED_TRACE(std::to_string(threads) + " threads");
    expectClose(results.back(), reference, allowed);
    for (size_t i = 0; test.sameBits && i < reference.buffers.size(); ++i)
      EXPECT_EQ(results.back().buffers[i].raw(), results.front().buffers[i].raw()) << "operand " << i;
  }
}

TEST_P(Kernels, ReferenceBackendIsTheReference) {
  const Case &test = GetParam();
  const auto backend = createCpuBackend({2, true});
  const Operands reference = runReference(test), result = runOn(*backend, test);
  for (size_t i = 0; i < reference.buffers.size(); ++i)
    EXPECT_EQ(result.buffers[i].raw(), reference.buffers[i].raw()) << "operand " << i;
}

TEST_P(Kernels, EveryInstructionSetMatchesWithoutOneDnn) {
  const Case &test = GetParam();
  const Operands reference = runReference(test);
  const auto allowed = allowedDistance(test, reference);
  for (const TileKernels *tiles : {avx512TileKernels(), avx2TileKernels(), genericTileKernels()}) {
    if (!tiles)
      continue;
    SCOPED_TRACE(tiles->name);
    auto call = prepareCpuCall(test.spec, {2, nullptr, nullptr, tiles});
    ASSERT_TRUE(call) << call.status().message();
    Operands operands = makeOperands(test);
    execute(**call, operands);
    expectClose(operands, reference, allowed);
  }
}

TEST_P(Kernels, RunsTwiceWithTheSameBits) {
  const Case &test = GetParam();
  const auto backend = createCpuBackend({2, false});
  const Operands first = runOn(*backend, test), second = runOn(*backend, test);
  for (size_t i = 0; i < first.buffers.size(); ++i)
    EXPECT_EQ(first.buffers[i].raw(), second.buffers[i].raw()) << "operand " << i;
}

TEST_P(Kernels, WorkspaceIsWhatTheCompilerIsTold) {
  const Case &test = GetParam();
  for (unsigned threads : {1u, 2u, 3u}) {
    const auto backend = createCpuBackend({threads, false});
    auto call = backend->prepare(test.spec);
    ASSERT_TRUE(call);
    const auto told = cpuWorkspaceBytes(test.spec, threads);
    ASSERT_TRUE(told);
    EXPECT_EQ((*call)->workspaceBytes(), *told);
    EXPECT_EQ(*told % 64, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Kernels, testing::ValuesIn(allCases()),
                         [](const auto &parameter) { return parameter.param.name; });

/// The vector exponential behind the softmax: two keys with scores 0 and x give weights 1 and exp(x). Bound: 2e-7
/// relative for the polynomial and the reduction, results below the normal range are 0.
TEST(Tiles, SoftmaxWeightsAreExponentials) {
  for (const TileKernels *tiles : {avx512TileKernels(), avx2TileKernels(), genericTileKernels()}) {
    if (!tiles)
      continue;
    for (float x = 0.0f; x > -100.0f; x -= 0.00731f) {
      std::vector<float> scores(2 * FloatLanes, 0.0f), maximum(FloatLanes, -std::numeric_limits<float>::infinity());
      std::vector<float> sum(FloatLanes, 0.0f), correction(FloatLanes);
      std::fill(scores.begin() + FloatLanes, scores.end(), x);
      tiles->softmax({scores.data(), 2, FloatLanes, maximum.data(), sum.data(), correction.data()});
      const double exact = std::exp(static_cast<double>(x)), least = std::numeric_limits<float>::min();
      const double allowed = exact < 1.01 * least ? 1.01 * least : 2e-7 * exact;
      ASSERT_NEAR(scores.back(), exact, allowed) << tiles->name << " at " << x;
      ASSERT_EQ(scores.front(), 1.0f);
      ASSERT_EQ(maximum.front(), 0.0f);
    }
  }
}

TEST(Tiles, SoftmaxKeepsNaNAndIgnoresHiddenKeys) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const TileKernels *tiles : {avx512TileKernels(), avx2TileKernels(), genericTileKernels()}) {
    if (!tiles)
      continue;
    std::vector<float> scores(2 * FloatLanes, -infinity), maximum(FloatLanes, -infinity), sum(FloatLanes, 0.0f);
    std::vector<float> correction(FloatLanes);
    scores[1] = nan;
    scores[2] = 5.0f;
    tiles->softmax({scores.data(), 2, FloatLanes, maximum.data(), sum.data(), correction.data()});
    EXPECT_EQ(sum[0], 0.0f) << "a row that sees no key";
    EXPECT_TRUE(std::isnan(sum[1]));
    EXPECT_EQ(sum[2], 1.0f);
    EXPECT_EQ(scores[FloatLanes + 2], 0.0f);
  }
}

TEST(Cases, CoverEveryOperation) {
  std::set<std::string> covered;
  for (const Case &test : allCases())
    covered.insert(test.spec.op);
  for (const std::string &op : libraryOperations())
    EXPECT_TRUE(covered.count(op)) << op;
}

} // namespace plimsoll::runtime::conformance
