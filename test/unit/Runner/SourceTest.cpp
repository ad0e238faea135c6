// Every kind of source: what it delivers, and the message of every way a file can be wrong.
#include "runtime/Data/Source.h"
#include "TestSupport.h"
#include "runtime/Core/SafeTensors.h"

#include <cstring>
#include <limits>
#include <sys/stat.h>
#include <zlib.h>

using namespace plimsoll;
using namespace plimsoll::runtime;
using artifact::DType;

namespace {

class SourceTest : public testing::Test {
protected:
  TempFolder folder;

  Result<std::unique_ptr<Source>> open(const std::string &text, DType dtype, std::vector<int64_t> shape) {
    auto spec = parseDataSpec(text);
    EXPECT_TRUE(spec) << spec.status().message();
    return openSource(*spec, {spec->port, dtype, std::move(shape)});
  }

  /// Sample `index` of a source over a port of type T.
  template <typename T> std::vector<T> sample(Source &source, uint64_t index, size_t elements) {
    std::vector<T> out(elements);
    Status status = source.read(index, reinterpret_cast<std::byte *>(out.data()));
    EXPECT_TRUE(status) << status.message();
    return out;
  }

  std::string npy(const std::string &dictionary, std::string_view data, char version = 1) {
    std::string header = dictionary + "\n";
    std::string text = "\x93NUMPY";
    text += version;
    text += '\0';
    text += static_cast<char>(header.size() & 0xff);
    text += static_cast<char>(header.size() >> 8);
    if (version == 2)
      text += std::string(2, '\0');
    return folder.write("a.npy", text + header + std::string(data));
  }

  template <typename T> static std::string_view raw(const std::vector<T> &values) {
    return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)};
  }
};

TEST_F(SourceTest, tokenWindowsFollowEachOther) {
  std::string path = folder.writeValues<uint16_t>("t.bin", {0, 1, 2, 3, 4, 5, 6, 7, 8});
  auto ids = open("ids=tokens(" + path + ",u16)", DType::I64, {2, 4});
  ASSERT_OK(ids);
  EXPECT_EQ((*ids)->count(), 2u);
  EXPECT_EQ(sample<int64_t>(**ids, 1, 4), (std::vector<int64_t>{4, 5, 6, 7}));
  auto labels = open("labels=tokens(" + path + ",u16,shift=1)", DType::I64, {2, 4});
  ASSERT_OK(labels);
  EXPECT_EQ((*labels)->count(), 2u);
  EXPECT_EQ(sample<int64_t>(**labels, 1, 4), (std::vector<int64_t>{5, 6, 7, 8}));
  auto dense = open("ids=tokens(" + path + ",u16,stride=1)", DType::I64, {2, 4});
  ASSERT_OK(dense);
  EXPECT_EQ((*dense)->count(), 6u);
}

TEST_F(SourceTest, tokenTypeComesFromOptionOrName) {
  std::string path = folder.writeValues<uint32_t>("t.u32.bin", {70000, 2});
  auto ids = open("ids=tokens(" + path + ")", DType::I32, {1, 2});
  ASSERT_OK(ids);
  EXPECT_EQ(sample<int32_t>(**ids, 0, 2), (std::vector<int32_t>{70000, 2}));
  EXPECT_FAILS(open("ids=tokens(" + folder.path("t.bin") + ")", DType::I64, {1, 2}), ExitCode::Usage,
               "the token type is not given; say u16 or u32");
  EXPECT_FAILS(open("ids=tokens(" + path + ",u16,u32)", DType::I64, {1, 2}), ExitCode::Usage,
               "the token type is given twice");
}

TEST_F(SourceTest, tokenFilesOfWrongSizeAreRefused) {
  EXPECT_FAILS(open("ids=tokens(" + folder.write("odd.bin", "abc") + ",u16)", DType::I64, {1, 1}), ExitCode::BadInput,
               "3 bytes is not a multiple of 2 (u16)");
  EXPECT_FAILS(open("ids=tokens(" + folder.write("short.bin", "abcd") + ",u16,shift=1)", DType::I64, {1, 2}),
               ExitCode::BadInput, "holds 2 tokens, one sample needs 3 (window 2 + shift 1)");
  EXPECT_FAILS(open("ids=tokens(" + folder.path("short.bin") + ",u16,shift=18446744073709551615)", DType::I64, {1, 2}),
               ExitCode::BadInput, "holds 2 tokens");
  EXPECT_FAILS(open("ids=tokens(" + folder.path("short.bin") + ",u16,stride=0)", DType::I64, {1, 2}), ExitCode::Usage,
               "stride=0, expected at least 1");
  EXPECT_FAILS(open("x=tokens(" + folder.path("short.bin") + ",u16)", DType::F32, {1, 2}), ExitCode::Usage,
               "tokens cannot feed port x of type f32");
  EXPECT_FAILS(open("x=tokens(" + folder.path("short.bin") + ",u16)", DType::I64, {}), ExitCode::Usage,
               "port x is a scalar");
}

