// Small programs and a seeded generator of large ones, shared by the planner's tests.
#pragma once

#include "plimsoll/Planner/Problem.h"

#include <algorithm>
#include <random>
#include <string>

namespace plimsoll::planner::test {

/// Builds a problem line by line; alignment 1 unless changed, so that worked-out numbers stay small.
struct Program : Problem {
  Program() { alignment = 1; }

  StorageId value(std::string name, uint64_t bytes) {
    return addStorage(std::move(name), bytes, StorageClass::Activation);
  }
  StorageId parameter(std::string name, uint64_t bytes) {
    return addStorage(std::move(name), bytes, StorageClass::Parameter);
  }
  StorageId input(std::string name, uint64_t bytes) {
    StorageId id = addStorage(std::move(name), bytes, StorageClass::Input);
    inputs.push_back(id);
    return id;
  }

  Step &step(std::vector<StorageId> reads, std::vector<StorageId> writes) {
    Step &added = steps.emplace_back();
    added.name = "s" + std::to_string(steps.size() - 1);
    for (StorageId id : reads)
      added.accesses.push_back({id, AccessMode::Read});
    for (StorageId id : writes)
      added.accesses.push_back({id, AccessMode::Write});
    return added;
  }
};

/// A random well-formed program: parameters, inputs, updates, pieces written by several steps, workspaces, in-place
/// offers, unused values, outputs, zero sizes.
inline Program randomProgram(uint32_t seed, unsigned stepCount) {
  std::mt19937 random(seed);
  auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  Program program;
  program.alignment = uint64_t{1} << below(8);
  std::vector<StorageId> defined;
  for (unsigned i = 0; i < 3; ++i) {
    defined.push_back(program.parameter("p" + std::to_string(i), 1 + below(300)));
    defined.push_back(program.input("x" + std::to_string(i), 1 + below(300)));
  }
  for (unsigned i = 0; i < stepCount; ++i) {
    Step step;
    step.name = "s" + std::to_string(i);
    step.workspaceBytes = below(4) ? 0 : below(500);
    std::vector<char> touched(program.storages.size() + 4, 0);
    auto touch = [&](StorageId id, AccessMode mode) {
      if (!touched[id]++)
        step.accesses.push_back({id, mode});
    };
    std::vector<StorageId> reads;
    for (unsigned k = 0; k < 1 + below(3); ++k) {
      bool recent = below(4) != 0 && defined.size() > 6;
      StorageId id = defined[recent ? defined.size() - 1 - below(6) : below(static_cast<uint32_t>(defined.size()))];
      uint32_t kind = below(12);
      AccessMode mode = kind == 0 ? AccessMode::ReadWrite : kind == 1 ? AccessMode::Write : AccessMode::Read;
      if (!touched[id] && mode == AccessMode::Read)
        reads.push_back(id);
      touch(id, mode);
    }
    for (unsigned k = 0; k < 1 + below(2); ++k) {
      bool likeOperand = !reads.empty() && below(2);
      uint64_t bytes = likeOperand ? program.storages[reads[0]].bytes : below(20) ? 1 + below(600) : 0;
      StorageId id = program.value("v" + std::to_string(i) + "_" + std::to_string(k), bytes);
      touch(id, AccessMode::Write);
      for (StorageId operand : reads)
        if (program.storages[operand].bytes == bytes)
          step.inPlace.push_back({operand, id});
      defined.push_back(id);
    }
    program.steps.push_back(std::move(step));
  }
  program.value("unused", 50);
  for (unsigned i = 0; i < 3; ++i)
    if (StorageId id = defined[below(static_cast<uint32_t>(defined.size()))];
        std::find(program.outputs.begin(), program.outputs.end(), id) == program.outputs.end())
      program.outputs.push_back(id);
  return program;
}

} // namespace plimsoll::planner::test
