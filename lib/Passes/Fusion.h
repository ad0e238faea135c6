// The three steps of --plimsoll-fuse: prepare a function, decide what runs together, build the groups.
#pragma once

#include "dialects/Graph/Graph.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

#include <vector>

namespace plimsoll::fusion {

/// An iteration space: its shape, and which dimensions a reduction removes (empty = elementwise).
struct Space {
  llvm::SmallVector<int64_t> iteration;
  llvm::SmallVector<int64_t> reduced;

  llvm::SmallVector<int64_t> parallelDims() const;
  llvm::SmallVector<int64_t> parallelShape() const;
  bool operator==(const Space &other) const { return iteration == other.iteration && reduced == other.reduced; }
};

/// Ops that run as one kernel, in block order.
struct Group {
  Space space;
  std::vector<mlir::Operation *> members;
};

/// Whether a group may hold the op as work of its own (elementwise or reduction).
bool isRoot(mlir::Operation *op);
/// Whether consumers take a private copy of the op: broadcasts, index values and splat constants.
bool isCloned(mlir::Operation *op);

/// Expands whole ops, composes broadcasts and drops size-1 dimensions of fusible ops (reshapes, which are views, take
/// their place at the borders), so that values that share an iteration space also share a shape.
void prepare(mlir::func::FuncOp function);

/// Partitions the root ops of a prepared function into groups and gives every op its place: `order` lists one
/// representative per group (its first member) and every other op, in an order that respects data and state.
struct Partition {
  std::vector<Group> groups;
  llvm::DenseMap<mlir::Operation *, unsigned> groupOf;
  std::vector<mlir::Operation *> order;
  bool complete = true; ///< false if no such order exists
};
Partition partition(mlir::func::FuncOp function);

/// Replaces every group of the partition by a graph.group.
void build(mlir::func::FuncOp function, const Partition &partition);

} // namespace plimsoll::fusion
