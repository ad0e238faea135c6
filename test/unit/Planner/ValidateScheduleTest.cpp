// The judge of schedules must catch what it promises: right schedules are broken in one way per rule, and the rule must
// be named.
#include "Programs.h"
#include "plimsoll/Planner/Schedule.h"

#include <gmock/gmock.h>

using namespace plimsoll;
using namespace plimsoll::planner;
using plimsoll::planner::test::Program;
using plimsoll::planner::test::randomProgram;
using testing::HasSubstr;

namespace {

constexpr TransferSpeed speeds[tierCount] = {};

Action run(StepIndex step) { return {ActionKind::Run, step, Tier::Device}; }
Action out(StorageId id, Tier tier = Tier::Host) { return {ActionKind::CopyOut, id, tier}; }
Action in(StorageId id) { return {ActionKind::CopyIn, id, Tier::Device}; }
Action wait(StorageId id) { return {ActionKind::Wait, id, Tier::Device}; }

/// a = f(w, x); b = g(a); both = pieces of a and b; c = h(both, a); w is updated from c; counter counts.
struct Fixture {
  Program program;
  StorageId w, counter, x, a, b, both, c;
  static constexpr StepIndex f = 0, g = 1, pieceA = 2, pieceB = 3, h = 4, update = 5, count = 6;
  ScheduledProblem scheduled;

  Fixture() {
    w = program.parameter("w", 8);
    counter = program.addStorage("counter", 8, StorageClass::StepState);
    program.storages[counter].persistent = true;
    x = program.input("x", 8);
    a = program.value("a", 8), b = program.value("b", 8), both = program.value("both", 16), c = program.value("c", 8);
    program.step({w, x}, {a}).workspaceBytes = 4;
    program.step({a}, {b}).inPlace = {{a, b}};
    program.step({a}, {both});
    program.step({b}, {both});
    program.step({both, a}, {c});
    program.steps.push_back({"update", {{c, AccessMode::Read}, {w, AccessMode::ReadWrite}}, {}, 0, 1});
    program.steps.push_back({"count", {{counter, AccessMode::ReadWrite}}, {}, 0, 0});
    program.outputs = {c};
    // Step:         0       1       2            3            4       5       6       7        8      9       10
    set({run(f), out(a), run(g), run(pieceA), run(pieceB), wait(a), run(f), in(a), run(count), wait(a), run(h),
         run(update)});
  }

  void set(std::vector<Action> actions, std::vector<Relocation> relocations = {}) {
    Result<ScheduledProblem> made = applySchedule(program, {std::move(actions), std::move(relocations)}, speeds);
    ASSERT_TRUE(made) << made.status().message();
    scheduled = *made;
  }

  std::string text() const { return validateSchedule(program, scheduled).status().message(); }
  Step &step(std::string_view name) {
    for (Step &candidate : scheduled.problem.steps)
      if (candidate.name == name)
        return candidate;
    ADD_FAILURE() << name;
    return scheduled.problem.steps[0];
  }
};

TEST(ValidateSchedule, AcceptsRecomputesAndTransfers) {
  Fixture f;
  EXPECT_EQ(f.text(), "");
}

TEST(ValidateSchedule, AcceptsKeepAll) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    Program program = randomProgram(seed, 30);
    Result<ScheduledProblem> made = applySchedule(program, keepAll(program), speeds);
    ASSERT_TRUE(made);
    EXPECT_EQ(validateSchedule(program, *made).status().message(), "");
  }
}

TEST(ValidateSchedule, AcceptsRelocatedState) {
  Fixture f;
  f.set({in(f.w), wait(f.w), run(f.f), run(f.g), run(f.pieceA), run(f.pieceB), run(f.h), run(f.count), run(f.update),
         out(f.w, Tier::Disk), wait(f.w)},
        {{f.w, Tier::Disk}});
  EXPECT_EQ(f.text(), "");
}

// A step that nobody needs may be left out; here nobody reads b once its piece is gone from the original.
TEST(ValidateSchedule, AcceptsLeavingOutWhatNobodyNeeds) {
  Fixture f;
  f.program.steps.erase(f.program.steps.begin() + f.pieceB);
  f.set({run(0), run(2), run(3), run(4), run(5)});
  EXPECT_EQ(f.text(), "");
}

TEST(ValidateSchedule, S0BothProblemsAreWellFormed) {
  Fixture f;
  f.program.alignment = 3;
  EXPECT_THAT(f.text(), HasSubstr("S0: the original: the planning problem breaks 1 rule"));
  f = Fixture();
  f.scheduled.problem.storages[0].id = 5;
  EXPECT_THAT(f.text(), HasSubstr("S0: the scheduled problem: the planning problem breaks 1 rule"));
  f = Fixture();
  f.scheduled.stepOrigin.pop_back();
  EXPECT_THAT(f.text(), HasSubstr("S0: every step and every storage needs an origin"));
  f = Fixture();
  f.scheduled.storageOrigin[1] = 100;
  f.scheduled.stepOrigin[0] = 99;
  EXPECT_THAT(f.text(), HasSubstr("S0: the original has no storage 100"));
  EXPECT_THAT(f.text(), HasSubstr("S0: the original has no step 99"));
  f = Fixture();
  ScheduledProblem ofAScheduled{f.scheduled.problem, f.scheduled.stepOrigin, f.scheduled.storageOrigin};
  EXPECT_THAT(validateSchedule(f.scheduled.problem, ofAScheduled).status().message(),
              HasSubstr("S0: the original has transfers, such as step 'a.out'"));
}

