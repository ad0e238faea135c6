// Greedy placements: a portfolio of orders and rules, a repair loop, and binary buddies.
//
// A placement puts boxes one by one at the lowest place (first fit) or into the tightest gap (best fit) among those
// already placed that are live at the same time. Placed boxes stay sorted by offset, so one scan finds the gaps without
// building the overlap graph, which has tens of millions of edges on large training steps. A scan is linear in the
// boxes placed, a placement quadratic with a tiny constant: 20,000 boxes take about 0.1 s. A placement that reaches the
// best height known so far is abandoned.
//
// Repair: boxes that end above the goal were placed too late; they move to the front of the order and the placement is
// repeated. On training graphs a few rounds close most of the last percent. Rounds are fixed, so results are
// deterministic.
#include "PackingInternal.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>

namespace plimsoll::planner::packing {

namespace {

constexpr unsigned repairRounds = 32;

/// Boxes placed so far, sorted by offset.
class Skyline {
public:
  explicit Skyline(const Section &placedSection) : section(placedSection) { placed.reserve(section.boxes.size()); }

  /// Finds room for a box, takes it and returns its offset.
  uint64_t place(const Box &box, FitRule rule) {
    uint64_t offset = rule == FitRule::First ? lowest(box) : tightest(box);
    Placed entry{offset, offset + box.bytes, box.lower, box.upper};
    auto at = std::upper_bound(placed.begin(), placed.end(), offset,
                               [](uint64_t value, const Placed &p) { return value < p.begin; });
    placed.insert(at, entry);
    return offset;
  }

private:
  struct Placed {
    uint64_t begin, end;
    uint32_t lower, upper;
  };

  uint64_t lowest(const Box &box) const {
    uint64_t top = 0;
    for (const Placed &p : placed) {
      if (p.lower >= box.upper || p.upper <= box.lower)
        continue;
      if (p.begin >= top + box.bytes)
        return top;
      top = std::max(top, p.end);
    }
    return top;
  }

  uint64_t tightest(const Box &box) const {
    uint64_t top = 0, best = UINT64_MAX, bestGap = UINT64_MAX;
    for (const Placed &p : placed) {
      if (p.lower >= box.upper || p.upper <= box.lower)
        continue;
      if (p.begin >= top + box.bytes && p.begin - top < bestGap) {
        bestGap = p.begin - top;
        best = top;
      }
      top = std::max(top, p.end);
    }
    return best != UINT64_MAX ? best : top;
  }

  const Section &section;
  std::vector<Placed> placed;
};

using Order = std::vector<uint32_t>;

/// Places the boxes in the given order; gives up (isFound() false) when the height reaches `mustBeat`.
Placement placeInOrder(const Section &section, const Order &order, FitRule rule, uint64_t mustBeat) {
  Placement placement;
  placement.offsets.assign(section.boxes.size(), 0);
  Skyline skyline(section);
  uint64_t height = 0;
  for (uint32_t index : order) {
    const Box &box = section.boxes[index];
    placement.offsets[index] = skyline.place(box, rule);
    height = std::max(height, placement.offsets[index] + box.bytes);
    if (height >= mustBeat)
      return placement;
  }
  placement.height = height;
  return placement;
}

/// Number of boxes each box shares an instant with, by counting births and deaths.
std::vector<uint32_t> conflictCounts(const Section &section) {
  std::vector<uint32_t> births(section.timeCount + 1, 0), deaths(section.timeCount + 1, 0);
  for (const Box &box : section.boxes) {
    ++births[box.lower];
    ++deaths[box.upper];
  }
  std::partial_sum(births.begin(), births.end(), births.begin());
  std::partial_sum(deaths.begin(), deaths.end(), deaths.begin());
  std::vector<uint32_t> counts;
  for (const Box &box : section.boxes)
    counts.push_back(births[box.upper - 1] - deaths[box.lower] - 1);
  return counts;
}

struct NamedOrder {
  const char *name;
  Order order;
};

/// The orders of the portfolio. Every comparison ends in the box index, so equal keys cannot swap.
std::vector<NamedOrder> greedyOrders(const Section &section) {
  const std::vector<Box> &boxes = section.boxes;
  std::vector<uint32_t> conflicts = conflictCounts(section);
  auto life = [&](uint32_t i) { return boxes[i].upper - boxes[i].lower; };
  auto area = [&](uint32_t i) { return static_cast<double>(boxes[i].bytes) * life(i); };
  auto sorted = [&](auto keyOf) {
    Order order(boxes.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      auto left = keyOf(a), right = keyOf(b);
      return left != right ? left > right : a < b;
    });
    return order;
  };
  using Key = std::pair<double, double>;
  return {{"size", sorted([&](uint32_t i) { return Key(boxes[i].bytes, -double(boxes[i].lower)); })},
          {"conflicts", sorted([&](uint32_t i) { return Key(conflicts[i], boxes[i].bytes); })},
          {"area", sorted([&](uint32_t i) { return Key(area(i), boxes[i].bytes); })},
          {"lifetime", sorted([&](uint32_t i) { return Key(life(i), boxes[i].bytes); })},
          {"birth", sorted([&](uint32_t i) { return Key(-double(boxes[i].lower), boxes[i].bytes); })}};
}

/// Boxes whose top is above `goal` first, then the others, each part in its old order.
Order raiseOffenders(const Section &section, const Order &order, const Placement &placement, uint64_t goal) {
  Order next = order;
  std::stable_partition(next.begin(), next.end(),
                        [&](uint32_t index) { return placement.offsets[index] + section.boxes[index].bytes > goal; });
  return next;
}

void repairPlacement(const Section &section, Order order, FitRule rule, uint64_t goal, Placement &best) {
  Placement current = best;
  for (unsigned round = 0; round < repairRounds && best.height > goal; ++round) {
    Order next = raiseOffenders(section, order, current, goal);
    if (next == order)
      return;
    order = std::move(next);
    current = placeInOrder(section, order, rule, UINT64_MAX);
    current.strategy = best.strategy.substr(0, best.strategy.find('+')) + "+repair";
    if (current.height < best.height)
      best = current;
  }
}

} // namespace

