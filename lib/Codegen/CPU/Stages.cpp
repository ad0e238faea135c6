// Levels follow the data: a reduction's result is one level above its operand, everything else as high as its operands.
#include "lib/Codegen/CPU/Stages.h"

#include "lib/Codegen/CPU/LoopSpace.h"

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::codegen {

Stages buildStages(GroupOp group) {
  Stages stages;
  unsigned passes = 0;
  for (Operation &op : group.getBody().front().without_terminator()) {
    unsigned level = 0;
    for (Value operand : op.getOperands())
      level = std::max(level, stages.level.lookup(operand));
    if (isa<ReduceSumOp, ReduceMaxOp>(op)) {
      if (stages.reductions.size() <= level)
        stages.reductions.resize(level + 1);
      stages.reductions[level].push_back(&op);
      ++level;
    }
    stages.level[op.getResult(0)] = level;
  }
  for (Value value : group.getBody().front().getTerminator()->getOperands())
    if (extentOf(group, value) == Extent::Full) {
      stages.hasFullResults = true;
      passes = std::max(passes, stages.level.lookup(value) + 1);
    }
  if (stages.reductions.size() < passes)
    stages.reductions.resize(passes);
  return stages;
}

unsigned bodyWeight(GroupOp group) {
  unsigned weight = 0;
  for (Operation &op : group.getBody().front().without_terminator()) {
    if (extentOf(group, op.getResult(0)) != Extent::Full)
      continue;
    if (isa<PowOp>(op))
      weight += 80;
    else if (isa<SinOp, CosOp>(op))
      weight += 50;
    else if (isa<ExpOp, LogOp, Log1pOp, TanhOp, ErfOp, SigmoidOp>(op))
      weight += 18;
    else if (isa<DivOp, SqrtOp, RsqrtOp, ReciprocalOp>(op))
      weight += 3;
    else
      weight += 1;
  }
  return weight;
}

} // namespace plimsoll::codegen
