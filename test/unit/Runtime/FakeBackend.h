// A backend of a few lines for tests: plain memory, kernels found by symbol name, the operations "copy", "sum" and
// "faulty", and a journal of what was asked of it.
#pragma once

#include "runtime/Core/Backend.h"

#include <memory>
#include <string>
#include <vector>

namespace plimsoll::test {

/// What the session asked for, and the knobs to make it fail.
struct FakeJournal {
  std::vector<std::string> loaded;  ///< symbols, in order
  std::vector<uint64_t> arenaBytes; ///< one per allocation
  size_t arenasFreed = 0;
  size_t launches = 0, calls = 0, copies = 0, records = 0, waits = 0, synchronizations = 0;
  uint64_t sumWorkspace = 128; ///< bytes "sum" says it needs
  std::string refuseOp;        ///< prepare() fails for this operation
  std::string faultOp;         ///< execute() of this operation raises a fault
  bool refuseArena = false;    ///< allocateArena() fails
  bool inOrder = true;
};

/// A backend that writes into `journal`, which outlives it.
std::unique_ptr<runtime::Backend> createFakeBackend(FakeJournal &journal);

} // namespace plimsoll::test
