// Fusion and code generation together: functions of whole ops, adjoint formulas and updates run as fused kernels and
// directly in the reference evaluator.
#include "KernelHarness.h"

#include "lib/Passes/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <random>

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::codegen;
using namespace plimsoll::codegen::test;
using plimsoll::reference::HostTensor;

namespace {

OwningOpRef<ModuleOp> parse(MLIRContext &context, const std::string &text) {
  context.loadDialect<graph::GraphDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(module) << text;
  return module;
}

bool fuse(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.addNestedPass<func::FuncOp>(createPlimsollFuse());
  return succeeded(passes.run(module));
}

/// Runs one group's kernel on dense operands.
void runGroup(graph::GroupOp group, std::map<void *, HostTensor> &values) {
  CpuKernelModule module(group.getContext());
  SmallVector<OperandLayout> inputs, outputs;
  std::vector<OperandBuffer> buffers;
  std::vector<void *> operands;
  for (Value input : group.getInputs()) {
    inputs.push_back(layoutOf(graph::tensorType(input), Storage::Dense));
    buffers.emplace_back(graph::tensorType(input), inputs.back());
    buffers.back().set(values.at(input.getAsOpaquePointer()));
  }
  for (Value output : group.getOutputs()) {
    outputs.push_back(layoutOf(graph::tensorType(output), Storage::Dense));
    buffers.emplace_back(graph::tensorType(output), outputs.back());
  }
  FailureOr<KernelInfo> info = module.add(group, inputs, outputs);
  ASSERT_TRUE(succeeded(info));
  FailureOr<std::vector<uint8_t>> image = module.finish();
  ASSERT_TRUE(succeeded(image));
  LoadedModule loaded(*image);
  for (OperandBuffer &buffer : buffers)
    operands.push_back(buffer.data());
  loaded.find(info->symbol)(operands.data(), 0, info->extent);
  for (auto [i, output] : llvm::enumerate(group.getOutputs()))
    values[output.getAsOpaquePointer()] = buffers[inputs.size() + i].get();
}

HostTensor spread(graph::BroadcastOp op, const HostTensor &from) {
  HostTensor to = HostTensor::zeros(op.getType());
  reference::forEachIndex(op.getType().getShape(), [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> source;
    for (auto [d, target] : llvm::enumerate(op.getDims()))
      source.push_back(from.shape()[d] == 1 ? 0 : index[target]);
    to.floats[reference::linearIndex(index, to.shape())] = from.floats[reference::linearIndex(source, from.shape())];
  });
  return to;
}

/// Runs a fused function whose ops are groups, reshapes, broadcasts (of floats) and constants.
std::vector<HostTensor> runFused(func::FuncOp function, const std::vector<HostTensor> &inputs) {
  std::map<void *, HostTensor> values;
  for (auto [argument, tensor] : llvm::zip(function.getArguments(), inputs))
    values[argument.getAsOpaquePointer()] = tensor;
  std::vector<HostTensor> results;
  for (Operation &op : function.getBody().front()) {
    if (auto group = dyn_cast<graph::GroupOp>(op)) {
      runGroup(group, values);
    } else if (auto reshape = dyn_cast<graph::ReshapeOp>(op)) {
      HostTensor tensor = values.at(reshape.getOperand().getAsOpaquePointer());
      tensor.type = reshape.getType();
      values[reshape.getResult().getAsOpaquePointer()] = tensor;
    } else if (auto broadcast = dyn_cast<graph::BroadcastOp>(op)) {
      values[broadcast.getResult().getAsOpaquePointer()] =
          spread(broadcast, values.at(broadcast.getOperand().getAsOpaquePointer()));
    } else if (auto constant = dyn_cast<graph::ConstantOp>(op)) {
      values[constant.getResult().getAsOpaquePointer()] = *reference::fromAttribute(constant.getValue());
    } else {
      EXPECT_TRUE(isa<func::ReturnOp>(op)) << op.getName().getStringRef().str();
      for (Value operand : op.getOperands())
        results.push_back(values.at(operand.getAsOpaquePointer()));
    }
  }
  return results;
}

size_t groupsIn(func::FuncOp function) {
  return static_cast<size_t>(llvm::range_size(function.getOps<graph::GroupOp>()));
}

/// Expects the fused kernels' results within `relative` of each tensor's largest magnitude; `groups` as many kernels.
void check(const std::string &text, size_t groups, double relative) {
  SCOPED_TRACE(text);
  MLIRContext context;
  OwningOpRef<ModuleOp> plain = parse(context, text), fused = parse(context, text);
  ASSERT_TRUE(plain && fused && fuse(*fused));
  func::FuncOp original = *plain->getOps<func::FuncOp>().begin(), function = *fused->getOps<func::FuncOp>().begin();
  EXPECT_EQ(groupsIn(function), groups);
  std::vector<HostTensor> inputs;
  for (Type type : original.getArgumentTypes())
    inputs.push_back(randomTensor(cast<RankedTensorType>(type), inputs.size() + 21));
  reference::VariableState state;
  FailureOr<std::vector<HostTensor>> expected = reference::evaluate(original, inputs, state, {/*exactDouble=*/true});
  ASSERT_TRUE(succeeded(expected));
  std::vector<HostTensor> found = runFused(function, inputs);
  ASSERT_EQ(found.size(), expected->size());
  for (size_t i = 0; i < found.size(); ++i) {
    double largest = 0;
    for (double value : (*expected)[i].floats)
      largest = std::max(largest, std::abs(value));
    expectNear(found[i], (*expected)[i], 0, relative * largest);
  }
}

std::string unary(const std::string &op, const std::string &type, const std::string &attributes = "") {
  return "func.func @f(%x: " + type + ") -> " + type + " {\n  %y = graph." + op + " %x" + attributes + " : " + type +
         "\n  return %y : " + type + "\n}";
}

} // namespace

