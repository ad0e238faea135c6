// Schedules written out by hand: which instances appear, what they are called, what a program with transfers takes.
#include "plimsoll/Planner/Schedule.h"
#include "Programs.h"
#include "plimsoll/Planner/ProblemText.h"

#include <gmock/gmock.h>

using namespace plimsoll;
using namespace plimsoll::planner;
using plimsoll::planner::test::Program;
using plimsoll::planner::test::randomProgram;
using testing::HasSubstr;

namespace {

// Round numbers: 1 byte takes 1 s out to the host and 2 s in, 10 s either way to the disk, which also waits 5 s.
constexpr TransferSpeed speeds[tierCount] = {{}, {1, 0.5, 0}, {0.1, 0.1, 5}};

Action run(StepIndex step) { return {ActionKind::Run, step, Tier::Device}; }
Action out(StorageId id, Tier tier) { return {ActionKind::CopyOut, id, tier}; }
Action in(StorageId id) { return {ActionKind::CopyIn, id, Tier::Device}; }
Action wait(StorageId id) { return {ActionKind::Wait, id, Tier::Device}; }

/// a = f(x); b = g(a); c = h(b, a); w updated from c. Costs 1, 2, 4, 8 s.
struct Fixture {
  Program program;
  StorageId w, x, a, b, c;

  Fixture() {
    w = program.parameter("w", 4);
    x = program.input("x", 4);
    a = program.value("a", 4), b = program.value("b", 4), c = program.value("c", 4);
    program.step({x}, {a}).costSeconds = 1;
    program.step({a}, {b}).inPlace = {{a, b}};
    program.step({b, a}, {c});
    program.steps.push_back({"update", {{c, AccessMode::Read}, {w, AccessMode::ReadWrite}}, {}, 0, 8});
    program.steps[1].costSeconds = 2, program.steps[2].costSeconds = 4;
    program.outputs = {c};
  }

  std::string text(const Schedule &schedule) const {
    Result<ScheduledProblem> made = applySchedule(program, schedule, speeds);
    EXPECT_TRUE(made) << made.status().message();
    if (!made)
      return {};
    EXPECT_EQ(made->stepOrigin.size(), made->problem.steps.size());
    EXPECT_EQ(made->storageOrigin.size(), made->problem.storages.size());
    EXPECT_TRUE(made->problem.check().isOk()) << made->problem.check().message();
    return writeProblem(made->problem);
  }

  std::string complaint(const Schedule &schedule) const {
    Result<ScheduledProblem> made = applySchedule(program, schedule, speeds);
    EXPECT_FALSE(made);
    EXPECT_EQ(made.status().code(), ExitCode::BadInput);
    return made.status().message();
  }
};

TEST(ApplySchedule, KeepAllGivesTheProblemBack) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    Program program = randomProgram(seed, 30);
    Result<ScheduledProblem> made = applySchedule(program, keepAll(program), speeds);
    ASSERT_TRUE(made) << made.status().message();
    EXPECT_EQ(writeProblem(made->problem), writeProblem(program));
    for (StepIndex step = 0; step < program.steps.size(); ++step)
      EXPECT_EQ(made->stepOrigin[step], step);
    for (StorageId id = 0; id < program.storages.size(); ++id)
      EXPECT_EQ(made->storageOrigin[id], id);
  }
}

TEST(ApplySchedule, RecomputeOpensAnInstance) {
  Fixture f;
  EXPECT_THAT(f.text({{run(0), run(1), run(0), run(2), run(3)}, {}}),
              HasSubstr("storage \"c\" bytes 4 class activation\n"
                        "storage \"a.2\" bytes 4 class activation\n"
                        "step \"s0\" read %1 write %2 cost 1\n"
                        "step \"s1\" read %2 write %3 inplace %2 %3 cost 2\n"
                        "step \"s0.2\" read %1 write %5 cost 1\n"
                        "step \"s2\" read %3 read %5 write %4 cost 4\n"
                        "step \"update\" read %4 readwrite %0 cost 8\n"));
}

TEST(ApplySchedule, PiecesGoToTheNewestInstance) {
  Program program;
  StorageId x = program.input("x", 8), joined = program.value("joined", 16), y = program.value("y", 8);
  program.step({x}, {joined});
  program.step({x}, {joined});
  program.step({joined}, {y});
  program.outputs = {y};
  Result<ScheduledProblem> made = applySchedule(program, {{run(0), run(1), run(0), run(1), run(2)}, {}}, speeds);
  ASSERT_TRUE(made);
  StorageId second = 3;
  EXPECT_EQ(made->problem.storages[second].name, "joined.2");
  EXPECT_EQ(made->problem.steps[2].accesses[1], (Access{second, AccessMode::Write}));
  EXPECT_EQ(made->problem.steps[3].accesses[1], (Access{second, AccessMode::Write}));
  EXPECT_EQ(made->problem.steps[4].accesses[0], (Access{second, AccessMode::Read}));
  EXPECT_EQ(made->stepOrigin, (std::vector<StepIndex>{0, 1, 0, 1, 2}));
  EXPECT_EQ(made->storageOrigin[second], joined);
}

