// A slow machine for plans. Kernels and library calls read all their operands before they write, so a wrong in-place
// offer is not seen here (Codegen's tests judge those); wrong addresses, orders, windows and lifetimes are.
#include "test/unit/Passes/PlanMachine.h"

#include "dialects/Graph/Graph.h"
#include "lib/Passes/Passes.h"
#include "lib/Passes/PlanProblem.h"
#include "runtime/Kernels/Reference.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace plimsoll::test {

PassContext::PassContext()
    : handler(&context, [this](Diagnostic &diagnostic) {
        messages += diagnostic.str() + "\n";
        return success();
      }) {
  context.loadDialect<graph::GraphDialect, plan::PlanDialect, func::FuncDialect>();
}

OwningOpRef<ModuleOp> parseModule(MLIRContext &context, StringRef text) {
  return parseSourceString<ModuleOp>(text, &context);
}

//===--- the target ---===//

FailureOr<KernelInfo> FakeTarget::addKernel(graph::GroupOp group, ArrayRef<OperandLayout> inputs,
                                            ArrayRef<OperandLayout> outputs) {
  if (refuseKernels)
    return group.emitOpError("has no code here");
  if (!kernels)
    kernels = ModuleOp::create(group.getLoc());
  std::string name = "k" + std::to_string(std::distance(kernels->getBody()->begin(), kernels->getBody()->end()));
  OpBuilder builder = OpBuilder::atBlockEnd(kernels->getBody());
  auto function = func::FuncOp::create(builder, group.getLoc(), name,
                                       builder.getFunctionType(group.getInputs().getTypes(), group.getResultTypes()));
  builder.setInsertionPointToStart(function.addEntryBlock());
  IRMapping map;
  map.map(group.getInputs(), function.getArguments());
  // The same value may be listed twice: the clone's operands are set one by one.
  Operation *clone = builder.clone(*group.getOperation());
  clone->setOperands(function.getArguments());
  func::ReturnOp::create(builder, group.getLoc(), clone->getResults());
  return KernelInfo{name, 1, 1};
}

Result<uint64_t> FakeTarget::workspaceBytes(const runtime::CallSpec &call) {
  calls.push_back(call);
  auto found = scratch.find(call.op);
  return found == scratch.end() ? uint64_t{0} : found->second;
}

//===--- the machine ---===//

static void fillAround(std::vector<char> &arena, plan::ProgramOp program) {
  std::vector<char> fresh(arena.size(), static_cast<char>(0xFF));
  for (auto buffer : program.getBody().getOps<plan::BufferOp>())
    std::copy_n(arena.begin() + static_cast<int64_t>(buffer.getOffset()), buffer.getBytes(),
                fresh.begin() + static_cast<int64_t>(buffer.getOffset()));
  arena = std::move(fresh);
}

PlanMachine::PlanMachine(plan::ProgramOp planned, FakeTarget &chosen, const Tensors &state)
    : program(planned), target(chosen) {
  arena.resize((*program.getBody().getOps<plan::ArenaOp>().begin()).getBytes());
  for (auto buffer : program.getBody().getOps<plan::BufferOp>()) {
    auto value = state.find(buffer.getSymName().str());
    if (value == state.end()) {
      ADD_FAILURE() << "no initial value of " << buffer.getSymName().str();
      continue;
    }
    std::vector<char> bytes = reference::toBytes(value->second);
    std::copy(bytes.begin(), bytes.end(), arena.begin() + static_cast<int64_t>(buffer.getOffset()));
  }
}

Tensors PlanMachine::state() {
  Tensors values;
  for (auto variable : program.getBody().getOps<plan::VariableOp>()) {
    auto buffer = program.lookupSymbol<plan::BufferOp>(variable.getBufferAttr());
    ArrayRef<char> bytes(arena.data() + buffer.getOffset(), buffer.getBytes());
    values.emplace(buffer.getSymName().str(), *reference::fromBytes(cast<RankedTensorType>(variable.getType()), bytes));
  }
  return values;
}

uint64_t PlanMachine::addressOf(plan::OperandAttr window) {
  auto buffer = current.lookupSymbol<plan::BufferOp>(window.getBuffer());
  if (!buffer)
    buffer = program.lookupSymbol<plan::BufferOp>(window.getBuffer());
  return buffer.getOffset() + static_cast<uint64_t>(window.getOffset());
}

// Calls `visit` with the byte address of each element, in row-major order.
static void forEachElement(plan::OperandAttr window, uint64_t base, size_t elementBytes,
                           function_ref<void(uint64_t)> visit) {
  reference::forEachIndex(window.getType().getShape(), [&](ArrayRef<int64_t> index) {
    int64_t at = 0;
    for (auto [i, stride] : llvm::zip_equal(index, window.getStrides()))
      at += i * stride;
    visit(base + static_cast<uint64_t>(at) * elementBytes);
  });
}

static size_t elementBytes(RankedTensorType type) {
  return std::max<size_t>(type.getElementType().getIntOrFloatBitWidth() / 8, 1);
}

