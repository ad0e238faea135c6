// What each phase guarantees, checked by machine (STYLE: "each phase ends in a verifier that lists every violation").
//   Differentiated  the entries exist and @forward's loss roles are gone
//   Fused           outside kernel groups only groups, library ops, views, reads, writes and constants remain
//   Planned         as Fused, and every view resolves to a strided window
//   Plan            one plan.program exists
#include "lib/Passes/Layout.h"
#include "lib/Pipeline/Pipeline.h"

#include "dialects/Plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace plimsoll;

static bool isFused(Operation &op) {
  return isa<graph::GroupOp, graph::ReadOp, graph::WriteOp, graph::ConstantOp, func::ReturnOp>(op) ||
         op.hasTrait<graph::GraphLibrary>() || op.hasTrait<graph::GraphView>();
}

static LogicalResult verifyFused(ModuleOp module) {
  bool fine = true;
  for (auto function : module.getOps<func::FuncOp>())
    for (Operation &op : function.getBody().front())
      if (!isFused(op)) {
        op.emitOpError("is outside every kernel group after fusion");
        fine = false;
      }
  return success(fine);
}

static LogicalResult verifyWindows(ModuleOp module) {
  bool fine = true;
  for (auto function : module.getOps<func::FuncOp>())
    for (Operation &op : function.getBody().front())
      if (op.hasTrait<graph::GraphView>() && !windowOf(op.getResult(0))) {
        op.emitOpError("is not a strided window after materialisation");
        fine = false;
      }
  return success(fine);
}

static LogicalResult verifyEntries(ModuleOp module) {
  bool trains =
      module.lookupSymbol("train_step") || (module.lookupSymbol("accumulate") && module.lookupSymbol("apply"));
  return trains && module.lookupSymbol("eval_step")
             ? success()
             : module.emitError("expected train_step, or accumulate and apply, and eval_step");
}

LogicalResult plimsoll::verifyStage(ModuleOp module, Phase phase) {
  if (failed(verify(module)))
    return failure();
  if (phase >= Phase::Differentiated && failed(verifyEntries(module)))
    return failure();
  if (phase >= Phase::Fused && failed(verifyFused(module)))
    return failure();
  if (phase >= Phase::Planned && failed(verifyWindows(module)))
    return failure();
  if (phase >= Phase::Plan && module.getOps<plan::ProgramOp>().empty())
    return module.emitError("expected a plan.program");
  return success();
}
