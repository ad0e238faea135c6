// Host checks. Which features exist depends on the machine, so the tests ask for one that is always there and one no
// machine of today has together with a message.
#include "runtime/Core/HostFeatures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace plimsoll;
using namespace plimsoll::runtime;
using testing::HasSubstr;

static artifact::TargetT target(const char *cpu, const char *features, const char *triple = "") {
  artifact::TargetT result;
  result.kind = "cpu";
  result.cpu = cpu;
  result.features = features;
  result.triple = triple;
  return result;
}

#if defined(__x86_64__)

TEST(HostFeatures, acceptsTheBaseline) {
  EXPECT_TRUE(checkHost(target("x86-64", "", "x86_64-unknown-linux-gnu")));
  EXPECT_TRUE(checkHost(target("x86-64", "+sse3,-avx512f,+64bit,+cx8")));
}

TEST(HostFeatures, refusesAnotherArchitecture) {
  Status status = checkHost(target("generic", "", "aarch64-unknown-linux-gnu"));
  EXPECT_EQ(status.code(), ExitCode::VersionMismatch);
  EXPECT_EQ(status.message(), "the artifact is for 'aarch64', this machine is x86_64; compile the model for it");
}

/// A feature this machine lacks, found independently of the code under test.
static const char *missingFeature() {
  if (!__builtin_cpu_supports("avx512fp16"))
    return "avx512fp16";
  if (!__builtin_cpu_supports("amx-bf16"))
    return "amx-bf16";
  return __builtin_cpu_supports("avx512f") ? nullptr : "avx512f";
}

TEST(HostFeatures, listsWhatIsMissing) {
  const char *name = missingFeature();
  if (!name)
    GTEST_SKIP() << "this machine has every feature the test knows";
  Status status = checkHost(target("native", (std::string("+sse3,+") + name + ",-avx").c_str()));
  EXPECT_EQ(status.code(), ExitCode::VersionMismatch);
  EXPECT_THAT(status.message(), HasSubstr(std::string("needs ") + name + ", which this CPU lacks; compile again with"));
  EXPECT_TRUE(checkHost(target("native", (std::string("-") + name).c_str())));
}

TEST(HostFeatures, knowsTheLevels) {
  bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
  EXPECT_EQ(checkHost(target("x86-64-v3", "")).isOk(), v3);
  EXPECT_EQ(checkHost(target("x86-64-v4", "")).isOk(), v4);
}

#endif
