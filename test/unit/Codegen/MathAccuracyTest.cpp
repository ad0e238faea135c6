// Elementary functions of generated f32 code over dense sweeps, against the C library in double.
#include "KernelHarness.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <random>

using namespace mlir;
using namespace plimsoll::codegen;
using namespace plimsoll::codegen::test;
using plimsoll::reference::HostTensor;

namespace {

constexpr int64_t count = 1 << 20;

std::string groupOf(const std::string &op, int operands, const std::string &size) {
  std::string type = "tensor<" + size + "xf32>",
              arguments = operands == 2 ? "%a: " + type + ", %b: " + type : "%a: " + type;
  std::string values = operands == 2 ? "%a, %b" : "%a", inner = operands == 2 ? "%x, %y" : "%x";
  std::string types = operands == 2 ? type + ", " + type : type;
  return "func.func @f(" + arguments + ") -> " + type + " {\n  %r = graph.group " + values + " space [" + size +
         "] reduced [] : (" + types + ") -> " + type + " {\n  ^bb0(" +
         (operands == 2 ? "%x: " + type + ", %y: " + type : "%x: " + type) + "):\n    %0 = graph." + op + " " + inner +
         " : " + type + "\n    graph.yield %0 : " + type + "\n  }\n  return %r : " + type + "\n}";
}

std::vector<double> evaluate(const std::string &op, const std::vector<std::vector<double>> &inputs, const char *cpu) {
  MLIRContext context;
  GroupCase test(context, groupOf(op, static_cast<int>(inputs.size()), std::to_string(inputs[0].size())));
  std::vector<HostTensor> tensors;
  for (const std::vector<double> &values : inputs)
    tensors.push_back(HostTensor::ofFloats(test.group.getInputs()[tensors.size()].getType(), values));
  RunSettings settings;
  settings.cpu = cpu;
  std::vector<HostTensor> results = runKernel(test, tensors, settings);
  return results.empty() ? std::vector<double>() : results[0].floats;
}

/// Evenly spaced f32 numbers in [low, high].
std::vector<double> sweep(double low, double high) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(low + (high - low) * static_cast<double>(i) / (count - 1)));
  return values;
}
/// Every exponent: f32 numbers whose bit patterns are evenly spaced between those of two positive numbers.
std::vector<double> bitSweep(float low, float high) {
  std::vector<double> values;
  auto from = std::bit_cast<uint32_t>(low), to = std::bit_cast<uint32_t>(high);
  for (int64_t i = 0; i < count; ++i)
    values.push_back(std::bit_cast<float>(
        static_cast<uint32_t>(from + (uint64_t{to} - from) * static_cast<uint64_t>(i) / (count - 1))));
  return values;
}
std::vector<double> negated(std::vector<double> values) {
  for (double &value : values)
    value = -value;
  return values;
}

// Largest error relative to |expected| (denormal results: to the smallest normal, where f32 itself stops being
// relative).
double worst(const std::string &op, const std::vector<double> &inputs, const std::function<double(double)> &exact,
             const char *cpu) {
  std::vector<double> found = evaluate(op, {inputs}, cpu);
  double largest = found.size() == inputs.size() ? 0 : INFINITY;
  for (size_t i = 0; i < found.size(); ++i) {
    double want = exact(inputs[i]), rounded = static_cast<float>(want);
    if (std::isnan(want) || std::isinf(rounded)) {
      EXPECT_TRUE(std::isnan(want) ? std::isnan(found[i]) : found[i] == rounded)
          << op << "(" << inputs[i] << ") = " << found[i];
      continue;
    }
    largest = std::max(largest, std::abs(found[i] - want) / std::max(std::abs(want), 0x1p-126));
  }
  return largest;
}

struct Function {
  const char *op;
  double (*exact)(double);
  double low, high;
};

class MathAccuracy : public testing::TestWithParam<const char *> {};

} // namespace

TEST_P(MathAccuracy, RelativeErrorOverSweeps) {
  const Function functions[] = {
      {"exp", std::exp, -103.9, 88.8},    {"exp", std::exp, -1, 1},     {"log1p", std::log1p, -0.999, 10},
      {"log1p", std::log1p, -1e-3, 1e-3}, {"tanh", std::tanh, -10, 10}, {"tanh", std::tanh, -1, 1},
      {"erf", std::erf, -5, 5},           {"erf", std::erf, -1.1, 1.1}, {"log", std::log, 0.5, 2}};
  for (const Function &function : functions) {
    double error = worst(function.op, sweep(function.low, function.high), function.exact, GetParam());
    std::printf("%s %s [%g, %g]: %.2e\n", GetParam(), function.op, function.low, function.high, error);
    EXPECT_LE(error, 2e-7) << function.op;
  }
}

