// Graph dialect to plan dialect: the only place that knows both.
#pragma once

#include "dialects/Plan/Plan.h"
#include "lib/Codegen/Target.h"
#include "lib/Passes/CostModel.h"
#include "plimsoll/Planner/Solution.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace plimsoll {

struct LowerOptions {
  uint64_t alignment = 64; ///< bytes; one cache line
  CostModel costs;         ///< of the machine the program runs on
  planner::PlanOptions plan;
  std::optional<uint64_t> budgetBytes; ///< arena bytes no entry may exceed
};

/// Moves tensor constants that live outside kernel groups into variables of kind constant, so that all data has one
/// home.
void outlineConstants(mlir::ModuleOp module);

/// Writes the planner problem of every entry, as it is before any decision, to FOLDER/<entry>.problem (ProblemText.h).
/// Same requirements as lowerToPlan(). Fails with BadInput when a file cannot be written.
Status writeProblems(mlir::ModuleOp module, CompileTarget &target, const LowerOptions &options, llvm::StringRef folder);

/// Appends a plan.program that holds the plan of every entry function. The first buffers are the module's variables, in
/// order. Fails when an op has no command, a kernel has no code (error on the op), or the budget is too small
/// (DoesNotFit).
Result<plan::ProgramOp> lowerToPlan(mlir::ModuleOp module, CompileTarget &target, const LowerOptions &options);

} // namespace plimsoll