// Bounds: a handful of roundings of 6e-8 each; statistics add their own.
TEST(Fused, Activations) {
  for (const char *type : {"tensor<7x33xf32>", "tensor<5xf32>", "tensor<2x3x4xf32>"}) {
    check(unary("gelu", type), 1, 3e-7);
    check(unary("gelu", type, " {approximate = true}"), 1, 3e-7);
    check(unary("silu", type), 1, 3e-7);
  }
}

TEST(Fused, SoftmaxAlongEveryAxis) {
  for (int axis = 0; axis < 3; ++axis)
    for (const char *op : {"softmax", "log_softmax"})
      check(unary(op, "tensor<5x17x9xf32>", " axis " + std::to_string(axis)), 1, 4e-7);
  check(unary("softmax", "tensor<1x1x1000xf32>", " axis 2"), 1, 4e-7);
  check(unary("softmax", "tensor<3x1xf32>", " axis 1"), 1, 4e-7);
}

TEST(Fused, Norms) {
  check(
      R"(func.func @f(%x: tensor<3x5x77xf32>, %g: tensor<77xf32>) -> (tensor<3x5x77xf32>, tensor<3x5xf32>, tensor<3x5xf32>) {
    %n, %m, %s = graph.layer_norm %x axis 2 eps 1.0e-5 : (tensor<3x5x77xf32>) -> (tensor<3x5x77xf32>, tensor<3x5xf32>, tensor<3x5xf32>)
    %gb = graph.broadcast %g [2] : tensor<77xf32> -> tensor<3x5x77xf32>
    %y = graph.mul %n, %gb : tensor<3x5x77xf32>
    return %y, %m, %s : tensor<3x5x77xf32>, tensor<3x5xf32>, tensor<3x5xf32>
  })",
      1, 1e-6);
  check(R"(func.func @f(%x: tensor<4x3x8xf32>) -> (tensor<4x3x8xf32>, tensor<4xf32>) {
    %n, %s = graph.rms_norm %x axis 1 eps 1.0e-5 : (tensor<4x3x8xf32>) -> (tensor<4x3x8xf32>, tensor<4xf32>)
    return %n, %s : tensor<4x3x8xf32>, tensor<4xf32>
  })",
        1, 1e-6);
  check(R"(func.func @f(%x: tensor<4x3x5x5xf32>) -> (tensor<4x3x5x5xf32>, tensor<3xf32>, tensor<3xf32>) {
    %n, %m, %v = graph.batch_norm %x eps 1.0e-5 : (tensor<4x3x5x5xf32>) -> (tensor<4x3x5x5xf32>, tensor<3xf32>, tensor<3xf32>)
    return %n, %m, %v : tensor<4x3x5x5xf32>, tensor<3xf32>, tensor<3xf32>
  })",
        1, 1e-6);
}

TEST(Fused, HalfTypesKeepTheirStatisticsInFp32) {
  for (auto [type, bound] : {std::pair("f16", 1e-3), std::pair("bf16", 8e-3)}) {
    std::string tensor = std::string("tensor<6x50x") + type + ">";
    check(unary("softmax", tensor, " axis 1"), 1, bound);
    check(unary("gelu", tensor), 1, bound);
    check("func.func @f(%x: " + tensor + ") -> (" + tensor +
              ", tensor<6xf32>) {\n  %n, %m, %s = graph.layer_norm %x axis 1 eps 1.0e-5 : (" + tensor + ") -> (" +
              tensor + ", tensor<6xf32>, tensor<6xf32>)\n  return %n, %s : " + tensor + ", tensor<6xf32>\n}",
          1, bound);
  }
}

