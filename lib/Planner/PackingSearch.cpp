// Depth-first search for a placement of one section below a given height.
//
// Problem. Placing boxes with fixed lifetimes in the least height is NP-hard. Greedy orders end 30 to 40 % above the
// bound on the hard public instances (minimalloc A..K), because a hole that is too small at a busy instant cannot be
// repaired later.
// Method. Among all placements below the height take one with the least sum of offsets: no box can slide down in it.
// Its boxes, in order of (offset, rank), can be placed one after the other, each at the lowest place above what is
// already there. So the search only decides who is next, and it may demand
//   order      the next box lies at or above the last one; equal offsets come in the order of preference,
//   dominance  no box that stays behind would fit entirely below the next one (it could slide down),
//   bound      at every instant the unplaced boxes, each not below its lowest place, stack up below the height (the
//              one-machine bound with release dates: sort by lowest place, then C = max(C, place) + bytes),
//   parts      unplaced boxes that share no instant are solved apart; when one part fails, the node fails, and the
//              parts already solved are not tried again.
// A node whose (unplaced boxes, their lowest places, last offset) failed before is not entered again.
// The search ends with a placement, with a proof that there is none, or when the effort is used up. A proof yields the
// smallest bound that was refused: the next height worth trying (as in iterative deepening A*).
// Heights rise from the goal: after proofs to that next height, after a give-up by 0.1 %, 0.2 %, 0.4 % ...
// Several orders of the candidates share the effort in rounds of growing size, since a good order finds a placement
// quickly and a bad one never does.
// Complexity: exponential, cut by the effort. Deterministic: effort counts boxes and instants looked at.
// Source: the ideas of canonical placements, sections and dominance are from M. Moffitt, "MiniMalloc: A Lightweight
// Memory Allocator for Hardware-Accelerated Machine Learning" (ASPLOS 2023), sections 4 and 5; the one-machine bound is
// Carlier's.
#include "PackingInternal.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <unordered_set>

namespace plimsoll::planner::packing {

namespace {

/// Larger sections would spend the whole effort on their first descents.
constexpr size_t mostBoxes = 4096;
constexpr size_t mostFailures = 1u << 21;
const uint64_t firstRoundEffort = 1u << (getenv("H1R") ? atoi(getenv("H1R")) : 22);
const size_t descentsPerRound = (getenv("H1D") ? atoi(getenv("H1D")) : 16);

/// The finalizer of splitmix64.
uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

enum class Verdict : uint8_t { Found, Refuted, GaveUp };

/// One descent with fixed height, candidate order and effort.
class Descent {
public:
  Descent(const Section &searched, const std::vector<uint32_t> &preference, int64_t height, uint64_t effort)
      : boxes(searched.boxes), rank(preference), capacity(height), effortLimit(effort), offsets(boxes.size(), 0),
        lowest(boxes.size(), 0), stacked(searched.timeCount, 0), keys(boxes.size()) {
    uint64_t state = 0x9E3779B97F4A7C15u;
    for (uint64_t &key : keys)
      key = mix(state += 0x9E3779B97F4A7C15u);
  }

  Verdict run() {
    std::vector<uint32_t> all(boxes.size());
    std::iota(all.begin(), all.end(), 0u);
    return solve(all, {0, 0});
  }

  const std::vector<int64_t> &placedOffsets() const { return offsets; }
  uint64_t used() const { return effortUsed; }
  int64_t nextHeight() const { return smallestRefused; }

private:
  /// The box placed last: nothing after it lies lower.
  struct Last {
    int64_t offset;
    uint32_t rank;
  };

  /// 128 bits, so that two states never share a key by chance and refutations stay proofs.
  struct StateKey {
    uint64_t first = 0, second = 0;
    bool operator==(const StateKey &) const = default;
  };
  struct StateKeyHash {
    size_t operator()(const StateKey &key) const { return key.first; }
  };

  int64_t size(uint32_t i) const { return static_cast<int64_t>(boxes[i].bytes); }

  /// `part`: unplaced boxes, by lower, connected in time.
  Verdict solve(const std::vector<uint32_t> &part, Last last) {
    if (part.empty())
      return Verdict::Found;
    if (effortUsed >= effortLimit)
      return Verdict::GaveUp;
    if (!fitsBelow(part, last.offset))
      return Verdict::Refuted;
    int64_t lowestTop = INT64_MAX;
    for (uint32_t i : part)
      lowestTop = std::min(lowestTop, lowest[i] + size(i));
    if (lowestTop <= last.offset)
      return Verdict::Refuted;
    StateKey key = stateKey(part, last);
    if (failures.count(key))
      return Verdict::Refuted;
    for (uint32_t next : candidates(part, last, lowestTop))
      if (Verdict verdict = placeAndContinue(part, next); verdict != Verdict::Refuted)
        return verdict;
    if (failures.size() < mostFailures)
      failures.insert(key);
    return Verdict::Refuted;
  }

