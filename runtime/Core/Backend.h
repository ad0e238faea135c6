// The backend interface: everything the executor asks of a machine, in ten calls. runtime/CPU is the embedded default.
// A backend owns memory and streams; it never sees a plan, only addresses, kernels and prepared library calls.
#pragma once

#include "plimsoll/Support/Status.h"
#include "runtime/Artifact/Artifact_generated.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::runtime {

/// A strided tensor operand as a library call sees it at load time: no address yet.
struct TensorSpec {
  artifact::DType dtype = artifact::DType::F32;
  std::vector<int64_t> shape;   ///< elements per dimension
  std::vector<int64_t> strides; ///< in elements; 0 = broadcast
  artifact::Access access = artifact::Access::Read;
};

/// A library operation with everything known about it at load time. Also what the compiler asks workspace sizes for.
struct CallSpec {
  std::string op;                                   ///< "dot", "conv", ... (docs/Artifact.md)
  std::vector<TensorSpec> operands;                 ///< without the workspace operand
  std::vector<artifact::AttributeT> attributes;
};

/// A library call made ready at load: primitives created, shapes checked. execute() allocates nothing.
class PreparedCall {
public:
  virtual ~PreparedCall() = default;
  /// Runs the call. `operands` are the addresses in CallSpec order; `workspace` has at least workspaceBytes() bytes.
  virtual void execute(std::span<void *const> operands, void *workspace) = 0;
  /// Scratch bytes this call needs (64-byte aligned), 0 when none.
  virtual uint64_t workspaceBytes() const { return 0; }
};

/// Entry point of a generated kernel: operand addresses in Launch order, and the half-open range of parallel
/// iterations to run. Must be callable concurrently on disjoint ranges.
using KernelFunction = void (*)(void *const *operands, int64_t begin, int64_t end);

/// One device (or the host) that can execute a plan. Not thread-safe: one session drives one backend.
class Backend {
public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;

  /// Allocates an arena of `bytes` at `alignment`, zero-filled. Called once per arena, at load only.
  virtual Result<void *> allocateArena(artifact::Tier tier, uint64_t bytes, uint32_t alignment) = 0;
  virtual void freeArena(void *base) = 0;

  /// Loads a kernel module (CPU: an ELF shared object in memory) and finds `symbols` in it, in order.
  virtual Result<std::vector<KernelFunction>> loadModule(std::span<const uint8_t> image, std::span<const std::string> symbols) = 0;

  /// Checks and prepares a library call; fails with the reason when operands do not satisfy the operation's rules.
  virtual Result<std::unique_ptr<PreparedCall>> prepare(const CallSpec &spec) = 0;

  /// Runs [0, extent) of a kernel, split over the machine in chunks that are multiples of `grain`.
  virtual void launch(KernelFunction kernel, std::span<void *const> operands, int64_t extent, int64_t grain, unsigned stream) = 0;
  virtual void execute(PreparedCall &call, std::span<void *const> operands, void *workspace, unsigned stream) = 0;
  virtual void copy(void *target, const void *source, uint64_t bytes, unsigned stream) = 0;
  virtual void recordEvent(unsigned event, unsigned stream) = 0;
  virtual void waitEvent(unsigned event, unsigned stream) = 0;
  /// Returns when everything enqueued on every stream has finished; a fault seen by a kernel since the last call (an
  /// index out of range, say) is returned as BadInput and cleared.
  virtual Status synchronize() = 0;

  /// True when every call above has finished its work on return (streams run in order on the caller's thread), so that
  /// synchronize() is only a look for faults. The session then asks after each library call and can name the command.
  virtual bool runsInOrder() const { return true; }
};

} // namespace plimsoll::runtime
