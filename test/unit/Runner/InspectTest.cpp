// The inspector's analysis and reports on two artifacts whose numbers are known.
#include "StepArtifact.h"
#include "TestSupport.h"
#include "runtime/Artifact/Reader.h"
#include "test/unit/Runtime/TinyArtifact.h"
#include "tools/plimsoll-inspect/Reports.h"

#include <nlohmann/json.hpp>
#include <numeric>

using namespace plimsoll;
using namespace plimsoll::inspect;
using artifact::BufferClass;

namespace {

class InspectTest : public testing::Test {
protected:
  artifact::ArtifactT tiny = test::tinyArtifact();
  const artifact::SealedPlanT &plan = *tiny.plans[0];

  ReportOptions options() {
    ReportOptions report;
    report.path = "tiny.plim";
    for (const auto &entry : plan.entries)
      report.entries.push_back(entry.get());
    return report;
  }
};

// Device bytes by hand: persistent 4 x 16; x 16 at 0; lr 4 always; h 16 at 0..1; t 16 at 1..2; t2 16 at 2..9 in t's
// place (command 2 counts the pair once); loss 4 at 8..9; scratch 128 at 8. kept lies on the host.
TEST_F(InspectTest, liveBytesCountInPlacePairsOnce) {
  EXPECT_EQ(liveBytes(plan, *plan.entries[0]), (std::vector<uint64_t>{100, 100, 84, 84, 84, 84, 84, 84, 216, 88}));
}

TEST_F(InspectTest, classesAddUpToTheLiveBytes) {
  for (const auto &entry : plan.entries) {
    EntryAnalysis analysis = analyse(plan, *entry);
    EXPECT_EQ(std::accumulate(analysis.classesAtPeak.begin(), analysis.classesAtPeak.end(), uint64_t(0)),
              analysis.liveBytesAtPeak);
  }
  EntryAnalysis analysis = analyse(plan, *plan.entries[0]);
  EXPECT_EQ(analysis.peakCommand, 8u);
  EXPECT_EQ(analysis.peakLabel, "loss");
  EXPECT_EQ(analysis.classesAtPeak[static_cast<size_t>(BufferClass::Workspace)], 128u);
  EXPECT_EQ(analysis.classesAtPeak[static_cast<size_t>(BufferClass::Parameter)], 16u);
  EXPECT_EQ(analysis.liveAtPeak[0].name, "scratch");
  EXPECT_EQ(analysis.launches, 3u);
  EXPECT_EQ(analysis.libraryCalls, 2u);
  EXPECT_EQ(analysis.copies, 1u);
  EXPECT_EQ(analysis.events, 4u);
}

// At the command of an in-place pair both buffers are live in the same bytes.
TEST_F(InspectTest, sharedBytesAreCountedOnceByClass) {
  artifact::EntryT &entry = *tiny.plans[0]->entries[0];
  entry.buffers[6]->bytes = 1; // scratch no longer makes the peak
  entry.buffers[0]->bytes = 0; // nor do x
  entry.buffers[2]->bytes = 0; // and h
  std::vector<uint64_t> live = liveBytes(plan, entry);
  EXPECT_EQ(live[2], 84u);
  EXPECT_EQ(live[1], 84u);
}

TEST_F(InspectTest, statedPeaksAreChecked) {
  for (const auto &entry : plan.entries)
    EXPECT_TRUE(checkStatedPeak(plan, *entry)) << entry->name;
  tiny.plans[0]->entries[0]->live_bytes_at_peak = 215;
  EXPECT_FAILS(checkStatedPeak(plan, *plan.entries[0]), ExitCode::BadInput,
               "entry 'train_step' states 215 live bytes at its peak, its buffers have 216 to");
}

TEST_F(InspectTest, summaryNamesMemoryPeakAndSources) {
  tiny.plans[0]->entries[0]->buffers[6]->source = "/layer/ReduceSum\x1b[31m";
  std::string text = textSummary(tiny, options());
  EXPECT_THAT(text, testing::HasSubstr("promised memory"));
  EXPECT_THAT(text, testing::HasSubstr("training memory"));
  EXPECT_THAT(text,
              testing::HasSubstr("entry train_step: 10 commands (3 kernels, 2 library calls, 1 copies, 4 events)"));
  EXPECT_THAT(text, testing::HasSubstr("704 bytes of arena, 216 live at command 8 'loss'"));
  EXPECT_THAT(text, testing::HasSubstr("workspace                          128 bytes   59.3 %"));
  EXPECT_THAT(text, testing::HasSubstr("scratch  from /layer/ReduceSum"));
  EXPECT_THAT(text,
              testing::Not(testing::HasSubstr("\x1b"))); // nothing in a file reaches the terminal as a control code
}

TEST_F(InspectTest, jsonHasTheDocumentedKeys) {
  auto json = nlohmann::json::parse(jsonSummary(tiny, options()));
  EXPECT_EQ(json["schema"], 1);
  for (const char *key : {"artifact", "format_version", "target", "provenance", "weights_file", "plan", "plans",
                          "budget_bytes", "arenas", "memory", "variables", "entries"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(json["entries"][0]["classes_at_peak"]["workspace"], 128);
  EXPECT_EQ(json["entries"][0]["live_at_peak"].size(), 8u);
  EXPECT_EQ(json["entries"][0]["live_at_peak"][0]["name"], "scratch");
  EXPECT_EQ(json["entries"][0]["inputs"][1]["name"], "lr");
  EXPECT_EQ(json["variables"][0]["aliases"][0], "tied.w");
  EXPECT_EQ(json["variables"][1]["kind"], "optimizer_state");
  EXPECT_EQ(json["memory"]["arena_bytes"], 1088);
  EXPECT_EQ(jsonSummary(tiny, options()), jsonSummary(tiny, options()));
}

TEST_F(InspectTest, commandsAreListedWithOperands) {
  std::string text = commandListing(tiny, options());
  EXPECT_THAT(text, testing::HasSubstr("kernel mul  x:f32[4]  w:f32[4]  =h:f32[4]  'mul'"));
  EXPECT_THAT(text, testing::HasSubstr("call sum  kept:f32[4]  =loss:f32[]  ~scratch:u8[128]  'loss'"));
  EXPECT_THAT(text, testing::HasSubstr("kernel sgd  +=w:f32[4]  +=m:f32[4]"));
  EXPECT_THAT(text, testing::HasSubstr("record event 0"));
  EXPECT_THAT(text, testing::HasSubstr("wait for event 1"));
}

// 16 rows of 64 bytes, one column a command: every buffer starts on its own row.
TEST_F(InspectTest, arenaMapShowsClassesWhereTheyLie) {
  std::string text = arenaMap(plan, *plan.entries[0], {16, 96});
  std::istringstream lines(text);
  std::vector<std::string> rows;
  for (std::string line; std::getline(lines, line);)
    rows.push_back(line.size() > 18 ? line.substr(18) : line);
  EXPECT_EQ(rows[1 + 0], "PPPPPPPPPP");  // w
  EXPECT_EQ(rows[1 + 1], "OOOOOOOOOO");  // m
  EXPECT_EQ(rows[1 + 4], "I.........");  // x
  EXPECT_EQ(rows[1 + 6], "AA........");  // h
  EXPECT_EQ(rows[1 + 7], ".AAAAAAAAA");  // t, then t2
  EXPECT_EQ(rows[1 + 9], "........W.");  // scratch
  EXPECT_EQ(rows[1 + 12], ".........."); // free
}

TEST(StepArtifact, satisfiesTheReaderAndItsStatedPeaks) {
  artifact::ArtifactT step = test::stepArtifact();
  ASSERT_OK(verifyArtifact(step));
  for (const auto &entry : step.plans[0]->entries)
    ASSERT_OK(checkStatedPeak(*step.plans[0], *entry));
}

} // namespace
