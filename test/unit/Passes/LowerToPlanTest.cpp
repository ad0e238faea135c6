// LowerToPlan: what the plan does to the bytes equals what the graph says, above all around state. Every plan here was
// also judged by planner::validate (inside planner::plan) and by the plan dialect's verifier.
#include "test/unit/Passes/PlanMachine.h"

#include "dialects/Graph/Graph.h"

#include "mlir/IR/Verifier.h"

#include <gmock/gmock.h>

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::test;
using ::testing::HasSubstr;

namespace {

struct LowerToPlanTest : ::testing::Test {
  PassContext pass;
  FakeTarget target;
  OwningOpRef<ModuleOp> module, meaning;
  plan::ProgramOp program;

  /// Parses, prepares and lowers `text`; `meaning` keeps the module as it was.
  void lower(StringRef text, const LowerOptions &options = {}) {
    module = parseModule(pass.context, text);
    ASSERT_TRUE(module) << pass.messages;
    meaning = module->clone();
    ASSERT_TRUE(succeeded(prepareForPlan(*module))) << pass.messages;
    Result<plan::ProgramOp> lowered = lowerToPlan(*module, target, options);
    ASSERT_TRUE(static_cast<bool>(lowered)) << lowered.status().message() << pass.messages;
    program = *lowered;
    ASSERT_TRUE(succeeded(verify(*module))) << pass.messages;
  }

  /// Runs `entry` twice from counting numbers (1, 2, 3, ...; constants their own values) and compares with the
  /// reference.
  void expectSame(StringRef entry = "f") {
    Tensors start = startState();
    PlanMachine machine(program, target, start);
    Tensors expectedState = start;
    Tensors inputs = inputsOf(entry);
    for (int run = 0; run < 2; ++run) {
      Tensors results = machine.run(entry, inputs);
      Tensors expected = evaluateEntry(*meaning, entry, inputs, expectedState);
      expectEqual(results, expected, "output");
      expectEqual(machine.state(), expectedState, "variable");
    }
  }

  Tensors startState() {
    Tensors state = reference::initialState(*module);
    double next = 1;
    for (auto variable : module->getOps<graph::VariableOp>()) {
      HostTensor value = HostTensor::zeros(variable.getTensorType());
      for (double &element : value.floats)
        element = next++;
      for (int64_t &element : value.ints)
        element = 1;
      state.try_emplace(variable.getSymName().str(), value);
    }
    return state;
  }

  Tensors inputsOf(StringRef entry) {
    Tensors inputs;
    auto function = meaning->lookupSymbol<func::FuncOp>(entry);
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      HostTensor value = HostTensor::zeros(function.getArgumentTypes()[i]);
      for (size_t e = 0; e < value.floats.size(); ++e)
        value.floats[e] = 100.0 + static_cast<double>(e) + 50 * i;
      inputs.emplace("input" + std::to_string(i), value);
    }
    return inputs;
  }

  static void expectEqual(const Tensors &found, const Tensors &expected, StringRef what) {
    for (const auto &[name, value] : expected) {
      auto other = found.find(name);
      ASSERT_NE(other, found.end()) << what.str() << " " << name;
      EXPECT_EQ(other->second.floats, value.floats) << what.str() << " " << name;
      EXPECT_EQ(other->second.ints, value.ints) << what.str() << " " << name;
    }
  }

  plan::EntryOp entry(StringRef name = "f") { return program.lookupSymbol<plan::EntryOp>(name); }
  template <typename Op> std::vector<Op> commands(StringRef name = "f") {
    auto range = entry(name).getBody().getOps<Op>();
    return std::vector<Op>(range.begin(), range.end());
  }
  size_t copies() {
    size_t count = 0;
    for (plan::CallOp call : commands<plan::CallOp>())
      count += call.getCallee() == "copy";
    return count;
  }
  template <typename Op> plan::OperandAttr operand(Op command, size_t index) {
    return cast<plan::OperandAttr>(command.getArguments()[index]);
  }
};

} // namespace

