// Schedules written out as problems, and how long a problem takes.
//
// applySchedule() walks the actions once and keeps, per storage of the original, which instance is the newest on the
// device, which one was moved out last, and whether a transfer is under way. The first writer of a transient storage
// opens a new instance whenever it runs; every other access means the newest one. Nothing here looks at contents: a
// schedule that reads stale bytes is written out faithfully and refused by validateSchedule().
#include "plimsoll/Planner/Schedule.h"

#include <cctype>
#include <cmath>
#include <unordered_set>

namespace plimsoll::planner {

Schedule keepAll(const Problem &problem) {
  Schedule schedule;
  for (StepIndex step = 0; step < problem.steps.size(); ++step)
    schedule.actions.push_back({ActionKind::Run, step, Tier::Device});
  return schedule;
}

namespace {

/// Hands out names that nobody has; the names in use are collected when the first one is asked for.
class Names {
public:
  explicit Names(const Problem &named) : problem(named) {}

  /// `stem`, or with a further number when somebody has it already.
  std::string storage(const std::string &stem) { return fresh(storageNames, stem); }
  std::string step(const std::string &stem) { return fresh(stepNames, stem); }

private:
  std::string fresh(std::unordered_set<std::string> &taken, const std::string &stem) {
    collect();
    std::string name = stem;
    for (unsigned number = 2; !taken.insert(name).second; ++number)
      name = stem + (std::isdigit(static_cast<unsigned char>(stem.back())) ? "." : "") + std::to_string(number);
    return name;
  }

  void collect() {
    if (!stepNames.empty())
      return;
    for (const Storage &storage : problem.storages)
      storageNames.insert(storage.name);
    for (const Step &step : problem.steps)
      stepNames.insert(step.name);
  }

  const Problem &problem;
  std::unordered_set<std::string> storageNames, stepNames;
};

/// What has become of one storage of the original so far.
struct Instances {
  StorageId onDevice = noStorage; ///< newest readable instance on the device
  StorageId moved = noStorage;    ///< newest one on another tier (the home of a relocated storage)
  unsigned deviceCount = 1;       ///< instances so far that are numbered like device instances; the first is the name
  bool home = false;              ///< `moved` is the home: relocated
  bool resident = false;          ///< persistent on the device
  StepIndex copyUnderWay = noStep;
  StorageId copySource = noStorage, copyTarget = noStorage;
};

class ScheduleWriter {
public:
  ScheduleWriter(const Problem &originalProblem, const Schedule &applied, const TransferSpeed (&waySpeeds)[tierCount])
      : original(originalProblem), schedule(applied), speeds(waySpeeds), names(originalProblem),
        firstWriter(originalProblem.storages.size(), noStep), runs(originalProblem.steps.size(), 0),
        instances(originalProblem.storages.size()) {}

  Result<ScheduledProblem> run() {
    if (Status status = prepare(); !status)
      return status;
    for (position = 0; position < schedule.actions.size(); ++position)
      if (Status status = apply(schedule.actions[position]); !status)
        return status;
    if (Status status = finish(); !status)
      return status;
    return std::move(result);
  }

private:
  Status fail(const std::string &text) const {
    return badInput("action " + std::to_string(position) + " of the schedule " + text);
  }
  std::string named(StorageId id) const { return "storage '" + original.storages[id].name + "'"; }

  Status prepare() {
    result.problem.alignment = original.alignment;
    result.problem.storages = original.storages;
    result.problem.inputs = original.inputs;
    result.problem.steps.reserve(schedule.actions.size());
    for (const Storage &storage : original.storages)
      result.storageOrigin.push_back(storage.id);
    if (Status status = relocate(); !status)
      return status;
    for (const Storage &storage : original.storages) {
      Instances &own = instances[storage.id];
      own.resident = storage.persistent && !own.home;
      if (own.resident)
        own.onDevice = storage.id;
    }
    for (StorageId id : original.inputs)
      instances[id].onDevice = id;
    return findFirstWriters();
  }

  Status relocate() {
    std::vector<char> staged(original.storages.size(), 0);
    for (StorageId id : original.inputs)
      staged[id] = 1;
    StorageId next = 0;
    for (const Relocation &relocation : schedule.relocations) {
      StorageId id = relocation.storage;
      if (id >= original.storages.size())
        return badInput("the schedule relocates unknown storage " + std::to_string(id));
      const char *wrong = id < next                           ? "out of order; relocations ascend by storage"
                          : !original.storages[id].persistent ? "which is not persistent"
                          : staged[id]                        ? "which is staged as input on the device"
                          : relocation.tier == Tier::Device   ? "to the device, where it is"
                                                              : nullptr;
      if (wrong)
        return badInput("the schedule relocates " + named(id) + " " + wrong);
      next = id + 1;
      instances[id].home = true;
      instances[id].moved = id;
      result.problem.storages[id].tier = relocation.tier;
    }
    return Status::ok();
  }