TEST_F(SourceTest, tokensOutsideTypeOrVocabularyNameThePlace) {
  std::string path = folder.writeValues<uint32_t>("t.bin", {1, 2, 3, 4000000000u});
  auto ids = open("ids=tokens(" + path + ",u32)", DType::I32, {1, 2});
  ASSERT_OK(ids);
  int32_t out[2];
  EXPECT_FAILS((*ids)->read(1, reinterpret_cast<std::byte *>(out)), ExitCode::BadInput,
               "t.bin): token window 1, element 1: 4000000000 does not fit i32");
  auto checked = open("ids=tokens(" + path + ",u32,vocab=3)", DType::I32, {1, 2});
  ASSERT_OK(checked);
  EXPECT_FAILS((*checked)->read(1, reinterpret_cast<std::byte *>(out)), ExitCode::BadInput, "does not fit i32");
  auto tight = open("ids=tokens(" + path + ",u32,vocab=2)", DType::I32, {1, 3});
  ASSERT_OK(tight);
  int32_t three[3];
  EXPECT_FAILS((*tight)->read(0, reinterpret_cast<std::byte *>(three)), ExitCode::BadInput,
               "token 1: 2 is outside the vocabulary of 2");
}

TEST_F(SourceTest, npyRowsAreSamples) {
  std::vector<float> values = {0, 1, 2, 3, 4, 5};
  std::string path = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", raw(values));
  auto source = open("x=npy(" + path + ",scale=2,offset=1)", DType::F32, {2, 1, 2});
  ASSERT_OK(source);
  EXPECT_EQ((*source)->count(), 3u);
  EXPECT_EQ(sample<float>(**source, 2, 2), (std::vector<float>{9, 11}));
}

TEST_F(SourceTest, npyVersionTwoAndLabelsRead) {
  std::vector<int64_t> values = {3, 1, 2};
  std::string path = npy("{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }", raw(values), 2);
  auto source = open("y=npy(" + path + ")", DType::I32, {3});
  ASSERT_OK(source);
  EXPECT_EQ(sample<int32_t>(**source, 0, 1), (std::vector<int32_t>{3}));
}

