// Problem text: byte-identical round trips and an error with a line number for every way to be malformed.
#include "plimsoll/Planner/ProblemText.h"
#include "Programs.h"

#include <fstream>
#include <gmock/gmock.h>
#include <sstream>

using namespace plimsoll;
using namespace plimsoll::planner;
using plimsoll::planner::test::Program;
using plimsoll::planner::test::randomProgram;
using testing::HasSubstr;

namespace {

Problem parsed(std::string_view text) {
  Result<Problem> problem = parseProblem(text);
  EXPECT_TRUE(problem) << problem.status().message();
  return problem ? *problem : Problem{};
}

std::string complaint(std::string_view text) {
  Result<Problem> problem = parseProblem(text);
  EXPECT_FALSE(problem) << text;
  EXPECT_EQ(problem.status().code(), ExitCode::BadInput);
  return problem.status().message();
}

TEST(ProblemText, WritesEveryField) {
  Program program;
  program.alignment = 64;
  StorageId w = program.addStorage("w", 4096, StorageClass::Parameter, "fc.weight");
  StorageId x = program.input("x", 64), y = program.value("y", 64), z = program.value("z", 64);
  Step &step = program.step({w, x}, {y});
  step.name = "matmul \"a\\b\"";
  step.inPlace = {{x, y}};
  step.workspaceBytes = 512;
  step.costSeconds = 1.5e-6;
  program.steps.push_back({"add", {{w, AccessMode::ReadWrite}, {z, AccessMode::Write}}, {}, 0, 0});
  program.outputs = {y, z};
  std::string text = writeProblem(program);
  EXPECT_EQ(text, "plimsoll-problem 1\n"
                  "alignment 64\n"
                  "storage \"w\" bytes 4096 class parameter persistent source \"fc.weight\"\n"
                  "storage \"x\" bytes 64 class input\n"
                  "storage \"y\" bytes 64 class activation\n"
                  "storage \"z\" bytes 64 class activation\n"
                  "step \"matmul \\\"a\\\\b\\\"\" read %0 read %1 write %2 inplace %1 %2 workspace 512 cost 1.5e-06\n"
                  "step \"add\" readwrite %0 write %3\n"
                  "input %1\n"
                  "output %2\n"
                  "output %3\n");
  EXPECT_EQ(writeProblem(parsed(text)), text);
}

TEST(ProblemText, TransfersRoundTrip) {
  const std::string text = "plimsoll-problem 1\n"
                           "alignment 64\n"
                           "storage \"m\" bytes 64 class optimizer_state persistent tier disk source \"exp_avg\"\n"
                           "storage \"m.in2\" bytes 64 class workspace\n"
                           "storage \"y.host\" bytes 8 class activation tier host\n"
                           "step \"m.in2\" copy read %0 write %1 cost 1.5e-06\n"
                           "step \"m.in2.wait\" wait 0 read %0 read %1\n";
  Problem problem = parsed(text);
  EXPECT_EQ(problem.storages[0].tier, Tier::Disk);
  EXPECT_EQ(problem.storages[1].tier, Tier::Device);
  EXPECT_EQ(problem.storages[2].tier, Tier::Host);
  EXPECT_EQ(problem.steps[0].kind, StepKind::Copy);
  EXPECT_EQ(problem.steps[1].kind, StepKind::Wait);
  EXPECT_EQ(problem.steps[1].waitsFor, 0u);
  EXPECT_EQ(writeProblem(problem), text);
}

TEST(ProblemText, RandomProblemsRoundTrip) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    Program program = randomProgram(seed, 30);
    program.steps[0].costSeconds = 0.1 + seed;
    std::string text = writeProblem(program);
    EXPECT_EQ(writeProblem(parsed(text)), text);
  }
}

TEST(ProblemText, AwkwardNamesRoundTrip) {
  Program program;
  program.value(std::string("tab\there\nline\rret\x01\x7f \"quote\" back\\slash # no comment \xc3\xa9"), 1);
  EXPECT_EQ(parsed(writeProblem(program)).storages[0].name, program.storages[0].name);
}

TEST(ProblemText, CommentsAndBlankLinesAreSkipped) {
  Problem problem = parsed("# a problem\n\nplimsoll-problem 1 # version\r\n"
                           "  storage \"x\"  class input bytes 4 # staged\n\tinput %0");
  EXPECT_EQ(writeProblem(problem), "plimsoll-problem 1\nalignment 256\nstorage \"x\" bytes 4 class input\ninput %0\n");
}

TEST(ProblemText, RecordedProblemOnDiskRoundTrips) {
  std::ifstream file(std::string(PLIMSOLL_SOURCE_DIR) + "/test/unit/Planner/data/two-layer-step.problem");
  ASSERT_TRUE(file);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(writeProblem(parsed(text.str())), text.str());
}

