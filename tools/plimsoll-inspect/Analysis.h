// What is live when: the memory picture of one entry, computed from the artifact's buffers alone.
#pragma once

#include "plimsoll/Support/Status.h"
#include "runtime/Artifact/Artifact_generated.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::inspect {

/// Number of buffer classes.
constexpr size_t classCount = 10;

/// One buffer as the reports show it.
struct LiveBuffer {
  std::string name;
  artifact::BufferClass klass = artifact::BufferClass::Activation;
  std::string source; ///< node or parameter of the model it comes from
  uint32_t arena = 0;
  uint64_t offset = 0; ///< bytes
  uint64_t bytes = 0;
  bool persistent = false;   ///< lives for the whole session
  uint32_t firstCommand = 0; ///< first and last command it is live at, both inclusive; 0 and the last if persistent
  uint32_t lastCommand = 0;
};

/// The memory picture of one entry. Bytes are those of device arenas; a byte shared in place counts once.
struct EntryAnalysis {
  std::string name;
  uint64_t commands = 0, launches = 0, libraryCalls = 0, copies = 0, events = 0;
  uint64_t peakBytes = 0;       ///< end of the highest byte used, as the artifact states it
  uint64_t liveBytesAtPeak = 0; ///< computed
  uint32_t peakCommand = 0;     ///< the stated one when it is a maximum, otherwise the first maximum
  std::string peakLabel;
  std::array<uint64_t, classCount> classesAtPeak{}; ///< live bytes by class at the peak
  std::vector<LiveBuffer> liveAtPeak;               ///< largest first, then by offset
};

/// Live device bytes at every command of `entry` (one element when it has none). O(buffers log buffers + commands).
std::vector<uint64_t> liveBytes(const artifact::SealedPlanT &plan, const artifact::EntryT &entry);

/// All buffers of the entry and the persistent ones, in schema order.
std::vector<LiveBuffer> allBuffers(const artifact::SealedPlanT &plan, const artifact::EntryT &entry);

EntryAnalysis analyse(const artifact::SealedPlanT &plan, const artifact::EntryT &entry);

/// Compares the live bytes an entry states for its peak with what its buffers give, exact or rounded up to the arena's
/// alignment (the planner may count either way). BadInput naming the numbers when neither can be.
Status checkStatedPeak(const artifact::SealedPlanT &plan, const artifact::EntryT &entry);

/// "parameter", "optimizer_state"…: stable names, also used as JSON keys.
const char *className(artifact::BufferClass klass);

} // namespace plimsoll::inspect
