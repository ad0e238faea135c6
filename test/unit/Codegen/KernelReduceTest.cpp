// Reductions: batch-norm shapes, accuracy over many elements, NaN, integers, statistics in and out, empty rows.
#include "KernelHarness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace mlir;
using namespace plimsoll::codegen;
using namespace plimsoll::codegen::test;
using plimsoll::reference::HostTensor;

namespace {

std::string replaced(std::string text, const std::vector<std::pair<std::string, std::string>> &names) {
  for (const auto &[name, value] : names)
    for (size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, name.size(), value);
  return text;
}

// Batch norm over (N, C, H, W) with scale, activation and a running statistic.
const char *batchNorm =
    R"(func.func @f(%x: tensor<$S>, %g: tensor<$Cxf32>, %old: tensor<$Cxf32>) -> (tensor<$S>, tensor<$Cxf32>) {
  %r:2 = graph.group %x, %g, %old space [$I] reduced [0, 2, 3] : (tensor<$S>, tensor<$Cxf32>, tensor<$Cxf32>) -> (tensor<$S>, tensor<$Cxf32>) {
  ^bb0(%a: tensor<$S>, %s: tensor<$Cxf32>, %o: tensor<$Cxf32>):
    %sum = graph.reduce_sum %a [0, 2, 3] : tensor<$S> -> tensor<$Cxf32>
    %n = graph.constant dense<$N> : tensor<$Cxf32>
    %mean = graph.div %sum, %n : tensor<$Cxf32>
    %mb = graph.broadcast %mean [1] : tensor<$Cxf32> -> tensor<$S>
    %c = graph.sub %a, %mb : tensor<$S>
    %q = graph.mul %c, %c : tensor<$S>
    %qs = graph.reduce_sum %q [0, 2, 3] : tensor<$S> -> tensor<$Cxf32>
    %var = graph.div %qs, %n : tensor<$Cxf32>
    %rstd = graph.rsqrt %var : tensor<$Cxf32>
    %rb = graph.broadcast %rstd [1] : tensor<$Cxf32> -> tensor<$S>
    %y = graph.mul %c, %rb : tensor<$S>
    %sb = graph.broadcast %s [1] : tensor<$Cxf32> -> tensor<$S>
    %z = graph.mul %y, %sb : tensor<$S>
    %relu = graph.relu %z : tensor<$S>
    %new = graph.add %o, %mean : tensor<$Cxf32>
    graph.yield %relu, %new : tensor<$S>, tensor<$Cxf32>
  }
  return %r#0, %r#1 : tensor<$S>, tensor<$Cxf32>
})";

std::string batchNormText(int64_t n, int64_t c, int64_t h, int64_t w) {
  auto text = [](int64_t number) { return std::to_string(number); };
  return replaced(batchNorm, {{"$S", text(n) + "x" + text(c) + "x" + text(h) + "x" + text(w) + "xf32"},
                              {"$I", text(n) + ", " + text(c) + ", " + text(h) + ", " + text(w)},
                              {"$N", text(n * h * w) + ".0"},
                              {"$C", text(c)}});
}

const char *reduce = R"(func.func @f(%x: tensor<$S>) -> tensor<$R> {
  %r = graph.group %x space [$I] reduced [$D] : (tensor<$S>) -> tensor<$R> {
  ^bb0(%a: tensor<$S>):
    %s = graph.$O %a [$D] : tensor<$S> -> tensor<$R>
    graph.yield %s : tensor<$R>
  }
  return %r : tensor<$R>
})";

void compare(const std::string &text, double relative, double absolute, const RunSettings &settings = {},
             double offset = 0) {
  SCOPED_TRACE(text);
  MLIRContext context;
  GroupCase test(context, text);
  std::vector<HostTensor> inputs;
  for (Type type : test.group.getInputs().getTypes()) {
    inputs.push_back(randomTensor(cast<RankedTensorType>(type), inputs.size() + 11));
    for (double &value : inputs.back().floats)
      value = static_cast<float>(value + offset);
  }
  std::vector<HostTensor> found = runKernel(test, inputs, settings), expected = runReference(test, inputs);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    expectNear(found[i], expected[i], relative, absolute);
}

} // namespace

TEST(KernelReduce, BatchNormShapes) {
  for (const char *cpu : {"native", "x86-64-v3"}) {
    compare(batchNormText(2, 3, 5, 7), 1e-6, 1e-6, {cpu});
    compare(batchNormText(1, 1, 1, 3), 1e-6, 1e-6, {cpu});
    compare(batchNormText(4, 8, 16, 16), 1e-6, 1e-6, {cpu}, 3);
    compare(batchNormText(70, 3, 16, 20), 1e-6, 1e-6, {cpu}, 3);
  }
  compare(batchNormText(3, 4, 5, 6), 1e-6, 1e-6, {"native", {Storage::Reversed}, {Storage::Gapped}});
}

TEST(KernelReduce, LongSumsStayAccurate) {
  // Bound: half an ulp of the result plus the f32 error of at most 256 additions per lane; measured errors are far
  // below.
  auto text = [](const char *shape, const char *iteration, const char *dims, const char *result) {
    return replaced(reduce, {{"$S", shape}, {"$I", iteration}, {"$D", dims}, {"$R", result}, {"$O", "reduce_sum"}});
  };
  compare(text("1000003xf32", "1000003", "0", "f32"), 2e-6, 0, {}, 1);
  compare(text("100003x3xf32", "100003, 3", "0", "3xf32"), 2e-6, 0, {}, 1);
  compare(text("2x300001xf32", "2, 300001", "1", "2xf32"), 2e-6, 0, {}, 1);
}

TEST(KernelReduce, OtherTypes) {
  auto text = [](const std::string &op, const std::string &type) {
    return replaced(reduce, {{"$S", "5x67x" + type}, {"$I", "5, 67"}, {"$D", "1"}, {"$R", "5x" + type}, {"$O", op}});
  };
  for (const char *type : {"f64", "i64", "i32", "ui8"})
    for (const char *op : {"reduce_sum", "reduce_max"})
      compare(text(op, type), 1e-12, 1e-12);
  compare(text("reduce_max", "f32"), 0, 0);
}

TEST(KernelReduce, MaximumKeepsNan) {
  for (int64_t place : {0, 5, 63, 64, 66}) {
    MLIRContext context;
    GroupCase test(
        context,
        replaced(reduce, {{"$S", "1x67xf32"}, {"$I", "1, 67"}, {"$D", "1"}, {"$R", "1xf32"}, {"$O", "reduce_max"}}));
    HostTensor input = randomTensor(cast<RankedTensorType>(test.group.getInputs()[0].getType()), 5);
    input.floats[place] = NAN;
    std::vector<HostTensor> found = runKernel(test, {input}, {});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_TRUE(std::isnan(found[0].floats[0])) << place;
  }
}

TEST(KernelReduce, EmptyRowsGiveTheIdentity) {
  for (auto [op, identity] :
       {std::pair("reduce_sum", 0.0), std::pair("reduce_max", -std::numeric_limits<double>::infinity())}) {
    MLIRContext context;
    GroupCase test(context,
                   replaced(reduce, {{"$S", "3x0xf32"}, {"$I", "3, 0"}, {"$D", "1"}, {"$R", "3xf32"}, {"$O", op}}));
    HostTensor input = HostTensor::zeros(test.group.getInputs()[0].getType());
    std::vector<HostTensor> found = runKernel(test, {input}, {});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].floats, std::vector<double>(3, identity));
  }
}
