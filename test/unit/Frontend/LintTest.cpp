// Train-readiness: each thing that an exporter can do to parameters, found and explained in one report.
#include "lib/Frontend/ONNX/Import.h"
#include "test/unit/Frontend/ModelBuilder.h"

#include "mlir/IR/MLIRContext.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

using namespace plimsoll;
namespace frontend = plimsoll::onnx; // ::onnx is protobuf
using plimsoll::test::attribute;
using plimsoll::test::ModelBuilder;
using ::testing::HasSubstr;

namespace {
struct Linted {
  frontend::ImportReport report;
  Status status;
  explicit Linted(const ModelBuilder &model) {
    std::string folder = test::freshFolder();
    frontend::ImportOptions options;
    options.modelPath = model.save(folder);
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    status = frontend::lintModel(context, options, report);
    std::filesystem::remove_all(folder);
  }
};

void zeros(::onnx::TensorProto &tensor, size_t count) { tensor.set_raw_data(std::string(count * 4, '\0')); }
} // namespace

TEST(Lint, ReportsEverythingAtOnce) {
  ModelBuilder model;
  model.input("x", {4, 6});
  model.floats("val_3", {6, 6});
  zeros(model.floats("a.bias", {6}), 6);
  model.floats("tied.weight", {6, 6});
  model.floats("dead.weight", {2, 2});
  model.node("MatMul", {"x", "val_3"}, {"h0"}, "first");
  model.node("Add", {"h0", "a.bias"}, {"h1"}, "add_one");
  model.node("MatMul", {"h1", "tied.weight"}, {"h2"});
  model.node("Add", {"h2", "a.bias"}, {"h3"}, "add_two");
  model.node("MatMul", {"h3", "tied.weight"}, {"logits"});
  model.crossEntropy("logits", 4);
  Linted linted(model);
  EXPECT_TRUE(linted.status) << linted.status.message();
  std::string text = linted.report.toText();
  EXPECT_THAT(text,
              HasSubstr("merged-parameter: 'a.bias': one constant-valued tensor serves 2 layers (add_one, add_two)"));
  EXPECT_THAT(text, HasSubstr("folded-parameter: 'val_3': has a name made by the exporter"));
  EXPECT_THAT(text, HasSubstr("tied-parameter: 'tied.weight': is used by 2 nodes"));
  EXPECT_THAT(text, HasSubstr("dead-parameter: 'dead.weight'"));
  EXPECT_THAT(text, HasSubstr("export again with optimize=False"));
}

TEST(Lint, ExplainsBatchNormForms) {
  ModelBuilder model(15);
  model.input("x", {4, 3, 5, 5});
  for (const char *part : {"bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"})
    model.floats(part, {3});
  model.node("BatchNormalization", {"x", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"}, {"y"},
             "the_norm");
  model.node("GlobalAveragePool", {"y"}, {"p"});
  model.node("Flatten", {"p"}, {"logits"});
  model.crossEntropy("logits", 4);
  Linted linted(model);
  EXPECT_THAT(linted.report.toText(), HasSubstr("note: batchnorm-eval-form: 'the_norm' (BatchNormalization): is in "
                                                "evaluation form; it will train with batch statistics"));
}

TEST(Lint, WarnsOfFoldedBatchNorm) {
  ModelBuilder model;
  model.input("x", {2, 3, 5, 5});
  model.floats("onnx::Conv_12", {4, 3, 3, 3});
  model.floats("onnx::Conv_13", {4});
  model.node("Conv", {"x", "onnx::Conv_12", "onnx::Conv_13"}, {"y"}, "conv");
  model.node("GlobalAveragePool", {"y"}, {"p"});
  model.node("Flatten", {"p"}, {"logits"});
  model.crossEntropy("logits", 2);
  EXPECT_THAT(Linted(model).report.toText(),
              HasSubstr("folded-batchnorm: 'conv' (Conv): looks like a convolution with its BatchNorm folded in"));
}

TEST(Lint, UnsupportedNodesStillGetTheRest) {
  ModelBuilder model;
  model.input("x", {4, 6});
  model.floats("val_3", {6, 6});
  model.node("Scan", {"x"}, {"s"}, "scan");
  model.node("MatMul", {"x", "val_3"}, {"logits"});
  model.crossEntropy("logits", 4);
  Linted linted(model);
  EXPECT_EQ(linted.status.code(), ExitCode::Unsupported);
  EXPECT_EQ(linted.report.count("unsupported-node"), 1u);
  EXPECT_EQ(linted.report.count("folded-parameter"), 1u);
}
