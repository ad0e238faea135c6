// Executes a placed program on bytes: the oracle of the planner's judges. It knows nothing of lifetimes or contents; it
// only does what the plan says, at the offsets the plan says, as unkindly as the contract allows:
//   - a kernel is a hash of its origin and of all bytes it reads; it spoils its results (unless they take over an
//     operand by a pair of the plan) and its workspace before it reads, and its workspace again after it wrote;
//   - the first writer of a transient storage writes all of it, later writers a slice;
//   - a copy moves its bytes when it starts, when it is waited for, or in two halves at random steps in between; its
//     target is spoilt when it starts;
//   - arenas hold garbage first, different in every machine.
// The program runs twice, so that state must survive from run to run.
#pragma once

#include "plimsoll/Planner/Schedule.h"
#include "plimsoll/Planner/Solution.h"

#include <random>

namespace plimsoll::planner::test {

inline uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

/// What a caller sees of the two runs.
struct MachineResult {
  std::vector<std::vector<uint8_t>> outputs;    ///< of both runs, in the order of the program's outputs
  std::vector<std::vector<uint8_t>> persistent; ///< at the end, per storage of the original
  bool isBroken = false;                        ///< an address outside its arena, or state that is nowhere
  bool raced = false;                           ///< a copy under way and a step used the same bytes
  bool operator==(const MachineResult &) const = default;
};

enum class CopyTime : uint8_t { AtStart, AtWait, Halves };

class ByteMachine {
public:
  ByteMachine(const Problem &originalProblem, const ScheduledProblem &placedProblem, const Solution &plan,
              CopyTime copyTime, uint32_t seed)
      : original(originalProblem), scheduled(placedProblem), problem(placedProblem.problem), solution(plan),
        time(copyTime), random(seed) {}

  MachineResult run() {
    for (unsigned tier = 0; tier < tierCount; ++tier) {
      arenas[tier].resize(tier == 0 ? solution.arenaBytes : solution.tierBytes[tier]);
      for (uint8_t &byte : arenas[tier])
        byte = static_cast<uint8_t>(random());
    }
    findFirstWriters();
    findHomes();
    for (StorageId id = 0; id < original.storages.size(); ++id)
      if (homes[id] != noStorage)
        fill(homes[id], mix(7, id));
    for (uint64_t round = 0; round < 2; ++round)
      runOnce(round);
    for (StorageId id = 0; id < original.storages.size(); ++id)
      result.persistent.push_back(homes[id] == noStorage ? std::vector<uint8_t>() : contentOf(homes[id]));
    return std::move(result);
  }

private:
  struct Bytes {
    unsigned tier = 0;
    uint64_t begin = 0, end = 0;
    bool overlaps(const Bytes &other) const {
      return tier == other.tier && begin < other.end && other.begin < end && begin < end && other.begin < other.end;
    }
  };

  struct PendingCopy {
    StepIndex step;
    Bytes from, to;
    size_t firstHalf, secondHalf; ///< positions in the order after which they move
    bool firstDone = false, secondDone = false;
  };

  Bytes bytesOf(StorageId id) {
    const Storage &storage = problem.storages[id];
    unsigned tier = static_cast<unsigned>(storage.tier);
    return inside({tier, solution.offsets[id], solution.offsets[id] + storage.bytes});
  }

  Bytes inside(Bytes bytes) {
    if (bytes.begin <= bytes.end && bytes.end <= arenas[bytes.tier].size())
      return bytes;
    result.isBroken = true;
    return {bytes.tier, 0, 0};
  }

  std::vector<uint8_t> contentOf(StorageId id) {
    Bytes bytes = bytesOf(id);
    auto begin = arenas[bytes.tier].begin();
    return {begin + static_cast<int64_t>(bytes.begin), begin + static_cast<int64_t>(bytes.end)};
  }

  void fill(StorageId id, uint64_t seed) {
    Bytes bytes = bytesOf(id);
    write(bytes, seed, bytes.begin);
  }

