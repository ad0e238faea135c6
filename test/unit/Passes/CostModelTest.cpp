// The cost model on a machine of round numbers: every duration is worked out by hand beside its program.
#include "test/unit/Passes/PlanMachine.h"

#include "lib/Passes/PlanProblem.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::test;

namespace {

/// Arithmetic is slow and memory fast, so that the larger side is plain; tests turn single knobs.
TargetProfile slowArithmetic() {
  TargetProfile machine;
  machine.dotFlops = machine.convFlops = machine.convInputGradFlops = machine.convWeightGradFlops = 1e6;
  machine.groupedConvFlops = 1e5;
  machine.attentionFlops = machine.attentionGradFlops = 1e6;
  machine.scalarOps = 1e6;
  machine.indexedElements = 1e6;
  machine.threadBandwidth = machine.memoryBandwidth = machine.cacheBandwidth = 1e15;
  machine.launchSeconds = 1;
  return machine;
}

TargetProfile slowMemory() {
  TargetProfile machine = slowArithmetic();
  machine.dotFlops = machine.convFlops = machine.attentionFlops = machine.scalarOps = machine.indexedElements = 1e15;
  machine.threadBandwidth = 1000;
  machine.memoryBandwidth = 1500;
  machine.launchSeconds = 0;
  return machine;
}

struct CostModelTest : ::testing::Test {
  /// Costs of the steps of entry @f, in order.
  std::vector<double> costs(StringRef text, const TargetProfile &machine, unsigned threads = 1) {
    PassContext pass;
    FakeTarget target;
    OwningOpRef<ModuleOp> module = parseModule(pass.context, text);
    EXPECT_TRUE(module) << pass.messages;
    if (!module || failed(prepareForPlan(*module)))
      return {};
    auto entry = *module->getOps<func::FuncOp>().begin();
    FailureOr<EntryDraft> draft = readEntry(entry, target, CostModel(machine, threads), 64);
    EXPECT_TRUE(succeeded(draft)) << pass.messages;
    std::vector<double> result;
    if (succeeded(draft))
      for (const planner::Step &step : draft->problem.steps)
        result.push_back(step.costSeconds);
    return result;
  }
};

constexpr const char *dotProgram = R"(
  func.func @f(%a: tensor<32x64xf32>, %b: tensor<64x16xf32>) -> tensor<32x16xf32> {
    %0 = graph.dot %a, %b : (tensor<32x64xf32>, tensor<64x16xf32>) -> tensor<32x16xf32>
    return %0 : tensor<32x16xf32>
  })";

TEST_F(CostModelTest, ADotTakesTwoFlopsAMultiplyAdd) {
  // 2 * 32 * 64 * 16 = 65536 flops at 1e6 a second, and a launch of 1 s; two threads share the flops, not the launch.
  EXPECT_EQ(costs(dotProgram, slowArithmetic()), std::vector<double>{0.065536 + 1});
  EXPECT_EQ(costs(dotProgram, slowArithmetic(), 2), std::vector<double>{0.032768 + 1});
}

TEST_F(CostModelTest, ADotBoundByMemoryTakesItsBytes) {
  // (2048 + 1024 + 512) * 4 = 14336 bytes; one thread reaches 1000 bytes a second, the whole machine 1500.
  EXPECT_EQ(costs(dotProgram, slowMemory()), std::vector<double>{14.336});
  EXPECT_EQ(costs(dotProgram, slowMemory(), 4), std::vector<double>{14336.0 / 1500});
}

TEST_F(CostModelTest, OperandsThatFitTheCacheMoveAtItsSpeed) {
  TargetProfile machine = slowMemory();
  machine.cacheBytes = 14336;
  machine.cacheBandwidth = 14336;
  EXPECT_EQ(costs(dotProgram, machine), std::vector<double>{1});
  machine.cacheBytes = 14335;
  EXPECT_EQ(costs(dotProgram, machine), std::vector<double>{14.336});
}

constexpr const char *convProgram = R"(
  func.func @f(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %d: tensor<4x1x3x3xf32>) -> (tensor<2x6x6x6xf32>, tensor<2x4x6x6xf32>) {
    %0 = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<2x6x6x6xf32>
    %1 = graph.conv %x, %d {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 4 : i64} : (tensor<2x4x8x8xf32>, tensor<4x1x3x3xf32>) -> tensor<2x4x6x6xf32>
    return %0, %1 : tensor<2x6x6x6xf32>, tensor<2x4x6x6xf32>
  })";

TEST_F(CostModelTest, AConvTakesItsTapsAndAGroupedOneRunsSlower) {
  // 2*6*6*6 = 432 outputs of 4*3*3 = 36 taps: 2 * 432 * 36 = 31104 flops at 1e6;
  // 2*4*6*6 = 288 outputs of 9 taps: 5184 flops at 1e5.
  EXPECT_EQ(costs(convProgram, slowArithmetic()), (std::vector<double>{0.031104 + 1, 0.05184 + 1}));
}

constexpr const char *attentionProgram = R"(
  func.func @f(%q: tensor<2x3x8x4xf32>, %k: tensor<2x3x16x4xf32>) -> tensor<2x3x8x4xf32> {
    %0:2 = graph.attention %q, %k, %k {scale = 0.5 : f64} : (tensor<2x3x8x4xf32>, tensor<2x3x16x4xf32>, tensor<2x3x16x4xf32>) -> (tensor<2x3x8x4xf32>, tensor<2x3x8xf32>)
    return %0#0 : tensor<2x3x8x4xf32>
  })";

