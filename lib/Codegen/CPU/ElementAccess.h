// Reading and writing lanes of an operand: contiguous, repeated or strided, whole or masked, with storage conversions.
#pragma once

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace plimsoll::codegen {

/// How one access meets memory. Lane i lies `stride` elements after lane i - 1; `width` lanes, 1 = a plain scalar.
struct LaneAccess {
  mlir::Type element; ///< storage element type, as in the tensor
  int64_t stride = 1;
  unsigned width = 1;
  mlir::Value mask; ///< lanes that exist (vector of i1); null = all
};

/// Loads lanes at `pointer` (the first lane's element) and converts them to the compute type.
mlir::Value loadLanes(mlir::ImplicitLocOpBuilder &builder, mlir::Value pointer, const LaneAccess &access);
/// Converts `value` (compute type) to storage and writes its lanes.
void storeLanes(mlir::ImplicitLocOpBuilder &builder, mlir::Value value, mlir::Value pointer, const LaneAccess &access);
/// `base` advanced by `elements` (i64) of `element`'s storage type.
mlir::Value advance(mlir::ImplicitLocOpBuilder &builder, mlir::Value base, mlir::Value elements, mlir::Type element);
/// The type of one element in memory: booleans take a byte, bf16 is handled as its 16 bits.
mlir::Type storageType(mlir::Type element);

} // namespace plimsoll::codegen
