// The compiler on one page. After each phase verifyStage() states what may still exist.
#include "lib/Pipeline/Pipeline.h"

#include "dialects/Graph/Graph.h"
#include "dialects/Plan/Plan.h"
#include "lib/Codegen/CPU/CpuKernels.h"
#include "lib/Emit/Emit.h"
#include "lib/Frontend/ONNX/Import.h"
#include "lib/Passes/Chunk.h"
#include "lib/Passes/LowerToPlan.h"
#include "lib/Passes/Passes.h"
#include "plimsoll/Support/Units.h"
#include "runtime/Artifact/Hash.h"
#include "runtime/CPU/CpuBackend.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FormatVariadic.h"

#include <filesystem>
#include <thread>

using namespace mlir;
using namespace plimsoll;

std::optional<Phase> plimsoll::parsePhase(StringRef name) {
  static constexpr StringLiteral names[] = {"imported", "bound",   "precise", "differentiated",
                                            "fused",    "planned", "plan",    "artifact"};
  for (auto [index, known] : llvm::enumerate(names))
    if (known == name)
      return static_cast<Phase>(index);
  return std::nullopt;
}

onnx::ImportOptions plimsoll::importOptions(const Recipe &recipe) {
  onnx::ImportOptions import;
  import.modelPath = recipe.model;
  import.bindings = recipe.bindings;
  import.loss = recipe.loss;
  import.lossOutput = recipe.lossOutput;
  import.lossName = recipe.lossName;
  import.ignoreIndex = recipe.ignoreIndex;
  import.freeze = recipe.freeze;
  import.buffers = recipe.buffers;
  import.trainBatchNorm = recipe.trainBatchNorm;
  return import;
}

namespace {
/// Kernels by lib/Codegen/CPU, scratch sizes by asking the CPU backend itself.
class CpuCompileTarget : public CompileTarget {
public:
  CpuCompileTarget(MLIRContext &context, const codegen::CpuTarget &target, unsigned workers)
      : module(&context, target), threads(workers) {}
  FailureOr<KernelInfo> addKernel(graph::GroupOp group, ArrayRef<OperandLayout> inputs,
                                  ArrayRef<OperandLayout> outputs) override {
    return module.add(group, inputs, outputs);
  }
  Result<uint64_t> workspaceBytes(const runtime::CallSpec &call) override {
    return runtime::cpuWorkspaceBytes(call, threads);
  }

  codegen::CpuKernelModule module;
  unsigned threads;
};

/// The stated constant of process memory: code and libraries (measured 11 to 13 MB), the stacks and pools of threads,
/// what oneDNN's convolutions bring in once (up to 6 MB), and what it keeps for each (generated code and descriptors,
/// at most 40 KB); measured over 27 models (test/integration/make_oracles.py).
uint64_t processConstant(plan::ProgramOp program, unsigned threads) {
  constexpr uint64_t base = uint64_t{16} << 20, perThread = uint64_t{1} << 20;
  constexpr uint64_t anyConvolution = uint64_t{6} << 20, perConvolution = uint64_t{40} << 10;
  uint64_t convolutions = 0;
  program.walk([&](plan::CallOp call) { convolutions += call.getCallee().starts_with("conv"); });
  return base + threads * perThread + (convolutions ? anyConvolution : 0) + convolutions * perConvolution;
}

/// One compilation: the state that the phases hand on.
class Compilation {
public:
  Compilation(const CompileOptions &chosen, CompileReport &told, llvm::raw_ostream &printed, llvm::raw_ostream &errors)
      : options(chosen), report(told), ir(printed),
        handler(context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
            errors << "error: " << diagnostic << "\n";
          for (Diagnostic &note : diagnostic.getNotes())
            errors << "  note: " << note << "\n";
        })) {
    context.loadDialect<graph::GraphDialect, plan::PlanDialect, func::FuncDialect>();
  }
  ~Compilation() { context.getDiagEngine().eraseHandler(handler); }

  Status run() {
    if (Status status = import(); !status || stopsAt(Phase::Imported))
      return status;
    if (Status status = transform(Phase::Bound,
                                  [](OpPassManager &pm) {
                                    pm.addPass(createCanonicalizerPass());
                                    pm.addPass(createCSEPass());
                                    pm.addPass(createPlimsollRecognize());
                                  });
        !status || stopsAt(Phase::Bound) || stopsAt(Phase::Precise))
      return status;
    chunkLosses(imported.module->lookupSymbol<func::FuncOp>("forward"), options.recipe.chunks);
    if (failed(buildTrainingStep(*imported.module, options.recipe.optimizer)))
      return Status(ExitCode::Unsupported, "the model cannot be trained as it stands; see the errors above");
    if (Status status = transform(Phase::Differentiated,
                                  [](OpPassManager &pm) {
                                    pm.addPass(createCanonicalizerPass());
                                    pm.addPass(createCSEPass());
                                    pm.addNestedPass<func::FuncOp>(createPlimsollInterleave());
                                  });
        !status || stopsAt(Phase::Differentiated))
      return status;
    if (Status status =
            transform(Phase::Fused, [](OpPassManager &pm) { pm.addNestedPass<func::FuncOp>(createPlimsollFuse()); });
        !status || stopsAt(Phase::Fused))
      return status;
    outlineConstants(*imported.module);
    if (Status status = transform(Phase::Planned,
                                  [](OpPassManager &pm) {
                                    pm.addNestedPass<func::FuncOp>(createPlimsollMaterialize());
                                    pm.addNestedPass<func::FuncOp>(createPlimsollSchedule());
                                  });
        !status || stopsAt(Phase::Planned))
      return status;
    return options.problemFolder.empty() ? emit() : emitProblems();
  }

