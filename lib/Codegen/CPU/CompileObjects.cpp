// LLVM IR to object code. Modules are compiled independently, so the bytes do not depend on how threads share them.
#include "lib/Codegen/CPU/Lower.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

using namespace mlir;

namespace plimsoll::codegen {

static std::string featureText(const llvm::StringMap<bool> &features) {
  std::vector<std::string> names;
  for (const auto &feature : features)
    names.push_back((feature.second ? "+" : "-") + feature.first().str());
  std::sort(names.begin(), names.end()); // the map's order is a hash order
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ",") + name;
  return text;
}

FailureOr<ResolvedCpu> resolveCpu(const CpuTarget &target, std::string &error) {
  if (target.cpu == "x86-64-v3")
    return ResolvedCpu{target.cpu, "", 32};
  if (target.cpu == "x86-64-v4")
    return ResolvedCpu{target.cpu, "", 64};
  if (target.cpu != "native") {
    error = "unknown cpu '" + target.cpu + "', expected native, x86-64-v3 or x86-64-v4; pass one of these with --cpu";
    return failure();
  }
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  if (!features.lookup("avx2") || !features.lookup("fma") || !features.lookup("f16c")) {
    error = "this machine's processor has no AVX2, FMA and F16C, which generated kernels need; compile with "
            "--cpu=x86-64-v3 for another machine";
    return failure();
  }
  bool wide = features.lookup("avx512f") && features.lookup("avx512vl") && features.lookup("avx512bw") &&
              features.lookup("avx512dq");
  return ResolvedCpu{llvm::sys::getHostCPUName().str(), featureText(features), wide ? 64u : 32u};
}

static std::unique_ptr<llvm::TargetMachine> makeMachine(const ResolvedCpu &cpu, std::string &error) {
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard; // a multiply and an add fuse only where written as one
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, cpu.name, cpu.features, options, llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

// Vector registers at full width; loops stay loops (no calls to memset and its kin).
static void annotate(llvm::Module &module, const ResolvedCpu &cpu) {
  std::string bits = std::to_string(cpu.registerBytes * 8);
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", cpu.name);
    if (!cpu.features.empty())
      function.addFnAttr("target-features", cpu.features);
    function.addFnAttr("prefer-vector-width", bits);
    function.addFnAttr("min-legal-vector-width", bits);
    function.addFnAttr("no-builtins");
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning; // kernels are vector code already
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager moduleAnalyses;
  builder.registerModuleAnalyses(moduleAnalyses);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, moduleAnalyses);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, moduleAnalyses);
}

static bool compile(llvm::Module &module, const ResolvedCpu &cpu, llvm::SmallString<0> &object, std::string &error) {
  std::unique_ptr<llvm::TargetMachine> machine = makeMachine(cpu, error);
  if (!machine)
    return false;
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  annotate(module, cpu);
  optimize(module, *machine);
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    error = "LLVM cannot emit an object file for " + cpu.name;
    return false;
  }
  passes.run(module);
  return true;
}

namespace {
/// One module in its own LLVM context, so that modules can be compiled side by side.
struct Unit {
  std::unique_ptr<llvm::LLVMContext> context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> module;
};
} // namespace

bool compileToObjects(ArrayRef<ModuleOp> modules, const ResolvedCpu &cpu, std::vector<llvm::SmallString<0>> &objects,
                      std::string &error) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  std::vector<Unit> units(modules.size());
  for (auto [unit, module] : llvm::zip(units, modules)) {
    unit.module = translateModuleToLLVMIR(module, *unit.context, "plimsoll-kernels");
    if (!unit.module) {
      error = "kernels do not translate to LLVM IR";
      return false;
    }
  }
  objects.assign(modules.size(), {});
  std::atomic<size_t> next{0};
  std::atomic<bool> fine{true};
  std::mutex errorLock;
  auto work = [&] {
    for (size_t i = next++; i < units.size(); i = next++) {
      std::string reason;
      if (compile(*units[i].module, cpu, objects[i], reason))
        continue;
      fine = false;
      std::lock_guard<std::mutex> guard(errorLock);
      error = reason;
    }
  };
  unsigned threads = std::min<unsigned>(2, std::max(1u, std::thread::hardware_concurrency()));
  std::thread helper;
  if (threads > 1 && units.size() > 1)
    helper = std::thread(work);
  work();
  if (helper.joinable())
    helper.join();
  return fine;
}

} // namespace plimsoll::codegen
