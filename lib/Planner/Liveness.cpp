// Liveness: intervals, in-place matching, allocations and the exact three-phase peak.
//
// A step allocates its outputs, runs, and frees what died in it, so operands and results of one step are live together
// unless a result takes an operand's bytes. Which offers to take is decided step by step: an operand that is eligible
// (not persistent, not an output, never touched again) can serve one result, a result can use one operand, both have
// the same bytes. Per step this is a bipartite matching; taking as many pairs as possible is best, because each taken
// pair lowers the bytes of exactly this step by its size, pairs of different sizes never compete, and no choice changes
// what is eligible at another step. Augmenting paths (Kuhn) find it; steps have few offers.
#include "plimsoll/Planner/Liveness.h"
#include "plimsoll/Support/Units.h"

#include <algorithm>
#include <numeric>

namespace plimsoll::planner {

namespace {

/// Position of the last access of every storage; noStep when there is none.
std::vector<StepIndex> lastAccesses(const Problem &problem) {
  std::vector<StepIndex> last(problem.storages.size(), noStep);
  for (StepIndex step = 0; step < problem.steps.size(); ++step)
    for (const Access &access : problem.steps[step].accesses)
      last[access.storage] = step;
  return last;
}

/// The number of instants of the program; one even when there are no steps, so that inputs can be told apart.
StepIndex horizon(const Problem &problem) {
  return std::max<StepIndex>(static_cast<StepIndex>(problem.steps.size()), 1);
}

std::vector<Interval> liveIntervals(const Problem &problem) {
  std::vector<Interval> intervals(problem.storages.size(), Interval{noStep, 0});
  auto cover = [&](StorageId id, StepIndex lower, StepIndex upper) {
    intervals[id].lower = std::min(intervals[id].lower, lower);
    intervals[id].upper = std::max(intervals[id].upper, upper);
  };
  for (StepIndex step = 0; step < problem.steps.size(); ++step)
    for (const Access &access : problem.steps[step].accesses)
      cover(access.storage, step, step + 1);
  for (StorageId id : problem.inputs)
    cover(id, 0, 1);
  for (StorageId id : problem.outputs)
    cover(id, intervals[id].lower, horizon(problem));
  for (const Storage &storage : problem.storages)
    if (storage.persistent)
      cover(storage.id, 0, horizon(problem));
  for (Interval &interval : intervals)
    if (interval.lower == noStep)
      interval = {};
  return intervals;
}

/// Maximum matching of one step's eligible offers.
class StepMatching {
public:
  explicit StepMatching(const std::vector<InPlaceCandidate> &eligibleOffers) : offers(eligibleOffers) {
    for (const InPlaceCandidate &offer : offers)
      if (std::find(results.begin(), results.end(), offer.result) == results.end())
        results.push_back(offer.result);
  }

  /// Pairs in the order in which the results are first offered.
  std::vector<InPlaceCandidate> solve() {
    for (StorageId result : results) {
      tried.clear();
      augment(result);
    }
    std::vector<InPlaceCandidate> ordered;
    for (StorageId result : results)
      for (const InPlaceCandidate &pair : taken)
        if (pair.result == result)
          ordered.push_back(pair);
    return ordered;
  }

private:
  bool augment(StorageId result) {
    for (const InPlaceCandidate &offer : offers) {
      if (offer.result != result || std::find(tried.begin(), tried.end(), offer.operand) != tried.end())
        continue;
      tried.push_back(offer.operand);
      auto owner = std::find_if(taken.begin(), taken.end(), [&](const auto &t) { return t.operand == offer.operand; });
      if (owner == taken.end()) {
        taken.push_back(offer);
        return true;
      }
      size_t position = static_cast<size_t>(owner - taken.begin());
      if (augment(owner->result)) {
        taken[position].result = result;
        return true;
      }
    }
    return false;
  }