TEST(ValidateSchedule, S1StateChangesOnce) {
  Fixture f;
  f.set({run(f.f), run(f.g), run(f.pieceA), run(f.pieceB), run(f.h), run(f.update), run(f.count), run(f.count)});
  EXPECT_THAT(f.text(), HasSubstr("S1: step 'count' changes what it does not define, but runs 2 times, expected once"));
  f.set({run(f.f), run(f.g), run(f.pieceA), run(f.pieceB), run(f.h), run(f.count)});
  EXPECT_THAT(f.text(),
              HasSubstr("S1: step 'update' changes what it does not define, but runs 0 times, expected once"));
}

TEST(ValidateSchedule, S1NothingElseIsAdded) {
  Fixture f;
  f.scheduled.stepOrigin[0] = noStep;
  EXPECT_THAT(f.text(), HasSubstr("S1: step 0 's0' computes but has no origin"));
  f = Fixture();
  f.scheduled.stepOrigin[1] = 0;
  EXPECT_THAT(f.text(), HasSubstr("S1: step 1 'a.out' is a transfer but has an origin"));
}

TEST(ValidateSchedule, S2RunsLookLikeTheirOrigin) {
  Fixture f;
  f.step("s0.2").name = "s4";
  EXPECT_THAT(f.text(), HasSubstr("S2: step 6 's4' is a run of 's0' but is not named after it"));
  f = Fixture();
  f.step("s4").accesses[0].storage = f.b;
  EXPECT_THAT(f.text(), HasSubstr("S2: step 10 's4' does not touch instances of what 's4' touches, in that order"));
  f = Fixture();
  std::swap(f.step("s4").accesses[0], f.step("s4").accesses[1]);
  EXPECT_THAT(f.text(), HasSubstr("S2: step 10 's4' does not touch instances"));
  f = Fixture();
  f.step("s1").inPlace.clear();
  EXPECT_THAT(f.text(), HasSubstr("S2: step 2 's1' does not make the in-place offers of 's1'"));
  f = Fixture();
  f.step("s0.2").workspaceBytes = 0;
  EXPECT_THAT(f.text(), HasSubstr("S2: step 6 's0.2' has a workspace of 0 bytes, 's0' has 4"));
  f = Fixture();
  f.step("update").costSeconds = 0;
  EXPECT_THAT(f.text(), HasSubstr("S2: step 11 'update' does not cost what 'update' costs"));
  f = Fixture();
  for (StorageId id = 0; id < f.scheduled.storageOrigin.size(); ++id)
    if (f.scheduled.problem.storages[id].name == "a.host")
      f.scheduled.storageOrigin[id] = f.b;
  EXPECT_THAT(f.text(), HasSubstr("S2: step 1 'a.out' moves between instances of different storages"));
}

// The second run of f comes after the update of the parameter it reads.
TEST(ValidateSchedule, S3RecomputeAfterAnUpdate) {
  Fixture f;
  f.program.step({f.a}, {f.program.value("late", 8)});
  f.set({run(f.f), run(f.g), run(f.pieceA), run(f.pieceB), run(f.h), run(f.update), run(f.count), run(f.f), run(7)});
  EXPECT_THAT(f.text(), HasSubstr("S3: step 7 's0.2' reads storage 'w', which holds 'w' from 'update', expected 'w' "
                                  "from before the first step"));
  EXPECT_THAT(f.text(), HasSubstr("S3: step 8 's7' reads storage 'a.2', which holds something else, expected 'a' from "
                                  "'s0'"));
}

TEST(ValidateSchedule, S3HalfAConcatenation) {
  Fixture f;
  f.set({run(f.f), run(f.g), run(f.pieceA), run(f.pieceB), run(f.pieceA), run(f.h), run(f.update), run(f.count)});
  EXPECT_THAT(f.text(), HasSubstr("S3: step 5 's4' reads storage 'both.2', which holds 'both' from 's2', expected "
                                  "'both' from 's3'"));
  f.set({run(f.f), run(f.g), run(f.pieceA), run(f.pieceB), run(f.pieceB), run(f.h), run(f.update), run(f.count)});
  EXPECT_THAT(f.text(), HasSubstr("S3: step 4 's3.2' adds to storage 'both', which holds 'both' from 's3', expected "
                                  "'both' from 's2'"));
}

