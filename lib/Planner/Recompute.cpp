// Recompute rules: units of steps that define storages together, whether they may repeat, and their deadlines.
#include "plimsoll/Planner/Recompute.h"
#include "plimsoll/Planner/Liveness.h"

#include <algorithm>
#include <numeric>

namespace plimsoll::planner {

namespace {

/// What the whole program does to one storage.
struct History {
  std::vector<StepIndex> writers; ///< ascending
  std::vector<StepIndex> readers; ///< ascending; a ReadWrite is both
  bool fixed = false;             ///< persistent or staged: there before the first step
  bool changed = false;           ///< written by a ReadWrite, or written again after it was read
};

std::vector<History> historiesOf(const Problem &problem) {
  std::vector<History> histories(problem.storages.size());
  for (StorageId id : problem.inputs)
    histories[id].fixed = true;
  for (const Storage &storage : problem.storages)
    histories[storage.id].fixed |= storage.persistent;
  for (StepIndex step = 0; step < problem.steps.size(); ++step)
    for (const Access &access : problem.steps[step].accesses) {
      History &history = histories[access.storage];
      history.changed |= access.writes() && (access.reads() || !history.readers.empty());
      if (access.reads())
        history.readers.push_back(step);
      if (access.writes())
        history.writers.push_back(step);
    }
  return histories;
}

/// Representative step of every step's unit: steps that write one transient storage are joined.
class Joined {
public:
  explicit Joined(size_t steps) : parent(steps) { std::iota(parent.begin(), parent.end(), 0u); }
  StepIndex find(StepIndex step) {
    while (parent[step] != step)
      step = parent[step] = parent[parent[step]];
    return step;
  }
  /// The earlier step represents both.
  void join(StepIndex a, StepIndex b) {
    a = find(a);
    b = find(b);
    parent[std::max(a, b)] = std::min(a, b);
  }

private:
  std::vector<StepIndex> parent;
};

/// Sorts out what a unit reads and defines, and whether it may repeat.
void describe(RecomputeUnit &unit, const Problem &problem, const std::vector<History> &histories) {
  unit.canRepeat = true;
  for (StepIndex step : unit.steps) {
    unit.costSeconds += problem.steps[step].costSeconds;
    for (const Access &access : problem.steps[step].accesses) {
      const History &history = histories[access.storage];
      if (access.writes()) {
        unit.results.push_back(access.storage);
        unit.canRepeat &= !history.fixed && !history.changed;
      } else {
        unit.operands.push_back(access.storage);
      }
    }
  }
  auto unique = [](std::vector<StorageId> &ids) {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  };
  unique(unit.results);
  unique(unit.operands);
  std::erase_if(unit.operands,
                [&](StorageId id) { return std::binary_search(unit.results.begin(), unit.results.end(), id); });
  // A step of another unit that feeds one step from an earlier one would have to repeat in between.
  for (StorageId id : unit.operands)
    for (StepIndex writer : histories[id].writers)
      unit.canRepeat &= writer < unit.steps.front() || writer > unit.steps.back();
  for (StorageId id : unit.operands) {
    const History &history = histories[id];
    auto change = std::upper_bound(history.writers.begin(), history.writers.end(), unit.steps.back());
    if (change == history.writers.end())
      continue;
    if (history.fixed)
      unit.deadline = std::min(unit.deadline, *change);
    else
      unit.canRepeat = false; // a transient operand that changes later cannot be made again as it was
  }
}

} // namespace

RecomputeRules recomputeRules(const Problem &problem) {
  std::vector<History> histories = historiesOf(problem);
  Joined joined(problem.steps.size());
  for (const History &history : histories)
    for (size_t i = 1; !history.fixed && i < history.writers.size(); ++i)
      joined.join(history.writers[0], history.writers[i]);

  RecomputeRules rules;
  rules.unitOf.resize(problem.steps.size());
  for (StepIndex step = 0; step < problem.steps.size(); ++step) {
    StepIndex first = joined.find(step);
    if (first == step) {
      rules.unitOf[step] = static_cast<UnitId>(rules.units.size());
      rules.units.emplace_back();
    }
    rules.unitOf[step] = rules.unitOf[first];
    rules.units[rules.unitOf[step]].steps.push_back(step);
  }
  for (RecomputeUnit &unit : rules.units)
    describe(unit, problem, histories);

  rules.producer.assign(problem.storages.size(), noUnit);
  rules.readers.resize(problem.storages.size());
  for (const Storage &storage : problem.storages) {
    const History &history = histories[storage.id];
    if (!history.fixed && !history.writers.empty())
      rules.producer[storage.id] = rules.unitOf[history.writers.front()];
    for (StepIndex reader : history.readers)
      if (rules.unitOf[reader] != rules.producer[storage.id] || rules.producer[storage.id] == noUnit)
        rules.readers[storage.id].push_back(reader);
  }
  return rules;
}

StepIndex forwardEnd(const Problem &problem) {
  for (StepIndex step = 0; step < problem.steps.size(); ++step)
    for (const Access &access : problem.steps[step].accesses)
      if (access.writes() && problem.storages[access.storage].storageClass == StorageClass::Gradient)
        return step;
  Result<Liveness> live = computeLiveness(problem);
  return live ? live->witnessStep : 0;
}

} // namespace plimsoll::planner