TEST_F(SourceTest, damagedNpyFilesAreRefused) {
  std::vector<float> values = {0, 1, 2, 3};
  auto expectRefused = [&](const std::string &dictionary, const std::string &text) {
    EXPECT_FAILS(open("x=npy(" + npy(dictionary, raw(values)) + ")", DType::F32, {1, 2}), ExitCode::BadInput, text);
  };
  expectRefused("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 2), }", "element type '>f4', expected one of");
  expectRefused("{'descr': '<c8', 'fortran_order': False, 'shape': (2, 2), }", "element type '<c8', expected one of");
  expectRefused("{'fortran_order': False, 'shape': (2, 2), }", "element type missing");
  expectRefused("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", "is not in C order");
  expectRefused("{'descr': '<f4', 'fortran_order': False, 'shape': (2, -2), }", "no readable shape");
  expectRefused("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2", "no readable shape");
  expectRefused("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }",
                "shape [3, 2] of f32 needs 24 data bytes, the file holds 16");
  expectRefused("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 8), }",
                "needs more than 2^63 data bytes");
  expectRefused("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }",
                "has 1 elements per sample, port x of shape [1, 2] needs 2");
  expectRefused("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "needs 4 data bytes");
  EXPECT_FAILS(open("x=npy(" + folder.write("b.npy", "not an array") + ")", DType::F32, {1, 2}), ExitCode::BadInput,
               "is not a .npy file");
  EXPECT_FAILS(
      open("x=npy(" + folder.write("c.npy", std::string("\x93NUMPY\x03\0\x05\0abcde", 15)) + ")", DType::F32, {1, 2}),
      ExitCode::BadInput, ".npy version 3, expected 1 or 2");
  EXPECT_FAILS(
      open("x=npy(" + folder.write("d.npy", std::string("\x93NUMPY\x01\0\xff\xff{}", 12)) + ")", DType::F32, {1, 2}),
      ExitCode::BadInput, "the .npy header claims 65535 bytes");
}

TEST_F(SourceTest, nanInDataNamesSampleAndElement) {
  std::vector<float> values = {0, 1, 2, std::numeric_limits<float>::quiet_NaN()};
  std::string path = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", raw(values));
  auto source = open("x=npy(" + path + ")", DType::F32, {1, 2});
  ASSERT_OK(source);
  float out[2];
  EXPECT_FAILS((*source)->read(1, reinterpret_cast<std::byte *>(out)), ExitCode::BadInput,
               "a.npy): sample 1, element 1: NaN; correct the data file");
}

TEST_F(SourceTest, floatDataDoesNotFeedIntegerPorts) {
  std::vector<float> values = {0, 1};
  std::string path = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", raw(values));
  EXPECT_FAILS(open("y=npy(" + path + ")", DType::I64, {1}), ExitCode::Usage,
               "f32 data cannot feed a port of type i64");
  EXPECT_FAILS(open("y=npy(" + path + ",scale=x)", DType::F32, {1}), ExitCode::Usage, "scale=x is not a finite number");
  EXPECT_FAILS(open("y=npy(" + path + ")", DType::F32, {}), ExitCode::Usage, "port y is a scalar");
}

TEST_F(SourceTest, idxImagesRead) {
  std::string bytes("\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02", 16);
  std::string path = folder.write("i.idx", bytes + std::string("\x01\x02\x03\xff", 4));
  auto source = open("x=idx(" + path + ")", DType::F32, {1, 1, 1, 2});
  ASSERT_OK(source);
  EXPECT_EQ((*source)->count(), 2u);
  EXPECT_EQ(sample<float>(**source, 1, 2), (std::vector<float>{3, 255}));
}

TEST_F(SourceTest, gzippedIdxReadsLikeThePlainFile) {
  std::string bytes = std::string("\0\0\x0b\x01\0\0\0\x02\0\x05\xff\xff", 12); // int16 big endian: 5, -1
  std::string path = folder.path("i.idx.gz");
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())), 12);
  gzclose(file);
  auto source = open("y=idx(" + path + ")", DType::I64, {1});
  ASSERT_OK(source);
  EXPECT_EQ(sample<int64_t>(**source, 1, 1), (std::vector<int64_t>{-1}));
  std::string packed = folder.read("i.idx.gz");
  EXPECT_FAILS(open("y=idx(" + folder.write("cut.gz", packed.substr(0, packed.size() - 9)) + ")", DType::I64, {1}),
               ExitCode::BadInput, "gzip file");
  packed[packed.size() - 6] ^= 1; // inside the checksum
  EXPECT_FAILS(open("y=idx(" + folder.write("bad.gz", packed) + ")", DType::I64, {1}), ExitCode::BadInput,
               "is a damaged gzip file");
}

