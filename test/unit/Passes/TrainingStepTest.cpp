// The entries of a training binary as evaluated numbers: optimizers against PyTorch's, clipping, accumulation, masked
// windows, state. In most tests the loss is sum(w*g), so that the gradient of w is the input g itself.
#include "test/unit/Passes/PlanMachine.h"

#include "dialects/Graph/Graph.h"
#include "lib/Passes/TrainingStep.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/FormatVariadic.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct TrainingStepTest : ::testing::Test {
  PassContext pass;
  OwningOpRef<ModuleOp> module;
  Tensors state;

  bool build(StringRef text, const OptimizerRecipe &recipe) {
    module = parseModule(pass.context, text);
    EXPECT_TRUE(module) << pass.messages;
    if (!module || failed(buildTrainingStep(*module, recipe)))
      return false;
    EXPECT_TRUE(succeeded(verify(*module))) << pass.messages;
    state = reference::initialState(*module);
    return true;
  }

  HostTensor floats(std::vector<double> values) {
    auto shape = static_cast<int64_t>(values.size());
    return HostTensor::ofFloats(RankedTensorType::get({shape}, Float32Type::get(&pass.context)), std::move(values));
  }
  HostTensor scalar(double value) {
    return HostTensor::ofFloats(RankedTensorType::get({}, Float32Type::get(&pass.context)), {value});
  }
  HostTensor labels(std::vector<int64_t> values) {
    auto shape = static_cast<int64_t>(values.size());
    return HostTensor::ofInts(RankedTensorType::get({shape}, IntegerType::get(&pass.context, 32)), std::move(values));
  }

  Tensors run(StringRef entry, const Tensors &inputs) { return evaluateEntry(*module, entry, inputs, state); }
  std::vector<double> value(const std::string &variable) { return state.at(variable).floats; }
  bool hasVariable(StringRef name) { return module->lookupSymbol<graph::VariableOp>(name) != nullptr; }
};

