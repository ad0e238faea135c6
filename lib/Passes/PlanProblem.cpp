// From values to storages and commands.
// Every op result that is not a view gets a storage. A result that replaces a variable is computed straight into the
// variable's storage when nobody reads the old value afterwards; otherwise a copy follows at the end of the entry,
// where every reader is done.
#include "lib/Passes/PlanProblem.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::graph;
using planner::AccessMode;
using planner::StorageClass;
using planner::StorageId;

std::string plimsoll::locationName(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location inner : fused.getLocations())
      if (std::string name = locationName(inner); !name.empty())
        return name;
  return "";
}

std::optional<artifact::DType> plimsoll::artifactType(Type element) {
  if (element.isF32())
    return artifact::DType::F32;
  if (element.isF64())
    return artifact::DType::F64;
  if (element.isF16())
    return artifact::DType::F16;
  if (element.isBF16())
    return artifact::DType::BF16;
  auto integer = dyn_cast<IntegerType>(element);
  switch (integer ? integer.getWidth() : 0) {
  case 1:
    return artifact::DType::Bool;
  case 8:
    return integer.isUnsigned() ? artifact::DType::U8 : artifact::DType::I8;
  case 16:
    return artifact::DType::I16;
  case 32:
    return artifact::DType::I32;
  case 64:
    return artifact::DType::I64;
  default:
    return std::nullopt;
  }
}

std::vector<artifact::AttributeT> plimsoll::artifactAttributes(ArrayRef<NamedAttribute> parameters) {
  std::vector<artifact::AttributeT> attributes;
  for (NamedAttribute parameter : parameters) {
    artifact::AttributeT attribute;
    attribute.key = parameter.getName().str();
    if (auto array = dyn_cast<DenseI64ArrayAttr>(parameter.getValue()))
      attribute.ints.assign(array.asArrayRef().begin(), array.asArrayRef().end());
    else if (auto integer = dyn_cast<IntegerAttr>(parameter.getValue()))
      attribute.ints.push_back(integer.getType().isInteger(1) ? integer.getValue().getZExtValue()
                                                              : integer.getValue().getSExtValue());
    else if (auto real = dyn_cast<FloatAttr>(parameter.getValue()))
      attribute.floats.push_back(real.getValueAsDouble());
    attributes.push_back(std::move(attribute));
  }
  return attributes;
}

static StorageClass classOf(VariableKind kind) {
  switch (kind) {
  case VariableKind::Parameter:
    return StorageClass::Parameter;
  case VariableKind::OptimizerState:
    return StorageClass::OptimizerState;
  case VariableKind::ModelState:
    return StorageClass::ModelState;
  case VariableKind::StepState:
    return StorageClass::StepState;
  case VariableKind::GradientAccumulator:
    return StorageClass::Gradient;
  case VariableKind::Constant:
    return StorageClass::Constant;
  }
  return StorageClass::Activation;
}

static uint64_t elementBytes(Type type) {
  return std::max<uint64_t>(cast<RankedTensorType>(type).getElementType().getIntOrFloatBitWidth() / 8, 1);
}

// Autodiff tags the locations of what it builds; those values are the gradients of the memory breakdown.
static bool isGradient(Location loc) {
  auto fused = dyn_cast<FusedLoc>(loc);
  auto tag = fused ? dyn_cast_or_null<StringAttr>(fused.getMetadata()) : StringAttr();
  return tag && tag.getValue() == "gradient";
}

static void collectUsers(Value value, SmallVectorImpl<OpOperand *> &uses) {
  for (OpOperand &use : value.getUses()) {
    if (use.getOwner()->hasTrait<GraphView>())
      collectUsers(use.getOwner()->getResult(0), uses);
    else
      uses.push_back(&use);
  }
}

namespace {
class EntryReader {
public:
  EntryReader(func::FuncOp entry, CompileTarget &chosen, const CostModel &model, uint64_t alignment)
      : function(entry), target(chosen), costs(model) {
    draft.problem.alignment = alignment;
  }

