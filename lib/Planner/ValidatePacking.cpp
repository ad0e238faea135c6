// The judge of bare placements (K1..K4). It sweeps over time with the set of live items ordered by offset; two items
// overlap somewhere exactly if, when the later one is born, it overlaps a live one, and the live ones are disjoint.
#include "plimsoll/Planner/Validate.h"
#include "plimsoll/Support/Units.h"

#include <algorithm>
#include <map>

namespace plimsoll::planner {

namespace {

class PlacementJudge {
public:
  PlacementJudge(const PackingProblem &judged, const PackingSolution &verdictOn, ValidationReport &into)
      : problem(judged), solution(verdictOn), report(into) {}

  void run() {
    if (solution.offsets.size() != problem.items.size())
      return add("K1", std::to_string(solution.offsets.size()) + " offsets for " +
                           std::to_string(problem.items.size()) + " items");
    if (problem.capacityBytes && solution.arenaBytes > *problem.capacityBytes)
      add("K3", "the arena has " + groupedDigits(solution.arenaBytes) + " bytes, the capacity is " +
                    groupedDigits(*problem.capacityBytes));
    for (size_t i = 0; i < problem.items.size(); ++i)
      checkItem(i);
    sweep();
  }

private:
  void add(const char *rule, const std::string &text) { report.violations.push_back({rule, text}); }

  void checkItem(size_t i) {
    const PackingItem &item = problem.items[i];
    uint64_t offset = solution.offsets[i];
    if (offset % problem.alignment)
      add("K2", "item '" + item.id + "' at " + groupedDigits(offset) + " is not aligned to " +
                    std::to_string(problem.alignment));
    if (item.bytes > solution.arenaBytes || offset > solution.arenaBytes - item.bytes)
      add("K3", "item '" + item.id + "' of " + groupedDigits(item.bytes) + " bytes at " + groupedDigits(offset) +
                    " leaves the arena of " + groupedDigits(solution.arenaBytes) + " bytes");
  }

  void sweep() {
    std::vector<std::pair<int64_t, size_t>> births, deaths;
    for (size_t i = 0; i < problem.items.size(); ++i) {
      if (problem.items[i].bytes == 0)
        continue;
      births.emplace_back(problem.items[i].lower, i);
      deaths.emplace_back(problem.items[i].upper, i);
    }
    std::sort(births.begin(), births.end());
    std::sort(deaths.begin(), deaths.end());
    size_t nextDeath = 0;
    for (auto [time, item] : births) {
      for (; nextDeath < deaths.size() && deaths[nextDeath].first <= time; ++nextDeath)
        if (auto at = live.find({solution.offsets[deaths[nextDeath].second], deaths[nextDeath].second});
            at != live.end())
          live.erase(at);
      birth(time, item);
    }
  }

  /// Live items may already overlap each other after a violation, so everything that starts below the end is compared;
  /// the longest live item bounds how far back that goes.
  void birth(int64_t time, size_t index) {
    const PackingItem &item = problem.items[index];
    uint64_t begin = solution.offsets[index], end = begin + item.bytes;
    longest = std::max(longest, item.bytes);
    uint64_t from = begin > longest ? begin - longest : 0;
    for (auto at = live.lower_bound({from, 0}); at != live.end() && at->first.first < end; ++at)
      if (at->second > begin)
        add("K4", "items '" + problem.items[at->first.second].id + "' and '" + item.id + "' overlap at time " +
                      std::to_string(time));
    live.emplace(std::make_pair(begin, index), end);
  }

  const PackingProblem &problem;
  const PackingSolution &solution;
  ValidationReport &report;
  std::map<std::pair<uint64_t, size_t>, uint64_t> live; ///< (offset, item) -> end
  uint64_t longest = 0;
};

} // namespace

ValidationReport validatePacking(const PackingProblem &problem, const PackingSolution &solution) {
  ValidationReport report;
  if (Status status = problem.check(); !status) {
    report.violations.push_back({"K0", status.message()});
    return report;
  }
  PlacementJudge(problem, solution, report).run();
  return report;
}

} // namespace plimsoll::planner
