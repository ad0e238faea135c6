// CPU code generation: kernel groups in, one ELF shared object out.
#pragma once

#include "dialects/Graph/Graph.h"
#include "lib/Codegen/Kernel.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <string>
#include <vector>

namespace plimsoll::codegen {

/// The machine kernels are made for: "native" (this one), "x86-64-v3" (AVX2, FMA, F16C) or "x86-64-v4" (AVX-512).
struct CpuTarget {
  std::string cpu = "native";
};

/// A target after "native" was looked up: what LLVM is told, and the vector register size in bytes (32 or 64).
struct ResolvedCpu {
  std::string name;     ///< LLVM's processor name
  std::string features; ///< LLVM's feature string, e.g. "+avx2,+fma"; empty when the name says it all
  unsigned registerBytes = 32;
};

/// Looks the target up; fails with a message on stderr-free `error` for an unknown name or a machine without AVX2.
mlir::FailureOr<ResolvedCpu> resolveCpu(const CpuTarget &target, std::string &error);

/// Collects kernels of one artifact. Equal groups with equal layouts share one. Kernels are named k0, k1, ... in the
/// order they are first added; the same additions give the same bytes. Not thread-safe; finish() uses up to two
/// threads.
class CpuKernelModule {
public:
  /// `context` must outlive the module. An unusable target is reported, at builtin location, by the first add().
  explicit CpuKernelModule(mlir::MLIRContext *context, CpuTarget target = {});

  /// Emits code for `group` (operands in launch order: inputs, then outputs). Storage types: f64, f32, f16, bf16,
  /// integers, i1 as a byte of 0 or 1. Half floats compute in f32. An output may share storage with an input of equal
  /// layout that the group reads element by element (GroupOp::inPlaceOperands). Emits an error on the group when it has
  /// no code.
  mlir::FailureOr<KernelInfo> add(graph::GroupOp group, llvm::ArrayRef<OperandLayout> inputs,
                                  llvm::ArrayRef<OperandLayout> outputs);

  /// Compiles everything added so far to a shared object. Undefined symbols are libm's only. Emits an error and fails
  /// when LLVM or the linker refuses.
  mlir::FailureOr<std::vector<uint8_t>> finish();

  /// What the code needs of a machine, for the artifact's target fields.
  const ResolvedCpu &resolved() const { return cpu; }
  size_t kernelCount() const { return kernels.size(); }

private:
  mlir::MLIRContext *context;
  ResolvedCpu cpu;
  std::string targetError;
  std::map<std::string, KernelInfo> kernels;              ///< by structural key
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules; ///< a few kernels each, in order of addition
};

} // namespace plimsoll::codegen
