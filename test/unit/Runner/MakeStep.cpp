// Writes the step artifact and its data for the tools' tests: make-step FOLDER.
//   step.plim      the artifact            greedy.plim  the same with a process promise nothing can keep
//   x.npy          f32 [8, 3]              nan.npy      the same with a NaN in sample 5
#include "StepArtifact.h"

#include "runtime/Artifact/Files.h"
#include "runtime/Artifact/Writer.h"
#include "tools/plimsoll-run/TensorFiles.h"

#include <cmath>
#include <cstdio>
#include <cstring>

using namespace plimsoll;

namespace {

Status writeArray(const std::string &path, bool withNan) {
  float values[24];
  for (int i = 0; i < 24; ++i)
    values[i] = static_cast<float>((i * 7 + 3) % 11) * 0.1f - 0.5f;
  if (withNan)
    values[16] = std::nanf("");
  runtime::OwnedTensor tensor{"x", artifact::DType::F32, {8, 3}, std::vector<std::byte>(sizeof values)};
  std::memcpy(tensor.bytes.data(), values, sizeof values);
  return runtime::writeTensors(path, {tensor});
}

Status makeAll(const std::string &folder) {
  if (Status status = writeArtifact(folder + "/step.plim", test::stepArtifact()); !status)
    return status;
  if (Status status = writeArtifact(folder + "/greedy.plim", test::stepArtifact({1 << 10, 4096})); !status)
    return status;
  if (Status status = writeArray(folder + "/x.npy", false); !status)
    return status;
  return writeArray(folder + "/nan.npy", true);
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: make-step FOLDER\n");
    return 2;
  }
  Status status = makeAll(argv[1]);
  if (!status)
    fprintf(stderr, "make-step: %s\n", status.message().c_str());
  return static_cast<int>(status.code());
}
