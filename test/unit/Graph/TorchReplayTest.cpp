// Replays TorchCases.json (make_torch_cases.py): every differentiable op and attribute form against PyTorch in double
// and against finite differences, with what its adjoint reads checked against adjointUses().
#include "test/unit/Graph/GradHarness.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace plimsoll::graph;
using namespace plimsoll::test;

namespace {

using Numbers = std::vector<std::vector<double>>;

struct TorchCase {
  std::string name, ir;
  Numbers inputs, results, cotangents, gradients;
  bool checkDifferences = true;
};

double toNumber(const llvm::json::Value &value) {
  if (auto text = value.getAsString())
    return std::strtod(text->str().c_str(), nullptr);
  return value.getAsNumber().value();
}

// A list of number lists; null stands for no numbers.
Numbers toNumbers(const llvm::json::Value &value) {
  Numbers lists;
  for (const llvm::json::Value &list : *value.getAsArray()) {
    lists.emplace_back();
    if (const llvm::json::Array *numbers = list.getAsArray())
      for (const llvm::json::Value &number : *numbers)
        lists.back().push_back(toNumber(number));
  }
  return lists;
}

std::vector<TorchCase> loadCases() {
  auto file = llvm::MemoryBuffer::getFile(PLIMSOLL_SOURCE_DIR "/test/unit/Graph/TorchCases.json");
  if (!file)
    return {};
  auto parsed = llvm::json::parse((*file)->getBuffer());
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return {};
  }
  std::vector<TorchCase> cases;
  for (const llvm::json::Value &entry : *parsed->getAsArray()) {
    const llvm::json::Object &object = *entry.getAsObject();
    cases.push_back({object.getString("name")->str(), object.getString("ir")->str(), toNumbers(*object.get("inputs")),
                     toNumbers(*object.get("results")), toNumbers(*object.get("cotangents")),
                     toNumbers(*object.get("gradients")), *object.getBoolean("differences")});
  }
  return cases;
}

const std::vector<TorchCase> &torchCases() {
  static const std::vector<TorchCase> cases = loadCases();
  return cases;
}

// The case with its tensors in another float type; f64 attributes stay.
std::string inElement(std::string ir, const std::string &element) {
  for (auto [from, to] :
       {std::pair<std::string, std::string>{"xf64>", "x" + element + ">"}, {"tensor<f64>", "tensor<" + element + ">"}})
    for (size_t at = ir.find(from); at != std::string::npos; at = ir.find(from, at + to.size()))
      ir.replace(at, from.size(), to);
  return ir;
}

// An absent gradient is a zero one.
std::vector<double> orZeros(const std::vector<double> &gradient, size_t size) {
  return gradient.empty() ? std::vector<double>(size, 0.0) : gradient;
}

// Replaces every whole op by its expansion and notes its name.
void expandWholeOps(ModuleOp module, llvm::StringSet<> &expanded) {
  module.walk([&](DecomposableOpInterface op) {
    OpBuilder builder(op);
    expanded.insert(op->getName().getStringRef());
    op->replaceAllUsesWith(op.decompose(builder));
    op->erase();
  });
}

struct TorchReplay : ::testing::Test {
  GraphContext graph;
};

} // namespace

TEST_F(TorchReplay, everyDifferentiableOpHasACase) {
  ASSERT_GT(torchCases().size(), 150u);
  llvm::StringSet<> seen;
  for (const TorchCase &each : torchCases())
    GraphModule(graph.context, each.ir).module->walk([&](Operation *op) { seen.insert(op->getName().getStringRef()); });
  for (RegisteredOperationName name : graph.context.getRegisteredOperations())
    if (name.hasInterface<DifferentiableOpInterface>()) {
      EXPECT_TRUE(seen.contains(name.getStringRef()))
          << name.getStringRef().str() << " has no case; add one to make_torch_cases.py";
    }
}

// Sums of at most some 100 products: eps*100 is 2e-14; 1e-12 leaves room for ill-conditioned rows (rstd about 10).
TEST_F(TorchReplay, resultsAgreeWithPyTorch) {
  for (const TorchCase &each : torchCases()) {
    SCOPED_TRACE(each.name);
    GraphModule forward(graph.context, each.ir);
    ASSERT_TRUE(forward.module);
    plimsoll::reference::VariableState state;
    auto results =
        plimsoll::reference::evaluate(forward.function(), makeInputs(forward.function(), each.inputs), state, {true});
    ASSERT_TRUE(succeeded(results));
    for (size_t i = 0; i < results->size(); ++i)
      EXPECT_LE(relativeError((*results)[i].floats, each.results[i]), 1e-12) << "result " << i;
  }
}

TEST_F(TorchReplay, gradientsAgreeWithPyTorch) {
  for (const TorchCase &each : torchCases()) {
    SCOPED_TRACE(each.name);
    GradientFunction gradient(graph.context, each.ir, each.cotangents);
    ASSERT_TRUE(gradient.built);
    ASSERT_TRUE(succeeded(verify(*gradient.graph.module)));
    std::vector<HostTensor> inputs = makeInputs(gradient.graph.function(), each.inputs);
    Numbers computed = gradient.run(inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].isFloat()) {
        EXPECT_LE(relativeError(orZeros(computed[i], inputs[i].size()), each.gradients[i]), 1e-12) << "argument " << i;
      } else {
        EXPECT_TRUE(computed[i].empty());
      }
    }
  }
}

