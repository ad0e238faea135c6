// Safe file access: what is refused, and what a failed write leaves behind.
#include "runtime/Artifact/Files.h"
#include "runtime/Artifact/Hash.h"
#include "test/unit/Runtime/TinyArtifact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace plimsoll;
using namespace plimsoll::test;
using testing::HasSubstr;

TEST(Files, refusesWhatIsNotARegularFile) {
  TemporaryFolder folder;
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(readFile(folder.path("pipe"), 100).status().message(), HasSubstr("is not a regular file"));
  EXPECT_THAT(readFile(folder.root(), 100).status().message(), HasSubstr("is a folder, expected a file"));
  EXPECT_THAT(MappedFile::open(folder.root()).status().message(), HasSubstr("is a folder, expected a file"));
  EXPECT_THAT(readFile(folder.path("none"), 100).status().message(), HasSubstr("No such file"));
}

TEST(Files, refusesLinksOnlyWhereAsked) {
  TemporaryFolder folder;
  spill(folder.path("real"), "text");
  ASSERT_EQ(symlink(folder.path("real").c_str(), folder.path("link").c_str()), 0);
  EXPECT_TRUE(readFile(folder.path("link"), 100));
  EXPECT_THAT(readFile(folder.path("link"), 100, Links::Refuse).status().message(), HasSubstr("is a symbolic link"));
}

TEST(Files, holdsTheSizeLimit) {
  TemporaryFolder folder;
  spill(folder.path("file"), "12345");
  EXPECT_EQ(readFile(folder.path("file"), 5)->size(), 5u);
  EXPECT_THAT(readFile(folder.path("file"), 4).status().message(), HasSubstr("has 5 bytes, at most 4 are accepted"));
}

TEST(Files, emptyFilesAreEmpty) {
  TemporaryFolder folder;
  spill(folder.path("file"), "");
  EXPECT_TRUE(MappedFile::open(folder.path("file"))->bytes().empty());
  EXPECT_TRUE(readFile(folder.path("file"), 10)->empty());
}

TEST(Files, atomicFileReplacesOnCommitOnly) {
  TemporaryFolder folder;
  spill(folder.path("file"), "old");
  {
    auto file = AtomicFile::create(folder.path("file"));
    ASSERT_TRUE(file && file->write("new"));
    EXPECT_EQ(slurp(folder.path("file")), "old");
  }
  EXPECT_EQ(slurp(folder.path("file")), "old") << "dropped without commit";
  auto file = AtomicFile::create(folder.path("file"));
  ASSERT_TRUE(file && file->write("new") && file->commit());
  EXPECT_EQ(slurp(folder.path("file")), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.root()), {}), 1) << "temporary files remain";
}

TEST(Files, aFullDiskLeavesTheOldFile) {
  TemporaryFolder folder;
  spill(folder.path("file"), "old");
  auto file = AtomicFile::create(folder.path("file"));
  ASSERT_TRUE(file);
  FileSizeLimit limit(1000);
  Status status = file->write(std::string(5000, 'x'));
  EXPECT_EQ(status.code(), ExitCode::BadInput);
  EXPECT_THAT(status.message(), HasSubstr("after 1,000 bytes: File too large; a file already under this name is "
                                          "untouched; free some space or choose another folder"));
  EXPECT_EQ(slurp(folder.path("file")), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.root()), {}), 1) << "temporary files remain";
}

TEST(Files, writingNeedsAFolderAndNotAFolderInPlace) {
  TemporaryFolder folder;
  EXPECT_THAT(AtomicFile::create(folder.path("no/such")).status().message(), HasSubstr("cannot create"));
  EXPECT_THAT(AtomicFile::create(folder.root()).status().message(), HasSubstr("it is a folder"));
}

TEST(Files, plainFileNames) {
  for (const char *good : {"a", "file..name.bin", "...", "weights.safetensors", "é"})
    EXPECT_TRUE(isPlainFileName(good)) << good;
  for (const char *bad : {"", ".", "..", "a/b", "/a", "../a", "a\n"})
    EXPECT_FALSE(isPlainFileName(bad)) << bad;
  EXPECT_FALSE(isPlainFileName(std::string(256, 'a')));
}

TEST(Files, utf8) {
  for (const char *good : {"", "abc", "é", "€", "\U0001F6A2"})
    EXPECT_TRUE(isUtf8(good)) << good;
  for (const char *bad : {"\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xff"})
    EXPECT_FALSE(isUtf8(bad)) << inQuotes(bad);
}

// The published test vectors of XXH3-64, seed 0.
TEST(Hash, isXxh3) {
  EXPECT_EQ(hashText(hash64("")), "2d06800538d394c2");
  TemporaryFolder folder;
  spill(folder.path("file"), "plimsoll");
  EXPECT_EQ(*hashFile(folder.path("file")), hashText(hash64("plimsoll")));
  EXPECT_FALSE(hashFile(folder.path("none")));
}
