// safetensors: round trip, the writer's promises, and hostile files.
#include "runtime/Core/SafeTensors.h"
#include "test/unit/Runtime/TinyArtifact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

using namespace plimsoll;
using namespace plimsoll::runtime;
using namespace plimsoll::test;
using artifact::DType;
using testing::HasSubstr;

namespace {

std::vector<std::byte> bytesOf(size_t count, int value) { return {count, static_cast<std::byte>(value)}; }

/// A file with `header` and `dataBytes` zero bytes behind it.
std::string fileWith(const std::string &header, size_t dataBytes) {
  uint64_t length = header.size();
  std::string file(reinterpret_cast<const char *>(&length), sizeof length);
  return file + header + std::string(dataBytes, '\0');
}

std::string parseError(const std::string &file) {
  Status status = SafeTensors::parse(std::as_bytes(std::span(file)), "w.safetensors").status();
  EXPECT_TRUE(status.isOk() || status.code() == ExitCode::BadInput);
  return status.isOk() ? "accepted" : status.message();
}

std::string tensor(const std::string &name, const std::string &dtype, const std::string &shape,
                   const std::string &offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

} // namespace

TEST(SafeTensors, roundTrips) {
  TemporaryFolder folder;
  auto a = bytesOf(3, 1), b = bytesOf(16, 2), c = bytesOf(8, 3), none = bytesOf(0, 0);
  std::vector<NamedTensor> tensors = {{"small", DType::U8, {3}, a},
                                      {"b.weight", DType::F32, {2, 2}, b},
                                      {"scalar", DType::I64, {}, c},
                                      {"empty", DType::F32, {0, 4}, none}};
  Status status = writeSafeTensors(folder.path("w"), tensors, {{"step", "12"}, {"note", "é"}});
  ASSERT_TRUE(status) << status.message();
  auto read = SafeTensors::open(folder.path("w"));
  ASSERT_TRUE(read) << read.status().message();
  ASSERT_EQ(read->tensors().size(), 4u);
  EXPECT_EQ(read->tensors()[0].name, "b.weight");
  EXPECT_EQ(read->metadata().at("step"), "12");
  EXPECT_EQ(read->metadata().at("note"), "é");
  for (const NamedTensor &expected : tensors) {
    const NamedTensor *found = read->find(expected.name);
    ASSERT_TRUE(found) << expected.name;
    EXPECT_EQ(found->dtype, expected.dtype);
    EXPECT_EQ(found->shape, expected.shape);
    EXPECT_TRUE(std::ranges::equal(found->bytes, expected.bytes));
  }
  EXPECT_EQ(read->find("b"), nullptr);
  SafeTensors moved = std::move(*read);
  EXPECT_EQ(moved.find("small")->bytes[0], std::byte{1});
}

TEST(SafeTensors, theOrderOfTensorsDoesNotMatterAndAllAreAligned) {
  TemporaryFolder folder;
  auto a = bytesOf(3, 1), b = bytesOf(16, 2), c = bytesOf(8, 3);
  std::vector<NamedTensor> one = {{"a", DType::U8, {3}, a}, {"b", DType::F32, {4}, b}, {"c", DType::F64, {1}, c}};
  std::vector<NamedTensor> two = {one[2], one[0], one[1]};
  ASSERT_TRUE(writeSafeTensors(folder.path("one"), one) && writeSafeTensors(folder.path("two"), two));
  EXPECT_EQ(slurp(folder.path("one")), slurp(folder.path("two")));
  auto read = SafeTensors::open(folder.path("one"));
  for (const char *name : {"b", "c"})
    EXPECT_EQ(reinterpret_cast<uintptr_t>(read->find(name)->bytes.data()) % (name[0] == 'c' ? 8 : 4), 0u);
}

TEST(SafeTensors, writesTheDocumentedLayout) {
  TemporaryFolder folder;
  auto a = bytesOf(4, 'x');
  NamedTensor tensor{"t", DType::F32, {1}, a};
  ASSERT_TRUE(writeSafeTensors(folder.path("w"), std::span(&tensor, 1)));
  std::string header = R"({"t":{"data_offsets":[0,4],"dtype":"F32","shape":[1]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(slurp(folder.path("w")), fileWith(header, 0) + "xxxx");
}

TEST(SafeTensors, writerRefusesBadTensors) {
  TemporaryFolder folder;
  auto four = bytesOf(4, 1);
  auto error = [&](std::vector<NamedTensor> tensors, std::map<std::string, std::string> metadata = {}) {
    return writeSafeTensors(folder.path("w"), tensors, metadata).message();
  };
  EXPECT_THAT(error({{"a", DType::F32, {2}, four}}), HasSubstr("tensor 'a' has 4 bytes, its shape takes 8"));
  EXPECT_THAT(error({{"a", DType::F32, {1}, four}, {"a", DType::I32, {1}, four}}),
              HasSubstr("two tensors are called 'a'"));
  for (const char *name : {"", "__metadata__", "\xff"})
    EXPECT_THAT(error({{name, DType::F32, {1}, four}}), HasSubstr("is empty, reserved or not UTF-8 text"));
  EXPECT_THAT(error({}, {{"k", "\xff"}}), HasSubstr("metadata 'k' is not UTF-8 text"));
  EXPECT_EQ(slurp(folder.path("w")), "<missing>");
}

TEST(SafeTensors, aFullDiskLeavesTheOldFile) {
  TemporaryFolder folder;
  auto small = bytesOf(4, 1), large = bytesOf(100000, 2);
  NamedTensor before{"t", DType::U8, {4}, small}, after{"t", DType::U8, {100000}, large};
  ASSERT_TRUE(writeSafeTensors(folder.path("w"), std::span(&before, 1)));
  FileSizeLimit limit(4096);
  Status status = writeSafeTensors(folder.path("w"), std::span(&after, 1));
  EXPECT_EQ(status.code(), ExitCode::BadInput);
  EXPECT_THAT(status.message(), HasSubstr("a file already under this name is untouched; free some space"));
  EXPECT_EQ(SafeTensors::open(folder.path("w"))->find("t")->bytes.size(), 4u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.root()), {}), 1);
}