//===--- state: where updates go ---===//

// Nobody needs the old value afterwards: the update runs straight in the variable's bytes, and no copy is made.
TEST_F(LowerToPlanTest, updateRunsInTheVariable) {
  lower(R"(graph.variable @w : tensor<4xf32> {kind = #graph.variable_kind<parameter>}
    func.func @f(%g: tensor<4xf32>) {
      %w = graph.read @w : tensor<4xf32>
      %n = graph.sub %w, %g : tensor<4xf32>
      graph.write @w, %n : tensor<4xf32>
      return
    })");
  EXPECT_EQ(copies(), 0u);
  auto launches = commands<plan::LaunchOp>();
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(operand(launches[0], 2).getBuffer().getValue(), "w");
  expectSame();
}

// The old value is used after the update op: the update is computed aside and copied when every reader is done.
TEST_F(LowerToPlanTest, oldValueNeededLaterIsCopiedAtTheEnd) {
  lower(R"(graph.variable @w : tensor<2x2xf32> {kind = #graph.variable_kind<parameter>}
    func.func @f(%g: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %w = graph.read @w : tensor<2x2xf32>
      %n = graph.sub %w, %g : tensor<2x2xf32>
      graph.write @w, %n : tensor<2x2xf32>
      %p = graph.dot %n, %g : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      %y = graph.dot %p, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %y : tensor<2x2xf32>
    })");
  EXPECT_EQ(copies(), 1u);
  EXPECT_EQ(commands<plan::CallOp>().back().getCallee(), "copy");
  expectSame();
}