  FailureOr<EntryDraft> read() {
    if (failed(checkState()))
      return failure();
    addVariables();
    addInputs();
    assignWrites();
    for (Operation &op : function.getBody().front().without_terminator())
      if (failed(readOp(&op)))
        return failure();
    for (WriteOp write : lateWrites)
      if (failed(emitWrite(write)))
        return failure();
    addOutputs();
    return std::move(draft);
  }

private:
  // A read is the variable's storage itself, so it must mean the value from before the entry: reads first, one write
  // per variable, nothing written or returned that a write could change under its reader.
  LogicalResult checkState() {
    llvm::StringSet<> written;
    for (Operation &op : function.getBody().front()) {
      if (!llvm::all_of(op.getOperands(), [](Value operand) { return windowOf(operand).has_value(); }))
        return op.emitOpError("takes a view that strides cannot express (run --plimsoll-materialize)");
      if (auto read = dyn_cast<ReadOp>(op); read && written.contains(read.getVariable()))
        return read.emitOpError("reads @")
               << read.getVariable()
               << " after it was written; expected every read first (run --plimsoll-training-step)";
      auto write = dyn_cast<WriteOp>(op);
      if (!write)
        continue;
      if (!written.insert(write.getVariable()).second)
        return write.emitOpError("writes @")
               << write.getVariable() << " a second time; expected one write per entry (run --plimsoll-training-step)";
      if (!hasOwnStorage(write.getValue()))
        return write.emitOpError("writes a value without storage of its own (run --plimsoll-materialize)");
    }
    for (Value value : function.getBody().front().getTerminator()->getOperands())
      if (auto read = windowOf(value)->base.getDefiningOp<ReadOp>(); read && written.contains(read.getVariable()))
        return emitError(value.getLoc()) << "returns the old value of @" << read.getVariable()
                                         << ", which is written (run --plimsoll-materialize)";
    return success();
  }

  //===--- storages ---===//
  void addVariables() {
    for (auto variable : function->getParentOfType<ModuleOp>().getOps<VariableOp>()) {
      StorageId id = draft.problem.addStorage(variable.getSymName().str(), tensorBytes(variable.getType()),
                                              classOf(variable.getKind()), variable.getSymName().str());
      draft.problem.storages[id].persistent = true;
      variables[variable.getSymName()] = id;
      names.insert(variable.getSymName());
    }
    for (ReadOp read : function.getBody().front().getOps<ReadOp>())
      storages[read.getResult()] = variables.lookup(read.getVariable());
  }

  void addInputs() {
    for (BlockArgument argument : function.getArguments()) {
      auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "graph.name");
      std::string port = name ? name.getValue().str() : "input" + std::to_string(argument.getArgNumber());
      StorageId id = draft.problem.addStorage(freshName("input." + port), tensorBytes(argument.getType()),
                                              StorageClass::Input, port);
      storages[argument] = id;
      draft.problem.inputs.push_back(id);
      draft.inputs.push_back({port, whole(id, argument.getType(), AccessMode::Write)});
    }
  }

  StorageId storageOf(Value base) {
    auto [entry, isNew] = storages.try_emplace(base, planner::noStorage);
    if (isNew) {
      StorageClass kind = isGradient(base.getLoc()) ? StorageClass::Gradient : StorageClass::Activation;
      std::string name = freshName("t" + std::to_string(draft.problem.storages.size()));
      entry->second =
          draft.problem.addStorage(std::move(name), tensorBytes(base.getType()), kind, locationName(base.getLoc()));
    }
    return entry->second;
  }

  // Names of the model come first; ours give way.
  std::string freshName(std::string name) {
    while (!names.insert(name).second)
      name += "_";
    return name;
  }

  //===--- windows ---===//
  CommandOperand whole(StorageId storage, Type type, AccessMode access) {
    auto tensor = cast<RankedTensorType>(type);
    return {storage, access, tensor, 0, denseStrides(tensor.getShape())};
  }
  CommandOperand window(Value value, AccessMode access) {
    StorageWindow found = *windowOf(value);
    auto bytes = static_cast<int64_t>(elementBytes(value.getType()));
    return {storageOf(found.base), access, tensorType(value), found.offset * bytes, found.strides};
  }

  //===--- state writes ---===//
  // Whether an op other than `producer` uses the variable's old value at or after `point`.
  bool isReadFrom(Operation *point, StringRef variable, Operation *producer = nullptr) {
    for (ReadOp read : function.getBody().front().getOps<ReadOp>()) {
      if (read.getVariable() != variable)
        continue;
      SmallVector<OpOperand *> uses;
      collectUsers(read.getResult(), uses);
      for (OpOperand *use : uses)
        if (use->getOwner() != producer && !use->getOwner()->isBeforeInBlock(point))
          return true;
    }
    return false;
  }