TEST_P(MathAccuracy, RelativeErrorOverExponents) {
  EXPECT_LE(worst(
                "log", bitSweep(0x1p-149f, 3e38f), [](double x) { return std::log(x); }, GetParam()),
            2e-7);
  for (bool negative : {false, true}) {
    auto signedSweep = [&](float low, float high) {
      return negative ? negated(bitSweep(low, high)) : bitSweep(low, high);
    };
    EXPECT_LE(worst(
                  "tanh", signedSweep(0x1p-149f, 3e38f), [](double x) { return std::tanh(x); }, GetParam()),
              2e-7);
    EXPECT_LE(worst(
                  "erf", signedSweep(0x1p-120f, 3e38f), [](double x) { return std::erf(x); }, GetParam()),
              2e-7);
    EXPECT_LE(worst(
                  "log1p", signedSweep(0x1p-120f, negative ? 0.999f : 3e38f), [](double x) { return std::log1p(x); },
                  GetParam()),
              2e-7);
    EXPECT_LE(worst(
                  "exp", signedSweep(0x1p-30f, 3e38f), [](double x) { return std::exp(x); }, GetParam()),
              2e-7);
  }
}

TEST_P(MathAccuracy, RootsAndQuotientsAreExact) {
  std::vector<double> inputs = bitSweep(0x1p-149f, 3e38f);
  std::vector<double> roots = evaluate("sqrt", {inputs}, GetParam()), inverse = evaluate("rsqrt", {inputs}, GetParam()),
                      quotients =
                          evaluate("div", {inputs, std::vector<double>(inputs.rbegin(), inputs.rend())}, GetParam());
  ASSERT_EQ(roots.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    float x = static_cast<float>(inputs[i]), y = static_cast<float>(inputs[inputs.size() - 1 - i]);
    ASSERT_EQ(static_cast<float>(roots[i]), std::sqrt(x));
    ASSERT_EQ(static_cast<float>(inverse[i]), 1.0f / std::sqrt(x));
    ASSERT_EQ(static_cast<float>(quotients[i]), x / y);
  }
}

TEST_P(MathAccuracy, SineAndCosineAbsolutely) {
  for (double range : {4.0, 1000.0, 1e6}) {
    std::vector<double> inputs = sweep(-range, range), sines = evaluate("sin", {inputs}, GetParam()),
                        cosines = evaluate("cos", {inputs}, GetParam());
    ASSERT_EQ(sines.size(), inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      ASSERT_NEAR(sines[i], std::sin(inputs[i]), 2e-7) << inputs[i];
      ASSERT_NEAR(cosines[i], std::cos(inputs[i]), 2e-7) << inputs[i];
    }
  }
}

TEST_P(MathAccuracy, PowersIncludingSpecialCases) {
  std::vector<double> bases = bitSweep(1e-8f, 1e8f), exponents = sweep(-4, 4);
  std::vector<double> found = evaluate("pow", {bases, exponents}, GetParam());
  ASSERT_EQ(found.size(), bases.size());
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], std::pow(bases[i], exponents[i]), 1e-7 * std::pow(bases[i], exponents[i]))
        << bases[i] << "^" << exponents[i];

  const double special[] = {0.0, -0.0, 1,    -1,    2,     -2,       0.5,       -0.5, 3,        -3,
                            2.5, -2.5, 1e30, -1e30, 1e-30, INFINITY, -INFINITY, NAN,  16777217, 0.999};
  std::vector<double> x, y;
  for (double base : special)
    for (double exponent : special) {
      x.push_back(static_cast<float>(base));
      y.push_back(static_cast<float>(exponent));
    }
  found = evaluate("pow", {x, y}, GetParam());
  for (size_t i = 0; i < found.size(); ++i) {
    float want = std::pow(static_cast<float>(x[i]), static_cast<float>(y[i])), got = static_cast<float>(found[i]);
    if (std::isnan(want))
      EXPECT_TRUE(std::isnan(got)) << x[i] << "^" << y[i] << " = " << got;
    else if (std::isinf(want) || want == 0)
      EXPECT_TRUE(want == got && std::signbit(want) == std::signbit(got))
          << x[i] << "^" << y[i] << " = " << got << " instead of " << want;
    else
      EXPECT_NEAR(got, want, 1e-7 * std::abs(want)) << x[i] << "^" << y[i];
  }
}

TEST_P(MathAccuracy, SpecialValues) {
  const float values[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, -1.0f, -2.0f, 0x1p-149f};
  const std::pair<const char *, float (*)(float)> functions[] = {{"exp", std::exp},     {"log", std::log},
                                                                 {"log1p", std::log1p}, {"tanh", std::tanh},
                                                                 {"erf", std::erf},     {"sqrt", std::sqrt}};
  for (auto [op, exact] : functions) {
    std::vector<double> inputs(std::begin(values), std::end(values)), found = evaluate(op, {inputs}, GetParam());
    for (size_t i = 0; i < found.size(); ++i) {
      float want = exact(values[i]), got = static_cast<float>(found[i]);
      EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : std::abs(got - want) <= 2e-7f * std::abs(want) || got == want)
          << op << "(" << values[i] << ") = " << got;
      EXPECT_TRUE(want != 0 || std::signbit(want) == std::signbit(got)) << op << "(" << values[i] << ") = " << got;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpus, MathAccuracy, testing::Values("native", "x86-64-v3"),
                         [](const auto &cpu) { return std::string(cpu.param) == "native" ? "Native" : "V3"; });
