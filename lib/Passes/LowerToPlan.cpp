// Read each entry into a planner problem, solve, and write the solution as plan ops. All entries share one arena:
// variables at the bottom at the same addresses in every entry, each entry's transient buffers above them.
#include "lib/Passes/LowerToPlan.h"
#include "lib/Passes/PlanProblem.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace plimsoll;
using planner::StorageId;

void plimsoll::outlineConstants(ModuleOp module) {
  llvm::DenseMap<Attribute, std::string> names;
  unsigned next = 0;
  SmallVector<graph::ConstantOp> constants;
  for (auto function : module.getOps<func::FuncOp>())
    for (auto constant : function.getBody().front().getOps<graph::ConstantOp>())
      constants.push_back(constant);
  for (graph::ConstantOp constant : constants) {
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    bool isFill = elements && elements.isSplat();
    if (isFill && llvm::all_of(constant->getUsers(), [](Operation *user) { return isa<graph::WriteOp>(user); }))
      continue; // a write of a splat is a fill command
    auto [entry, isNew] = names.try_emplace(constant.getValue());
    OpBuilder builder(constant);
    if (isNew) {
      do
        entry->second = "constant." + std::to_string(next++);
      while (module.lookupSymbol(entry->second));
      OpBuilder top(module.getBody(), module.getBody()->begin());
      auto variable = graph::VariableOp::create(top, constant.getLoc(), entry->second, constant.getType(),
                                                graph::VariableKind::Constant);
      variable.setValueAttr(constant.getValue());
    }
    auto read = graph::ReadOp::create(builder, constant.getLoc(), constant.getType(), entry->second);
    constant.replaceAllUsesWith(read.getResult());
    constant.erase();
  }
}

namespace {
/// An entry's draft beside its solution.
struct PlannedEntry {
  std::string name;
  EntryDraft draft;
  planner::Solution solution;
  planner::Liveness liveness;
};

/// Writes plan ops for planned entries.
class ProgramWriter {
public:
  ProgramWriter(ModuleOp owner, const LowerOptions &chosen)
      : module(owner), options(chosen), builder(owner.getLoc(), owner.getContext()) {}

  plan::ProgramOp write(ArrayRef<PlannedEntry> entries) {
    builder.setInsertionPointToEnd(module.getBody());
    program = plan::ProgramOp::create(builder, "default");
    builder.setInsertionPointToStart(&program.getBody().emplaceBlock());
    uint64_t arenaBytes = 0;
    for (const PlannedEntry &entry : entries)
      arenaBytes = std::max(arenaBytes, entry.solution.arenaBytes);
    plan::ArenaOp::create(builder, "device", plan::Tier::Device, arenaBytes, options.alignment);
    writeVariables(entries.front());
    for (const PlannedEntry &entry : entries)
      writeEntry(entry);
    return program;
  }

private:
  void writeVariables(const PlannedEntry &any) {
    for (const planner::Storage &storage : any.draft.problem.storages)
      if (storage.persistent)
        plan::BufferOp::create(builder, storage.name, "device", any.solution.offsets[storage.id], storage.bytes,
                               classOf(storage), IntegerAttr(), IntegerAttr(), storage.source);
    for (auto variable : module.getOps<graph::VariableOp>())
      plan::VariableOp::create(builder, FlatSymbolRefAttr::get(variable.getSymNameAttr()), variable.getTypeAttr(),
                               builder.getStringAttr(stringifyVariableKind(variable.getKind())),
                               builder.getBoolAttr(variable.getTrainable()), variable.getFillAttr(),
                               variable.getAliasesAttr(),
                               variable.getOwner() ? builder.getStringAttr(*variable.getOwner()) : StringAttr());
  }

  static plan::BufferClass classOf(const planner::Storage &storage) {
    // The enums list the same classes in another order; names are the common ground.
    std::string_view name = planner::storageClassName(storage.storageClass);
    return *plan::symbolizeBufferClass(StringRef(name.data(), name.size()));
  }

  void writeEntry(const PlannedEntry &entry) {
    OpBuilder::InsertionGuard guard(builder);
    const planner::Problem &problem = entry.draft.problem;
    auto op =
        plan::EntryOp::create(builder, entry.name, ports(entry, entry.draft.inputs), ports(entry, entry.draft.outputs),
                              entry.solution.arenaBytes, entry.solution.witnessStep, entry.solution.maxLiveBytes);
    builder.setInsertionPointToStart(&op.getBody().emplaceBlock());
    for (const planner::Storage &storage : problem.storages)
      if (!storage.persistent && entry.solution.offsets[storage.id] != planner::noOffset)
        writeBuffer(entry, storage);
    for (auto [index, command] : llvm::enumerate(entry.draft.commands))
      writeCommand(entry, index, command);
  }

