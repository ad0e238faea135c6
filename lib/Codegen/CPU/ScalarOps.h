// The scalar region of a kernel group: graph ops as arith/math on one lane or many. Both emitters inline it.
#pragma once

#include "dialects/Graph/Graph.h"

namespace plimsoll::codegen {

/// The type one element is computed in: half floats in f32, unsigned integers in the signless type of their width.
mlir::Type computeType(mlir::Type element);

/// Emits one elementwise op on computed operands (scalars, or 1-D vectors of one length). Null for an op without scalar
/// form. Floats: division and square root are exact, the rest as VectorMath says; f64 functions stay math ops for libm.
/// Integers wrap; a division by zero gives 0; a float out of range converts to the nearest integer, NaN to 0.
mlir::Value emitScalarOp(mlir::ImplicitLocOpBuilder &builder, mlir::Operation *op, mlir::ValueRange operands);

/// The value every element of a splat constant has, in the compute type; null when the constant is no splat.
mlir::Value emitSplat(mlir::ImplicitLocOpBuilder &builder, graph::ConstantOp constant, mlir::Type type);

/// NaN-propagating maximum, or the integer one.
mlir::Value emitMaximum(mlir::ImplicitLocOpBuilder &builder, mlir::Value x, mlir::Value y, bool isUnsigned);
/// Sum of two values of one type.
mlir::Value emitAdd(mlir::ImplicitLocOpBuilder &builder, mlir::Value x, mlir::Value y);

/// Rounds f32 to bf16 (nearest even, NaN stays NaN) and back: `bits` gives the 16 stored bits.
mlir::Value roundToBf16Bits(mlir::ImplicitLocOpBuilder &builder, mlir::Value x);
mlir::Value fromBf16Bits(mlir::ImplicitLocOpBuilder &builder, mlir::Value bits);

} // namespace plimsoll::codegen