TEST_F(LowerToPlanTest, twoVariablesSwap) {
  lower(R"(graph.variable @a : tensor<3xf32> {kind = #graph.variable_kind<model_state>}
    graph.variable @b : tensor<3xf32> {kind = #graph.variable_kind<model_state>}
    func.func @f() {
      %a = graph.read @a : tensor<3xf32>
      %b = graph.read @b : tensor<3xf32>
      graph.write @a, %b : tensor<3xf32>
      graph.write @b, %a : tensor<3xf32>
      return
    })");
  expectSame();
}

// A rotation through ops: each update reads another variable's old value.
TEST_F(LowerToPlanTest, threeVariablesRotateThroughOps) {
  lower(R"(graph.variable @a : tensor<3xf32> {kind = #graph.variable_kind<model_state>}
    graph.variable @b : tensor<3xf32> {kind = #graph.variable_kind<model_state>}
    graph.variable @c : tensor<3xf32> {kind = #graph.variable_kind<model_state>}
    func.func @f() {
      %a = graph.read @a : tensor<3xf32>
      %b = graph.read @b : tensor<3xf32>
      %c = graph.read @c : tensor<3xf32>
      %x = graph.neg %b : tensor<3xf32>
      %y = graph.add %c, %c : tensor<3xf32>
      %z = graph.mul %a, %a : tensor<3xf32>
      graph.write @a, %x : tensor<3xf32>
      graph.write @b, %y : tensor<3xf32>
      graph.write @c, %z : tensor<3xf32>
      return
    })");
  expectSame();
}

TEST_F(LowerToPlanTest, oneValueWrittenToTwoVariables) {
  lower(R"(graph.variable @a : tensor<3xf32> {kind = #graph.variable_kind<model_state>}
    graph.variable @b : tensor<3xf32> {kind = #graph.variable_kind<model_state>}
    func.func @f(%x: tensor<3xf32>) {
      %a = graph.read @a : tensor<3xf32>
      %n = graph.add %a, %x : tensor<3xf32>
      graph.write @a, %n : tensor<3xf32>
      graph.write @b, %n : tensor<3xf32>
      return
    })");
  EXPECT_EQ(copies(), 1u);
  expectSame();
}

// A variable's update reads its old value turned around: element (i, j) is needed after (i, j) was replaced.
TEST_F(LowerToPlanTest, transposedSelfUpdateIsNotDoneInPlace) {
  lower(R"(graph.variable @w : tensor<3x3xf32> {kind = #graph.variable_kind<model_state>}
    func.func @f() {
      %w = graph.read @w : tensor<3x3xf32>
      %t = graph.transpose %w [1, 0] : tensor<3x3xf32> -> tensor<3x3xf32>
      %n = graph.add %w, %t : tensor<3x3xf32>
      graph.write @w, %n : tensor<3x3xf32>
      return
    })");
  EXPECT_EQ(copies(), 1u);
  expectSame();
}

// Resetting a variable is a fill; every use of the old value comes before it, wherever the write stands.
TEST_F(LowerToPlanTest, aResetWaitsForReadersOfTheOldValue) {
  lower(R"(graph.variable @sum : tensor<2xf32> {kind = #graph.variable_kind<gradient_accumulator>}
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %old = graph.read @sum : tensor<2xf32>
      %zero = graph.constant dense<0.0> : tensor<2xf32>
      graph.write @sum, %zero : tensor<2xf32>
      %y = graph.add %old, %x : tensor<2xf32>
      return %y : tensor<2xf32>
    })");
  expectSame();
}

//===--- results that are not results of an op ---===//

// The caller gets the value read, not what a later write left in the variable.
TEST_F(LowerToPlanTest, aReturnedReadIsTheOldValueDespiteAnUpdate) {
  lower(R"(graph.variable @w : tensor<2xf32> {kind = #graph.variable_kind<parameter>}
    func.func @f(%g: tensor<2xf32>) -> tensor<2xf32> {
      %w = graph.read @w : tensor<2xf32>
      %n = graph.sub %w, %g : tensor<2xf32>
      graph.write @w, %n : tensor<2xf32>
      return %w : tensor<2xf32>
    })");
  expectSame();
}

// `apply` reports the tokens of the window it clears.
TEST_F(LowerToPlanTest, aReturnedReadIsTheOldValueDespiteAReset) {
  lower(R"(graph.variable @weight : tensor<f32> {kind = #graph.variable_kind<gradient_accumulator>}
    func.func @f() -> tensor<f32> {
      %w = graph.read @weight : tensor<f32>
      %zero = graph.constant dense<0.0> : tensor<f32>
      graph.write @weight, %zero : tensor<f32>
      return %w : tensor<f32>
    })");
  expectSame();
}

TEST_F(LowerToPlanTest, aReturnedViewOfAReadIsTheOldValue) {
  lower(R"(graph.variable @w : tensor<2x3xf32> {kind = #graph.variable_kind<parameter>}
    func.func @f() -> tensor<6xf32> {
      %w = graph.read @w : tensor<2x3xf32>
      %r = graph.reshape %w : tensor<2x3xf32> -> tensor<6xf32>
      %n = graph.neg %w : tensor<2x3xf32>
      graph.write @w, %n : tensor<2x3xf32>
      return %r : tensor<6xf32>
    })");
  expectSame();
}

TEST_F(LowerToPlanTest, parameterArgumentAndConstantAreReturned) {
  lower(R"(graph.variable @w : tensor<2xf32> {kind = #graph.variable_kind<parameter>}
    func.func @f(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
      %w = graph.read @w : tensor<2xf32>
      %splat = graph.constant dense<7.0> : tensor<2xf32>
      %list = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
      return %w, %x, %splat, %list : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    })");
  EXPECT_EQ(copies(), 0u);
  expectSame();
}

// A constant that is both written and used elsewhere has one home.
TEST_F(LowerToPlanTest, aConstantIsWrittenAndReturned) {
  lower(R"(graph.variable @v : tensor<2xf32> {kind = #graph.variable_kind<model_state>}
    func.func @f() -> tensor<2xf32> {
      %c = graph.constant dense<3.0> : tensor<2xf32>
      graph.write @v, %c : tensor<2xf32>
      return %c : tensor<2xf32>
    })");
  expectSame();
}

TEST_F(LowerToPlanTest, anArgumentIsWritten) {
  lower(R"(graph.variable @v : tensor<2xf32> {kind = #graph.variable_kind<model_state>}
    func.func @f(%x: tensor<2xf32>, %unused: tensor<5xf32>) {
      graph.write @v, %x : tensor<2xf32>
      return
    })");
  expectSame();
}

TEST_F(LowerToPlanTest, theNewValueMayBeReturned) {
  lower(R"(graph.variable @w : tensor<2xf32> {kind = #graph.variable_kind<parameter>}
    func.func @f(%g: tensor<2xf32>) -> tensor<2xf32> {
      %w = graph.read @w : tensor<2xf32>
      %n = graph.sub %w, %g : tensor<2xf32>
      graph.write @w, %n : tensor<2xf32>
      return %n : tensor<2xf32>
    })");
  expectSame();
}

//===--- pieces, views, scratch ---===//

TEST_F(LowerToPlanTest, concatAndPadAreWrittenInPieces) {
  lower(R"(func.func @f(%x: tensor<2x3xf32>, %y: tensor<2x1xf32>) -> (tensor<2x6xf32>, tensor<6x5xf32>) {
      %s = graph.slice %x [0, 1] [1, 1] : tensor<2x3xf32> -> tensor<2x2xf32>
      %c = graph.concat %x, %y, %s axis 1 : (tensor<2x3xf32>, tensor<2x1xf32>, tensor<2x2xf32>) -> tensor<2x6xf32>
      %t = graph.transpose %x [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
      %p = graph.pad %t low [1, 2] high [0, 0] interior [1, 1] {value = -1.5 : f64} : tensor<3x2xf32> -> tensor<6x5xf32>
      return %c, %p : tensor<2x6xf32>, tensor<6x5xf32>
    })");
  EXPECT_EQ(copies(), 4u);
  expectSame();
}

// Offsets count bytes of the element: 8 for i64, 2 for f16, 1 for i1.
TEST_F(LowerToPlanTest, offsetsFollowTheElementSize) {
  lower(
      R"(graph.variable @i : tensor<4xi64> {kind = #graph.variable_kind<constant>, value = dense<[1, 2, 3, 4]> : tensor<4xi64>}
    graph.variable @h : tensor<4xf16> {kind = #graph.variable_kind<constant>, value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf16>}
    graph.variable @b : tensor<4xi1> {kind = #graph.variable_kind<constant>, value = dense<[true, false, false, true]> : tensor<4xi1>}
    func.func @f() -> (tensor<4xi64>, tensor<4xf16>, tensor<4xi1>) {
      %i = graph.read @i : tensor<4xi64>
      %h = graph.read @h : tensor<4xf16>
      %b = graph.read @b : tensor<4xi1>
      %i0 = graph.slice %i [3] [1] : tensor<4xi64> -> tensor<1xi64>
      %i1 = graph.slice %i [0] [1] : tensor<4xi64> -> tensor<3xi64>
      %ic = graph.concat %i0, %i1 axis 0 : (tensor<1xi64>, tensor<3xi64>) -> tensor<4xi64>
      %h0 = graph.slice %h [3] [1] : tensor<4xf16> -> tensor<1xf16>
      %h1 = graph.slice %h [0] [1] : tensor<4xf16> -> tensor<3xf16>
      %hc = graph.concat %h0, %h1 axis 0 : (tensor<1xf16>, tensor<3xf16>) -> tensor<4xf16>
      %b0 = graph.slice %b [3] [1] : tensor<4xi1> -> tensor<1xi1>
      %b1 = graph.slice %b [0] [1] : tensor<4xi1> -> tensor<3xi1>
      %bc = graph.concat %b0, %b1 axis 0 : (tensor<1xi1>, tensor<3xi1>) -> tensor<4xi1>
      return %ic, %hc, %bc : tensor<4xi64>, tensor<4xf16>, tensor<4xi1>
    })");
  auto calls = commands<plan::CallOp>();
  ASSERT_EQ(calls.size(), 6u);
  int64_t size[] = {8, 2, 1};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(operand(calls[2 * i], 0).getOffset(), 3 * size[i]);
    EXPECT_EQ(operand(calls[2 * i + 1], 1).getOffset(), size[i]);
  }
  expectSame();
}

TEST_F(LowerToPlanTest, scratchIsABufferOfOneCommand) {
  target.scratch["dot"] = 192;
  lower(R"(func.func @f(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %a = graph.dot %x, %x {trans_b = true} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      %b = graph.dot %a, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %b : tensor<2x2xf32>
    })");
  auto calls = commands<plan::CallOp>();
  ASSERT_EQ(calls.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(calls[i].getWorkspace(), 3u);
    auto buffer = entry().lookupSymbol<plan::BufferOp>(operand(calls[i], 3).getBuffer());
    EXPECT_EQ(buffer.getBytes(), 192u);
    EXPECT_EQ(buffer.getKlass(), plan::BufferClass::Workspace);
    EXPECT_EQ(*buffer.getFirst(), i);
    EXPECT_EQ(*buffer.getLast(), i);
  }
  // trans_b is in the window, not in the parameters.
  EXPECT_EQ(operand(calls[0], 1).getStrides()[0], 1);
  EXPECT_FALSE(calls[0].getParameters().contains("trans_b"));
  expectSame();
}

// A result takes over the bytes of an operand nobody needs any more, also when a view renamed its dimensions.
TEST_F(LowerToPlanTest, inPlaceOffersAreTaken) {
  lower(R"(func.func @f(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
      %a = graph.dot %x, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %b = graph.exp %a : tensor<64x64xf32>
      %c = graph.dot %b, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      return %c : tensor<64x64xf32>
    })");
  auto launches = commands<plan::LaunchOp>();
  ASSERT_EQ(launches.size(), 1u);
  auto source = entry().lookupSymbol<plan::BufferOp>(operand(launches[0], 0).getBuffer());
  auto result = entry().lookupSymbol<plan::BufferOp>(operand(launches[0], 1).getBuffer());
  EXPECT_EQ(source.getOffset(), result.getOffset());
  // x and a at first, then a and c: two tensors of 64*64*4 bytes.
  EXPECT_EQ(entry().getPeakBytes(), 2u * 64 * 64 * 4);
}

TEST_F(LowerToPlanTest, inPlaceThroughAReshape) {
  lower(R"(func.func @f(%x: tensor<64x1x64xf32>) -> tensor<64x64xf32> {
      %r = graph.reshape %x : tensor<64x1x64xf32> -> tensor<64x64xf32>
      %a = graph.exp %r : tensor<64x64xf32>
      return %a : tensor<64x64xf32>
    })");
  EXPECT_EQ(entry().getPeakBytes(), 64u * 64 * 4);
}

// A weight with dimensions of size 1 (a 1x1 convolution): fusion drops them, the update still runs in the variable.
TEST_F(LowerToPlanTest, updateOfAWeightWithUnitDimensionsRunsInTheVariable) {
  lower(R"(graph.variable @w : tensor<4x3x1x1xf32> {kind = #graph.variable_kind<parameter>}
    func.func @f(%g: tensor<4x3x1x1xf32>) {
      %w = graph.read @w : tensor<4x3x1x1xf32>
      %n = graph.sub %w, %g : tensor<4x3x1x1xf32>
      graph.write @w, %n : tensor<4x3x1x1xf32>
      return
    })");
  EXPECT_EQ(copies(), 0u);
  expectSame();
}

// Variables lie at the same address in every entry, whatever each uses.
TEST_F(LowerToPlanTest, entriesShareVariablesAndOneArena) {
  lower(R"(graph.variable @a : tensor<3xf32> {kind = #graph.variable_kind<parameter>}
    graph.variable @b : tensor<40xf32> {kind = #graph.variable_kind<parameter>}
    func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
      %a = graph.read @a : tensor<3xf32>
      %y = graph.add %a, %x : tensor<3xf32>
      return %y : tensor<3xf32>
    }
    func.func @g() -> tensor<40xf32> {
      %b = graph.read @b : tensor<40xf32>
      %y = graph.neg %b : tensor<40xf32>
      return %y : tensor<40xf32>
    })");
  // a: 12 bytes -> 64; b: 160 -> 192; then 64 (f: input and result share) or 192 (g).
  EXPECT_EQ((*program.getBody().getOps<plan::ArenaOp>().begin()).getBytes(), 64u + 192 + 192);
  expectSame("f");
  expectSame("g");
}

//===--- names ---===//

// Names of temporaries, inputs and scratch give way to a model's own names.
TEST_F(LowerToPlanTest, modelNamesNeverCollideWithOurs) {
  target.scratch["dot"] = 64;
  lower(R"(graph.variable @t6 : tensor<2x2xf32> {kind = #graph.variable_kind<parameter>}
    graph.variable @t7 : tensor<2x2xf32> {kind = #graph.variable_kind<parameter>}
    graph.variable @input.input0 : tensor<2x2xf32> {kind = #graph.variable_kind<parameter>}
    graph.variable @workspace.0 : tensor<2x2xf32> {kind = #graph.variable_kind<parameter>}
    graph.variable @constant.0 : tensor<2x2xf32> {kind = #graph.variable_kind<parameter>}
    func.func @f(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
      %a = graph.read @t6 : tensor<2x2xf32>
      %b = graph.read @t7 : tensor<2x2xf32>
      %c = graph.read @input.input0 : tensor<2x2xf32>
      %d = graph.read @workspace.0 : tensor<2x2xf32>
      %e = graph.read @constant.0 : tensor<2x2xf32>
      %k = graph.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
      %0 = graph.dot %x, %a : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      %1 = graph.dot %0, %b : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      %2 = graph.dot %1, %c : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      %3 = graph.dot %2, %d : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      %4 = graph.dot %3, %e : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      %5 = graph.dot %4, %k : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %5, %0 : tensor<2x2xf32>, tensor<2x2xf32>
    })");
  if (program)
    expectSame();
}

//===--- refusals ---===//

TEST_F(LowerToPlanTest, anOpWithoutACommandIsNamed) {
  module = parseModule(pass.context, R"(func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = graph.exp %x : tensor<2xf32>
      return %y : tensor<2xf32>
    })");
  Result<plan::ProgramOp> lowered = lowerToPlan(*module, target, {});
  ASSERT_FALSE(static_cast<bool>(lowered));
  EXPECT_EQ(lowered.status().code(), ExitCode::Unsupported);
  EXPECT_THAT(lowered.status().message(), HasSubstr("entry f cannot be lowered; see the errors above"));
  EXPECT_THAT(pass.messages,
              HasSubstr("'graph.exp' op has no command; expected a kernel group, library operation or view here"));
}

TEST_F(LowerToPlanTest, aGroupWithoutCodeIsNamed) {
  target.refuseKernels = true;
  module = parseModule(pass.context, R"(func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = graph.exp %x : tensor<2xf32>
      return %y : tensor<2xf32>
    })");
  ASSERT_TRUE(succeeded(prepareForPlan(*module)));
  EXPECT_FALSE(static_cast<bool>(lowerToPlan(*module, target, {})));
  EXPECT_THAT(pass.messages, HasSubstr("has no code here"));
}

TEST_F(LowerToPlanTest, aModuleWithoutEntriesIsBadInput) {
  module = parseModule(pass.context, "module {}");
  Result<plan::ProgramOp> lowered = lowerToPlan(*module, target, {});
  ASSERT_FALSE(static_cast<bool>(lowered));
  EXPECT_EQ(lowered.status().code(), ExitCode::BadInput);
  EXPECT_EQ(lowered.status().message(), "the module has no entry function to plan");
}

TEST_F(LowerToPlanTest, aBudgetBelowThePeakDoesNotFit) {
  module = parseModule(pass.context, R"(func.func @f(%x: tensor<64xf32>) -> tensor<64xf32> {
      %y = graph.exp %x : tensor<64xf32>
      return %y : tensor<64xf32>
    })");
  ASSERT_TRUE(succeeded(prepareForPlan(*module)));
  LowerOptions options;
  options.budgetBytes = 128;
  Result<plan::ProgramOp> lowered = lowerToPlan(*module, target, options);
  ASSERT_FALSE(static_cast<bool>(lowered));
  EXPECT_EQ(lowered.status().code(), ExitCode::DoesNotFit);
  EXPECT_THAT(lowered.status().message(), HasSubstr("entry f: "));
}

// A read after a write would see the variable's bytes, not the value the graph means; buildTrainingStep forwards such
// values.
TEST_F(LowerToPlanTest, aReadAfterAWriteIsRefused) {
  module = parseModule(pass.context, R"(graph.variable @v : tensor<2xf32> {kind = #graph.variable_kind<model_state>}
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %c = graph.copy %x : tensor<2xf32>
      graph.write @v, %c : tensor<2xf32>
      %v = graph.read @v : tensor<2xf32>
      return %v : tensor<2xf32>
    })");
  Result<plan::ProgramOp> lowered = lowerToPlan(*module, target, {});
  ASSERT_FALSE(static_cast<bool>(lowered));
  EXPECT_THAT(
      pass.messages,
      HasSubstr(
          "'graph.read' op reads @v after it was written; expected every read first (run --plimsoll-training-step)"));
}

TEST_F(LowerToPlanTest, aSecondWriteIsRefused) {
  module = parseModule(pass.context, R"(graph.variable @v : tensor<2xf32> {kind = #graph.variable_kind<model_state>}
    func.func @f(%x: tensor<2xf32>) {
      %c = graph.copy %x : tensor<2xf32>
      graph.write @v, %c : tensor<2xf32>
      graph.write @v, %c : tensor<2xf32>
      return
    })");
  EXPECT_FALSE(static_cast<bool>(lowerToPlan(*module, target, {})));
  EXPECT_THAT(
      pass.messages,
      HasSubstr(
          "'graph.write' op writes @v a second time; expected one write per entry (run --plimsoll-training-step)"));
}

TEST_F(LowerToPlanTest, aWriteWithoutOwnStorageIsRefused) {
  module = parseModule(pass.context, R"(graph.variable @v : tensor<2xf32> {kind = #graph.variable_kind<model_state>}
    func.func @f(%x: tensor<2xf32>) {
      graph.write @v, %x : tensor<2xf32>
      return
    })");
  EXPECT_FALSE(static_cast<bool>(lowerToPlan(*module, target, {})));
  EXPECT_THAT(pass.messages,
              HasSubstr("'graph.write' op writes a value without storage of its own (run --plimsoll-materialize)"));
}

TEST_F(LowerToPlanTest, aReturnedOldValueIsRefused) {
  module = parseModule(pass.context, R"(graph.variable @v : tensor<2xf32> {kind = #graph.variable_kind<model_state>}
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %v = graph.read @v : tensor<2xf32>
      %c = graph.copy %x : tensor<2xf32>
      graph.write @v, %c : tensor<2xf32>
      return %v : tensor<2xf32>
    })");
  EXPECT_FALSE(static_cast<bool>(lowerToPlan(*module, target, {})));
  EXPECT_THAT(pass.messages, HasSubstr("returns the old value of @v, which is written (run --plimsoll-materialize)"));
}

TEST_F(LowerToPlanTest, aViewWithoutStridesIsRefused) {
  module = parseModule(pass.context, R"(func.func @f(%x: tensor<2x3xf32>) -> tensor<6xf32> {
      %t = graph.transpose %x [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
      %r = graph.reshape %t : tensor<3x2xf32> -> tensor<6xf32>
      return %r : tensor<6xf32>
    })");
  EXPECT_FALSE(static_cast<bool>(lowerToPlan(*module, target, {})));
  EXPECT_THAT(pass.messages, HasSubstr("takes a view that strides cannot express (run --plimsoll-materialize)"));
}