HostTensor PlanMachine::load(plan::OperandAttr window) {
  std::vector<char> bytes;
  size_t size = elementBytes(window.getType());
  forEachElement(window, addressOf(window), size, [&](uint64_t at) {
    bytes.insert(bytes.end(), arena.begin() + static_cast<int64_t>(at),
                 arena.begin() + static_cast<int64_t>(at + size));
  });
  return *reference::fromBytes(window.getType(), bytes);
}

void PlanMachine::store(plan::OperandAttr window, const HostTensor &value) {
  std::vector<char> bytes = reference::toBytes(value);
  size_t size = elementBytes(window.getType());
  auto next = bytes.begin();
  forEachElement(window, addressOf(window), size, [&](uint64_t at) {
    std::copy_n(next, size, arena.begin() + static_cast<int64_t>(at));
    next += static_cast<int64_t>(size);
  });
}

void PlanMachine::launch(plan::LaunchOp op) {
  auto kernel = target.kernels->lookupSymbol<func::FuncOp>(op.getKernel());
  auto operands = llvm::to_vector(op.getArguments().getAsRange<plan::OperandAttr>());
  std::vector<HostTensor> inputs;
  for (size_t i = 0; i < kernel.getNumArguments(); ++i)
    inputs.push_back(load(operands[i]));
  reference::VariableState none;
  FailureOr<std::vector<HostTensor>> results = reference::evaluate(kernel, inputs, none);
  ASSERT_TRUE(succeeded(results));
  for (size_t i = 0; i < results->size(); ++i)
    store(operands[inputs.size() + i], (*results)[i]);
}

void PlanMachine::call(plan::CallOp op) {
  runtime::CallSpec spec;
  spec.op = op.getCallee().str();
  spec.attributes = artifactAttributes(op.getParameters().getValue());
  std::vector<void *> addresses;
  for (auto [index, operand] : llvm::enumerate(op.getArguments().getAsRange<plan::OperandAttr>())) {
    char *address = arena.data() + addressOf(operand);
    if (static_cast<int64_t>(index) == static_cast<int64_t>(op.getWorkspace())) {
      std::fill_n(address, operand.getType().getNumElements(), static_cast<char>(0xEE));
      continue;
    }
    ArrayRef<int64_t> shape = operand.getType().getShape(), strides = operand.getStrides();
    spec.operands.push_back({*artifactType(operand.getType().getElementType()),
                             {shape.begin(), shape.end()},
                             {strides.begin(), strides.end()},
                             static_cast<artifact::Access>(operand.getAccess())});
    addresses.push_back(address);
  }
  Result<std::unique_ptr<runtime::PreparedCall>> prepared = runtime::prepareReference(spec);
  ASSERT_TRUE(static_cast<bool>(prepared)) << prepared.status().message();
  (*prepared)->execute(addresses, nullptr);
}

void PlanMachine::execute(Operation &command) {
  if (auto op = dyn_cast<plan::LaunchOp>(command))
    launch(op);
  else if (auto library = dyn_cast<plan::CallOp>(command))
    call(library);
  else if (!isa<plan::BufferOp>(command))
    ADD_FAILURE() << "unexpected command " << command.getName().getStringRef().str();
}

Tensors PlanMachine::run(StringRef entry, const Tensors &inputs) {
  current = program.lookupSymbol<plan::EntryOp>(entry);
  Tensors results;
  if (!current) {
    ADD_FAILURE() << "no entry " << entry.str();
    return results;
  }
  fillAround(arena, program);
  for (auto port : current.getInputs().getAsRange<plan::PortAttr>())
    store(port.getView(), inputs.at(port.getName().str()));
  for (Operation &command : current.getBody().front())
    execute(command);
  for (auto port : current.getOutputs().getAsRange<plan::PortAttr>())
    results.emplace(port.getName().str(), load(port.getView()));
  return results;
}

//===--- the meaning ---===//

Tensors evaluateEntry(ModuleOp module, StringRef entry, const Tensors &inputs, Tensors &state) {
  auto function = module.lookupSymbol<func::FuncOp>(entry);
  std::vector<HostTensor> values;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto name = function.getArgAttrOfType<StringAttr>(i, "graph.name");
    values.push_back(inputs.at(name ? name.getValue().str() : "input" + std::to_string(i)));
  }
  FailureOr<std::vector<HostTensor>> results = reference::evaluate(function, values, state);
  Tensors named;
  if (failed(results)) {
    ADD_FAILURE() << "the reference cannot evaluate " << entry.str();
    return named;
  }
  for (unsigned i = 0; i < results->size(); ++i) {
    auto name = function.getResultAttrOfType<StringAttr>(i, "graph.name");
    named.emplace(name ? name.getValue().str() : "output" + std::to_string(i), (*results)[i]);
  }
  return named;
}

LogicalResult prepareForPlan(ModuleOp module) {
  PassManager fuse(module.getContext());
  fuse.addNestedPass<func::FuncOp>(createPlimsollFuse());
  if (failed(fuse.run(module)))
    return failure();
  outlineConstants(module);
  PassManager rest(module.getContext());
  rest.addNestedPass<func::FuncOp>(createPlimsollMaterialize());
  rest.addNestedPass<func::FuncOp>(createPlimsollSchedule());
  return rest.run(module);
}

} // namespace plimsoll::test