  // Whether the producer of `value` may put it straight over the old value of the variable: every other use of the old
  // value comes earlier, and its own uses read an element before that element is replaced.
  bool replacesInPlace(WriteOp write, OpResult value) {
    Operation *producer = value.getOwner();
    if (isReadFrom(producer, write.getVariable(), producer))
      return false;
    return llvm::all_of(producer->getOpOperands(), [&](OpOperand &use) {
      auto read = windowOf(use.get())->base.getDefiningOp<ReadOp>();
      return !read || read.getVariable() != write.getVariable() || readsBeforeWriting(use, value);
    });
  }
  static bool readsBeforeWriting(OpOperand &use, OpResult result) {
    auto inPlace = dyn_cast<InPlaceOpInterface>(use.getOwner());
    return inPlace && isWholeStorage(use.get()) &&
           llvm::is_contained(inPlace.inPlaceOperands(result.getResultNumber()), use.getOperandNumber());
  }

  void assignWrites() {
    for (WriteOp write : function.getBody().front().getOps<WriteOp>()) {
      Value base = windowOf(write.getValue())->base;
      if (isSplat(base.getDefiningOp())) {
        if (isReadFrom(write, write.getVariable()))
          lateWrites.push_back(write);
      } else if (auto sum = dyn_cast_or_null<DotAddOp>(base.getDefiningOp()); sum && sumsInVariable(write, sum)) {
        for (; sum; sum = sum.getAccumulator().getDefiningOp<DotAddOp>())
          storages[sum.getResult()] = variables.lookup(write.getVariable());
      } else if (isa_and_nonnull<GroupOp>(base.getDefiningOp()) && !storages.contains(base) &&
                 replacesInPlace(write, cast<OpResult>(base))) {
        storages[base] = variables.lookup(write.getVariable());
      } else {
        lateWrites.push_back(write);
      }
    }
  }
  // Whether `last` ends a chain of dot_adds that starts from the variable's old value and that nothing else looks into:
  // all of it can then happen in the variable.
  bool sumsInVariable(WriteOp write, DotAddOp last) {
    DotAddOp first = last;
    auto isPrivate = [](Value value) { return value.hasOneUse(); };
    while (isPrivate(first.getResult()) && first.getAccumulator().getDefiningOp<DotAddOp>())
      first = first.getAccumulator().getDefiningOp<DotAddOp>();
    auto read = first.getAccumulator().getDefiningOp<ReadOp>();
    if (!isPrivate(first.getResult()) || !read || read.getVariable() != write.getVariable() ||
        storages.contains(last.getResult()) || isReadFrom(first, write.getVariable(), first))
      return false;
    auto readsIt = [&](Value operand) { return windowOf(operand)->base == read.getResult(); };
    return !readsIt(first.getLhs()) && !readsIt(first.getRhs());
  }
  static bool isSplat(Operation *op) {
    auto constant = dyn_cast_or_null<ConstantOp>(op);
    auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
    return elements && elements.isSplat();
  }

  //===--- commands ---===//
  LogicalResult readOp(Operation *op) {
    if (op->hasTrait<GraphView>() || isa<ReadOp>(op))
      return success();
    if (auto write = dyn_cast<WriteOp>(op))
      return isSplat(write.getValue().getDefiningOp()) && !llvm::is_contained(lateWrites, write) ? emitWrite(write)
                                                                                                 : success();
    if (auto group = dyn_cast<GroupOp>(op))
      return readGroup(group);
    if (auto concat = dyn_cast<ConcatOp>(op))
      return readConcat(concat);
    if (auto pad = dyn_cast<PadOp>(op))
      return readPad(pad);
    if (isSplat(op) && llvm::all_of(op->getUsers(), [](Operation *user) { return isa<WriteOp>(user); }))
      return success();
    if (auto sum = dyn_cast<DotAddOp>(op))
      return readDotAdd(sum);
    if (op->hasTrait<GraphLibrary>())
      return readLibrary(op);
    return op->emitOpError(
        "has no command; expected a kernel group, library operation or view here (run --plimsoll-fuse first)");
  }

