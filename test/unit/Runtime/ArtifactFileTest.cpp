// Artifacts as files: round trip, same bytes, and A1: what is not an artifact at all.
#include "runtime/Artifact/Reader.h"
#include "runtime/Artifact/Writer.h"
#include "test/unit/Runtime/TinyArtifact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

using namespace plimsoll;
using namespace plimsoll::artifact;
using namespace plimsoll::test;
using testing::HasSubstr;

TEST(ArtifactFile, roundTripsToTheSameBytes) {
  TemporaryFolder folder;
  std::string path = folder.path("step.plim");
  Status status = writeArtifact(path, tinyArtifact());
  ASSERT_TRUE(status) << status.message();
  Result<ArtifactT> read = readArtifact(path);
  ASSERT_TRUE(read) << read.status().message();
  ASSERT_TRUE(writeArtifact(folder.path("again.plim"), *read));
  EXPECT_EQ(slurp(path), slurp(folder.path("again.plim")));
  ASSERT_TRUE(writeArtifact(folder.path("other.plim"), tinyArtifact()));
  EXPECT_EQ(slurp(path), slurp(folder.path("other.plim")));
  EXPECT_EQ(read->plans[0]->entries[0]->commands.size(), 10u);
  EXPECT_EQ(read->plans[0]->entries[0]->commands[8]->body.AsLibraryCall()->workspace, 2);
}

TEST(ArtifactFile, writerRefusesWhatTheReaderWould) {
  TemporaryFolder folder;
  ArtifactT artifact = tinyArtifact();
  artifact.plans[0]->arenas[0]->bytes = 0;
  Status status = writeArtifact(folder.path("step.plim"), artifact);
  EXPECT_EQ(status.code(), ExitCode::BadInput);
  EXPECT_THAT(status.message(), HasSubstr("A9: "));
  EXPECT_EQ(slurp(folder.path("step.plim")), "<missing>");
}

TEST(ArtifactFile, writerRefusesMoreThanFlatBuffersHold) {
  ArtifactT artifact = tinyArtifact();
  auto &commands = artifact.plans[0]->entries[1]->commands;
  while (commands.size() < (size_t{1} << 21) + 1000) {
    commands.push_back(std::make_unique<CommandT>());
    commands.back()->body.Set(LaunchT());
    commands.back()->body.AsLaunch()->grain = 1;
  }
  artifact.plans[0]->entries[1]->buffers[1]->last_command = static_cast<uint32_t>(commands.size() - 1);
  auto packed = packArtifact(artifact);
  ASSERT_FALSE(packed);
  EXPECT_THAT(packed.status().message(), HasSubstr("at most 2 GiB fit"));
}

TEST(ArtifactFile, aFullDiskLeavesTheOldArtifact) {
  TemporaryFolder folder;
  std::string path = folder.path("step.plim");
  ASSERT_TRUE(writeArtifact(path, tinyArtifact()));
  std::string before = slurp(path);
  ArtifactT changed = tinyArtifact();
  changed.provenance->flags = "changed";
  FileSizeLimit limit(512);
  Status status = writeArtifact(path, changed);
  EXPECT_EQ(status.code(), ExitCode::BadInput);
  EXPECT_THAT(status.message(), HasSubstr("free some space"));
  EXPECT_EQ(slurp(path), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.root()), {}), 1);
}

TEST(ArtifactFile, refusesOtherFiles) {
  TemporaryFolder folder;
  std::string path = folder.path("step.plim");
  for (std::string_view content : {std::string_view(""), std::string_view("PLIM"),
                                   std::string_view("\x7f"
                                                    "ELF\2\1\1\0\0\0",
                                                    10)}) {
    spill(path, content);
    Status status = readArtifact(path).status();
    EXPECT_EQ(status.code(), ExitCode::BadInput);
    EXPECT_THAT(status.message(),
                HasSubstr("step.plim': A1: not a Plimsoll artifact (the identifier 'PLIM' is missing)"));
  }
  EXPECT_THAT(readArtifact(folder.path("none")).status().message(), HasSubstr("No such file"));
}

TEST(ArtifactFile, tellsANewerVersionFromDamage) {
  flatbuffers::FlatBufferBuilder builder;
  ArtifactT artifact = tinyArtifact();
  artifact.format_version = 2;
  artifact::FinishArtifactBuffer(builder, artifact::Artifact::Pack(builder, &artifact));
  auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  Status status = parseArtifact(bytes, "new.plim").status();
  EXPECT_EQ(status.code(), ExitCode::VersionMismatch);
  EXPECT_EQ(status.message(),
            "'new.plim': A2: format version 2, this program reads version 1; compile the model again");
}