TEST(ValidateSchedule, S3StaleCopyIsBroughtBack) {
  Fixture f;
  f.program.steps.push_back({"change", {{f.a, AccessMode::ReadWrite}}, {}, 0, 0});
  f.program.step({f.a}, {f.program.value("late", 8)});
  f.set({run(f.f), out(f.a), wait(f.a), run(f.g), run(f.pieceA), run(f.pieceB), run(f.h), run(f.update), run(f.count),
         run(7), in(f.a), wait(f.a), run(8)});
  EXPECT_THAT(f.text(), HasSubstr("S3: step 12 's8' reads storage 'a.in2', which holds 'a' from 's0', expected 'a' "
                                  "from 'change'"));
}

TEST(ValidateSchedule, S4StateReturnsHome) {
  Fixture f;
  f.set({in(f.w), wait(f.w), run(f.f), run(f.g), run(f.pieceA), run(f.pieceB), run(f.h), run(f.count), run(f.update)},
        {{f.w, Tier::Disk}});
  EXPECT_THAT(f.text(), HasSubstr("S4: at the end the persistent storage 'w' holds 'w' from before the first step, "
                                  "expected 'w' from 'update'"));
}

TEST(ValidateSchedule, S4OutputsAndInputs) {
  Fixture f;
  f.scheduled.problem.outputs = {f.a};
  EXPECT_THAT(f.text(), HasSubstr("S4: the outputs are not instances of the original's outputs, in that order"));
  f = Fixture();
  f.program.outputs = {f.a};
  f.set({run(f.f), run(f.g), run(f.pieceA), run(f.pieceB), run(f.h), run(f.update), run(f.count)});
  EXPECT_EQ(f.text(), "");
  f.set({run(f.f), run(f.g), run(f.pieceA), run(f.pieceB), run(f.h), run(f.update), run(f.f), run(f.count)});
  EXPECT_THAT(f.text(), HasSubstr("S4: at the end the output storage 'a.2' holds something else, expected 'a' from"));
  f = Fixture();
  f.scheduled.problem.inputs.clear();
  EXPECT_THAT(f.text(), HasSubstr("S0: the scheduled problem")); // x is read but not there
  f = Fixture();
  f.scheduled.problem.inputs.push_back(f.c);
  EXPECT_THAT(f.text(), HasSubstr("S4: the inputs are not instances of the original's inputs, in that order"));
}

TEST(ValidateSchedule, S5NothingTouchesAMovingStorage) {
  Fixture f;
  f.program.steps.push_back({"change", {{f.a, AccessMode::ReadWrite}}, {}, 0, 0});
  f.set({run(f.f), run(f.g), run(f.pieceA), run(f.pieceB), run(f.h), run(f.update), run(f.count), out(f.a), run(7),
         wait(f.a)});
  EXPECT_THAT(f.text(), HasSubstr("S5: step 8 'change' writes storage 'a', from which a copy is still moving"));
  f = Fixture();
  StorageId back = f.step("a.in3").accesses[1].storage;
  for (Access &access : f.step("s0.2").accesses)
    if (access.writes())
      access.storage = back; // the run before the copy in
  EXPECT_EQ(f.text(), "");
  std::swap(f.scheduled.problem.steps[6], f.scheduled.problem.steps[7]);
  std::swap(f.scheduled.stepOrigin[6], f.scheduled.stepOrigin[7]);
  f.step("a.in3.wait").waitsFor = 6;
  EXPECT_THAT(f.text(), HasSubstr("S5: step 7 's0.2' touches storage 'a.in3', into which a copy is still moving"));
  f = Fixture();
  f.step("s4").accesses[1].storage = back;
  std::swap(f.scheduled.problem.steps[9], f.scheduled.problem.steps[10]);
  std::swap(f.scheduled.stepOrigin[9], f.scheduled.stepOrigin[10]);
  EXPECT_THAT(f.text(), HasSubstr("S5: step 9 's4' touches storage 'a.in3', into which a copy is still moving"));
}

TEST(ValidateSchedule, S6InstancesMatchTheirOrigin) {
  Fixture f;
  f.scheduled.problem.storages[f.both].bytes = 24;
  EXPECT_THAT(f.text(), HasSubstr("S6: storage 'both' has 24 bytes, the original 16"));
  f = Fixture();
  f.scheduled.problem.storages[f.c].storageClass = StorageClass::Workspace;
  EXPECT_THAT(f.text(), HasSubstr("S6: storage 'c' has class workspace, expected activation"));
  f = Fixture();
  f.scheduled.problem.alignment = 64;
  EXPECT_THAT(f.text(), HasSubstr("S6: the alignment is 64, the original's is 1"));
  f = Fixture();
  f.scheduled.problem.storages[f.counter].persistent = false;
  f.scheduled.problem.inputs.push_back(f.counter);
  EXPECT_THAT(f.text(), HasSubstr("S6: 0 instances of 'counter' are persistent, expected one"));
  f = Fixture();
  f.scheduled.problem.storages[f.c].persistent = true;
  EXPECT_THAT(f.text(), HasSubstr("S6: 1 instances of 'c' are persistent, expected none"));
}

} // namespace
