// What planning asks of a compilation target: code for kernel groups and scratch sizes of library calls. lib/Codegen/CPU is one.
#pragma once

#include "dialects/Graph/Graph.h"
#include "lib/Codegen/Kernel.h"
#include "runtime/Core/Backend.h"

#include <string>

namespace plimsoll {

class CompileTarget {
public:
  virtual ~CompileTarget() = default;
  /// Adds code for `group`; equal groups with equal layouts share a kernel. Emits an error on the group when it has no code.
  virtual mlir::FailureOr<KernelInfo> addKernel(graph::GroupOp group, llvm::ArrayRef<OperandLayout> inputs, llvm::ArrayRef<OperandLayout> outputs) = 0;
  /// Scratch bytes a library call needs on this target.
  virtual Result<uint64_t> workspaceBytes(const runtime::CallSpec &call) = 0;
};

} // namespace plimsoll