private:
  bool stopsAt(Phase phase) {
    if (options.stopAfter != phase)
      return false;
    OpPrintingFlags flags;
    flags.elideLargeElementsAttrs(64).elideLargeResourceString(64);
    imported.module->print(ir, flags);
    return true;
  }

  Status import() {
    Status status = onnx::importModel(context, importOptions(options.recipe), imported);
    report.import = imported.report;
    return status ? verified(Phase::Imported) : status;
  }

  template <typename Build> Status transform(Phase phase, Build build) {
    PassManager manager(&context);
    build(manager);
    if (failed(manager.run(*imported.module)))
      return internalError("a pass failed; see the errors above");
    return verified(phase);
  }

  Status verified(Phase phase) {
    return succeeded(verifyStage(*imported.module, phase))
               ? Status::ok()
               : internalError("the program is inconsistent after a phase; see the errors above");
  }

  unsigned threadCount() const {
    return options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  }

  // What the planner is asked, for others to solve: nothing is planned and no kernel is finished.
  Status emitProblems() {
    codegen::CpuTarget cpu;
    cpu.cpu = options.cpu;
    CpuCompileTarget target(context, cpu, threadCount());
    LowerOptions lowering;
    lowering.costs = CostModel(options.recipe.profile(), threadCount());
    return writeProblems(*imported.module, target, lowering, options.problemFolder);
  }

  Status emit() {
    unsigned threads = threadCount();
    codegen::CpuTarget cpu;
    cpu.cpu = options.cpu;
    CpuCompileTarget target(context, cpu, threads);
    LowerOptions lowering;
    lowering.costs = CostModel(options.recipe.profile(), threads);
    lowering.budgetBytes = options.recipe.budgetBytes;
    Result<plan::ProgramOp> program = lowerToPlan(*imported.module, target, lowering);
    if (!program && program.status().code() == ExitCode::DoesNotFit)
      return Status(ExitCode::DoesNotFit,
                    program.status().message() +
                        "\nraise --budget, or bind a smaller batch and raise --accumulation to match");
    if (!program)
      return program.status();
    if (Status status = verified(Phase::Plan); !status || stopsAt(Phase::Plan))
      return status;
    FailureOr<std::vector<uint8_t>> kernels = target.module.finish();
    if (failed(kernels))
      return internalError("code generation failed; see the errors above");
    EmitInput input{*imported.module,     *program, imported.weights, std::move(*kernels), {}, {}, {}, 0,
                    options.stagingBytes, 0};
    input.processConstantBytes = processConstant(*program, threads);
    input.budgetBytes = options.recipe.budgetBytes.value_or(0);
    input.bindings.assign(options.recipe.bindings.begin(), options.recipe.bindings.end());
    input.target.kind = "cpu";
    input.target.cpu = target.module.resolved().name;
    input.target.features = target.module.resolved().features;
    input.target.triple = "x86_64-linux-gnu";
    input.target.threads = threads;
    input.target.libraries = "oneDNN 2.6";
    if (Status status = fillProvenance(input.provenance); !status)
      return status;
    summarise(*program, input);
    return emitArtifact(options.outputPath, std::move(input));
  }

  Status fillProvenance(artifact::ProvenanceT &provenance) {
    const Recipe &recipe = options.recipe;
    provenance.compiler = "plimsoll 0.1.0";
    provenance.model_name = std::filesystem::path(recipe.model).filename().string();
    Result<std::string> hash = hashFile(recipe.model);
    if (!hash)
      return hash.status();
    provenance.model_hash = *hash;
    provenance.recipe_json = recipe.toJson();
    provenance.recipe_hash = hashText(hash64(std::string_view(provenance.recipe_json)));
    provenance.flags = options.flags;
    return Status::ok();
  }

  void summarise(plan::ProgramOp program, const EmitInput &input) {
    llvm::raw_string_ostream text(report.summary);
    for (auto arena : program.getBody().getOps<plan::ArenaOp>())
      text << "arena         " << groupedDigits(arena.getBytes()) << " bytes (" << humanBytes(arena.getBytes())
           << "), allocated once\n";
    for (auto entry : program.getBody().getOps<plan::EntryOp>()) {
      size_t commands = llvm::count_if(entry.getBody().front(), [](Operation &op) { return !isa<plan::BufferOp>(op); });
      text << llvm::formatv("{0,-14}", entry.getSymName()) << commands << " commands, peak "
           << groupedDigits(entry.getPeakBytes()) << " bytes, no plan of this order below "
           << groupedDigits(entry.getLiveBytes()) << "\n";
    }
  }

  const CompileOptions &options;
  CompileReport &report;
  llvm::raw_ostream &ir;
  MLIRContext context;
  DiagnosticEngine::HandlerID handler;
  onnx::ImportResult imported;
};
} // namespace

Status plimsoll::compile(const CompileOptions &options, CompileReport &report, llvm::raw_ostream &ir,
                         llvm::raw_ostream &errors) {
  if (Status status = options.recipe.check(); !status)
    return status;
  return Compilation(options, report, ir, errors).run();
}
