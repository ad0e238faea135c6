// pack(): reduce, split, place, search.
//
// Reduction. Sizes are rounded up first. Only the order of births and deaths matters, so time is renumbered densely.
// Splitting. Where no item crosses an instant the two sides do not know each other. An item that spans a whole section
// conflicts with everything in it, so it can be moved to the bottom without loss (lift what was below it by its size);
// what remains may split again. Both steps repeat until nothing changes. On training graphs, whose activations are
// nested around the loss, little is left after that.
// Placing. Every section gets the greedy portfolio; those that end above the bound get the depth-first search
// (PackingSearch.cpp). Only sections that reach above the arena's lower bound are worked on.
#include "PackingInternal.h"
#include "plimsoll/Support/Units.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace plimsoll::planner {

using namespace packing;

static constexpr uint64_t sizeLimit = uint64_t{1} << 62;
static constexpr std::string_view strategyNames[] = {"solve", "first-fit", "best-fit", "buddy"};

std::string_view packStrategyName(PackStrategy strategy) { return strategyNames[static_cast<unsigned>(strategy)]; }

Result<PackStrategy> parsePackStrategy(std::string_view name) {
  for (unsigned i = 0; i < 4; ++i)
    if (strategyNames[i] == name)
      return static_cast<PackStrategy>(i);
  return badInput("unknown packing strategy '" + std::string(name) + "', expected solve, first-fit, best-fit or buddy");
}

Status PackingProblem::check() const {
  std::string lines;
  size_t count = 0;
  auto report = [&](const std::string &text) {
    lines += "\n" + text;
    ++count;
  };
  uint64_t unit = alignment;
  if (unit == 0 || (unit & (unit - 1)) != 0 || unit >= sizeLimit) {
    report("alignment " + std::to_string(unit) + " is not a power of two");
    unit = 1;
  }
  std::unordered_map<std::string_view, size_t> seen;
  uint64_t total = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const PackingItem &item = items[i];
    if (item.id.empty())
      report("item " + std::to_string(i) + " has no id");
    else if (!seen.emplace(item.id, i).second)
      report("item '" + item.id + "' appears twice; ids are unique");
    if (item.lower >= item.upper)
      report("item '" + item.id + "' is live in [" + std::to_string(item.lower) + ", " + std::to_string(item.upper) +
             "), expected lower < upper");
    if (item.bytes >= sizeLimit || (total += alignUp(item.bytes, unit)) >= sizeLimit)
      total = sizeLimit;
  }
  if (total >= sizeLimit)
    report("sizes sum to 2^62 bytes or more; a size is wrong");
  if (count == 0)
    return Status::ok();
  return badInput("the packing problem breaks " + std::to_string(count) + (count == 1 ? " rule" : " rules") + lines);
}

namespace packing {

uint64_t maxLiveOf(const std::vector<Box> &boxes, uint32_t timeCount, uint32_t *witness) {
  std::vector<int64_t> change(timeCount + 1, 0);
  for (const Box &box : boxes) {
    change[box.lower] += static_cast<int64_t>(box.bytes);
    change[box.upper] -= static_cast<int64_t>(box.bytes);
  }
  int64_t live = 0, most = 0;
  for (uint32_t time = 0; time < timeCount; ++time) {
    live += change[time];
    if (live <= most)
      continue;
    most = live;
    if (witness)
      *witness = time;
  }
  return static_cast<uint64_t>(most);
}

} // namespace packing

