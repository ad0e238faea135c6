// Resolution of a verified plan (rules A1…A25 hold) into flat records.
#include "runtime/Core/Executable.h"

#include "plimsoll/Support/Units.h"
#include "runtime/Artifact/Files.h"
#include "runtime/Artifact/Types.h"

#include <algorithm>

namespace plimsoll::runtime {

using namespace artifact;

static const BufferT &bufferOf(const SealedPlanT &plan, const EntryT &entry, const TensorViewT &view) {
  size_t persistent = plan.buffers.size();
  return view.buffer < persistent ? *plan.buffers[view.buffer] : *entry.buffers[view.buffer - persistent];
}

void *addressOf(const SealedPlanT &plan, const EntryT &entry, const TensorViewT &view, std::span<void *const> arenas) {
  const BufferT &buffer = bufferOf(plan, entry, view);
  return static_cast<std::byte *>(arenas[buffer.arena]) + buffer.offset + view.offset;
}

Result<std::vector<KernelFunction>> loadKernels(const ArtifactT &artifact, const std::string &format,
                                                Backend &backend) {
  std::vector<KernelFunction> kernels(artifact.kernels.size(), nullptr);
  for (size_t module = 0; module < artifact.modules.size(); ++module) {
    std::vector<std::string> symbols;
    std::vector<size_t> indices;
    for (size_t i = 0; i < kernels.size(); ++i)
      if (artifact.kernels[i]->module_ == module) {
        symbols.push_back(artifact.kernels[i]->symbol);
        indices.push_back(i);
      }
    if (artifact.modules[module]->format != format || symbols.empty())
      continue;
    Result<std::vector<KernelFunction>> loaded = backend.loadModule(artifact.modules[module]->data, symbols);
    std::string where = "kernel module " + std::to_string(module);
    if (!loaded)
      return Status{loaded.status().code(), where + ": " + loaded.status().message()};
    if (loaded->size() != symbols.size() || std::find(loaded->begin(), loaded->end(), nullptr) != loaded->end())
      return badInput(where + " does not hold all of its " + std::to_string(symbols.size()) + " kernels");
    for (size_t i = 0; i < indices.size(); ++i)
      kernels[indices[i]] = (*loaded)[i];
  }
  return kernels;
}

namespace {

/// Resolves one entry.
class EntryResolver {
public:
  EntryResolver(const SealedPlanT &sealed, const EntryT &program, Backend &machine, Executable &whole)
      : plan(sealed), entry(program), backend(machine), executable(whole) {}

  Status resolve(ExecutableEntry &result) {
    result.entry = &entry;
    result.arenaEnds.assign(plan.arenas.size(), 0);
    result.steps.reserve(entry.commands.size());
    for (size_t i = 0; i < entry.commands.size(); ++i)
      if (Status status = resolveCommand(i, result); !status)
        return {status.code(), "entry " + inQuotes(entry.name) + " command " + std::to_string(i) + " " +
                                   inQuotes(entry.commands[i]->label) + ": " + status.message()};
    for (const auto *ports : {&entry.inputs, &entry.outputs})
      for (const auto &port : *ports)
        touch(*port->view, result);
    result.operands.shrink_to_fit();
    setOperandPointers(result);
    return Status::ok();
  }

private:
  void touch(const TensorViewT &view, ExecutableEntry &result) const {
    const BufferT &buffer = bufferOf(plan, entry, view);
    uint64_t &end = result.arenaEnds[buffer.arena];
    end = std::max(end, buffer.offset + reach(view)->end);
  }
  void *address(const TensorViewT &view) const { return addressOf(plan, entry, view, executable.arenas); }

