// Problem::check(): the rules C1..C13 that make a program meaningful. One pass over the steps that knows, per storage,
// whether it is defined yet; every violation is collected, because a caller that fixes one wants to see the others.
#include "plimsoll/Planner/Problem.h"
#include "plimsoll/Support/Units.h"

#include <cmath>
#include <unordered_map>

namespace plimsoll::planner {

static constexpr std::string_view classNames[storageClassCount] = {
    "parameter",  "gradient",  "optimizer_state", "model_state", "step_state",
    "activation", "workspace", "input",           "output",      "constant"};

/// Sizes stay below this, so that sums and alignment never overflow.
static constexpr uint64_t sizeLimit = uint64_t{1} << 62;

std::string_view storageClassName(StorageClass storageClass) { return classNames[static_cast<unsigned>(storageClass)]; }

bool parseStorageClass(std::string_view name, StorageClass &storageClass) {
  for (unsigned i = 0; i < storageClassCount; ++i) {
    if (classNames[i] != name)
      continue;
    storageClass = static_cast<StorageClass>(i);
    return true;
  }
  return false;
}

static constexpr std::string_view tierNames[tierCount] = {"device", "host", "disk"};

std::string_view tierName(Tier tier) { return tierNames[static_cast<unsigned>(tier)]; }

bool parseTier(std::string_view name, Tier &tier) {
  for (unsigned i = 0; i < tierCount; ++i) {
    if (tierNames[i] != name)
      continue;
    tier = static_cast<Tier>(i);
    return true;
  }
  return false;
}

bool mustPersist(StorageClass storageClass) {
  return storageClass == StorageClass::Parameter || storageClass == StorageClass::OptimizerState ||
         storageClass == StorageClass::ModelState || storageClass == StorageClass::Constant;
}

StorageId Problem::addStorage(std::string name, uint64_t bytes, StorageClass storageClass, std::string source) {
  StorageId id = static_cast<StorageId>(storages.size());
  storages.push_back({id, std::move(name), bytes, storageClass, mustPersist(storageClass), std::move(source)});
  return id;
}

namespace {

/// Collects violations while walking the program once.
class Checker {
public:
  explicit Checker(const Problem &checked)
      : problem(checked), definedBy(checked.storages.size(), notYet), lastStepListing(checked.storages.size(), noStep) {
  }

  Status run() {
    checkStorages();
    checkSizes();
    checkEnds(problem.inputs, "input");
    checkEnds(problem.outputs, "output");
    markDefinedAtStart();
    for (StepIndex step = 0; step < problem.steps.size(); ++step)
      checkStep(step);
    checkOutputsDefined();
    checkEndsOnDevice();
    checkWaitsOfCopies();
    if (count == 0)
      return Status::ok();
    return badInput("the planning problem breaks " + std::to_string(count) + (count == 1 ? " rule" : " rules") + lines);
  }

private:
  static constexpr StepIndex notYet = noStep;          ///< no definition so far
  static constexpr StepIndex beforeStart = noStep - 1; ///< defined before step 0

  void report(const char *rule, const std::string &text) {
    lines += std::string("\n") + rule + ": " + text;
    ++count;
  }

  bool known(StorageId id) const { return id < problem.storages.size(); }
  std::string named(StorageId id) const { return "storage '" + problem.storages[id].name + "'"; }
  std::string stepNamed(StepIndex step) const {
    return "step " + std::to_string(step) + " '" + problem.steps[step].name + "'";
  }

  void checkStorages() {
    std::unordered_map<std::string_view, size_t> seen;
    for (size_t i = 0; i < problem.storages.size(); ++i) {
      const Storage &storage = problem.storages[i];
      if (storage.id != i)
        report("C1", "storage '" + storage.name + "' has id " + std::to_string(storage.id) +
                         ", expected its position " + std::to_string(i));
      if (storage.name.empty())
        report("C1", "storage " + std::to_string(i) + " has no name");
      else if (auto [at, fresh] = seen.emplace(storage.name, i); !fresh)
        report("C1", "storage '" + storage.name + "' is defined twice, at positions " + std::to_string(at->second) +
                         " and " + std::to_string(i) + "; names are unique");
      if (mustPersist(storage.storageClass) && !storage.persistent)
        report("C8", "storage '" + storage.name + "' has class " + std::string(storageClassName(storage.storageClass)) +
                         " but is not persistent; its bytes would be lost between runs");
    }
  }