TEST(ArtifactFile, refusesTruncation) {
  auto packed = packArtifact(tinyArtifact());
  ASSERT_TRUE(packed);
  for (size_t size = 8; size < packed->size(); ++size) {
    std::vector<std::byte> part(packed->begin(), packed->begin() + static_cast<std::ptrdiff_t>(size));
    Status status = parseArtifact(part, "part.plim").status();
    ASSERT_FALSE(status) << size;
    EXPECT_EQ(status.message(), "'part.plim': A1: damaged or truncated; copy or compile it again") << size;
  }
}

// A1's content hash: rules cannot judge code and texts, so every flipped bit has to show there at the latest.
TEST(ArtifactFile, refusesEveryFlippedBit) {
  auto packed = packArtifact(tinyArtifact());
  ASSERT_TRUE(packed);
  size_t byHash = 0;
  for (size_t at = 0; at < packed->size(); ++at) {
    std::vector<std::byte> damaged = *packed;
    damaged[at] ^= std::byte{0x04};
    Status status = parseArtifact(damaged, "flip.plim").status();
    ASSERT_FALSE(status) << at;
    byHash += status.message() ==
              "'flip.plim': A1: damaged, its content does not have the hash it records; copy or compile it again";
  }
  EXPECT_GT(byHash, 100u);
}

TEST(ArtifactFile, acceptsAFileWithoutAHash) {
  artifact::ArtifactT artifact = tinyArtifact();
  flatbuffers::FlatBufferBuilder builder;
  artifact::FinishArtifactBuffer(builder, artifact::Artifact::Pack(builder, &artifact));
  std::vector<std::byte> bytes(builder.GetSize());
  memcpy(bytes.data(), builder.GetBufferPointer(), bytes.size());
  EXPECT_EQ(contentHashPosition(bytes), std::nullopt);
  EXPECT_TRUE(parseArtifact(bytes, "plain.plim"));
}

// A thousand tables that all name one text of 100,000 bytes: small on disk, 100 MB unpacked.
TEST(ArtifactFile, refusesSharedPayload) {
  flatbuffers::FlatBufferBuilder builder;
  auto text = builder.CreateString(std::string(100000, 'x'));
  std::vector<flatbuffers::Offset<Kernel>> kernels;
  for (int i = 0; i < 1000; ++i)
    kernels.push_back(CreateKernel(builder, 0, text, text));
  auto list = builder.CreateVector(kernels);
  ArtifactBuilder root(builder);
  root.add_format_version(1);
  root.add_kernels(list);
  FinishArtifactBuffer(builder, root.Finish());
  auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  EXPECT_THAT(parseArtifact(bytes, "bomb.plim").status().message(), HasSubstr("A1: parts of the file are shared"));
}

// One table named a million times: the verifier's table limit, which follows the file's size, stops it.
TEST(ArtifactFile, refusesSharedTables) {
  flatbuffers::FlatBufferBuilder builder;
  auto kernel = CreateKernel(builder, 0, builder.CreateString("k"), builder.CreateString("k"));
  auto list = builder.CreateVector(std::vector<flatbuffers::Offset<Kernel>>(1000000, kernel));
  ArtifactBuilder root(builder);
  root.add_format_version(1);
  root.add_kernels(list);
  FinishArtifactBuffer(builder, root.Finish());
  auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  EXPECT_THAT(parseArtifact(bytes, "bomb.plim").status().message(), HasSubstr("A1: damaged or truncated"));
}

// FlatBuffers 2.0.8 checks where a vector's length lies, not its elements: found by ArtifactFuzz under UBSan. The shape
// of a variable is moved by four bytes, onto zeros that read as an empty vector of 64-bit numbers.
TEST(ArtifactFile, refusesMisalignedNumbers) {
  flatbuffers::FlatBufferBuilder builder;
  auto filler = builder.CreateVector(std::vector<int64_t>(4, 0));
  VariableBuilder variable(builder);
  variable.add_shape(filler);
  auto list = builder.CreateVector(std::vector<flatbuffers::Offset<Variable>>{variable.Finish()});
  ArtifactBuilder root(builder);
  root.add_format_version(1);
  root.add_variables(list);
  FinishArtifactBuffer(builder, root.Finish());
  std::vector<std::byte> bytes(builder.GetSize());
  memcpy(bytes.data(), builder.GetBufferPointer(), bytes.size());
  const auto *made = reinterpret_cast<const flatbuffers::Table *>(GetArtifact(bytes.data())->variables()->Get(0));
  auto *reference = const_cast<uint8_t *>(made->GetAddressOf(Variable::VT_SHAPE));
  flatbuffers::WriteScalar(reference, flatbuffers::ReadScalar<uint32_t>(reference) + 4);
  EXPECT_THAT(parseArtifact(bytes, "odd.plim").status().message(),
              HasSubstr("A1: numbers in the file do not lie on their alignment"));
}
