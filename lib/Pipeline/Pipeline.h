// The compiler on one page: from a model file to an artifact, phase by phase.
#pragma once

#include "lib/Frontend/ONNX/Import.h"
#include "lib/Pipeline/Recipe.h"
#include "plimsoll/Support/Status.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace plimsoll {

/// Where compilation may stop. Each phase ends in verifyStage (VerifyStage.cpp), which states what may still exist.
enum class Phase { Imported, Bound, Precise, Differentiated, Fused, Planned, Plan, Artifact };

/// "imported", "bound", ... ; nullopt for any other text.
std::optional<Phase> parsePhase(llvm::StringRef name);

struct CompileOptions {
  Recipe recipe;
  std::string outputPath;            ///< artifact; weights are written beside it
  Phase stopAfter = Phase::Artifact; ///< earlier phases print their IR to `ir` instead
  std::string problemFolder;         ///< not empty: write each entry's planner problem there and stop
  std::string cpu = "native";        ///< native, x86-64-v3 or x86-64-v4
  unsigned threads = 0;              ///< threads the artifact runs with; 0 = one per processor here
  uint64_t stagingBytes = 4u << 20;  ///< bytes of the data files the runner may keep resident
  std::string flags;                 ///< the command line, for provenance
};

/// What `recipe` decides about the import: the same for compiling and for lint.
onnx::ImportOptions importOptions(const Recipe &recipe);

/// What a compilation has to say.
struct CompileReport {
  onnx::ImportReport import;
  std::string summary; ///< promised memory and entries, as text
};

/// Compiles options.recipe.model. Diagnostics of passes go through MLIR's handler of a context of its own to `errors`.
Status compile(const CompileOptions &options, CompileReport &report, llvm::raw_ostream &ir, llvm::raw_ostream &errors);

/// Checks what `phase` guarantees: lists every op that may not exist any more.
mlir::LogicalResult verifyStage(mlir::ModuleOp module, Phase phase);

} // namespace plimsoll
