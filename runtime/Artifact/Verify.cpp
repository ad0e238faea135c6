// The rules of an artifact as a whole: A2…A8 of docs/Artifact.md, then each plan. The judge shares no code with the
// compiler that makes artifacts; it reads like the list of rules.
#include "runtime/Artifact/Reader.h"
#include "runtime/Artifact/Verifier.h"

#include <algorithm>
#include <set>

namespace plimsoll::artifact {

Status Findings::status() const {
  if (total == 0)
    return Status::ok();
  std::string text;
  for (const std::string &message : messages)
    text += (text.empty() ? "" : "; ") + message;
  if (total > messages.size())
    text += "; and " + std::to_string(total - messages.size()) + (enough() ? " or more others" : " others");
  return {version ? ExitCode::VersionMismatch : ExitCode::BadInput, text};
}

// ---- A3: every table is there and every enumeration has a known value -------------------------------------------

/// `where()` gives the words for the place; called only when there is something to say.
template <typename Where> static void checkView(const TensorViewT *view, const Where &where, Findings &findings) {
  if (!view)
    findings.add("A3", where() + " has no view");
  else if (dtypeBytes(view->dtype) == 0)
    findings.add("A3", where() + " has the unknown dtype " + std::to_string(static_cast<int>(view->dtype)));
}

static void checkOperands(const std::vector<std::unique_ptr<OperandT>> &operands, const std::string &where,
                          Findings &findings) {
  for (size_t i = 0; i < operands.size(); ++i) {
    auto place = [&] { return where + " operand " + std::to_string(i); };
    if (!operands[i]) {
      findings.add("A3", place() + " is missing");
      continue;
    }
    if (operands[i]->access < Access::MIN || operands[i]->access > Access::MAX)
      findings.add("A3", place() + " has the unknown access " + std::to_string(static_cast<int>(operands[i]->access)));
    checkView(operands[i]->view.get(), place, findings);
  }
}

/// The body is a known kind and present; A4: not one that only later versions run.
static void checkCommand(const CommandT *command, const std::string &where, Findings &findings) {
  if (!command || !command->body.value || command->body.type <= CommandBody::NONE ||
      command->body.type > CommandBody::MAX)
    return findings.add("A3", where + " has no known body");
  if (command->body.AsCollective())
    return findings.addVersion("A4", where + " is a collective, which format version 1 does not run; "
                                             "use a newer runtime or compile for one rank");
  if (const LaunchT *launch = command->body.AsLaunch())
    checkOperands(launch->operands, where, findings);
  if (const LibraryCallT *call = command->body.AsLibraryCall()) {
    checkOperands(call->operands, where, findings);
    for (const auto &attribute : call->attributes)
      if (!attribute)
        findings.add("A3", where + " has an empty attribute");
  }
  if (const CopyT *copy = command->body.AsCopy()) {
    checkView(
        copy->source.get(), [&] { return where + " source"; }, findings);
    checkView(
        copy->target.get(), [&] { return where + " target"; }, findings);
  }
}

static void checkBuffers(const std::vector<std::unique_ptr<BufferT>> &buffers, const std::string &where,
                         Findings &findings) {
  for (size_t i = 0; i < buffers.size(); ++i)
    if (!buffers[i] || buffers[i]->klass > BufferClass::MAX)
      findings.add("A3", where + " buffer " + std::to_string(i) + " is missing or of an unknown class");
}

static void checkPorts(const std::vector<std::unique_ptr<PortT>> &ports, const std::string &where, Findings &findings) {
  for (size_t i = 0; i < ports.size(); ++i)
    checkView(
        ports[i] ? ports[i]->view.get() : nullptr, [&] { return where + " " + std::to_string(i); }, findings);
}

static void checkEntry(const EntryT &entry, Findings &findings) {
  std::string where = "entry " + inQuotes(entry.name);
  checkPorts(entry.inputs, where + " input", findings);
  checkPorts(entry.outputs, where + " output", findings);
  checkBuffers(entry.buffers, where, findings);
  for (size_t i = 0; i < entry.commands.size() && !findings.enough(); ++i)
    checkCommand(entry.commands[i].get(), where + " command " + std::to_string(i), findings);
  verifyProofTables(entry, where, findings);
}

static void checkPlan(const SealedPlanT &plan, Findings &findings) {
  std::string where = "plan " + inQuotes(plan.name);
  if (plan.world_size != 1 || plan.rank != 0)
    findings.addVersion("A4", where + " is rank " + std::to_string(plan.rank) + " of " +
                                  std::to_string(plan.world_size) + ", format version 1 runs one rank");
  if (!plan.memory)
    findings.add("A3", where + " has no memory promise");
  for (const auto &arena : plan.arenas)
    if (!arena || arena->tier > Tier::MAX)
      findings.add("A3", where + " has an arena that is missing or of an unknown tier");
  checkBuffers(plan.buffers, where, findings);
  for (const auto &entry : plan.entries)
    entry ? checkEntry(*entry, findings) : findings.add("A3", where + " has an empty entry");
}

static void checkVariables(const ArtifactT &artifact, Findings &findings) {
  for (const auto &variable : artifact.variables)
    if (!variable || variable->kind > VariableKind::MAX || variable->init > InitKind::MAX ||
        dtypeBytes(variable->dtype) == 0)
      findings.add("A3", "variable " + (variable ? inQuotes(variable->name) : std::string("?")) +
                             " is missing or has an unknown kind, dtype or initial value");
}

void verifyTables(const ArtifactT &artifact, Findings &findings) {
  if (!artifact.target)
    findings.add("A3", "no target");
  if (!artifact.provenance)
    findings.add("A3", "no provenance");
  if (artifact.plans.empty())
    findings.add("A3", "no plan");
  checkVariables(artifact, findings);
  for (const auto &module : artifact.modules)
    if (!module)
      findings.add("A3", "a kernel module is missing");
  for (const auto &kernel : artifact.kernels)
    if (!kernel)
      findings.add("A3", "a kernel is missing");
  for (const auto &plan : artifact.plans)
    plan ? checkPlan(*plan, findings) : findings.add("A3", "a plan is missing");
}

// ---- A5: names --------------------------------------------------------------------------------------------------

/// Names of one kind, unique among themselves.
class NameSet {
public:
  NameSet(std::string kind, Findings &list) : what(std::move(kind)), findings(list) {}
  void add(const std::string &name) {
    if (name.empty() || !isUtf8(name) || name.find('\0') != std::string::npos)
      findings.add("A5", what + " name " + inQuotes(name) + " is empty or not UTF-8 text");
    else if (!seen.insert(name).second)
      findings.add("A5", what + " name " + inQuotes(name) + " occurs twice");
  }

private:
  std::string what;
  Findings &findings;
  std::set<std::string> seen;
};

static void checkPortNames(const EntryT &entry, Findings &findings) {
  NameSet inputs("entry " + inQuotes(entry.name) + " input", findings),
      outputs("entry " + inQuotes(entry.name) + " output", findings);
  for (const auto &port : entry.inputs)
    inputs.add(port->name);
  for (const auto &port : entry.outputs)
    outputs.add(port->name);
}

static void checkNames(const ArtifactT &artifact, Findings &findings) {
  NameSet variables("variable", findings), plans("plan", findings);
  for (const auto &variable : artifact.variables) {
    variables.add(variable->name);
    for (const std::string &alias : variable->aliases)
      variables.add(alias);
  }
  for (const auto &plan : artifact.plans) {
    plans.add(plan->name);
    NameSet entries("entry", findings);
    for (const auto &entry : plan->entries) {
      entries.add(entry->name);
      checkPortNames(*entry, findings);
    }
  }
}

static void checkOwners(const ArtifactT &artifact, Findings &findings) {
  std::set<std::string> names;
  for (const auto &variable : artifact.variables)
    names.insert(variable->name);
  for (const auto &variable : artifact.variables)
    if (!variable->owner.empty() && !names.count(variable->owner))
      findings.add("A5", "variable " + inQuotes(variable->name) + " belongs to " + inQuotes(variable->owner) +
                             ", which does not exist");
}

// ---- A6: weights, A7: target, A8: kernels -----------------------------------------------------------------------

static void checkWeights(const ArtifactT &artifact, Findings &findings) {
  if (!artifact.weights_file.empty() && !isPlainFileName(artifact.weights_file))
    findings.add("A6", "weights file " + inQuotes(artifact.weights_file) +
                           " is not a plain file name; the file lies beside the artifact");
  for (const auto &variable : artifact.variables) {
    if (variable->init != InitKind::File)
      continue;
    if (variable->init_key.empty())
      findings.add("A6", "variable " + inQuotes(variable->name) + " comes from a file but has no key in it");
    if (artifact.weights_file.empty())
      findings.add("A6", "variable " + inQuotes(variable->name) + " comes from a file but no weights file is named");
  }
}

static void checkTarget(const TargetT &target, Findings &findings) {
  static constexpr uint32_t kMaxThreads = 4096;
  if (target.kind.empty())
    findings.add("A7", "the target has no kind");
  if (target.threads > kMaxThreads)
    findings.add("A7", "the target has " + std::to_string(target.threads) + " threads, at most " +
                           std::to_string(kMaxThreads) + " are accepted");
}

static void checkKernels(const ArtifactT &artifact, Findings &findings) {
  static const std::string_view formats[] = {"cpu-elf", "ptx", "cubin"};
  for (const auto &module : artifact.modules) {
    if (std::find(std::begin(formats), std::end(formats), module->format) == std::end(formats))
      findings.add("A8", "a kernel module has the unknown format " + inQuotes(module->format) +
                             ", expected cpu-elf, ptx or cubin");
    if (module->data.empty())
      findings.add("A8", "a kernel module is empty");
  }
  for (const auto &kernel : artifact.kernels) {
    if (kernel->module_ >= artifact.modules.size())
      findings.add("A8", "kernel " + inQuotes(kernel->name) + " is in module " + std::to_string(kernel->module_) +
                             " of " + std::to_string(artifact.modules.size()));
    if (kernel->symbol.empty() || kernel->symbol.find('\0') != std::string::npos)
      findings.add("A8", "kernel " + inQuotes(kernel->name) + " has no usable symbol");
  }
}

static void checkVersion(const ArtifactT &artifact, Findings &findings) {
  if (artifact.format_version != kFormatVersion)
    findings.addVersion("A2", "format version " + std::to_string(artifact.format_version) +
                                  ", this program reads version " + std::to_string(kFormatVersion) +
                                  "; compile the model again");
}

static void checkWhole(const ArtifactT &artifact, Findings &findings) {
  checkNames(artifact, findings);
  checkOwners(artifact, findings);
  checkWeights(artifact, findings);
  checkTarget(*artifact.target, findings);
  checkKernels(artifact, findings);
  for (const auto &plan : artifact.plans)
    verifyPlan({artifact, *plan, "plan " + inQuotes(plan->name)}, findings);
}

} // namespace plimsoll::artifact

namespace plimsoll {

Status verifyArtifact(const artifact::ArtifactT &artifact) {
  artifact::Findings findings;
  artifact::checkVersion(artifact, findings);
  if (!findings.empty())
    return findings.status();
  artifact::verifyTables(artifact, findings);
  if (!findings.empty())
    return findings.status();
  artifact::checkWhole(artifact, findings);
  return findings.status();
}

} // namespace plimsoll
