// A kernel group's iteration space as loops: which dimensions remain after merging, and how each operand walks them.
#pragma once

#include "dialects/Graph/Graph.h"
#include "lib/Codegen/Kernel.h"

#include "llvm/ADT/DenseMap.h"

namespace plimsoll::codegen {

/// One loop. Merged dimensions are one loop over their product.
struct LoopDim {
  int64_t size = 1;
  bool reduced = false;
};

/// One linear walk over the space: an operand read, an output write, or an iota's value. `strides` has one entry per
/// loop (elements; 0 where the element does not change).
struct Walk {
  llvm::SmallVector<int64_t> strides;
  mlir::Type element;   ///< storage element type
  unsigned operand = 0; ///< index into the kernel's operand table (inputs, then outputs); unused for iota
  bool full = true;     ///< over the iteration space (else over its parallel part)
  bool isIota = false;
};

/// The loops of a group. `lane` is the dimension whose elements go into vector lanes, -1 for a single element.
struct LoopSpace {
  llvm::SmallVector<LoopDim> dims;
  llvm::SmallVector<Walk> walks;
  int lane = -1;
  /// Walk of a region value: an argument read in place, a broadcast of an argument, or an iota.
  llvm::DenseMap<mlir::Value, unsigned> reads;
  /// Walk of each output, in order.
  llvm::SmallVector<unsigned> writes;

  bool laneReduced() const { return lane >= 0 && dims[lane].reduced; }
  int64_t laneSize() const { return lane < 0 ? 1 : dims[lane].size; }
};

/// How a value of a group's region relates to the iteration space.
enum class Extent { Full, Parallel, Other };
Extent extentOf(graph::GroupOp group, mlir::Value value);
/// Iteration dimensions that are not reduced, in order.
llvm::SmallVector<int64_t> parallelDims(graph::GroupOp group);

/// Reads the group's walks, merges dimensions that every walk crosses with one stride, and picks the lane dimension:
/// the one along which most bytes are contiguous. Fails, with an error on the group, on a layout of the wrong rank or a
/// value that is not local to one parallel index.
mlir::FailureOr<LoopSpace> buildLoopSpace(graph::GroupOp group, llvm::ArrayRef<OperandLayout> inputs,
                                          llvm::ArrayRef<OperandLayout> outputs);

} // namespace plimsoll::codegen
