// Kernel modules: sharing, determinism, launch numbers and refusals.
#include "KernelHarness.h"

#include "mlir/IR/Diagnostics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::codegen;
using namespace plimsoll::codegen::test;
using testing::HasSubstr;

namespace {

const char *twice = R"(func.func @f(%x: tensor<40x50xf32>) -> tensor<40x50xf32> {
  %r = graph.group %x space [40, 50] reduced [] : (tensor<40x50xf32>) -> tensor<40x50xf32> {
  ^bb0(%a: tensor<40x50xf32>):
    %s = graph.add %a, %a : tensor<40x50xf32>
    graph.yield %s : tensor<40x50xf32>
  }
  return %r : tensor<40x50xf32>
})";

const char *spread = R"(func.func @f(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %r = graph.group %x space [8, 8] reduced [1] : (tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a: tensor<8x8xf32>):
    %s = graph.reduce_sum %a [1] : tensor<8x8xf32> -> tensor<8xf32>
    %b = graph.broadcast %s [1] : tensor<8xf32> -> tensor<8x8xf32>
    graph.yield %b : tensor<8x8xf32>
  }
  return %r : tensor<8x8xf32>
})";

OperandLayout layout(GroupCase &test, Storage storage = Storage::Dense) {
  return layoutOf(cast<RankedTensorType>(test.group.getInputs()[0].getType()), storage);
}

std::string errorOf(MLIRContext &context, llvm::function_ref<void()> action) {
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message += diagnostic.str();
    return success();
  });
  action();
  return message;
}

} // namespace

TEST(Module, EqualKernelsAreShared) {
  MLIRContext context;
  GroupCase one(context, twice), other(context, twice);
  CpuKernelModule module(&context, {"x86-64-v3"});
  FailureOr<KernelInfo> first = module.add(one.group, {layout(one)}, {layout(one)}),
                        second = module.add(other.group, {layout(other)}, {layout(other)}),
                        strided = module.add(one.group, {layout(one, Storage::Gapped)}, {layout(one)});
  ASSERT_TRUE(succeeded(first) && succeeded(second) && succeeded(strided));
  EXPECT_EQ(first->symbol, "k0");
  EXPECT_EQ(second->symbol, "k0");
  EXPECT_EQ(strided->symbol, "k1");
  EXPECT_EQ(module.kernelCount(), 2u);
  EXPECT_EQ(first->extent, 1); // 2000 contiguous elements are one block
  EXPECT_EQ(first->grain, 1);
}

TEST(Module, SameInputSameBytes) {
  std::vector<std::vector<uint8_t>> images;
  for (int run = 0; run < 2; ++run) {
    MLIRContext context;
    CpuKernelModule module(&context, {"x86-64-v4"});
    GroupCase test(context, twice);
    for (Storage in : {Storage::Dense, Storage::Reversed, Storage::Gapped})
      for (Storage out : {Storage::Dense, Storage::Reversed, Storage::Gapped})
        ASSERT_TRUE(succeeded(module.add(test.group, {layout(test, in)}, {layout(test, out)})));
    FailureOr<std::vector<uint8_t>> image = module.finish();
    ASSERT_TRUE(succeeded(image));
    images.push_back(*image);
  }
  EXPECT_EQ(images[0], images[1]);
}

TEST(Module, RefusesUnknownCpu) {
  MLIRContext context;
  GroupCase test(context, twice);
  CpuKernelModule module(&context, {"pentium"});
  std::string message =
      errorOf(context, [&] { EXPECT_TRUE(failed(module.add(test.group, {layout(test)}, {layout(test)}))); });
  EXPECT_THAT(
      message,
      HasSubstr("unknown cpu 'pentium', expected native, x86-64-v3 or x86-64-v4; pass one of these with --cpu"));
}

TEST(Module, RefusesLayoutsThatDoNotFit) {
  MLIRContext context;
  GroupCase test(context, twice);
  CpuKernelModule module(&context);
  EXPECT_THAT(errorOf(context, [&] { EXPECT_TRUE(failed(module.add(test.group, {}, {layout(test)}))); }),
              HasSubstr("expected one layout per operand and result, found 0 and 1"));
  OperandLayout flat{{1}};
  EXPECT_THAT(errorOf(context, [&] { EXPECT_TRUE(failed(module.add(test.group, {flat}, {layout(test)}))); }),
              HasSubstr("layout with 1 strides for 'tensor<40x50xf32>'"));
}

TEST(Module, RefusesStatisticsOfOtherRows) {
  MLIRContext context;
  GroupCase test(context, spread);
  CpuKernelModule module(&context);
  EXPECT_THAT(errorOf(context, [&] { EXPECT_TRUE(failed(module.add(test.group, {layout(test)}, {layout(test)}))); }),
              HasSubstr("spreads a value over other dimensions than the group reduces"));
}
