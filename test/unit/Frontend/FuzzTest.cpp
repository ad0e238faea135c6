// Bounded, deterministic damage to real models: whatever a changed byte does, the importer answers with a status. The
// work per model is fixed, so the test's time is too; sanitizer builds run it as well.
#include "lib/Frontend/ONNX/Import.h"
#include "test/unit/Frontend/ModelBuilder.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <random>

using namespace plimsoll;
namespace frontend = plimsoll::onnx; // ::onnx is protobuf

namespace {
/// Imports and returns the exit code; a crash or a hang fails the test by itself.
ExitCode importBytes(const std::string &bytes) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  Result<frontend::Model> model =
      frontend::readModelBytes(std::as_bytes(std::span(bytes.data(), bytes.size())), "/nonexistent");
  if (!model)
    return model.status().code();
  frontend::ImportResult result;
  return frontend::importModel(context, *model, {}, result).code();
}

void expectDocumented(ExitCode code) {
  EXPECT_TRUE(code == ExitCode::Ok || code == ExitCode::BadInput || code == ExitCode::Unsupported)
      << static_cast<int>(code);
}

class FuzzTest : public ::testing::TestWithParam<const char *> {};
} // namespace

TEST_P(FuzzTest, ChangedBytesAreAnswered) {
  std::string original = test::readFile(std::string(PLIMSOLL_SOURCE_DIR "/test/oracles/") + GetParam() + ".onnx");
  ASSERT_FALSE(original.empty());
  ASSERT_EQ(importBytes(original), ExitCode::Ok);
  std::mt19937_64 random(20261201);
  size_t refused = 0;
  for (int round = 0; round < 400; ++round) {
    std::string bytes = original;
    for (int i = 0; i < 1 + round % 4; ++i)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    ExitCode code = importBytes(bytes);
    expectDocumented(code);
    refused += code != ExitCode::Ok;
  }
  EXPECT_GT(refused, 0u);
}

TEST_P(FuzzTest, CutFilesAreRefused) {
  std::string original = test::readFile(std::string(PLIMSOLL_SOURCE_DIR "/test/oracles/") + GetParam() + ".onnx");
  std::mt19937_64 random(7);
  for (int round = 0; round < 100; ++round)
    expectDocumented(importBytes(original.substr(0, random() % original.size())));
}

// Structural damage that random bytes rarely reach: every attribute and every integer initializer takes extreme values.
TEST_P(FuzzTest, ExtremeNumbersAreAnswered) {
  ::onnx::ModelProto model;
  ASSERT_TRUE(
      model.ParseFromString(test::readFile(std::string(PLIMSOLL_SOURCE_DIR "/test/oracles/") + GetParam() + ".onnx")));
  const int64_t extremes[] = {0, -1, 7, INT64_MAX, INT64_MIN, int64_t(1) << 40, INT32_MIN};
  for (int n = 0; n < model.graph().node_size(); ++n)
    for (int a = 0; a < model.graph().node(n).attribute_size(); ++a)
      for (int64_t extreme : extremes) {
        ::onnx::ModelProto changed = model;
        auto *attribute = changed.mutable_graph()->mutable_node(n)->mutable_attribute(a);
        attribute->set_i(extreme);
        attribute->set_f(static_cast<float>(extreme));
        for (int64_t &value : *attribute->mutable_ints())
          value = extreme;
        if (attribute->has_t() && attribute->t().data_type() == ::onnx::TensorProto::INT64 &&
            attribute->t().has_raw_data())
          for (size_t at = 0; at + 8 <= attribute->t().raw_data().size(); at += 8)
            attribute->mutable_t()->mutable_raw_data()->replace(
                at, 8, std::string(reinterpret_cast<const char *>(&extreme), 8));
        expectDocumented(importBytes(changed.SerializeAsString()));
      }
}

// Wiring damage: every node input is replaced by every kind of other value.
TEST_P(FuzzTest, SwappedInputsAreAnswered) {
  ::onnx::ModelProto model;
  ASSERT_TRUE(
      model.ParseFromString(test::readFile(std::string(PLIMSOLL_SOURCE_DIR "/test/oracles/") + GetParam() + ".onnx")));
  std::vector<std::string> names{""};
  for (const auto &input : model.graph().input())
    names.push_back(input.name());
  for (int i = 0; i < model.graph().initializer_size() && i < 4; ++i)
    names.push_back(model.graph().initializer(i).name());
  for (int n = 0; n < model.graph().node_size(); ++n)
    for (int i = 0; i < model.graph().node(n).input_size(); ++i)
      for (const std::string &name : names) {
        ::onnx::ModelProto changed = model;
        changed.mutable_graph()->mutable_node(n)->set_input(i, name);
        expectDocumented(importBytes(changed.SerializeAsString()));
      }
}

INSTANTIATE_TEST_SUITE_P(Oracles, FuzzTest, ::testing::Values("mlp", "cnn", "resmlp"));