  /// Byte i of a content depends on the seed and its place in the storage, which starts at `base`.
  void write(Bytes bytes, uint64_t seed, uint64_t base) {
    for (uint64_t at = bytes.begin; at < bytes.end; ++at)
      arenas[bytes.tier][at] = static_cast<uint8_t>(mix(mix(seed, at - base), 11));
  }

  void spoil(Bytes bytes) {
    for (uint64_t at = bytes.begin; at < bytes.end; ++at)
      arenas[bytes.tier][at] = static_cast<uint8_t>(random());
  }

  void findFirstWriters() {
    std::vector<char> there(original.storages.size(), 0);
    for (StorageId id : original.inputs)
      there[id] = 1;
    for (const Storage &storage : original.storages)
      there[storage.id] |= storage.persistent;
    firstWriter.assign(original.storages.size(), noStep);
    for (StepIndex step = 0; step < original.steps.size(); ++step)
      for (const Access &access : original.steps[step].accesses)
        if (access.writes() && !std::exchange(there[access.storage], 1))
          firstWriter[access.storage] = step;
  }

  /// Where the state of the original lies; outside when there is not exactly one place.
  void findHomes() {
    homes.assign(original.storages.size(), noStorage);
    for (const Storage &storage : problem.storages) {
      StorageId &home = homes[scheduled.storageOrigin[storage.id]];
      result.isBroken |= storage.persistent && home != noStorage;
      if (storage.persistent)
        home = storage.id;
    }
    for (const Storage &storage : original.storages)
      result.isBroken |= storage.persistent != (homes[storage.id] != noStorage);
  }

  void runOnce(uint64_t round) {
    for (StorageId id : problem.inputs)
      fill(id, mix(mix(round, scheduled.storageOrigin[id]), 13));
    for (now = 0; now < solution.order.size(); ++now) {
      StepIndex step = solution.order[now];
      if (problem.steps[step].kind == StepKind::Copy)
        startCopy(step);
      else if (problem.steps[step].kind == StepKind::Wait)
        finishCopy(problem.steps[step].waitsFor);
      else
        compute(step);
      progress();
    }
    while (!pending.empty()) // never waited for: whenever it comes, it is too late
      result.raced = true, finishCopy(pending.back().step);
    for (StorageId id : problem.outputs)
      result.outputs.push_back(contentOf(id));
  }

  void use(Bytes bytes, bool writes) {
    for (const PendingCopy &copy : pending)
      result.raced |= bytes.overlaps(copy.to) || (writes && bytes.overlaps(copy.from));
  }

  void compute(StepIndex index) {
    const Step &step = problem.steps[index];
    StepIndex origin = scheduled.stepOrigin[index];
    Bytes workspace;
    if (step.workspaceBytes > 0)
      workspace = inside({0, solution.workspaceOffsets[index], solution.workspaceOffsets[index] + step.workspaceBytes});
    use(workspace, true);
    spoil(workspace);
    std::vector<Bytes> written(step.accesses.size());
    for (size_t i = 0; i < step.accesses.size(); ++i) {
      if (step.accesses[i].writes())
        written[i] = writtenBytes(origin, step.accesses[i]);
      use(written[i], true);
      if (step.accesses[i].mode == AccessMode::Write && !takesOver(index, step.accesses[i].storage))
        spoil(written[i]);
    }
    uint64_t hash = mix(17, origin);
    for (const Access &access : step.accesses) {
      hash = mix(hash, 19);
      if (!access.reads())
        continue;
      use(bytesOf(access.storage), false);
      for (uint8_t byte : contentOf(access.storage))
        hash = mix(hash, byte);
    }
    for (size_t i = 0; i < step.accesses.size(); ++i)
      write(written[i], mix(hash, i), solution.offsets[step.accesses[i].storage]);
    spoil(workspace);
  }

  /// All of the storage for a ReadWrite and for the writer that opens it, else a slice that depends on the step.
  Bytes writtenBytes(StepIndex origin, const Access &access) {
    Bytes bytes = bytesOf(access.storage);
    if (access.mode == AccessMode::ReadWrite || firstWriter[scheduled.storageOrigin[access.storage]] == origin)
      return bytes;
    uint64_t length = bytes.end - bytes.begin, third = origin % 3;
    return {bytes.tier, bytes.begin + length * third / 3, bytes.begin + length * (third + 1) / 3};
  }