  std::vector<uint32_t> candidates(const std::vector<uint32_t> &part, Last last, int64_t lowestTop) const {
    std::vector<uint32_t> found;
    for (uint32_t i : part)
      if (lowest[i] < lowestTop && (lowest[i] > last.offset || (lowest[i] == last.offset && rank[i] >= last.rank)))
        found.push_back(i);
    std::sort(found.begin(), found.end(), [&](uint32_t a, uint32_t b) {
      return lowest[a] != lowest[b] ? lowest[a] < lowest[b] : rank[a] < rank[b];
    });
    return found;
  }

  Verdict placeAndContinue(const std::vector<uint32_t> &part, uint32_t next) {
    size_t mark = trail.size();
    Last last{lowest[next], rank[next]};
    place(part, next);
    Verdict verdict = Verdict::Found;
    for (const std::vector<uint32_t> &rest : partsWithout(part, next))
      if ((verdict = solve(rest, last)) != Verdict::Found)
        break;
    if (verdict != Verdict::Found)
      undo(mark);
    return verdict;
  }

  void place(const std::vector<uint32_t> &part, uint32_t next) {
    const Box &box = boxes[next];
    offsets[next] = lowest[next];
    int64_t top = lowest[next] + size(next);
    for (uint32_t i : part) {
      if (boxes[i].lower >= box.upper)
        break;
      if (i == next || boxes[i].upper <= box.lower || lowest[i] >= top)
        continue;
      trail.push_back({i, lowest[i]});
      lowest[i] = top;
    }
    effortUsed += part.size();
  }

  void undo(size_t mark) {
    for (; trail.size() > mark; trail.pop_back())
      lowest[trail.back().index] = trail.back().old;
  }

  /// What is left, cut where nothing crosses; small parts first, because they fail quickly.
  std::vector<std::vector<uint32_t>> partsWithout(const std::vector<uint32_t> &part, uint32_t removed) const {
    std::vector<std::vector<uint32_t>> parts;
    uint32_t reach = 0;
    for (uint32_t i : part) {
      if (i == removed)
        continue;
      if (parts.empty() || boxes[i].lower >= reach)
        parts.emplace_back();
      parts.back().push_back(i);
      reach = std::max(reach, boxes[i].upper);
    }
    std::stable_sort(parts.begin(), parts.end(), [](const auto &a, const auto &b) { return a.size() < b.size(); });
    return parts;
  }

  /// The one-machine bound at every instant of the part.
  bool fitsBelow(const std::vector<uint32_t> &part, int64_t lastOffset) {
    byPlace.assign(part.begin(), part.end());
    std::sort(byPlace.begin(), byPlace.end(), [&](uint32_t a, uint32_t b) { return lowest[a] < lowest[b]; });
    uint32_t begin = boxes[part.front()].lower, end = begin;
    for (uint32_t i : part)
      end = std::max(end, boxes[i].upper);
    std::fill(stacked.begin() + begin, stacked.begin() + end, 0);
    for (uint32_t i : byPlace) {
      int64_t place = std::max(lowest[i], lastOffset), bytes = size(i);
      for (uint32_t time = boxes[i].lower; time < boxes[i].upper; ++time)
        stacked[time] = std::max(stacked[time], place) + bytes;
      effortUsed += 4 + (boxes[i].upper - boxes[i].lower) / 4;
    }
    int64_t most = *std::max_element(stacked.begin() + begin, stacked.begin() + end);
    if (most > capacity)
      smallestRefused = std::min(smallestRefused, most);
    return most <= capacity;
  }

  /// Which boxes are left and how low each can go decides what is possible from here on; the last box only matters
  /// while something could still go as low as it.
  StateKey stateKey(const std::vector<uint32_t> &part, Last last) const {
    int64_t least = INT64_MAX;
    StateKey key;
    for (uint32_t i : part) {
      least = std::min(least, lowest[i]);
      uint64_t word = mix(keys[i] ^ static_cast<uint64_t>(lowest[i]));
      key.first += word;
      key.second += mix(word ^ keys[0]);
    }
    if (least <= last.offset) {
      key.first ^= mix(static_cast<uint64_t>(last.offset) + 1);
      key.second ^= mix(~static_cast<uint64_t>(last.rank));
    }
    return key;
  }

  struct Change {
    uint32_t index;
    int64_t old;
  };

