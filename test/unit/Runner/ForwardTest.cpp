// forward, generate, vocabularies and tensor files on a fake session.
#include "tools/plimsoll-run/Forward.h"
#include "FakeSession.h"
#include "TestSupport.h"
#include "runtime/Core/SafeTensors.h"
#include "tools/plimsoll-run/Generate.h"
#include "tools/plimsoll-run/TensorFiles.h"
#include "tools/plimsoll-run/Vocabulary.h"

#include <cmath>
#include <limits>

using namespace plimsoll;
using namespace plimsoll::runtime;
using artifact::DType;

namespace {

class ForwardTest : public testing::Test {
protected:
  TempFolder folder;
  FakeSession session;
  std::vector<std::string> written;

  void SetUp() override { ASSERT_OK(session.initialize()); }
  ForwardOptions options(const std::string &output) {
    ForwardOptions forwardOptions;
    forwardOptions.data = *parseDataSpecs({"ids=constant(2)"});
    forwardOptions.output = folder.path(output);
    return forwardOptions;
  }
  Result<std::vector<int64_t>> generated(GenerateOptions generateOptions) {
    std::vector<int64_t> tokens;
    Status status = generate(session, generateOptions, [&](int64_t token) { tokens.push_back(token); });
    if (!status)
      return status;
    return tokens;
  }
};

TEST_F(ForwardTest, outputsGoToSafetensors) {
  ForwardOptions forwardOptions = options("o.safetensors");
  forwardOptions.batches = 2;
  ASSERT_OK(forward(session, forwardOptions, written));
  EXPECT_EQ(written, (std::vector<std::string>{"logits.batch0", "logits.batch1"}));
  auto file = SafeTensors::open(folder.path("o.safetensors"));
  ASSERT_OK(file);
  ASSERT_TRUE(file->find("logits.batch1"));
  EXPECT_EQ(file->find("logits.batch1")->shape, (std::vector<int64_t>{2, 3, 5}));
}

TEST_F(ForwardTest, oneOutputGoesToNpy) {
  ASSERT_OK(forward(session, options("o.npy"), written));
  std::string bytes = folder.read("o.npy");
  EXPECT_EQ(bytes.size(), 128u + 2 * 3 * 5 * 4);
  EXPECT_THAT(bytes, testing::HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (2,3,5,), }"));
}

TEST_F(ForwardTest, mistakesAreExplained) {
  ForwardOptions forwardOptions = options("o.npy");
  forwardOptions.batches = 2;
  EXPECT_FAILS(forward(session, forwardOptions, written), ExitCode::Usage, ".npy holds one tensor, this is 2");
  forwardOptions.port = "probs";
  EXPECT_FAILS(forward(session, forwardOptions, written), ExitCode::Usage,
               "entry forward has no output probs; its outputs are: logits");
  forwardOptions.entry = "other";
  EXPECT_FAILS(forward(session, forwardOptions, written), ExitCode::BadInput, "has no entry other");
  EXPECT_FAILS(writeTensors(folder.path("b.npy"), {{"x", DType::BF16, {1}, std::vector<std::byte>(2)}}),
               ExitCode::Usage, ".npy has no type bf16");
  EXPECT_FAILS(writeTensors(folder.path("no/b.npy"), {{"x", DType::F32, {1}, std::vector<std::byte>(4)}}),
               ExitCode::BadInput, "b.npy");
}

TEST_F(ForwardTest, npyDataStartsAligned) {
  for (auto shape : {std::vector<int64_t>{}, {3}, {1000, 1000, 1000, 1000, 1000}}) {
    std::string header = npyHeader(DType::I64, shape);
    EXPECT_EQ(header.size() % 64, 0u);
    EXPECT_EQ(header.back(), '\n');
  }
}

// The fake's likeliest token after t is (t + 1) mod 5; the window is three tokens long.
TEST_F(ForwardTest, greedyTextFollowsTheModel) {
  GenerateOptions generateOptions;
  generateOptions.prompt = {3};
  generateOptions.tokens = 7;
  generateOptions.temperature = 0;
  auto tokens = generated(generateOptions);
  ASSERT_OK(tokens);
  EXPECT_EQ(*tokens, (std::vector<int64_t>{4, 0, 1, 2, 3, 4, 0}));
}

TEST_F(ForwardTest, samplingDependsOnlyOnTheSeed) {
  GenerateOptions generateOptions;
  generateOptions.prompt = {0};
  generateOptions.tokens = 50;
  generateOptions.temperature = 5;
  auto one = generated(generateOptions), two = generated(generateOptions);
  generateOptions.seed = 1;
  auto three = generated(generateOptions);
  ASSERT_OK(one);
  EXPECT_EQ(*one, *two);
  EXPECT_NE(*one, *three);
}

TEST_F(ForwardTest, promptsAreChecked) {
  GenerateOptions generateOptions;
  EXPECT_FAILS(generated(generateOptions), ExitCode::Usage, "the prompt is empty");
  generateOptions.prompt = {5};
  EXPECT_FAILS(generated(generateOptions), ExitCode::Usage, "prompt token 5 is outside the vocabulary of 5");
  generateOptions.idsPort = "tokens";
  EXPECT_FAILS(generated(generateOptions), ExitCode::BadInput, "no integer input [B, S] called tokens");
  generateOptions.idsPort.clear();
  generateOptions.logitsPort = "scores";
  EXPECT_FAILS(generated(generateOptions), ExitCode::BadInput, "no float output [B, S, V] called scores");
}

TEST_F(ForwardTest, unusableLogitsStop) {
  GenerateOptions generateOptions;
  generateOptions.prompt = {0};
  auto *w = reinterpret_cast<float *>(session.variable(0).data());
  w[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FAILS(generated(generateOptions), ExitCode::NumericStop, "logit 1 of position 0 is nan");
}

TEST(SampleToken, frequenciesFollowTheSoftmax) {
  std::vector<double> logits = {std::log(1.0), std::log(2.0), std::log(7.0)};
  std::vector<int> counts(3);
  for (int i = 0; i < 10000; ++i)
    ++counts[sampleToken(logits, 1.0, 0, (i + 0.5) / 10000)];
  EXPECT_EQ(counts, (std::vector<int>{1000, 2000, 7000}));
}

TEST(SampleToken, topKAndTemperature) {
  std::vector<double> logits = {1, 3, 2, 3};
  EXPECT_EQ(sampleToken(logits, 0, 0, 0.99), 1u); // ties go to the lower index
  for (int i = 0; i < 100; ++i) {
    size_t token = sampleToken(logits, 1.0, 2, i / 100.0);
    EXPECT_TRUE(token == 1 || token == 3);
  }
  EXPECT_EQ(sampleToken({0, -std::numeric_limits<double>::infinity()}, 1.0, 0, 0.999999), 0u);
}

TEST_F(ForwardTest, vocabulariesEncodeAndDecode) {
  auto list = Vocabulary::read(folder.write("v.json", R"(["a", "b", "ab", "é"])"));
  ASSERT_OK(list);
  EXPECT_EQ(*list->encode("abaé"), (std::vector<int64_t>{2, 0, 3}));
  EXPECT_EQ(list->decode(3), "é");
  EXPECT_EQ(list->decode(9), "<9>");
  EXPECT_FAILS(list->encode("abc"), ExitCode::Usage, "text at byte 2 that no token");
  auto object = Vocabulary::read(folder.write("o.json", R"({"x": 5, "\n": 0})"));
  ASSERT_OK(object);
  EXPECT_EQ(*object->encode("\nx"), (std::vector<int64_t>{0, 5}));
}

TEST_F(ForwardTest, damagedVocabulariesAreRefused) {
  auto refused = [&](const std::string &text, const std::string &message) {
    EXPECT_FAILS(Vocabulary::read(folder.write("v.json", text)), ExitCode::BadInput, message);
  };
  refused("[", "is not a vocabulary");
  refused("3", "is not a vocabulary");
  refused("[]", "is not a vocabulary");
  refused("[1]", "entry 0 is not a token");
  refused(R"({"a": "b"})", "entry a is not a token");
  refused(R"({"a": -1})", "number outside [0, 16777216]");
  refused(R"({"a": 1, "b": 1})", "token 1 is there twice");
  refused(R"(["a", "a"])", "token 1 is there twice");
  refused(R"([""])", "empty text");
  EXPECT_FAILS(Vocabulary::read(folder.path("none")), ExitCode::BadInput, "cannot open the vocabulary");
}

} // namespace
