// Where a value's elements lie: views resolved to a strided window of the value they look into.
#pragma once

#include "dialects/Graph/Graph.h"

#include <optional>

namespace plimsoll {

/// Elements of a view inside the storage of `base` (an argument, a read, or the result of an op that owns storage):
/// element (i, j, ...) lies at offset + i*strides[0] + j*strides[1] + ..., all in elements.
struct StorageWindow {
  mlir::Value base;
  int64_t offset = 0;
  llvm::SmallVector<int64_t> strides;
};

/// Row-major strides of a dense tensor.
llvm::SmallVector<int64_t> denseStrides(llvm::ArrayRef<int64_t> shape);

/// Window of `value`; none when a reshape on the way cannot be expressed by strides (Materialize removes those).
std::optional<StorageWindow> windowOf(mlir::Value value);

/// Whether the window walks memory like a dense row-major tensor of `shape` (size-1 dimensions may have any stride).
bool isDense(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides);

/// Whether `value` is all elements of its base in the base's order: the base itself, or a reshape of it.
bool isWholeStorage(mlir::Value value);

/// Whether a state write may take `value`: all of an op's result, not (a part of) an argument or of a variable.
bool hasOwnStorage(mlir::Value value);

} // namespace plimsoll
