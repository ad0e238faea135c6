// Sharing of equal kernels, and the way from kernels to bytes.
#include "lib/Codegen/CPU/CpuKernels.h"

#include "lib/Codegen/CPU/KernelEmitter.h"
#include "lib/Codegen/CPU/KernelKey.h"
#include "lib/Codegen/CPU/Lower.h"

using namespace mlir;

namespace plimsoll::codegen {

/// Kernels compiled together: large enough to spread LLVM's fixed cost, small enough to keep two threads busy.
static constexpr size_t kernelsPerModule = 8;

CpuKernelModule::CpuKernelModule(MLIRContext *owner, CpuTarget target) : context(owner) {
  loadKernelDialects(context);
  FailureOr<ResolvedCpu> resolved = resolveCpu(target, targetError);
  if (succeeded(resolved))
    cpu = *resolved;
}

FailureOr<KernelInfo> CpuKernelModule::add(graph::GroupOp group, ArrayRef<OperandLayout> inputs,
                                           ArrayRef<OperandLayout> outputs) {
  if (!targetError.empty())
    return group.emitOpError(targetError);
  std::string key = kernelKey(group, inputs, outputs);
  auto known = kernels.find(key);
  if (known != kernels.end())
    return known->second;
  FailureOr<LoopSpace> space = buildLoopSpace(group, inputs, outputs);
  if (failed(space))
    return failure();
  if (kernels.size() % kernelsPerModule == 0)
    modules.push_back(ModuleOp::create(UnknownLoc::get(context)));
  KernelInfo info = emitKernel(*modules.back(), "k" + std::to_string(kernels.size()), group, *space, cpu.registerBytes);
  return kernels.emplace(std::move(key), info).first->second;
}

FailureOr<std::vector<uint8_t>> CpuKernelModule::finish() {
  Location location = UnknownLoc::get(context);
  SmallVector<ModuleOp> lowered;
  for (OwningOpRef<ModuleOp> &module : modules) {
    if (failed(lowerToLLVMDialect(*module)))
      return failure();
    lowered.push_back(*module);
  }
  std::vector<llvm::SmallString<0>> objects;
  std::vector<uint8_t> image;
  std::string error = targetError;
  if (!error.empty() || !compileToObjects(lowered, cpu, objects, error) || !linkSharedObject(objects, image, error))
    return emitError(location, error);
  return image;
}

} // namespace plimsoll::codegen
