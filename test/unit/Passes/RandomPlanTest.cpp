// Random entries, planned and run on bytes, against what the graph says. They mix views, library calls, pieces, state
// that is read, replaced, swapped, reset and returned, and results that are arguments or constants. Two runs each, so
// that a value left in the wrong place by the first is seen by the second.
#include "test/unit/Passes/PlanMachine.h"

#include "dialects/Graph/Graph.h"

#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

#include <random>

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::test;

namespace {

/// Writes one random function over 2x3 and 3x2 tensors. Numbers stay small integers scaled by a half, so that any order
/// of summing gives the same bits.
class Writer {
public:
  explicit Writer(unsigned seed) : random(seed) {}

  std::string write() {
    int variables = 1 + below(3);
    for (int i = 0; i < variables; ++i)
      head += "graph.variable @v" + std::to_string(i) +
              " : tensor<2x3xf32> {kind = #graph.variable_kind<model_state>, fill = " + std::to_string(i + 1) +
              ".0 : f64}\n";
    values.push_back("%x");
    for (int i = 0; i < variables; ++i)
      values.push_back(define("graph.read @v" + std::to_string(i) + " : " + type));
    std::vector<int> unwritten;
    for (int i = 0; i < variables; ++i)
      unwritten.push_back(i);
    int ops = 2 + below(10);
    for (int i = 0; i < ops; ++i) {
      op();
      if (below(4) == 0 && !unwritten.empty())
        writeState(unwritten);
    }
    return head + "func.func @f(%x: " + type + ") -> (" + type + ", " + type + ", " + type + ") {\n" + body +
           "return " + pick() + ", " + pick() + ", " + pick() + " : " + type + ", " + type + ", " + type + "\n}\n";
  }

private:
  int below(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }
  const std::string &pick() { return values[static_cast<size_t>(below(static_cast<int>(values.size())))]; }
  std::string define(const std::string &text) {
    std::string name = "%n" + std::to_string(next++);
    body += name + " = " + text + "\n";
    return name;
  }
  std::string turned() { return define("graph.transpose " + pick() + " [1, 0] : " + type + " -> tensor<3x2xf32>"); }

  void writeState(std::vector<int> &unwritten) {
    size_t at = static_cast<size_t>(below(static_cast<int>(unwritten.size())));
    std::string value = below(4) == 0 ? define("graph.constant dense<2.0> : " + type) : pick();
    body += "graph.write @v" + std::to_string(unwritten[at]) + ", " + value + " : " + type + "\n";
    unwritten.erase(unwritten.begin() + static_cast<long>(at));
  }

  void op() {
    switch (below(9)) {
    case 0:
      return values.push_back(define("graph.add " + pick() + ", " + pick() + " : " + type));
    case 1:
      return values.push_back(define("graph.sub " + pick() + ", " + pick() + " : " + type));
    case 2:
      return values.push_back(define("graph.neg " + pick() + " : " + type));
    case 3: { // through a matrix product with a one-hot matrix: exact
      std::string a = pick(),
                  hot = define(
                      "graph.constant dense<[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.0, 0.0]]> : tensor<3x3xf32>");
      return values.push_back(define("graph.dot " + a + ", " + hot + " : (" + type + ", tensor<3x3xf32>) -> " + type));
    }
    case 4: { // back through two transposes and a reshape that needs a copy
      std::string r = define("graph.reshape " + turned() + " : tensor<3x2xf32> -> " + type);
      return values.push_back(r);
    }
    case 5: { // concat of two slices
      std::string a = define("graph.slice " + pick() + " [0, 0] [1, 1] : " + type + " -> tensor<2x1xf32>");
      std::string b = define("graph.slice " + pick() + " [0, 1] [1, 1] : " + type + " -> tensor<2x2xf32>");
      return values.push_back(
          define("graph.concat " + b + ", " + a + " axis 1 : (tensor<2x2xf32>, tensor<2x1xf32>) -> " + type));
    }
    case 6: { // pad a slice
      std::string a = define("graph.slice " + pick() + " [1, 0] [1, 2] : " + type + " -> tensor<1x2xf32>");
      return values.push_back(
          define("graph.pad " + a +
                 " low [1, 0] high [0, 0] interior [0, 1] {value = 0.5 : f64} : tensor<1x2xf32> -> " + type));
    }
    case 7: { // reduce and spread
      std::string a = define("graph.reduce_max " + pick() + " [1] : " + type + " -> tensor<2xf32>");
      return values.push_back(define("graph.broadcast " + a + " [0] : tensor<2xf32> -> " + type));
    }
    default:
      return values.push_back(define("graph.constant dense<[[1.0, -1.0, 0.5], [0.0, 2.0, -3.0]]> : " + type));
    }
  }

  std::mt19937 random;
  const std::string type = "tensor<2x3xf32>";
  std::string head, body;
  std::vector<std::string> values;
  int next = 0;
};

void runOne(unsigned seed) {
  std::string text = Writer(seed).write();
  SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
  PassContext pass;
  OwningOpRef<ModuleOp> module = parseModule(pass.context, text);
  ASSERT_TRUE(module) << pass.messages;
  OwningOpRef<ModuleOp> meaning = module->clone();
  ASSERT_TRUE(succeeded(prepareForPlan(*module))) << pass.messages;
  FakeTarget target;
  target.scratch = {{"dot", 64}};
  Result<plan::ProgramOp> program = lowerToPlan(*module, target, {});
  ASSERT_TRUE(static_cast<bool>(program)) << program.status().message() << pass.messages;
  ASSERT_TRUE(succeeded(verify(*module))) << pass.messages;

  Tensors expectedState = reference::initialState(*module);
  PlanMachine machine(*program, target, expectedState);
  auto inputType = RankedTensorType::get({2, 3}, Float32Type::get(&pass.context));
  for (int run = 0; run < 2; ++run) {
    Tensors inputs = {{"input0", HostTensor::ofFloats(inputType, {1.0 + run, 2, -3, 4, -5.5, 6})}};
    Tensors found = machine.run("f", inputs), expected = evaluateEntry(*meaning, "f", inputs, expectedState);
    for (const auto &[name, value] : expected)
      ASSERT_EQ(found.at(name).floats, value.floats) << "run " << run << ", " << name;
    Tensors state = machine.state();
    for (const auto &[name, value] : expectedState)
      ASSERT_EQ(state.at(name).floats, value.floats) << "run " << run << ", @" << name;
  }
}

} // namespace

TEST(RandomPlan, computesWhatTheGraphSays) {
  for (unsigned seed = 0; seed < 1500 && !::testing::Test::HasFailure(); ++seed)
    runOne(seed);
}

// Same input, same plan: lowered twice in two contexts, printed text equal.
TEST(RandomPlan, isDeterministic) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::string printed[2];
    for (std::string &text : printed) {
      PassContext pass;
      OwningOpRef<ModuleOp> module = parseModule(pass.context, Writer(seed).write());
      FakeTarget target;
      ASSERT_TRUE(succeeded(prepareForPlan(*module)));
      ASSERT_TRUE(static_cast<bool>(lowerToPlan(*module, target, {})));
      llvm::raw_string_ostream stream(text);
      module->print(stream);
    }
    ASSERT_EQ(printed[0], printed[1]) << "seed " << seed;
  }
}
