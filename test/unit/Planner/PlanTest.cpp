// plan() end to end: worked-out plans, the public bug reports it must not repeat, budgets, and random programs.
#include "Programs.h"
#include "plimsoll/Planner/ProblemText.h"
#include "plimsoll/Planner/Schedule.h"
#include "plimsoll/Planner/Solution.h"
#include "plimsoll/Planner/Validate.h"

#include <fstream>
#include <gmock/gmock.h>
#include <sstream>

using namespace plimsoll;
using namespace plimsoll::planner;
using plimsoll::planner::test::Program;
using plimsoll::planner::test::randomProgram;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

Solution planned(const Problem &problem, const PlanOptions &options = {}) {
  Result<Solution> solution = planner::plan(problem, options);
  EXPECT_TRUE(solution) << solution.status().message();
  if (!solution)
    return {};
  EXPECT_TRUE(validate(problem, *solution).isOk()) << validate(problem, *solution).status().message();
  EXPECT_GE(solution->arenaBytes, solution->lowerBoundBytes);
  EXPECT_GE(solution->lowerBoundBytes, solution->maxLiveBytes);
  EXPECT_EQ(solution->arenaBytes % problem.alignment, 0u);
  return *solution;
}

// w always; x 10 and a 20 in s0; a 20, b 30 and scratch 7 in s1; b 30 and c 8 in s2. Peak 5 + 57 = 62 in s1.
TEST(Plan, ChainReachesItsPeak) {
  Program program;
  StorageId w = program.parameter("w", 5), x = program.input("x", 10);
  StorageId a = program.value("a", 20), b = program.value("b", 30), c = program.value("c", 8);
  program.step({w, x}, {a});
  program.step({a}, {b}).workspaceBytes = 7;
  program.step({b}, {c});
  program.outputs = {c};
  Solution solution = planned(program);
  EXPECT_EQ(solution.arenaBytes, 62u);
  EXPECT_EQ(solution.lowerBoundBytes, 62u);
  EXPECT_EQ(solution.witnessStep, 1u);
  EXPECT_EQ(solution.offsets[w], 0u);
  EXPECT_EQ(solution.persistentBytes, 5u);
  EXPECT_THAT(solution.order, ElementsAre(0, 1, 2));
}

TEST(Plan, EmptyProblem) {
  Solution solution = planned(Problem());
  EXPECT_EQ(solution.arenaBytes, 0u);
}

TEST(Plan, InputsWithoutSteps) {
  Program program;
  program.outputs = {program.input("x", 4), program.input("y", 4)};
  EXPECT_EQ(planned(program).arenaBytes, 8u);
}

TEST(Plan, UnusedStorageHasNoAddress) {
  Program program;
  StorageId unused = program.value("unused", 64);
  EXPECT_EQ(planned(program).offsets[unused], noOffset);
}

// A training and an evaluation program list the same state first: it gets the same addresses in both.
TEST(Plan, ProgramsAgreeOnPersistentAddresses) {
  auto make = [](unsigned steps) {
    Program program;
    program.alignment = 64;
    for (int i = 0; i < 5; ++i)
      program.parameter("w" + std::to_string(i), 100 + 70 * i);
    StorageId last = program.input("x", 100);
    for (unsigned i = 0; i < steps; ++i) {
      StorageId next = program.value("v" + std::to_string(i), 50 * i);
      program.step({last, i % 5}, {next});
      last = next;
    }
    return program;
  };
  Solution train = planned(make(20)), eval = planned(make(3));
  EXPECT_EQ(train.persistentBytes, eval.persistentBytes);
  for (StorageId id = 0; id < 5; ++id)
    EXPECT_EQ(train.offsets[id], eval.offsets[id]);
}