namespace {

/// Renumbers the times of boxes sorted by lower: a new instant at every distinct birth. Two boxes overlap exactly if
/// they overlap at a birth, so instants without one can be dropped.
uint32_t densify(std::vector<Box> &boxes) {
  std::vector<uint32_t> births;
  for (const Box &box : boxes)
    if (births.empty() || births.back() != box.lower)
      births.push_back(box.lower);
  auto rank = [&](uint32_t time) {
    return static_cast<uint32_t>(std::lower_bound(births.begin(), births.end(), time) - births.begin());
  };
  for (Box &box : boxes) {
    box.lower = rank(box.lower);
    box.upper = rank(box.upper);
  }
  return static_cast<uint32_t>(births.size());
}

/// The whole problem as one section (base 0), and the original time of each dense instant.
Section reduce(const PackingProblem &problem, std::vector<int64_t> &times) {
  for (const PackingItem &item : problem.items)
    if (item.bytes > 0)
      times.push_back(item.lower);
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  auto rank = [&](int64_t time) {
    return static_cast<uint32_t>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  Section whole;
  for (uint32_t i = 0; i < problem.items.size(); ++i)
    if (const PackingItem &item = problem.items[i]; item.bytes > 0)
      whole.boxes.push_back({alignUp(item.bytes, problem.alignment), rank(item.lower), rank(item.upper), i});
  std::stable_sort(whole.boxes.begin(), whole.boxes.end(),
                   [](const Box &a, const Box &b) { return a.lower < b.lower; });
  whole.timeCount = static_cast<uint32_t>(times.size());
  return whole;
}

/// Cuts at instants that no box crosses. Boxes are sorted by lower.
std::vector<std::vector<Box>> cutApart(std::vector<Box> boxes) {
  std::vector<std::vector<Box>> parts;
  uint32_t reach = 0;
  for (const Box &box : boxes) {
    if (parts.empty() || box.lower >= reach)
      parts.emplace_back();
    parts.back().push_back(box);
    reach = std::max(reach, box.upper);
  }
  return parts;
}

/// Repeats cutting and taking away spanning boxes. Spanning boxes get their final offset here; sections come out in
/// order of time.
std::vector<Section> splitAndPeel(Section whole, std::vector<uint64_t> &offsets) {
  std::vector<Section> open, done;
  open.push_back(std::move(whole));
  while (!open.empty()) {
    Section section = std::move(open.back());
    open.pop_back();
    std::vector<std::vector<Box>> parts = cutApart(std::move(section.boxes));
    for (size_t i = parts.size(); i-- > 0;) {
      Section part{{}, 0, section.base, 0};
      uint32_t first = parts[i].front().lower, last = 0;
      for (const Box &box : parts[i])
        last = std::max(last, box.upper);
      for (const Box &box : parts[i]) {
        if (box.lower == first && box.upper == last) {
          offsets[box.item] = part.base;
          part.base += box.bytes;
        } else {
          part.boxes.push_back(box);
        }
      }
      bool peeled = part.boxes.size() < parts[i].size();
      part.timeCount = densify(part.boxes);
      if (peeled && !part.boxes.empty())
        open.push_back(std::move(part));
      else
        done.push_back(std::move(part));
    }
  }
  for (Section &section : done)
    section.maxLive = maxLiveOf(section.boxes, section.timeCount);
  return done;
}

/// Everything pack() knows while it works through the sections.
struct Packer {
  const PackingProblem &problem;
  const PackOptions &options;
  PackingSolution solution;
  uint64_t arenaGoal = 0; ///< the proved lower bound of the arena so far; lower sections cannot help
  uint64_t effortLeft = 0;

  void placeSection(const Section &section) {
    if (section.boxes.empty())
      return raiseArena(section.base, "stack");
    uint64_t enough = std::max(arenaGoal, problem.capacityBytes.value_or(0));
    uint64_t goal = std::max(section.maxLive, enough > section.base ? enough - section.base : 0);
    Placement placement = placeGreedily(section, rules(), goal, options.strategy == PackStrategy::Solve);
    if (options.strategy == PackStrategy::Solve && placement.height > goal && effortLeft > 0) {
      SearchResult search = searchSection(section, goal, placement.height, effortLeft);
      effortLeft -= std::min(effortLeft, search.effortUsed);
      arenaGoal = std::max(arenaGoal, section.base + search.lowerBound);
      if (search.placement.isFound())
        placement = std::move(search.placement);
    }
    for (size_t i = 0; i < section.boxes.size(); ++i)
      solution.offsets[section.boxes[i].item] = section.base + placement.offsets[i];
    raiseArena(section.base + placement.height, placement.strategy);
  }

  void raiseArena(uint64_t top, const std::string &strategy) {
    if (top <= solution.arenaBytes)
      return;
    solution.arenaBytes = top;
    solution.strategy = strategy;
  }

  std::vector<FitRule> rules() const {
    if (options.strategy == PackStrategy::FirstFit)
      return {FitRule::First};
    if (options.strategy == PackStrategy::BestFit)
      return {FitRule::Best};
    return {FitRule::First, FitRule::Best};
  }
};

/// Sections in descending order of what they are known to need: the first ones set the goal for the rest.
void packSections(Packer &packer, Section whole) {
  std::vector<Section> sections = splitAndPeel(std::move(whole), packer.solution.offsets);
  std::stable_sort(sections.begin(), sections.end(),
                   [](const Section &a, const Section &b) { return a.base + a.maxLive > b.base + b.maxLive; });
  for (const Section &section : sections)
    packer.placeSection(section);
}

void packBuddies(Packer &packer, const Section &whole) {
  Placement placement = placeBuddies(whole);
  for (size_t i = 0; i < whole.boxes.size(); ++i)
    packer.solution.offsets[whole.boxes[i].item] = placement.offsets[i];
  packer.raiseArena(placement.height, placement.strategy);
}

} // namespace

Result<PackingSolution> pack(const PackingProblem &problem, const PackOptions &options) {
  if (Status status = problem.check(); !status)
    return status;
  std::vector<int64_t> times;
  Section whole = reduce(problem, times);
  Packer packer{problem, options, {}, 0, options.searchEffort};
  packer.solution.offsets.assign(problem.items.size(), 0);
  packer.solution.strategy = "empty";
  if (!whole.boxes.empty()) {
    uint32_t witness = 0;
    packer.solution.maxLiveBytes = packer.arenaGoal = maxLiveOf(whole.boxes, whole.timeCount, &witness);
    packer.solution.witnessTime = times[witness];
    if (options.strategy == PackStrategy::Buddy)
      packBuddies(packer, whole);
    else
      packSections(packer, std::move(whole));
  }
  packer.solution.lowerBoundBytes = packer.arenaGoal;
  if (problem.capacityBytes && packer.solution.arenaBytes > *problem.capacityBytes)
    return Status(ExitCode::DoesNotFit, "the smallest placement found needs " +
                                            groupedDigits(packer.solution.arenaBytes) + " bytes but the capacity is " +
                                            groupedDigits(*problem.capacityBytes) + " (no placement is below " +
                                            groupedDigits(packer.solution.lowerBoundBytes) + ")");
  return std::move(packer.solution);
}

} // namespace plimsoll::planner
