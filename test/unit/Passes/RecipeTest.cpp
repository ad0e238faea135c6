// Recipes: every key arrives, every mistake is named with its line, and nothing misspelt trains something else.
#include "lib/Pipeline/Recipe.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

using namespace plimsoll;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

namespace {

struct RecipeTest : ::testing::Test {
  std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "plimsoll-recipe";
  RecipeTest() { std::filesystem::create_directories(folder); }

  Result<Recipe> read(const std::string &text) {
    std::ofstream(folder / "recipe.toml") << text;
    return readRecipe((folder / "recipe.toml").string());
  }
  std::string errorOf(const std::string &text) {
    Result<Recipe> recipe = read(text);
    if (recipe)
      return "accepted";
    EXPECT_EQ(recipe.status().code(), ExitCode::BadInput);
    return recipe.status().message();
  }
};

std::string checkOf(void (*change)(Recipe &), ExitCode expected = ExitCode::Usage) {
  Recipe recipe;
  change(recipe);
  Status status = recipe.check();
  EXPECT_EQ(status.code(), expected);
  return status.message();
}

} // namespace

TEST_F(RecipeTest, everyKeyArrives) {
  Result<Recipe> recipe = read(R"(model = "m.onnx"
[bind]
batch = 4
seq = 32
[loss]
kind = "cross_entropy"
output = "logits"
name = "loss"
ignore_index = -1
[train]
freeze = ["wte.*"]
buffers = ["rope.*", "mask"]
batch_norm = false
clip_norm = 1
accumulation = 8
[optimizer]
kind = "sgd"
momentum = 0.9
nesterov = true
betas = [0.8, 0.95]
eps = 1e-6
weight_decay = 0.1
no_decay = ["*.bias"]
[precision]
policy = "fp32"
[memory]
budget = "1.5GB"
chunks = 4
[machine]
dot_flops = 19.5e12
disk_read_bandwidth = "3GB/s"
)");
  ASSERT_TRUE(static_cast<bool>(recipe)) << recipe.status().message();
  EXPECT_EQ(recipe->model, (folder / "m.onnx").string()); // relative to the recipe
  EXPECT_EQ(recipe->bindings, (std::map<std::string, int64_t>{{"batch", 4}, {"seq", 32}}));
  EXPECT_EQ(recipe->loss, "cross_entropy");
  EXPECT_EQ(recipe->lossOutput, "logits");
  EXPECT_EQ(recipe->lossName, "loss");
  EXPECT_EQ(recipe->ignoreIndex, -1);
  EXPECT_THAT(recipe->freeze, ElementsAre("wte.*"));
  EXPECT_THAT(recipe->buffers, ElementsAre("rope.*", "mask"));
  EXPECT_FALSE(recipe->trainBatchNorm);
  EXPECT_EQ(recipe->optimizer.clipNorm, 1);
  EXPECT_EQ(recipe->optimizer.accumulation, 8);
  EXPECT_EQ(recipe->chunks, 4);
  EXPECT_EQ(recipe->optimizer.kind, "sgd");
  EXPECT_EQ(recipe->optimizer.momentum, 0.9);
  EXPECT_TRUE(recipe->optimizer.nesterov);
  EXPECT_EQ(recipe->optimizer.beta1, 0.8);
  EXPECT_EQ(recipe->optimizer.beta2, 0.95);
  EXPECT_EQ(recipe->optimizer.epsilon, 1e-6);
  EXPECT_EQ(recipe->optimizer.weightDecay, 0.1);
  EXPECT_THAT(recipe->optimizer.noDecay, ElementsAre("*.bias"));
  EXPECT_EQ(recipe->budgetBytes, 1'500'000'000u);
  EXPECT_EQ(recipe->profile().dotFlops, 19.5e12);
  EXPECT_EQ(recipe->profile().disk.inBytesPerSecond, 3e9);
  EXPECT_EQ(recipe->profile().scalarOps, cpuProfile().scalarOps);
  EXPECT_THAT(recipe->toJson(),
              HasSubstr("\"machine\":{\"disk_read_bandwidth\":3000000000,\"dot_flops\":19500000000000}"));
  EXPECT_TRUE(recipe->check()) << recipe->check().message();
}

TEST_F(RecipeTest, absentKeysKeepTheirDefaults) {
  Result<Recipe> recipe = read("");
  ASSERT_TRUE(static_cast<bool>(recipe));
  EXPECT_EQ(recipe->optimizer.kind, "adamw");
  EXPECT_EQ(recipe->ignoreIndex, -100);
  EXPECT_FALSE(recipe->budgetBytes);
  EXPECT_TRUE(recipe->check());
}

TEST_F(RecipeTest, mistakesAreNamedWithTheirLine) {
  EXPECT_THAT(errorOf("model = \"m\"\nmodle = 1\n"),
              EndsWith("line 2: unknown key 'modle'; known: model, [bind], [loss], [train], [optimizer], [precision], "
                       "[memory], [machine]"));
  EXPECT_THAT(errorOf("[optimizer]\nlr = 0.1\n"), EndsWith("line 2: unknown key 'lr' in [optimizer]; known keys: kind, "
                                                           "momentum, nesterov, betas, eps, weight_decay, no_decay"));
  EXPECT_THAT(errorOf("model = 5\n"),
              EndsWith("line 1: key 'model' in [recipe] has the wrong type or range; expected a string"));
  EXPECT_THAT(errorOf("[bind]\nbatch = \"four\"\n"),
              EndsWith("line 1: key 'bind' in [recipe] has the wrong type or range; expected a table of integers"));
  EXPECT_THAT(errorOf("bind = 4\n"), HasSubstr("expected a table of integers"));
  EXPECT_THAT(errorOf("[train]\n\nbatch_norm = 1\n"),
              EndsWith("line 3: key 'batch_norm' in [train] has the wrong type or range; expected true or false"));
  EXPECT_THAT(errorOf("[train]\naccumulation = 1.5\n"), EndsWith("expected an integer"));
  EXPECT_THAT(errorOf("[train]\nclip_norm = \"1\"\n"), EndsWith("expected a number"));
  EXPECT_THAT(errorOf("[train]\nfreeze = [\"a\", 1]\n"), EndsWith("expected a list of strings"));
  EXPECT_THAT(errorOf("[train]\nfreeze = \"a\"\n"), EndsWith("expected a list of strings"));
  EXPECT_THAT(errorOf("[optimizer]\nbetas = [0.9]\n"), EndsWith("expected two numbers"));
  EXPECT_THAT(
      errorOf("[memory]\nbudget = \"much\"\n"),
      EndsWith(
          "key 'budget' in [memory] has the wrong type or range; expected a size such as \"1.5GB\" or \"512MiB\""));
  EXPECT_THAT(errorOf("[machine]\ndot_flops = \"fast\"\n"),
              EndsWith("expected a table of numbers or sizes such as \"20GB/s\""));
  EXPECT_THAT(errorOf("loss = 3\n"), EndsWith("line 1: 'loss' has the wrong type; expected a table [loss]"));
  EXPECT_THAT(errorOf("model = \n"), HasSubstr("recipe.toml': line 1: "));
  EXPECT_THAT(errorOf("[train\n"), HasSubstr("line 1: "));
}

TEST_F(RecipeTest, aMissingFileIsNamed) {
  Result<Recipe> recipe = readRecipe((folder / "none.toml").string());
  ASSERT_FALSE(static_cast<bool>(recipe));
  EXPECT_EQ(recipe.status().code(), ExitCode::BadInput);
  EXPECT_THAT(recipe.status().message(), HasSubstr("none.toml': No such file or directory"));
}

TEST(RecipeCheck, valuesOutOfRangeAreNamed) {
  EXPECT_EQ(checkOf([](Recipe &r) { r.optimizer.kind = "lion"; }),
            "unknown optimizer 'lion'; expected sgd, adam or adamw");
  EXPECT_THAT(checkOf([](Recipe &r) { r.machine["gpu_flops"] = 1; }),
              HasSubstr("unknown machine number 'gpu_flops'; known: dot_flops, conv_flops, "));
  EXPECT_EQ(checkOf([](Recipe &r) { r.machine["dot_flops"] = 0; }),
            "machine number 'dot_flops' must be positive and finite");
  EXPECT_EQ(checkOf([](Recipe &r) { r.loss = "hinge"; }),
            "unknown loss 'hinge'; expected cross_entropy or mse, or none to use the model's own");
  EXPECT_EQ(checkOf([](Recipe &r) { r.optimizer.accumulation = 0; }), "accumulation is 0, expected 1 to 1,000,000");
  EXPECT_EQ(checkOf([](Recipe &r) { r.chunks = 0; }), "chunks is 0, expected 1 to 65,536");
  EXPECT_EQ(checkOf([](Recipe &r) { r.optimizer.accumulation = 1'000'001; }),
            "accumulation is 1000001, expected 1 to 1,000,000");
  EXPECT_EQ(checkOf([](Recipe &r) { r.optimizer.clipNorm = -1; }),
            "clip_norm must be positive, 0 for no clipping, or inf to measure only");
  EXPECT_EQ(checkOf([](Recipe &r) { r.optimizer.clipNorm = std::nan(""); }),
            "clip_norm must be positive, 0 for no clipping, or inf to measure only");
  EXPECT_EQ(checkOf([](Recipe &r) { r.optimizer.nesterov = true; }), "nesterov needs a momentum above 0");
  EXPECT_EQ(checkOf([](Recipe &r) { r.optimizer.beta2 = 1; }), "betas and momentum must lie in [0, 1)");
  EXPECT_EQ(checkOf([](Recipe &r) { r.optimizer.momentum = -0.5; }), "betas and momentum must lie in [0, 1)");
  EXPECT_EQ(checkOf([](Recipe &r) { r.optimizer.epsilon = -1; }), "eps and weight_decay must not be negative");
  EXPECT_EQ(checkOf([](Recipe &r) { r.optimizer.weightDecay = std::numeric_limits<double>::infinity(); }),
            "eps and weight_decay must not be negative");
  EXPECT_EQ(checkOf([](Recipe &r) { r.precision = "int4"; }, ExitCode::Unsupported),
            "precision 'int4' is not supported by this version; expected fp32");
  EXPECT_EQ(checkOf([](Recipe &r) { r.bindings["seq"] = 0; }), "dimension 'seq' is bound to 0, expected at least 1");
}

TEST(RecipeJson, saysWhatMattersInOneOrder) {
  Recipe recipe;
  recipe.bindings = {{"seq", 2}, {"batch", 1}};
  recipe.optimizer.beta1 = 0.5; // short binary fractions: JSON prints all digits
  recipe.optimizer.beta2 = 0.75;
  recipe.optimizer.clipNorm = std::numeric_limits<double>::infinity(); // measures only, so it changes nothing
  EXPECT_EQ(
      recipe.toJson(),
      R"({"accumulation":1,"bind":{"batch":1,"seq":2},"chunks":1,"freeze":[],"loss":"model","optimizer":{"betas":[0.5,0.75],"eps":1e-08,)"
      R"("kind":"adamw","no_decay":[],"weight_decay":0},"precision":"fp32"})");
  recipe.optimizer.kind = "sgd";
  recipe.optimizer.clipNorm = 0.5;
  EXPECT_THAT(recipe.toJson(), HasSubstr(R"("clip_norm":0.5)"));
  EXPECT_THAT(recipe.toJson(),
              HasSubstr(R"({"kind":"sgd","momentum":0,"nesterov":false,"no_decay":[],"weight_decay":0})"));
}
