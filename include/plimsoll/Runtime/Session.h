// A Session runs one artifact: opens and verifies it, allocates its arenas once, holds the training state, and executes
// entries. No allocation happens inside run(). Not thread-safe.
#pragma once

#include "plimsoll/Support/Status.h"
#include "runtime/Artifact/Artifact_generated.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::runtime {

struct SessionOptions {
  unsigned threads = 0;        ///< worker threads; 0 = as many as the artifact was compiled for
  bool referenceKernels = false; ///< run library calls by the naive reference kernels (the oracle)
  std::string weightsPath;     ///< safetensors with initial values; empty = Artifact.weights_file beside the artifact
};

/// Memory as measured, beside what the artifact promised (artifact().plans[0]->memory).
struct MemoryReport {
  uint64_t arenaBytes = 0;         ///< allocated arenas with alignment
  uint64_t runtimeBytes = 0;       ///< session tables and step heap
  uint64_t arenaAllocations = 0;   ///< number of arena allocations made (one per arena)
  uint64_t touchedPeakBytes = 0;   ///< highest arena byte any executed command or port could touch
};

class Session {
public:
  /// Opens and verifies `artifactPath`, allocates arenas and loads kernels. State is uninitialised until initialize() or
  /// a checkpoint fills it. Fails with BadInput (damaged or hostile file) or VersionMismatch (format, CPU, library).
  static Result<std::unique_ptr<Session>> open(const std::string &artifactPath, const SessionOptions &options = {});
  virtual ~Session() = default;

  /// The artifact as verified, unpacked. The images of its kernel modules are dropped once they are loaded, and so are
  /// the proofs of its plans, which nothing needs to run them.
  virtual const artifact::ArtifactT &artifact() const = 0;

  /// Fills every variable with its initial value (zeros, constant, or the weights file). The file beside the artifact
  /// must be that of the compilation (size, hash, no link); one named by SessionOptions.weightsPath must have the
  /// tensors. Everything is checked before the first byte is written.
  virtual Status initialize() = 0;

  /// The entry called `name` in plan 0, or null.
  virtual const artifact::EntryT *entry(std::string_view name) const = 0;

  /// Bytes of an input or output port, laid out contiguously (row-major). Inputs are written before run(); outputs are
  /// valid from the end of run(entry) to the next write or run. Fails with Usage naming the ports that exist.
  virtual Result<std::span<std::byte>> input(std::string_view entryName, std::string_view port) = 0;
  virtual Result<std::span<const std::byte>> output(std::string_view entryName, std::string_view port) = 0;

  /// Bytes of a persistent variable (parameter, optimizer slot, step counter...) by index into artifact().variables.
  virtual std::span<std::byte> variable(size_t index) = 0;

  /// Executes one entry to its end. Allocates nothing (small requests of libraries are served by the step heap in
  /// executables that link PlimsollStepHeap). A kernel fault (index out of range) is BadInput, names the command and,
  /// on the CPU, ends the run there: the commands after it, such as the update, have not run.
  virtual Status run(std::string_view entryName) = 0;

  virtual MemoryReport memory() const = 0;
};

} // namespace plimsoll::runtime
