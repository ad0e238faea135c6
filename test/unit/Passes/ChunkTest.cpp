// Losses in pieces: the numbers of the whole loss, and a plan in which the logits never exist in full. Also dot_add's
// lowering, which keeps the pieces' weight gradient in one buffer.
#include "test/unit/Passes/PlanMachine.h"

#include "dialects/Graph/Graph.h"
#include "lib/Passes/Chunk.h"
#include "lib/Passes/Passes.h"
#include "lib/Passes/TrainingStep.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FormatVariadic.h"

#include <gmock/gmock.h>

#include <cmath>

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::test;

namespace {

// A causal model's head over 2 x 5 positions with a vocabulary of 64: bias, shift by one position, ignored labels,
// class weights, the mean over the weights that count. Every step before the head is a parameter so that the gradient
// of the hidden states is seen too.
constexpr const char *head = R"(
  graph.variable @h : tensor<2x5x4xf32> {kind = #graph.variable_kind<parameter>}
  graph.variable @w : tensor<64x4xf32> {kind = #graph.variable_kind<parameter>}
  graph.variable @b : tensor<64xf32> {kind = #graph.variable_kind<parameter>}
  graph.variable @classes : tensor<64xf32> {kind = #graph.variable_kind<constant>, trainable = false}
  func.func @forward(%labels: tensor<8xi64> {graph.name = "labels"})
      -> (tensor<f32> {graph.role = "loss"}, tensor<f32> {graph.role = "weight"}) {
    %h = graph.read @h : tensor<2x5x4xf32>
    %w = graph.read @w : tensor<64x4xf32>
    %b = graph.read @b : tensor<64xf32>
    %classes = graph.read @classes : tensor<64xf32>
    %rows = graph.reshape %h : tensor<2x5x4xf32> -> tensor<10x4xf32>
    %p = graph.dot %rows, %w {trans_b = true} : (tensor<10x4xf32>, tensor<64x4xf32>) -> tensor<10x64xf32>
    %bias = graph.broadcast %b [1] : tensor<64xf32> -> tensor<10x64xf32>
    %z = graph.add %p, %bias : tensor<10x64xf32>
    %cube = graph.reshape %z : tensor<10x64xf32> -> tensor<2x5x64xf32>
    %shifted = graph.slice %cube [0, 0, 0] [1, 1, 1] : tensor<2x5x64xf32> -> tensor<2x4x64xf32>
    %flat = graph.reshape %shifted : tensor<2x4x64xf32> -> tensor<8x64xf32>
    %losses, %lse = graph.cross_entropy %flat, %labels ignore 7 : (tensor<8x64xf32>, tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>)
    %ignored = graph.constant dense<7> : tensor<8xi64>
    %counts = graph.compare <ne> %labels, %ignored : tensor<8xi64> -> tensor<8xi1>
    %classWeight = graph.gather %classes, %labels axis 0 : (tensor<64xf32>, tensor<8xi64>) -> tensor<8xf32>
    %zero = graph.constant dense<0.0> : tensor<8xf32>
    %each = graph.select %counts, %classWeight, %zero : tensor<8xi1>, tensor<8xf32>
    %weighted = graph.mul %losses, %each : tensor<8xf32>
    %sum = graph.reduce_sum %weighted [0] : tensor<8xf32> -> tensor<f32>
    %weight = graph.reduce_sum %each [0] : tensor<8xf32> -> tensor<f32>
    %loss = graph.div %sum, %weight : tensor<f32>
    return %loss, %weight : tensor<f32>, tensor<f32>
  })";

struct ChunkTest : ::testing::Test {
  PassContext pass;

  /// The step of `head` with its loss in `chunks` pieces, as the pipeline makes it up to fusion.
  OwningOpRef<ModuleOp> step(int64_t chunks, const OptimizerRecipe &recipe) {
    OwningOpRef<ModuleOp> module = parseModule(pass.context, head);
    EXPECT_TRUE(module) << pass.messages;
    unsigned cut = chunkLosses(module->lookupSymbol<func::FuncOp>("forward"), chunks);
    EXPECT_EQ(cut, chunks > 1 ? 1u : 0u);
    EXPECT_TRUE(succeeded(buildTrainingStep(*module, recipe))) << pass.messages;
    PassManager manager(&pass.context);
    manager.addPass(createCanonicalizerPass());
    manager.addPass(createCSEPass());
    manager.addNestedPass<func::FuncOp>(createPlimsollInterleave());
    EXPECT_TRUE(succeeded(manager.run(*module))) << pass.messages;
    EXPECT_TRUE(succeeded(verify(*module))) << pass.messages;
    return module;
  }

  Tensors startState(ModuleOp module) {
    Tensors state = reference::initialState(module);
    for (auto variable : module.getOps<graph::VariableOp>()) {
      if (state.count(variable.getSymName().str()))
        continue;
      HostTensor value = HostTensor::zeros(variable.getTensorType());
      for (size_t i = 0; i < value.floats.size(); ++i)
        value.floats[i] = static_cast<float>(0.5 + std::sin(0.7 * static_cast<double>(i)) * 0.4);
      state.emplace(variable.getSymName().str(), value);
    }
    return state;
  }

  Tensors batch() {
    auto type = RankedTensorType::get({8}, IntegerType::get(&pass.context, 64));
    HostTensor rate = HostTensor::ofFloats(RankedTensorType::get({}, Float32Type::get(&pass.context)), {0.125});
    return {{"labels", HostTensor::ofInts(type, {3, 7, 63, 0, 7, 12, 3, 40})}, {"lr", rate}};
  }

  /// Runs the entries as plans, twice; every output and the final state.
  Tensors run(ModuleOp module, ArrayRef<StringRef> entries, uint64_t &peak) {
    FakeTarget target;
    Tensors state = startState(module), results;
    EXPECT_TRUE(succeeded(prepareForPlan(module))) << pass.messages;
    Result<plan::ProgramOp> program = lowerToPlan(module, target, {});
    EXPECT_TRUE(static_cast<bool>(program)) << program.status().message() << pass.messages;
    if (!program)
      return {};
    for (const auto &[name, value] : reference::initialState(module))
      state.try_emplace(name, value);
    PlanMachine machine(*program, target, state);
    for (int round = 0; round < 2; ++round)
      for (StringRef entry : entries)
        for (auto &[name, value] : machine.run(entry, inputsOf(*program, entry)))
          results[(entry + "." + name + "." + Twine(round)).str()] = value;
    for (auto &[name, value] : machine.state())
      results["@" + name] = value;
    peak = program->lookupSymbol<plan::EntryOp>(entries.front()).getPeakBytes();
    return results;
  }
  Tensors inputsOf(plan::ProgramOp program, StringRef entry) {
    Tensors all = batch(), wanted;
    for (Attribute port : program.lookupSymbol<plan::EntryOp>(entry).getInputs()) {
      std::string name = cast<plan::PortAttr>(port).getName().str();
      wanted.emplace(name, all.at(name));
    }
    return wanted;
  }

  /// Sums over eight tokens and 64 classes in another order: a few roundings of f32 at the scale of the largest
  /// element.
  static void expectClose(const Tensors &found, const Tensors &expected) {
    for (const auto &[name, value] : expected) {
      if (StringRef(name).starts_with("@constant."))
        continue;
      ASSERT_TRUE(found.count(name)) << name;
      const HostTensor &other = found.at(name);
      ASSERT_EQ(other.floats.size(), value.floats.size()) << name;
      double scale = 1e-3;
      for (double element : value.floats)
        scale = std::max(scale, std::fabs(element));
      for (size_t i = 0; i < value.floats.size(); ++i)
        EXPECT_NEAR(other.floats[i], value.floats[i], 16 * 6e-8 * scale) << name << "[" << i << "]";
      EXPECT_EQ(other.ints, value.ints) << name;
    }
  }
};

OptimizerRecipe sgd(int64_t accumulation = 1) {
  OptimizerRecipe recipe;
  recipe.kind = "sgd";
  recipe.momentum = 0.5;
  recipe.accumulation = accumulation;
  recipe.gradientsEntry = true;
  return recipe;
}

TEST_F(ChunkTest, piecesGiveTheNumbersOfTheWhole) {
  uint64_t whole = 0, peak = 0;
  OwningOpRef<ModuleOp> module = step(1, sgd());
  Tensors expected = run(*module, {"gradients", "train_step", "eval_step"}, whole);
  ASSERT_TRUE(expected.count("gradients.grad.h.0"));
  for (int64_t chunks : {2, 3, 8, 100}) {
    OwningOpRef<ModuleOp> pieces = step(chunks, sgd());
    Tensors found = run(*pieces, {"gradients", "train_step", "eval_step"}, peak);
    expectClose(found, expected);
  }
}

TEST_F(ChunkTest, piecesAccumulateLikeTheWhole) {
  uint64_t whole = 0, peak = 0;
  OwningOpRef<ModuleOp> module = step(1, sgd(2)), pieces = step(3, sgd(2));
  SmallVector<StringRef> entries{"accumulate", "accumulate", "apply"};
  Tensors expected = run(*module, entries, whole), found = run(*pieces, entries, peak);
  expectClose(found, expected);
  EXPECT_LT(peak, whole);
}

// No buffer of a piece-wise step holds eight rows of 64 logits, and none but weights and their gradient half of that.
TEST_F(ChunkTest, logitsNeverExistInFull) {
  for (int64_t chunks : {1, 4}) {
    FakeTarget target;
    OwningOpRef<ModuleOp> module = step(chunks, sgd());
    ASSERT_TRUE(succeeded(prepareForPlan(*module))) << pass.messages;
    Result<plan::ProgramOp> program = lowerToPlan(*module, target, {});
    ASSERT_TRUE(static_cast<bool>(program)) << program.status().message();
    uint64_t largest = 0;
    for (auto buffer : program->lookupSymbol<plan::EntryOp>("train_step").getBody().getOps<plan::BufferOp>())
      if (buffer.getBytes() != 64 * 4 * 4) // the weight's gradient
        largest = std::max<uint64_t>(largest, buffer.getBytes());
    EXPECT_EQ(largest, chunks == 1 ? 10u * 64 * 4 : 2u * 64 * 4) << chunks << " pieces";
  }
}

//===--- dot_add ---===//

struct DotAddTest : ::testing::Test {
  PassContext pass;
  FakeTarget target;
  plan::ProgramOp program;
  OwningOpRef<ModuleOp> module;

  /// Runs @f on counting numbers through its plan and compares with its meaning, twice.
  void check(StringRef text) {
    module = parseModule(pass.context, text);
    ASSERT_TRUE(module) << pass.messages;
    OwningOpRef<ModuleOp> meaning = module->clone();
    ASSERT_TRUE(succeeded(prepareForPlan(*module))) << pass.messages;
    Result<plan::ProgramOp> lowered = lowerToPlan(*module, target, {});
    ASSERT_TRUE(static_cast<bool>(lowered)) << lowered.status().message() << pass.messages;
    program = *lowered;
    Tensors state, inputs;
    for (auto variable : module->getOps<graph::VariableOp>())
      state.emplace(variable.getSymName().str(), counting(variable.getTensorType(), 3));
    auto function = meaning->lookupSymbol<func::FuncOp>("f");
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      inputs.emplace("input" + std::to_string(i), counting(cast<RankedTensorType>(function.getArgumentTypes()[i]), i));
    PlanMachine machine(program, target, state);
    for (int round = 0; round < 2; ++round) {
      Tensors found = machine.run("f", inputs), expected = evaluateEntry(*meaning, "f", inputs, state);
      for (auto &[name, value] : expected)
        EXPECT_EQ(found.at(name).floats, value.floats) << name;
      for (auto &[name, value] : state)
        EXPECT_EQ(machine.state().at(name).floats, value.floats) << name;
    }
  }
  static HostTensor counting(RankedTensorType type, double first) {
    HostTensor value = HostTensor::zeros(type);
    for (double &element : value.floats)
      element = first++;
    return value;
  }
  std::vector<std::string> calls() {
    std::vector<std::string> names;
    for (auto call : program.lookupSymbol<plan::EntryOp>("f").getBody().getOps<plan::CallOp>())
      names.push_back(call.getCallee().str());
    return names;
  }
  size_t buffers() {
    auto range = program.lookupSymbol<plan::EntryOp>("f").getBody().getOps<plan::BufferOp>();
    return std::distance(range.begin(), range.end());
  }
};

// Three products, one buffer besides the input's.
TEST_F(DotAddTest, sumsShareOneBuffer) {
  check(R"(func.func @f(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %0 = graph.dot %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %1 = graph.dot_add %x, %x into %0 {trans_a = true} : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %2 = graph.dot_add %x, %x into %1 {trans_b = true} : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    return %2 : tensor<2x2xf32>
  })");
  EXPECT_THAT(calls(), ::testing::ElementsAre("dot", "dot", "dot"));
  EXPECT_EQ(buffers(), 2u);
}

// An accumulator that is read later, is a factor of its own product, or is an input is copied first.
TEST_F(DotAddTest, anAccumulatorThatIsStillNeededIsCopied) {
  check(R"(func.func @f(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
    %0 = graph.dot %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %1 = graph.dot_add %x, %x into %0 : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %2 = graph.dot_add %1, %x into %1 : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %3 = graph.dot_add %x, %2 into %x : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    return %0, %3 : tensor<2x2xf32>, tensor<2x2xf32>
  })");
  EXPECT_EQ(llvm::count(calls(), std::string("copy")), 3);
}

// A sum that starts from a variable and ends in it needs no storage at all.
TEST_F(DotAddTest, sumsIntoAVariableHappenThere) {
  check(R"(graph.variable @sum : tensor<2x2xf32> {kind = #graph.variable_kind<gradient_accumulator>}
  func.func @f(%x: tensor<2x2xf32>) {
    %s = graph.read @sum : tensor<2x2xf32>
    %0 = graph.dot_add %x, %x into %s : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %1 = graph.dot_add %x, %x into %0 {trans_a = true} : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    graph.write @sum, %1 : tensor<2x2xf32>
    return
  })");
  EXPECT_THAT(calls(), ::testing::ElementsAre("dot", "dot"));
  EXPECT_EQ(buffers(), 1u);
}

// The old value is needed after the sum: it is formed aside and copied at the end.
TEST_F(DotAddTest, sumsIntoAVariableWaitForItsReaders) {
  check(R"(graph.variable @sum : tensor<2x2xf32> {kind = #graph.variable_kind<gradient_accumulator>}
  func.func @f(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %s = graph.read @sum : tensor<2x2xf32>
    %0 = graph.dot_add %x, %x into %s : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %1 = graph.dot %s, %0 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    graph.write @sum, %0 : tensor<2x2xf32>
    return %1 : tensor<2x2xf32>
  })");
  EXPECT_EQ(llvm::count(calls(), std::string("copy")), 2);
}

} // namespace