  // The command that brings a value into its variable: a fill for a splat, else a copy.
  LogicalResult emitWrite(WriteOp write) {
    Operation *producer = write.getValue().getDefiningOp();
    CommandOperand into = whole(variables.lookup(write.getVariable()), write.getValue().getType(), AccessMode::Write);
    if (!isSplat(producer))
      return addCall("copy", {window(write.getValue(), AccessMode::Read), into}, {}, write.getLoc());
    auto splat = cast<DenseElementsAttr>(cast<ConstantOp>(producer).getValue());
    double value = isFloatTensor(splat.getType()) ? splat.getSplatValue<APFloat>().convertToDouble()
                                                  : static_cast<double>(splat.getSplatValue<APInt>().getSExtValue());
    return addCall("fill", {into}, {parameter("value", Builder(write.getContext()).getF64FloatAttr(value))},
                   write.getLoc());
  }

  LogicalResult readGroup(GroupOp group) {
    CommandDraft command;
    SmallVector<OperandLayout> inputs, outputs;
    for (Value input : group.getInputs()) {
      command.operands.push_back(window(input, AccessMode::Read));
      inputs.push_back({command.operands.back().strides});
    }
    for (Value output : group.getOutputs()) {
      command.operands.push_back(window(output, AccessMode::Write));
      outputs.push_back({command.operands.back().strides});
    }
    FailureOr<KernelInfo> kernel = target.addKernel(group, inputs, outputs);
    if (failed(kernel))
      return failure();
    command.kernel = kernel->symbol;
    command.extent = kernel->extent;
    command.grain = kernel->grain;
    command.label = locationName(group.getLoc());
    addCommand(std::move(command), 0, group);
    return success();
  }

  LogicalResult readLibrary(Operation *op) {
    SmallVector<CommandOperand> operands;
    SmallVector<NamedAttribute> parameters;
    for (NamedAttribute attribute : op->getAttrDictionary())
      if (!llvm::is_contained({"trans_a", "trans_b", "value"}, attribute.getName()))
        parameters.push_back(attribute);
    for (Value operand : op->getOperands())
      operands.push_back(window(operand, AccessMode::Read));
    if (auto dot = dyn_cast<DotOp>(op))
      transposeMatrices(dot, operands);
    if (isa<AttentionOp, AttentionGradOp>(op))
      spreadMask(op, operands, parameters);
    for (Value result : op->getResults())
      operands.push_back(window(result, AccessMode::Write));
    return addCall(op->getName().stripDialect(), std::move(operands), parameters, op->getLoc(), op);
  }

  static void swapMatrix(CommandOperand &operand) {
    SmallVector<int64_t> shape(operand.type.getShape());
    size_t rank = shape.size();
    std::swap(shape[rank - 1], shape[rank - 2]);
    std::swap(operand.strides[rank - 1], operand.strides[rank - 2]);
    operand.type = tensorLike(operand.type, shape);
  }
  template <typename DotLike> static void transposeMatrices(DotLike dot, MutableArrayRef<CommandOperand> operands) {
    if (dot.getTransA())
      swapMatrix(operands[0]);
    if (dot.getTransB())
      swapMatrix(operands[1]);
  }

  // The call adds to what its result holds: the accumulator's own bytes when this is their last use, else a copy.
  LogicalResult readDotAdd(DotAddOp sum) {
    Value accumulator = sum.getAccumulator();
    StorageWindow old = *windowOf(accumulator);
    StorageId from = storageOf(old.base);
    bool isAssigned = storages.contains(sum.getResult());
    bool takesOver = !isAssigned && isWholeStorage(accumulator) && !draft.problem.storages[from].persistent &&
                     !isa<BlockArgument>(old.base) && isLastUse(sum, old.base);
    if (takesOver)
      storages[sum.getResult()] = from;
    CommandOperand into = window(sum.getResult(), AccessMode::Write);
    if (into.storage != from &&
        failed(addCall("copy", {window(accumulator, AccessMode::Read), into}, {}, sum.getLoc())))
      return failure();
    into.access = AccessMode::ReadWrite;
    SmallVector<CommandOperand> operands{window(sum.getLhs(), AccessMode::Read), window(sum.getRhs(), AccessMode::Read),
                                         into};
    transposeMatrices(sum, operands);
    return addCall("dot", std::move(operands),
                   {parameter("accumulate", Builder(sum.getContext()).getI64IntegerAttr(1))}, sum.getLoc(), sum);
  }
  // Whether only the accumulator operand of `op` looks at `base` from `op` on.
  static bool isLastUse(DotAddOp op, Value base) {
    SmallVector<OpOperand *> uses;
    collectUsers(base, uses);
    return llvm::all_of(uses, [&](OpOperand *use) {
      return use->getOwner() == op ? use->getOperandNumber() == 2 : use->getOwner()->isBeforeInBlock(op);
    });
  }

