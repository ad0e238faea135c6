// Random composite graphs: values used many times, dead branches, mixed ops; gradients against finite differences.
#include "test/unit/Graph/GradHarness.h"

#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace plimsoll::test;

namespace {

/// Grows a function over tensor<3x4xf64> values by smooth ops that keep numbers of moderate size.
class RandomGraph {
public:
  explicit RandomGraph(unsigned seed) : random(seed) {}

  std::string text(int steps) {
    values = {"%a", "%b"};
    body.clear();
    for (int step = 0; step < steps; ++step)
      grow(step);
    std::string middle = pick();
    return "func.func @f(%a: tensor<3x4xf64>, %b: tensor<3x4xf64>) -> (tensor<3x4xf64>, tensor<3x4xf64>) {\n" + body +
           "  return " + values.back() + ", " + middle + " : tensor<3x4xf64>, tensor<3x4xf64>\n}";
  }
  double number() { return std::uniform_real_distribution<>(-1.5, 1.5)(random); }

private:
  std::string pick() { return values[random() % values.size()]; }
  void line(const std::string &text) { body += "  " + text + "\n"; }

  void grow(int step) {
    const std::string type = " : tensor<3x4xf64>", name = "%v" + std::to_string(step), x = pick(), y = pick();
    const std::string inner = "%i" + std::to_string(step);
    switch (random() % 9) {
    case 0:
      line(name + " = graph.tanh " + x + type);
      break;
    case 1:
      line(name + " = graph.silu " + x + type);
      break;
    case 2:
      line(name + " = graph.add " + x + ", " + y + type);
      break;
    case 3:
      line(inner + " = graph.sin " + x + type);
      line(name + " = graph.mul " + inner + ", " + y + type);
      break;
    case 4:
      line(name + " = graph.softmax " + x + " axis 1" + type);
      break;
    case 5:
      line(inner + " = graph.dot " + x + ", " + y +
           " {trans_b = true} : (tensor<3x4xf64>, tensor<3x4xf64>) -> tensor<3x3xf64>");
      line(inner + "t = graph.tanh " + inner + " : tensor<3x3xf64>");
      line(name + " = graph.dot " + inner + "t, " + y + " : (tensor<3x3xf64>, tensor<3x4xf64>) -> tensor<3x4xf64>");
      break;
    case 6:
      line(inner + " = graph.reduce_sum " + x + " [1] : tensor<3x4xf64> -> tensor<3xf64>");
      line(inner + "s = graph.sigmoid " + inner + " : tensor<3xf64>");
      line(inner + "b = graph.broadcast " + inner + "s [0] : tensor<3xf64> -> tensor<3x4xf64>");
      line(name + " = graph.sub " + inner + "b, " + y + type);
      break;
    case 7:
      line(inner + " = graph.slice " + x + " [0, 1] [1, 1] : tensor<3x4xf64> -> tensor<3x3xf64>");
      line(name + " = graph.pad " + inner +
           " low [0, 1] high [0, 0] interior [0, 0] : tensor<3x3xf64> -> tensor<3x4xf64>");
      break;
    default:
      line(name + ", " + inner + "r = graph.rms_norm " + x +
           " axis 1 eps 1.0e-1 : (tensor<3x4xf64>) -> (tensor<3x4xf64>, tensor<3xf64>)");
    }
    values.push_back(name);
  }

  std::mt19937 random;
  std::vector<std::string> values;
  std::string body;
};

} // namespace

// The deepest graphs have fifth derivatives up to some 1e6, so the differences are good to some 1e-7.
TEST(RandomGraph, gradientsAgreeWithFiniteDifferences) {
  GraphContext graph;
  for (unsigned seed = 0; seed < 40; ++seed) {
    RandomGraph generator(seed);
    std::string text = generator.text(4 + static_cast<int>(seed % 12));
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    std::vector<std::vector<double>> numbers(2, std::vector<double>(12)), cotangents(2, std::vector<double>(12));
    for (auto *lists : {&numbers, &cotangents})
      for (std::vector<double> &list : *lists)
        for (double &value : list)
          value = generator.number();
    GradientFunction gradient(graph.context, text, cotangents);
    ASSERT_TRUE(gradient.built);
    ASSERT_TRUE(succeeded(verify(*gradient.graph.module)));
    EXPECT_EQ(unlistedUse(gradient.graph.function()), "");
    GraphModule forward(graph.context, text);
    std::vector<HostTensor> inputs = makeInputs(forward.function(), numbers);
    std::vector<std::vector<double>> computed = gradient.run(inputs);
    for (size_t argument = 0; argument < 2; ++argument) {
      std::vector<double> expected = differences(forward.function(), inputs, argument, cotangents);
      std::vector<double> got = computed[argument].empty() ? std::vector<double>(12, 0.0) : computed[argument];
      EXPECT_LE(relativeError(got, expected), 1e-7) << "argument " << argument;
    }
  }
}
