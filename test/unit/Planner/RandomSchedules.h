// Random schedules that are right by construction: recomputes by the rules of Recompute.h, transfers of everything that
// may move, state with a home on another tier. The opposite of an optimiser: it does as much as is legal.
#pragma once

#include "plimsoll/Planner/Recompute.h"
#include "plimsoll/Planner/Schedule.h"

#include <random>

namespace plimsoll::planner::test {

class RandomScheduler {
public:
  RandomScheduler(const Problem &scheduledProblem, uint32_t seed)
      : problem(scheduledProblem), rules(recomputeRules(scheduledProblem)), random(seed),
        values(scheduledProblem.storages.size()), done(scheduledProblem.steps.size(), 0) {
    activity = below(4); // 0: calm, 3: busy
  }

  Schedule make() {
    prepare();
    for (StepIndex step = 0; step < problem.steps.size(); ++step)
      run(step);
    for (StorageId id : problem.outputs)
      ensureOnDevice(id);
    for (StorageId id = 0; id < values.size(); ++id)
      settle(id);
    return std::move(schedule);
  }

private:
  enum Transfer : uint8_t { None, Leaving, Arriving };

  struct Value {
    bool mayMove = false, relocated = false;
    bool onDevice = false;    ///< some readable instance
    bool awayIsFresh = false; ///< what was moved out last (or the home) holds the current content
    bool hasAway = false;
    Transfer transfer = None;
    Tier tier = Tier::Host;
  };

  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random() % n); }
  void act(ActionKind kind, uint32_t index, Tier tier = Tier::Device) {
    schedule.actions.push_back({kind, index, tier});
  }

  void prepare() {
    for (StorageId id : problem.inputs)
      values[id].onDevice = values[id].mayMove = true;
    for (const Storage &storage : problem.storages) {
      Value &value = values[storage.id];
      bool staged = value.onDevice;
      value.tier = below(2) ? Tier::Host : Tier::Disk;
      if (!storage.persistent) {
        value.mayMove = true;
        continue;
      }
      value.mayMove = value.relocated = !staged && activity > 0 && below(3) == 0;
      value.onDevice = !value.relocated;
      value.hasAway = value.awayIsFresh = value.relocated;
      if (value.relocated)
        schedule.relocations.push_back({storage.id, value.tier});
    }
  }

  void wait(StorageId id) {
    Value &value = values[id];
    act(ActionKind::Wait, id);
    if (value.transfer == Arriving)
      value.onDevice = true;
    else
      value.hasAway = value.awayIsFresh = true;
    value.transfer = None;
  }

  bool startOut(StorageId id) {
    Value &value = values[id];
    if (!value.mayMove || !value.onDevice || value.transfer != None)
      return false;
    act(ActionKind::CopyOut, id, value.tier);
    value.transfer = Leaving;
    return true;
  }

  bool startIn(StorageId id) {
    Value &value = values[id];
    if (!value.hasAway || !value.awayIsFresh || value.transfer != None)
      return false;
    act(ActionKind::CopyIn, id);
    value.transfer = Arriving;
    return true;
  }

  void ensureOnDevice(StorageId id) {
    if (values[id].onDevice)
      return;
    if (values[id].transfer == None)
      startIn(id);
    if (activity > 1)
      disturb();
    if (values[id].transfer != None)
      wait(id);
  }

  /// Runs a finished unit again if its results come out the same now.
  void repeat(UnitId unitId) {
    const RecomputeUnit &unit = rules.units[unitId];
    if (!unit.canRepeat || (unit.deadline != noStep && done[unit.deadline]))
      return;
    for (StepIndex step : unit.steps)
      if (!done[step])
        return;
    for (StorageId id : unit.operands)
      if (!values[id].onDevice)
        return;
    for (StorageId id : unit.operands)
      if (activity > 1 && rules.producer[id] != noUnit && below(3) == 0)
        repeat(rules.producer[id]);
    for (StepIndex step : unit.steps)
      act(ActionKind::Run, step);
  }

  void disturb() {
    StorageId id = below(static_cast<uint32_t>(values.size()));
    switch (below(4)) {
    case 0:
      startOut(id);
      break;
    case 1:
      startIn(id);
      break;
    case 2:
      if (values[id].transfer != None)
        wait(id);
      break;
    default:
      repeat(below(static_cast<uint32_t>(rules.units.size())));
    }
  }

  void run(StepIndex step) {
    for (unsigned events = activity ? below(4 * activity + 1) : 0; events > 0; --events)
      disturb();
    const std::vector<Access> &accesses = problem.steps[step].accesses;
    for (const Access &access : accesses) {
      StorageId id = access.storage;
      if (access.reads() && rules.producer[id] != noUnit && below(8) < activity)
        repeat(rules.producer[id]);
      if (access.reads() && below(8) < activity && startIn(id) && below(2))
        wait(id);
    }
    // Last, so that nothing starts in between: what is read is there, what is written does not move.
    for (const Access &access : accesses)
      if (values[access.storage].relocated)
        ensureOnDevice(access.storage);
    for (const Access &access : accesses)
      if (access.writes() && values[access.storage].transfer != None)
        wait(access.storage);
    act(ActionKind::Run, step);
    done[step] = 1;
    for (const Access &access : accesses)
      if (access.writes()) {
        values[access.storage].onDevice = true;
        values[access.storage].awayIsFresh = false;
      }
  }

  /// At the end: nothing is under way, and state that changed goes home.
  void settle(StorageId id) {
    Value &value = values[id];
    if (value.transfer != None)
      wait(id);
    if (value.relocated && !value.awayIsFresh && startOut(id))
      wait(id);
  }

  const Problem &problem;
  RecomputeRules rules;
  std::mt19937 random;
  std::vector<Value> values;
  std::vector<char> done;
  unsigned activity = 0;
  Schedule schedule;
};

inline Schedule randomSchedule(const Problem &problem, uint32_t seed) { return RandomScheduler(problem, seed).make(); }

} // namespace plimsoll::planner::test