  /// The step that opens a new instance of each transient storage whenever it runs.
  Status findFirstWriters() {
    for (StorageId id : original.inputs)
      firstWriter[id] = noWriter;
    for (const Storage &storage : original.storages)
      if (storage.persistent)
        firstWriter[storage.id] = noWriter;
    for (StepIndex step = 0; step < original.steps.size(); ++step) {
      if (original.steps[step].kind != StepKind::Compute)
        return badInput("step " + std::to_string(step) + " '" + original.steps[step].name +
                        "' is a transfer; a schedule is about a program of compute steps");
      for (const Access &access : original.steps[step].accesses)
        if (access.writes() && firstWriter[access.storage] == noStep)
          firstWriter[access.storage] = step;
    }
    return Status::ok();
  }

  Status apply(const Action &action) {
    bool isRun = action.kind == ActionKind::Run;
    if (action.index >= (isRun ? original.steps.size() : original.storages.size()))
      return fail(std::string("names unknown ") + (isRun ? "step " : "storage ") + std::to_string(action.index));
    switch (action.kind) {
    case ActionKind::Run:
      return runStep(action.index);
    case ActionKind::CopyOut:
      return copyOut(action.index, action.tier);
    case ActionKind::CopyIn:
      return copyIn(action.index);
    case ActionKind::Wait:
      return wait(action.index);
    }
    return fail("is of no known kind");
  }

  Status runStep(StepIndex index) {
    const Step &origin = original.steps[index];
    for (const Access &access : origin.accesses) {
      bool opens = firstWriter[access.storage] == index;
      if (!opens && instances[access.storage].onDevice == noStorage)
        return fail("runs step " + std::to_string(index) + " '" + origin.name + "', which needs " +
                    named(access.storage) + ", but that is not on the device");
    }
    Step step = origin;
    if (++runs[index] > 1)
      step.name = names.step(origin.name + "." + std::to_string(runs[index]));
    // Operands first: reads mean the instances from before the step.
    for (size_t i = 0; i < step.accesses.size(); ++i)
      if (firstWriter[origin.accesses[i].storage] != index)
        step.accesses[i].storage = instances[origin.accesses[i].storage].onDevice;
    for (size_t i = 0; i < step.accesses.size(); ++i)
      if (firstWriter[origin.accesses[i].storage] == index)
        step.accesses[i].storage = openInstance(origin.accesses[i].storage);
    for (InPlaceCandidate &offer : step.inPlace)
      offer = {instances[offer.operand].onDevice, instances[offer.result].onDevice};
    append(std::move(step), index);
    return Status::ok();
  }

  /// A new device instance that is the newest from now on; the first one is the storage itself.
  StorageId openInstance(StorageId id) {
    Instances &own = instances[id];
    if (!opened(id))
      return own.onDevice = id;
    return own.onDevice = addInstance(id, names.storage(numbered(id, ".")), Tier::Device);
  }

  /// True from the second time on that a step opens an instance of `id`.
  bool opened(StorageId id) {
    if (everOpened.empty())
      everOpened.assign(original.storages.size(), 0);
    return everOpened[id]++ != 0;
  }

  std::string numbered(StorageId id, const char *prefix) {
    return original.storages[id].name + prefix + std::to_string(++instances[id].deviceCount);
  }

  StorageId addInstance(StorageId origin, std::string name, Tier tier) {
    Storage storage = original.storages[origin];
    storage.id = static_cast<StorageId>(result.problem.storages.size());
    storage.name = std::move(name);
    storage.tier = tier;
    if (storage.persistent)
      storage.storageClass = StorageClass::Workspace; // only the home survives the program
    storage.persistent = false;
    result.storageOrigin.push_back(origin);
    result.problem.storages.push_back(std::move(storage));
    return result.problem.storages.back().id;
  }

  Status copyOut(StorageId id, Tier tier) {
    Instances &own = instances[id];
    if (Status status = checkTransfer(id); !status)
      return status;
    if (tier == Tier::Device)
      return fail("moves " + named(id) + " out to the device; name another tier");
    if (own.onDevice == noStorage)
      return fail("moves " + named(id) + " out, but it is not on the device");
    Tier home = result.problem.storages[id].tier;
    if (own.home && home != tier)
      return fail("moves " + named(id) + " out to the " + std::string(tierName(tier)) + ", but its home is the " +
                  std::string(tierName(home)));
    StorageId target =
        own.home ? id
                 : addInstance(id, names.storage(original.storages[id].name + "." + std::string(tierName(tier))), tier);
    return startCopy(id, own.onDevice, target, result.problem.storages[own.onDevice].name + ".out", tier);
  }