  void writeBuffer(const PlannedEntry &entry, const planner::Storage &storage) {
    planner::Interval live = entry.liveness.intervals[storage.id];
    transient(storage.name, entry.solution.offsets[storage.id], storage.bytes, classOf(storage), live.lower,
              live.upper ? live.upper - 1 : 0, storage.source);
  }
  void transient(StringRef name, uint64_t offset, uint64_t bytes, plan::BufferClass klass, int64_t first, int64_t last,
                 StringRef source) {
    plan::BufferOp::create(builder, name, "device", offset, bytes, klass, builder.getI64IntegerAttr(first),
                           builder.getI64IntegerAttr(last), source);
  }

  void writeCommand(const PlannedEntry &entry, size_t index, const CommandDraft &command) {
    SmallVector<Attribute> operands;
    for (const CommandOperand &operand : command.operands)
      operands.push_back(window(entry, operand));
    if (!command.kernel.empty()) {
      plan::LaunchOp::create(builder, command.kernel, builder.getArrayAttr(operands), command.extent, command.grain, 0,
                             command.label);
      return;
    }
    int64_t workspace = -1;
    if (uint64_t bytes = entry.draft.problem.steps[index].workspaceBytes) {
      workspace = static_cast<int64_t>(operands.size());
      operands.push_back(scratch(entry, index, bytes, command.label));
    }
    plan::CallOp::create(builder, command.callee, builder.getArrayAttr(operands),
                         builder.getDictionaryAttr(command.parameters), workspace, 0, command.label);
  }

  // The workspace of command `index`, as a buffer that lives for this command alone.
  plan::OperandAttr scratch(const PlannedEntry &entry, size_t index, uint64_t bytes, StringRef label) {
    std::string name = "workspace." + std::to_string(index);
    while (program.lookupSymbol(name)) // a variable of the model may be called so
      name += "_";
    auto at = static_cast<int64_t>(index);
    transient(name, entry.solution.workspaceOffsets[index], bytes, plan::BufferClass::Workspace, at, at, label);
    auto type = RankedTensorType::get({static_cast<int64_t>(bytes)}, builder.getIntegerType(8, false));
    return plan::OperandAttr::get(builder.getContext(), plan::Access::Write,
                                  FlatSymbolRefAttr::get(builder.getContext(), name), 0, type, {1});
  }

  plan::OperandAttr window(const PlannedEntry &entry, const CommandOperand &operand) {
    auto buffer = FlatSymbolRefAttr::get(builder.getContext(), entry.draft.problem.storages[operand.storage].name);
    auto access = operand.access == planner::AccessMode::Read    ? plan::Access::Read
                  : operand.access == planner::AccessMode::Write ? plan::Access::Write
                                                                 : plan::Access::ReadWrite;
    return plan::OperandAttr::get(builder.getContext(), access, buffer, operand.offsetBytes, operand.type,
                                  operand.strides);
  }

  ArrayAttr ports(const PlannedEntry &entry, ArrayRef<PortDraft> drafts) {
    SmallVector<Attribute> attributes;
    for (const PortDraft &port : drafts)
      attributes.push_back(
          plan::PortAttr::get(builder.getContext(), builder.getStringAttr(port.name), window(entry, port.window)));
    return builder.getArrayAttr(attributes);
  }

  ModuleOp module;
  const LowerOptions &options;
  ImplicitLocOpBuilder builder;
  plan::ProgramOp program;
};
} // namespace

static Result<PlannedEntry> planEntry(func::FuncOp function, CompileTarget &target, const LowerOptions &options) {
  FailureOr<EntryDraft> draft = readEntry(function, target, options.costs, options.alignment);
  if (failed(draft))
    return Status(ExitCode::Unsupported,
                  "entry " + function.getName().str() + " cannot be lowered; see the errors above");
  planner::PlanOptions planOptions = options.plan;
  planOptions.budgetBytes = options.budgetBytes;
  Result<planner::Solution> solution = planner::plan(draft->problem, planOptions);
  if (!solution)
    return Status(solution.status().code(), "entry " + function.getName().str() + ": " + solution.status().message());
  Result<planner::Liveness> liveness = planner::computeLiveness(draft->problem, {planOptions.takeInPlace});
  if (!liveness)
    return liveness.status();
  return PlannedEntry{function.getName().str(), std::move(*draft), std::move(*solution), std::move(*liveness)};
}

Result<plan::ProgramOp> plimsoll::lowerToPlan(ModuleOp module, CompileTarget &target, const LowerOptions &options) {
  std::vector<PlannedEntry> entries;
  for (auto function : module.getOps<func::FuncOp>()) {
    Result<PlannedEntry> planned = planEntry(function, target, options);
    if (!planned)
      return planned.status();
    entries.push_back(std::move(*planned));
  }
  if (entries.empty())
    return Status(ExitCode::BadInput, "the module has no entry function to plan");
  return ProgramWriter(module, options).write(entries);
}
