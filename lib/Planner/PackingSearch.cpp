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
// Descents with different orders of the candidates share the effort, short ones first: a good order finds a placement
// at once and a bad one never does. Orders learn: instants at which the bound refused many nodes make their boxes come
// earlier in later descents. Without learning three of the public instances stay 3 to 13 % too high.
// Complexity: exponential, cut by the effort. Deterministic: integers only, and effort counts boxes and instants.
// Source: the ideas of canonical placements, sections and dominance are from M. Moffitt, "MiniMalloc: A Lightweight
// Memory Allocator for Hardware-Accelerated Machine Learning" (ASPLOS 2023); the one-machine bound is Carlier's;
// learning from refusals follows the weighted-degree heuristics of constraint solving. Measured (one core of a 2-core
// machine, minimalloc A..K with their capacity 1,048,576): A .1 B .01 C .03 D .01 E .4 F .1 G .2 H .01 J .2 K 1.0 s; I
// is not reached, 1,051,648 (+0.3 %) after 10 s.
#include "PackingInternal.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_set>

namespace plimsoll::planner::packing {

namespace {

/// Larger sections would spend the whole effort on their first descents.
constexpr size_t mostBoxes = 4096;
constexpr size_t mostFailures = 1u << 21;
constexpr uint64_t firstRoundEffort = 1u << 20;
constexpr size_t descentsPerRound = 32;

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
        lowest(boxes.size(), 0), stacked(searched.timeCount, 0), refusals(searched.timeCount, 0), keys(boxes.size()) {
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
  /// Per instant, how often the bound refused a node there.
  const std::vector<uint64_t> &refusalCounts() const { return refusals; }
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
    auto worst = std::max_element(stacked.begin() + begin, stacked.begin() + end);
    if (*worst <= capacity)
      return true;
    smallestRefused = std::min(smallestRefused, *worst);
    ++refusals[static_cast<size_t>(worst - stacked.begin())];
    return false;
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
  std::vector<uint64_t> refusals;       ///< per instant
  std::vector<Change> trail;            ///< what to restore in `lowest`
  std::vector<uint32_t> byPlace;        ///< scratch of the bound
  std::vector<uint64_t> keys;           ///< per box, for state keys
  std::unordered_set<StateKey, StateKeyHash> failures;
};

/// log2 in fixed point with 12 fractional bits, by repeated squaring; 0 for 0. Integers only, so that every machine and
/// math library gives the same orders.
int64_t fixedLog2(uint64_t value) {
  if (value == 0)
    return 0;
  int64_t whole = std::bit_width(value) - 1;
  uint64_t mantissa = whole > 31 ? value >> (whole - 31) : value << (31 - whole);
  int64_t result = whole;
  for (int bit = 0; bit < 12; ++bit) {
    mantissa = (mantissa * mantissa) >> 31;
    uint64_t carry = mantissa >> 32;
    mantissa >>= carry;
    result = result * 2 + static_cast<int64_t>(carry);
  }
  return result;
}

/// An endless supply of candidate orders for the descents: boxes by descending weighted sum of the logarithms of
/// pressure, lifetime and bytes. Pressure is the largest live sum at any instant of the box, or, learned from earlier
/// descents, how often the bound refused nodes at an instant of it. The first weights are those that most often work,
/// then they are drawn (splitmix64, fixed seed), because how long a descent takes has a heavy tail.
class Preferences {
public:
  explicit Preferences(const Section &searched) : section(searched), blame(searched.timeCount, 0) {
    std::vector<uint64_t> live(section.timeCount, 0);
    for (const Box &box : section.boxes)
      for (uint32_t time = box.lower; time < box.upper; ++time)
        live[time] += box.bytes;
    contention = pressures(live);
    blamed.assign(section.boxes.size(), 0);
  }

  /// Where nodes were refused in a descent; older descents count for less.
  void learn(const std::vector<uint64_t> &refusals) {
    uint64_t sum = std::accumulate(refusals.begin(), refusals.end(), uint64_t{1});
    for (size_t time = 0; time < refusals.size(); ++time)
      blame[time] = blame[time] * 9 / 10 + (refusals[time] << 20) / sum;
    std::vector<uint64_t> softened = blame;
    for (uint64_t &value : softened)
      value += 100;
    blamed = pressures(softened);
  }

