// Initial values: the weights file and its checks, and fills in every dtype.
#include "runtime/Core/Initialize.h"
#include "runtime/Artifact/Hash.h"
#include "runtime/Artifact/Types.h"
#include "runtime/Core/SafeTensors.h"
#include "test/unit/Runtime/FakeBackend.h"
#include "test/unit/Runtime/TinyArtifact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <unistd.h>

using namespace plimsoll;
using namespace plimsoll::runtime;
using namespace plimsoll::test;
using artifact::DType;
using testing::HasSubstr;

namespace {

/// Variables in plain memory instead of arenas.
class InitializeTest : public testing::Test {
protected:
  InitializeTest() : storage(4, std::vector<std::byte>(16, std::byte{0xee})) {}
  Status initialize(const std::string &weightsPath = "") {
    SessionSource source{folder.path("tiny.plim"), {}};
    source.options.weightsPath = weightsPath;
    return initializeVariables(artifact, source, [this](size_t i) { return std::span(storage[i]); });
  }
  void write(const std::string &name, DType dtype, std::vector<int64_t> shape, const std::string &file) {
    std::vector<std::byte> bytes(*artifact::byteCount(dtype, shape), std::byte{0x11});
    NamedTensor tensor{name, dtype, std::move(shape), bytes};
    ASSERT_TRUE(writeSafeTensors(folder.path(file), std::span(&tensor, 1)));
  }
  bool untouched() const {
    for (const auto &bytes : storage)
      for (std::byte byte : bytes)
        if (byte != std::byte{0xee})
          return false;
    return true;
  }

  TemporaryFolder folder;
  artifact::ArtifactT artifact = tinyArtifact();
  std::vector<std::vector<std::byte>> storage;
};

template <typename T> T filled(DType dtype, double value) {
  T result{};
  EXPECT_TRUE(fillElements(dtype, value, std::as_writable_bytes(std::span(&result, 1))));
  return result;
}

} // namespace

TEST_F(InitializeTest, fillsEveryVariable) {
  write("layer.w", DType::F32, {4}, "tiny.safetensors");
  artifact.provenance->weights_hash = *hashFile(folder.path("tiny.safetensors"));
  artifact.weights_bytes = slurp(folder.path("tiny.safetensors")).size();
  Status status = initialize();
  ASSERT_TRUE(status) << status.message();
  EXPECT_EQ(storage[0], std::vector<std::byte>(16, std::byte{0x11}));
  EXPECT_EQ(storage[1], std::vector<std::byte>(16, std::byte{0}));
  int64_t seed[2];
  memcpy(seed, storage[2].data(), 16);
  EXPECT_EQ(seed[1], 7);
  float two[4];
  memcpy(two, storage[3].data(), 16);
  EXPECT_EQ(two[3], 2.0f);
}

TEST_F(InitializeTest, wrongWeightsChangeNothing) {
  Status missing = initialize();
  EXPECT_EQ(missing.code(), ExitCode::BadInput);
  EXPECT_THAT(missing.message(), HasSubstr("tiny.safetensors': No such file"));
  write("layer.v", DType::F32, {4}, "tiny.safetensors");
  EXPECT_THAT(initialize().message(), HasSubstr("do not fit the artifact: 'layer.w' is missing"));
  write("layer.w", DType::F32, {2, 2}, "tiny.safetensors");
  EXPECT_THAT(initialize().message(), HasSubstr("'layer.w' is f32[2,2], expected f32[4]"));
  write("layer.w", DType::I32, {4}, "tiny.safetensors");
  EXPECT_THAT(initialize().message(), HasSubstr("'layer.w' is i32[4], expected f32[4]"));
  EXPECT_TRUE(untouched());
}

TEST_F(InitializeTest, allMissingTensorsAreListedAtOnce) {
  for (const char *key : {"b", "c"}) {
    artifact.variables[1]->init = artifact.variables[3]->init = artifact::InitKind::File;
    (key[0] == 'b' ? artifact.variables[1] : artifact.variables[3])->init_key = key;
  }
  write("other", DType::F32, {4}, "tiny.safetensors");
  EXPECT_THAT(initialize().message(), HasSubstr("'layer.w' is missing; 'b' is missing; 'c' is missing"));
}