// Case 10 (tinygrad#16571): a layout copy, a per-example loss and two backward passes over the same saved value. The
// saved copy and the table are needed by both passes, so neither may be reused in between, and a second run finds the
// state.
TEST(Plan, ReachableBufferIsNotReused) {
  Program program;
  StorageId table = program.addStorage("mask", 12, StorageClass::Constant), x = program.input("x.nhwc", 48);
  StorageId copy = program.value("x.nchw", 48), loss = program.value("loss", 8);
  StorageId first = program.value("grad0", 48), second = program.value("grad1", 48);
  program.step({x}, {copy}).inPlace = {{x, copy}};
  program.step({copy, table}, {loss});
  program.step({copy, loss, table}, {first}).inPlace = {{copy, first}};
  program.step({copy, loss, table}, {second}).inPlace = {{copy, second}};
  program.outputs = {loss, first, second};
  Solution solution = planned(program);
  // copy is read by step 3, so only step 3 may take it over.
  EXPECT_THAT(solution.inPlace, ElementsAre(InPlacePair{0, x, copy}, InPlacePair{3, copy, second}));
  EXPECT_EQ(solution.arenaBytes, 12u + 48 + 8 + 48);
}

// PLANNING 7, row 6 (pytorch#187678): y and a view of y are returned. The view shares y's storage, so an earlier buffer
// may be reused for y, but y's bytes belong to nobody else until the end.
TEST(Plan, OutputWithAliasIsNotFreedEarly) {
  Program program;
  StorageId x = program.input("x", 16), early = program.value("early", 16);
  StorageId y = program.value("y", 16), later = program.value("later", 16), last = program.value("last", 16);
  program.step({x}, {early});
  program.step({early}, {y}).inPlace = {{early, y}};
  program.step({y}, {later}).inPlace = {{y, later}};
  program.step({later}, {last});
  program.outputs = {y, last};
  Solution solution = planned(program);
  EXPECT_THAT(solution.inPlace, ElementsAre(InPlacePair{1, early, y}));
  EXPECT_NE(solution.offsets[y], solution.offsets[later]);
  EXPECT_NE(solution.offsets[y], solution.offsets[last]);
}

// Case 15 (xla#45912): a parameter that is read mid-way and updated at the end exists once.
TEST(Plan, UpdatedParameterExistsOnce) {
  Program program;
  StorageId w = program.parameter("w", 1000), x = program.input("x", 1), g = program.value("g", 1000);
  program.step({w, x}, {g});
  program.steps.push_back({"update", {{g, AccessMode::Read}, {w, AccessMode::ReadWrite}}, {}, 0, 0});
  EXPECT_EQ(planned(program).arenaBytes, 2001u);
}

// Case 18: a program whose largest live sum is not reachable: both numbers are reported and the promise is the placed
// one.
TEST(Plan, ReportsPlacedAndLiveBytes) {
  unsigned different = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Solution solution = planned(randomProgram(seed, 60), {.pack = {PackStrategy::FirstFit, 0}});
    different += solution.arenaBytes > solution.maxLiveBytes;
  }
  EXPECT_GT(different, 0u); // a weak strategy shows the difference somewhere
}

TEST(Plan, BudgetIsRefusedWithBoundAndPeak) {
  Program program;
  StorageId w = program.parameter("w", 3000), x = program.input("x", 1000);
  program.storages[w].source = "fc.weight";
  program.step({w, x}, {program.value("y", 2000)});
  PlanOptions options;
  options.budgetBytes = 5999;
  Result<Solution> solution = planner::plan(program, options);
  ASSERT_FALSE(solution);
  EXPECT_EQ(solution.status().code(), ExitCode::DoesNotFit);
  EXPECT_EQ(solution.status().message(),
            "the smallest plan found needs 6,000 bytes but the budget is 5,999; no placement of this order is below "
            "6,000; 6,000 bytes are live at step 0 's0'\n  parameter: 3,000\n  activation: 2,000\n  input: 1,000\n"
            "  3,000  w (fc.weight)\n  2,000  y\n  1,000  x");
  options.budgetBytes = 6000;
  EXPECT_EQ(planned(program, options).arenaBytes, 6000u);
}

