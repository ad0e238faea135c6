// Writing an entry's outputs to files: all of them to one safetensors file, or one to a .npy file.
#pragma once

#include "plimsoll/Support/Status.h"
#include "runtime/Artifact/Artifact_generated.h"

#include <cstddef>
#include <string>
#include <vector>

namespace plimsoll::runtime {

/// A named tensor that owns its bytes (row-major).
struct OwnedTensor {
  std::string name;
  artifact::DType dtype = artifact::DType::F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};

/// Writes `tensors` to `path` atomically. A path ending in ".npy" takes exactly one tensor (Usage otherwise); every
/// other path gets safetensors. bf16 has no .npy form (Usage).
Status writeTensors(const std::string &path, const std::vector<OwnedTensor> &tensors);

/// The complete .npy (version 1) header for an array, padded so that the data starts at a multiple of 64. Empty for
/// bf16.
std::string npyHeader(artifact::DType dtype, const std::vector<int64_t> &shape);

} // namespace plimsoll::runtime