TEST_F(CostModelTest, AttentionTakesTwoProductsAndItsSoftmax) {
  // 2*3*8*16 = 768 scores of 2 * 2 * 4 + 5 = 21 flops.
  EXPECT_EQ(costs(attentionProgram, slowArithmetic()), std::vector<double>{768 * 21 / 1e6 + 1});
  // q 768, k 1536 (twice, as key and value), out 768, log-sum-exp 192 bytes: 192 + 384 + 384 + 192 + 48 elements.
  EXPECT_EQ(costs(attentionProgram, slowMemory()), std::vector<double>{4 * (192 + 384 + 384 + 192 + 48) / 1000.0});
}

TEST_F(CostModelTest, CausalAttentionSkipsHalfTheScores) {
  std::string causal = attentionProgram;
  causal.replace(causal.find("0.5 : f64"), 9, "0.5 : f64, causal = true");
  EXPECT_EQ(costs(causal, slowArithmetic()), std::vector<double>{384 * 21 / 1e6 + 1});
}

TEST_F(CostModelTest, AGroupTakesItsElementOperationsAndOnlyItsBoundaryBytes) {
  const char *program = R"(
    func.func @f(%x: tensor<10x100xf32>, %b: tensor<100xf32>) -> tensor<10x100xf32> {
      %0 = graph.broadcast %b [1] : tensor<100xf32> -> tensor<10x100xf32>
      %1 = graph.add %x, %0 : tensor<10x100xf32>
      %2 = graph.exp %1 : tensor<10x100xf32>
      %3 = graph.mul %2, %x : tensor<10x100xf32>
      return %3 : tensor<10x100xf32>
    })";
  // 1000 elements: add and mul count 1 each, exp as much as CostModel.cpp says; the broadcast is free.
  std::vector<double> found = costs(program, slowArithmetic());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_DOUBLE_EQ(found[0], 1000 * (1 + 8 + 1) / 1e6 + 1);
  // x and the result are 4000 bytes each, b is 400; what the group passes on inside never reaches memory.
  EXPECT_EQ(costs(program, slowMemory()), std::vector<double>{8.4});
}

TEST_F(CostModelTest, AGatherReadsOnlyTheRowsItPicks) {
  const char *program = R"(
    func.func @f(%table: tensor<1000x10xf32>, %rows: tensor<4xi64>) -> tensor<4x10xf32> {
      %0 = graph.gather %table, %rows axis 0 : (tensor<1000x10xf32>, tensor<4xi64>) -> tensor<4x10xf32>
      return %0 : tensor<4x10xf32>
    })";
  // 4 rows of 40 bytes read and written, 4 indices of 8 bytes.
  EXPECT_EQ(costs(program, slowMemory()), std::vector<double>{(160 + 160 + 32) / 1000.0});
}

TEST_F(CostModelTest, ConcatenationIsCopiesOfItsPieces) {
  const char *program = R"(
    func.func @f(%a: tensor<2x10xf32>, %b: tensor<3x10xf32>) -> tensor<5x10xf32> {
      %0 = graph.concat %a, %b axis 0 : (tensor<2x10xf32>, tensor<3x10xf32>) -> tensor<5x10xf32>
      return %0 : tensor<5x10xf32>
    })";
  EXPECT_EQ(costs(program, slowMemory()), (std::vector<double>{0.16, 0.24}));
}

TEST_F(CostModelTest, TheCpuProfileKnowsEverySpeed) {
  TargetProfile cpu = cpuProfile();
  for (double speed : {cpu.dotFlops, cpu.convFlops, cpu.convInputGradFlops, cpu.convWeightGradFlops,
                       cpu.groupedConvFlops, cpu.attentionFlops, cpu.attentionGradFlops, cpu.scalarOps,
                       cpu.indexedElements, cpu.threadBandwidth, cpu.memoryBandwidth, cpu.cacheBandwidth,
                       cpu.launchSeconds, cpu.disk.outBytesPerSecond, cpu.disk.inBytesPerSecond})
    EXPECT_GT(speed, 0);
}

TEST(ProfileNumbers, AreReadWithTheirUnits) {
  EXPECT_EQ(parseProfileNumber("240e9"), 240e9);
  EXPECT_EQ(parseProfileNumber("1.5GB/s"), 1.5e9);
  EXPECT_EQ(parseProfileNumber("16MiB"), 16.0 * 1024 * 1024);
  EXPECT_EQ(parseProfileNumber("fast"), std::nullopt);
  EXPECT_EQ(parseProfileNumber(""), std::nullopt);
}

TEST(ProfileNumbers, ReplaceOneSpeedEach) {
  TargetProfile machine = cpuProfile();
  EXPECT_TRUE(static_cast<bool>(setProfileNumber(machine, "disk_write_bandwidth", 5)));
  EXPECT_EQ(machine.disk.outBytesPerSecond, 5);
  EXPECT_EQ(machine.disk.inBytesPerSecond, cpuProfile().disk.inBytesPerSecond);
  EXPECT_EQ(setProfileNumber(machine, "dot", 1).code(), ExitCode::Usage);
  EXPECT_EQ(setProfileNumber(machine, "dot_flops", -1).code(), ExitCode::Usage);
  EXPECT_EQ(machine.dotFlops, cpuProfile().dotFlops);
}

} // namespace
