// What each phase promises is checked: one broken module per promise.
#include "lib/Pipeline/Pipeline.h"
#include "test/unit/Passes/PlanMachine.h"

#include <gmock/gmock.h>

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::test;
using ::testing::HasSubstr;

namespace {

struct VerifyStageTest : ::testing::Test {
  PassContext pass;
  std::string verdict(StringRef text, Phase phase) {
    pass.messages.clear();
    OwningOpRef<ModuleOp> module = parseModule(pass.context, text);
    EXPECT_TRUE(module) << pass.messages;
    return succeeded(verifyStage(*module, phase)) ? "ok" : pass.messages;
  }
};

constexpr const char *unfused = R"(func.func @train_step(%x: tensor<2x3xf32>) -> tensor<6xf32> {
    %e = graph.exp %x : tensor<2x3xf32>
    %s = graph.sin %e : tensor<2x3xf32>
    %r = graph.reshape %s : tensor<2x3xf32> -> tensor<6xf32>
    return %r : tensor<6xf32>
  }
  func.func @eval_step() { return })";

} // namespace

TEST_F(VerifyStageTest, trainingNeedsItsEntries) {
  EXPECT_EQ(verdict("module {}", Phase::Bound), "ok");
  EXPECT_THAT(verdict("module {}", Phase::Differentiated),
              HasSubstr("expected train_step, or accumulate and apply, and eval_step"));
  EXPECT_THAT(verdict("func.func @train_step() { return }", Phase::Differentiated), HasSubstr("and eval_step"));
  EXPECT_THAT(verdict("func.func @accumulate() { return } func.func @eval_step() { return }", Phase::Differentiated),
              HasSubstr("accumulate and apply"));
  EXPECT_EQ(verdict(unfused, Phase::Differentiated), "ok");
}

// Every violation is listed, not only the first.
TEST_F(VerifyStageTest, fusionLeavesNoLooseOp) {
  std::string found = verdict(unfused, Phase::Fused);
  EXPECT_THAT(found, HasSubstr("'graph.exp' op is outside every kernel group after fusion"));
  EXPECT_THAT(found, HasSubstr("'graph.sin' op is outside every kernel group after fusion"));
}

TEST_F(VerifyStageTest, materialisedViewsAreWindows) {
  EXPECT_THAT(verdict(R"(func.func @train_step(%x: tensor<2x3xf32>) -> tensor<6xf32> {
      %t = graph.transpose %x [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
      %r = graph.reshape %t : tensor<3x2xf32> -> tensor<6xf32>
      return %r : tensor<6xf32>
    }
    func.func @eval_step() { return })",
                      Phase::Planned),
              HasSubstr("'graph.reshape' op is not a strided window after materialisation"));
}

TEST_F(VerifyStageTest, aPlanIsThere) {
  EXPECT_THAT(verdict("func.func @train_step() { return } func.func @eval_step() { return }", Phase::Plan),
              HasSubstr("expected a plan.program"));
}

TEST(Phases, haveNames) {
  EXPECT_EQ(parsePhase("imported"), Phase::Imported);
  EXPECT_EQ(parsePhase("plan"), Phase::Plan);
  EXPECT_EQ(parsePhase("Plan"), std::nullopt);
}
