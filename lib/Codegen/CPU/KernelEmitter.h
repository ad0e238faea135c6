// The one kernel skeleton: parallel indices outside, passes over the reduced dimensions inside, lanes innermost.
#pragma once

#include "lib/Codegen/CPU/LoopSpace.h"

#include "mlir/IR/BuiltinOps.h"

namespace plimsoll::codegen {

/// Adds `func.func @symbol(!llvm.ptr operands, i64 begin, i64 end)` for the group to `module` and returns how to launch
/// it. `registerBytes` is the target's vector register size (32 or 64).
KernelInfo emitKernel(mlir::ModuleOp module, llvm::StringRef symbol, graph::GroupOp group, const LoopSpace &space,
                      unsigned registerBytes);

} // namespace plimsoll::codegen
