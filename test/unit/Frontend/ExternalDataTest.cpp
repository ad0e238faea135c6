// Case 45: external data never leaves the model's folder. Every way out is tried, and each refusal names itself.
#include "lib/Frontend/ONNX/Import.h"
#include "test/unit/Frontend/ModelBuilder.h"

#include "mlir/IR/MLIRContext.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

using namespace plimsoll;
namespace frontend = plimsoll::onnx; // ::onnx is protobuf
using plimsoll::test::ModelBuilder;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

namespace {
class ExternalDataTest : public ::testing::Test {
protected:
  void SetUp() override {
    root = test::freshFolder();
    folder = root + "/model";
    fs::create_directories(folder + "/sub");
    std::string data(64, 'a');
    for (const std::string &path :
         {root + "/secret.bin", folder + "/file..name.bin", folder + "/sub/inner.bin", folder + "/w.bin"})
      std::ofstream(path, std::ios::binary) << data;
  }
  void TearDown() override { fs::remove_all(root); }

  /// Imports a model whose 4 x 4 float weight has the given external-data entries.
  Status load(std::vector<std::pair<std::string, std::string>> entries) {
    ModelBuilder model;
    model.input("x", {2, 4});
    auto &weight = model.floats("fc.weight", {4, 4});
    weight.clear_raw_data();
    weight.set_data_location(::onnx::TensorProto::EXTERNAL);
    for (auto &[key, value] : entries) {
      auto *entry = weight.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    model.node("MatMul", {"x", "fc.weight"}, {"y"});
    model.node("ReduceMean", {"y"}, {"loss"});
    model.output("loss");
    frontend::ImportOptions options;
    options.modelPath = model.save(folder);
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    frontend::ImportResult result;
    Status status = frontend::importModel(context, options, result);
    if (status)
      firstByte = static_cast<char>(result.weights.find("fc.weight")->bytes[0]);
    return status;
  }
  void refuses(std::vector<std::pair<std::string, std::string>> entries, const std::string &why) {
    Status status = load(std::move(entries));
    EXPECT_EQ(status.code(), ExitCode::BadInput);
    EXPECT_THAT(status.message(), HasSubstr("external data of tensor 'fc.weight': "));
    EXPECT_THAT(status.message(), HasSubstr(why));
  }
  std::string root, folder;
  char firstByte = 0;
};
} // namespace

TEST_F(ExternalDataTest, ReadsPlainFiles) {
  for (const char *name : {"w.bin", "file..name.bin", "sub/inner.bin", "./w.bin"}) {
    Status status = load({{"location", name}, {"offset", "0"}, {"length", "64"}});
    EXPECT_TRUE(status) << status.message();
    EXPECT_EQ(firstByte, 'a');
  }
  EXPECT_TRUE(load({{"location", "w.bin"}}));
}

TEST_F(ExternalDataTest, RefusesPathsThatLeave) {
  refuses({{"location", "../secret.bin"}}, "leaves the model's folder");
  refuses({{"location", "sub/../../secret.bin"}}, "leaves the model's folder");
  refuses({{"location", "sub\\..\\..\\secret.bin"}}, "leaves the model's folder");
  refuses({{"location", root + "/secret.bin"}}, "is absolute");
  refuses({{"location", "C:\\secret.bin"}}, "is absolute");
  refuses({{"location", ""}}, "empty or malformed location");
  refuses({{"location", std::string("w.bin\0x", 7)}}, "empty or malformed location");
  refuses({{"location", "."}}, "names no file");
  refuses({}, "no location");
  refuses({{"location", "absent.bin"}}, "cannot open location 'absent.bin'");
}

TEST_F(ExternalDataTest, RefusesLinksAndSpecialFiles) {
  fs::create_symlink(root + "/secret.bin", folder + "/link.bin");
  refuses({{"location", "link.bin"}}, "goes through a symbolic link");
  fs::create_directory_symlink(root, folder + "/up");
  refuses({{"location", "up/secret.bin"}}, "goes through a symbolic link");
  fs::create_hard_link(root + "/secret.bin", folder + "/hard.bin");
  refuses({{"location", "hard.bin"}}, "has 2 hard links, expected 1");
  refuses({{"location", "sub"}}, "is not a regular file");
  ASSERT_EQ(mkfifo((folder + "/pipe").c_str(), 0600), 0);
  refuses({{"location", "pipe"}}, "is not a regular file");
}

TEST_F(ExternalDataTest, RefusesBadRanges) {
  refuses({{"location", "w.bin"}, {"offset", "1"}}, "range of 64 bytes at 1 passes the end of 'w.bin' (64 bytes)");
  refuses({{"location", "w.bin"}, {"offset", "-4"}}, "offset '-4' is not a number of bytes");
  refuses({{"location", "w.bin"}, {"offset", "18446744073709551615"}}, "passes the end");
  refuses({{"location", "w.bin"}, {"offset", "18446744073709551616"}}, "is not a number of bytes");
  refuses({{"location", "w.bin"}, {"length", "60"}}, "length is 60 bytes but its type and dims need 64");
  refuses({{"location", "w.bin"}, {"length", "9999999999999"}}, "its type and dims need 64");
  refuses({{"location", "w.bin"}, {"length", "6 4"}}, "length '6 4' is not a number of bytes");
}

TEST_F(ExternalDataTest, RefusesUnknownAndRepeatedKeys) {
  refuses({{"location", "w.bin"}, {"__class__", "x"}},
          "unknown key '__class__', expected location, offset, length or checksum");
  refuses({{"location", "w.bin"}, {"location", "../secret.bin"}}, "key 'location' appears twice");
}
