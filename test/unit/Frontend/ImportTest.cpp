// What an import decides and reports: parameters and states, the loss and its weight, bindings, BatchNorm, and every
// error text.
#include "lib/Frontend/ONNX/Import.h"
#include "test/unit/Frontend/ModelBuilder.h"

#include "dialects/Graph/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace plimsoll;
namespace frontend = plimsoll::onnx; // ::onnx is protobuf
using plimsoll::test::attribute;
using plimsoll::test::ModelBuilder;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {
struct Imported {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  frontend::ImportResult result;
  Status status;

  explicit Imported(const std::string &bytes, frontend::ImportOptions options = {}) {
    Result<frontend::Model> model = frontend::readModelBytes(std::as_bytes(std::span(bytes.data(), bytes.size())), ".");
    status = model ? frontend::importModel(context, *model, options, result) : model.status();
  }
  graph::VariableOp variable(const std::string &name) { return result.module->lookupSymbol<graph::VariableOp>(name); }
  mlir::func::FuncOp forward() { return result.module->lookupSymbol<mlir::func::FuncOp>("forward"); }
  template <typename Op> size_t count() {
    size_t total = 0;
    result.module->walk([&](Op) { ++total; });
    return total;
  }
};

/// x (4, 6) through Gemm with "w" and "b" to 3 classes and the loss.
ModelBuilder classifier(int64_t opset = 20) {
  ModelBuilder model(opset);
  model.input("x", {4, 6});
  model.floats("fc.weight", {3, 6});
  model.floats("fc.bias", {3});
  attribute(model.node("Gemm", {"x", "fc.weight", "fc.bias"}, {"logits"}), "transB", int64_t(1));
  model.crossEntropy("logits", 4);
  return model;
}

/// Conv, BatchNorm, mean over space, loss.
ModelBuilder batchNorm(std::initializer_list<int64_t> trainingModes, const std::string &producer = "pytorch") {
  ModelBuilder model(15, producer);
  model.input("x", {4, 3, 5, 5});
  std::string at = "x";
  int index = 0;
  for (int64_t mode : trainingModes) {
    std::string bn = "bn" + std::to_string(index++);
    for (const char *part : {".weight", ".bias", ".running_mean", ".running_var"})
      model.floats(bn + part, {3});
    auto &node = model.node("BatchNormalization",
                            {at, bn + ".weight", bn + ".bias", bn + ".running_mean", bn + ".running_var"}, {bn});
    if (mode >= 0)
      attribute(node, "training_mode", mode);
    at = bn;
  }
  model.node("GlobalAveragePool", {at}, {"pooled"});
  model.node("Flatten", {"pooled"}, {"logits"});
  model.crossEntropy("logits", 4);
  return model;
}
} // namespace