TEST(Plan, MalformedProblemIsRefused) {
  Program program;
  program.step({program.value("y", 4)}, {});
  Result<Solution> solution = planner::plan(program);
  ASSERT_FALSE(solution);
  EXPECT_EQ(solution.status().code(), ExitCode::BadInput);
  EXPECT_THAT(solution.status().message(), HasSubstr("C5"));
}

// A recorded problem: a two-layer network with Adam-like updates. In place: r on h, dlogits on logits, dh on dr.
// Peak at relu_dx (step 7)? w1 4096 + w2 2048 + m1 4096 + m2 2048 = 12288 always. By step, transient bytes:
//   0  x 1024, labels 64, h 1024, workspace 256                    2368
//   4  x, labels dead, r 1024, dlogits 512, loss 64, dw2 2048, ws  1024+1024+512+64+2048+256 = 4928
//   5  x, r, dlogits, loss, dw2, dr 1024, ws 256                   5952
//   7  x, r, dr/dh 1024, loss                                      3136
//   8  x, dh, loss, dw1 4096, ws 256                               6464  <- peak 18752
TEST(Plan, RecordedTrainingStep) {
  std::ifstream file(std::string(PLIMSOLL_SOURCE_DIR) + "/test/unit/Planner/data/two-layer-step.problem");
  ASSERT_TRUE(file);
  std::stringstream text;
  text << file.rdbuf();
  Result<Problem> problem = parseProblem(text.str());
  ASSERT_TRUE(problem) << problem.status().message();
  Solution solution = planned(*problem);
  EXPECT_EQ(solution.persistentBytes, 12288u);
  EXPECT_EQ(solution.witnessStep, 8u);
  EXPECT_EQ(solution.maxLiveBytes, 18752u);
  EXPECT_EQ(solution.arenaBytes, 18752u);
  EXPECT_EQ(solution.inPlace.size(), 3u);
}

TEST(PlanProperty, RandomProgramsAlwaysValidate) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Program program = randomProgram(seed, 2 + seed % 80);
    ASSERT_TRUE(program.check().isOk()) << program.check().message();
    PlanOptions options;
    options.takeInPlace = seed % 5 != 0;
    options.pack.searchEffort = 1'000'000;
    options.pack.strategy = static_cast<PackStrategy>(seed % 4);
    planned(program, options);
  }
}

TEST(PlanProperty, InPlaceNeverRaisesTheLiveBytes) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    Program program = randomProgram(seed, 40);
    Result<Liveness> with = computeLiveness(program, {true}), without = computeLiveness(program, {false});
    ASSERT_TRUE(with && without);
    for (size_t step = 0; step < program.steps.size(); ++step)
      EXPECT_LE(with->liveBytes[step], without->liveBytes[step]);
  }
}

TEST(PlanProperty, SameProblemSamePlan) {
  Program program = randomProgram(11, 200);
  Solution first = planned(program), second = planned(program);
  EXPECT_EQ(first.offsets, second.offsets);
  EXPECT_EQ(first.workspaceOffsets, second.workspaceOffsets);
  EXPECT_EQ(first.strategy, second.strategy);
}

