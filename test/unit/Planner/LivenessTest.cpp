// Liveness on hand-made programs with the intervals, pairs and peaks worked out beside them.
#include "plimsoll/Planner/Liveness.h"
#include "Programs.h"

#include <gmock/gmock.h>

using namespace plimsoll;
using namespace plimsoll::planner;
using plimsoll::planner::test::Program;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

Liveness livenessOf(const Problem &problem, bool takeInPlace = true) {
  Result<Liveness> live = computeLiveness(problem, {takeInPlace});
  EXPECT_TRUE(live) << live.status().message();
  return live ? *live : Liveness{};
}

// s0: a = f(x)   live while it runs: w 5 + x 10 + a 20            = 35
// s1: b = g(a)   w 5 + a 20 + b 30 + workspace 7                  = 62  <- peak
// s2: c = h(b)   w 5 + b 30 + c 8                                 = 43
// c is the output. x dies in s0, a in s1, b in s2; the parameter w is always there.
TEST(Liveness, IntervalsAndPeakOfAChain) {
  Program program;
  StorageId w = program.parameter("w", 5), x = program.input("x", 10);
  StorageId a = program.value("a", 20), b = program.value("b", 30), c = program.value("c", 8);
  program.step({w, x}, {a});
  program.step({a}, {b}).workspaceBytes = 7;
  program.step({b}, {c});
  program.outputs = {c};
  Liveness live = livenessOf(program);
  EXPECT_THAT(live.intervals,
              ElementsAre(Interval{0, 3}, Interval{0, 1}, Interval{0, 2}, Interval{1, 3}, Interval{2, 3}));
  EXPECT_THAT(live.liveBytes, ElementsAre(35, 62, 43));
  EXPECT_EQ(live.maxLiveBytes, 62u);
  EXPECT_EQ(live.witnessStep, 1u);
  EXPECT_EQ(live.persistentBytes, 5u);
  ASSERT_EQ(live.liveAtPeak.size(), 4u);
  EXPECT_EQ(live.liveAtPeak[0].storage, b);
  EXPECT_EQ(live.liveAtPeak[1].storage, a);
  EXPECT_EQ(live.liveAtPeak[2].storage, noStorage);
  EXPECT_EQ(live.liveAtPeak[3].storage, w);
}

TEST(Liveness, PeakIsDescribedByClassAndName) {
  Program program;
  StorageId w = program.addStorage("w", 5000, StorageClass::Parameter, "fc.weight"), y = program.value("y", 70);
  program.step({w}, {y}).workspaceBytes = 3;
  std::string text = describePeak(program, livenessOf(program));
  EXPECT_EQ(text, "5,073 bytes are live at step 0 's0'\n  parameter: 5,000\n  activation: 70\n  workspace: 3\n"
                  "  5,000  w (fc.weight)\n  70  y\n  3  workspace of the step");
}

// A value nobody reads dies in the step that writes it, and gives its bytes to the next step.
TEST(Liveness, UnreadValueDiesAtOnce) {
  Program program;
  StorageId x = program.input("x", 1), dead = program.value("dead", 100), y = program.value("y", 100);
  program.step({x}, {dead});
  program.step({x}, {y});
  Liveness live = livenessOf(program);
  EXPECT_EQ(live.intervals[dead], (Interval{0, 1}));
  EXPECT_EQ(live.maxLiveBytes, 101u);
}

// Three pieces are written into one storage by s0, s1, s2 and read by s3: it is live from the first piece.
TEST(Liveness, FirstPieceOpensTheInterval) {
  Program program;
  StorageId x = program.input("x", 1), joined = program.value("joined", 30), y = program.value("y", 1);
  for (int i = 0; i < 3; ++i)
    program.step({x}, {joined});
  program.step({joined}, {y});
  EXPECT_EQ(livenessOf(program).intervals[joined], (Interval{0, 4}));
}

TEST(Liveness, UnusedStorageNeedsNothing) {
  Program program;
  program.value("unused", 64);
  Liveness live = livenessOf(program);
  EXPECT_THAT(live.allocations, IsEmpty());
  EXPECT_EQ(live.allocationOf[0], noStorage);
  EXPECT_EQ(live.maxLiveBytes, 0u);
}

// Inputs are staged together before step 0 even when they are read late or never.
TEST(Liveness, InputsAreLiveFromTheStart) {
  Program program;
  StorageId early = program.input("early", 4), late = program.input("late", 6), never = program.input("never", 10);
  StorageId y = program.value("y", 1), z = program.value("z", 1);
  program.step({early}, {y});
  program.step({late}, {z});
  Liveness live = livenessOf(program);
  EXPECT_EQ(live.intervals[never], (Interval{0, 1}));
  EXPECT_EQ(live.intervals[late], (Interval{0, 2}));
  EXPECT_EQ(live.liveBytes[0], 21u); // 4 + 6 + 10 + y
}