TEST(ProblemText, NamesTheLineOfEveryError) {
  const std::string head = "plimsoll-problem 1\n";
  EXPECT_EQ(complaint(""), "the problem text is empty, expected 'plimsoll-problem 1'");
  EXPECT_EQ(complaint("id,lower\n"), "line 1: 'id,lower' is no problem text, expected 'plimsoll-problem 1'");
  EXPECT_EQ(complaint("plimsoll-problem 2\n"), "line 1: version 2 of the problem text, expected 1");
  EXPECT_EQ(complaint("plimsoll-problem one\n"), "line 1: 'one' is not a version");
  EXPECT_EQ(complaint("plimsoll-problem 1 x\n"), "line 1: unexpected 'x' at the end of the line");
  EXPECT_EQ(complaint(head + "tensor \"x\"\n"),
            "line 2: unknown line 'tensor', expected alignment, storage, step, input or output");
  EXPECT_EQ(complaint(head + "alignment big\n"), "line 2: 'big' is not a number of bytes");
  EXPECT_EQ(complaint(head + "alignment 64 64\n"), "line 2: unexpected '64' at the end of the line");
  EXPECT_EQ(complaint(head + "storage x\n"), "line 2: expected a quoted string at 'x'");
  EXPECT_EQ(complaint(head + "storage \"x\n"), "line 2: a quoted string does not end, expected '\"'");
  EXPECT_EQ(complaint(head + "storage \"\\q\"\n"),
            "line 2: unknown escape '\\q', expected \\\" \\\\ \\n \\t \\r or \\xHH");
  EXPECT_EQ(complaint(head + "storage \"\\x4\"\n"),
            "line 2: unknown escape '\\x', expected \\\" \\\\ \\n \\t \\r or \\xHH");
  EXPECT_EQ(complaint(head + "storage \"x\" bytes -1\n"), "line 2: '-1' is not a number of bytes");
  EXPECT_EQ(complaint(head + "storage \"x\" bytes 99999999999999999999\n"),
            "line 2: '99999999999999999999' is not a number of bytes");
  EXPECT_EQ(complaint(head + "storage \"x\" bytes 4\n"), "line 2: storage 'x' has no class");
  EXPECT_EQ(complaint(head + "storage \"x\" class input\n"), "line 2: storage 'x' has no bytes");
  EXPECT_EQ(complaint(head + "storage \"x\" color red\n"),
            "line 2: unknown clause 'color', expected bytes, class, persistent, tier or source");
  EXPECT_THAT(complaint(head + "\n\nstorage \"x\" class weights\n"),
              HasSubstr("line 4: unknown class 'weights', expected one of: parameter gradient optimizer_state"));
  EXPECT_EQ(complaint(head + "step \"s\" read 3\n"), "line 2: '3' is not a storage, expected %number");
  EXPECT_EQ(complaint(head + "step \"s\" read %x\n"), "line 2: '%x' is not a storage, expected %number");
  EXPECT_EQ(complaint(head + "step \"s\" inplace %1\n"), "line 2: '' is not a storage, expected %number");
  EXPECT_EQ(complaint(head + "step \"s\" cost fast\n"), "line 2: 'fast' is not a number of seconds");
  EXPECT_EQ(complaint(head + "step \"s\" touch %1\n"),
            "line 2: unknown clause 'touch', expected read, write, readwrite, inplace, workspace, cost, copy or wait");
  EXPECT_EQ(complaint(head + "input\n"), "line 2: '' is not a storage, expected %number");
}

// Every prefix and every single-byte change is either read or refused, never a crash.
TEST(ProblemText, DamagedTextNeverCrashes) {
  std::string text = writeProblem(randomProgram(3, 6));
  for (size_t length = 0; length < text.size(); ++length)
    if (Result<Problem> problem = parseProblem(std::string_view(text).substr(0, length)))
      (void)problem->check();
  for (size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x15);
    if (Result<Problem> problem = parseProblem(damaged))
      (void)problem->check();
  }
}

TEST(ProblemText, RefusesMalformedTransfers) {
  const std::string head = "plimsoll-problem 1\n";
  EXPECT_EQ(complaint(head + "storage \"x\" bytes 4 class input tier tape"),
            "line 2: unknown tier 'tape', expected device, host or disk");
  EXPECT_EQ(complaint(head + "step \"s\" wait soon"), "line 2: 'soon' is not the number of a step");
  EXPECT_EQ(complaint(head + "step \"s\" copy wait 3"), "line 2: a step is either one copy or one wait");
}

} // namespace
