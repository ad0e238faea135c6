// A small artifact with one of everything, made in code, and the numbers it computes.
//
//   variables  0 w f32[4] parameter (file), 1 m f32[4] optimizer state of w (zeros), 2 seed i64[2] step state (7),
//              3 two f32[4] constant (2)
//   train_step x f32[4], lr f32[] -> loss f32[]
//              0 launch mul    h = x * w                 4 wait  0 (stream 1)
//              1 call   copy   t = h                     5 copy    t2 -> kept, on the host (stream 1)
//              2 launch add    t2 = t + two, in place    6 record 1 (stream 1)   7 wait 1
//              3 record 0                                8 call   sum  loss = sum(kept), with a workspace
//                                                        9 launch sgd  w -= lr * t2, m += t2
//   eval_step  x f32[4] -> y f32[4]: 0 launch mul
//
// Device arena of 1024 bytes: w 0, m 64, seed 128, two 192, then x 256, lr 320, h 384, t and t2 448, loss 512,
// scratch 576 (train_step); x 256, y 320 (eval_step). Host arena of 64 bytes: kept 0.
#pragma once

#include "runtime/Artifact/Artifact_generated.h"

#include <memory>
#include <string>

namespace plimsoll::test {

/// The artifact above; valid under every rule. train_step has a proof whose statements are true.
artifact::ArtifactT tinyArtifact();
/// The problem text in the proof of train_step.
const char *tinyProblem();

/// Row-major strides of `shape`.
std::vector<int64_t> denseStrides(const std::vector<int64_t> &shape);
std::unique_ptr<artifact::TensorViewT> makeView(uint32_t buffer, artifact::DType dtype, std::vector<int64_t> shape);

/// Buffer numbers as views use them.
enum TinyBuffer : uint32_t { W, M, Seed, Two, X, Lr, H, T, T2, Loss, Scratch, Kept };

/// A new, empty folder below the system's temporary one, removed with everything in it on destruction.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string path(const std::string &name) const { return folder + "/" + name; }
  const std::string &root() const { return folder; }

private:
  std::string folder;
};

/// Content of a file, or "<missing>".
std::string slurp(const std::string &path);
/// Overwrites a file.
void spill(const std::string &path, std::string_view content);

/// Limits the size of files this process writes while it exists; writes beyond it fail with EFBIG as on a full disk.
class FileSizeLimit {
public:
  explicit FileSizeLimit(uint64_t bytes);
  ~FileSizeLimit();

private:
  uint64_t previous;
};

} // namespace plimsoll::test
