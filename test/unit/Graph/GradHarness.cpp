// Gradient test harness: see GradHarness.h.
#include "test/unit/Graph/GradHarness.h"

#include "lib/Passes/Autodiff.h"

#include "mlir/Parser/Parser.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::test {

GraphContext::GraphContext() {
  context.disableMultithreading();
  context.loadDialect<GraphDialect, func::FuncDialect>();
}

GraphModule::GraphModule(MLIRContext &context, StringRef text) : module(parseSourceString<ModuleOp>(text, &context)) {}
func::FuncOp GraphModule::function() const { return module.get().lookupSymbol<func::FuncOp>("f"); }
std::string GraphModule::print() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags;
  module.get().print(stream, flags.enableDebugInfo());
  return text;
}

std::vector<HostTensor> makeInputs(func::FuncOp function, const std::vector<std::vector<double>> &numbers) {
  std::vector<HostTensor> inputs;
  for (auto [type, values] : llvm::zip_equal(function.getArgumentTypes(), numbers)) {
    HostTensor tensor = HostTensor::zeros(type);
    for (size_t i = 0; i < values.size(); ++i)
      if (tensor.isFloat())
        tensor.floats[i] = values[i];
      else
        tensor.ints[i] = static_cast<int64_t>(values[i]);
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

// Emits the weighted sum of the float results before the terminator.
static Value buildLoss(func::FuncOp function, const std::vector<std::vector<double>> &cotangents) {
  Operation *terminator = function.getBody().front().getTerminator();
  MLIRContext *context = function.getContext();
  Value loss;
  for (auto [index, result] : llvm::enumerate(terminator->getOperands())) {
    if (!isFloatTensor(result.getType()))
      continue;
    ImplicitLocOpBuilder builder(NameLoc::get(StringAttr::get(context, "loss" + std::to_string(index))), terminator);
    RankedTensorType type = tensorType(result);
    HostTensor weight = HostTensor::ofFloats(type, cotangents[index]);
    SmallVector<APFloat> numbers;
    for (double value : weight.floats) {
      numbers.emplace_back(value);
      bool losesInfo;
      numbers.back().convert(cast<FloatType>(type.getElementType()).getFloatSemantics(), APFloat::rmNearestTiesToEven,
                             &losesInfo);
    }
    Value constant = ConstantOp::create(builder, DenseElementsAttr::get(type, numbers));
    Value product = MulOp::create(builder, result, constant);
    Value wide = convert(builder, product, builder.getF64Type());
    Value sum = reduceSum(builder, wide, llvm::to_vector(llvm::seq<int64_t>(0, type.getRank())));
    loss = loss ? AddOp::create(builder, loss, sum).getResult() : sum;
  }
  return loss;
}

GradientFunction::GradientFunction(MLIRContext &context, StringRef text,
                                   const std::vector<std::vector<double>> &cotangents)
    : graph(context, text) {
  func::FuncOp function = graph.function();
  Value loss = buildLoss(function, cotangents);
  Operation *terminator = function.getBody().front().getTerminator();
  OpBuilder builder(terminator);
  SmallVector<Value> wrt(function.getArguments());
  FailureOr<SmallVector<Value>> gradients = differentiate(function, loss, Value(), wrt, builder);
  if (failed(gradients))
    return;
  SmallVector<Value> results;
  for (Value gradient : *gradients) {
    present.push_back(static_cast<bool>(gradient));
    if (gradient)
      results.push_back(gradient);
  }
  terminator->setOperands(results);
  function.setFunctionType(builder.getFunctionType(function.getArgumentTypes(), TypeRange(ValueRange(results))));
  built = true;
}

std::vector<std::vector<double>> GradientFunction::run(const std::vector<HostTensor> &inputs, bool exactDouble) const {
  reference::VariableState state;
  auto results = reference::evaluate(graph.function(), inputs, state, {exactDouble});
  std::vector<std::vector<double>> gradients(present.size());
  if (failed(results))
    return gradients;
  size_t next = 0;
  for (size_t argument = 0; argument < present.size(); ++argument)
    if (present[argument])
      gradients[argument] = (*results)[next++].floats;
  return gradients;
}

double lossOf(func::FuncOp function, const std::vector<HostTensor> &inputs,
              const std::vector<std::vector<double>> &cotangents) {
  reference::VariableState state;
  auto results = reference::evaluate(function, inputs, state, {/*exactDouble=*/true});
  if (failed(results))
    return std::numeric_limits<double>::quiet_NaN();
  double loss = 0;
  for (size_t index = 0; index < results->size(); ++index)
    for (size_t i = 0; i < (*results)[index].floats.size(); ++i)
      loss += cotangents[index][i] * (*results)[index].floats[i];
  return loss;
}

std::vector<double> differences(func::FuncOp function, std::vector<HostTensor> inputs, size_t argument,
                                const std::vector<std::vector<double>> &cotangents) {
  constexpr double step = 1e-3;
  std::vector<double> slopes;
  for (double &element : inputs[argument].floats) {
    double center = element;
    auto at = [&](double offset) {
      element = center + offset;
      return lossOf(function, inputs, cotangents);
    };
    slopes.push_back((8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step));
    element = center;
  }
  return slopes;
}

double relativeError(const std::vector<double> &a, const std::vector<double> &b) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (a.size() != b.size())
    return infinity;
  double scale = 1, largest = 0;
  for (double value : b)
    scale = std::isfinite(value) ? std::max(scale, std::fabs(value)) : scale;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(b[i]) && std::isfinite(a[i]))
      largest = std::max(largest, std::fabs(a[i] - b[i]) / scale);
    else if (!(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))))
      return infinity;
  }
  return largest;
}

static bool isTagged(Operation *op) {
  auto fused = dyn_cast<FusedLoc>(op->getLoc());
  return fused && fused.getMetadata() == StringAttr::get(op->getContext(), "gradient");
}

// The forward values an op's adjoint may read.
static SmallVector<Value> listedUses(Operation *op) {
  SmallVector<Value> listed;
  auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
  if (!differentiable)
    return listed;
  AdjointUses uses = differentiable.adjointUses();
  for (unsigned operand : uses.operands)
    listed.push_back(op->getOperand(operand));
  for (unsigned result : uses.results)
    listed.push_back(op->getResult(result));
  return listed;
}

std::string unlistedUse(func::FuncOp function) {
  Block &body = function.getBody().front();
  llvm::MapVector<Location, SmallVector<Value>> listed;
  for (Operation &op : body)
    if (!isTagged(&op))
      llvm::append_range(listed[op.getLoc()], listedUses(&op));
  for (Operation &op : body) {
    if (!isTagged(&op))
      continue;
    Location source = cast<FusedLoc>(op.getLoc()).getLocations().front();
    for (Value operand : op.getOperands()) {
      Operation *definition = operand.getDefiningOp();
      bool isForward = !definition || !isTagged(definition);
      if (!isForward || (definition && isa<ConstantOp>(definition)) || llvm::is_contained(listed[source], operand))
        continue;
      std::string text;
      llvm::raw_string_ostream(text) << op << " reads " << operand;
      return text;
    }
  }
  return {};
}

} // namespace plimsoll::test