  void checkSizes() {
    uint64_t alignment = problem.alignment;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment >= sizeLimit) {
      report("C2", "alignment " + std::to_string(alignment) + " is not a power of two");
      alignment = 1;
    }
    uint64_t total = 0;
    auto add = [&](uint64_t bytes) {
      if (bytes >= sizeLimit || (total += alignUp(bytes, alignment)) >= sizeLimit)
        total = sizeLimit;
    };
    for (const Storage &storage : problem.storages)
      add(storage.bytes);
    for (const Step &step : problem.steps)
      add(step.workspaceBytes);
    if (total >= sizeLimit)
      report("C2", "storages and workspaces sum to 2^62 bytes or more; a size is wrong");
  }

  void checkEnds(const std::vector<StorageId> &ends, const char *what) {
    std::vector<char> listed(problem.storages.size(), 0);
    for (StorageId id : ends) {
      if (!known(id))
        report("C3", std::string("program ") + what + " names unknown storage " + std::to_string(id));
      else if (listed[id]++)
        report("C4", named(id) + " is listed twice as program " + what);
    }
  }

  void markDefinedAtStart() {
    for (const Storage &storage : problem.storages)
      if (storage.persistent)
        definedBy[&storage - problem.storages.data()] = beforeStart;
    for (StorageId id : problem.inputs)
      if (known(id))
        definedBy[id] = beforeStart;
  }

  void checkStep(StepIndex index) {
    const Step &step = problem.steps[index];
    if (!std::isfinite(step.costSeconds) || step.costSeconds < 0)
      report("C10", stepNamed(index) + " has cost " + std::to_string(step.costSeconds) +
                        ", expected a finite number of seconds that is not negative");
    for (const Access &access : step.accesses)
      checkAccess(index, access);
    for (const Access &access : step.accesses)
      if (known(access.storage) && access.writes() && definedBy[access.storage] == notYet)
        definedBy[access.storage] = index;
    for (const InPlaceCandidate &pair : step.inPlace)
      checkInPlace(index, pair);
    if (step.kind == StepKind::Copy)
      checkCopy(index);
    if (step.kind == StepKind::Wait)
      checkWait(index);
    else if (step.waitsFor != noStep)
      report("C12", stepNamed(index) + " names a copy to wait for but is no wait");
    checkStepOnDevice(index);
  }

  void checkAccess(StepIndex index, const Access &access) {
    StorageId id = access.storage;
    if (!known(id))
      return report("C3", stepNamed(index) + " touches unknown storage " + std::to_string(id));
    if (lastStepListing[id] == index)
      report("C4", stepNamed(index) + " lists " + named(id) + " twice; merge them into one access");
    lastStepListing[id] = index;
    if (access.reads() && definedBy[id] == notYet)
      report("C5", stepNamed(index) + " reads " + named(id) +
                       " before any step writes it; write it first, make it an input or persistent");
    if (access.writes() && problem.storages[id].storageClass == StorageClass::Constant)
      report("C9", stepNamed(index) + " writes the constant " + named(id));
  }

  void checkInPlace(StepIndex index, const InPlaceCandidate &pair) {
    if (!known(pair.operand) || !known(pair.result))
      return report("C3", stepNamed(index) + " offers in-place with unknown storage " +
                              std::to_string(known(pair.operand) ? pair.result : pair.operand));
    std::string offer =
        stepNamed(index) + " offers " + named(pair.result) + " in the place of " + named(pair.operand) + ", but ";
    if (!accessesAs(index, pair.operand, AccessMode::Read))
      report("C7", offer + "the operand is not read (only) by this step");
    if (!accessesAs(index, pair.result, AccessMode::Write) || definedBy[pair.result] != index)
      report("C7", offer + "the result is not first written by this step");
    uint64_t operandBytes = problem.storages[pair.operand].bytes, resultBytes = problem.storages[pair.result].bytes;
    if (operandBytes != resultBytes)
      report("C7", offer + "the operand has " + groupedDigits(operandBytes) + " bytes and the result " +
                       groupedDigits(resultBytes));
  }