TEST(SafeTensors, acceptsWhatOthersWrite) {
  EXPECT_EQ(parseError(fileWith("{}", 0)), "accepted");
  EXPECT_EQ(parseError(fileWith("{" + tensor("a", "BF16", "[2]", "[0,4]") + "}   ", 4)), "accepted");
  EXPECT_EQ(
      parseError(fileWith("{" + tensor("b", "F32", "[]", "[4,8]") + "," + tensor("a", "F32", "[1]", "[0,4]") + "}", 8)),
      "accepted");
}

TEST(SafeTensors, refusesHostileFiles) {
  struct Hostile {
    std::string file;
    const char *message;
  };
  auto one = [](const std::string &text, size_t data = 4) { return fileWith("{" + text + "}", data); };
  std::string good = tensor("a", "F32", "[1]", "[0,4]");
  const std::vector<Hostile> files = {
      {"", "0 bytes are too few for a safetensors file"},
      {"1234567", "7 bytes are too few"},
      {std::string(8, '\xff'), "the header would have 18,446,744,073,709,551,615 bytes"},
      {fileWith("{}", 0).replace(0, 1, "\x09"), "the header has 9 bytes, the file only 10; it is truncated"},
      {fileWith("", 0), "the header is not a JSON object"},
      {fileWith("[]", 0), "the header is not a JSON object"},
      {fileWith("{\"a\":", 0), "the header is not a JSON object"},
      {fileWith("{} x", 0), "the header is not a JSON object"},
      {fileWith("{\"\xff\":{}}", 0), "the header is not a JSON object"},
      {one(good + "," + good), "the key 'a' occurs twice"},
      {one("\"a\":{\"dtype\":\"F32\",\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[0,4]}"),
       "the key 'dtype' occurs twice"},
      {one("\"a\":" + std::string(100000, '[') + std::string(100000, ']')), "nested too deep"},
      {one("\"a\":3"), "tensor 'a' must have exactly dtype, shape and data_offsets"},
      {one("\"a\":{\"dtype\":\"F32\",\"shape\":[1]}"), "must have exactly dtype, shape and data_offsets"},
      {one("\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"more\":1}"), "must have exactly"},
      {one("\"a\":{\"dtype\":3,\"shape\":[1],\"data_offsets\":[0,4]}"), "has a dtype that is not text"},
      {one(tensor("a", "F8_E4M3", "[4]", "[0,4]")), "has the unsupported dtype 'F8_E4M3', expected F32"},
      {one(tensor("a", "F32", "[-1]", "[0,4]")), "has a shape that is not a short list of sizes"},
      {one(tensor("a", "F32", "[1.0]", "[0,4]")), "has a shape that is not a short list of sizes"},
      {one(tensor("a", "F32", "1", "[0,4]")), "has a shape that is not a short list of sizes"},
      {one(tensor("a", "F32", "[18446744073709551615]", "[0,4]")), "has a shape that is not a short list of sizes"},
      {one(tensor("a", "F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]")),
       "has a shape that is not a short list of sizes"},
      {one(tensor("a", "F32", "[4611686018427387904,2]", "[0,4]")), "its shape takes more than can be addressed"},
      {one(tensor("a", "F32", "[4611686018427387904]", "[0,4]")), "its shape takes more than can be addressed"},
      {one(tensor("a", "F32", "[2]", "[0,4]")), "tensor 'a' has 4 bytes of data, its shape takes 8"},
      {one(tensor("a", "F32", "[1]", "[4,0]")), "data_offsets that are not a begin and an end"},
      {one(tensor("a", "F32", "[1]", "[0,4,8]")), "data_offsets that are not a begin and an end"},
      {one(tensor("a", "F32", "[1]", "[-4,0]")), "data_offsets that are not a begin and an end"},
      {one(good, 3), "tensor 'a' ends at byte 4 of the data, the file holds 3; it is truncated"},
      {one(good, 5), "the tensors take 4 bytes, the file holds 5"},
      {one(tensor("a", "F32", "[1]", "[4,8]"), 8), "starts at byte 4 of the data, expected 0 (there is a hole)"},
      {one(good + "," + tensor("b", "F32", "[1]", "[2,6]"), 6),
       "tensor 'b' starts at byte 2 of the data, expected 4 (it overlaps"},
      {one(good + "," + tensor("b", "F32", "[1]", "[0,4]")),
       "tensor 'b' starts at byte 0 of the data, expected 4 (it overlaps"},
      {one("\"__metadata__\":[]", 0), "__metadata__ is not a map"},
      {one("\"__metadata__\":{\"k\":1}", 0), "__metadata__ key 'k' is not text"},
  };
  for (const Hostile &hostile : files) {
    std::string error = parseError(hostile.file);
    EXPECT_THAT(error, HasSubstr(hostile.message));
    EXPECT_THAT(error, testing::AnyOf(testing::StartsWith("'w.safetensors': "), testing::Eq("accepted")));
  }
}

TEST(SafeTensors, openRefusesFoldersAndMissingFiles) {
  TemporaryFolder folder;
  EXPECT_THAT(SafeTensors::open(folder.root()).status().message(), HasSubstr("is a folder"));
  EXPECT_THAT(SafeTensors::open(folder.path("none")).status().message(), HasSubstr("No such file"));
}
