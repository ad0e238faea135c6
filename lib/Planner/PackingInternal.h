// Shared by the packing sources only: items reduced to boxes on a dense time axis, and the parts they are handed to.
#pragma once

#include "plimsoll/Planner/Packing.h"

#include <cstdint>
#include <string>
#include <vector>

namespace plimsoll::planner::packing {

/// An item with an aligned, positive size, live in [lower, upper) of the dense time axis of its section.
struct Box {
  uint64_t bytes = 0;
  uint32_t lower = 0;
  uint32_t upper = 0;
  uint32_t item = 0; ///< index into PackingProblem::items
};

/// Boxes that share no instant with the rest of the problem once the boxes under `base` are taken away.
/// Boxes are sorted by lower, then item; times are dense: 0 .. timeCount-1, each one the lower of some box.
struct Section {
  std::vector<Box> boxes;
  uint32_t timeCount = 0;
  uint64_t base = 0;    ///< bytes below that belong to boxes spanning the whole section
  uint64_t maxLive = 0; ///< of the boxes alone, without base
};

/// A placement of one section, relative to its base.
struct Placement {
  std::vector<uint64_t> offsets; ///< per box
  uint64_t height = UINT64_MAX;
  std::string strategy;
  bool isFound() const { return height != UINT64_MAX; }
};

/// The greedy orders and rules, in the order they are tried.
enum class FitRule : uint8_t { First, Best };

/// Best greedy placement over all orders with the given rules; stops early at `goodEnough` bytes. When no order
/// reaches it, boxes that stick out are moved to the front and placed again, a fixed number of rounds.
Placement placeGreedily(const Section &section, const std::vector<FitRule> &rules, uint64_t goodEnough, bool repair);

/// Binary buddies in order of birth.
Placement placeBuddies(const Section &section);

struct SearchResult {
  Placement placement;     ///< not found when the effort ran out or nothing below `mustBeat` exists
  uint64_t lowerBound = 0; ///< proved height of the section
  uint64_t effortUsed = 0;
};

/// Looks for a placement lower than `mustBeat` bytes, best possible first; any height up to `goodEnough` ends it.
SearchResult searchSection(const Section &section, uint64_t goodEnough, uint64_t mustBeat, uint64_t effort);

/// Largest sum of bytes at one time; `witness` is the first such time.
uint64_t maxLiveOf(const std::vector<Box> &boxes, uint32_t timeCount, uint32_t *witness = nullptr);

} // namespace plimsoll::planner::packing
