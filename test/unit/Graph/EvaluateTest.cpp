// The reference evaluator itself: rounding, state, groups, special values and refusals. What the ops compute is checked
// against PyTorch by TorchReplayTest.
#include "test/unit/Graph/GradHarness.h"

#include "mlir/IR/Diagnostics.h"

#include <cmath>
#include <gmock/gmock.h>

using namespace mlir;
using namespace plimsoll::reference;
using namespace plimsoll::test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

struct EvaluateTest : ::testing::Test {
  GraphContext graph;
  VariableState state;
  std::string message;
  ScopedDiagnosticHandler handler{&graph.context, [this](Diagnostic &diagnostic) {
                                    message += diagnostic.str();
                                    return success();
                                  }};

  FailureOr<std::vector<HostTensor>> run(StringRef text, const std::vector<std::vector<double>> &numbers,
                                         bool exactDouble = false) {
    GraphModule module(graph.context, text);
    if (!module.module)
      return failure();
    return evaluate(module.function(), makeInputs(module.function(), numbers), state, {exactDouble});
  }
};

} // namespace

TEST_F(EvaluateTest, floatsRoundToTheirElementType) {
  const char *text = R"(func.func @f(%x: tensor<1xf32>) -> (tensor<1xf32>, tensor<1xbf16>, tensor<1xf16>) {
    %y = graph.reciprocal %x : tensor<1xf32>
    %b = graph.convert %y : tensor<1xf32> -> tensor<1xbf16>
    %h = graph.convert %y : tensor<1xf32> -> tensor<1xf16>
    return %y, %b, %h : tensor<1xf32>, tensor<1xbf16>, tensor<1xf16>
  })";
  auto rounded = run(text, {{3.0}});
  ASSERT_TRUE(succeeded(rounded));
  EXPECT_EQ((*rounded)[0].floats[0], static_cast<double>(1.0f / 3.0f));
  EXPECT_EQ((*rounded)[1].floats[0], 0.333984375);    // 171/512: 8 significant bits
  EXPECT_EQ((*rounded)[2].floats[0], 0.333251953125); // 1365/4096: 11 significant bits
  auto exact = run(text, {{3.0}}, /*exactDouble=*/true);
  ASSERT_TRUE(succeeded(exact));
  EXPECT_EQ((*exact)[1].floats[0], 1.0 / 3.0);
}

TEST_F(EvaluateTest, integersWrapAndConvertTruncates) {
  auto results =
      run(R"(func.func @f(%x: tensor<3xi8>, %y: tensor<3xf32>) -> (tensor<3xi8>, tensor<3xi32>, tensor<3xi1>) {
    %s = graph.add %x, %x : tensor<3xi8>
    %t = graph.convert %y : tensor<3xf32> -> tensor<3xi32>
    %b = graph.convert %y : tensor<3xf32> -> tensor<3xi1>
    return %s, %t, %b : tensor<3xi8>, tensor<3xi32>, tensor<3xi1>
  })",
          {{100, -100, 3}, {-1.75, 2.5, 0.0}});
  ASSERT_TRUE(succeeded(results));
  EXPECT_THAT((*results)[0].ints, ElementsAre(-56, 56, 6));
  EXPECT_THAT((*results)[1].ints, ElementsAre(-1, 2, 0));
  EXPECT_THAT((*results)[2].ints, ElementsAre(1, 1, 0));
}

TEST_F(EvaluateTest, nanPropagatesThroughMaximaAndComparesUnequal) {
  auto results = run(
      R"(func.func @f(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<f32>, tensor<2xi1>, tensor<2xi1>) {
    %m = graph.maximum %x, %y : tensor<2xf32>
    %r = graph.reduce_max %x [0] : tensor<2xf32> -> tensor<f32>
    %n = graph.is_nan %x : tensor<2xf32> -> tensor<2xi1>
    %e = graph.compare <eq> %x, %x : tensor<2xf32> -> tensor<2xi1>
    return %m, %r, %n, %e : tensor<2xf32>, tensor<f32>, tensor<2xi1>, tensor<2xi1>
  })",
      {{NAN, 1}, {0, 2}});
  ASSERT_TRUE(succeeded(results));
  EXPECT_TRUE(std::isnan((*results)[0].floats[0]));
  EXPECT_EQ((*results)[0].floats[1], 2);
  EXPECT_TRUE(std::isnan((*results)[1].floats[0]));
  EXPECT_THAT((*results)[2].ints, ElementsAre(1, 0));
  EXPECT_THAT((*results)[3].ints, ElementsAre(0, 1));
}

