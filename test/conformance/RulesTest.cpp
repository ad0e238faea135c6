// Every rule of checkCall broken once, with its message. The set of labels is read from the sources, so a rule without
// a failing case fails here; runtime/Kernels/README.md must list each label too.
#include "runtime/CPU/CpuBackend.h"
#include "runtime/Kernels/Check.h"
#include "test/conformance/Harness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace plimsoll::runtime::conformance {

using testing::HasSubstr;

namespace {
struct BrokenCall {
  const char *rule; ///< label, "" for the unknown operation
  CallSpec spec;
  const char *message; ///< part of the expected message
};
} // namespace

static const std::vector<artifact::AttributeT> axis0 = {ints("axis", {0})};

static CallSpec withAttribute(CallSpec spec, const artifact::AttributeT &attribute) {
  spec.attributes.push_back(attribute);
  return spec;
}

static CallSpec dot(const TensorSpec &a, const TensorSpec &b, const TensorSpec &c) { return {"dot", {a, b, c}, {}}; }

static std::vector<BrokenCall> brokenGeneralRules() {
  const CallSpec copy{"copy", {read({2}), written({2})}, {}};
  return {
      {"", {"convolve", {}, {}}, "found library operation 'convolve', expected one of copy, fill"},
      {"K1", {"copy", {read({2})}, {}}, "found 1 operands, expected 2 (src, dst)"},
      {"K1",
       {"attention", {read({1, 1, 1, 1})}, {number("scale", 1), ints("has_mask", {1})}},
       "expected 6 (q, k, v, mask, out, lse)"},
      {"K2", {"fill", {written({2})}, {}}, "found no attribute 'value', expected it"},
      {"K2", {"fill", {written({2})}, {ints("value", {1})}}, "found 0 floats in attribute 'value', expected 1"},
      {"K2", {"cumsum", {read({2}), written({2})}, {ints("axis", {0, 1})}}, "found 2 integers in attribute 'axis'"},
      {"K3", withAttribute(dot(read({1, 1}), read({1, 1}), written({1, 1})), ints("accumulate", {2})),
       "found 2 in attribute 'accumulate', expected a value in [0, 1]"},
      {"K4", withAttribute(copy, ints("axis", {0})), "found attribute 'axis', expected only none"},
      {"K4",
       {"fill", {written({2})}, {number("value", 1), ints("axis", {0})}},
       "found attribute 'axis', expected only value"},
      {"K5",
       {"copy", {read({2, 2}, DType::F32, {1}), written({2, 2})}, {}},
       "found src with 2 dimensions and 1 strides"},
      {"K5", {"copy", {read({0}), written({0})}, {}}, "expected extents of at least 1"},
      {"K5", {"copy", {read({2}, DType::F32, {-1}), written({2})}, {}}, "strides of at least 0"},
      {"K5",
       {"copy", {read({int64_t{1} << 41}, DType::F32, {0}), written({int64_t{1} << 41})}, {}},
       "expected fewer than 2^40 elements"},
      {"K6", {"copy", {read({2}), read({2})}, {}}, "found dst marked as read, expected written"},
      {"K6",
       {"dot", {read({1, 1}), read({1, 1}), written({1, 1})}, {ints("accumulate", {1})}},
       "found c marked as written, expected read and written"},
      {"K6", dot(read({1, 1}, DType::I32), read({1, 1}), written({1, 1})), "found a of type i32, expected f32 or f64"},
      {"K7",
       {"copy", {read({3, 3}), written({3, 3}, DType::F32, {2, 1})}, {}},
       "found dst of shape [3, 3] and strides [2, 1] written twice at one place"},
      {"K7", {"fill", {written({2}, DType::F32, {0})}, {number("value", 1)}}, "expected disjoint elements"},
      {"K8",
       {"cumsum", {read({2, 2}, DType::F32, {1, 2}), written({2, 2})}, axis0},
       "found x of shape [2, 2] with strides [1, 2], expected row-major contiguous elements; copy it"},
      {"K8",
       {"attention",
        {read({1, 1, 2, 2}, DType::F32, {4, 4, 1, 2}), read({1, 1, 2, 2}), read({1, 1, 2, 2}), written({1, 1, 2, 2}),
         written({1, 1, 2})},
        {number("scale", 1)}},
       "found q of shape [1, 1, 2, 2] with strides [4, 4, 1, 2], expected stride 1 in the last dimension"},
      {"K9", {"copy", {read({2}), written({2}, DType::F64)}, {}}, "found dst of type f64 and src of type f32"},
  };
}