/// x, 8 bytes, moves to the host and back; t1 (8) and t2 (8) are used while it is away, v lives on the disk, 24 bytes.
Problem traveller() {
  Program program;
  StorageId x = program.input("x", 8), t1 = program.value("t1", 8), t2 = program.value("t2", 8);
  StorageId y = program.value("y", 8), v = program.addStorage("v", 24, StorageClass::OptimizerState);
  program.step({}, {t1});
  program.step({t1}, {t2});
  program.step({x}, {y});
  program.steps.push_back({"update", {{y, AccessMode::Read}, {v, AccessMode::ReadWrite}}, {}, 0, 0});
  program.outputs = {y};
  const TransferSpeed speeds[tierCount] = {};
  auto act = [](ActionKind kind, uint32_t index, Tier tier = Tier::Device) { return Action{kind, index, tier}; };
  Schedule schedule;
  schedule.relocations = {{v, Tier::Disk}};
  schedule.actions = {act(ActionKind::CopyOut, x, Tier::Host),
                      act(ActionKind::Wait, x),
                      act(ActionKind::Run, 0),
                      act(ActionKind::Run, 1),
                      act(ActionKind::CopyIn, x),
                      act(ActionKind::Wait, x),
                      act(ActionKind::Run, 2),
                      act(ActionKind::CopyIn, v),
                      act(ActionKind::Wait, v),
                      act(ActionKind::Run, 3),
                      act(ActionKind::CopyOut, v, Tier::Disk),
                      act(ActionKind::Wait, v)};
  Result<ScheduledProblem> made = applySchedule(program, schedule, speeds);
  EXPECT_TRUE(made) << made.status().message();
  return made->problem;
}

// Device: x | t1 | t1 t2 | x.in2 y | y v.in2: at most 8 + 24 = 32. Host: 8. Disk: v.
TEST(PlanTiers, EachTierHasItsArena) {
  Problem problem = traveller();
  Result<Liveness> live = computeLiveness(problem);
  ASSERT_TRUE(live) << live.status().message();
  EXPECT_EQ(live->liveBytes, (std::vector<uint64_t>{8, 8, 8, 16, 8, 8, 16, 32, 32, 32, 32, 32}));
  EXPECT_EQ(live->persistentBytes, 0u);
  EXPECT_EQ(live->tierPersistentBytes, (std::array<uint64_t, tierCount>{0, 0, 24}));
  EXPECT_EQ(live->tierMaxLiveBytes, (std::array<uint64_t, tierCount>{32, 8, 24}));
  Solution solution = planned(problem);
  EXPECT_EQ(solution.arenaBytes, 32u);
  EXPECT_EQ(solution.maxLiveBytes, 32u);
  EXPECT_EQ(solution.witnessStep, 7u);
  EXPECT_EQ(solution.persistentBytes, 0u);
  EXPECT_EQ(solution.tierBytes, (std::array<uint64_t, tierCount>{0, 8, 24}));
}

TEST(PlanTiers, PersistentStoragesOfATierComeFirst) {
  Program program;
  StorageId a = program.parameter("a", 4), b = program.parameter("b", 6), c = program.parameter("c", 8);
  program.storages[a].tier = program.storages[c].tier = Tier::Disk;
  Solution solution = planned(program);
  EXPECT_EQ(solution.offsets, (std::vector<uint64_t>{0, 0, 4}));
  EXPECT_EQ(solution.arenaBytes, 6u);
  EXPECT_EQ(solution.persistentBytes, 6u);
  EXPECT_EQ(solution.tierBytes, (std::array<uint64_t, tierCount>{0, 0, 12}));
  EXPECT_EQ(solution.offsets[b], 0u);
}

TEST(PlanTiers, EachTierHasItsBudget) {
  Problem problem = traveller();
  EXPECT_TRUE(plan(problem, {.budgetBytes = 32, .hostBudgetBytes = 8, .diskBudgetBytes = 24}));
  Result<Solution> refused = plan(problem, {.hostBudgetBytes = 7});
  EXPECT_EQ(refused.status().code(), ExitCode::DoesNotFit);
  EXPECT_EQ(refused.status().message(),
            "the smallest plan found needs 8 bytes of the host but its budget is 7; 8 bytes "
            "are there at once, whatever the placement");
  refused = plan(problem, {.diskBudgetBytes = 23});
  EXPECT_EQ(refused.status().code(), ExitCode::DoesNotFit);
  EXPECT_THAT(refused.status().message(), HasSubstr("needs 24 bytes of the disk but its budget is 23"));
}

} // namespace
