// Plan dialect to artifact tables, one function per table.
#include "lib/Emit/Emit.h"

#include "dialects/Graph/Graph.h"
#include "lib/Passes/PlanProblem.h"
#include "runtime/Artifact/RuntimeBytes.h"
#include "runtime/Artifact/Writer.h"

#include <filesystem>

using namespace mlir;
using namespace plimsoll;
using artifact::ArtifactT;

namespace {
/// Fills an ArtifactT from a program. Buffer indices: persistent buffers first, then those of the entry being written.
class ArtifactBuilder {
public:
  ArtifactBuilder(EmitInput &source, ArtifactT &target) : input(source), artifact(target) {}

  void build() {
    addVariables();
    auto sealed = std::make_unique<artifact::SealedPlanT>();
    sealed->name = input.program.getSymName().str();
    sealed->budget_bytes = input.budgetBytes;
    for (const auto &[name, value] : input.bindings) {
      sealed->dim_names.push_back(name);
      sealed->dim_values.push_back(value);
    }
    for (auto arena : input.program.getBody().getOps<plan::ArenaOp>())
      addArena(*sealed, arena);
    for (auto buffer : input.program.getBody().getOps<plan::BufferOp>()) {
      persistent[buffer.getSymName()] = static_cast<uint32_t>(sealed->buffers.size());
      sealed->buffers.push_back(bufferTable(buffer));
    }
    for (auto entry : input.program.getBody().getOps<plan::EntryOp>())
      addEntry(*sealed, entry);
    addMemory(*sealed);
    artifact.plans.push_back(std::move(sealed));
    addKernels();
  }

private:
  void addArena(artifact::SealedPlanT &sealed, plan::ArenaOp op) {
    auto arena = std::make_unique<artifact::ArenaT>();
    arena->tier = static_cast<artifact::Tier>(op.getTier());
    arena->bytes = op.getBytes();
    arena->alignment = static_cast<uint32_t>(op.getAlignment());
    arenas[op.getSymName()] = static_cast<uint32_t>(sealed.arenas.size());
    sealed.arenas.push_back(std::move(arena));
  }

  std::unique_ptr<artifact::BufferT> bufferTable(plan::BufferOp op) {
    auto buffer = std::make_unique<artifact::BufferT>();
    buffer->name = op.getSymName().str();
    buffer->arena = arenas.lookup(op.getArena());
    buffer->offset = op.getOffset();
    buffer->bytes = op.getBytes();
    buffer->klass = static_cast<artifact::BufferClass>(op.getKlass());
    buffer->first_command = static_cast<uint32_t>(op.getFirst().value_or(0));
    buffer->last_command = static_cast<uint32_t>(op.getLast().value_or(0));
    buffer->source = op.getSource().str();
    return buffer;
  }

  void addVariables() {
    for (auto op : input.module.getOps<graph::VariableOp>()) {
      auto variable = std::make_unique<artifact::VariableT>();
      RankedTensorType type = op.getTensorType();
      variable->name = op.getSymName().str();
      variable->kind = static_cast<artifact::VariableKind>(op.getKind());
      variable->dtype = *artifactType(type.getElementType());
      variable->shape.assign(type.getShape().begin(), type.getShape().end());
      variable->trainable = op.getTrainable() && op.getKind() == graph::VariableKind::Parameter;
      if (ArrayAttr aliases = op.getAliasesAttr())
        for (auto alias : aliases.getAsRange<StringAttr>())
          variable->aliases.push_back(alias.str());
      variable->owner = op.getOwner().value_or("").str();
      variable->checkpoint =
          op.getKind() != graph::VariableKind::Constant && op.getKind() != graph::VariableKind::GradientAccumulator;
      setInit(*variable, op);
      artifact.variables.push_back(std::move(variable));
    }
  }

  static void setInit(artifact::VariableT &variable, graph::VariableOp op) {
    if (!op.getFill()) {
      variable.init = artifact::InitKind::File;
      variable.init_key = variable.name;
      return;
    }
    variable.fill = op.getFill()->convertToDouble();
    variable.init = variable.fill == 0 ? artifact::InitKind::Zeros : artifact::InitKind::Fill;
  }

  std::unique_ptr<artifact::TensorViewT> viewTable(plan::OperandAttr operand) {
    auto view = std::make_unique<artifact::TensorViewT>();
    auto local = transient.find(operand.getBuffer().getValue());
    view->buffer = local != transient.end() ? local->second : persistent.lookup(operand.getBuffer().getValue());
    view->offset = static_cast<uint64_t>(operand.getOffset());
    view->dtype = *artifactType(operand.getType().getElementType());
    view->shape.assign(operand.getType().getShape().begin(), operand.getType().getShape().end());
    view->strides.assign(operand.getStrides().begin(), operand.getStrides().end());
    return view;
  }

  void addPorts(std::vector<std::unique_ptr<artifact::PortT>> &ports, ArrayAttr attributes) {
    for (auto attribute : attributes.getAsRange<plan::PortAttr>()) {
      auto port = std::make_unique<artifact::PortT>();
      port->name = attribute.getName().str();
      port->view = viewTable(attribute.getView());
      ports.push_back(std::move(port));
    }
  }

  std::vector<std::unique_ptr<artifact::OperandT>> operandTables(ArrayAttr attributes) {
    std::vector<std::unique_ptr<artifact::OperandT>> operands;
    for (auto attribute : attributes.getAsRange<plan::OperandAttr>()) {
      auto operand = std::make_unique<artifact::OperandT>();
      operand->view = viewTable(attribute);
      operand->access = static_cast<artifact::Access>(attribute.getAccess());
      operands.push_back(std::move(operand));
    }
    return operands;
  }

