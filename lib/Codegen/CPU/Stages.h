// Splits a group's region into passes over the reduced dimensions.
#pragma once

#include "dialects/Graph/Graph.h"

#include "llvm/ADT/DenseMap.h"

namespace plimsoll::codegen {

/// The order of a group's work for one parallel index. Pass p sees every reduction of earlier passes finished;
/// full-space values are recomputed from operands in each pass that needs them; full-space results are written in the
/// last pass only, after every operand element was read for the last time.
struct Stages {
  /// Pass in which a full-space value becomes computable, or before which a parallel one is.
  llvm::DenseMap<mlir::Value, unsigned> level;
  /// Reductions of each pass, in region order. Empty passes do not occur but for a last one that only writes.
  llvm::SmallVector<llvm::SmallVector<mlir::Operation *>> reductions;
  bool hasFullResults = false;
};

Stages buildStages(graph::GroupOp group);

/// Rough cost of one element of the region's full-space ops, in simple vector instructions (exp counts 16).
unsigned bodyWeight(graph::GroupOp group);

} // namespace plimsoll::codegen