/// loss = sum(w*g) with a constant weight; gradients arrive as input.
std::string dotLoss(size_t size, StringRef more = "") {
  return llvm::formatv(
             R"(graph.variable @w : tensor<{0}xf32> {{kind = #graph.variable_kind<parameter>, fill = 0.0 : f64}
    {1}
    func.func @forward(%g: tensor<{0}xf32> {{graph.name = "g"}) -> (tensor<f32> {{graph.role = "loss"}, tensor<f32> {{graph.role = "weight"}) {{
      %w = graph.read @w : tensor<{0}xf32>
      %p = graph.mul %w, %g : tensor<{0}xf32>
      %loss = graph.reduce_sum %p [0] : tensor<{0}xf32> -> tensor<f32>
      %one = graph.constant dense<1.0> : tensor<f32>
      return %loss, %one : tensor<f32>, tensor<f32>
    })",
             size, more)
      .str();
}

} // namespace

//===--- optimizers: torch 2.15, w = (1, -2), lr = 0.1, gradients (0.5, -0.25), (-1, 0.125), (2, 0.5) ---===//

namespace {
struct OptimizerCase {
  const char *name;
  OptimizerRecipe recipe;
  double expected[3][2];
};

OptimizerRecipe sgd(double momentum, bool nesterov, double decay) {
  OptimizerRecipe recipe;
  recipe.kind = "sgd";
  recipe.momentum = momentum;
  recipe.nesterov = nesterov;
  recipe.weightDecay = decay;
  return recipe;
}
OptimizerRecipe adam(const char *kind, double decay, double beta1 = 0.9, double beta2 = 0.999, double epsilon = 1e-8) {
  OptimizerRecipe recipe;
  recipe.kind = kind;
  recipe.weightDecay = decay;
  recipe.beta1 = beta1;
  recipe.beta2 = beta2;
  recipe.epsilon = epsilon;
  return recipe;
}

// By hand, sgd with momentum: buf = 0.5, w = 1 - 0.05 = 0.95; buf = 0.45 - 1 = -0.55, w = 1.005; buf = -0.495 + 2
// = 1.505, w = 0.8545.
const OptimizerCase optimizerCases[] = {
    {"sgd", sgd(0, false, 0), {{0.949999988, -1.97500002}, {1.04999995, -1.98750007}, {0.849999964, -2.03750014}}},
    {"sgdDecay",
     sgd(0, false, 0.01),
     {{0.949000001, -1.97300005}, {1.048051, -1.98352706}, {0.847002983, -2.03154349}}},
    {"momentum", sgd(0.9, false, 0), {{0.949999988, -1.97500002}, {1.005, -1.96500003}, {0.854499996, -2.00600004}}},
    {"momentumDecay",
     sgd(0.9, false, 0.01),
     {{0.949000001, -1.97300005}, {1.00215101, -1.95922709}, {0.848984778, -1.99487221}}},
    {"nesterov", sgd(0.9, true, 0), {{0.904999971, -1.95249999}, {1.05449998, -1.95599997}, {0.71904999, -2.04290009}}},
    {"nesterovDecay",
     sgd(0.9, true, 0.01),
     {{0.903100014, -1.94869995}, {1.0500741, -1.94687748}, {0.711168468, -2.02704191}}},
    {"adam", adam("adam", 0), {{0.900000036, -1.89999998}, {0.936610401, -1.87336624}, {0.894644856, -1.91909945}}},
    {"adamDecay",
     adam("adam", 0.01),
     {{0.900000036, -1.89999998}, {0.935523689, -1.86483824}, {0.892965734, -1.90554786}}},
    {"adamw", adam("adamw", 0), {{0.900000036, -1.89999998}, {0.936610401, -1.87336624}, {0.894644856, -1.91909945}}},
    {"adamwDecay", adam("adamw", 0.01), {{0.899000049, -1.898}, {0.934711397, -1.86946833}, {0.891811132, -1.9133321}}},
    {"adamwBetas",
     adam("adamw", 0.1, 0.8, 0.95, 1e-3),
     {{0.890199602, -1.88039839}, {0.923088193, -1.84045625}, {0.867644489, -1.87562656}}},
};

struct OptimizerTest : TrainingStepTest, ::testing::WithParamInterface<OptimizerCase> {};
} // namespace

// Tolerance: three steps of at most ten f32 roundings of numbers below 2.1, each half an ulp of 2^-23 relative.
TEST_P(OptimizerTest, firstThreeStepsEqualPyTorch) {
  ASSERT_TRUE(build(dotLoss(2), GetParam().recipe));
  state.at("w") = floats({1, -2});
  const std::vector<double> gradients[] = {{0.5, -0.25}, {-1, 0.125}, {2, 0.5}};
  for (int step = 0; step < 3; ++step) {
    run("train_step", {{"g", floats(gradients[step])}, {"lr", scalar(0.1)}});
    for (int i = 0; i < 2; ++i)
      EXPECT_NEAR(value("w")[i], GetParam().expected[step][i], 30 * 2.1 * 6e-8) << "step " << step << ", element " << i;
  }
  EXPECT_EQ(state.at("optimizer.step").ints[0], 3);
}
INSTANTIATE_TEST_SUITE_P(PyTorch, OptimizerTest, ::testing::ValuesIn(optimizerCases),
                         [](const auto &instance) { return instance.param.name; });

// Two parameters of the same value and gradient, one excluded from decay by pattern.
TEST_F(TrainingStepTest, decayGroupsFollowTheNamePatterns) {
  for (const char *kind : {"sgd", "adam", "adamw"}) {
    OptimizerRecipe recipe = adam(kind, 0.5);
    recipe.noDecay = {"*.bias", "emb.?"};
    ASSERT_TRUE(
        build(R"(graph.variable @a.weight : tensor<1xf32> {kind = #graph.variable_kind<parameter>, fill = 2.0 : f64}
      graph.variable @a.bias : tensor<1xf32> {kind = #graph.variable_kind<parameter>, fill = 2.0 : f64}
      graph.variable @emb.w : tensor<1xf32> {kind = #graph.variable_kind<parameter>, fill = 2.0 : f64}
      func.func @forward(%g: tensor<1xf32> {graph.name = "g"}) -> (tensor<f32> {graph.role = "loss"}, tensor<f32> {graph.role = "weight"}) {
        %a = graph.read @a.weight : tensor<1xf32>
        %b = graph.read @a.bias : tensor<1xf32>
        %c = graph.read @emb.w : tensor<1xf32>
        %ab = graph.add %a, %b : tensor<1xf32>
        %abc = graph.add %ab, %c : tensor<1xf32>
        %p = graph.mul %abc, %g : tensor<1xf32>
        %loss = graph.reduce_sum %p [0] : tensor<1xf32> -> tensor<f32>
        %one = graph.constant dense<1.0> : tensor<f32>
        return %loss, %one : tensor<f32>, tensor<f32>
      })",
              recipe))
        << pass.messages;
    run("train_step", {{"g", floats({0})}, {"lr", scalar(0.25)}});
    EXPECT_EQ(value("a.bias")[0], 2) << kind;
    EXPECT_EQ(value("emb.w")[0], 2) << kind;
    // sgd: 2 - 0.25*(0.5*2); adam: the decay is the whole gradient, so one step of lr; adamw: 2*(1 - 0.25*0.5).
    // All 1.75.
    EXPECT_NEAR(value("a.weight")[0], 1.75, 1e-6) << kind;
  }
}

//===--- clipping (CASES 27, 29) ---===//

namespace {
struct ClipTest : TrainingStepTest {
  OptimizerRecipe clipped(double norm) {
    OptimizerRecipe recipe = sgd(0, false, 0);
    recipe.clipNorm = norm;
    return recipe;
  }
};
} // namespace

// The square of 1e20 is no f32, and for gradients near the largest f32 the factor is below the smallest normal one.
TEST_F(ClipTest, aHundredHugeGradientsAreClippedToATenth) {
  for (double huge : {1e20, 3e38}) {
    ASSERT_TRUE(build(dotLoss(100), clipped(1)));
    Tensors results = run("train_step", {{"g", floats(std::vector<double>(100, huge))}, {"lr", scalar(1)}});
    for (double element : value("w"))
      EXPECT_NEAR(element, -0.1, 1e-7) << huge;
    EXPECT_EQ(results.at("skipped").floats[0], 0);
  }
}

TEST_F(ClipTest, theNormSpansAllParameters) {
  ASSERT_TRUE(build(R"(graph.variable @a : tensor<1xf32> {kind = #graph.variable_kind<parameter>, fill = 0.0 : f64}
    graph.variable @b : tensor<1x2xf32> {kind = #graph.variable_kind<parameter>, fill = 0.0 : f64}
    func.func @forward(%g: tensor<1xf32> {graph.name = "g"}, %h: tensor<1x2xf32> {graph.name = "h"})
        -> (tensor<f32> {graph.role = "loss"}, tensor<f32> {graph.role = "weight"}) {
      %a = graph.read @a : tensor<1xf32>
      %b = graph.read @b : tensor<1x2xf32>
      %p = graph.mul %a, %g : tensor<1xf32>
      %q = graph.mul %b, %h : tensor<1x2xf32>
      %s = graph.reduce_sum %p [0] : tensor<1xf32> -> tensor<f32>
      %t = graph.reduce_sum %q [0, 1] : tensor<1x2xf32> -> tensor<f32>
      %loss = graph.add %s, %t : tensor<f32>
      %one = graph.constant dense<1.0> : tensor<f32>
      return %loss, %one : tensor<f32>, tensor<f32>
    })",
                    clipped(3.5)));
  HostTensor h = HostTensor::ofFloats(RankedTensorType::get({1, 2}, Float32Type::get(&pass.context)), {6, 3});
  Tensors results = run("train_step", {{"g", floats({2})}, {"h", h}, {"lr", scalar(1)}});
  EXPECT_FLOAT_EQ(results.at("grad_norm").floats[0], 7); // sqrt(4 + 36 + 9)
  EXPECT_NEAR(value("a")[0], -1, 1e-6);                  // halved
  EXPECT_NEAR(value("b")[0], -3, 1e-6);
  EXPECT_NEAR(value("b")[1], -1.5, 1e-6);
}

TEST_F(ClipTest, aNormBelowTheLimitEditsNothing) {
  ASSERT_TRUE(build(dotLoss(2), clipped(1)));
  // Norm 0.5; the values are no short binary fractions, so that any factor but 1 would show.
  std::vector<double> gradient = {reference::roundToElement(0.3, Float32Type::get(&pass.context)),
                                  reference::roundToElement(0.4, Float32Type::get(&pass.context))};
  run("train_step", {{"g", floats(gradient)}, {"lr", scalar(1)}});
  EXPECT_THAT(value("w"), ElementsAre(-gradient[0], -gradient[1]));
}

TEST_F(ClipTest, anInfiniteLimitMeasuresAndEditsNothing) {
  ASSERT_TRUE(build(dotLoss(2), clipped(infinity)));
  Tensors results = run("train_step", {{"g", floats({3e30, 4e30})}, {"lr", scalar(1)}});
  EXPECT_FLOAT_EQ(results.at("grad_norm").floats[0], 5e30f);
  EXPECT_EQ(value("w")[0], -reference::roundToElement(3e30, Float32Type::get(&pass.context)));
}

// One infinite or NaN gradient: the step is skipped and counted, weights and optimizer state keep every bit.
TEST_F(ClipTest, aNonFiniteGradientChangesNothing) {
  for (double bad : {infinity, -infinity, std::nan("")})
    for (const char *kind : {"sgd", "adam", "adamw"})
      for (double limit : {1.0, infinity}) {
        OptimizerRecipe recipe = adam(kind, 0.1);
        recipe.momentum = 0.9;
        recipe.clipNorm = limit;
        ASSERT_TRUE(build(dotLoss(2), recipe));
        Tensors first = run("train_step", {{"g", floats({0.25, 0.5})}, {"lr", scalar(0.1)}});
        EXPECT_EQ(first.at("skipped").floats[0], 0);
        Tensors before = state;
        Tensors results = run("train_step", {{"g", floats({1, bad})}, {"lr", scalar(0.1)}});
        EXPECT_EQ(results.at("skipped").floats[0], 1);
        for (const auto &[name, tensor] : before) {
          EXPECT_EQ(state.at(name).floats, tensor.floats) << name;
          EXPECT_EQ(state.at(name).ints, tensor.ints) << name;
        }
        // The next good step continues from there: t = 2.
        run("train_step", {{"g", floats({0.25, 0.5})}, {"lr", scalar(0.1)}});
        EXPECT_EQ(state.at("optimizer.step").ints[0], 2);
        EXPECT_TRUE(std::isfinite(value("w")[0]));
      }
}

//===--- accumulation (CASES 33, 35, 36) ---===//

namespace {
/// Linear classifier over N rows: mean of cross-entropy over labels other than -100, as the importer builds it.
std::string classifier(int64_t rows) {
  return llvm::formatv(
             R"(graph.variable @w : tensor<2x3xf32> {{kind = #graph.variable_kind<parameter>, fill = 0.25 : f64}
    func.func @forward(%x: tensor<{0}x2xf32> {{graph.name = "x"}, %l: tensor<{0}xi32> {{graph.name = "l"})
        -> (tensor<f32> {{graph.role = "loss"}, tensor<f32> {{graph.role = "weight"}, tensor<{0}x3xf32> {{graph.name = "logits"}) {{
      %w = graph.read @w : tensor<2x3xf32>
      %logits = graph.dot %x, %w : (tensor<{0}x2xf32>, tensor<2x3xf32>) -> tensor<{0}x3xf32>
      %losses:2 = graph.cross_entropy %logits, %l ignore -100 : (tensor<{0}x3xf32>, tensor<{0}xi32>) -> (tensor<{0}xf32>, tensor<{0}xf32>)
      %ignore = graph.constant dense<-100> : tensor<{0}xi32>
      %counted = graph.compare <ne> %l, %ignore : tensor<{0}xi32> -> tensor<{0}xi1>
      %ones = graph.convert %counted : tensor<{0}xi1> -> tensor<{0}xf32>
      %n = graph.reduce_sum %ones [0] : tensor<{0}xf32> -> tensor<f32>
      %one = graph.constant dense<1.0> : tensor<f32>
      %divisor = graph.maximum %n, %one : tensor<f32>
      %sum = graph.reduce_sum %losses#0 [0] : tensor<{0}xf32> -> tensor<f32>
      %loss = graph.div %sum, %divisor : tensor<f32>
      return %loss, %n, %logits : tensor<f32>, tensor<f32>, tensor<{0}x3xf32>
    })",
             rows)
      .str();
}

struct AccumulationTest : TrainingStepTest {
  HostTensor rows(std::vector<double> values) {
    auto count = static_cast<int64_t>(values.size() / 2);
    return HostTensor::ofFloats(RankedTensorType::get({count, 2}, Float32Type::get(&pass.context)), std::move(values));
  }
  HostTensor spreadWeights() {
    return HostTensor::ofFloats(RankedTensorType::get({2, 3}, Float32Type::get(&pass.context)),
                                {0.5, -0.25, 0.75, -1, 0.125, 0.375});
  }
};
} // namespace

// Three micro-batches with 2, 1 and 0 counted rows against the six rows at once: same loss, same weights, one optimizer
// step.
TEST_F(AccumulationTest, unevenMicroBatchesEqualTheUnsplitBatch) {
  const std::vector<double> x = {1, 2, -1, 0.5, 3, -2, 0.25, 1, 5, 5, -4, 2};
  const std::vector<int64_t> l = {0, 2, 1, -100, -100, -100};
  for (const char *kind : {"sgd", "adamw"})
    for (double clip : {0.0, 0.05}) {
      OptimizerRecipe recipe = adam(kind, 0.1);
      recipe.clipNorm = clip;
      ASSERT_TRUE(build(classifier(6), recipe));
      state.at("w") = spreadWeights();
      Tensors whole = run("train_step", {{"x", rows(x)}, {"l", labels(l)}, {"lr", scalar(0.1)}});
      std::vector<double> expected = value("w");

      recipe.accumulation = 3;
      ASSERT_TRUE(build(classifier(2), recipe));
      state.at("w") = spreadWeights();
      for (size_t i = 0; i < 3; ++i)
        run("accumulate", {{"x", rows({x.begin() + 4 * i, x.begin() + 4 * i + 4})},
                           {"l", labels({l.begin() + 2 * i, l.begin() + 2 * i + 2})}});
      EXPECT_EQ(state.at("optimizer.step").ints[0], 0); // no step before apply
      Tensors results = run("apply", {{"lr", scalar(0.1)}});
      EXPECT_EQ(results.at("tokens").floats[0], 3);
      EXPECT_NEAR(results.at("loss").floats[0], whole.at("loss").floats[0], 1e-6);
      // Gradients differ by rounding (some eps); Adam's first step divides by their size, 0.1 * 10 eps.
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(value("w")[i], expected[i], 1e-6) << kind << " clip " << clip;
      EXPECT_EQ(state.at("optimizer.step").ints[0], 1);
      // The window is clear again.
      for (const char *name : {"w.grad", "accumulate.loss", "accumulate.weight"})
        for (double element : value(name))
          EXPECT_EQ(element, 0) << name;
    }
}

// Token losses [4] and [1, 1, 2]: the mean over tokens is 2, the mean of means would be 2.6667 (transformers#34191).
TEST_F(AccumulationTest, theLossIsTheMeanOverTokens) {
  OptimizerRecipe recipe = sgd(0, false, 0);
  recipe.accumulation = 2;
  ASSERT_TRUE(build(R"(graph.variable @w : tensor<1xf32> {kind = #graph.variable_kind<parameter>, fill = 1.0 : f64}
    func.func @forward(%t: tensor<3xf32> {graph.name = "t"}, %m: tensor<3xf32> {graph.name = "m"})
        -> (tensor<f32> {graph.role = "loss"}, tensor<f32> {graph.role = "weight"}) {
      %w = graph.read @w : tensor<1xf32>
      %b = graph.broadcast %w [0] : tensor<1xf32> -> tensor<3xf32>
      %p = graph.mul %t, %b : tensor<3xf32>
      %q = graph.mul %p, %m : tensor<3xf32>
      %sum = graph.reduce_sum %q [0] : tensor<3xf32> -> tensor<f32>
      %n = graph.reduce_sum %m [0] : tensor<3xf32> -> tensor<f32>
      %loss = graph.div %sum, %n : tensor<f32>
      return %loss, %n : tensor<f32>, tensor<f32>
    })",
                    recipe));
  run("accumulate", {{"t", floats({4, 9, 9})}, {"m", floats({1, 0, 0})}});
  run("accumulate", {{"t", floats({1, 1, 2})}, {"m", floats({1, 1, 1})}});
  Tensors results = run("apply", {{"lr", scalar(1)}});
  EXPECT_EQ(results.at("loss").floats[0], 2);
  EXPECT_EQ(results.at("tokens").floats[0], 4);
  EXPECT_EQ(value("w")[0], 1 - 2); // d loss / d w = 8/4
}

// Every label ignored: loss 0, nothing moves (neither momentum nor moments nor decay nor the step), and it is counted.
TEST_F(AccumulationTest, aFullyMaskedWindowChangesNothing) {
  for (const char *kind : {"sgd", "adam", "adamw"})
    for (int64_t accumulation : {1, 2}) {
      OptimizerRecipe recipe = adam(kind, 0.1);
      recipe.momentum = 0.9;
      recipe.accumulation = accumulation;
      ASSERT_TRUE(build(classifier(2), recipe));
      auto window = [&](std::vector<int64_t> l) {
        Tensors batch = {{"x", rows({1, 2, -1, 3})}, {"l", labels(std::move(l))}, {"lr", scalar(0.1)}};
        if (accumulation == 1)
          return run("train_step", batch);
        run("accumulate", batch);
        run("accumulate", batch);
        return run("apply", batch);
      };
      EXPECT_EQ(window({1, 2}).at("skipped").floats[0], 0);
      Tensors before = state;
      Tensors results = window({-100, -100});
      EXPECT_EQ(results.at("loss").floats[0], 0);
      EXPECT_EQ(results.at("tokens").floats[0], 0);
      EXPECT_EQ(results.at("skipped").floats[0], 1);
      for (const auto &[name, tensor] : before) {
        EXPECT_EQ(state.at(name).floats, tensor.floats) << kind << " " << name;
        EXPECT_EQ(state.at(name).ints, tensor.ints) << kind << " " << name;
      }
    }
}

// The plan of `apply` does the same on bytes: it reports the tokens of the window that it clears.
TEST_F(AccumulationTest, theMachineRunsTheSameWindow) {
  OptimizerRecipe recipe = adam("adamw", 0.1);
  recipe.accumulation = 2;
  recipe.clipNorm = 1;
  ASSERT_TRUE(build(classifier(2), recipe));
  OwningOpRef<ModuleOp> planned = module->clone();
  ASSERT_TRUE(succeeded(prepareForPlan(*planned))) << pass.messages;
  FakeTarget target;
  Result<plan::ProgramOp> program = lowerToPlan(*planned, target, {});
  ASSERT_TRUE(static_cast<bool>(program)) << program.status().message();
  Tensors start = state;
  for (const auto &[name, tensor] : reference::initialState(*planned))
    start.try_emplace(name, tensor);
  PlanMachine machine(*program, target, start);
  Tensors batch = {{"x", rows({1, 2, -1, 3})}, {"l", labels({1, -100})}, {"lr", scalar(0.1)}};
  for (int window = 0; window < 2; ++window) {
    for (int i = 0; i < 2; ++i) {
      machine.run("accumulate", batch);
      run("accumulate", batch);
    }
    Tensors found = machine.run("apply", batch), expected = run("apply", batch);
    EXPECT_EQ(found.at("tokens").floats[0], 2);
    for (const auto &[name, tensor] : expected)
      EXPECT_NEAR(found.at(name).floats[0], tensor.floats[0], 1e-6) << name;
    Tensors bytes = machine.state();
    for (const auto &[name, tensor] : state)
      for (size_t i = 0; i < tensor.floats.size(); ++i)
        EXPECT_NEAR(bytes.at(name).floats[i], tensor.floats[i], 1e-6) << name;
  }
  EXPECT_NEAR(machine.run("eval_step", batch).at("loss").floats[0], run("eval_step", batch).at("loss").floats[0], 1e-6);
  EXPECT_EQ(machine.run("forward", batch).count("logits"), 1u);
}

//===--- what is (not) updated ---===//

TEST_F(TrainingStepTest, frozenAndDeadParametersCostNothing) {
  ASSERT_TRUE(build(
      dotLoss(2, R"(graph.variable @dead : tensor<2xf32> {kind = #graph.variable_kind<parameter>, fill = 1.0 : f64})"),
      adam("adamw", 0.1)));
  run("train_step", {{"g", floats({1, 1})}, {"lr", scalar(0.1)}});
  EXPECT_FALSE(hasVariable("dead.exp_avg"));
  EXPECT_EQ(value("dead")[0], 1); // not decayed

  ASSERT_TRUE(build(R"(graph.variable @w : tensor<2x2xf32> {kind = #graph.variable_kind<parameter>, fill = 1.0 : f64}
    graph.variable @frozen : tensor<2x2xf32> {kind = #graph.variable_kind<parameter>, trainable = false, fill = 1.0 : f64}
    func.func @forward(%x: tensor<2x2xf32> {graph.name = "x"}) -> (tensor<f32> {graph.role = "loss"}, tensor<f32> {graph.role = "weight"}) {
      %w = graph.read @w : tensor<2x2xf32>
      %f = graph.read @frozen : tensor<2x2xf32>
      %h = graph.dot %x, %f : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      %y = graph.dot %h, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      %loss = graph.reduce_sum %y [0, 1] : tensor<2x2xf32> -> tensor<f32>
      %one = graph.constant dense<1.0> : tensor<f32>
      return %loss, %one : tensor<f32>, tensor<f32>
    })",
                    adam("adamw", 0.1)));
  EXPECT_FALSE(hasVariable("frozen.exp_avg"));
  size_t dots = 0;
  module->lookupSymbol<func::FuncOp>("train_step").walk([&](graph::DotOp) { ++dots; });
  EXPECT_EQ(dots, 3u); // two forward, dw; neither dh nor dfrozen
}

// A module used twice in one step chains its running statistic: 0 -> 0.9*0 + 0.1*m1 -> 0.9*(0.1*m1) + 0.1*m2.
TEST_F(TrainingStepTest, aStatisticWrittenTwiceIsChained) {
  ASSERT_TRUE(build(R"(graph.variable @w : tensor<1xf32> {kind = #graph.variable_kind<parameter>, fill = 1.0 : f64}
    graph.variable @mean : tensor<1xf32> {kind = #graph.variable_kind<model_state>, trainable = false, fill = 0.0 : f64}
    func.func @forward(%a: tensor<1xf32> {graph.name = "a"}, %b: tensor<1xf32> {graph.name = "b"})
        -> (tensor<f32> {graph.role = "loss"}, tensor<f32> {graph.role = "weight"}, tensor<1xf32> {graph.name = "seen"}) {
      %keep = graph.constant dense<0.5> : tensor<1xf32>
      %m0 = graph.read @mean : tensor<1xf32>
      %k0 = graph.mul %m0, %keep : tensor<1xf32>
      %n0 = graph.add %k0, %a : tensor<1xf32>
      graph.write @mean, %n0 : tensor<1xf32>
      %m1 = graph.read @mean : tensor<1xf32>
      %k1 = graph.mul %m1, %keep : tensor<1xf32>
      %n1 = graph.add %k1, %b : tensor<1xf32>
      graph.write @mean, %n1 : tensor<1xf32>
      %w = graph.read @w : tensor<1xf32>
      %p = graph.mul %w, %a : tensor<1xf32>
      %loss = graph.reduce_sum %p [0] : tensor<1xf32> -> tensor<f32>
      %one = graph.constant dense<1.0> : tensor<f32>
      return %loss, %one, %m1 : tensor<f32>, tensor<f32>, tensor<1xf32>
    })",
                    sgd(0, false, 0)));
  run("train_step", {{"a", floats({4})}, {"b", floats({1})}, {"lr", scalar(0)}});
  EXPECT_EQ(value("mean")[0], 3); // 0.5*4 + 1
  size_t writes = 0;
  module->lookupSymbol<func::FuncOp>("train_step").walk([&](graph::WriteOp write) {
    writes += write.getVariable() == "mean";
  });
  EXPECT_EQ(writes, 1u);
  // Evaluation reads the statistic as it is and writes nothing.
  EXPECT_EQ(run("forward", {{"a", floats({4})}, {"b", floats({1})}}).at("seen").floats[0], 3);
  EXPECT_EQ(value("mean")[0], 3);
}

// Dropout draws other numbers in the next step, the same ones in forward and backward, and none in evaluation.
TEST_F(TrainingStepTest, theSeedAdvancesOncePerStep) {
  for (int64_t accumulation : {1, 2}) {
    OptimizerRecipe recipe = sgd(0, false, 0);
    recipe.accumulation = accumulation;
    ASSERT_TRUE(build(
        R"(graph.variable @seed : tensor<2xi64> {kind = #graph.variable_kind<step_state>, trainable = false, fill = 0.0 : f64}
      graph.variable @w : tensor<64xf32> {kind = #graph.variable_kind<parameter>, fill = 0.0 : f64}
      func.func @forward(%x: tensor<64xf32> {graph.name = "x"}) -> (tensor<f32> {graph.role = "loss"}, tensor<f32> {graph.role = "weight"}) {
        %w = graph.read @w : tensor<64xf32>
        %seed = graph.read @seed : tensor<2xi64>
        %p = graph.mul %w, %x : tensor<64xf32>
        %d = graph.dropout %p, %seed ratio 0.5 id 3 : tensor<2xi64>, tensor<64xf32>
        %loss = graph.reduce_sum %d [0] : tensor<64xf32> -> tensor<f32>
        %one = graph.constant dense<1.0> : tensor<f32>
        return %loss, %one : tensor<f32>, tensor<f32>
      })",
        recipe))
        << pass.messages;
    Tensors batch = {{"x", floats(std::vector<double>(64, 1))}, {"lr", scalar(1)}};
    const char *entry = accumulation == 1 ? "train_step" : "accumulate", *result = accumulation == 1 ? "w" : "w.grad";
    run(entry, batch);
    std::vector<double> first = value(result);
    EXPECT_THAT(first, ::testing::Each(::testing::AnyOf(0.0, accumulation == 1 ? -2.0 : 2.0)));
    EXPECT_THAT(state.at("seed").ints, ElementsAre(0, 1));
    run(entry, batch);
    std::vector<double> second = value(result);
    for (size_t i = 0; i < 64; ++i)
      second[i] -= first[i];
    EXPECT_NE(second, first);
    run("eval_step", batch);
    EXPECT_THAT(state.at("seed").ints, ElementsAre(0, 2));
  }
}

//===--- refusals ---===//

TEST_F(TrainingStepTest, takenNamesAreListedTogether) {
  OptimizerRecipe recipe = sgd(0.9, false, 0);
  recipe.accumulation = 2;
  EXPECT_FALSE(build(
      dotLoss(2,
              R"(graph.variable @w.momentum : tensor<2xf32> {kind = #graph.variable_kind<parameter>, trainable = false}
    graph.variable @accumulate.loss : tensor<2xf32> {kind = #graph.variable_kind<model_state>})"),
      recipe));
  EXPECT_THAT(pass.messages, HasSubstr("has a name the optimizer needs for its own state; rename it in the model"));
  EXPECT_EQ(std::count(pass.messages.begin(), pass.messages.end(), '\n'), 2);
}

TEST_F(TrainingStepTest, anInputCalledLrIsRefused) {
  EXPECT_FALSE(build(
      R"(func.func @forward(%lr: tensor<f32> {graph.name = "lr"}) -> (tensor<f32> {graph.role = "loss"}, tensor<f32> {graph.role = "weight"}) {
      return %lr, %lr : tensor<f32>, tensor<f32>
    })",
      {}));
  EXPECT_THAT(pass.messages, HasSubstr("input 'lr' has the name of the learning rate's input; rename it in the model"));
}

TEST_F(TrainingStepTest, nothingToTrainIsAnError) {
  EXPECT_FALSE(build(R"(graph.variable @w : tensor<f32> {kind = #graph.variable_kind<parameter>, trainable = false}
    func.func @forward(%x: tensor<f32>) -> (tensor<f32> {graph.role = "loss"}, tensor<f32> {graph.role = "weight"}) {
      %w = graph.read @w : tensor<f32>
      %y = graph.mul %w, %x : tensor<f32>
      return %y, %x : tensor<f32>, tensor<f32>
    })",
                     {}));
  EXPECT_THAT(pass.messages,
              HasSubstr("no trainable parameter has a path to the loss; check the loss output and --freeze"));
}

TEST_F(TrainingStepTest, theForwardFunctionAndItsRolesAreNeeded) {
  EXPECT_FALSE(build("func.func @f() { return }", {}));
  EXPECT_THAT(pass.messages, HasSubstr("expected one function @forward with one block"));
  pass.messages.clear();
  EXPECT_FALSE(build("func.func @forward() { return }", {}));
  EXPECT_THAT(pass.messages, HasSubstr("expected results with graph.role \"loss\" and \"weight\""));
}

TEST(Glob, matchesShellPatterns) {
  EXPECT_TRUE(matchesGlob("*.bias", "h.0.attn.bias"));
  EXPECT_FALSE(matchesGlob("*.bias", "h.0.attn.bias2"));
  EXPECT_TRUE(matchesGlob("h.?.w", "h.1.w"));
  EXPECT_FALSE(matchesGlob("h.?.w", "h.10.w"));
  EXPECT_TRUE(matchesGlob("w[", "w[")); // no valid pattern: compared as it is
}