static std::vector<BrokenCall> brokenShapeRules() {
  const TensorSpec ids = read({3}, DType::I64);
  return {
      {"copy.1", {"copy", {read({2}), written({3})}, {}}, "found src of shape [2] and dst of shape [3]"},
      {"dot.1", dot(read({2}), read({2}), written({2})), "expected the same rank of at least 2"},
      {"dot.2", dot(read({2, 1, 1}), read({3, 1, 1}), written({2, 1, 1})), "expected equal batch dimensions"},
      {"dot.3", dot(read({2, 3}), read({4, 5}), written({2, 5})), "expected [..., M, K], [..., K, N] and [..., M, N]"},
      {"axis.1",
       {"cumsum", {read({2}), written({2})}, {ints("axis", {1})}},
       "found axis 1 for a tensor of shape [2], expected one in [-1, 1)"},
      {"gather.1",
       {"gather", {read({5, 4}), ids, written({3, 5})}, axis0},
       "found out of shape [3, 5], expected [3, 4]"},
      {"scatter_add.1",
       {"scatter_add", {ids, read({3, 5}), written({5, 4})}, axis0},
       "found updates of shape [3, 5], expected [3, 4]"},
      {"gather_elements.1",
       {"gather_elements", {read({5, 4}), read({2, 5}, DType::I64), written({2, 5})}, axis0},
       "found indices of shape [2, 5]"},
      {"scatter_add_elements.1",
       {"scatter_add_elements", {read({2, 3}, DType::I64), read({3, 2}), written({5, 4})}, axis0},
       "found indices of shape [2, 3]"},
      {"cumsum.1", {"cumsum", {read({2}), written({3})}, axis0}, "expected equal shapes"},
      {"random_uniform.1",
       {"random_uniform", {read({3}, DType::I64), written({2})}, {ints("op_id", {0})}},
       "found seed of shape [3], expected [2] (seed, step)"},
      {"random_uniform.2",
       {"random_uniform", {read({2}, DType::I64), written({int64_t{1} << 35})}, {ints("op_id", {0})}},
       "expected at most 2^34"},
  };
}

static CallSpec conv(const Dims &x, const Dims &w, const Dims &y, const std::vector<artifact::AttributeT> &attributes) {
  return {"conv", {read(x), read(w), written(y)}, attributes};
}

static CallSpec avgPool(const Dims &x, const Dims &y, const Dims &kernel) {
  return {"avg_pool", {read(x), written(y)}, {ints("kernel", kernel)}};
}

static std::vector<BrokenCall> brokenWindowRules() {
  return {
      {"window.1", conv({1, 1}, {1, 1}, {1, 1}, {}), "found tensors of rank 2, expected 3 to 5"},
      {"window.2", conv({1, 1, 4}, {1, 1, 1}, {1, 1, 4}, {ints("pads", {0})}),
       "found 1 integers in attribute 'pads', expected 2"},
      {"window.3", conv({1, 1, 4}, {1, 1, 3}, {1, 1, 3}, {}),
       "found output extent 3 in spatial dimension 0, expected 2 from input extent 4"},
      {"window.3", conv({1, 1, 2}, {1, 1, 3}, {1, 1, 1}, {}), "expected 0 from input extent 2"},
      {"window.3", avgPool({1, 1, 4}, {1, 1, 5}, {1}), "found output extent 5 in spatial dimension 0, expected 4"},
      {"conv.1", conv({1, 1, 4}, {1, 1, 1, 1}, {1, 1, 4}, {}), "expected equal ranks"},
      {"conv.2", conv({1, 3, 4}, {2, 1, 1}, {1, 2, 4}, {ints("groups", {2})}),
       "in 2 groups, expected channels that divide"},
      {"conv.3", conv({1, 4, 4}, {2, 3, 1}, {1, 2, 4}, {}),
       "expected [N, C, s...], [O, C/groups, k...] and [N, O, t...]"},
      {"pool.1", avgPool({1, 2, 4}, {1, 3, 4}, {1}), "found input [1, 2, 4] and output [1, 3, 4]"},
      {"pool.2",
       {"max_pool", {read({1, 1, 4}), written({1, 1, 4}), written({1, 1, 3}, DType::I32)}, {ints("kernel", {1})}},
       "found indices of shape [1, 1, 3], expected [1, 1, 4]"},
      {"pool.3",
       {"max_pool_grad", {read({1, 1, 4}), read({1, 1, 4}, DType::I32), written({1, 1, int64_t{1} << 31})}, {}},
       "expected fewer than 2^31 elements each"},
  };
}