  void addEntry(artifact::SealedPlanT &sealed, plan::EntryOp op) {
    auto entry = std::make_unique<artifact::EntryT>();
    transient.clear();
    for (auto buffer : op.getBody().getOps<plan::BufferOp>()) {
      transient[buffer.getSymName()] = static_cast<uint32_t>(sealed.buffers.size() + entry->buffers.size());
      entry->buffers.push_back(bufferTable(buffer));
    }
    entry->name = op.getSymName().str();
    addPorts(entry->inputs, op.getInputs());
    addPorts(entry->outputs, op.getOutputs());
    for (Operation &command : op.getBody().front())
      if (!isa<plan::BufferOp>(command))
        entry->commands.push_back(commandTable(command));
    entry->streams = static_cast<uint16_t>(op.getStreams());
    entry->events = static_cast<uint32_t>(op.getEvents());
    entry->peak_bytes = op.getPeakBytes();
    entry->peak_command = static_cast<uint32_t>(op.getPeakCommand());
    entry->live_bytes_at_peak = op.getLiveBytes();
    sealed.entries.push_back(std::move(entry));
  }

  std::unique_ptr<artifact::CommandT> commandTable(Operation &op) {
    auto command = std::make_unique<artifact::CommandT>();
    if (auto label = op.getAttrOfType<StringAttr>("label"))
      command->label = label.str();
    if (auto stream = op.getAttrOfType<IntegerAttr>("stream"))
      command->stream = static_cast<uint16_t>(stream.getInt());
    if (auto launch = dyn_cast<plan::LaunchOp>(op))
      command->body.Set(launchTable(launch));
    else if (auto call = dyn_cast<plan::CallOp>(op))
      command->body.Set(callTable(call));
    else if (auto copy = dyn_cast<plan::CopyOp>(op))
      command->body.Set(copyTable(copy));
    else if (auto record = dyn_cast<plan::RecordOp>(op))
      command->body.Set(eventTable<artifact::RecordEventT>(record.getEvent()));
    else
      command->body.Set(eventTable<artifact::WaitEventT>(cast<plan::WaitOp>(op).getEvent()));
    return command;
  }

  artifact::LaunchT launchTable(plan::LaunchOp op) {
    artifact::LaunchT launch;
    auto [found, isNew] = kernels.try_emplace(op.getKernel(), static_cast<uint32_t>(kernelNames.size()));
    if (isNew)
      kernelNames.push_back(op.getKernel().str());
    launch.kernel = found->second;
    launch.operands = operandTables(op.getArguments());
    launch.extent = op.getExtent();
    launch.grain = op.getGrain();
    return launch;
  }

  artifact::LibraryCallT callTable(plan::CallOp op) {
    artifact::LibraryCallT call;
    call.op = op.getCallee().str();
    call.operands = operandTables(op.getArguments());
    for (artifact::AttributeT &attribute : artifactAttributes(op.getParameters().getValue()))
      call.attributes.push_back(std::make_unique<artifact::AttributeT>(std::move(attribute)));
    call.workspace = static_cast<int32_t>(op.getWorkspace());
    return call;
  }

  artifact::CopyT copyTable(plan::CopyOp op) {
    artifact::CopyT copy;
    copy.source = viewTable(op.getSource());
    copy.target = viewTable(op.getTarget());
    return copy;
  }

  template <typename Table> static Table eventTable(uint64_t event) {
    Table table;
    table.event = static_cast<uint32_t>(event);
    return table;
  }

  void addMemory(artifact::SealedPlanT &sealed) {
    auto memory = std::make_unique<artifact::MemoryT>();
    for (const auto &arena : sealed.arenas)
      memory->arena_bytes += arena->bytes;
    memory->staging_bytes = input.stagingBytes;
    memory->process_constant_bytes = input.processConstantBytes;
    sealed.memory = std::move(memory);
    sealed.memory->runtime_bytes = artifact::runtimeBytes(sealed);
    sealed.memory->training_bytes =
        sealed.memory->arena_bytes + sealed.memory->staging_bytes + sealed.memory->runtime_bytes;
  }

  void addKernels() {
    if (kernelNames.empty())
      return;
    auto module = std::make_unique<artifact::KernelModuleT>();
    module->format = "cpu-elf";
    module->target = input.target.cpu;
    module->data = std::move(input.kernels);
    artifact.modules.push_back(std::move(module));
    for (const std::string &name : kernelNames) {
      auto kernel = std::make_unique<artifact::KernelT>();
      kernel->symbol = name;
      kernel->name = name;
      artifact.kernels.push_back(std::move(kernel));
    }
  }

  EmitInput &input;
  ArtifactT &artifact;
  llvm::StringMap<uint32_t> arenas, persistent, transient, kernels;
  std::vector<std::string> kernelNames;
};
} // namespace

Status plimsoll::emitArtifact(const std::string &path, EmitInput input) {
  std::filesystem::path weightsPath = std::filesystem::path(path).replace_extension(".safetensors");
  ArtifactT artifact;
  artifact.format_version = 1;
  Result<std::string> hash = writeWeights(weightsPath.string(), input.module, input.weights);
  if (!hash)
    return hash.status();
  input.provenance.weights_hash = *hash;
  artifact.weights_file = weightsPath.filename().string();
  std::error_code error;
  artifact.weights_bytes = std::filesystem::file_size(weightsPath, error);
  ArtifactBuilder(input, artifact).build();
  artifact.target = std::make_unique<artifact::TargetT>(input.target);
  artifact.provenance = std::make_unique<artifact::ProvenanceT>(input.provenance);
  return writeArtifact(path, artifact);
}