  /// Rank per box, lower is earlier.
  std::vector<uint32_t> next() {
    bool isProven = turn < std::size(proven);
    Weights weights = isProven ? proven[turn] : drawn();
    const std::vector<int64_t> &pressure = isProven || turn % 4 == 0 ? contention : blamed;
    ++turn;
    std::vector<int64_t> scores;
    for (size_t i = 0; i < section.boxes.size(); ++i) {
      const Box &box = section.boxes[i];
      scores.push_back(weights.pressure * pressure[i] + weights.lifetime * fixedLog2(box.upper - box.lower) +
                       weights.bytes * fixedLog2(box.bytes));
    }
    std::vector<uint32_t> order(scores.size()), rank(scores.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
    for (uint32_t i = 0; i < order.size(); ++i)
      rank[order[i]] = i;
    return rank;
  }

private:
  struct Weights {
    int64_t pressure, lifetime, bytes;
  };
  /// Contention, then area; contention, then lifetime; area; lifetime, then bytes.
  static constexpr Weights proven[] = {{1 << 24, 1024, 1024}, {1 << 24, 1024, 1}, {0, 1024, 1024}, {0, 1024, 1}};

  /// Per box, the logarithm of the largest value at any of its instants.
  std::vector<int64_t> pressures(const std::vector<uint64_t> &values) const {
    std::vector<int64_t> result;
    for (const Box &box : section.boxes)
      result.push_back(fixedLog2(*std::max_element(values.begin() + box.lower, values.begin() + box.upper)));
    return result;
  }

  int64_t draw(uint64_t limit) {
    state += 0x9E3779B97F4A7C15u;
    return static_cast<int64_t>(mix(state) % limit);
  }
  Weights drawn() {
    int64_t pressure = draw(16 * 1024), lifetime = draw(2 * 1024), bytes = draw(2 * 1024);
    return {pressure, lifetime, bytes};
  }

  const Section &section;
  std::vector<int64_t> contention, blamed; ///< per box
  std::vector<uint64_t> blame;             ///< per instant, in 2^-20
  size_t turn = 0;
  uint64_t state = 1;
};

/// All attempts at one section.
class SectionSearch {
public:
  SectionSearch(const Section &searched, uint64_t effort)
      : section(searched), preferences(searched), effortLeft(effort) {}

  /// Rises from the goal until a placement is found, then halves the distance to the last height that failed.
  SearchResult run(uint64_t goodEnough, uint64_t mustBeat) {
    result.lowerBound = section.maxLive;
    uint64_t height = std::max(goodEnough, section.maxLive), failed = 0;
    double slack = 0.001;
    while (height < mustBeat && effortLeft > 0) {
      Verdict verdict = attempt(height);
      if (verdict == Verdict::Found) {
        mustBeat = result.placement.height;
        if (failed == 0)
          break;
      } else {
        failed = height;
      }
      if (verdict == Verdict::Refuted)
        result.lowerBound = std::max(result.lowerBound, std::min(nextHeight, mustBeat));
      if (result.placement.isFound()) {
        height = failed + (mustBeat - failed) / 2;
        if (mustBeat <= result.lowerBound || height - failed <= failed / 2048)
          break;
      } else if (verdict == Verdict::Refuted) {
        height = nextHeight;
      } else {
        height += std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(height) * slack));
        slack *= 2;
      }
    }
    return std::move(result);
  }

private:
  /// Tries one height with a third of what is left, in descents of growing effort.
  Verdict attempt(uint64_t height) {
    uint64_t share = effortLeft - effortLeft / 3 * 2;
    for (size_t turn = 0; share > 0; ++turn) {
      uint64_t round = firstRoundEffort << std::min<size_t>(turn / descentsPerRound, 30);
      std::vector<uint32_t> rank = preferences.next();
      Descent descent(section, rank, static_cast<int64_t>(height), std::min(round, share));
      Verdict verdict = descent.run();
      spend(descent.used(), share);
      preferences.learn(descent.refusalCounts());
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
    result.placement = {{}, 0, "search"};
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
