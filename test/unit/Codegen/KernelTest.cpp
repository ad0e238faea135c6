// Generated kernels against the reference evaluator: forms, shapes, layouts, types, ranges, aliasing.
#include "KernelHarness.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::codegen;
using namespace plimsoll::codegen::test;
using reference::HostTensor;

namespace {

std::vector<HostTensor> randomInputs(GroupCase &test, uint64_t seed = 1) {
  std::vector<HostTensor> inputs;
  for (Type type : test.group.getInputs().getTypes())
    inputs.push_back(randomTensor(cast<RankedTensorType>(type), seed++));
  return inputs;
}

void check(const std::string &text, const RunSettings &settings, double relative, double absolute) {
  SCOPED_TRACE(text);
  MLIRContext context;
  GroupCase test(context, text);
  std::vector<HostTensor> inputs = randomInputs(test);
  std::vector<HostTensor> found = runKernel(test, inputs, settings), expected = runReference(test, inputs);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    expectNear(found[i], expected[i], relative, absolute);
}

std::string replaced(std::string text, const std::vector<std::pair<std::string, std::string>> &names) {
  for (const auto &[name, value] : names)
    for (size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, name.size(), value);
  return text;
}

// y = exp(x + bias) * scale, bias along the last dimension, scale a scalar.
const char *biasExp = R"(func.func @f(%x: tensor<$Rx$Cxf32>, %b: tensor<$Cxf32>, %s: tensor<f32>) -> tensor<$Rx$Cxf32> {
  %y = graph.group %x, %b, %s space [$R, $C] reduced [] : (tensor<$Rx$Cxf32>, tensor<$Cxf32>, tensor<f32>) -> tensor<$Rx$Cxf32> {
  ^bb0(%a0: tensor<$Rx$Cxf32>, %a1: tensor<$Cxf32>, %a2: tensor<f32>):
    %0 = graph.broadcast %a1 [1] : tensor<$Cxf32> -> tensor<$Rx$Cxf32>
    %1 = graph.broadcast %a2 [] : tensor<f32> -> tensor<$Rx$Cxf32>
    %2 = graph.add %a0, %0 : tensor<$Rx$Cxf32>
    %3 = graph.exp %2 : tensor<$Rx$Cxf32>
    %4 = graph.mul %3, %1 : tensor<$Rx$Cxf32>
    graph.yield %4 : tensor<$Rx$Cxf32>
  }
  return %y : tensor<$Rx$Cxf32>
})";

// Softmax along `D` of a matrix: two dependent reductions and a full-space result.
const char *softmax = R"(func.func @f(%x: tensor<$Rx$Cxf32>) -> tensor<$Rx$Cxf32> {
  %y = graph.group %x space [$R, $C] reduced [$D] : (tensor<$Rx$Cxf32>) -> tensor<$Rx$Cxf32> {
  ^bb0(%a: tensor<$Rx$Cxf32>):
    %m = graph.reduce_max %a [$D] : tensor<$Rx$Cxf32> -> tensor<$Pxf32>
    %mb = graph.broadcast %m [$K] : tensor<$Pxf32> -> tensor<$Rx$Cxf32>
    %d = graph.sub %a, %mb : tensor<$Rx$Cxf32>
    %e = graph.exp %d : tensor<$Rx$Cxf32>
    %s = graph.reduce_sum %e [$D] : tensor<$Rx$Cxf32> -> tensor<$Pxf32>
    %i = graph.reciprocal %s : tensor<$Pxf32>
    %ib = graph.broadcast %i [$K] : tensor<$Pxf32> -> tensor<$Rx$Cxf32>
    %y = graph.mul %e, %ib : tensor<$Rx$Cxf32>
    graph.yield %y : tensor<$Rx$Cxf32>
  }
  return %y : tensor<$Rx$Cxf32>
})";

std::string softmaxText(int64_t rows, int64_t columns, int axis) {
  return replaced(softmax, {{"$R", std::to_string(rows)},
                            {"$C", std::to_string(columns)},
                            {"$D", std::to_string(axis)},
                            {"$K", std::to_string(1 - axis)},
                            {"$P", std::to_string(axis == 1 ? rows : columns)}});
}

} // namespace

TEST(Kernel, ElementwiseWithBroadcasts) {
  for (int64_t rows : {1, 3, 17})
    for (int64_t columns : {1, 3, 16, 65, 1000})
      check(replaced(biasExp, {{"$R", std::to_string(rows)}, {"$C", std::to_string(columns)}}), {}, 4e-7, 0);
}

TEST(Kernel, ElementwiseStridedOperands) {
  std::string text = replaced(biasExp, {{"$R", "19"}, {"$C", "37"}});
  for (Storage in : {Storage::Dense, Storage::Reversed, Storage::Gapped})
    for (Storage out : {Storage::Dense, Storage::Reversed, Storage::Gapped})
      for (const char *cpu : {"x86-64-v3", "native"})
        check(text, {cpu, {in, Storage::Gapped}, {out}}, 4e-7, 0);
}

TEST(Kernel, RowReductions) {
  for (int64_t columns : {1, 3, 17, 64, 100, 1000})
    check(softmaxText(7, columns, 1), {}, 1e-6, 1e-9);
}

TEST(Kernel, ColumnReductions) {
  for (int64_t columns : {1, 3, 17, 64, 100})
    for (int64_t rows : {1, 5, 333, 1000})
      check(softmaxText(rows, columns, 0), {}, 1e-6, 1e-9);
}

TEST(Kernel, ReversedStorageSwapsTheForm) {
  check(softmaxText(70, 90, 1), {"native", {Storage::Reversed}, {Storage::Reversed}}, 1e-6, 1e-9);
  check(softmaxText(70, 90, 0), {"native", {Storage::Reversed}, {Storage::Reversed}}, 1e-6, 1e-9);
  check(softmaxText(70, 90, 1), {"x86-64-v3", {Storage::Gapped}, {Storage::Reversed}}, 1e-6, 1e-9);
}

TEST(Kernel, RangesDoNotChangeBits) {
  for (const std::string &text :
       {replaced(biasExp, {{"$R", "50"}, {"$C", "333"}}), replaced(biasExp, {{"$R", "3"}, {"$C", "5001"}}),
        softmaxText(50, 333, 1), softmaxText(50, 333, 0)}) {
    MLIRContext context;
    GroupCase test(context, text);
    std::vector<HostTensor> inputs = randomInputs(test);
    std::vector<HostTensor> whole = runKernel(test, inputs, {}),
                            units = runKernel(test, inputs, {"native", {}, {}, Cut::Units}),
                            uneven = runKernel(test, inputs, {"native", {}, {}, Cut::Uneven});
    ASSERT_EQ(whole.size(), 1u);
    EXPECT_EQ(whole[0].floats, units[0].floats);
    EXPECT_EQ(whole[0].floats, uneven[0].floats);
  }
}

TEST(Kernel, ResultMayTakeOverItsInput) {
  for (const std::string &text :
       {replaced(biasExp, {{"$R", "5"}, {"$C", "4099"}}), softmaxText(9, 333, 1), softmaxText(9, 333, 0)}) {
    MLIRContext context;
    GroupCase test(context, text);
    std::vector<HostTensor> inputs = randomInputs(test);
    RunSettings inPlace;
    inPlace.inPlaceInput = 0;
    EXPECT_EQ(runKernel(test, inputs, {})[0].floats, runKernel(test, inputs, inPlace)[0].floats);
  }
}