  const std::vector<Box> &boxes;
  const std::vector<uint32_t> &rank; ///< candidates at equal places: lower first
  int64_t capacity;
  uint64_t effortLimit, effortUsed = 0;
  int64_t smallestRefused = INT64_MAX;
  std::vector<int64_t> offsets, lowest; ///< per box: place taken; lowest place above what is placed
  std::vector<int64_t> stacked;         ///< per instant: scratch of the bound
  std::vector<Change> trail;            ///< what to restore in `lowest`
  std::vector<uint32_t> byPlace;        ///< scratch of the bound
  std::vector<uint64_t> keys;           ///< per box, for state keys
  std::unordered_set<StateKey, StateKeyHash> failures;
};

/// The largest sum of bytes at any instant of each box: boxes of busy instants have the least freedom.
std::vector<double> contention(const Section &section) {
  std::vector<double> live(section.timeCount, 0);
  for (const Box &box : section.boxes)
    for (uint32_t time = box.lower; time < box.upper; ++time)
      live[time] += static_cast<double>(box.bytes);
  std::vector<double> most;
  for (const Box &box : section.boxes)
    most.push_back(*std::max_element(live.begin() + box.lower, live.begin() + box.upper));
  return most;
}

/// An endless supply of candidate orders for the descents: boxes by descending weighted sum of the logarithms of
/// contention, lifetime and bytes. The first weights are those that most often work; then they are drawn (splitmix64,
/// fixed seed), because how long a descent takes has a heavy tail and no order is good everywhere.
class Preferences {
public:
  explicit Preferences(const Section &section) {
    std::vector<double> total = contention(section);
    for (size_t i = 0; i < section.boxes.size(); ++i) {
      const Box &box = section.boxes[i];
      features.push_back({std::log(total[i]), std::log(static_cast<double>(box.upper - box.lower)),
                          std::log(static_cast<double>(box.bytes))});
    }
  }

  /// Rank per box, lower is earlier.
  std::vector<uint32_t> next() {
    Weights weights = turn < std::size(proven) ? proven[turn] : drawn();
    ++turn;
    auto score = [&](uint32_t i) {
      return weights[0] * features[i][0] + weights[1] * features[i][1] + weights[2] * features[i][2];
    };
    std::vector<uint32_t> order(features.size()), rank(features.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return score(a) > score(b); });
    for (uint32_t i = 0; i < order.size(); ++i)
      rank[order[i]] = i;
    return rank;
  }

private:
  using Weights = std::array<double, 3>;
  /// contention, then area; contention, then lifetime; area; lifetime, then bytes
  static constexpr Weights proven[] = {{1e6, 1, 1}, {1e6, 1, 1e-3}, {0, 1, 1}, {0, 1, 1e-3}};

  double unit() {
    state += 0x9E3779B97F4A7C15u;
    return static_cast<double>(mix(state) >> 11) * 0x1p-53;
  }
  Weights drawn() {
    double contentionWeight = 16 * unit(), lifeWeight = 2 * unit(), bytesWeight = 2 * unit();
    return {contentionWeight, lifeWeight, bytesWeight};
  }

  std::vector<Weights> features;
  size_t turn = 0;
  uint64_t state = 1;
};

/// All attempts at one section.
class SectionSearch {
public:
  SectionSearch(const Section &searched, uint64_t effort)
      : section(searched), preferences(searched), effortLeft(effort) {}

  SearchResult run(uint64_t goodEnough, uint64_t mustBeat) {
    result.lowerBound = section.maxLive;
    uint64_t height = std::max(goodEnough, section.maxLive);
    double slack = 0.001;
    bool proved = true;
    while (height < mustBeat && effortLeft > 0 && !result.placement.isFound()) {
      Verdict verdict = attempt(height);
      if (verdict == Verdict::Refuted) {
        height = nextHeight;
        result.lowerBound = proved ? std::min(height, mustBeat) : result.lowerBound;
      } else if (verdict == Verdict::GaveUp) {
        proved = false;
        height += std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(height) * slack));
        slack *= 2;
      }
    }
    return std::move(result);
  }

private:
  /// Tries one height with half of what is left, in rounds over the preferences.
  Verdict attempt(uint64_t height) {
    uint64_t share = effortLeft - effortLeft / 2;
    for (size_t turn = 0; share > 0; ++turn) {
      uint64_t round = firstRoundEffort << std::min<size_t>(turn / descentsPerRound, 30);
      std::vector<uint32_t> rank = preferences.next();
      Descent descent(section, rank, static_cast<int64_t>(height), std::min(round, share));
      Verdict verdict = descent.run();
      spend(descent.used(), share);
      nextHeight = static_cast<uint64_t>(descent.nextHeight());
      if (verdict == Verdict::Found)
        keep(descent.placedOffsets());
      if (verdict != Verdict::GaveUp)
        return verdict;
    }
    return Verdict::GaveUp;
  }

  void spend(uint64_t used, uint64_t &share) {
    result.effortUsed += used;
    share -= std::min(share, used);
    effortLeft -= std::min(effortLeft, used);
  }

  void keep(const std::vector<int64_t> &offsets) {
    result.placement.height = 0;
    result.placement.strategy = "search";
    for (size_t i = 0; i < offsets.size(); ++i) {
      result.placement.offsets.push_back(static_cast<uint64_t>(offsets[i]));
      result.placement.height = std::max(result.placement.height, result.placement.offsets[i] + section.boxes[i].bytes);
    }
  }

  const Section &section;
  Preferences preferences;
  uint64_t effortLeft;
  uint64_t nextHeight = 0;
  SearchResult result;
};

} // namespace

SearchResult searchSection(const Section &section, uint64_t goodEnough, uint64_t mustBeat, uint64_t effort) {
  if (section.boxes.size() > mostBoxes)
    return {{}, section.maxLive, 0};
  return SectionSearch(section, effort).run(goodEnough, mustBeat);
}

} // namespace plimsoll::planner::packing