  const std::vector<InPlaceCandidate> &offers;
  std::vector<StorageId> results;
  std::vector<InPlaceCandidate> taken;
  std::vector<StorageId> tried;
};

std::vector<InPlacePair> matchInPlace(const Problem &problem) {
  std::vector<StepIndex> last = lastAccesses(problem);
  std::vector<char> kept(problem.storages.size(), 0);
  for (StorageId id : problem.outputs)
    kept[id] = 1;
  for (const Storage &storage : problem.storages)
    kept[storage.id] |= storage.persistent;
  std::vector<InPlacePair> pairs;
  for (StepIndex step = 0; step < problem.steps.size(); ++step) {
    std::vector<InPlaceCandidate> eligible;
    for (const InPlaceCandidate &offer : problem.steps[step].inPlace)
      if (!kept[offer.operand] && last[offer.operand] == step && problem.storages[offer.operand].bytes > 0)
        eligible.push_back(offer);
    for (const InPlaceCandidate &pair : StepMatching(eligible).solve())
      pairs.push_back({step, pair.operand, pair.result});
  }
  return pairs;
}

/// Groups storages into allocations: persistent ones alone, others in chains along the taken pairs.
void buildAllocations(const Problem &problem, Liveness &live) {
  size_t storageCount = problem.storages.size();
  std::vector<StorageId> successor(storageCount, noStorage);
  std::vector<char> isResult(storageCount, 0);
  for (const InPlacePair &pair : live.inPlace) {
    successor[pair.operand] = pair.result;
    isResult[pair.result] = 1;
  }
  for (const Storage &storage : problem.storages) {
    if (isResult[storage.id] || live.intervals[storage.id] == Interval{})
      continue;
    Allocation allocation;
    allocation.bytes = alignUp(storage.bytes, problem.alignment);
    allocation.persistent = storage.persistent;
    allocation.tier = storage.tier;
    allocation.interval = live.intervals[storage.id];
    for (StorageId id = storage.id; id != noStorage; id = successor[id]) {
      allocation.members.push_back(id);
      allocation.interval.upper = std::max(allocation.interval.upper, live.intervals[id].upper);
    }
    live.allocations.push_back(std::move(allocation));
  }
  for (StepIndex step = 0; step < problem.steps.size(); ++step)
    if (uint64_t bytes = problem.steps[step].workspaceBytes)
      live.allocations.push_back({{}, step, alignUp(bytes, problem.alignment), {step, step + 1}, false});
  std::stable_sort(live.allocations.begin(), live.allocations.end(), [](const Allocation &a, const Allocation &b) {
    if (a.persistent != b.persistent)
      return a.persistent;
    return !a.persistent && a.interval.lower < b.interval.lower;
  });
  live.allocationOf.assign(storageCount, noStorage);
  for (size_t i = 0; i < live.allocations.size(); ++i)
    for (StorageId id : live.allocations[i].members)
      live.allocationOf[id] = static_cast<uint32_t>(i);
}

/// Live bytes of one tier at every step.
std::vector<uint64_t> liveBytesOf(Tier tier, const Problem &problem, const Liveness &live) {
  std::vector<int64_t> change(horizon(problem) + 1, 0);
  for (const Allocation &allocation : live.allocations) {
    if (allocation.tier != tier)
      continue;
    change[allocation.interval.lower] += static_cast<int64_t>(allocation.bytes);
    change[allocation.interval.upper] -= static_cast<int64_t>(allocation.bytes);
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  change.pop_back();
  return {change.begin(), change.end()};
}

void measure(const Problem &problem, Liveness &live) {
  for (const Allocation &allocation : live.allocations)
    if (allocation.persistent)
      live.tierPersistentBytes[static_cast<unsigned>(allocation.tier)] += allocation.bytes;
  for (unsigned tier = 0; tier < tierCount; ++tier) {
    std::vector<uint64_t> bytes = liveBytesOf(static_cast<Tier>(tier), problem, live);
    live.tierMaxLiveBytes[tier] = *std::max_element(bytes.begin(), bytes.end());
    if (static_cast<Tier>(tier) == Tier::Device)
      live.liveBytes = std::move(bytes);
  }
  live.persistentBytes = live.tierPersistentBytes[0];
  live.maxLiveBytes = live.tierMaxLiveBytes[0];
  auto peak = std::max_element(live.liveBytes.begin(), live.liveBytes.end());
  live.witnessStep = static_cast<StepIndex>(peak - live.liveBytes.begin());
}

void listPeak(Liveness &live) {
  for (size_t i = 0; i < live.allocations.size(); ++i) {
    const Allocation &allocation = live.allocations[i];
    if (allocation.tier != Tier::Device || !allocation.interval.contains(live.witnessStep) || allocation.bytes == 0)
      continue;
    StorageId content = noStorage;
    for (StorageId id : allocation.members)
      if (live.intervals[id].lower <= live.witnessStep)
        content = id;
    live.liveAtPeak.push_back({static_cast<uint32_t>(i), content, allocation.bytes});
  }
  std::stable_sort(live.liveAtPeak.begin(), live.liveAtPeak.end(),
                   [](const LiveEntry &a, const LiveEntry &b) { return a.bytes > b.bytes; });
}

} // namespace

Result<Liveness> computeLiveness(const Problem &problem, const LivenessOptions &options) {
  if (Status status = problem.check(); !status)
    return status;
  Liveness live;
  live.intervals = liveIntervals(problem);
  if (options.takeInPlace)
    live.inPlace = matchInPlace(problem);
  buildAllocations(problem, live);
  measure(problem, live);
  listPeak(live);
  return live;
}

std::string describePeak(const Problem &problem, const Liveness &live, size_t most) {
  std::string text = groupedDigits(live.maxLiveBytes) + " bytes are live";
  if (!problem.steps.empty())
    text += " at step " + std::to_string(live.witnessStep) + " '" + problem.steps[live.witnessStep].name + "'";
  uint64_t byClass[storageClassCount] = {};
  for (const LiveEntry &entry : live.liveAtPeak) {
    StorageClass owner =
        entry.storage == noStorage ? StorageClass::Workspace : problem.storages[entry.storage].storageClass;
    byClass[static_cast<unsigned>(owner)] += entry.bytes;
  }
  for (unsigned i = 0; i < storageClassCount; ++i)
    if (byClass[i])
      text += "\n  " + std::string(storageClassName(static_cast<StorageClass>(i))) + ": " + groupedDigits(byClass[i]);
  for (size_t i = 0; i < std::min(most, live.liveAtPeak.size()); ++i) {
    const LiveEntry &entry = live.liveAtPeak[i];
    text += "\n  " + groupedDigits(entry.bytes) + "  ";
    if (entry.storage == noStorage) {
      text += "workspace of the step";
      continue;
    }
    const Storage &storage = problem.storages[entry.storage];
    text += storage.name + (storage.source.empty() ? "" : " (" + storage.source + ")");
  }
  return text;
}

} // namespace plimsoll::planner
