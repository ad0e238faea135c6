// Which steps of a program may run again, and until when: the legality behind rematerialization.
#pragma once

#include "plimsoll/Planner/Problem.h"

#include <vector>

namespace plimsoll::planner {

/// Index into RecomputeRules::units.
using UnitId = uint32_t;
inline constexpr UnitId noUnit = noStep;

/// Steps that together define transient storages (a concatenation is several copies into one storage) and so run again
/// together. Most units are one step.
struct RecomputeUnit {
  std::vector<StepIndex> steps;    ///< ascending
  std::vector<StorageId> results;  ///< storages it defines
  std::vector<StorageId> operands; ///< storages it reads and does not define; no duplicates
  double costSeconds = 0;          ///< of all its steps
  bool canRepeat = false; ///< it only defines transient storages, each once: running it again changes nothing else
  /// First step that changes a persistent or input storage the unit reads: it gives the same results only before that
  /// step. noStep when nothing ever changes them. (Only what the unit reads itself; its transient operands may have
  /// earlier deadlines of their own.)
  StepIndex deadline = noStep;
};

struct RecomputeRules {
  std::vector<RecomputeUnit> units; ///< in order of their first step
  std::vector<UnitId> unitOf;       ///< per step
  std::vector<UnitId> producer;     ///< per storage: the unit that defines it; noUnit if persistent, staged or unused
  std::vector<std::vector<StepIndex>> readers; ///< per storage: the steps outside its unit that read it, ascending
};

/// Reads the rules off a program of compute steps. A storage that is changed after somebody read it, written by a
/// ReadWrite access, staged or persistent is never recomputed; neither is a step that also writes such a storage. So
/// random counters, running statistics and updates happen once.
/// Complexity: O(accesses). Requires: problem.check() is ok and no step is a copy or wait.
RecomputeRules recomputeRules(const Problem &problem);

/// The step at which a training program turns from forward to backward: the first one that writes a gradient, or the
/// first step of largest live bytes when there is no gradient. Everything the time bound says is about this split.
StepIndex forwardEnd(const Problem &problem);

} // namespace plimsoll::planner
