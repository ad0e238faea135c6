// Evaluation mode: what PyTorch's module.eval() changes. Dropout disappears, batch_norm normalises with running
// statistics, and nothing is written. Ops that only served a write die with it.
#include "lib/Passes/Passes.h"
#include "lib/Passes/TrainingStep.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"

namespace plimsoll {
#define GEN_PASS_DEF_PLIMSOLLEVALMODE
#include "lib/Passes/Passes.h.inc"
} // namespace plimsoll

using namespace mlir;
using namespace plimsoll::graph;

// (x - running_mean) * rsqrt(running_var + eps), broadcast along channel dimension 1.
static LogicalResult normaliseWithRunning(BatchNormOp op) {
  if (!op.getRunningMean() || !op.getRunningVar())
    return op.emitOpError("has no running statistics, so it has no evaluation mode");
  ImplicitLocOpBuilder builder(op.getLoc(), op);
  Type statistics = op.getMean().getType();
  ArrayRef<int64_t> shape = op.getOperand().getType().getShape();
  auto spread = [&](Value value) {
    value = convert(builder, value, op.getOperand().getType().getElementType());
    return broadcast(builder, value, {1}, shape);
  };
  Value mean = ReadOp::create(builder, statistics, *op.getRunningMean());
  Value variance = ReadOp::create(builder, statistics, *op.getRunningVar());
  Value shifted = AddOp::create(builder, variance, splat(builder, statistics, op.getEpsilon().convertToDouble()));
  Value centred = SubOp::create(builder, op.getOperand(), spread(mean));
  Value result = MulOp::create(builder, centred, spread(RsqrtOp::create(builder, shifted)));
  op.getResult().replaceAllUsesWith(result);
  op.getMean().replaceAllUsesWith(mean);
  op.getVariance().replaceAllUsesWith(variance);
  op.erase();
  return success();
}

LogicalResult plimsoll::toEvalMode(func::FuncOp function) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops) {
    if (auto dropout = dyn_cast<DropoutOp>(op)) {
      dropout.replaceAllUsesWith(dropout.getOperand());
      dropout.erase();
    } else if (isa<WriteOp>(op)) {
      op->erase();
    } else if (auto norm = dyn_cast<BatchNormOp>(op); norm && failed(normaliseWithRunning(norm))) {
      return failure();
    }
  }
  IRRewriter rewriter(function.getContext());
  (void)runRegionDCE(rewriter, function->getRegions());
  return success();
}

namespace {
struct EvalMode : public plimsoll::impl::PlimsollEvalModeBase<EvalMode> {
  void runOnOperation() override {
    if (failed(plimsoll::toEvalMode(getOperation())))
      signalPassFailure();
  }
};
} // namespace
