// Batches, epochs, cursors and the agreement between the sources of a run.
#include "runtime/Data/DataFeed.h"
#include "TestSupport.h"
#include "runtime/Core/SafeTensors.h"

#include <map>
#include <numeric>

using namespace plimsoll;
using namespace plimsoll::runtime;
using artifact::DType;

namespace {

class DataFeedTest : public testing::Test {
protected:
  TempFolder folder;
  std::vector<int64_t> ids, labels;

  std::string tokens(const std::string &name, uint16_t count) {
    std::vector<uint16_t> values(count);
    std::iota(values.begin(), values.end(), uint16_t(0));
    return folder.writeValues(name, values);
  }

  Result<DataFeed> open(const std::vector<std::string> &texts, const std::vector<PortInfo> &ports,
                        DataFeedOptions options) {
    auto specs = parseDataSpecs(texts);
    EXPECT_TRUE(specs) << specs.status().message();
    return DataFeed::open(*specs, ports, options);
  }

  /// ids and labels [2, 3] over one token file of `count` tokens.
  Result<DataFeed> languageFeed(uint16_t count, DataFeedOptions options) {
    std::string path = tokens("t.bin", count);
    return open({"ids=tokens(" + path + ",u16)", "labels=tokens(" + path + ",u16,shift=1)"},
                {{"ids", DType::I64, {2, 3}}, {"labels", DType::I64, {2, 3}}}, options);
  }

  Status next(DataFeed &feed) {
    ids.assign(6, -1);
    labels.assign(6, -1);
    std::span<std::byte> targets[] = {std::as_writable_bytes(std::span(ids)),
                                      std::as_writable_bytes(std::span(labels))};
    return feed.next(targets);
  }

  /// The samples (first token / 3) of `batches` batches.
  std::vector<int64_t> samples(DataFeed &feed, int batches) {
    std::vector<int64_t> seen;
    for (int i = 0; i < batches; ++i) {
      EXPECT_TRUE(next(feed));
      for (int row = 0; row < 2; ++row) {
        seen.push_back(ids[row * 3] / 3);
        for (int t = 0; t < 3; ++t)
          EXPECT_EQ(labels[row * 3 + t], ids[row * 3 + t] + 1);
      }
    }
    return seen;
  }
};

TEST_F(DataFeedTest, sequentialOrderFollowsTheFile) {
  auto feed = languageFeed(16, {0, false, 0}); // 5 samples of 3 tokens, and one more token for the shift
  ASSERT_OK(feed);
  EXPECT_EQ(feed->samples(), 5u);
  EXPECT_EQ(feed->batchesPerEpoch(), 2u);
  EXPECT_EQ(samples(*feed, 5), (std::vector<int64_t>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}));
  EXPECT_EQ(feed->cursor(), (DataCursor{2, 0}));
}

// The file ends with a whole window for ids, but labels lack the last token: the smaller count holds for both.
TEST_F(DataFeedTest, shiftedViewsOfOneFileAgreeOnTheSmallerCount) {
  auto feed = languageFeed(15, {0, false, 0});
  ASSERT_OK(feed);
  EXPECT_EQ(feed->samples(), 4u);
}