  Status copyIn(StorageId id) {
    Instances &own = instances[id];
    if (Status status = checkTransfer(id); !status)
      return status;
    if (own.moved == noStorage)
      return fail("brings " + named(id) + " back, but it was never moved out");
    StorageId target = addInstance(id, names.storage(numbered(id, ".in")), Tier::Device);
    return startCopy(id, own.moved, target, result.problem.storages[target].name,
                     result.problem.storages[own.moved].tier);
  }

  Status checkTransfer(StorageId id) const {
    if (instances[id].resident)
      return fail("moves " + named(id) + ", which is persistent on the device; relocate it first");
    if (instances[id].copyUnderWay != noStep)
      return fail("moves " + named(id) + " before its last transfer was waited for");
    return Status::ok();
  }

  Status startCopy(StorageId id, StorageId source, StorageId target, const std::string &name, Tier tier) {
    const TransferSpeed &speed = speeds[static_cast<unsigned>(tier)];
    bool outward = result.problem.storages[target].tier != Tier::Device;
    double bytes = static_cast<double>(original.storages[id].bytes);
    Step copy;
    copy.name = names.step(name);
    copy.kind = StepKind::Copy;
    copy.accesses = {{source, AccessMode::Read}, {target, AccessMode::Write}};
    copy.costSeconds = speed.latencySeconds + bytes / (outward ? speed.outBytesPerSecond : speed.inBytesPerSecond);
    if (!std::isfinite(copy.costSeconds) || copy.costSeconds < 0)
      return fail("moves " + named(id) + " over a way without a usable speed");
    Instances &own = instances[id];
    own.copyUnderWay = static_cast<StepIndex>(result.problem.steps.size());
    own.copySource = source;
    own.copyTarget = target;
    append(std::move(copy), noStep);
    return Status::ok();
  }

  Status wait(StorageId id) {
    Instances &own = instances[id];
    if (own.copyUnderWay == noStep)
      return fail("waits for a transfer of " + named(id) + ", but none is under way");
    Step step;
    step.name = names.step(result.problem.steps[own.copyUnderWay].name + ".wait");
    step.kind = StepKind::Wait;
    step.waitsFor = own.copyUnderWay;
    step.accesses = {{own.copySource, AccessMode::Read}, {own.copyTarget, AccessMode::Read}};
    append(std::move(step), noStep);
    bool outward = result.problem.storages[own.copyTarget].tier != Tier::Device;
    (outward ? own.moved : own.onDevice) = own.copyTarget;
    own.copyUnderWay = noStep;
    return Status::ok();
  }

  void append(Step step, StepIndex origin) {
    result.problem.steps.push_back(std::move(step));
    result.stepOrigin.push_back(origin);
  }

  Status finish() {
    for (const Storage &storage : original.storages)
      if (instances[storage.id].copyUnderWay != noStep)
        return badInput("the schedule never waits for the last transfer of " + named(storage.id));
    for (StorageId id : original.outputs) {
      if (instances[id].onDevice == noStorage)
        return badInput("at the end of the schedule the output " + named(id) + " is not on the device");
      result.problem.outputs.push_back(instances[id].onDevice);
    }
    return Status::ok();
  }

  static constexpr StepIndex noWriter = noStep - 1; ///< persistent or staged: no step opens instances

  const Problem &original;
  const Schedule &schedule;
  const TransferSpeed (&speeds)[tierCount];
  Names names;
  std::vector<StepIndex> firstWriter; ///< per storage of the original
  std::vector<unsigned> runs;         ///< per step of the original
  std::vector<Instances> instances;   ///< per storage of the original
  std::vector<char> everOpened;       ///< per storage of the original
  size_t position = 0;                ///< of the action at hand
  ScheduledProblem result;
};

} // namespace

Result<ScheduledProblem> applySchedule(const Problem &original, const Schedule &schedule,
                                       const TransferSpeed (&speeds)[tierCount]) {
  return ScheduleWriter(original, schedule, speeds).run();
}

Timing predictTiming(const Problem &problem) {
  double now = 0;
  double wayFree[tierCount][2] = {}; // per tier and direction (0 out, 1 in): when its last copy is done
  std::vector<double> doneAt(problem.steps.size(), 0);
  Timing timing;
  for (StepIndex index = 0; index < problem.steps.size(); ++index) {
    const Step &step = problem.steps[index];
    if (step.kind == StepKind::Compute) {
      now += step.costSeconds;
      timing.computeSeconds += step.costSeconds;
    } else if (step.kind == StepKind::Copy) {
      Tier from = Tier::Device, to = Tier::Device;
      for (const Access &access : step.accesses)
        (access.writes() ? to : from) = problem.storages[access.storage].tier;
      bool inward = to == Tier::Device;
      double &free = wayFree[static_cast<unsigned>(inward ? from : to)][inward];
      doneAt[index] = free = std::max(now, free) + step.costSeconds;
    } else if (double done = doneAt[step.waitsFor]; done > now) {
      timing.stallSeconds += done - now;
      now = done;
    }
  }
  return timing;
}

} // namespace plimsoll::planner