  Status resolveCommand(size_t index, ExecutableEntry &result) {
    const CommandT &command = *entry.commands[index];
    StepRecord step;
    step.stream = command.stream;
    step.command = static_cast<uint32_t>(index);
    for (const ViewUse &use : usesOf(command))
      touch(*use.view, result);
    Status status = Status::ok();
    if (const LaunchT *launch = command.body.AsLaunch())
      status = resolveLaunch(*launch, step, result);
    else if (const LibraryCallT *call = command.body.AsLibraryCall())
      status = resolveCall(*call, step, result);
    else if (const CopyT *copy = command.body.AsCopy())
      resolveCopy(*copy, step);
    else
      resolveEvent(command, step);
    result.steps.push_back(step);
    return status;
  }

  void addOperand(const TensorViewT &view, StepRecord &step, ExecutableEntry &result) const {
    result.operands.push_back(address(view));
    ++step.operandCount;
  }

  Status resolveLaunch(const LaunchT &launch, StepRecord &step, ExecutableEntry &result) const {
    step.kind = StepRecord::Kind::Launch;
    step.kernel = executable.kernels[launch.kernel];
    step.extent = static_cast<int64_t>(launch.extent);
    step.grain = static_cast<int64_t>(launch.grain);
    for (const auto &operand : launch.operands)
      addOperand(*operand->view, step, result);
    if (!step.kernel)
      return badInput("kernel " + std::to_string(launch.kernel) + " is not for the machine this artifact targets");
    return Status::ok();
  }

  Status resolveCall(const LibraryCallT &call, StepRecord &step, ExecutableEntry &result) {
    step.kind = StepRecord::Kind::Call;
    CallSpec spec{call.op, {}, {}};
    uint64_t planned = 0;
    for (size_t i = 0; i < call.operands.size(); ++i) {
      const TensorViewT &view = *call.operands[i]->view;
      if (static_cast<int64_t>(i) == call.workspace) {
        step.workspace = address(view);
        planned = *byteCount(view.dtype, view.shape);
        continue;
      }
      spec.operands.push_back({view.dtype, view.shape, view.strides, call.operands[i]->access});
      addOperand(view, step, result);
    }
    for (const auto &attribute : call.attributes)
      spec.attributes.push_back(*attribute);
    Result<std::unique_ptr<PreparedCall>> prepared = backend.prepare(spec);
    if (!prepared)
      return Status{prepared.status().code(), call.op + ": " + prepared.status().message()};
    if (uint64_t needed = (*prepared)->workspaceBytes(); needed > planned)
      return {ExitCode::VersionMismatch,
              call.op + " needs " + groupedDigits(needed) + " bytes of workspace on this machine but the plan holds " +
                  groupedDigits(planned) + "; use no more threads than it was compiled for, or compile it again here"};
    step.call = prepared->get();
    executable.calls.push_back(std::move(*prepared));
    return Status::ok();
  }

  void resolveCopy(const CopyT &copy, StepRecord &step) const {
    step.kind = StepRecord::Kind::Copy;
    step.source = address(*copy.source);
    step.target = address(*copy.target);
    step.extent = static_cast<int64_t>(*byteCount(copy.source->dtype, copy.source->shape));
  }

  void resolveEvent(const CommandT &command, StepRecord &step) const {
    const RecordEventT *record = command.body.AsRecordEvent();
    step.kind = record ? StepRecord::Kind::Record : StepRecord::Kind::Wait;
    step.extent = record ? record->event : command.body.AsWaitEvent()->event;
  }

  /// Once all addresses are collected they no longer move.
  static void setOperandPointers(ExecutableEntry &result) {
    size_t at = 0;
    for (StepRecord &step : result.steps) {
      step.operands = result.operands.data() + at;
      at += step.operandCount;
    }
  }

  const SealedPlanT &plan;
  const EntryT &entry;
  Backend &backend;
  Executable &executable;
};

} // namespace

Status resolveEntries(const SealedPlanT &plan, Backend &backend, Executable &executable) {
  executable.entries.resize(plan.entries.size());
  for (size_t i = 0; i < plan.entries.size(); ++i) {
    EntryResolver resolver(plan, *plan.entries[i], backend, executable);
    if (Status status = resolver.resolve(executable.entries[i]); !status)
      return status;
  }
  return Status::ok();
}

} // namespace plimsoll::runtime
