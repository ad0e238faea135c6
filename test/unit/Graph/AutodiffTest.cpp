// differentiate(): activity, accumulation, seeds, locations and refusals.
#include "lib/Passes/Autodiff.h"
#include "test/unit/Graph/GradHarness.h"

#include "mlir/IR/Diagnostics.h"

#include <gmock/gmock.h>

using namespace mlir;
using namespace plimsoll::graph;
using namespace plimsoll::test;
using ::testing::HasSubstr;

namespace {

struct AutodiffTest : ::testing::Test {
  GraphContext graph;
  std::string message;
  ScopedDiagnosticHandler handler{&graph.context, [this](Diagnostic &diagnostic) {
                                    message += diagnostic.str();
                                    return success();
                                  }};

  /// Differentiates the first result of `f` in all arguments, building before the terminator.
  FailureOr<SmallVector<Value>> gradientsOf(func::FuncOp function, Value seed = {}) {
    Operation *terminator = function.getBody().front().getTerminator();
    OpBuilder builder(terminator);
    return plimsoll::differentiate(function, terminator->getOperand(0), seed,
                                   SmallVector<Value>(function.getArguments()), builder);
  }
  static size_t countOps(func::FuncOp function) { return function.getBody().front().getOperations().size(); }
};

} // namespace

TEST_F(AutodiffTest, valuesOffThePathCostNothing) {
  GraphModule module(graph.context,
                     R"(func.func @f(%x: tensor<2xf32>, %i: tensor<2xi64>, %unused: tensor<2xf32>) -> tensor<2xf32> {
    %c = graph.convert %i : tensor<2xi64> -> tensor<2xf32>
    %e = graph.exp %c : tensor<2xf32>
    return %e : tensor<2xf32>
  })");
  size_t before = countOps(module.function());
  auto gradients = gradientsOf(module.function());
  ASSERT_TRUE(succeeded(gradients));
  for (Value gradient : *gradients)
    EXPECT_FALSE(gradient);
  EXPECT_EQ(countOps(module.function()), before);
}

// The frozen factor of a product gets no gradient, and no product is formed for it.
TEST_F(AutodiffTest, onlyRequestedValuesAreDifferentiated) {
  GraphModule module(graph.context, R"(func.func @f(%x: tensor<2xf32>, %w: tensor<2xf32>) -> tensor<2xf32> {
    %y = graph.mul %x, %w : tensor<2xf32>
    return %y : tensor<2xf32>
  })");
  func::FuncOp function = module.function();
  Operation *terminator = function.getBody().front().getTerminator();
  OpBuilder builder(terminator);
  auto gradients = plimsoll::differentiate(function, terminator->getOperand(0), {}, function.getArgument(1), builder);
  ASSERT_TRUE(succeeded(gradients));
  EXPECT_TRUE(gradients->front());
  size_t products = 0;
  function.walk([&](MulOp) { ++products; });
  EXPECT_EQ(products, 2u);
}

TEST_F(AutodiffTest, theLossItselfHasTheSeedAsGradient) {
  GraphModule module(graph.context, "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }");
  func::FuncOp function = module.function();
  auto gradients = gradientsOf(function, function.getArgument(0));
  ASSERT_TRUE(succeeded(gradients));
  EXPECT_EQ(gradients->front(), function.getArgument(0));
}

TEST_F(AutodiffTest, gradientsCarryTheForwardLocation) {
  GraphModule module(graph.context, R"(func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
    %y = graph.exp %x : tensor<2xf32> loc("block/exp")
    return %y : tensor<2xf32>
  })");
  auto gradients = gradientsOf(module.function());
  ASSERT_TRUE(succeeded(gradients));
  auto fused = dyn_cast<FusedLoc>(gradients->front().getLoc());
  ASSERT_TRUE(fused);
  EXPECT_EQ(fused.getMetadata(), StringAttr::get(&graph.context, "gradient"));
  EXPECT_EQ(cast<NameLoc>(fused.getLocations().front()).getName(), "block/exp");
}

TEST_F(AutodiffTest, everyMissingRuleIsReportedAtOnce) {
  GraphModule module(graph.context,
                     R"(func.func @f(%x: tensor<2x3xf32>, %l: tensor<2xi64>, %s: tensor<2xf32>) -> tensor<2x3xf32> {
    %d = graph.cross_entropy_grad %x, %l, %s, %s ignore -100 : (tensor<2x3xf32>, tensor<2xi64>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x3xf32> loc("head/loss")
    %g = graph.group %d space [2, 3] reduced [] : (tensor<2x3xf32>) -> tensor<2x3xf32> {
    ^bb0(%e: tensor<2x3xf32>):
      graph.yield %e : tensor<2x3xf32>
    } loc("fused/kernel")
    return %g : tensor<2x3xf32>
  })");
  EXPECT_TRUE(failed(gradientsOf(module.function())));
  EXPECT_THAT(message,
              HasSubstr("no gradient rule for 2 ops on a path to the loss: graph.cross_entropy_grad (head/loss), "
                        "graph.group (fused/kernel); replace them, or freeze the parameters they depend on"));
}

TEST_F(AutodiffTest, anIntegerLossIsRefused) {
  GraphModule module(graph.context, "func.func @f(%x: tensor<2xi64>) -> tensor<2xi64> { return %x : tensor<2xi64> }");
  EXPECT_TRUE(failed(gradientsOf(module.function())));
  EXPECT_THAT(message, HasSubstr("cannot differentiate a loss of type 'tensor<2xi64>', expected a float tensor"));
}

TEST_F(AutodiffTest, aSeedOfAnotherTypeIsRefused) {
  GraphModule module(graph.context,
                     "func.func @f(%x: tensor<2xf32>, %s: tensor<f32>) -> tensor<2xf32> { return %x : tensor<2xf32> }");
  EXPECT_TRUE(failed(gradientsOf(module.function(), module.function().getArgument(1))));
  EXPECT_THAT(message, HasSubstr("the cotangent of the loss has type 'tensor<f32>', expected 'tensor<2xf32>'"));
}

TEST_F(AutodiffTest, severalBlocksAreRefused) {
  graph.context.allowUnregisteredDialects();
  GraphModule module(graph.context, R"("func.func"() ({
  ^bb0(%x: tensor<2xf32>):
    "test.branch"()[^bb1] : () -> ()
  ^bb1:
    "func.return"(%x) : (tensor<2xf32>) -> ()
  }) {sym_name = "f", function_type = (tensor<2xf32>) -> tensor<2xf32>} : () -> ())");
  ASSERT_TRUE(module.module);
  func::FuncOp function = module.function();
  OpBuilder builder(function.getBody().back().getTerminator());
  EXPECT_TRUE(failed(plimsoll::differentiate(function, function.getArgument(0), {}, function.getArgument(0), builder)));
  EXPECT_THAT(message, HasSubstr("cannot differentiate a function of 2 blocks, expected one"));
}
