// The judge must catch what it promises: a valid plan is corrupted in one way per rule, and the rule must be named.
#include "plimsoll/Planner/Validate.h"
#include "Programs.h"

#include <gmock/gmock.h>
#include <random>

using namespace plimsoll;
using namespace plimsoll::planner;
using plimsoll::planner::test::Program;
using plimsoll::planner::test::randomProgram;
using testing::HasSubstr;

namespace {

/// w, s persistent; x staged; a = f(w, x); b = g(a) in place of a; joined gets b, then x; loss = h(joined); w updated.
struct Fixture {
  Program program;
  StorageId w, s, x, a, b, joined, loss;
  Solution plan;

  Fixture() {
    program.alignment = 16;
    w = program.parameter("w", 64);
    s = program.addStorage("s", 16, StorageClass::OptimizerState);
    x = program.input("x", 32);
    a = program.value("a", 48), b = program.value("b", 48);
    joined = program.value("joined", 80), loss = program.value("loss", 4);
    program.step({w, x}, {a}).workspaceBytes = 32;
    program.step({a}, {b}).inPlace = {{a, b}};
    program.step({b}, {joined});
    program.step({x}, {joined});
    program.step({joined}, {loss});
    program.steps.push_back(
        {"update", {{loss, AccessMode::Read}, {w, AccessMode::ReadWrite}, {s, AccessMode::ReadWrite}}, {}, 0, 0});
    program.outputs = {loss};
    Result<Solution> made = planner::plan(program);
    EXPECT_TRUE(made) << made.status().message();
    plan = *made;
    EXPECT_EQ(plan.inPlace.size(), 1u);
  }

