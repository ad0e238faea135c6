// Real exports against PyTorch: the loss of step 0, forwards only, before and after pattern recognition.
#include "lib/Passes/Passes.h"
#include "test/unit/Frontend/EvaluateModel.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace plimsoll;

namespace {
class OracleTest : public ::testing::TestWithParam<std::tuple<const char *, bool>> {};

double recordedLoss(const std::string &path) {
  auto text = llvm::MemoryBuffer::getFile(path);
  auto json = text ? llvm::json::parse((*text)->getBuffer()) : llvm::json::parse("{}");
  if (!json || !json->getAsObject()->getObject("sgd"))
    return -1;
  return *(*json->getAsObject()->getObject("sgd")->getArray("loss"))[0].getAsNumber();
}
} // namespace

TEST_P(OracleTest, FirstLossIsPyTorchs) {
  auto [name, recognize] = GetParam();
  std::string base = std::string(PLIMSOLL_SOURCE_DIR "/test/oracles/") + name;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  onnx::ImportOptions options;
  options.modelPath = base + ".onnx";
  onnx::ImportResult imported;
  Status status = onnx::importModel(context, options, imported);
  ASSERT_TRUE(status) << status.message();
  if (recognize) {
    PassManager manager(&context);
    manager.addPass(createPlimsollRecognize());
    ASSERT_TRUE(succeeded(manager.run(*imported.module)));
  }
  Result<runtime::SafeTensors> batches = runtime::SafeTensors::open(base + ".safetensors");
  ASSERT_TRUE(batches) << batches.status().message();
  func::FuncOp forward = test::forwardOf(imported);
  auto arguments = test::argumentsOf(forward, *batches, "batch0.");
  ASSERT_TRUE(arguments) << arguments.status().message();
  reference::VariableState state = test::stateOf(imported);
  auto results = reference::evaluate(forward, *arguments, state);
  ASSERT_TRUE(succeeded(results));
  double expected = recordedLoss(base + ".json");
  bool found = false;
  for (auto [i, result] : llvm::enumerate(*results))
    if (test::resultName(forward, static_cast<unsigned>(i), "graph.role") == "loss") {
      EXPECT_NEAR(result.floats[0], expected, 2e-5 * expected);
      found = true;
    }
  EXPECT_TRUE(found);
}

INSTANTIATE_TEST_SUITE_P(Oracles, OracleTest,
                         ::testing::Combine(::testing::Values("mlp", "cnn", "resmlp"), ::testing::Bool()));