TEST_F(DataFeedTest, shuffledEpochsVisitEverySampleOnceEach) {
  auto feed = languageFeed(22, {5, true, 0}); // 7 samples: batches straddle the border between epochs
  ASSERT_OK(feed);
  std::vector<int64_t> seen = samples(*feed, 7);
  std::vector<int64_t> first(seen.begin(), seen.begin() + 7), second(seen.begin() + 7, seen.end());
  EXPECT_NE(first, second);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  EXPECT_EQ(first, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(second, first);
}

TEST_F(DataFeedTest, seekContinuesExactlyThere) {
  auto whole = languageFeed(22, {5, true, 0});
  ASSERT_OK(whole);
  std::vector<int64_t> all = samples(*whole, 9);
  for (int cut = 0; cut < 9; ++cut) {
    auto first = languageFeed(22, {5, true, 0}), second = languageFeed(22, {5, true, 0});
    ASSERT_OK(first);
    ASSERT_OK(second);
    std::vector<int64_t> parts = samples(*first, cut);
    ASSERT_OK(second->seek(first->cursor()));
    std::vector<int64_t> rest = samples(*second, 9 - cut);
    parts.insert(parts.end(), rest.begin(), rest.end());
    EXPECT_EQ(parts, all) << "cut at " << cut;
  }
  EXPECT_FAILS(whole->seek({0, 7}), ExitCode::BadInput,
               "the data cursor is at sample 7 of epoch 0, but the data holds 7");
}

// The smallest window (two pages) and one that holds the file deliver the same; the account is exact.
TEST_F(DataFeedTest, residentLimitDoesNotChangeTheData) {
  auto small = languageFeed(60000, {1, true, 0}), large = languageFeed(60000, {1, true, 1 << 20});
  ASSERT_OK(small);
  ASSERT_OK(large);
  EXPECT_EQ(samples(*small, 400), samples(*large, 400));
  EXPECT_EQ(small->stagingBytes(), 2u * 8192);
  EXPECT_EQ(large->stagingBytes(), 2u * 120000); // the files are smaller than their shares
}

// Rows longer than the window are read in pieces, at every alignment of the pieces.
TEST_F(DataFeedTest, longRowsAreReadInPieces) {
  std::vector<uint32_t> values(30001);
  std::iota(values.begin(), values.end(), 0u);
  std::string path = folder.writeValues("long.bin", values);
  auto feed = open({"ids=tokens(" + path + ",u32,shift=1)"}, {{"ids", DType::I64, {1, 10000}}}, {0, false, 0});
  ASSERT_OK(feed);
  std::vector<int64_t> out(10000);
  std::span<std::byte> targets[] = {std::as_writable_bytes(std::span(out))};
  for (int64_t batch = 0; batch < 3; ++batch) {
    ASSERT_OK(feed->next(targets));
    for (int64_t i = 0; i < 10000; ++i)
      ASSERT_EQ(out[static_cast<size_t>(i)], batch * 10000 + i + 1);
  }
}

TEST_F(DataFeedTest, portsAndSourcesMustMatch) {
  std::string path = tokens("t.bin", 30);
  std::vector<PortInfo> ports = {{"ids", DType::I64, {2, 3}}, {"labels", DType::I64, {2, 3}}};
  EXPECT_FAILS(open({"ids=tokens(" + path + ",u16)"}, ports, {}), ExitCode::Usage,
               "no data for port labels (i64 [2, 3]); give each a --data PORT=KIND(PATH,...)");
  EXPECT_FAILS(
      open({"idx=tokens(" + path + ",u16)"}, ports, {}), ExitCode::Usage,
      "--data feeds idx, which the artifact does not have; its data ports are: ids (i64 [2, 3]), labels (i64 [2, 3])");
  EXPECT_FAILS(open({"x=constant(1)"}, {{"x", DType::F32, {0, 2}}}, {}), ExitCode::Unsupported, "holds no elements");
}

TEST_F(DataFeedTest, differentSampleCountsAreRefused) {
  std::string one = tokens("one.bin", 30), two = tokens("two.bin", 60);
  std::vector<PortInfo> ports = {{"ids", DType::I64, {2, 3}}, {"labels", DType::I64, {2, 3}}};
  EXPECT_FAILS(open({"ids=tokens(" + one + ",u16)", "labels=tokens(" + two + ",u16)"}, ports, {}), ExitCode::BadInput,
               "10 and 20 samples, expected equally many");
  ports[1].shape = {3, 3};
  EXPECT_FAILS(open({"ids=tokens(" + one + ",u16)", "labels=tokens(" + one + ",u16)"}, ports, {}), ExitCode::BadInput,
               "differ in their first dimension");
  EXPECT_FAILS(open({"ids=tokens(" + one + ",u16)"}, {{"ids", DType::I64, {11, 3}}}, {}), ExitCode::BadInput,
               "10 samples are fewer than one batch of 11");
}

TEST_F(DataFeedTest, wholeBatchesRotateInOrder) {
  std::vector<int64_t> values[2] = {{1, 2}, {3, 4}};
  std::vector<NamedTensor> tensors;
  for (int i = 0; i < 2; ++i)
    tensors.push_back({"b" + std::to_string(i), DType::I64, {2}, std::as_bytes(std::span(values[i]))});
  ASSERT_OK(writeSafeTensors(folder.path("b"), tensors));
  std::string source = "=safetensors(" + folder.path("b") + ",key=b{i})";
  auto feed = open({"y" + source}, {{"y", DType::I64, {2}}}, {3, true, 0});
  ASSERT_OK(feed);
  std::vector<int64_t> out(2), seen;
  std::span<std::byte> targets[] = {std::as_writable_bytes(std::span(out))};
  for (int step = 0; step < 5; ++step) {
    ASSERT_OK(feed->next(targets));
    seen.push_back(out[0]);
  }
  EXPECT_EQ(seen, (std::vector<int64_t>{1, 3, 1, 3, 1}));
  EXPECT_EQ(feed->cursor(), (DataCursor{2, 1}));
  EXPECT_FAILS(open({"y" + source, "x=tokens(" + tokens("t.bin", 9) + ",u16)"},
                    {{"y", DType::I64, {2}}, {"x", DType::I64, {2, 1}}}, {}),
               ExitCode::BadInput, "one holds whole batches (key with {i}), the other samples");
}

TEST_F(DataFeedTest, aFileThatShrinksIsAnErrorNotACrash) {
  auto feed = languageFeed(30000, {0, false, 0});
  ASSERT_OK(feed);
  ASSERT_OK(next(*feed));
  std::filesystem::resize_file(folder.path("t.bin"), 100);
  EXPECT_FAILS(next(*feed), ExitCode::BadInput, "t.bin became shorter while it was read (60000 bytes at the start)");
}

TEST_F(DataFeedTest, aFailedBatchDoesNotMoveTheCursor) {
  std::string path = folder.writeValues<uint32_t>("t.bin", {0, 1, 2, 3, 4, 4000000000u});
  auto feed = open({"ids=tokens(" + path + ",u32)"}, {{"ids", DType::I32, {1, 2}}}, {0, false, 0});
  ASSERT_OK(feed);
  int32_t out[2];
  std::span<std::byte> targets[] = {std::as_writable_bytes(std::span(out))};
  ASSERT_OK(feed->next(targets));
  ASSERT_OK(feed->next(targets));
  EXPECT_FAILS(feed->next(targets), ExitCode::BadInput, "window 2");
  EXPECT_EQ(feed->cursor(), (DataCursor{0, 2}));
}

TEST_F(DataFeedTest, constantsAloneNeverEnd) {
  auto feed = open({"x=constant(2)"}, {{"x", DType::F32, {2}}}, {});
  ASSERT_OK(feed);
  EXPECT_EQ(feed->samples(), 0u);
  float out[2] = {};
  std::span<std::byte> targets[] = {std::as_writable_bytes(std::span(out))};
  ASSERT_OK(feed->next(targets));
  EXPECT_EQ(out[1], 2.0f);
}

} // namespace
