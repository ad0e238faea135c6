// Every adjoint against central finite differences of its forward operation, both by the reference kernels in f64. With
// a loss L = g . f(x), the adjoint must give dL/dx. Bound: truncation h^2 |f'''| / 6 plus rounding eps |L| / h, with h
// = 1e-4 and data of order one: 1e-7 covers both for the smooth operations; the linear ones have rounding alone.
#include "test/conformance/Harness.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plimsoll::runtime::conformance {

using Values = std::vector<double>;
static constexpr DType F64 = DType::F64;
static constexpr double Step = 1e-4, Bound = 1e-7;

static Values randomValues(uint64_t stream, int64_t count) {
  Values values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(randomValue(stream, i));
  return values;
}

static double weighted(const Values &weights, const Values &values) {
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i)
    sum += weights[i] * values[i];
  return sum;
}

/// dL/d(inputs[which]) by central differences, L = g . first output of `forward`.
static Values finiteDifferences(const CallSpec &forward, std::vector<Values> inputs, size_t which, const Values &g) {
  Values gradient;
  for (double &element : inputs[which]) {
    const double middle = element;
    element = middle + Step;
    const double above = weighted(g, evaluate(forward, inputs)[0]);
    element = middle - Step;
    const double below = weighted(g, evaluate(forward, inputs)[0]);
    element = middle;
    gradient.push_back((above - below) / (2 * Step));
  }
  return gradient;
}

static void expectNear(const Values &actual, const Values &expected, const char *what) {
  ASSERT_EQ(actual.size(), expected.size());
  double largest = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], Bound) << what << " element " << i;
    largest = std::max(largest, std::abs(expected[i]));
  }
  EXPECT_GT(largest, 1e-3) << what << " is all zero: the check would pass on anything";
}

TEST(Gradient, Conv) {
  const std::vector<artifact::AttributeT> attributes = {ints("strides", {2, 1}), ints("pads", {1, 0, 1, 2}),
                                                        ints("dilations", {1, 2}), ints("groups", {2})};
  const Dims x = {2, 4, 5, 6}, w = {6, 2, 3, 2}, y = {2, 6, 3, 6};
  const CallSpec forward{"conv", {read(x, F64), read(w, F64), written(y, F64)}, attributes};
  const Values xs = randomValues(1, elementCount(x)), ws = randomValues(2, elementCount(w));
  const Values g = randomValues(3, elementCount(y));
  const CallSpec inputGrad{"conv_input_grad", {read(y, F64), read(w, F64), written(x, F64)}, attributes};
  expectNear(evaluate(inputGrad, {g, ws})[0], finiteDifferences(forward, {xs, ws}, 0, g), "dx");
  const CallSpec weightGrad{"conv_weight_grad", {read(x, F64), read(y, F64), written(w, F64)}, attributes};
  expectNear(evaluate(weightGrad, {xs, g})[0], finiteDifferences(forward, {xs, ws}, 1, g), "dw");
}

TEST(Gradient, MaxPool) {
  const std::vector<artifact::AttributeT> attributes = {ints("kernel", {3, 2}), ints("strides", {2, 1}),
                                                        ints("pads", {1, 0, 1, 0})};
  const Dims x = {2, 2, 5, 4}, y = {2, 2, 3, 3};
  const CallSpec forward{"max_pool", {read(x, F64), written(y, F64), written(y, DType::I32)}, attributes};
  const Values xs = randomValues(4, elementCount(x)), g = randomValues(5, elementCount(y));
  const CallSpec grad{"max_pool_grad", {read(y, F64), read(y, DType::I32), written(x, F64)}, attributes};
  expectNear(evaluate(grad, {g, evaluate(forward, {xs})[1]})[0], finiteDifferences(forward, {xs}, 0, g), "dx");
}

TEST(Gradient, AvgPool) {
  for (int64_t countPad : {0, 1}) {
    const std::vector<artifact::AttributeT> attributes = {ints("kernel", {3, 2}), ints("strides", {2, 2}),
                                                          ints("pads", {1, 0, 0, 1}), ints("dilations", {1, 2}),
                                                          ints("count_include_pad", {countPad})};
    const Dims x = {1, 2, 6, 6}, y = {1, 2, 3, 3};
    const CallSpec forward{"avg_pool", {read(x, F64), written(y, F64)}, attributes};
    const Values xs = randomValues(6, elementCount(x)), g = randomValues(7, elementCount(y));
    const CallSpec grad{"avg_pool_grad", {read(y, F64), written(x, F64)}, attributes};
    expectNear(evaluate(grad, {g})[0], finiteDifferences(forward, {xs}, 0, g), "dx");
  }
}