  // Gives the mask the full shape of the scores, size-1 dimensions by stride 0.
  void spreadMask(Operation *op, MutableArrayRef<CommandOperand> operands,
                  SmallVectorImpl<NamedAttribute> &parameters) {
    auto gradient = dyn_cast<AttentionGradOp>(op);
    Value mask = gradient ? gradient.getMask() : cast<AttentionOp>(op).getMask();
    parameters.push_back(parameter("has_mask", Builder(op->getContext()).getI64IntegerAttr(mask ? 1 : 0)));
    if (!mask)
      return;
    size_t first = gradient ? 1 : 0;
    CommandOperand &operand = operands[first + 3];
    ArrayRef<int64_t> q = operands[first].type.getShape();
    int64_t full[] = {q[0], q[1], q[2], operands[first + 1].type.getDimSize(2)};
    for (size_t d = 0; d < 4; ++d)
      if (operand.type.getDimSize(d) == 1 && full[d] != 1)
        operand.strides[d] = 0;
    operand.type = tensorLike(operand.type, full);
  }

  // Concatenation is copies into slices of the result.
  LogicalResult readConcat(ConcatOp concat) {
    int64_t at = 0;
    for (Value piece : concat.getOperands()) {
      CommandOperand into = window(concat.getResult(), AccessMode::Write);
      into.type = tensorType(piece);
      into.offsetBytes += at * into.strides[concat.getAxis()] * static_cast<int64_t>(elementBytes(piece.getType()));
      at += into.type.getDimSize(concat.getAxis());
      if (failed(addCall("copy", {window(piece, AccessMode::Read), into}, {}, concat.getLoc())))
        return failure();
    }
    return success();
  }

  // Padding is a fill of the whole, then a copy into the window; both write pieces of one storage.
  LogicalResult readPad(PadOp pad) {
    CommandOperand all = window(pad.getResult(), AccessMode::Write), inner = all;
    inner.type = pad.getOperand().getType();
    for (auto [d, low] : llvm::enumerate(pad.getLow())) {
      inner.offsetBytes += low * all.strides[d] * static_cast<int64_t>(elementBytes(pad.getType()));
      inner.strides[d] *= pad.getInterior()[d] + 1;
    }
    if (failed(addCall("fill", {all}, {parameter("value", pad.getValueAttr())}, pad.getLoc())))
      return failure();
    return addCall("copy", {window(pad.getOperand(), AccessMode::Read), inner}, {}, pad.getLoc());
  }

  NamedAttribute parameter(StringRef name, Attribute value) {
    return Builder(function.getContext()).getNamedAttr(name, value);
  }

  LogicalResult addCall(StringRef callee, SmallVector<CommandOperand> operands, ArrayRef<NamedAttribute> parameters,
                        Location loc, Operation *op = nullptr) {
    runtime::CallSpec spec;
    spec.op = callee.str();
    spec.attributes = artifactAttributes(parameters);
    for (const CommandOperand &operand : operands) {
      std::optional<artifact::DType> type = artifactType(operand.type.getElementType());
      if (!type)
        return emitError(loc) << "element type " << operand.type.getElementType() << " has no run-time form";
      ArrayRef<int64_t> shape = operand.type.getShape();
      auto access = static_cast<artifact::Access>(operand.access == AccessMode::Read    ? 1
                                                  : operand.access == AccessMode::Write ? 2
                                                                                        : 3);
      spec.operands.push_back(
          {*type, {shape.begin(), shape.end()}, {operand.strides.begin(), operand.strides.end()}, access});
    }
    Result<uint64_t> workspace = target.workspaceBytes(spec);
    if (!workspace)
      return emitError(loc) << "library operation " << callee << ": " << workspace.status().message();
    CommandDraft command;
    command.callee = callee.str();
    command.operands = std::move(operands);
    command.parameters.assign(parameters.begin(), parameters.end());
    command.label = locationName(loc);
    addCommand(std::move(command), *workspace, op);
    return success();
  }