TEST_F(EvaluateTest, integerOpsAndIota) {
  auto results = run(
      R"(func.func @f(%x: tensor<3xi64>, %y: tensor<3xi64>) -> (tensor<3xi64>, tensor<3xi64>, tensor<3xi64>, tensor<i64>) {
    %i = graph.iota 0 : tensor<3xi64>
    %s = graph.sub %x, %i : tensor<3xi64>
    %d = graph.div %x, %y : tensor<3xi64>
    %m = graph.minimum %x, %y : tensor<3xi64>
    %r = graph.reduce_sum %x [0] : tensor<3xi64> -> tensor<i64>
    return %s, %d, %m, %r : tensor<3xi64>, tensor<3xi64>, tensor<3xi64>, tensor<i64>
  })",
      {{7, -7, 9}, {2, 2, -4}});
  ASSERT_TRUE(succeeded(results));
  EXPECT_THAT((*results)[0].ints, ElementsAre(7, -8, 7));
  EXPECT_THAT((*results)[1].ints, ElementsAre(3, -3, -2));
  EXPECT_THAT((*results)[2].ints, ElementsAre(2, -7, -4));
  EXPECT_THAT((*results)[3].ints, ElementsAre(9));
}

TEST_F(EvaluateTest, booleansCombine) {
  auto results = run(R"(func.func @f(%x: tensor<4xi1>, %y: tensor<4xi1>) -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>) {
    %a = graph.and %x, %y : tensor<4xi1>
    %o = graph.or %x, %y : tensor<4xi1>
    %n = graph.not %x : tensor<4xi1>
    return %a, %o, %n : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>
  })",
                     {{0, 0, 1, 1}, {0, 1, 0, 1}});
  ASSERT_TRUE(succeeded(results));
  EXPECT_THAT((*results)[0].ints, ElementsAre(0, 0, 0, 1));
  EXPECT_THAT((*results)[1].ints, ElementsAre(0, 1, 1, 1));
  EXPECT_THAT((*results)[2].ints, ElementsAre(1, 1, 0, 0));
}

// Known answer of Philox4x32-10 from the Random123 distribution: counter 0, key 0 gives 6627e8d5 e169c58d bc57ac4c
// 9b00dbd8.
TEST_F(EvaluateTest, randomNumbersAreThePublishedOnes) {
  auto results = run(R"(func.func @f(%s: tensor<2xi64>) -> tensor<4xf32> {
    %u = graph.random_uniform %s id 0 : tensor<2xi64> -> tensor<4xf32>
    return %u : tensor<4xf32>
  })",
                     {{0, 0}});
  ASSERT_TRUE(succeeded(results));
  EXPECT_THAT((*results)[0].floats,
              ElementsAre(0x6627e8 / 0x1p24, 0xe169c5 / 0x1p24, 0xbc57ac / 0x1p24, 0x9b00db / 0x1p24));
}

TEST_F(EvaluateTest, stateIsReadAndWritten) {
  const char *text = R"(graph.variable @count : tensor<i64> {kind = #graph.variable_kind<step_state>, fill = 41.0 : f64}
  func.func @f() -> tensor<i64> {
    %c = graph.read @count : tensor<i64>
    %one = graph.constant dense<1> : tensor<i64>
    %n = graph.add %c, %one : tensor<i64>
    graph.write @count, %n : tensor<i64>
    return %c : tensor<i64>
  })";
  GraphModule module(graph.context, text);
  ASSERT_TRUE(module.module);
  state = initialState(*module.module);
  auto results = evaluate(module.function(), {}, state);
  ASSERT_TRUE(succeeded(results));
  EXPECT_THAT((*results)[0].ints, ElementsAre(41));
  EXPECT_THAT(state.at("count").ints, ElementsAre(42));
}