TEST(Gradient, GatherIsScatterAdd) {
  const Dims data = {3, 4, 2}, indices = {2, 3}, out = {3, 2, 3, 2};
  const Values at = {0, -1, 2, 3, 3, 1}, xs = randomValues(8, 24), g = randomValues(9, elementCount(out));
  const CallSpec forward{
      "gather", {read(data, F64), read(indices, DType::I64), written(out, F64)}, {ints("axis", {1})}};
  const CallSpec grad{
      "scatter_add", {read(indices, DType::I64), read(out, F64), written(data, F64)}, {ints("axis", {1})}};
  expectNear(evaluate(grad, {at, g})[0], finiteDifferences(forward, {xs, at}, 0, g), "ddata");
}

TEST(Gradient, GatherElementsIsScatterAddElements) {
  const Dims data = {3, 4}, indices = {2, 5};
  const Values at = {0, -1, 2, 2, 1, 3, 3, 0, 1, -4}, xs = randomValues(10, 12), g = randomValues(11, 10);
  const CallSpec forward{
      "gather_elements", {read(data, F64), read(indices, DType::I64), written(indices, F64)}, {ints("axis", {1})}};
  const CallSpec grad{
      "scatter_add_elements", {read(indices, DType::I64), read(indices, F64), written(data, F64)}, {ints("axis", {1})}};
  expectNear(evaluate(grad, {at, g})[0], finiteDifferences(forward, {xs, at}, 0, g), "ddata");
}

TEST(Gradient, CumsumIsReverseCumsum) {
  for (int64_t exclusive : {0, 1}) {
    const CallSpec forward{
        "cumsum", {read({2, 5}, F64), written({2, 5}, F64)}, {ints("axis", {1}), ints("exclusive", {exclusive})}};
    CallSpec grad = forward;
    grad.attributes.push_back(ints("reverse", {1}));
    const Values xs = randomValues(12, 10), g = randomValues(13, 10);
    expectNear(evaluate(grad, {g})[0], finiteDifferences(forward, {xs}, 0, g), "dx");
  }
}

namespace {
struct AttentionShape {
  int64_t b, h, hk, s, t, d, dv;
  bool causal;
  DType maskType; ///< I8 = no mask
};
} // namespace

/// Bool: rows 1, 4, ... see nothing; F64: an additive mask.
static Values maskValues(const AttentionShape &a) {
  Values mask = randomValues(20, a.b * a.h * a.s * a.t);
  if (a.maskType == DType::Bool)
    for (size_t i = 0; i < mask.size(); ++i)
      mask[i] = static_cast<int64_t>(i) / a.t % 3 != 1 && mask[i] > -0.4;
  return mask;
}

static void checkAttention(const AttentionShape &a) {
  const bool masked = a.maskType != DType::I8;
  const std::vector<artifact::AttributeT> attributes = {number("scale", 0.7), ints("causal", {a.causal}),
                                                        ints("has_mask", {masked})};
  const Dims q = {a.b, a.h, a.s, a.d}, k = {a.b, a.hk, a.t, a.d}, v = {a.b, a.hk, a.t, a.dv},
             out = {a.b, a.h, a.s, a.dv};
  CallSpec forward{"attention", {read(q, F64), read(k, F64), read(v, F64)}, attributes};
  std::vector<Values> inputs = {randomValues(14, elementCount(q)), randomValues(15, elementCount(k)),
                                randomValues(16, elementCount(v))};
  if (masked) {
    forward.operands.push_back(read({a.b, a.h, a.s, a.t}, a.maskType));
    inputs.push_back(maskValues(a));
  }
  CallSpec grad{"attention_grad", forward.operands, attributes};
  forward.operands.push_back(written(out, F64));
  forward.operands.push_back(written({a.b, a.h, a.s}, F64));
  grad.operands.insert(grad.operands.begin(), read(out, F64));
  for (const TensorSpec &operand :
       {read(out, F64), read({a.b, a.h, a.s}, F64), written(q, F64), written(k, F64), written(v, F64)})
    grad.operands.push_back(operand);
  const Values g = randomValues(17, elementCount(out));
  const std::vector<Values> results = evaluate(forward, inputs);
  std::vector<Values> gradInputs = inputs;
  gradInputs.insert(gradInputs.begin(), g);
  gradInputs.insert(gradInputs.end(), results.begin(), results.end());
  const std::vector<Values> gradients = evaluate(grad, gradInputs);
  const char *const names[] = {"dq", "dk", "dv"};
  for (size_t i = 0; i < 3; ++i)
    expectNear(gradients[i], finiteDifferences(forward, inputs, i, g), names[i]);
}

TEST(Gradient, Attention) { checkAttention({2, 2, 2, 3, 4, 3, 2, false, DType::I8}); }

TEST(Gradient, AttentionCausalGrouped) { checkAttention({1, 4, 2, 5, 5, 2, 3, true, DType::I8}); }

TEST(Gradient, AttentionBoolMaskWithEmptyRows) { checkAttention({1, 2, 1, 5, 4, 2, 2, false, DType::Bool}); }

TEST(Gradient, AttentionFloatMask) { checkAttention({1, 2, 2, 3, 4, 2, 2, false, F64}); }

} // namespace plimsoll::runtime::conformance