  void addCommand(CommandDraft command, uint64_t workspace, Operation *op) {
    planner::Step step;
    step.name =
        std::to_string(draft.commands.size()) + "." + (command.kernel.empty() ? command.callee : command.kernel);
    step.workspaceBytes = workspace;
    step.costSeconds = costs.seconds(workOf(command, op));
    for (const CommandOperand &operand : command.operands)
      addAccess(step, operand);
    if (op)
      offerInPlace(step, op);
    draft.problem.steps.push_back(std::move(step));
    draft.commands.push_back(std::move(command));
  }

  // The windows' bytes, or what the op says it moves if that is less (a gather reads only some rows of its table).
  CommandWork workOf(const CommandDraft &command, Operation *op) const {
    CommandWork work;
    for (const CommandOperand &operand : command.operands)
      work.bytes += windowBytes(operand.type, operand.strides);
    if (auto costly = dyn_cast_or_null<CostOpInterface>(op)) {
      OpCost cost = costly.cost();
      work.bytes = std::min(work.bytes, cost.bytesRead + cost.bytesWritten);
      work.arithmeticSeconds = costs.arithmeticSeconds(op);
    }
    return work;
  }

  static void addAccess(planner::Step &step, const CommandOperand &operand) {
    for (planner::Access &access : step.accesses)
      if (access.storage == operand.storage) {
        if (access.mode != operand.access)
          access.mode = AccessMode::ReadWrite;
        return;
      }
    step.accesses.push_back({operand.storage, operand.access});
  }

  // Offers result r the storage of operand o when every use the op makes of that storage reads an element before
  // writing it.
  void offerInPlace(planner::Step &step, Operation *op) {
    auto inPlace = dyn_cast<InPlaceOpInterface>(op);
    if (!inPlace || isa<DotAddOp>(op)) // its command changes one storage; readDotAdd() chose it
      return;
    for (OpResult result : op->getResults()) {
      StorageId into = storageOf(result);
      for (unsigned candidate : inPlace.inPlaceOperands(result.getResultNumber())) {
        StorageId from = storageOf(windowOf(op->getOperand(candidate))->base);
        if (draft.problem.storages[from].persistent || draft.problem.storages[into].persistent ||
            !allReadBeforeWriting(op, result, from))
          continue;
        planner::InPlaceCandidate offer{from, into};
        if (!llvm::is_contained(step.inPlace, offer))
          step.inPlace.push_back(offer);
      }
    }
  }
  bool allReadBeforeWriting(Operation *op, OpResult result, StorageId from) {
    return llvm::all_of(op->getOpOperands(), [&](OpOperand &use) {
      return storageOf(windowOf(use.get())->base) != from || readsBeforeWriting(use, result);
    });
  }

  //===--- boundary ---===//
  void addOutputs() {
    Operation *terminator = function.getBody().front().getTerminator();
    for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
      auto name = function.getResultAttrOfType<StringAttr>(index, "graph.name");
      CommandOperand view = window(value, AccessMode::Read);
      draft.outputs.push_back({name ? name.getValue().str() : "output" + std::to_string(index), view});
      if (!llvm::is_contained(draft.problem.outputs, view.storage))
        draft.problem.outputs.push_back(view.storage);
    }
  }

  func::FuncOp function;
  CompileTarget &target;
  const CostModel &costs;
  EntryDraft draft;
  llvm::StringMap<StorageId> variables;
  llvm::DenseMap<Value, StorageId> storages;
  llvm::StringSet<> names;         // of storages
  SmallVector<WriteOp> lateWrites; // done after every other command
};
} // namespace

FailureOr<EntryDraft> plimsoll::readEntry(func::FuncOp function, CompileTarget &target, const CostModel &costs,
                                          uint64_t alignment) {
  return EntryReader(function, target, costs, alignment).read();
}