TEST(Fused, CrossEntropyAndItsGradient) {
  check(R"(func.func @f(%x: tensor<9x4xf32>, %l: tensor<9xi64>, %c: tensor<9xf32>) -> (tensor<9xf32>, tensor<9x4xf32>) {
    %loss, %lse = graph.cross_entropy %x, %l ignore 2 : (tensor<9x4xf32>, tensor<9xi64>) -> (tensor<9xf32>, tensor<9xf32>)
    %g = graph.cross_entropy_grad %x, %l, %lse, %c ignore 2 : (tensor<9x4xf32>, tensor<9xi64>, tensor<9xf32>, tensor<9xf32>) -> tensor<9x4xf32>
    return %loss, %g : tensor<9xf32>, tensor<9x4xf32>
  })",
        1, 5e-7);
}

namespace {

/// Grows a random function over an (R, C) space: elementwise ops, row and column statistics, broadcasts back.
class RandomFunction {
public:
  explicit RandomFunction(uint64_t seed) : random(seed), rows(1 + pick(12)), columns(1 + pick(90)) {}

  std::string text() {
    full = {"%x", "%y"};
    row = {"%r"};
    column = {"%c"};
    for (int i = 0; i < 14; ++i)
      step("%v" + std::to_string(i));
    std::string arguments =
        "%x: " + fullType() + ", %y: " + fullType() + ", %r: " + rowType() + ", %c: " + columnType();
    return "func.func @f(" + arguments + ") -> (" + fullType() + ", " + fullType() + ", " + rowType() + ", " +
           columnType() + ") {\n" + body + "  return " + full.back() + ", " + full[full.size() / 2] + ", " +
           row.back() + ", " + column.back() + " : " + fullType() + ", " + fullType() + ", " + rowType() + ", " +
           columnType() + "\n}";
  }

private:
  size_t pick(size_t n) { return random() % n; }
  const std::string &any(const std::vector<std::string> &from) { return from[pick(from.size())]; }
  std::string size(int64_t n) const { return std::to_string(n) + "x"; }
  std::string fullType() const { return "tensor<" + size(rows) + size(columns) + "f32>"; }
  std::string rowType() const { return "tensor<" + size(rows) + "f32>"; }
  std::string columnType() const { return "tensor<" + size(columns) + "f32>"; }
  void emit(std::vector<std::string> &to, const std::string &name, const std::string &rest) {
    body += "  " + name + " = graph." + rest + "\n";
    to.push_back(name);
  }
  std::string formula(const std::vector<std::string> &from, const std::string &type) {
    static const char *unaries[] = {"tanh", "neg", "sigmoid", "relu", "abs"};
    static const char *binaries[] = {"add", "sub", "mul", "maximum"};
    if (pick(2))
      return std::string(unaries[pick(5)]) + " " + any(from) + " : " + type;
    std::string left = any(from), right = any(from);
    return std::string(binaries[pick(4)]) + " " + left + ", " + right + " : " + type;
  }
  void step(const std::string &name) {
    switch (pick(9)) {
    case 0:
      return emit(row, name, "reduce_max " + any(full) + " [1] : " + fullType() + " -> " + rowType());
    case 1:
      return emit(column, name, "reduce_max " + any(full) + " [0] : " + fullType() + " -> " + columnType());
    case 2:
      return emit(full, name, "broadcast " + any(row) + " [0] : " + rowType() + " -> " + fullType());
    case 3:
      return emit(full, name, "broadcast " + any(column) + " [1] : " + columnType() + " -> " + fullType());
    case 4:
      return emit(row, name, formula(row, rowType()));
    case 5:
      return emit(column, name, "sigmoid " + any(column) + " : " + columnType());
    default:
      return emit(full, name, formula(full, fullType()));
    }
  }

  std::mt19937_64 random;
  int64_t rows, columns;
  std::string body;
  std::vector<std::string> full, row, column;
};

} // namespace

// The number of groups is fusion's choice here; the values are not.
TEST(Fused, RandomFunctions) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::string text = RandomFunction(seed).text();
    MLIRContext context;
    OwningOpRef<ModuleOp> module = parse(context, text);
    ASSERT_TRUE(module && fuse(*module)) << text;
    check(text, groupsIn(*module->getOps<func::FuncOp>().begin()), 5e-6);
  }
}
