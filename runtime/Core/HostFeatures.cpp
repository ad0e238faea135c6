// Host feature checks. GCC's __builtin_cpu_supports takes literals only and also asks the operating system whether it
// saves the wide registers, which reading cpuid alone would miss.
#include "runtime/Core/HostFeatures.h"

#include "runtime/Artifact/Files.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::runtime {

namespace {
struct Feature {
  std::string_view name; ///< as LLVM spells it
  bool present;
};
} // namespace

#if defined(__x86_64__)
static constexpr std::string_view kArchitecture = "x86_64";

static const std::vector<Feature> &hostFeatures() {
#define PLIMSOLL_FEATURE(name)                                                                                         \
  { name, __builtin_cpu_supports(name) != 0 }
  static const std::vector<Feature> features = {
      PLIMSOLL_FEATURE("sse3"),       PLIMSOLL_FEATURE("ssse3"),        PLIMSOLL_FEATURE("sse4.1"),
      PLIMSOLL_FEATURE("sse4.2"),     PLIMSOLL_FEATURE("popcnt"),       PLIMSOLL_FEATURE("avx"),
      PLIMSOLL_FEATURE("avx2"),       PLIMSOLL_FEATURE("fma"),          PLIMSOLL_FEATURE("f16c"),
      PLIMSOLL_FEATURE("bmi"),        PLIMSOLL_FEATURE("bmi2"),         PLIMSOLL_FEATURE("lzcnt"),
      PLIMSOLL_FEATURE("movbe"),      PLIMSOLL_FEATURE("avx512f"),      PLIMSOLL_FEATURE("avx512bw"),
      PLIMSOLL_FEATURE("avx512cd"),   PLIMSOLL_FEATURE("avx512dq"),     PLIMSOLL_FEATURE("avx512vl"),
      PLIMSOLL_FEATURE("avx512ifma"), PLIMSOLL_FEATURE("avx512vbmi"),   PLIMSOLL_FEATURE("avx512vbmi2"),
      PLIMSOLL_FEATURE("avx512vnni"), PLIMSOLL_FEATURE("avx512bitalg"), PLIMSOLL_FEATURE("avx512vpopcntdq"),
      PLIMSOLL_FEATURE("avx512bf16"), PLIMSOLL_FEATURE("avx512fp16"),   PLIMSOLL_FEATURE("avxvnni"),
      PLIMSOLL_FEATURE("gfni"),       PLIMSOLL_FEATURE("vaes"),         PLIMSOLL_FEATURE("vpclmulqdq"),
      PLIMSOLL_FEATURE("amx-tile"),   PLIMSOLL_FEATURE("amx-int8"),     PLIMSOLL_FEATURE("amx-bf16")};
#undef PLIMSOLL_FEATURE
  return features;
}
#else
static constexpr std::string_view kArchitecture = "aarch64";
static const std::vector<Feature> &hostFeatures() {
  static const std::vector<Feature> none;
  return none;
}
#endif

/// Splits a comma-separated list, giving each entry that starts with '+' without the sign.
template <typename Visit> static void eachRequired(std::string_view list, Visit visit) {
  while (!list.empty()) {
    size_t comma = std::min(list.find(','), list.size());
    if (comma > 1 && list[0] == '+')
      visit(list.substr(1, comma - 1));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

/// What the x86-64 psABI levels add for vector code.
static std::string_view levelFeatures(std::string_view cpu) {
  if (cpu == "x86-64-v2")
    return "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt";
  if (cpu == "x86-64-v3")
    return "+sse4.2,+popcnt,+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe";
  if (cpu == "x86-64-v4")
    return "+sse4.2,+popcnt,+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+avx512f,+avx512bw,+avx512cd,+avx512dq,"
           "+avx512vl";
  return "";
}

static void collectMissing(std::string_view required, std::vector<std::string> &missing) {
  eachRequired(required, [&](std::string_view name) {
    for (const Feature &feature : hostFeatures())
      if (feature.name == name && !feature.present && std::find(missing.begin(), missing.end(), name) == missing.end())
        missing.emplace_back(name);
  });
}

Status checkHost(const artifact::TargetT &target) {
  std::string_view architecture = std::string_view(target.triple).substr(0, target.triple.find('-'));
  if (!target.triple.empty() && architecture != kArchitecture)
    return {ExitCode::VersionMismatch, "the artifact is for " + inQuotes(architecture) + ", this machine is " +
                                           std::string(kArchitecture) + "; compile the model for it"};
  std::vector<std::string> missing;
  collectMissing(levelFeatures(target.cpu), missing);
  collectMissing(target.features, missing);
  if (missing.empty())
    return Status::ok();
  std::string list;
  for (const std::string &name : missing)
    list += (list.empty() ? "" : ", ") + name;
  return {ExitCode::VersionMismatch, "the artifact is compiled for " + inQuotes(target.cpu) + " and needs " + list +
                                         ", which this CPU lacks; compile again with --cpu=native here or with a "
                                         "lower level such as --cpu=x86-64-v3"};
}

} // namespace plimsoll::runtime