  bool takesOver(StepIndex step, StorageId resultId) const {
    for (const InPlacePair &pair : solution.inPlace)
      if (pair.step == step && pair.result == resultId)
        return solution.offsets[pair.operand] == solution.offsets[resultId];
    return false;
  }

  void startCopy(StepIndex index) {
    PendingCopy copy{index, {}, {}, 0, 0};
    for (const Access &access : problem.steps[index].accesses)
      (access.writes() ? copy.to : copy.from) = bytesOf(access.storage);
    use(copy.from, false);
    use(copy.to, true);
    spoil(copy.to);
    size_t wait = now;
    while (wait < solution.order.size() && problem.steps[solution.order[wait]].waitsFor != index)
      ++wait;
    auto between = [&] {
      return time == CopyTime::AtStart ? now : time == CopyTime::AtWait ? wait : now + random() % (wait - now + 1);
    };
    copy.firstHalf = between();
    copy.secondHalf = between();
    pending.push_back(copy);
  }

  void finishCopy(StepIndex index) {
    for (size_t i = 0; i < pending.size(); ++i)
      if (pending[i].step == index) {
        moveHalves(pending[i], true, true);
        pending.erase(pending.begin() + static_cast<int64_t>(i));
        return;
      }
  }

  void progress() {
    for (PendingCopy &copy : pending)
      moveHalves(copy, copy.firstHalf <= now, copy.secondHalf <= now);
  }

  void moveHalves(PendingCopy &copy, bool first, bool second) {
    uint64_t bytes = std::min(copy.from.end - copy.from.begin, copy.to.end - copy.to.begin);
    auto move = [&](uint64_t from, uint64_t to, bool &done) {
      for (uint64_t at = from; at < to && !done; ++at)
        arenas[copy.to.tier][copy.to.begin + at] = arenas[copy.from.tier][copy.from.begin + at];
      done = true;
    };
    if (first)
      move(0, bytes / 2, copy.firstDone);
    if (second)
      move(bytes / 2, bytes, copy.secondDone);
  }

  const Problem &original;
  const ScheduledProblem &scheduled;
  const Problem &problem; ///< of `scheduled`
  const Solution &solution;
  CopyTime time;
  std::mt19937 random;
  std::vector<uint8_t> arenas[tierCount];
  std::vector<StepIndex> firstWriter; ///< per storage of the original; noStep for what is there before the first step
  std::vector<StorageId> homes;       ///< per storage of the original
  std::vector<PendingCopy> pending;
  size_t now = 0; ///< position in the order
  MachineResult result;
};

/// The original with room enough that nothing shares a byte: the meaning of the program.
inline MachineResult referenceResult(const Problem &original) {
  ScheduledProblem scheduled{original, {}, {}};
  Solution roomy;
  for (StepIndex step = 0; step < original.steps.size(); ++step) {
    scheduled.stepOrigin.push_back(step);
    roomy.order.push_back(step);
    roomy.workspaceOffsets.push_back(roomy.arenaBytes);
    roomy.arenaBytes += original.steps[step].workspaceBytes;
  }
  for (const Storage &storage : original.storages) {
    scheduled.storageOrigin.push_back(storage.id);
    roomy.offsets.push_back(roomy.arenaBytes);
    roomy.arenaBytes += storage.bytes;
  }
  return ByteMachine(original, scheduled, roomy, CopyTime::AtStart, 1).run();
}

/// True when the plan gives exactly the reference's results, however its copies are timed.
inline bool computesTheSame(const Problem &original, const ScheduledProblem &scheduled, const Solution &solution,
                            const MachineResult &reference) {
  for (CopyTime time : {CopyTime::AtStart, CopyTime::AtWait, CopyTime::Halves})
    if (ByteMachine(original, scheduled, solution, time, 2 + static_cast<uint32_t>(time)).run() != reference)
      return false;
  return true;
}

} // namespace plimsoll::planner::test