  ValidationReport judged() const { return validate(program, plan); }
  std::string text() const { return judged().status().message(); }
};

TEST(Validate, AcceptsTheUntouchedPlan) {
  Fixture f;
  EXPECT_TRUE(f.judged().isOk()) << f.text();
  EXPECT_TRUE(f.judged().status().isOk());
}

TEST(Validate, V0MalformedProblem) {
  Fixture f;
  f.program.alignment = 3;
  EXPECT_TRUE(f.judged().has("V0"));
  EXPECT_THAT(f.text(), HasSubstr("V0: the planning problem breaks 1 rule"));
}

TEST(Validate, V1EveryStepOnce) {
  Fixture f;
  f.plan.order[3] = 2;
  EXPECT_THAT(f.text(), HasSubstr("V1: step 2 's2' runs 2 times, expected once"));
  EXPECT_THAT(f.text(), HasSubstr("V1: step 3 's3' runs 0 times, expected once"));
  f.plan.order[3] = 77;
  EXPECT_THAT(f.text(), HasSubstr("V1: the order names step 77 of 6"));
  EXPECT_EQ(f.judged().status(ExitCode::BadInput).code(), ExitCode::BadInput);
}

TEST(Validate, V2OffsetsOfWhatIsUsed) {
  Fixture f;
  f.plan.offsets[f.a] = noOffset;
  f.plan.workspaceOffsets[0] = noOffset;
  f.plan.workspaceOffsets[1] = 0;
  EXPECT_THAT(f.text(), HasSubstr("V2: storage 'a' is used but has no offset"));
  EXPECT_THAT(f.text(), HasSubstr("V2: the workspace of step 0 's0' has no offset"));
  EXPECT_THAT(f.text(), HasSubstr("V2: the workspace of step 1 's1' is empty but has an offset"));
  f = Fixture();
  f.plan.offsets.pop_back();
  EXPECT_THAT(f.text(), HasSubstr("V2: 6 offsets for 7 storages"));
  f = Fixture();
  f.plan.workspaceOffsets.clear();
  EXPECT_THAT(f.text(), HasSubstr("V2: 0 workspace offsets for 6 steps"));
  f = Fixture();
  f.program.value("unused", 8);
  f.plan.offsets.push_back(0);
  EXPECT_THAT(f.text(), HasSubstr("V2: storage 'unused' is unused but has an offset"));
}

TEST(Validate, V3Alignment) {
  Fixture f;
  f.plan.offsets[f.loss] += 4;
  EXPECT_THAT(f.text(), HasSubstr("V3: storage 'loss' at "));
  EXPECT_THAT(f.text(), HasSubstr(" is not aligned to 16"));
  f = Fixture();
  f.plan.arenaBytes += 1;
  EXPECT_THAT(f.text(), HasSubstr("bytes is not a multiple of 16"));
}

TEST(Validate, V4InsideTheArena) {
  Fixture f;
  f.plan.offsets[f.joined] = f.plan.arenaBytes;
  EXPECT_THAT(f.text(), HasSubstr("V4: storage 'joined' of 80 bytes at "));
  f = Fixture();
  f.plan.workspaceOffsets[0] = noOffset - 15;
  EXPECT_THAT(f.text(), HasSubstr("V4: the workspace of step 0 's0' of 32 bytes at 18,446,744,073,709,551,600 leaves"));
  f = Fixture();
  f.plan.arenaBytes = 0;
  EXPECT_TRUE(f.judged().has("V4"));
}

TEST(Validate, V5ReadsFindTheirContent) {
  Fixture f;
  std::swap(f.plan.order[1], f.plan.order[2]); // joined reads b before it is made from a
  EXPECT_THAT(f.text(), HasSubstr("V5: step 2 's2' reads storage 'b', but its bytes hold storage 'a'"));
}

TEST(Validate, V6NothingNeededIsCovered) {
  Fixture f;
  f.plan.arenaBytes += 128;
  f.plan.offsets[f.joined] = f.plan.offsets[f.x]; // written while step 3 still needs x
  EXPECT_THAT(f.text(),
              HasSubstr("V6: step 2 's2' writing storage 'joined' covers storage 'x', which is still needed"));
}

TEST(Validate, V7NoOverlapInsideAStep) {
  Fixture f;
  f.plan.workspaceOffsets[0] = f.plan.offsets[f.a];
  EXPECT_THAT(f.text(), HasSubstr("V7: step 0 's0' touches storage 'a' and a workspace in overlapping bytes"));
  f = Fixture();
  f.plan.inPlace.clear(); // b lies on a without the right to
  EXPECT_THAT(f.text(), HasSubstr("V7: step 1 's1' touches storage 'a' and storage 'b' in overlapping bytes"));
  f = Fixture();
  f.plan.arenaBytes += 64;
  f.plan.offsets[f.b] += 16; // a pair must be exact, not shifted
  EXPECT_TRUE(f.judged().has("V7"));
}

TEST(Validate, V8PairsAreLegal) {
  Fixture f;
  f.plan.inPlace[0].step = 2;
  EXPECT_THAT(f.text(),
              HasSubstr("V8: storage 'b' takes over storage 'a' at step 2 's2', but the step does not offer it"));
  f = Fixture();
  f.plan.inPlace.push_back(f.plan.inPlace[0]);
  EXPECT_THAT(f.text(), HasSubstr("but one of them is already in another pair"));
  f = Fixture();
  f.plan.inPlace[0].operand = 99;
  EXPECT_THAT(f.text(), HasSubstr("V8: an in-place pair names an unknown step or storage"));
  f = Fixture();
  f.plan.arenaBytes += 64;
  f.plan.offsets[f.b] = f.plan.arenaBytes - 48;
  EXPECT_THAT(f.text(), HasSubstr("but they lie at different offsets"));
  f = Fixture();
  f.program.storages[f.a].persistent = true;
  EXPECT_THAT(f.text(), HasSubstr("but the operand is persistent"));
  f = Fixture();
  f.program.outputs.push_back(f.a);
  EXPECT_THAT(f.text(), HasSubstr("but the operand is an output"));
  f = Fixture();
  f.program.steps[4].accesses.push_back({f.a, AccessMode::Read});
  EXPECT_THAT(f.text(), HasSubstr("but a later step still needs the operand"));
}

TEST(Validate, V9PersistentBytesAreUntouched) {
  Fixture f;
  f.plan.workspaceOffsets[0] = f.plan.offsets[f.s]; // s is not used by step 0, only owned between runs
  EXPECT_THAT(f.text(), HasSubstr("V9: the workspace of step 0 's0' covers persistent storage 's'"));
}

TEST(Validate, V10OutputsAreIntactAtTheEnd) {
  Fixture f;
  StorageId late = f.program.value("late", 4);
  f.program.step({f.w}, {late});
  f.plan.order.push_back(6);
  f.plan.offsets.push_back(f.plan.offsets[f.loss]);
  f.plan.workspaceOffsets.push_back(noOffset);
  EXPECT_THAT(f.text(),
              HasSubstr("V10: at the end storage 'loss' should be intact, but its bytes hold storage 'late'"));
}

TEST(Validate, V11StagedContentsAreDisjoint) {
  Fixture f;
  f.plan.offsets[f.x] = f.plan.offsets[f.w];
  EXPECT_THAT(f.text(), HasSubstr("V11: storage 'x' and storage 'w' overlap before the first step"));
}

TEST(Validate, V12PiecesFindEarlierPieces) {
  Fixture f;
  f.program.steps[3].workspaceBytes = 16; // between the pieces: scratch of the step that adds the second
  f.plan.workspaceOffsets[3] = f.plan.offsets[f.joined];
  EXPECT_TRUE(f.judged().has("V7"));
  f = Fixture();
  StorageId other = f.program.value("other", 16);
  f.program.steps.insert(f.program.steps.begin() + 3, {"between", {{other, AccessMode::Write}}, {}, 0, 0});
  f.plan.order.push_back(6);
  f.plan.offsets.push_back(f.plan.offsets[f.joined]);
  f.plan.workspaceOffsets.push_back(noOffset);
  EXPECT_THAT(f.text(), HasSubstr("V12: step 4 's3' adds to storage 'joined', but its bytes hold storage 'other'"));
}

/// x is staged; a = f(x) leaves for the host beside b = g(); c = h(b), then a is back for d = i(a, c).
struct TransferFixture {
  Program program;
  StorageId x, a, b, c, d, host, back;
  Solution plan;
  static constexpr StepIndex outCopy = 1, outWait = 3, inCopy = 5, inWait = 7;