TEST(ApplySchedule, TransfersOfAnActivation) {
  Fixture f;
  EXPECT_THAT(f.text({{run(0), out(f.a, Tier::Host), run(1), wait(f.a), in(f.a), wait(f.a), run(2), run(3)}, {}}),
              HasSubstr("storage \"a.host\" bytes 4 class activation tier host\n"
                        "storage \"a.in2\" bytes 4 class activation\n"
                        "step \"s0\" read %1 write %2 cost 1\n"
                        "step \"a.out\" copy read %2 write %5 cost 4\n"
                        "step \"s1\" read %2 write %3 inplace %2 %3 cost 2\n"
                        "step \"a.out.wait\" wait 1 read %2 read %5\n"
                        "step \"a.in2\" copy read %5 write %6 cost 8\n"
                        "step \"a.in2.wait\" wait 4 read %5 read %6\n"
                        "step \"s2\" read %3 read %6 write %4 cost 4\n"));
}

TEST(ApplySchedule, ReadsBeforeTheWaitMeanTheOlderInstance) {
  Fixture f;
  std::string text =
      f.text({{run(0), out(f.a, Tier::Disk), wait(f.a), in(f.a), run(1), wait(f.a), run(2), run(3)}, {}});
  EXPECT_THAT(text, HasSubstr("step \"a.out\" copy read %2 write %5 cost 45\n")); // 5 s + 4 bytes at 0.1 a second
  EXPECT_THAT(text, HasSubstr("step \"s1\" read %2 write %3"));
  EXPECT_THAT(text, HasSubstr("step \"s2\" read %3 read %6 write %4"));
}

TEST(ApplySchedule, RelocatedStateVisitsTheDevice) {
  Fixture f;
  EXPECT_THAT(f.text({{run(0), in(f.w), run(1), run(2), wait(f.w), run(3), out(f.w, Tier::Disk), wait(f.w)},
                      {{f.w, Tier::Disk}}}),
              HasSubstr("storage \"w\" bytes 4 class parameter persistent tier disk\n"));
  EXPECT_THAT(f.text({{run(0), in(f.w), run(1), run(2), wait(f.w), run(3), out(f.w, Tier::Disk), wait(f.w)},
                      {{f.w, Tier::Disk}}}),
              HasSubstr("storage \"w.in2\" bytes 4 class workspace\n"
                        "step \"s0\" read %1 write %2 cost 1\n"
                        "step \"w.in2\" copy read %0 write %5 cost 45\n"
                        "step \"s1\" read %2 write %3 inplace %2 %3 cost 2\n"
                        "step \"s2\" read %3 read %2 write %4 cost 4\n"
                        "step \"w.in2.wait\" wait 1 read %0 read %5\n"
                        "step \"update\" read %4 readwrite %5 cost 8\n"
                        "step \"w.in2.out\" copy read %5 write %0 cost 45\n"
                        "step \"w.in2.out.wait\" wait 6 read %5 read %0\n"));
}

TEST(ApplySchedule, OutputsAreTheNewestInstances) {
  Fixture f;
  Result<ScheduledProblem> made = applySchedule(f.program, {{run(0), run(1), run(2), run(2), run(3)}, {}}, speeds);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->problem.outputs, (std::vector<StorageId>{5}));
  EXPECT_EQ(made->problem.storages[5].name, "c.2");
}

TEST(ApplySchedule, NamesThatAreTakenGetANumber) {
  Fixture f;
  f.program.value("a.2", 4);
  f.program.value("a.host", 4);
  f.program.steps[1].name = "s0.2";
  std::string text = f.text({{run(0), run(1), run(0), out(f.a, Tier::Host), wait(f.a), run(2), run(3)}, {}});
  EXPECT_THAT(text, HasSubstr("storage \"a.2.2\" bytes 4"));
  EXPECT_THAT(text, HasSubstr("storage \"a.host2\" bytes 4"));
  EXPECT_THAT(text, HasSubstr("step \"s0.2.2\" "));
}

