// Helpers shared by the adjoint rules (GraphGrads.cpp, GraphGradsWhole.cpp): precision, scalars and summing.
#pragma once

#include "dialects/Graph/Graph.h"

namespace plimsoll::graph {

/// `value` in the type its statistics are taken in: single precision for the half types, otherwise unchanged. Rules of
/// more than one rounding compute in it and round once, with narrow().
inline mlir::Value widen(mlir::ImplicitLocOpBuilder &builder, mlir::Value value) {
  bool half = tensorType(value).getElementType().getIntOrFloatBitWidth() < 32;
  return half ? convert(builder, value, builder.getF32Type()) : value;
}
/// `value` in the element type of `like`.
inline mlir::Value narrow(mlir::ImplicitLocOpBuilder &builder, mlir::Value value, mlir::Type like) {
  return convert(builder, value, mlir::cast<mlir::RankedTensorType>(like).getElementType());
}

inline mlir::Value add(mlir::ImplicitLocOpBuilder &builder, mlir::Value x, mlir::Value y) {
  return AddOp::create(builder, x, y);
}
inline mlir::Value sub(mlir::ImplicitLocOpBuilder &builder, mlir::Value x, mlir::Value y) {
  return SubOp::create(builder, x, y);
}
inline mlir::Value mul(mlir::ImplicitLocOpBuilder &builder, mlir::Value x, mlir::Value y) {
  return MulOp::create(builder, x, y);
}
inline mlir::Value div(mlir::ImplicitLocOpBuilder &builder, mlir::Value x, mlir::Value y) {
  return DivOp::create(builder, x, y);
}
inline mlir::Value neg(mlir::ImplicitLocOpBuilder &builder, mlir::Value x) { return NegOp::create(builder, x); }
/// factor*x and x + term with a number for every element.
inline mlir::Value scaled(mlir::ImplicitLocOpBuilder &builder, mlir::Value x, double factor) {
  return mul(builder, x, splat(builder, x.getType(), factor));
}
inline mlir::Value shifted(mlir::ImplicitLocOpBuilder &builder, mlir::Value x, double term) {
  return add(builder, x, splat(builder, x.getType(), term));
}
/// on_true where the predicate holds, else on_false: how rules mask, so that 0*infinity never arises.
inline mlir::Value select(mlir::ImplicitLocOpBuilder &builder, mlir::Value predicate, mlir::Value onTrue,
                          mlir::Value onFalse) {
  return SelectOp::create(builder, predicate, onTrue, onFalse);
}
inline mlir::Value zerosLike(mlir::ImplicitLocOpBuilder &builder, mlir::Value value) {
  return splat(builder, value.getType(), 0.0);
}
/// x + y where null means zero.
inline mlir::Value addOrNull(mlir::ImplicitLocOpBuilder &builder, mlir::Value x, mlir::Value y) {
  return x && y ? add(builder, x, y) : (x ? x : y);
}

/// Adjoint of BroadcastOp(dims): sums `cotangent` over the repeated dimensions down to `type`.
mlir::Value sumToOperand(mlir::ImplicitLocOpBuilder &builder, mlir::Value cotangent, llvm::ArrayRef<int64_t> dims,
                         mlir::RankedTensorType type);

} // namespace plimsoll::graph
