// Promised memory beside measured memory, in the two lines of the promise (docs/Runner.md, "Memory").
#pragma once

#include "plimsoll/Runtime/Session.h"

#include <cstdint>
#include <string>

namespace plimsoll::runtime {

/// All in bytes.
struct MemoryAccount {
  uint64_t promisedTraining = 0; ///< Memory.training_bytes
  uint64_t promisedProcess = 0;  ///< training_bytes + process_constant_bytes
  uint64_t arenaBytes = 0;
  uint64_t touchedBytes = 0; ///< highest arena byte any executed command or port could touch
  uint64_t runtimeBytes = 0;
  uint64_t stagingBytes = 0;
  uint64_t measuredProcess = 0; ///< VmHWM
  uint64_t measuredTraining() const { return arenaBytes + runtimeBytes + stagingBytes; }
  bool kept() const { return measuredTraining() <= promisedTraining && measuredProcess <= promisedProcess; }
};

/// Takes the figures of `session` now. `stagingBytes` is what the data feeds may keep resident.
MemoryAccount accountMemory(const Session &session, uint64_t stagingBytes, uint64_t processPeakBytes);

/// Two lines: "training memory  promised …  measured …  (97.3 %)" and the same for the process.
std::string memoryText(const MemoryAccount &account);

/// Ok, or BrokenPromise naming the line that was exceeded and both numbers.
Status checkMemory(const MemoryAccount &account);

} // namespace plimsoll::runtime
