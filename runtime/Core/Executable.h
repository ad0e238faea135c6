// A plan turned into flat records: every address, kernel and library call is resolved at load, so running an entry is a
// loop over an array.
#pragma once

#include "plimsoll/Support/Status.h"
#include "runtime/Artifact/RuntimeBytes.h"
#include "runtime/Core/Backend.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace plimsoll::runtime {

/// One command, ready to run. Pointers are into arenas or owned by the Executable.
struct StepRecord {
  enum class Kind : uint8_t { Launch, Call, Copy, Record, Wait };
  Kind kind = Kind::Launch;
  uint16_t stream = 0;
  uint32_t operandCount = 0;
  void *const *operands = nullptr; ///< Launch, Call
  union {
    KernelFunction kernel = nullptr; ///< Launch
    PreparedCall *call;              ///< Call
    const void *source;              ///< Copy
  };
  union {
    void *workspace = nullptr; ///< Call
    void *target;              ///< Copy
  };
  int64_t extent = 0;   ///< Launch: iterations; Copy: bytes; Record, Wait: event
  int64_t grain = 0;    ///< Launch
  uint32_t command = 0; ///< index into Entry.commands, for messages
};
static_assert(sizeof(StepRecord) <= artifact::kStepRecordBytes, "the promised size of a record");

/// One entry, ready to run.
struct ExecutableEntry {
  const artifact::EntryT *entry = nullptr;
  std::vector<StepRecord> steps;   ///< exactly one per command
  std::vector<void *> operands;    ///< addresses of all launches and calls, one after the other
  std::vector<uint64_t> arenaEnds; ///< per arena: end of the highest byte a command or port can touch

  /// Bytes of the two tables.
  uint64_t tableBytes() const { return steps.size() * artifact::kStepRecordBytes + operands.size() * sizeof(void *); }
};

/// A plan on a backend: arenas, kernels, prepared calls and entries.
struct Executable {
  std::vector<void *> arenas;          ///< base addresses, owned by the backend
  std::vector<KernelFunction> kernels; ///< per artifact kernel; null for kernels of other machines
  std::vector<std::unique_ptr<PreparedCall>> calls;
  std::vector<ExecutableEntry> entries; ///< in plan order
};

/// Address of `view`'s first element (its offset, not its lowest byte) for `entry` of `plan`.
void *addressOf(const artifact::SealedPlanT &plan, const artifact::EntryT &entry, const artifact::TensorViewT &view,
                std::span<void *const> arenas);

/// Loads the kernel modules that `backend` can run and finds their symbols. `format` is the module format of the
/// target ("cpu-elf"). Fails with BadInput naming the module's kernels.
Result<std::vector<KernelFunction>> loadKernels(const artifact::ArtifactT &artifact, const std::string &format,
                                                Backend &backend);

/// Resolves all entries of `plan` into `executable` (arenas and kernels are there already). Fails with BadInput (a call
/// the backend refuses, a kernel of another machine) or VersionMismatch (a call that needs more workspace here than was
/// planned); the message names entry, command and label.
Status resolveEntries(const artifact::SealedPlanT &plan, Backend &backend, Executable &executable);

} // namespace plimsoll::runtime
