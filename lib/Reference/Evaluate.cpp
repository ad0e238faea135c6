// The evaluator's driver: walks a block, keeps values, handles state and kernel groups, and hands every other op to the
// family of rules it belongs to.
#include "lib/Reference/Rules.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::reference {
namespace {

class Evaluator {
public:
  Evaluator(VariableState &variables, const EvaluateOptions &choices) : state(variables), options(choices) {}

  /// Binds the block's arguments and runs its ops; returns the terminator's operands.
  FailureOr<std::vector<HostTensor>> runBlock(Block &block, ArrayRef<const HostTensor *> arguments);

private:
  LogicalResult runOp(Operation &op);
  LogicalResult runRead(ReadOp op);
  LogicalResult runWrite(WriteOp op);
  LogicalResult runGroup(GroupOp op);
  LogicalResult runConstant(ConstantOp op);
  LogicalResult runRule(Operation &op);
  SmallVector<const HostTensor *> operands(Operation &op) const;

  /// std::map keeps addresses stable while values are added.
  std::map<void *, HostTensor> values;
  VariableState &state;
  const EvaluateOptions &options;
};

} // namespace

SmallVector<const HostTensor *> Evaluator::operands(Operation &op) const {
  SmallVector<const HostTensor *> tensors;
  for (Value operand : op.getOperands())
    tensors.push_back(&values.at(operand.getAsOpaquePointer()));
  return tensors;
}

FailureOr<std::vector<HostTensor>> Evaluator::runBlock(Block &block, ArrayRef<const HostTensor *> arguments) {
  for (auto [argument, tensor] : llvm::zip_equal(block.getArguments(), arguments))
    values[argument.getAsOpaquePointer()] = *tensor;
  for (Operation &op : block.without_terminator())
    if (failed(runOp(op)))
      return failure();
  std::vector<HostTensor> results;
  for (const HostTensor *tensor : operands(*block.getTerminator()))
    results.push_back(*tensor);
  return results;
}

LogicalResult Evaluator::runOp(Operation &op) {
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<VariableOp>([](auto) { return success(); })
      .Case<ReadOp>([&](auto read) { return runRead(read); })
      .Case<WriteOp>([&](auto write) { return runWrite(write); })
      .Case<GroupOp>([&](auto group) { return runGroup(group); })
      .Case<ConstantOp>([&](auto constant) { return runConstant(constant); })
      .Default([&](Operation *other) { return runRule(*other); });
}

LogicalResult Evaluator::runRead(ReadOp op) {
  auto found = state.find(op.getVariable().str());
  if (found == state.end())
    return op.emitOpError("variable @") << op.getVariable() << " has no value";
  if (found->second.type != op.getType())
    return op.emitOpError("variable @") << op.getVariable() << " holds " << found->second.type << ", expected "
                                        << op.getType();
  values[op.getResult().getAsOpaquePointer()] = found->second;
  return success();
}

LogicalResult Evaluator::runWrite(WriteOp op) {
  state[op.getVariable().str()] = values.at(op.getValue().getAsOpaquePointer());
  return success();
}

LogicalResult Evaluator::runConstant(ConstantOp op) {
  FailureOr<HostTensor> literal = fromAttribute(op.getValue());
  if (failed(literal))
    return op.emitOpError("cannot be evaluated: its literal is neither dense nor a dense resource");
  values[op.getResult().getAsOpaquePointer()] = std::move(*literal);
  return success();
}

LogicalResult Evaluator::runGroup(GroupOp op) {
  FailureOr<std::vector<HostTensor>> results = runBlock(op.getBody().front(), operands(*op));
  if (failed(results))
    return failure();
  for (auto [value, tensor] : llvm::zip_equal(op.getOutputs(), *results))
    values[value.getAsOpaquePointer()] = std::move(tensor);
  return success();
}

LogicalResult Evaluator::runRule(Operation &op) {
  SmallVector<HostTensor> results;
  for (Type type : op.getResultTypes())
    results.push_back(HostTensor::zeros(type));
  SmallVector<const HostTensor *> inputs = operands(op);
  Frame frame{&op, inputs, results};
  bool done = false;
  for (auto *rule : {evaluateElementwise, evaluateShape, evaluateMovement, evaluateLinear, evaluateConv, evaluateWhole,
                     evaluateAttention}) {
    FailureOr<bool> outcome = rule(frame);
    if (failed(outcome))
      return failure();
    if ((done = *outcome))
      break;
  }
  if (!done)
    return op.emitOpError("cannot be evaluated: expected an op of the graph dialect");
  for (auto [value, tensor] : llvm::zip_equal(op.getResults(), results)) {
    if (!options.exactDouble || !tensor.isFloat())
      roundInPlace(tensor);
    values[value.getAsOpaquePointer()] = std::move(tensor);
  }
  return success();
}

static HostTensor filled(RankedTensorType type, double value) {
  HostTensor tensor = HostTensor::zeros(type);
  std::fill(tensor.floats.begin(), tensor.floats.end(), value);
  std::fill(tensor.ints.begin(), tensor.ints.end(), static_cast<int64_t>(value));
  roundInPlace(tensor);
  return tensor;
}

VariableState initialState(ModuleOp module) {
  VariableState state;
  for (VariableOp variable : module.getOps<VariableOp>()) {
    std::string name = variable.getSymName().str();
    if (variable.getFill()) {
      state[name] = filled(variable.getTensorType(), variable.getFill()->convertToDouble());
    } else if (variable.getValue()) {
      FailureOr<HostTensor> literal = fromAttribute(*variable.getValue());
      if (succeeded(literal))
        state[name] = std::move(*literal);
    }
  }
  return state;
}

FailureOr<std::vector<HostTensor>> evaluate(func::FuncOp function, ArrayRef<HostTensor> inputs, VariableState &state,
                                            const EvaluateOptions &options) {
  if (!llvm::hasSingleElement(function.getBody()))
    return function.emitOpError("cannot be evaluated: expected one block, found ")
           << function.getBody().getBlocks().size();
  if (inputs.size() != function.getNumArguments())
    return function.emitOpError("cannot be evaluated: expected ")
           << function.getNumArguments() << " inputs, found " << inputs.size();
  SmallVector<const HostTensor *> arguments;
  for (auto [index, input] : llvm::enumerate(inputs)) {
    if (input.type != function.getArgument(index).getType())
      return function.emitOpError("cannot be evaluated: input ")
             << index << " has type " << input.type << ", expected " << function.getArgument(index).getType();
    arguments.push_back(&input);
  }
  return Evaluator(state, options).runBlock(function.getBody().front(), arguments);
}

} // namespace plimsoll::reference