  TransferFixture() {
    x = program.input("x", 8);
    a = program.value("a", 8), b = program.value("b", 8), c = program.value("c", 8), d = program.value("d", 8);
    host = program.value("host", 8), back = program.value("back", 8);
    program.storages[host].tier = Tier::Host;
    program.step({x}, {a});
    program.step({a}, {host}).kind = StepKind::Copy;
    program.step({}, {b}); // runs beside the copy out
    waitFor(outCopy);
    program.step({b}, {c});
    program.step({host}, {back}).kind = StepKind::Copy;
    program.step({c}, {}).workspaceBytes = 8; // runs beside the copy in
    waitFor(inCopy);
    program.step({back, c}, {d});
    program.outputs = {d};
    Result<Solution> made = planner::plan(program);
    EXPECT_TRUE(made) << made.status().message();
    plan = *made;
  }

  void waitFor(StepIndex copy) {
    std::vector<Access> moved = program.steps[copy].accesses;
    Step &step = program.step({moved[0].storage, moved[1].storage}, {});
    step.kind = StepKind::Wait;
    step.waitsFor = copy;
  }

  std::string text() const { return validate(program, plan).status().message(); }
};

TEST(Validate, AcceptsTransfers) {
  TransferFixture f;
  EXPECT_EQ(f.text(), "");
  EXPECT_EQ(f.plan.arenaBytes, 24u);
  EXPECT_EQ(f.plan.tierBytes[1], 8u);
}

TEST(Validate, V3AndV4HoldOnEveryTier) {
  TransferFixture f;
  f.plan.tierBytes[1] = 7;
  EXPECT_THAT(f.text(), HasSubstr("V4: storage 'host' of 8 bytes at 0 leaves the arena of 7 bytes on the host"));
  f = TransferFixture();
  f.program.alignment = 16;
  EXPECT_THAT(f.text(), HasSubstr("V3: the arena of 8 bytes on the host is not a multiple of 16"));
}

// The bytes of another tier at the same offset are other bytes.
TEST(Validate, TiersDoNotOverlap) {
  TransferFixture f;
  EXPECT_EQ(f.plan.offsets[f.host], 0u);
  EXPECT_TRUE(validate(f.program, f.plan).isOk());
  f.program.storages[f.host].tier = Tier::Disk;
  f.plan.tierBytes = {0, 0, 8};
  EXPECT_EQ(f.text(), "");
}

TEST(Validate, V13ASourceIsNotCoveredWhileItMoves) {
  TransferFixture f;
  f.plan.offsets[f.b] = f.plan.offsets[f.a]; // the bug of torchtune#1867: reuse while the copy runs
  EXPECT_THAT(f.text(), HasSubstr("V13: step 2 's2' writing storage 'b' covers storage 'a', which a copy is still "
                                  "moving"));
}

TEST(Validate, V13ATargetIsNotCoveredWhileItMoves) {
  TransferFixture f;
  f.plan.workspaceOffsets[6] = f.plan.offsets[f.back];
  EXPECT_THAT(f.text(), HasSubstr("V13: the workspace of step 6 's6' covers storage 'back', which a copy is still "
                                  "moving"));
}

TEST(Validate, V13NamesAreWatchedToo) {
  TransferFixture f;
  f.program.steps[2].accesses.push_back({f.a, AccessMode::ReadWrite}); // changes what is moving
  EXPECT_THAT(f.text(), HasSubstr("V13: step 2 's2' writes storage 'a', from which a copy is still moving"));
  f = TransferFixture();
  f.program.steps[6].accesses.push_back({f.back, AccessMode::Read});
  EXPECT_THAT(f.text(), HasSubstr("V13: step 6 's6' reads storage 'back', into which a copy is still moving"));
  f = TransferFixture();
  f.program.steps[6].accesses.push_back({f.back, AccessMode::Write});
  EXPECT_THAT(f.text(), HasSubstr("V13: step 6 's6' writes storage 'back', into which a copy is still moving"));
}

TEST(Validate, V13AWaitFollowsItsCopy) {
  TransferFixture f;
  std::swap(f.plan.order[f.inCopy], f.plan.order[f.inWait]);
  EXPECT_THAT(f.text(), HasSubstr("V13: step 7 's7' runs before the copy it waits for"));
}

// Contents alone cannot tell these orders apart: w is intact before and after its update.
TEST(Validate, V14OrdersGiveEveryAccessTheSameContent) {
  Program program;
  StorageId w = program.parameter("w", 8), y = program.value("y", 8), z = program.value("z", 8);
  program.step({w}, {y});
  program.steps.push_back({"update", {{w, AccessMode::ReadWrite}}, {}, 0, 0});
  program.step({w}, {z});
  program.outputs = {y, z};
  Solution solution = *plan(program);
  EXPECT_TRUE(validate(program, solution).isOk());
  solution.order = {1, 0, 2};
  EXPECT_THAT(validate(program, solution).status().message(),
              HasSubstr("V14: step 0 's0' finds storage 'w' written 1 times, in the listed order 0 times"));
  program.steps.pop_back();
  program.outputs = {y};
  program.step({}, {z}); // does not touch w: may run anywhere
  solution.order = {0, 2, 1};
  EXPECT_TRUE(validate(program, solution).isOk()) << validate(program, solution).status().message();
}

TEST(Validate, ReportsEverythingAtOnce) {
  Fixture f;
  f.plan.arenaBytes += 1;
  f.plan.offsets[f.x] = f.plan.offsets[f.w];
  f.plan.inPlace[0].step = 2;
  ValidationReport report = f.judged();
  for (const char *rule : {"V3", "V7", "V8", "V11"})
    EXPECT_TRUE(report.has(rule)) << rule;
  EXPECT_THAT(f.text(), HasSubstr("the plan breaks " + std::to_string(report.violations.size()) + " rules\n"));
}

/// A slow second opinion: live intervals by definition, then every pair.
bool overlapsByDefinition(const Program &program, const Solution &plan) {
  struct Use {
    int64_t first, last;
    uint64_t begin, end;
  };
  auto pairTaken = [&](StorageId a, StorageId b) {
    for (const InPlacePair &pair : plan.inPlace)
      if ((pair.operand == a && pair.result == b) || (pair.operand == b && pair.result == a))
        return true;
    return false;
  };
  int64_t end = static_cast<int64_t>(program.steps.size());
  std::vector<Use> uses;
  for (const Storage &storage : program.storages) {
    Use use{end, -1, plan.offsets[storage.id], plan.offsets[storage.id] + storage.bytes};
    for (int64_t step = 0; step < end; ++step)
      for (const Access &access : program.steps[step].accesses)
        if (access.storage == storage.id)
          use.first = std::min(use.first, step), use.last = step;
    auto in = [&](const std::vector<StorageId> &ids) {
      return std::find(ids.begin(), ids.end(), storage.id) != ids.end();
    };
    if (in(program.inputs) || storage.persistent)
      use.first = -1; // staged before step 0
    if (in(program.outputs) || storage.persistent)
      use.last = end;
    uses.push_back(use);
  }
  for (StorageId a = 0; a < uses.size(); ++a)
    for (StorageId b = a + 1; b < uses.size(); ++b) {
      const Use &u = uses[a], &v = uses[b];
      bool live = u.first <= v.last && v.first <= u.last, bytes = u.begin < v.end && v.begin < u.end;
      bool emptyEither = u.begin == u.end || v.begin == v.end;
      if (live && bytes && !emptyEither && !(pairTaken(a, b) && u.begin == v.begin))
        return true;
    }
  return false;
}

// Moving one storage of a valid plan somewhere else is refused exactly when the definition says two live storages
// overlap.
TEST(ValidateProperty, AgreesWithTheDefinition) {
  unsigned refused = 0, accepted = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    Program program = randomProgram(seed, 20);
    for (Step &step : program.steps)
      step.workspaceBytes = 0; // the definition above knows no workspaces
    PlanOptions options;
    options.takeInPlace = seed % 2;
    Result<Solution> made = planner::plan(program, options);
    ASSERT_TRUE(made);
    std::mt19937 random(seed);
    StorageId moved = random() % static_cast<uint32_t>(program.storages.size());
    if (made->offsets[moved] == noOffset)
      continue;
    bool inPair = std::any_of(made->inPlace.begin(), made->inPlace.end(),
                              [&](const InPlacePair &p) { return p.operand == moved || p.result == moved; });
    uint64_t slots = (made->arenaBytes - program.storages[moved].bytes) / program.alignment + 1;
    uint64_t offset = random() % slots * program.alignment;
    if (inPair && offset != made->offsets[moved])
      continue; // V8 refuses every move of a taken pair
    made->offsets[moved] = offset;
    bool good = validate(program, *made).isOk();
    EXPECT_EQ(good, !overlapsByDefinition(program, *made))
        << "seed " << seed << validate(program, *made).status().message();
    ++(good ? accepted : refused);
  }
  EXPECT_GT(accepted, 20u);
  EXPECT_GT(refused, 20u);
}

} // namespace