TEST_F(EvaluateTest, initialStateTakesFillsAndValues) {
  GraphModule module(graph.context, R"(
  graph.variable @w : tensor<2xf32> {kind = #graph.variable_kind<parameter>}
  graph.variable @m : tensor<2xf32> {kind = #graph.variable_kind<optimizer_state>, fill = 0.5 : f64}
  graph.variable @t : tensor<2xi32> {kind = #graph.variable_kind<constant>, value = dense<[3, -4]> : tensor<2xi32>}
  func.func @f() { return })");
  ASSERT_TRUE(module.module);
  state = initialState(*module.module);
  EXPECT_EQ(state.count("w"), 0u);
  EXPECT_THAT(state.at("m").floats, ElementsAre(0.5, 0.5));
  EXPECT_THAT(state.at("t").ints, ElementsAre(3, -4));
}

TEST_F(EvaluateTest, groupsRunTheirRegion) {
  auto results = run(R"(func.func @f(%x: tensor<2x3xf32>) -> tensor<2xf32> {
    %g = graph.group %x space [2, 3] reduced [1] : (tensor<2x3xf32>) -> tensor<2xf32> {
    ^bb0(%e: tensor<2x3xf32>):
      %s = graph.mul %e, %e : tensor<2x3xf32>
      %r = graph.reduce_sum %s [1] : tensor<2x3xf32> -> tensor<2xf32>
      graph.yield %r : tensor<2xf32>
    }
    return %g : tensor<2xf32>
  })",
                     {{1, 2, 3, 4, 5, 6}});
  ASSERT_TRUE(succeeded(results));
  EXPECT_THAT((*results)[0].floats, ElementsAre(14, 77));
}

TEST_F(EvaluateTest, bytesRoundTrip) {
  Builder builder(&graph.context);
  auto type = RankedTensorType::get({3}, builder.getF16Type());
  HostTensor tensor = HostTensor::ofFloats(type, {1.0, -0.5, 65504});
  std::vector<char> bytes = toBytes(tensor);
  EXPECT_THAT(bytes, ElementsAre(0x00, 0x3c, 0x00, static_cast<char>(0xb8), static_cast<char>(0xff), 0x7b));
  EXPECT_EQ(fromBytes(type, bytes)->floats, tensor.floats);
  auto narrow = RankedTensorType::get({2}, builder.getIntegerType(8));
  EXPECT_THAT(fromBytes(narrow, toBytes(HostTensor::ofInts(narrow, {-3, 5})))->ints, ElementsAre(-3, 5));
  EXPECT_TRUE(failed(fromBytes(narrow, ArrayRef<char>(bytes))));
}

TEST_F(EvaluateTest, anIndexOutOfRangeIsNamed) {
  EXPECT_TRUE(failed(run(R"(func.func @f(%x: tensor<3xf32>, %i: tensor<1xi64>) -> tensor<1xf32> {
    %g = graph.gather %x, %i axis 0 : (tensor<3xf32>, tensor<1xi64>) -> tensor<1xf32>
    return %g : tensor<1xf32>
  })",
                         {{1, 2, 3}, {3}})));
  EXPECT_THAT(message, HasSubstr("index 3 out of range [-3, 3)"));
}

TEST_F(EvaluateTest, integerDivisionByZeroIsNamed) {
  EXPECT_TRUE(failed(run(R"(func.func @f(%x: tensor<1xi32>, %y: tensor<1xi32>) -> tensor<1xi32> {
    %d = graph.div %x, %y : tensor<1xi32>
    return %d : tensor<1xi32>
  })",
                         {{1}, {0}})));
  EXPECT_THAT(message, HasSubstr("integer division by zero"));
}

TEST_F(EvaluateTest, aVariableWithoutAValueIsNamed) {
  EXPECT_TRUE(failed(run(R"(graph.variable @w : tensor<2xf32> {kind = #graph.variable_kind<parameter>}
  func.func @f() -> tensor<2xf32> {
    %w = graph.read @w : tensor<2xf32>
    return %w : tensor<2xf32>
  })",
                         {})));
  EXPECT_THAT(message, HasSubstr("variable @w has no value"));
}

TEST_F(EvaluateTest, aVariableOfAnotherTypeIsNamed) {
  state["w"] = HostTensor::zeros(RankedTensorType::get({3}, Float32Type::get(&graph.context)));
  EXPECT_TRUE(failed(run(R"(graph.variable @w : tensor<2xf32> {kind = #graph.variable_kind<parameter>}
  func.func @f() -> tensor<2xf32> {
    %w = graph.read @w : tensor<2xf32>
    return %w : tensor<2xf32>
  })",
                         {})));
  EXPECT_THAT(message, HasSubstr("variable @w holds 'tensor<3xf32>', expected 'tensor<2xf32>'"));
}

TEST_F(EvaluateTest, inputsOfAnotherTypeOrNumberAreNamed) {
  GraphModule module(graph.context, "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }");
  EXPECT_TRUE(failed(evaluate(module.function(),
                              HostTensor::zeros(RankedTensorType::get({3}, Float32Type::get(&graph.context))), state)));
  EXPECT_THAT(message, HasSubstr("input 0 has type 'tensor<3xf32>', expected 'tensor<2xf32>'"));
  EXPECT_TRUE(failed(evaluate(module.function(), {}, state)));
  EXPECT_THAT(message, HasSubstr("expected 1 inputs, found 0"));
}

TEST_F(EvaluateTest, foreignOpsAreNamed) {
  EXPECT_TRUE(failed(run(R"(func.func private @g(tensor<2xf32>) -> tensor<2xf32>
  func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
    %y = call @g(%x) : (tensor<2xf32>) -> tensor<2xf32>
    return %y : tensor<2xf32>
  })",
                         {{1, 2}})));
  EXPECT_THAT(message, HasSubstr("cannot be evaluated: expected an op of the graph dialect"));
}
