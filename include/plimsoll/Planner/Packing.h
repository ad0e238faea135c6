// Offsets for items with fixed lifetimes in one arena (dynamic storage allocation), with a bound on what is possible.
#pragma once

#include "plimsoll/Support/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::planner {

/// `bytes` that are needed at every time in [lower, upper). Times are any integers.
struct PackingItem {
  std::string id;
  uint64_t bytes = 0;
  int64_t lower = 0;
  int64_t upper = 0;
};

struct PackingProblem {
  std::vector<PackingItem> items;
  uint64_t alignment = 1;                ///< power of two; sizes are rounded up to it before everything else
  std::optional<uint64_t> capacityBytes; ///< a placement above it is refused; the first one within it is good enough

  /// Ok, or BadInput listing every inverted or empty lifetime, duplicate or empty id, bad alignment and size overflow.
  Status check() const;
};

enum class PackStrategy : uint8_t {
  Solve,    ///< all greedy orders with both rules, then a depth-first search of the sections above the bound
  FirstFit, ///< best of the greedy orders, each item at its lowest place
  BestFit,  ///< best of the greedy orders, each item in the tightest gap
  Buddy,    ///< sizes rounded to powers of two, binary buddies in order of birth: the classic run-time allocator
};

/// "solve", "first-fit", "best-fit", "buddy".
std::string_view packStrategyName(PackStrategy strategy);
/// BadInput naming the four strategies when `name` is none of them.
Result<PackStrategy> parsePackStrategy(std::string_view name);

struct PackOptions {
  PackStrategy strategy = PackStrategy::Solve;
  /// Work limit of the depth-first search in boxes and instants looked at, shared by all sections; about 4e8 a second.
  /// 0 leaves the search out. Counting work, not seconds, keeps results equal on every machine.
  uint64_t searchEffort = 2'000'000'000;
};

struct PackingSolution {
  std::vector<uint64_t> offsets; ///< per item, multiples of the alignment
  uint64_t arenaBytes = 0;       ///< aligned height of the placement
  uint64_t maxLiveBytes = 0;     ///< largest sum of aligned sizes at one time
  int64_t witnessTime = 0;       ///< first time at which maxLiveBytes is reached
  uint64_t lowerBoundBytes = 0;  ///< proved: no placement is lower; at least maxLiveBytes
  std::string strategy;          ///< what produced the offsets, such as "size/first-fit" or "search"
};

/// Objective: the lowest arena, within the effort; with a capacity, an arena within it.
/// Input rules: problem.check() is ok.
/// Fails if check() fails (BadInput), or the best placement is above the capacity (DoesNotFit, with the bound).
/// Complexity: O(n log n + overlaps) per greedy order; the search is bounded by its effort. Deterministic: neither the
/// machine, the clock nor the thread count matters.
Result<PackingSolution> pack(const PackingProblem &problem, const PackOptions &options = {});

} // namespace plimsoll::planner
