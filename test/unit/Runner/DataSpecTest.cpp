// The --data grammar and each of its messages.
#include "runtime/Data/DataSpec.h"
#include "TestSupport.h"

using namespace plimsoll;
using namespace plimsoll::runtime;

namespace {

TEST(DataSpec, readsPathFlagsAndOptions) {
  auto spec = parseDataSpec("labels=tokens(train.bin,u16,shift=1)");
  ASSERT_OK(spec);
  EXPECT_EQ(spec->port, "labels");
  EXPECT_EQ(spec->kind, "tokens");
  EXPECT_EQ(spec->path, "train.bin");
  EXPECT_EQ(spec->options, (std::map<std::string, std::string>{{"shift", "1"}, {"u16", ""}}));
}

TEST(DataSpec, quotesProtectCommasAndParentheses) {
  auto spec = parseDataSpec(R"( x = npy( "a (1), b.npy" , scale = 0.5 ) )");
  ASSERT_OK(spec);
  EXPECT_EQ(spec->port, "x");
  EXPECT_EQ(spec->path, "a (1), b.npy");
  EXPECT_EQ(spec->options.at("scale"), "0.5");
}

TEST(DataSpec, braceKeysAreKept) {
  auto spec = parseDataSpec("x=safetensors(b.safetensors,key=batch{i}.x)");
  ASSERT_OK(spec);
  EXPECT_EQ(spec->options.at("key"), "batch{i}.x");
}

TEST(DataSpec, malformedTextIsExplained) {
  EXPECT_FAILS(parseDataSpec("train.bin"), ExitCode::Usage, "no port name before '='");
  EXPECT_FAILS(parseDataSpec("=npy(a)"), ExitCode::Usage, "no port name before '='");
  EXPECT_FAILS(parseDataSpec("x=train.bin"), ExitCode::Usage, "no KIND( after '='");
  EXPECT_FAILS(parseDataSpec("x=npy()"), ExitCode::Usage, "the path is empty");
  EXPECT_FAILS(parseDataSpec("x=npy(\"a)"), ExitCode::Usage, "its quote is not closed");
  EXPECT_FAILS(parseDataSpec("x=npy(a"), ExitCode::Usage, "the closing ')' is missing");
  EXPECT_FAILS(parseDataSpec("x=npy(a,)"), ExitCode::Usage, "an option is empty");
  EXPECT_FAILS(parseDataSpec("x=npy(a,scale=)"), ExitCode::Usage, "option scale has no value");
  EXPECT_FAILS(parseDataSpec("x=npy(a)b"), ExitCode::Usage, "'b' follows the closing ')'");
}

TEST(DataSpec, unknownNamesListTheKnownOnes) {
  EXPECT_FAILS(parseDataSpec("x=csv(a)"), ExitCode::Usage,
               "unknown kind 'csv', expected one of: tokens, npy, idx, safetensors, constant");
  EXPECT_FAILS(parseDataSpec("x=npy(a,shift=1)"), ExitCode::Usage,
               "npy has no option 'shift'; its options are: scale, offset");
  EXPECT_FAILS(parseDataSpec("x=constant(1,u16)"), ExitCode::Usage, "its options are: none");
}

TEST(DataSpec, repetitionIsRefused) {
  EXPECT_FAILS(parseDataSpec("x=npy(a,scale=1,scale=2)"), ExitCode::Usage, "option 'scale' is given twice");
  EXPECT_FAILS(parseDataSpecs({"x=npy(a)", "x=npy(b)"}), ExitCode::Usage, "names port 'x' twice");
}

TEST(DataSpec, numbersAreChecked) {
  auto spec = parseDataSpec("x=tokens(a,shift=-1,stride=2x)");
  ASSERT_OK(spec);
  EXPECT_FAILS(unsignedOption(*spec, "shift", 0), ExitCode::Usage, "shift=-1 is not a whole number >= 0");
  EXPECT_FAILS(unsignedOption(*spec, "stride", 0), ExitCode::Usage, "stride=2x is not a whole number >= 0");
  EXPECT_EQ(*unsignedOption(*spec, "vocab", 7), 7u);
  auto scaled = parseDataSpec("x=npy(a,scale=nan,offset=1e-3)");
  ASSERT_OK(scaled);
  EXPECT_FAILS(numberOption(*scaled, "scale", 1), ExitCode::Usage, "scale=nan is not a finite number");
  EXPECT_EQ(*numberOption(*scaled, "offset", 0), 1e-3);
}

} // namespace
