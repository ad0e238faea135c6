// Checkpoints: round trip, every mismatch, atomicity, pruning, weights and exports.
#include "FakeSession.h"
#include "TestSupport.h"
#include "runtime/Artifact/Files.h"
#include "runtime/Checkpoint/CheckpointFolder.h"
#include "runtime/Core/SafeTensors.h"

#include <csignal>
#include <sys/resource.h>
#include <sys/wait.h>

using namespace plimsoll;
using namespace plimsoll::runtime;

namespace {

class CheckpointTest : public testing::Test {
protected:
  TempFolder folder;
  FakeSession session;
  CheckpointInfo info{5, 7, true, 1, 3, 20, "", ""};

  void SetUp() override { ASSERT_OK(session.initialize()); }
  std::string saved(const std::string &name = "c.safetensors") {
    Status status = saveCheckpoint(folder.path(name), session, info);
    EXPECT_TRUE(status) << status.message();
    return folder.path(name);
  }
  /// Rewrites the checkpoint with other metadata.
  std::string withNotes(const std::string &notes) {
    auto file = SafeTensors::open(saved());
    EXPECT_TRUE(writeSafeTensors(folder.path("notes"), file->tensors(), {{"plimsoll.checkpoint", notes}}));
    return folder.path("notes");
  }
};

TEST_F(CheckpointTest, stateAndCursorRoundTrip) {
  auto before = session.snapshot();
  std::string path = saved();
  FakeSession other;
  ASSERT_OK(other.initialize());
  std::fill(other.variable(0).begin(), other.variable(0).end(), std::byte{1});
  std::fill(other.variable(4).begin(), other.variable(4).end(), std::byte{1}); // not saved: gets its initial value
  Result<CheckpointInfo> loaded = loadCheckpoint(path, other);
  ASSERT_OK(loaded);
  EXPECT_EQ(other.snapshot(), before);
  EXPECT_EQ(loaded->step, 5u);
  EXPECT_EQ(loaded->seed, 7u);
  EXPECT_TRUE(loaded->shuffle);
  EXPECT_EQ(loaded->epoch, 1u);
  EXPECT_EQ(loaded->position, 3u);
  EXPECT_EQ(loaded->samples, 20u);
  EXPECT_EQ(loaded->modelHash, "aaaa");
}

TEST_F(CheckpointTest, sameStateGivesSameBytes) {
  saved("a");
  saved("b");
  EXPECT_EQ(folder.read("a"), folder.read("b"));
}

TEST_F(CheckpointTest, tensorMismatchesAreAllListed) {
  std::string path = saved();
  FakeSession other({.weightShape = {2, 2}, .extraVariable = true});
  auto before = other.snapshot();
  Result<CheckpointInfo> loaded = loadCheckpoint(path, other);
  EXPECT_FAILS(loaded, ExitCode::BadInput, "'w' is f32 [4], expected f32 [2, 2]; 'extra' is missing, expected f32 [1]");
  EXPECT_EQ(other.snapshot(), before); // nothing was written
}

TEST_F(CheckpointTest, unknownTensorsAreListed) {
  FakeSession larger({.extraVariable = true});
  ASSERT_OK(saveCheckpoint(folder.path("l"), larger, info));
  EXPECT_FAILS(loadCheckpoint(folder.path("l"), session), ExitCode::BadInput,
               "'extra' is not a variable of the artifact");
}

TEST_F(CheckpointTest, anotherModelIsAVersionMismatch) {
  std::string path = saved();
  FakeSession other({.modelHash = "cccc", .extraVariable = true});
  EXPECT_FAILS(loadCheckpoint(path, other), ExitCode::VersionMismatch,
               "its model hash is 'aaaa', the artifact's is cccc; 'extra' is missing");
}

TEST_F(CheckpointTest, damagedNotesAreRefused) {
  EXPECT_FAILS(loadCheckpoint(withNotes("no json"), session), ExitCode::BadInput, "is not a JSON object");
  EXPECT_FAILS(loadCheckpoint(withNotes("{}"), session), ExitCode::BadInput,
               "format_version is not a whole number >= 0");
  EXPECT_FAILS(loadCheckpoint(withNotes("{\"format_version\":2}"), session), ExitCode::VersionMismatch,
               "checkpoint format version 2, this program reads 1");
  EXPECT_FAILS(loadCheckpoint(withNotes("{\"format_version\":1,\"step\":-1}"), session), ExitCode::BadInput,
               "checkpoint field step is not a whole number >= 0");
  EXPECT_FAILS(loadCheckpoint(withNotes("{\"format_version\":1,\"step\":1,\"seed\":1,\"shuffle\":1}"), session),
               ExitCode::BadInput, "checkpoint field shuffle is not true or false");
  std::string notes = checkpointNotes(info);
  notes.replace(notes.find("\"model_hash\":\"\""), 15, "\"model_hash\":1");
  EXPECT_FAILS(loadCheckpoint(withNotes(notes), session), ExitCode::BadInput,
               "checkpoint field model_hash is not text");
}

TEST_F(CheckpointTest, plainWeightsAndDamagedFilesAreNoCheckpoints) {
  ASSERT_OK(exportWeights(folder.path("w"), session));
  EXPECT_FAILS(loadCheckpoint(folder.path("w"), session), ExitCode::BadInput,
               "is a safetensors file but no checkpoint");
  std::string whole = (saved(), folder.read("c.safetensors"));
  EXPECT_FAILS(loadCheckpoint(folder.write("cut", whole.substr(0, whole.size() - 3)), session), ExitCode::BadInput,
               "cut");
  EXPECT_FAILS(loadCheckpoint(folder.path("none"), session), ExitCode::BadInput, "none");
}

TEST_F(CheckpointTest, exportsHoldWeightsOnceAndLoadAgain) {
  ASSERT_OK(exportWeights(folder.path("w"), session));
  auto file = SafeTensors::open(folder.path("w"));
  ASSERT_OK(file);
  std::vector<std::string> names;
  for (const NamedTensor &tensor : file->tensors())
    names.push_back(tensor.name);
  EXPECT_EQ(names, (std::vector<std::string>{"bn.mean", "w"}));
  FakeSession other;
  ASSERT_OK(loadWeights(folder.path("w"), other));
  EXPECT_EQ(other.snapshot()[0], session.snapshot()[0]);
  ASSERT_OK(loadWeights(saved(), other)); // a checkpoint serves as weights, too
}

TEST_F(CheckpointTest, weightsMayUseAnAlias) {
  std::vector<float> w = {1, 2, 3, 4};
  std::vector<NamedTensor> tensors = {{"tied", artifact::DType::F32, {4}, std::as_bytes(std::span(w))},
                                      {"bn.mean", artifact::DType::F32, {4}, std::as_bytes(std::span(w))}};
  ASSERT_OK(writeSafeTensors(folder.path("alias"), tensors));
  ASSERT_OK(loadWeights(folder.path("alias"), session));
  EXPECT_EQ(reinterpret_cast<float *>(session.variable(0).data())[3], 4.0f);
  tensors.pop_back();
  ASSERT_OK(writeSafeTensors(folder.path("less"), tensors));
  EXPECT_FAILS(loadWeights(folder.path("less"), session), ExitCode::BadInput,
               "does not hold this model's weights: 'bn.mean' is missing, expected f32 [4]");
}

TEST_F(CheckpointTest, namesFollowThePattern) {
  EXPECT_EQ(checkpointFileName(100), "step-00000100.safetensors");
  EXPECT_EQ(checkpointStep("step-00000100.safetensors"), 100u);
  EXPECT_EQ(checkpointStep(checkpointFileName(123456789012)), 123456789012u);
  for (const char *name : {"step-100.safetensors", "step-0000010x.safetensors", "step-00000100.safetensors.tmp1",
                           "../step-00000100.safetensors", "step-00000000100.safetensors", "latest", ""})
    EXPECT_FALSE(checkpointStep(name)) << name;
}

TEST_F(CheckpointTest, onlyTheNewestAreKept) {
  std::filesystem::create_directory(folder.path("run"));
  folder.write("run/step-notes.safetensors", "mine");
  CheckpointFolder run(folder.path("run"), 2);
  for (uint64_t step : {1, 2, 3, 4}) {
    info.step = step;
    ASSERT_OK(run.save(session, info));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path("run/step-00000002.safetensors")));
  EXPECT_TRUE(std::filesystem::exists(folder.path("run/step-00000003.safetensors")));
  EXPECT_TRUE(std::filesystem::exists(folder.path("run/step-notes.safetensors")));
  EXPECT_EQ(*run.resolve("latest"), folder.path("run/step-00000004.safetensors"));
  EXPECT_EQ(*CheckpointFolder("", 0).resolve(folder.path("run")), folder.path("run/step-00000004.safetensors"));
  EXPECT_EQ(*run.resolve("some/file"), "some/file");
}