TEST_F(SourceTest, damagedIdxFilesAreRefused) {
  auto expectRefused = [&](std::string_view bytes, const std::string &text) {
    EXPECT_FAILS(open("x=idx(" + folder.write("i.idx", bytes) + ")", DType::F32, {1}), ExitCode::BadInput, text);
  };
  expectRefused("abcd", "is not an IDX file");
  expectRefused({"\0\0\x07\x01\0\0\0\x01\0", 9}, "unknown IDX element code 0x07");
  expectRefused({"\0\0\x08\x03\0\0\0\x01", 8}, "claims 3 dimensions, the file ends before them");
  expectRefused({"\0\0\x08\0", 4}, "claims 0 dimensions");
  expectRefused({"\0\0\x08\x01\0\0\0\x04\0\0", 10}, "shape [4] of u8 needs 4 data bytes, the file holds 2");
  expectRefused({"\0\0\x0e\x04\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 20}, "more than 2^63");
  expectRefused({"\0\0\x08\x01\0\0\0\0", 8}, "holds no samples");
}

TEST_F(SourceTest, missingFoldersAndSpecialFilesAreRefused) {
  for (std::string kind : {"npy", "idx", "tokens"}) {
    std::string tail = kind == "tokens" ? ",u16)" : ")";
    EXPECT_FAILS(open("x=" + kind + "(" + folder.path("none") + tail, DType::I64, {1, 2}), ExitCode::BadInput,
                 "none (No such file or directory)");
    EXPECT_FAILS(open("x=" + kind + "(" + folder.path("") + tail, DType::I64, {1, 2}), ExitCode::BadInput,
                 "is a folder, expected a data file");
    EXPECT_FAILS(open("x=" + kind + "(" + folder.write("empty", "") + tail, DType::I64, {1, 2}), ExitCode::BadInput,
                 "empty is empty, expected data");
  }
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_FAILS(open("x=npy(" + folder.path("pipe") + ")", DType::I64, {1}), ExitCode::BadInput,
               "is not a regular file");
}

class SafeTensorsSourceTest : public SourceTest {
protected:
  std::string archive() {
    static const std::vector<float> first = {0, 1, 2, 3}, second = {4, 5, 6, 7};
    static const std::vector<int64_t> labels = {9, 8};
    auto bytes = [](const auto &values) { return std::as_bytes(std::span(values)); };
    std::vector<NamedTensor> tensors = {{"batch0.x", DType::F32, {2, 2}, bytes(first)},
                                        {"batch1.x", DType::F32, {2, 2}, bytes(second)},
                                        {"y", DType::I64, {2}, bytes(labels)}};
    Status status = writeSafeTensors(folder.path("b.safetensors"), tensors);
    EXPECT_TRUE(status) << status.message();
    return folder.path("b.safetensors");
  }
};

TEST_F(SafeTensorsSourceTest, oneKeyIsAnArrayOfSamples) {
  auto source = open("y=safetensors(" + archive() + ",key=y)", DType::I64, {1});
  ASSERT_OK(source);
  EXPECT_EQ((*source)->unit(), SourceUnit::Sample);
  EXPECT_EQ(sample<int64_t>(**source, 1, 1), (std::vector<int64_t>{8}));
}

TEST_F(SafeTensorsSourceTest, numberedKeysAreWholeBatches) {
  auto source = open("x=safetensors(" + archive() + ",key=batch{i}.x)", DType::F32, {2, 2});
  ASSERT_OK(source);
  EXPECT_EQ((*source)->unit(), SourceUnit::Batch);
  EXPECT_EQ((*source)->count(), 2u);
  EXPECT_EQ(sample<float>(**source, 1, 4), (std::vector<float>{4, 5, 6, 7}));
}

TEST_F(SafeTensorsSourceTest, wrongKeysShapesAndFilesAreRefused) {
  std::string path = archive();
  EXPECT_FAILS(open("x=safetensors(" + path + ")", DType::F32, {2, 2}), ExitCode::Usage, "key=NAME is missing");
  EXPECT_FAILS(open("x=safetensors(" + path + ",key=z)", DType::F32, {2, 2}), ExitCode::BadInput, "has no tensor 'z'");
  EXPECT_FAILS(open("x=safetensors(" + path + ",key=z{i})", DType::F32, {2, 2}), ExitCode::BadInput,
               "has no tensor 'z0'");
  EXPECT_FAILS(open("x=safetensors(" + path + ",key=batch{i}.x)", DType::F32, {4, 2}), ExitCode::BadInput,
               "tensor 'batch0.x' has shape [2, 2], port x needs [4, 2]");
  EXPECT_FAILS(open("x=safetensors(" + path + ",key=batch{i}.x)", DType::I64, {2, 2}), ExitCode::Usage,
               "f32 data cannot feed a port of type i64");
  std::string whole = folder.read("b.safetensors");
  EXPECT_FAILS(
      open("x=safetensors(" + folder.write("cut", whole.substr(0, whole.size() - 1)) + ",key=y)", DType::I64, {1}),
      ExitCode::BadInput, "cut");
}

TEST_F(SourceTest, constantFillsThePort) {
  auto source = open("m=constant(1)", DType::Bool, {2, 2});
  ASSERT_OK(source);
  EXPECT_EQ((*source)->unit(), SourceUnit::Constant);
  EXPECT_EQ(sample<uint8_t>(**source, 0, 4), (std::vector<uint8_t>{1, 1, 1, 1}));
  EXPECT_FAILS(open("m=constant(one)", DType::F32, {1}), ExitCode::Usage, "value=one is not a finite number");
}

} // namespace