  /// C11: one read, one write, same bytes, exactly one of the two on the device.
  void checkCopy(StepIndex index) {
    const std::vector<Access> &accesses = problem.steps[index].accesses;
    copies.push_back(index);
    bool shape = accesses.size() == 2 && accesses[0].mode != accesses[1].mode &&
                 accesses[0].mode != AccessMode::ReadWrite && accesses[1].mode != AccessMode::ReadWrite;
    if (!shape)
      return report("C11", stepNamed(index) + " is a copy, expected that it reads one storage and writes one");
    if (!known(accesses[0].storage) || !known(accesses[1].storage))
      return;
    const Storage &a = problem.storages[accesses[0].storage], &b = problem.storages[accesses[1].storage];
    if (a.bytes != b.bytes)
      report("C11", stepNamed(index) + " copies between " + named(a.id) + " of " + groupedDigits(a.bytes) +
                        " bytes and " + named(b.id) + " of " + groupedDigits(b.bytes));
    if ((a.tier == Tier::Device) == (b.tier == Tier::Device))
      report("C11", stepNamed(index) + " copies between the " + std::string(tierName(a.tier)) + " and the " +
                        std::string(tierName(b.tier)) + ", expected the device and another tier");
  }

  /// C12, from the side of the wait.
  void checkWait(StepIndex index) {
    const Step &wait = problem.steps[index];
    if (wait.waitsFor >= index || problem.steps[wait.waitsFor].kind != StepKind::Copy)
      return report("C12", stepNamed(index) + " does not name an earlier copy to wait for");
    if (!waits.emplace(wait.waitsFor, index).second)
      report("C12", stepNamed(index) + " waits for " + stepNamed(wait.waitsFor) + " a second time");
    const std::vector<Access> &moved = problem.steps[wait.waitsFor].accesses;
    bool same = wait.accesses.size() == moved.size();
    for (const Access &access : moved)
      same = same && accessesAs(index, access.storage, AccessMode::Read);
    if (!same)
      report("C12", stepNamed(index) + " should read just the source and the target of " + stepNamed(wait.waitsFor));
  }

  void checkWaitsOfCopies() {
    for (StepIndex copy : copies)
      if (!waits.count(copy))
        report("C12", stepNamed(copy) + " is a copy that nothing waits for");
  }

  /// C13; in-place offers name accesses of their step (C7), so that those of compute steps need no look of their own.
  void checkStepOnDevice(StepIndex index) {
    const Step &step = problem.steps[index];
    if (step.kind != StepKind::Compute) {
      if (step.workspaceBytes || !step.inPlace.empty())
        report("C13", stepNamed(index) + " moves bytes but has a workspace or an in-place offer");
      return;
    }
    for (const Access &access : step.accesses)
      if (known(access.storage) && problem.storages[access.storage].tier != Tier::Device)
        report("C13", stepNamed(index) + " computes with " + named(access.storage) + ", which lies on the " +
                          std::string(tierName(problem.storages[access.storage].tier)) + "; copy it in first");
  }

  void checkEndsOnDevice() {
    for (const std::vector<StorageId> *ends : {&problem.inputs, &problem.outputs})
      for (StorageId id : *ends)
        if (known(id) && problem.storages[id].tier != Tier::Device)
          report("C13", std::string("program ") + (ends == &problem.inputs ? "input " : "output ") + named(id) +
                            " lies on the " + std::string(tierName(problem.storages[id].tier)) +
                            ", expected the device");
  }

  bool accessesAs(StepIndex index, StorageId id, AccessMode mode) const {
    for (const Access &access : problem.steps[index].accesses)
      if (access.storage == id && access.mode == mode)
        return true;
    return false;
  }

  void checkOutputsDefined() {
    for (StorageId id : problem.outputs)
      if (known(id) && definedBy[id] == notYet)
        report("C6", "program output " + named(id) + " is never written");
  }

  const Problem &problem;
  std::vector<StepIndex> definedBy;       ///< first definition per storage
  std::vector<StepIndex> lastStepListing; ///< last step that listed the storage, to find double listings
  std::vector<StepIndex> copies;
  std::unordered_map<StepIndex, StepIndex> waits; ///< copy -> its wait
  std::string lines;
  size_t count = 0;
};

} // namespace

Status Problem::check() const { return Checker(*this).run(); }

} // namespace plimsoll::planner
