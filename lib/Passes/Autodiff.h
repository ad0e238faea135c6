// Reverse-mode differentiation of graph functions.
#pragma once

#include "dialects/Graph/Graph.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace plimsoll {

/// The gradients of `loss` with respect to `wrt`, built at `builder`'s insertion point, which must come after every
/// forward op of the single-block `function` that `loss` depends on.
///
/// `seed` is the cotangent of the loss, of its type (any shape); null means ones. Returns one value per entry of `wrt`,
/// of its type; null where no differentiable path leads to the loss. Nothing is emitted for values off such paths.
/// Several uses of a value add up in reverse order of the uses. Everything built carries the location of its forward
/// op, fused with the tag "gradient".
///
/// Fails, with one error naming all of them, when ops on a path have no adjoint; and on a function of several blocks, a
/// loss that is not a float, or a seed of another type.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> differentiate(mlir::func::FuncOp function, mlir::Value loss,
                                                              mlir::Value seed, llvm::ArrayRef<mlir::Value> wrt,
                                                              mlir::OpBuilder &builder);

/// `sum` + `product`, as a dot_add in the sum's storage, so that the product needs none of its own. Erases `product`,
/// which nothing may use.
mlir::Value accumulateProduct(mlir::ImplicitLocOpBuilder &builder, mlir::Value sum, graph::DotOp product);

} // namespace plimsoll