TEST_F(CheckpointTest, aBadPointerIsExplained) {
  CheckpointFolder run(folder.path(""), 0);
  EXPECT_FAILS(run.resolve("latest"), ExitCode::BadInput, "has no checkpoint to resume (no file latest)");
  folder.write("latest", "../../etc/passwd\n");
  EXPECT_FAILS(run.resolve("latest"), ExitCode::BadInput, "latest holds '../../etc/passwd', expected a name like");
}

// A process killed while writing leaves its temporary file; the old checkpoint stays the latest and loads.
TEST_F(CheckpointTest, anInterruptedWriteKeepsTheOldCheckpoint) {
  std::filesystem::create_directory(folder.path("run"));
  CheckpointFolder run(folder.path("run"), 2);
  ASSERT_OK(run.save(session, info));
  pid_t child = fork();
  if (child == 0) {
    auto file = AtomicFile::create(folder.path("run/step-00000006.safetensors"));
    (void)file->write("half a checkpoint");
    kill(getpid(), SIGKILL);
  }
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(std::filesystem::exists(folder.path("run/step-00000006.safetensors")));
  Result<std::string> latest = run.resolve("latest");
  ASSERT_OK(latest);
  EXPECT_EQ(*latest, folder.path("run/step-00000005.safetensors"));
  ASSERT_OK(loadCheckpoint(*latest, session));
}

// A full disk, made with a file-size limit: the error is clear, and the old checkpoint is untouched.
TEST_F(CheckpointTest, aFullDiskKeepsTheOldCheckpoint) {
  std::filesystem::create_directory(folder.path("run"));
  CheckpointFolder run(folder.path("run"), 2);
  ASSERT_OK(run.save(session, info));
  std::string before = folder.read("run/step-00000005.safetensors");
  signal(SIGXFSZ, SIG_IGN);
  rlimit old{}, tight{};
  getrlimit(RLIMIT_FSIZE, &old);
  tight = old;
  tight.rlim_cur = 100;
  setrlimit(RLIMIT_FSIZE, &tight);
  Result<std::string> again = run.save(session, info);
  info.step = 6;
  Result<std::string> next = run.save(session, info);
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_FAILS(again, ExitCode::BadInput, "step-00000005.safetensors");
  EXPECT_FAILS(next, ExitCode::BadInput, "step-00000006.safetensors");
  EXPECT_EQ(folder.read("run/step-00000005.safetensors"), before);
  EXPECT_EQ(*run.resolve("latest"), folder.path("run/step-00000005.safetensors"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path("run")), {}), 2); // no temporary file stays
}

} // namespace
