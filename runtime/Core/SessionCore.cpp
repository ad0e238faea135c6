// The Session over any backend.
#include "runtime/Core/SessionCore.h"

#include "plimsoll/Support/Units.h"
#include "runtime/Artifact/Files.h"
#include "runtime/Artifact/Types.h"
#include "runtime/Core/Executable.h"
#include "runtime/Core/Initialize.h"
#include "runtime/Core/StepHeap.h"

#include <algorithm>

namespace plimsoll::runtime {

using namespace artifact;

namespace {

class SessionCore final : public Session {
public:
  SessionCore(ArtifactT verified, std::unique_ptr<Backend> machine, SessionSource origin)
      : content(std::move(verified)), backend(std::move(machine)), source(std::move(origin)) {}
  ~SessionCore() override {
    executable.calls.clear();
    for (void *arena : executable.arenas)
      backend->freeArena(arena);
  }

  Status load();

  const ArtifactT &artifact() const override { return content; }
  Status initialize() override;
  const EntryT *entry(std::string_view name) const override;
  Result<std::span<std::byte>> input(std::string_view entryName, std::string_view port) override;
  Result<std::span<const std::byte>> output(std::string_view entryName, std::string_view port) override;
  std::span<std::byte> variable(size_t index) override;
  Status run(std::string_view entryName) override;
  MemoryReport memory() const override;

private:
  const SealedPlanT &plan() const { return *content.plans[0]; }
  Status allocateArenas();
  const ExecutableEntry *find(std::string_view name) const;
  Status unknownEntry(std::string_view name) const;
  Result<std::span<std::byte>> port(std::string_view entryName, std::string_view name, bool isInput);
  Status execute(const StepRecord &step);
  Status failed(const EntryT &program, const StepRecord &step, const Status &status) const;
  void touch(std::span<const uint64_t> ends);