TEST_F(InitializeTest, theFileOfTheCompilationIsAskedFor) {
  write("layer.w", DType::F32, {4}, "tiny.safetensors");
  artifact.weights_bytes = 1000000;
  EXPECT_THAT(initialize().message(), HasSubstr("bytes, expected 1,000,000; put the file of the compilation beside"));
  artifact.weights_bytes = 0;
  artifact.provenance->weights_hash = "0123456789abcdef";
  EXPECT_THAT(initialize().message(), HasSubstr(", expected '0123456789abcdef'; put the file of the compilation"));
  EXPECT_TRUE(untouched());
  EXPECT_TRUE(initialize(folder.path("tiny.safetensors"))) << "a file the user names may be another one";
}

TEST_F(InitializeTest, aLinkedWeightsFileIsRefusedUnlessNamedByTheUser) {
  write("layer.w", DType::F32, {4}, "elsewhere.safetensors");
  ASSERT_EQ(symlink(folder.path("elsewhere.safetensors").c_str(), folder.path("tiny.safetensors").c_str()), 0);
  EXPECT_THAT(initialize().message(), HasSubstr("is a symbolic link"));
  EXPECT_TRUE(initialize(folder.path("tiny.safetensors")));
}

TEST_F(InitializeTest, aFillThatDoesNotFitIsNamedBeforeAnythingIsWritten) {
  artifact.variables[2]->dtype = DType::U8;
  artifact.variables[2]->fill = 256;
  EXPECT_THAT(initialize().message(), HasSubstr("variable 'seed': the value 256.000000 does not fit u8"));
  EXPECT_TRUE(untouched());
}

// Expected bits are worked out from the formats: bf16 keeps 8 significant bits, half 11.
TEST(FillElements, roundsToNearestEven) {
  EXPECT_EQ(filled<uint16_t>(DType::BF16, 1.0), 0x3f80);
  EXPECT_EQ(filled<uint16_t>(DType::BF16, 1.0 + 1.0 / 256), 0x3f80);         // tie to even
  EXPECT_EQ(filled<uint16_t>(DType::BF16, 1.0 + 3.0 / 256), 0x3f82);         // tie to even
  EXPECT_EQ(filled<uint16_t>(DType::BF16, 1.0 + 1.0 / 256 + 1e-12), 0x3f81); // just above the tie, lost in float
  EXPECT_EQ(filled<uint16_t>(DType::BF16, -1.0 - 1.0 / 256 - 1e-12), 0xbf81);
  EXPECT_EQ(filled<uint16_t>(DType::BF16, INFINITY), 0x7f80);
  EXPECT_EQ(filled<uint16_t>(DType::F16, 1.0), 0x3c00);
  EXPECT_EQ(filled<uint16_t>(DType::F16, 65504.0), 0x7bff);
  EXPECT_EQ(filled<uint16_t>(DType::F16, 65519.999), 0x7bff);
  EXPECT_EQ(filled<uint16_t>(DType::F16, 65520.0), 0x7c00);
  EXPECT_EQ(filled<uint16_t>(DType::F16, 1.0 + 1.0 / 2048), 0x3c00);
  EXPECT_EQ(filled<uint16_t>(DType::F16, 2.0 - 1.0 / 2048), 0x4000); // carries into the exponent
  EXPECT_EQ(filled<uint16_t>(DType::F16, std::ldexp(1.0, -24)), 0x0001);
  EXPECT_EQ(filled<uint16_t>(DType::F16, std::ldexp(1.0, -25)), 0x0000);
  EXPECT_EQ(filled<uint16_t>(DType::F16, std::ldexp(1023.75, -24)),
            0x0400); // largest subnormal rounds to the least normal
  EXPECT_EQ(filled<uint16_t>(DType::F16, -0.0), 0x8000);
}

TEST(FillElements, integersMustFit) {
  EXPECT_EQ(filled<int8_t>(DType::I8, -128), -128);
  EXPECT_EQ(filled<int64_t>(DType::I64, -9223372036854775808.0), INT64_MIN);
  EXPECT_EQ(filled<uint8_t>(DType::Bool, 3), 1);
  for (double value : {128.0, -129.0, 0.5, double(NAN), double(INFINITY)})
    EXPECT_THAT(fillElements(DType::I8, value, {}).message(), HasSubstr("does not fit i8")) << value;
  EXPECT_FALSE(fillElements(DType::I64, 9223372036854775808.0, {}));
}
