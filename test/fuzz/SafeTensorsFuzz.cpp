// Attacks on the safetensors reader: truncation at every byte and seeded random damage. Whatever is accepted has
// tensors that lie inside the file and can be read to the last byte.
#include "runtime/Core/SafeTensors.h"
#include "test/unit/Runtime/TinyArtifact.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

using namespace plimsoll;
using namespace plimsoll::runtime;
using namespace plimsoll::test;

namespace {

std::vector<std::byte> sample() {
  TemporaryFolder folder;
  std::vector<std::byte> data(64, std::byte{5});
  std::span<const std::byte> bytes(data);
  std::vector<NamedTensor> tensors = {{"layer.0.weight", artifact::DType::F32, {2, 3}, bytes.first(24)},
                                      {"layer.0.bias", artifact::DType::F16, {3}, bytes.first(6)},
                                      {"steps", artifact::DType::I64, {}, bytes.first(8)}};
  EXPECT_TRUE(writeSafeTensors(folder.path("w"), tensors, {{"step", "3"}}));
  std::string text = slurp(folder.path("w"));
  std::vector<std::byte> content(text.size());
  memcpy(content.data(), text.data(), text.size());
  return content;
}

bool survives(const std::vector<std::byte> &bytes) {
  auto read = SafeTensors::parse(bytes, "fuzz");
  if (!read) {
    EXPECT_EQ(read.status().code(), ExitCode::BadInput);
    EXPECT_FALSE(read.status().message().empty());
    return false;
  }
  unsigned sum = 0;
  for (const NamedTensor &tensor : read->tensors()) {
    EXPECT_GE(tensor.bytes.data(), bytes.data());
    EXPECT_LE(tensor.bytes.data() + tensor.bytes.size(), bytes.data() + bytes.size());
    for (std::byte byte : tensor.bytes)
      sum += static_cast<unsigned>(byte);
  }
  EXPECT_LT(sum, 1u << 20);
  return true;
}

} // namespace

TEST(SafeTensorsFuzz, truncatedAtEveryByte) {
  std::vector<std::byte> whole = sample();
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(survives({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)})) << size;
  EXPECT_TRUE(survives(whole));
}

TEST(SafeTensorsFuzz, randomDamage) {
  std::vector<std::byte> whole = sample();
  size_t header = whole.size() - 38; // everything but the tensors' bytes, which may hold anything
  std::mt19937_64 random(3);
  int accepted = 0;
  for (int round = 0; round < 20000 && !HasFailure(); ++round) {
    std::vector<std::byte> damaged = whole;
    for (uint64_t flips = 1 + random() % 3; flips > 0; --flips)
      damaged[random() % header] ^= std::byte{1} << random() % 8;
    accepted += survives(damaged);
  }
  EXPECT_LT(accepted, 10000);
}