Placement placeGreedily(const Section &section, const std::vector<FitRule> &rules, uint64_t goodEnough, bool repair) {
  Placement best;
  const Order *bestOrder = nullptr;
  FitRule bestRule = FitRule::First;
  std::vector<NamedOrder> orders = greedyOrders(section);
  for (const NamedOrder &candidate : orders) {
    for (FitRule rule : rules) {
      Placement placement = placeInOrder(section, candidate.order, rule, best.height);
      if (!placement.isFound())
        continue;
      best = std::move(placement);
      best.strategy = std::string(candidate.name) + (rule == FitRule::First ? "/first-fit" : "/best-fit");
      bestOrder = &candidate.order;
      bestRule = rule;
      if (best.height <= goodEnough)
        return best;
    }
  }
  if (repair)
    repairPlacement(section, *bestOrder, bestRule, goodEnough, best);
  return best;
}

namespace {

/// Free blocks per order of magnitude in an address space that doubles when it is full.
class BuddySpace {
public:
  uint64_t take(unsigned order) {
    unsigned from = order;
    while (from < free.size() && free[from].empty())
      ++from;
    if (from >= free.size()) {
      grow(order);
      return take(order);
    }
    uint64_t offset = *free[from].begin();
    free[from].erase(free[from].begin());
    while (from > order) {
      --from;
      free[from].insert(offset + (uint64_t{1} << from));
    }
    return offset;
  }

  void give(uint64_t offset, unsigned order) {
    while (order + 1 < free.size() && free[order].erase(offset ^ (uint64_t{1} << order))) {
      offset &= ~(uint64_t{1} << order);
      ++order;
    }
    free[order].insert(offset);
  }

private:
  /// Doubles the space (or opens it) until a block of `order` can exist.
  void grow(unsigned order) {
    if (free.empty()) {
      free.resize(order + 1);
      free[order].insert(0);
      return;
    }
    unsigned top = static_cast<unsigned>(free.size()) - 1;
    free.emplace_back();
    give(uint64_t{1} << top, top);
  }

  std::vector<std::set<uint64_t>> free;
};

} // namespace

Placement placeBuddies(const Section &section) {
  Placement placement;
  placement.offsets.assign(section.boxes.size(), 0);
  placement.height = 0;
  placement.strategy = "birth/buddy";
  auto orderOf = [](const Box &box) { return static_cast<unsigned>(std::bit_width(box.bytes - 1)); };
  std::vector<std::vector<uint32_t>> dying(section.timeCount + 1);
  BuddySpace space;
  uint32_t next = 0;
  for (uint32_t time = 0; time < section.timeCount; ++time) {
    for (uint32_t index : dying[time])
      space.give(placement.offsets[index], orderOf(section.boxes[index]));
    for (; next < section.boxes.size() && section.boxes[next].lower == time; ++next) {
      const Box &box = section.boxes[next];
      placement.offsets[next] = space.take(orderOf(box));
      placement.height = std::max(placement.height, placement.offsets[next] + box.bytes);
      dying[box.upper].push_back(next);
    }
  }
  return placement;
}

} // namespace plimsoll::planner::packing