TEST(Liveness, SizesAreRoundedUpToTheAlignment) {
  Program program;
  program.alignment = 256;
  StorageId x = program.input("x", 1), y = program.value("y", 257);
  program.step({x}, {y});
  EXPECT_EQ(livenessOf(program).maxLiveBytes, 256u + 512u);
}

// x -> y -> z, each in place of the one before: one allocation of 8 bytes serves all three.
TEST(InPlace, AChainSharesOneAllocation) {
  Program program;
  StorageId x = program.input("x", 8), y = program.value("y", 8), z = program.value("z", 8);
  program.step({x}, {y}).inPlace = {{x, y}};
  program.step({y}, {z}).inPlace = {{y, z}};
  program.outputs = {z};
  Liveness live = livenessOf(program);
  ASSERT_EQ(live.allocations.size(), 1u);
  EXPECT_THAT(live.allocations[0].members, ElementsAre(x, y, z));
  EXPECT_EQ(live.allocations[0].interval, (Interval{0, 2}));
  EXPECT_EQ(live.maxLiveBytes, 8u);
  EXPECT_EQ(livenessOf(program, false).maxLiveBytes, 16u);
}

TEST(InPlace, NotWhenTheOperandIsReadLater) {
  Program program;
  StorageId x = program.input("x", 8), y = program.value("y", 8), z = program.value("z", 8);
  program.step({x}, {y}).inPlace = {{x, y}};
  program.step({x, y}, {z}).inPlace = {{x, z}, {y, z}};
  program.outputs = {z};
  // s0 must keep x; s1 may take either, the first offer wins.
  EXPECT_THAT(livenessOf(program).inPlace, ElementsAre(InPlacePair{1, x, z}));
}

TEST(InPlace, NotOverPersistentOrOutputOperands) {
  Program program;
  StorageId w = program.parameter("w", 8), x = program.input("x", 8);
  StorageId y = program.value("y", 8), z = program.value("z", 8);
  program.step({w}, {y}).inPlace = {{w, y}};
  program.step({x}, {z}).inPlace = {{x, z}};
  program.outputs = {x, y, z};
  EXPECT_THAT(livenessOf(program).inPlace, IsEmpty());
}

// r1 could take a or b, r2 only a. Greedy in order would give a to r1 and leave r2 without; the matching serves both.
TEST(InPlace, OffersOfOneStepAreMatched) {
  Program program;
  StorageId a = program.input("a", 8), b = program.input("b", 8);
  StorageId r1 = program.value("r1", 8), r2 = program.value("r2", 8);
  program.step({a, b}, {r1, r2}).inPlace = {{a, r1}, {b, r1}, {a, r2}};
  program.outputs = {r1, r2};
  Liveness live = livenessOf(program);
  EXPECT_THAT(live.inPlace, ElementsAre(InPlacePair{0, b, r1}, InPlacePair{0, a, r2}));
  EXPECT_EQ(live.maxLiveBytes, 16u);
}

// Case 19: gradient accumulators are persistent, so every micro-step counts them, first and last alike.
TEST(Liveness, AccumulatorsCountInEveryStep) {
  Program program;
  StorageId accumulator = program.addStorage("w.grad", 40, StorageClass::Gradient);
  program.storages[accumulator].persistent = true;
  StorageId x = program.input("x", 2);
  for (int micro = 0; micro < 4; ++micro) {
    StorageId piece = program.value("g" + std::to_string(micro), 10);
    program.step({x}, {piece});
    program.steps.push_back(
        {"add" + std::to_string(micro), {{piece, AccessMode::Read}, {accumulator, AccessMode::ReadWrite}}, {}, 0, 0});
  }
  Liveness live = livenessOf(program);
  EXPECT_EQ(live.persistentBytes, 40u);
  EXPECT_EQ(live.liveBytes[1], live.liveBytes[5]); // 40 + 2 + 10 both times
  EXPECT_THAT(live.liveBytes, testing::Each(testing::Ge(40u)));
}

TEST(Liveness, RefusesAMalformedProblem) {
  Program program;
  program.step({program.value("y", 4)}, {});
  Result<Liveness> live = computeLiveness(program);
  ASSERT_FALSE(live);
  EXPECT_EQ(live.status().code(), ExitCode::BadInput);
  EXPECT_THAT(live.status().message(), HasSubstr("C5: step 0 's0' reads storage 'y'"));
}

} // namespace
