// Problem::check(): every rule is broken once and named, and all violations arrive together.
#include "Programs.h"

#include <gmock/gmock.h>
#include <limits>

using namespace plimsoll;
using namespace plimsoll::planner;
using plimsoll::planner::test::Program;
using testing::HasSubstr;

namespace {

/// y = f(x); z = g(y); z is handed back.
Program chain() {
  Program program;
  StorageId x = program.input("x", 8), y = program.value("y", 8), z = program.value("z", 8);
  program.step({x}, {y});
  program.step({y}, {z}).inPlace = {{y, z}};
  program.outputs = {z};
  return program;
}

std::string complaint(const Problem &problem) {
  Status status = problem.check();
  EXPECT_EQ(status.code(), ExitCode::BadInput);
  return status.message();
}

TEST(ProblemCheck, AcceptsAChain) { EXPECT_TRUE(chain().check().isOk()) << chain().check().message(); }

TEST(ProblemCheck, AcceptsNothingAtAll) { EXPECT_TRUE(Problem().check().isOk()); }

TEST(ProblemCheck, AcceptsZeroBytes) {
  Program program = chain();
  program.storages[0].bytes = 0;
  EXPECT_TRUE(program.check().isOk());
}

TEST(ProblemCheck, C1PositionsAndNames) {
  Program program = chain();
  program.storages[1].id = 7;
  EXPECT_THAT(complaint(program), HasSubstr("C1: storage 'y' has id 7, expected its position 1"));
  program = chain();
  program.storages[2].name = "x";
  EXPECT_THAT(complaint(program),
              HasSubstr("C1: storage 'x' is defined twice, at positions 0 and 2; names are unique"));
  program = chain();
  program.storages[2].name.clear();
  EXPECT_THAT(complaint(program), HasSubstr("C1: storage 2 has no name"));
}

TEST(ProblemCheck, C2AlignmentAndSizes) {
  Program program = chain();
  program.alignment = 48;
  EXPECT_THAT(complaint(program), HasSubstr("C2: alignment 48 is not a power of two"));
  program.alignment = 0;
  EXPECT_THAT(complaint(program), HasSubstr("C2: alignment 0 is not a power of two"));
  program = chain();
  program.storages[0].bytes = std::numeric_limits<uint64_t>::max();
  EXPECT_THAT(complaint(program), HasSubstr("C2: storages and workspaces sum to 2^62 bytes or more; a size is wrong"));
  program.storages[0].bytes = program.storages[1].bytes = uint64_t{1} << 61;
  EXPECT_THAT(complaint(program), HasSubstr("C2: storages and workspaces sum"));
}

TEST(ProblemCheck, C3UnknownStorages) {
  Program program = chain();
  program.steps[0].accesses.push_back({9, AccessMode::Read});
  program.steps[1].inPlace.push_back({1, 10});
  program.inputs.push_back(11);
  program.outputs.push_back(12);
  std::string text = complaint(program);
  EXPECT_THAT(text, HasSubstr("C3: step 0 's0' touches unknown storage 9"));
  EXPECT_THAT(text, HasSubstr("C3: step 1 's1' offers in-place with unknown storage 10"));
  EXPECT_THAT(text, HasSubstr("C3: program input names unknown storage 11"));
  EXPECT_THAT(text, HasSubstr("C3: program output names unknown storage 12"));
}

TEST(ProblemCheck, C4DoubleListing) {
  Program program = chain();
  program.steps[1].accesses.push_back({1, AccessMode::Read});
  program.inputs.push_back(0);
  std::string text = complaint(program);
  EXPECT_THAT(text, HasSubstr("C4: step 1 's1' lists storage 'y' twice; merge them into one access"));
  EXPECT_THAT(text, HasSubstr("C4: storage 'x' is listed twice as program input"));
}

TEST(ProblemCheck, C5ReadBeforeWrite) {
  Program program = chain();
  std::swap(program.steps[0], program.steps[1]);
  EXPECT_THAT(complaint(program), HasSubstr("C5: step 0 's1' reads storage 'y' before any step writes it; write it "
                                            "first, make it an input or persistent"));
}

TEST(ProblemCheck, C5AStepDoesNotFeedItself) {
  Program program;
  StorageId sum = program.value("sum", 4);
  program.steps.push_back({"add", {{sum, AccessMode::ReadWrite}}, {}, 0, 0});
  EXPECT_THAT(complaint(program), HasSubstr("C5: step 0 'add' reads storage 'sum'"));
}

TEST(ProblemCheck, C6OutputNeverWritten) {
  Program program = chain();
  program.outputs.push_back(program.value("ghost", 4));
  EXPECT_THAT(complaint(program), HasSubstr("C6: program output storage 'ghost' is never written"));
}

TEST(ProblemCheck, C7InPlaceOffers) {
  Program program = chain();
  program.storages[2].bytes = 4096;
  EXPECT_THAT(complaint(program), HasSubstr("C7: step 1 's1' offers storage 'z' in the place of storage 'y', but the "
                                            "operand has 8 bytes and the result 4,096"));
  program = chain();
  program.steps[1].inPlace = {{0, 2}};
  EXPECT_THAT(complaint(program), HasSubstr("but the operand is not read (only) by this step"));
  program = chain();
  program.step({1}, {2}).inPlace = {{1, 2}};
  EXPECT_THAT(complaint(program), HasSubstr("C7: step 2 's2' offers storage 'z' in the place of storage 'y', but the "
                                            "result is not first written by this step"));
}

TEST(ProblemCheck, C8StateMustPersist) {
  Program program = chain();
  program.storages[0].storageClass = StorageClass::OptimizerState;
  EXPECT_THAT(complaint(program),
              HasSubstr("C8: storage 'x' has class optimizer_state but is not persistent; its bytes would "
                        "be lost between runs"));
}

TEST(ProblemCheck, C9ConstantsAreNotWritten) {
  Program program = chain();
  StorageId table = program.addStorage("table", 16, StorageClass::Constant);
  program.steps[1].accesses.push_back({table, AccessMode::ReadWrite});
  EXPECT_THAT(complaint(program), HasSubstr("C9: step 1 's1' writes the constant storage 'table'"));
}

TEST(ProblemCheck, C10Costs) {
  Program program = chain();
  program.steps[0].costSeconds = -1;
  program.steps[1].costSeconds = std::numeric_limits<double>::quiet_NaN();
  std::string text = complaint(program);
  EXPECT_THAT(text, HasSubstr("C10: step 0 's0' has cost -1.000000, expected a finite number of seconds"));
  EXPECT_THAT(text, HasSubstr("C10: step 1 's1' has cost"));
}

/// y = f(x); y moves to the host and back; z = g(y again). Storages x, y, z, away, back; steps 1 and 3 copy.
Program roundTrip() {
  Program program = chain();
  StorageId away = program.value("away", 8), back = program.value("back", 8);
  program.storages[away].tier = Tier::Host;
  auto transfer = [&](StorageId from, StorageId to) {
    StepIndex copy = static_cast<StepIndex>(program.steps.size());
    program.step({from}, {to}).kind = StepKind::Copy;
    Step &wait = program.step({from, to}, {});
    wait.kind = StepKind::Wait;
    wait.waitsFor = copy;
  };
  program.steps.pop_back();
  transfer(1, away);
  transfer(away, back);
  program.step({back}, {2});
  return program;
}

TEST(ProblemCheck, AcceptsTransfers) { EXPECT_TRUE(roundTrip().check().isOk()) << roundTrip().check().message(); }

TEST(ProblemCheck, C11Copies) {
  Program program = roundTrip();
  program.steps[1].accesses.pop_back();
  EXPECT_THAT(complaint(program), HasSubstr("C11: step 1 's1' is a copy, expected that it reads one storage and "));
  program = roundTrip();
  program.steps[1].accesses[1].mode = AccessMode::ReadWrite;
  EXPECT_THAT(complaint(program), HasSubstr("C11: step 1 's1' is a copy, expected that it reads one storage and "));
  program = roundTrip();
  program.storages[3].bytes = 9;
  EXPECT_THAT(complaint(program),
              HasSubstr("C11: step 1 's1' copies between storage 'y' of 8 bytes and storage 'away' of 9"));
  program = roundTrip();
  program.storages[3].tier = Tier::Device;
  EXPECT_THAT(complaint(program), HasSubstr("C11: step 1 's1' copies between the device and the device, expected the "
                                            "device and another tier"));
  program = roundTrip();
  program.storages[4].tier = Tier::Disk;
  EXPECT_THAT(complaint(program), HasSubstr("C11: step 3 's3' copies between the host and the disk"));
}

TEST(ProblemCheck, C12Waits) {
  Program program = roundTrip();
  program.steps.pop_back(); // z
  program.outputs.clear();
  program.steps.pop_back();
  EXPECT_THAT(complaint(program), HasSubstr("C12: step 3 's3' is a copy that nothing waits for"));
  program = roundTrip();
  program.steps[4].waitsFor = 1;
  EXPECT_THAT(complaint(program), HasSubstr("C12: step 4 's4' waits for step 1 's1' a second time"));
  EXPECT_THAT(complaint(program), HasSubstr("C12: step 4 's4' should read just the source and the target of step 1"));
  program = roundTrip();
  program.steps[4].waitsFor = noStep;
  EXPECT_THAT(complaint(program), HasSubstr("C12: step 4 's4' does not name an earlier copy to wait for"));
  program = roundTrip();
  program.steps[2].waitsFor = 3;
  EXPECT_THAT(complaint(program), HasSubstr("C12: step 2 's2' does not name an earlier copy to wait for"));
  program = roundTrip();
  program.steps[2].waitsFor = 0;
  EXPECT_THAT(complaint(program), HasSubstr("C12: step 2 's2' does not name an earlier copy to wait for"));
  program = roundTrip();
  program.steps[2].accesses[1].mode = AccessMode::Write;
  EXPECT_THAT(complaint(program), HasSubstr("C12: step 2 's2' should read just the source and the target of step 1"));
  program = roundTrip();
  program.steps[2].accesses.push_back({0, AccessMode::Read});
  EXPECT_THAT(complaint(program), HasSubstr("C12: step 2 's2' should read just the source and the target of step 1"));
  program = roundTrip();
  program.steps[0].waitsFor = 1;
  EXPECT_THAT(complaint(program), HasSubstr("C12: step 0 's0' names a copy to wait for but is no wait"));
}

TEST(ProblemCheck, C13StepsComputeOnTheDevice) {
  Program program = roundTrip();
  program.steps[5].accesses[0].storage = 3;
  EXPECT_THAT(complaint(program), HasSubstr("C13: step 5 's5' computes with storage 'away', which lies on the host; "
                                            "copy it in first"));
  program = roundTrip();
  program.outputs.push_back(3);
  EXPECT_THAT(complaint(program),
              HasSubstr("C13: program output storage 'away' lies on the host, expected the device"));
  program = roundTrip();
  program.inputs.push_back(3);
  EXPECT_THAT(complaint(program), HasSubstr("C13: program input storage 'away' lies on the host, expected the device"));
  program = roundTrip();
  program.steps[1].workspaceBytes = 4;
  EXPECT_THAT(complaint(program), HasSubstr("C13: step 1 's1' moves bytes but has a workspace or an in-place offer"));
  program = roundTrip();
  program.steps[3].inPlace = {{3, 4}};
  EXPECT_THAT(complaint(program), HasSubstr("C13: step 3 's3' moves bytes but has a workspace or an in-place offer"));
}

TEST(TierNames, RoundTrip) {
  for (Tier tier : {Tier::Device, Tier::Host, Tier::Disk}) {
    Tier parsed = Tier::Device;
    EXPECT_TRUE(parseTier(tierName(tier), parsed));
    EXPECT_EQ(parsed, tier);
  }
  Tier parsed = Tier::Host;
  EXPECT_FALSE(parseTier("tape", parsed));
}

TEST(ProblemCheck, ListsEverythingAtOnce) {
  Program program = chain();
  program.alignment = 3;
  program.storages[2].bytes = 9;
  program.steps[0].costSeconds = -1;
  std::string text = complaint(program);
  EXPECT_THAT(text, HasSubstr("the planning problem breaks 3 rules\n"));
  for (const char *rule : {"\nC2: ", "\nC7: ", "\nC10: "})
    EXPECT_THAT(text, HasSubstr(rule));
}

TEST(StorageClassNames, RoundTrip) {
  for (unsigned i = 0; i < storageClassCount; ++i) {
    StorageClass parsed;
    ASSERT_TRUE(parseStorageClass(storageClassName(static_cast<StorageClass>(i)), parsed));
    EXPECT_EQ(parsed, static_cast<StorageClass>(i));
  }
  StorageClass ignored;
  EXPECT_FALSE(parseStorageClass("weights", ignored));
}

} // namespace