TEST(Import, GivesParametersLossAndWeight) {
  Imported imported(classifier().bytes());
  ASSERT_TRUE(imported.status) << imported.status.message();
  EXPECT_EQ(imported.variable("fc.weight").getKind(), graph::VariableKind::Parameter);
  EXPECT_TRUE(imported.variable("fc.bias").getTrainable());
  ASSERT_EQ(imported.forward().getNumResults(), 2u);
  EXPECT_EQ(imported.forward().getResultAttrOfType<mlir::StringAttr>(0, "graph.role").getValue(), "loss");
  EXPECT_EQ(imported.forward().getResultAttrOfType<mlir::StringAttr>(1, "graph.role").getValue(), "weight");
  EXPECT_EQ(imported.forward().getArgAttrOfType<mlir::StringAttr>(0, "graph.name").getValue(), "x");
  const frontend::WeightStore::Entry *weight = imported.result.weights.find("fc.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->bytes.size(), 3u * 6 * 4);
}

TEST(Import, IsDeterministic) {
  auto print = [] {
    Imported imported(classifier().bytes());
    std::string text;
    llvm::raw_string_ostream(text) << *imported.result.module;
    return text;
  };
  EXPECT_EQ(print(), print());
}

// Case 41: an old opset is named, with what is needed.
TEST(Import, OldOpsetSaysWhatIsNeeded) {
  Imported imported(classifier(10).bytes());
  EXPECT_EQ(imported.status.code(), ExitCode::BadInput);
  EXPECT_THAT(imported.status.message(), HasSubstr("the model has opset 10, opset >= 13 needed"));
  EXPECT_THAT(Imported(classifier(99).bytes()).status.message(), HasSubstr("the model has opset 99, expected at most"));
}

// Case 40: everything unsupported is listed in one report, exit 4.
TEST(Import, ListsEveryUnsupportedNode) {
  ModelBuilder model = classifier();
  model.node("If", {"x"}, {"a"}, "first_if");
  model.node("Relu", {"a"}, {"b"}, "after");
  model.node("Loop", {"x"}, {"c"}, "second_loop");
  model.node("MadeUp", {"x"}, {"d"}, "third").set_domain("com.example");
  model.output("b");
  Imported imported(model.bytes());
  EXPECT_EQ(imported.status.code(), ExitCode::Unsupported);
  EXPECT_EQ(imported.result.report.count("unsupported-node"), 3u);
  EXPECT_THAT(imported.status.message(), HasSubstr("'first_if' (If)"));
  EXPECT_THAT(imported.status.message(), HasSubstr("'second_loop' (Loop)"));
  EXPECT_THAT(imported.status.message(), HasSubstr("'third' (com.example.MadeUp)"));
  EXPECT_THAT(imported.status.message(), Not(HasSubstr("'after'")));
  EXPECT_THAT(imported.result.report.toJson(), HasSubstr("\"exit_code\": 4"));
  EXPECT_FALSE(imported.result.module);
}

// Case 40: LayerNormalization with only Y, and Resize, train.
TEST(Import, LayerNormWithOneOutputAndResizeTrain) {
  ModelBuilder model;
  model.input("x", {2, 3, 4, 4});
  model.floats("ln.weight", {4});
  model.floats("fc.weight", {192, 5});
  model.floats("scales", {4}, 1.0f).set_raw_data(std::string("\0\0\x80\x3f\0\0\x80\x3f\0\0\0\x40\0\0\0\x40", 16));
  model.node("LayerNormalization", {"x", "ln.weight"}, {"n"});
  attribute(model.node("Resize", {"n", "", "scales"}, {"up"}), "mode", std::string("linear"));
  model.node("Flatten", {"up"}, {"flat"});
  model.node("MatMul", {"flat", "fc.weight"}, {"logits"});
  model.crossEntropy("logits", 2);
  Imported imported(model.bytes());
  ASSERT_TRUE(imported.status) << imported.status.message();
  EXPECT_TRUE(imported.variable("ln.weight").getTrainable());
  EXPECT_FALSE(imported.variable("scales"));
}

// Case 42: integer initializers and statistics are no parameters.
TEST(Import, StatisticsAndIntegersAreNotParameters) {
  ModelBuilder model = batchNorm({-1});
  model.ints("bn0.num_batches_tracked", {0}, true);
  Imported imported(model.bytes());
  ASSERT_TRUE(imported.status) << imported.status.message();
  EXPECT_EQ(imported.variable("bn0.running_mean").getKind(), graph::VariableKind::ModelState);
  EXPECT_FALSE(imported.variable("bn0.running_mean").getTrainable());
  EXPECT_EQ(imported.variable("bn0.weight").getKind(), graph::VariableKind::Parameter);
  EXPECT_FALSE(imported.variable("bn0.num_batches_tracked"));
}

// Case 43: with one node in training mode and one not, only the first moves its statistics.
TEST(Import, OnlyTrainingBatchNormMovesStatistics) {
  Imported imported(batchNorm({1, 0}).bytes());
  ASSERT_TRUE(imported.status) << imported.status.message();
  EXPECT_EQ(imported.count<graph::BatchNormOp>(), 1u);
  std::vector<std::string> written;
  imported.result.module->walk([&](graph::WriteOp op) { written.push_back(op.getVariable().str()); });
  EXPECT_THAT(written, ::testing::ElementsAre("bn0.running_mean", "bn0.running_var"));
}

TEST(Import, PlainBatchNormTrainsUnlessFrozen) {
  EXPECT_EQ(Imported(batchNorm({-1}).bytes()).count<graph::WriteOp>(), 2u);
  frontend::ImportOptions frozen;
  frozen.trainBatchNorm = false;
  Imported imported(batchNorm({-1}).bytes(), frozen);
  EXPECT_EQ(imported.count<graph::WriteOp>(), 0u);
  EXPECT_EQ(imported.count<graph::BatchNormOp>(), 0u);
}

// PyTorch's running variance divides by N-1, ONNX's training_mode by N: 100 values a channel, so the factor is 100/99.
TEST(Import, RunningVarianceFollowsTheProducer) {
  auto factors = [](ModelBuilder model) {
    Imported imported(model.bytes());
    size_t found = 0;
    imported.result.module->walk([&](graph::ConstantOp op) {
      auto elements = mlir::dyn_cast<mlir::DenseElementsAttr>(op.getValue());
      if (elements && elements.isSplat() && mlir::isa<mlir::FloatType>(elements.getElementType()))
        found += std::abs(elements.getSplatValue<llvm::APFloat>().convertToDouble() - 100.0 / 99.0) < 1e-6;
    });
    return found;
  };
  EXPECT_EQ(factors(batchNorm({-1})), 1u);
  EXPECT_EQ(factors(batchNorm({1})), 0u);
  EXPECT_EQ(factors(batchNorm({-1}, "other")), 0u);
}

TEST(Import, MissingStatisticsAreExplained) {
  ModelBuilder model(15);
  model.input("x", {4, 3, 5, 5}).input("m", {3}).input("v", {3});
  model.floats("bn.weight", {3});
  model.floats("bn.bias", {3});
  model.node("BatchNormalization", {"x", "bn.weight", "bn.bias", "m", "v"}, {"y"}, "the_norm");
  model.node("GlobalAveragePool", {"y"}, {"p"});
  model.node("Flatten", {"p"}, {"logits"});
  model.crossEntropy("logits", 4);
  Imported imported(model.bytes());
  EXPECT_EQ(imported.status.code(), ExitCode::Unsupported);
  EXPECT_THAT(imported.status.message(),
              HasSubstr("'the_norm' (BatchNormalization): its running statistics are not initializers"));
}

// Case 48: a tied head is one variable; a matrix that nothing needs is reported and not trained.
TEST(Import, TiedIsOneAndDeadIsNotTrained) {
  ModelBuilder model;
  model.input("ids", {2, 3}, ::onnx::TensorProto::INT64);
  model.floats("wte.weight", {7, 5});
  model.floats("unused.weight", {5, 5});
  model.node("Gather", {"wte.weight", "ids"}, {"h"});
  attribute(model.node("Transpose", {"wte.weight"}, {"wt"}), "perm", std::vector<int64_t>{1, 0});
  model.node("MatMul", {"h", "wt"}, {"l3"});
  model.ints("shape", {6, 7});
  model.node("Reshape", {"l3", "shape"}, {"logits"});
  model.crossEntropy("logits", 6);
  Imported imported(model.bytes());
  ASSERT_TRUE(imported.status) << imported.status.message();
  size_t reads = 0;
  imported.result.module->walk([&](graph::ReadOp op) { reads += op.getVariable() == "wte.weight"; });
  EXPECT_EQ(reads, 1u);
  EXPECT_FALSE(imported.variable("unused.weight").getTrainable());
  EXPECT_EQ(imported.result.report.count("dead-parameter"), 1u);
  EXPECT_THAT(imported.result.report.toText(),
              HasSubstr("warning: dead-parameter: 'unused.weight': no node reads it on the way to the loss"));
}

TEST(Import, FreezesByPattern) {
  frontend::ImportOptions options;
  options.freeze = {"fc.w*"};
  Imported imported(classifier().bytes(), options);
  EXPECT_FALSE(imported.variable("fc.weight").getTrainable());
  EXPECT_TRUE(imported.variable("fc.bias").getTrainable());
  EXPECT_EQ(imported.result.report.count("frozen-parameter"), 1u);
}

TEST(Import, ListsEveryUnboundDim) {
  ModelBuilder model;
  model.input("x", {-1, -1});
  model.node("ReduceMean", {"x"}, {"loss"});
  model.output("loss");
  Imported unbound(model.bytes());
  EXPECT_EQ(unbound.status.code(), ExitCode::BadInput);
  EXPECT_THAT(unbound.status.message(), HasSubstr("'d0': dimension 0 of input 'x' has no size; add --bind d0=SIZE"));
  EXPECT_THAT(unbound.status.message(), HasSubstr("'d1': dimension 1 of input 'x' has no size"));
  frontend::ImportOptions options;
  options.bindings = {{"d0", 4}, {"x.1", 3}};
  Imported bound(model.bytes(), options);
  ASSERT_TRUE(bound.status) << bound.status.message();
  EXPECT_EQ(mlir::cast<mlir::RankedTensorType>(bound.forward().getArgumentTypes()[0]).getShape(),
            (llvm::ArrayRef<int64_t>{4, 3}));
  options.bindings["other"] = 2;
  EXPECT_THAT(Imported(model.bytes(), options).status.message(),
              HasSubstr("'other': names no dimension of the model's inputs"));
  frontend::ImportOptions wrong;
  wrong.bindings = {{"x.0", 5}};
  EXPECT_THAT(Imported(classifier().bytes(), wrong).status.message(), HasSubstr("'x.0': is fixed to 4 but bound to 5"));
  options.bindings = {{"d0", -4}, {"d1", int64_t(1) << 60}};
  EXPECT_THAT(Imported(model.bytes(), options).status.message(), HasSubstr("has an empty or impossibly large shape"));
}

TEST(Import, AddsLosses) {
  ModelBuilder model;
  model.input("x", {4, 6});
  model.floats("fc.weight", {6, 3});
  model.node("MatMul", {"x", "fc.weight"}, {"logits"});
  model.output("logits");
  EXPECT_THAT(Imported(model.bytes()).status.message(),
              HasSubstr("the model has no scalar float output to be the loss (outputs: logits)"));
  frontend::ImportOptions options;
  options.loss = "cross_entropy";
  Imported classes(model.bytes(), options);
  ASSERT_TRUE(classes.status) << classes.status.message();
  EXPECT_EQ(classes.forward().getArgAttrOfType<mlir::StringAttr>(1, "graph.name").getValue(), "labels");
  EXPECT_EQ(classes.forward().getNumResults(), 3u);
  options.loss = "mse";
  Imported squares(model.bytes(), options);
  EXPECT_EQ(squares.forward().getArgAttrOfType<mlir::StringAttr>(1, "graph.name").getValue(), "target");
  options.loss = "hinge";
  EXPECT_THAT(Imported(model.bytes(), options).status.message(),
              HasSubstr("loss 'hinge' cannot be added on this output"));
}

TEST(Import, DropoutReadsOneSeed) {
  ModelBuilder model;
  model.input("x", {4, 6});
  model.floats("ratio", {}, 0.25f);
  auto *flag = model.proto.mutable_graph()->add_initializer();
  flag->set_name("train");
  flag->set_data_type(::onnx::TensorProto::BOOL);
  flag->add_int32_data(1);
  model.node("Dropout", {"x", "ratio", "train"}, {"a"});
  model.node("Dropout", {"a", "ratio", "train"}, {"b"});
  model.node("ReduceMean", {"b"}, {"loss"});
  model.output("loss");
  Imported imported(model.bytes());
  ASSERT_TRUE(imported.status) << imported.status.message();
  EXPECT_EQ(imported.variable("seed").getKind(), graph::VariableKind::StepState);
  std::vector<uint64_t> numbers;
  imported.result.module->walk([&](graph::DropoutOp op) { numbers.push_back(op.getOpId()); });
  EXPECT_THAT(numbers, ::testing::ElementsAre(1, 2));
}

TEST(Import, DamagedFilesAreNamed) {
  std::string good = classifier().bytes();
  auto message = [](const std::string &bytes) {
    Imported imported(bytes);
    EXPECT_EQ(imported.status.code(), ExitCode::BadInput);
    return imported.status.message();
  };
  EXPECT_THAT(message(good.substr(0, good.size() / 2)), HasSubstr("not an ONNX model"));
  EXPECT_THAT(message("hello"), HasSubstr("not an ONNX model"));
  EXPECT_THAT(message(""), HasSubstr("not an ONNX model"));
  ModelBuilder cyclic = classifier();
  cyclic.node("Relu", {"q"}, {"p"}, "early");
  cyclic.node("Relu", {"p"}, {"q"});
  EXPECT_THAT(message(cyclic.bytes()),
              HasSubstr("node 'early' (Relu) reads 'q' before it is produced: the graph has a cycle or is not sorted"));
  ModelBuilder missing = classifier();
  missing.node("Relu", {"nowhere"}, {"p"});
  EXPECT_THAT(message(missing.bytes()), HasSubstr("reads 'nowhere', which no input, initializer or node produces"));
  ModelBuilder twice = classifier();
  twice.node("Relu", {"x"}, {"logits"}, "again");
  EXPECT_THAT(message(twice.bytes()), HasSubstr("value 'logits' is produced twice (again by node 'again')"));
  ModelBuilder doubled = classifier();
  doubled.floats("fc.bias", {3});
  EXPECT_THAT(message(doubled.bytes()), HasSubstr("initializer 'fc.bias' appears twice"));
  ModelBuilder absent = classifier();
  absent.output("ghost");
  EXPECT_THAT(message(absent.bytes()), HasSubstr("graph output 'ghost' is not produced by any node"));
}

TEST(Import, LyingTensorsAreNamed) {
  auto message = [](auto change) {
    ModelBuilder model = classifier();
    change(*model.proto.mutable_graph()->mutable_initializer(0));
    return Imported(model.bytes()).status.message();
  };
  EXPECT_THAT(message([](auto &tensor) { tensor.mutable_raw_data()->resize(8); }),
              HasSubstr("tensor 'fc.weight' holds 8 bytes but its type and dims need 72"));
  EXPECT_THAT(message([](auto &tensor) { tensor.set_dims(0, -3); }),
              HasSubstr("tensor 'fc.weight' has a negative or impossibly large dimension"));
  EXPECT_THAT(message([](auto &tensor) { tensor.set_dims(0, int64_t(1) << 62); }),
              HasSubstr("negative or impossibly large"));
  EXPECT_THAT(message([](auto &tensor) { tensor.set_data_type(23); }), HasSubstr("has element type type 23"));
  EXPECT_THAT(message([](auto &tensor) {
                tensor.set_dims(1, 7);
                tensor.mutable_raw_data()->resize(84);
              }),
              HasSubstr("'node_logits' (Gemm): expected two float matrices whose inner sizes agree"));
}

TEST(Import, WrongNodesAreNamedWithTheirShapes) {
  ModelBuilder model = classifier();
  attribute(model.node("Concat", {"x", "logits"}, {"joined"}, "join"), "axis", int64_t(0));
  Imported imported(model.bytes());
  EXPECT_EQ(imported.status.code(), ExitCode::BadInput);
  EXPECT_THAT(
      imported.status.message(),
      HasSubstr(
          "'join' (Concat): expected inputs that agree in all dimensions but the axis (inputs: f32[4,6], f32[4,3])"));
}

TEST(Glob, MatchesLikeAShell) {
  EXPECT_TRUE(frontend::matchesGlob("transformer.wte.*", "transformer.wte.weight"));
  EXPECT_TRUE(frontend::matchesGlob("*.bias", "a.b.bias"));
  EXPECT_TRUE(frontend::matchesGlob("h.?.w", "h.3.w"));
  EXPECT_FALSE(frontend::matchesGlob("h.?.w", "h.12.w"));
  EXPECT_FALSE(frontend::matchesGlob("a*b", "abc"));
}