// Bound of differences(): below 1e-9 for fifth derivatives up to 3e3, as in these cases.
TEST_F(TorchReplay, gradientsAgreeWithFiniteDifferences) {
  size_t compared = 0;
  for (const TorchCase &each : torchCases()) {
    if (!each.checkDifferences)
      continue;
    SCOPED_TRACE(each.name);
    GradientFunction gradient(graph.context, each.ir, each.cotangents);
    ASSERT_TRUE(gradient.built);
    GraphModule forward(graph.context, each.ir);
    std::vector<HostTensor> inputs = makeInputs(forward.function(), each.inputs);
    Numbers computed = gradient.run(inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].isFloat())
        continue;
      std::vector<double> expected = differences(forward.function(), inputs, i, each.cotangents);
      EXPECT_LE(relativeError(orZeros(computed[i], inputs[i].size()), expected), 1e-9) << "argument " << i;
      ++compared;
    }
  }
  EXPECT_GT(compared, 150u);
}

TEST_F(TorchReplay, adjointsReadOnlyWhatTheyList) {
  for (const TorchCase &each : torchCases()) {
    GradientFunction gradient(graph.context, each.ir, each.cotangents);
    EXPECT_EQ(unlistedUse(gradient.graph.function()), "") << each.name;
  }
}

TEST_F(TorchReplay, twoRunsPrintTheSame) {
  for (const TorchCase &each : torchCases()) {
    GradientFunction first(graph.context, each.ir, each.cotangents);
    GraphContext other;
    GradientFunction second(other.context, each.ir, each.cotangents);
    EXPECT_EQ(first.graph.print(), second.graph.print()) << each.name;
  }
}

// Whole ops, forward and in gradients, replaced by the expansions that code generation uses: same numbers as the direct
// evaluation, which agrees with PyTorch.
TEST_F(TorchReplay, expansionsAgreeWithTheWholeOps) {
  llvm::StringSet<> expanded;
  for (const TorchCase &each : torchCases()) {
    SCOPED_TRACE(each.name);
    GradientFunction gradient(graph.context, each.ir, each.cotangents);
    std::vector<HostTensor> inputs = makeInputs(gradient.graph.function(), each.inputs);
    Numbers direct = gradient.run(inputs);
    expandWholeOps(*gradient.graph.module, expanded);
    ASSERT_TRUE(succeeded(verify(*gradient.graph.module)));
    Numbers throughExpansion = gradient.run(inputs);
    for (size_t i = 0; i < inputs.size(); ++i)
      EXPECT_LE(relativeError(throughExpansion[i], direct[i]), 1e-12) << "argument " << i;
    GraphModule forward(graph.context, each.ir);
    expandWholeOps(*forward.module, expanded);
    plimsoll::reference::VariableState state;
    auto results = plimsoll::reference::evaluate(forward.function(), inputs, state, {true});
    ASSERT_TRUE(succeeded(results));
    for (size_t i = 0; i < results->size(); ++i)
      EXPECT_LE(relativeError((*results)[i].floats, each.results[i]), 1e-12) << "result " << i;
  }
  for (RegisteredOperationName name : graph.context.getRegisteredOperations())
    if (name.hasInterface<DecomposableOpInterface>()) {
      EXPECT_TRUE(expanded.contains(name.getStringRef())) << name.getStringRef().str();
    }
}

// Every op rounds to single precision: eps = 6e-8 times some 100 roundings, amplified by at most rstd^2 (about 10).
TEST_F(TorchReplay, singlePrecisionStaysNearPyTorch) {
  for (const TorchCase &each : torchCases()) {
    SCOPED_TRACE(each.name);
    GradientFunction gradient(graph.context, inElement(each.ir, "f32"), each.cotangents);
    ASSERT_TRUE(gradient.built);
    std::vector<HostTensor> inputs = makeInputs(gradient.graph.function(), each.inputs);
    for (HostTensor &input : inputs)
      plimsoll::reference::roundInPlace(input);
    Numbers computed = gradient.run(inputs, /*exactDouble=*/false);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].isFloat()) {
        EXPECT_LE(relativeError(orZeros(computed[i], inputs[i].size()), each.gradients[i]), 2e-5) << "argument " << i;
      }
  }
}

// In the half types the adjoints are valid IR and no sum of theirs is taken in half precision.
TEST_F(TorchReplay, halfTypesSumInSinglePrecision) {
  for (const std::string element : {"bf16", "f16"})
    for (const TorchCase &each : torchCases()) {
      SCOPED_TRACE(each.name + " " + element);
      GradientFunction gradient(graph.context, inElement(each.ir, element), each.cotangents);
      ASSERT_TRUE(gradient.built);
      ASSERT_TRUE(succeeded(verify(*gradient.graph.module)));
      gradient.graph.module->walk([&](ReduceSumOp sum) {
        if (isa<FusedLoc>(sum.getLoc())) {
          EXPECT_GE(sum.getType().getElementType().getIntOrFloatBitWidth(), 32u);
        }
      });
    }
}
