// From kernels in MLIR to machine code: MLIR to LLVM IR, LLVM's optimizer and code generator, LLD.
#pragma once

#include "lib/Codegen/CPU/CpuKernels.h"

#include "llvm/ADT/SmallString.h"

namespace plimsoll::codegen {

/// Loads the dialects kernels are written in.
void loadKernelDialects(mlir::MLIRContext *context);

/// Lowers every function of `module` to the LLVM dialect, in place.
mlir::LogicalResult lowerToLLVMDialect(mlir::ModuleOp module);

/// Compiles modules in the LLVM dialect to one object file each, in order, on up to two threads. False with a reason
/// when LLVM refuses.
bool compileToObjects(llvm::ArrayRef<mlir::ModuleOp> modules, const ResolvedCpu &cpu,
                      std::vector<llvm::SmallString<0>> &objects, std::string &error);

/// Links objects into a shared object. False with a reason when the linker refuses or a symbol outside libm is
/// undefined.
bool linkSharedObject(llvm::ArrayRef<llvm::SmallString<0>> objects, std::vector<uint8_t> &image, std::string &error);

} // namespace plimsoll::codegen
