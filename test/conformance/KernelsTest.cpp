// Every case on every set of kernels: the fast ones of this machine at one, two and three threads, and those of the
// weaker instruction sets without oneDNN, all against the reference.
#include "runtime/CPU/CpuBackend.h"
#include "runtime/CPU/CpuCalls.h"
#include "runtime/CPU/Dnnl.h"
#include "runtime/Kernels/Check.h"
#include "test/conformance/Harness.h"

#include <gtest/gtest.h>

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

TEST(Cases, CoverEveryOperation) {
  std::set<std::string> covered;
  for (const Case &test : allCases())
    covered.insert(test.spec.op);
  for (const std::string &op : libraryOperations())
    EXPECT_TRUE(covered.count(op)) << op;
}

} // namespace plimsoll::runtime::conformance
