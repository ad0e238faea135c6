// How the evaluator's rule files meet its driver: one frame per op, one function per family of ops.
#pragma once

#include "lib/Reference/Evaluate.h"

namespace plimsoll::reference {

/// One op being evaluated: operand values, and results preset to zeros of the result types for the rule to fill. Rules
/// compute unrounded; the driver rounds afterwards.
struct Frame {
  mlir::Operation *op;
  llvm::ArrayRef<const HostTensor *> in;
  llvm::MutableArrayRef<HostTensor> out;
};

/// Each returns true when the op belongs to its family and was evaluated, false when it does not belong, failure after
/// an error was emitted at the op.
mlir::FailureOr<bool> evaluateElementwise(Frame &frame);
mlir::FailureOr<bool> evaluateShape(Frame &frame);
mlir::FailureOr<bool> evaluateMovement(Frame &frame);
mlir::FailureOr<bool> evaluateLinear(Frame &frame);
mlir::FailureOr<bool> evaluateConv(Frame &frame);
mlir::FailureOr<bool> evaluateWhole(Frame &frame);
mlir::FailureOr<bool> evaluateAttention(Frame &frame);

/// Copies elements: out element i takes `from` element source(index of i); a negative source leaves the element as is.
void remap(const HostTensor &from, HostTensor &to, llvm::function_ref<int64_t(llvm::ArrayRef<int64_t>)> source);

/// A tensor seen as rows along some dimensions: calls `visit(row)` with the row-major positions of each row's elements,
/// rows in row-major order of the other dimensions. `dims` must be strictly increasing.
void forEachRow(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> dims,
                llvm::function_ref<void(int64_t, llvm::ArrayRef<int64_t>)> visit);

/// Philox4x32-10 uniform number in [0, 1) of `element` (GraphOps.td, random_uniform): a multiple of 2^-24.
double philoxUniform(uint64_t seed, uint64_t step, uint64_t opId, uint64_t element);

} // namespace plimsoll::reference