/// A valid call that each case changes in one operand.
static CallSpec attentionWith(size_t operand, const TensorSpec &changed) {
  CallSpec spec{"attention",
                {read({2, 4, 3, 8}), read({2, 2, 5, 8}), read({2, 2, 5, 6}),
                 read({2, 4, 3, 5}, DType::Bool, {0, 0, 0, 1}), written({2, 4, 3, 6}), written({2, 4, 3})},
                {number("scale", 1), ints("has_mask", {1})}};
  spec.operands[operand] = changed;
  return spec;
}

static std::vector<BrokenCall> brokenAttentionRules() {
  CallSpec grad{"attention_grad",
                {read({2, 4, 3, 6}), read({2, 4, 3, 8}), read({2, 2, 5, 8}), read({2, 2, 5, 6}), read({2, 4, 3, 6}),
                 read({2, 4, 3}), written({2, 4, 3, 8}), written({2, 2, 5, 8}), written({2, 2, 5, 8})},
                {number("scale", 1)}};
  return {
      {"attention.1", attentionWith(0, read({2, 3, 8})), "expected [B, H, S, D], [B, Hk, T, D] and [B, Hk, T, Dv]"},
      {"attention.1", attentionWith(1, read({2, 2, 5, 7})), "expected [B, H, S, D], [B, Hk, T, D] and [B, Hk, T, Dv]"},
      {"attention.2",
       {"attention",
        {read({1, 3, 2, 1}), read({1, 2, 2, 1}), read({1, 2, 2, 1}), written({1, 3, 2, 1}), written({1, 3, 2})},
        {number("scale", 1)}},
       "expected the heads of q to be a multiple of the heads of k"},
      {"attention.3", attentionWith(3, read({2, 1, 3, 5}, DType::Bool)),
       "found mask of shape [2, 1, 3, 5], expected [2, 4, 3, 5]"},
      {"attention.4", attentionWith(4, written({2, 4, 3, 8})),
       "found out of shape [2, 4, 3, 8], expected [2, 4, 3, 6]"},
      {"attention.5", attentionWith(5, written({2, 4})), "found lse of shape [2, 4], expected [2, 4, 3]"},
      {"attention.6", grad, "found dv of shape [2, 2, 5, 8], expected [2, 2, 5, 6]"},
  };
}

static std::vector<BrokenCall> brokenCalls() {
  std::vector<BrokenCall> all = brokenGeneralRules();
  for (const auto &part : {brokenShapeRules(), brokenWindowRules(), brokenAttentionRules()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(Rules, EachBrokenRuleHasItsMessage) {
  for (const BrokenCall &broken : brokenCalls()) {
    const Status status = checkCall(broken.spec);
    EXPECT_EQ(status.code(), ExitCode::BadInput) << broken.rule << " " << broken.message;
    EXPECT_THAT(status.message(), HasSubstr(broken.message));
    if (*broken.rule) {
      EXPECT_THAT(status.message(), HasSubstr(broken.spec.op + " (rule " + broken.rule + "): "));
    }
  }
}

TEST(Rules, BackendsRefuseWhatTheRulesRefuse) {
  for (bool reference : {false, true})
    for (const BrokenCall &broken : brokenCalls()) {
      auto call = createCpuBackend({1, reference})->prepare(broken.spec);
      ASSERT_FALSE(call) << broken.message;
      EXPECT_THAT(call.status().message(), HasSubstr(broken.message));
    }
  EXPECT_FALSE(cpuWorkspaceBytes({"convolve", {}, {}}, 1));
}

static std::string fileText(const std::string &path) {
  std::ifstream file(std::string(PLIMSOLL_SOURCE_DIR) + "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Rules, EveryLabelIsTestedAndDocumented) {
  std::set<std::string> labels, tested;
  for (const char *source : {"Check.cpp", "CheckShapes.cpp", "CheckWindows.cpp"}) {
    const std::string text = fileText(std::string("runtime/Kernels/") + source);
    const std::regex pattern("\"(K[0-9]+|[a-z_]+\\.[0-9]+)\"");
    for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
      labels.insert((*at)[1]);
  }
  for (const BrokenCall &broken : brokenCalls())
    if (*broken.rule)
      tested.insert(broken.rule);
  EXPECT_EQ(labels, tested);
  EXPECT_GE(labels.size(), 30u);
  const std::string readme = fileText("runtime/Kernels/README.md");
  for (const std::string &label : labels)
    EXPECT_THAT(readme, HasSubstr("`" + label + "`"));
  for (const std::string &op : libraryOperations())
    EXPECT_THAT(readme, HasSubstr("`" + op + "`"));
}

TEST(Rules, EveryCaseObeysThem) {
  for (const Case &test : allCases())
    EXPECT_TRUE(checkCall(test.spec)) << test.name << ": " << checkCall(test.spec).message();
}

} // namespace plimsoll::runtime::conformance
