// What the files of the recognition pass share: looking through constants, broadcasts and unit dimensions.
#pragma once

#include "dialects/Graph/Graph.h"

#include "mlir/IR/PatternMatch.h"

#include <optional>

namespace plimsoll::recognize {

void addActivationPatterns(mlir::RewritePatternSet &patterns);
void addNormPatterns(mlir::RewritePatternSet &patterns);
void addAttentionPatterns(mlir::RewritePatternSet &patterns);
void addLossPatterns(mlir::RewritePatternSet &patterns);
void addViewPatterns(mlir::RewritePatternSet &patterns);

/// The number that every element of `value` is, seen through broadcasts, reshapes and conversions.
std::optional<double> splatNumber(mlir::Value value);
/// Whether `value` is `expected` everywhere, to rounding (relative 1e-5).
bool isNumber(mlir::Value value, double expected);
bool closeTo(double found, double expected);
/// The value below reshapes that only add or drop size-1 dimensions.
mlir::Value peelUnitDims(mlir::Value value);
/// The value below type conversions between floats.
mlir::Value peelConvert(mlir::Value value);
/// The per-row value that `value` (shape `shape`) repeats over the dimensions from `axis` on: of shape shape[:axis], or
/// that with trailing size-1 dims. Null when it is not such a broadcast.
mlir::Value rowStatistic(mlir::Value value, llvm::ArrayRef<int64_t> shape, int64_t axis);
/// If `value` is the mean of something over all dimensions from some axis on, that something; sets `axis`.
mlir::Value meanOperand(mlir::Value value, int64_t &axis);
/// The two operands of a commutative op in both orders: calls `match(a, b)` until it answers true.
bool eitherOrder(mlir::Value lhs, mlir::Value rhs, llvm::function_ref<bool(mlir::Value, mlir::Value)> match);
/// Whether `value` is `op(operand)`.
template <typename Op> mlir::Value operandOf(mlir::Value value) {
  auto op = value ? value.getDefiningOp<Op>() : Op();
  return op ? op->getOperand(0) : mlir::Value();
}

} // namespace plimsoll::recognize