TEST(ApplySchedule, MeaninglessActionsAreRefused) {
  Fixture f;
  EXPECT_EQ(f.complaint({{run(1)}, {}}), "action 0 of the schedule runs step 1 's1', which needs storage 'a', but that "
                                         "is not on the device");
  EXPECT_EQ(f.complaint({{run(9)}, {}}), "action 0 of the schedule names unknown step 9");
  EXPECT_EQ(f.complaint({{run(0), wait(77)}, {}}), "action 1 of the schedule names unknown storage 77");
  EXPECT_EQ(f.complaint({{run(0), wait(f.a)}, {}}),
            "action 1 of the schedule waits for a transfer of storage 'a', but none is under way");
  EXPECT_EQ(f.complaint({{run(0), out(f.a, Tier::Host), out(f.a, Tier::Host)}, {}}),
            "action 2 of the schedule moves storage 'a' before its last transfer was waited for");
  EXPECT_EQ(f.complaint({{out(f.a, Tier::Host)}, {}}),
            "action 0 of the schedule moves storage 'a' out, but it is not on the device");
  EXPECT_EQ(f.complaint({{run(0), out(f.a, Tier::Device)}, {}}),
            "action 1 of the schedule moves storage 'a' out to the device; name another tier");
  EXPECT_EQ(f.complaint({{run(0), in(f.a)}, {}}),
            "action 1 of the schedule brings storage 'a' back, but it was never moved out");
  EXPECT_EQ(f.complaint({{out(f.w, Tier::Host)}, {}}),
            "action 0 of the schedule moves storage 'w', which is persistent on the device; relocate it first");
  EXPECT_EQ(f.complaint({{in(f.w), wait(f.w), out(f.w, Tier::Host)}, {{f.w, Tier::Disk}}}),
            "action 2 of the schedule moves storage 'w' out to the host, but its home is the disk");
  EXPECT_EQ(f.complaint({{run(0), run(1), run(2), run(3)}, {{f.w, Tier::Disk}}}),
            "action 3 of the schedule runs step 3 'update', which needs storage 'w', but that is not on the device");
  EXPECT_EQ(f.complaint({{run(0), run(1), run(2), run(3), out(f.a, Tier::Host)}, {}}),
            "the schedule never waits for the last transfer of storage 'a'");
  EXPECT_EQ(f.complaint({{run(0)}, {}}), "at the end of the schedule the output storage 'c' is not on the device");
}

TEST(ApplySchedule, MeaninglessRelocationsAreRefused) {
  Fixture f;
  EXPECT_EQ(f.complaint({{}, {{55, Tier::Disk}}}), "the schedule relocates unknown storage 55");
  EXPECT_EQ(f.complaint({{}, {{f.a, Tier::Disk}}}), "the schedule relocates storage 'a' which is not persistent");
  EXPECT_EQ(f.complaint({{}, {{f.w, Tier::Device}}}), "the schedule relocates storage 'w' to the device, where it is");
  EXPECT_EQ(f.complaint({{}, {{f.w, Tier::Disk}, {f.w, Tier::Disk}}}),
            "the schedule relocates storage 'w' out of order; relocations ascend by storage");
  f.program.inputs.push_back(f.w);
  EXPECT_EQ(f.complaint({{}, {{f.w, Tier::Disk}}}),
            "the schedule relocates storage 'w' which is staged as input on the device");
}

TEST(ApplySchedule, WaysNeedASpeed) {
  Fixture f;
  constexpr TransferSpeed stuck[tierCount] = {{}, {0, 1, 0}, {}};
  Result<ScheduledProblem> made = applySchedule(f.program, {{run(0), out(f.a, Tier::Host)}, {}}, stuck);
  EXPECT_EQ(made.status().message(), "action 1 of the schedule moves storage 'a' over a way without a usable speed");
}

// Compute 1 | out 4 s beside 2 s of compute, so the wait stalls 2 s | in 8 s with nothing beside it | 4 + 8.
TEST(PredictTiming, WaitsStallForWhatIsLeftOfTheCopy) {
  Fixture f;
  Result<ScheduledProblem> made = applySchedule(
      f.program, {{run(0), out(f.a, Tier::Host), run(1), wait(f.a), in(f.a), wait(f.a), run(2), run(3)}, {}}, speeds);
  ASSERT_TRUE(made);
  Timing timing = predictTiming(made->problem);
  EXPECT_EQ(timing.computeSeconds, 15);
  EXPECT_EQ(timing.stallSeconds, 2 + 8);
  EXPECT_EQ(timing.totalSeconds(), 25);
}

// Both copies leave at 3 s over one way: the second is done at 3 + 4 + 4. Over different ways they run together, and
// the disk's is done at 3 + 45.
TEST(PredictTiming, CopiesOfOneWayQueue) {
  Fixture f;
  auto total = [&](Tier second) {
    Schedule schedule{{run(0), run(1), out(f.a, Tier::Host), out(f.b, second), wait(f.b), wait(f.a), run(2), run(3)},
                      {}};
    return predictTiming(applySchedule(f.program, schedule, speeds)->problem).stallSeconds;
  };
  EXPECT_EQ(total(Tier::Host), 8);
  EXPECT_EQ(total(Tier::Disk), 45);
}

} // namespace