  ArtifactT content;
  std::unique_ptr<Backend> backend;
  SessionSource source;
  Executable executable;
  std::vector<uint64_t> touched; ///< per arena: end of the highest byte used so far
  MemoryReport report;
};

} // namespace

/// The module format that `kind` of target runs.
static std::string moduleFormat(const std::string &kind) { return kind == "cuda" ? "cubin" : kind + "-elf"; }

Status SessionCore::load() {
  if (Status status = allocateArenas(); !status)
    return status;
  Result<std::vector<KernelFunction>> kernels = loadKernels(content, moduleFormat(content.target->kind), *backend);
  if (!kernels)
    return kernels.status();
  executable.kernels = std::move(*kernels);
  for (auto &module : content.modules)
    std::vector<uint8_t>().swap(module->data);
  for (auto &sealed : content.plans)
    for (auto &program : sealed->entries)
      program->proof.reset();
  if (Status status = resolveEntries(plan(), *backend, executable); !status)
    return status;
  report.runtimeBytes = kStepHeapBytes;
  for (const ExecutableEntry &entry : executable.entries)
    report.runtimeBytes += entry.tableBytes();
  return Status::ok();
}

Status SessionCore::allocateArenas() {
  touched.assign(plan().arenas.size(), 0);
  for (size_t i = 0; i < plan().arenas.size(); ++i) {
    const ArenaT &arena = *plan().arenas[i];
    uint64_t bytes = alignUp(arena.bytes, arena.alignment);
    Result<void *> base = backend->allocateArena(arena.tier, bytes, arena.alignment);
    if (!base)
      return {base.status().code(),
              "arena " + std::to_string(i) + " of " + groupedDigits(bytes) + " bytes: " + base.status().message()};
    executable.arenas.push_back(*base);
    report.arenaBytes += bytes;
    ++report.arenaAllocations;
  }
  return Status::ok();
}

Status SessionCore::initialize() {
  Status status = initializeVariables(content, source, [this](size_t index) { return variable(index); });
  if (!status)
    return status;
  std::vector<uint64_t> ends(touched.size(), 0);
  for (size_t i = 0; i < content.variables.size(); ++i) {
    const BufferT &buffer = *plan().buffers[i];
    ends[buffer.arena] = std::max(ends[buffer.arena], buffer.offset + variable(i).size());
  }
  touch(ends);
  return Status::ok();
}

const ExecutableEntry *SessionCore::find(std::string_view name) const {
  for (const ExecutableEntry &candidate : executable.entries)
    if (candidate.entry->name == name)
      return &candidate;
  return nullptr;
}

const EntryT *SessionCore::entry(std::string_view name) const {
  const ExecutableEntry *found = find(name);
  return found ? found->entry : nullptr;
}

Status SessionCore::unknownEntry(std::string_view name) const {
  std::string names;
  for (const auto &entry : plan().entries)
    names += (names.empty() ? "" : ", ") + entry->name;
  return {ExitCode::Usage,
          "the artifact has no entry " + inQuotes(name) + "; it has " + (names.empty() ? std::string("none") : names)};
}

Result<std::span<std::byte>> SessionCore::port(std::string_view entryName, std::string_view name, bool isInput) {
  const ExecutableEntry *found = find(entryName);
  if (!found)
    return unknownEntry(entryName);
  std::string names;
  for (const auto &candidate : isInput ? found->entry->inputs : found->entry->outputs) {
    const TensorViewT &view = *candidate->view;
    if (candidate->name == name)
      return std::span(static_cast<std::byte *>(addressOf(plan(), *found->entry, view, executable.arenas)),
                       *byteCount(view.dtype, view.shape));
    names += (names.empty() ? "" : ", ") + candidate->name;
  }
  return Status{ExitCode::Usage, "entry " + inQuotes(entryName) + " has no " + (isInput ? "input " : "output ") +
                                     inQuotes(name) + "; it has " + (names.empty() ? std::string("none") : names)};
}

Result<std::span<std::byte>> SessionCore::input(std::string_view entryName, std::string_view name) {
  return port(entryName, name, true);
}

Result<std::span<const std::byte>> SessionCore::output(std::string_view entryName, std::string_view name) {
  Result<std::span<std::byte>> found = port(entryName, name, false);
  if (!found)
    return found.status();
  return std::span<const std::byte>(*found);
}

std::span<std::byte> SessionCore::variable(size_t index) {
  const VariableT &variable = *content.variables[index];
  const BufferT &buffer = *plan().buffers[index];
  return {static_cast<std::byte *>(executable.arenas[buffer.arena]) + buffer.offset,
          *byteCount(variable.dtype, variable.shape)};
}

/// One command. After a library call faults are collected at once, so that the message can name the command and nothing
/// after it runs: a bad token id never reaches the parameters.
Status SessionCore::execute(const StepRecord &step) {
  auto event = static_cast<unsigned>(step.extent);
  switch (step.kind) {
  case StepRecord::Kind::Launch:
    backend->launch(step.kernel, {step.operands, step.operandCount}, step.extent, step.grain, step.stream);
    return Status::ok();
  case StepRecord::Kind::Call:
    backend->execute(*step.call, {step.operands, step.operandCount}, step.workspace, step.stream);
    return backend->runsInOrder() ? backend->synchronize() : Status::ok();
  case StepRecord::Kind::Copy:
    backend->copy(step.target, step.source, static_cast<uint64_t>(step.extent), step.stream);
    return Status::ok();
  case StepRecord::Kind::Record:
    backend->recordEvent(event, step.stream);
    return Status::ok();
  case StepRecord::Kind::Wait:
    backend->waitEvent(event, step.stream);
    return Status::ok();
  }
  return Status::ok();
}

Status SessionCore::failed(const EntryT &program, const StepRecord &step, const Status &status) const {
  return {status.code(), "entry " + inQuotes(program.name) + " command " + std::to_string(step.command) + " " +
                             inQuotes(program.commands[step.command]->label) + ": " + status.message()};
}

Status SessionCore::run(std::string_view entryName) {
  const ExecutableEntry *found = find(entryName);
  if (!found)
    return unknownEntry(entryName);
  touch(found->arenaEnds);
  StepScope scope;
  for (const StepRecord &step : found->steps)
    if (Status status = execute(step); !status)
      return failed(*found->entry, step, status);
  if (Status status = backend->synchronize(); !status)
    return {status.code(), "entry " + inQuotes(entryName) + ": " + status.message()};
  return Status::ok();
}

void SessionCore::touch(std::span<const uint64_t> ends) {
  for (size_t i = 0; i < touched.size(); ++i)
    touched[i] = std::max(touched[i], ends[i]);
}

MemoryReport SessionCore::memory() const {
  MemoryReport result = report;
  for (uint64_t end : touched)
    result.touchedPeakBytes += end;
  return result;
}

Result<std::unique_ptr<Session>> makeSession(ArtifactT artifact, std::unique_ptr<Backend> backend,
                                             SessionSource source) {
  auto session = std::make_unique<SessionCore>(std::move(artifact), std::move(backend), std::move(source));
  if (Status status = session->load(); !status)
    return status;
  return std::unique_ptr<Session>(std::move(session));
}

} // namespace plimsoll::runtime
