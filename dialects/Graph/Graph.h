// The graph dialect's C++ face: interface vocabulary (Adjoint, OpCost, ...), traits and generated classes.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <cstdint>

namespace plimsoll::graph {

/// What DifferentiableOpInterface::buildAdjoint gets: where to build, the cotangents of the results (null = zero), and
/// which operands need one.
struct Adjoint {
  mlir::ImplicitLocOpBuilder &builder;
  llvm::ArrayRef<mlir::Value> cotangents;
  llvm::ArrayRef<bool> wanted;
};

/// Forward values an adjoint reads, by operand and result number.
struct AdjointUses {
  llvm::SmallVector<unsigned> operands;
  llvm::SmallVector<unsigned> results;
};

/// Work of one execution: floating-point operations, bytes moved, scratch bytes.
struct OpCost {
  uint64_t flops = 0;
  uint64_t bytesRead = 0;
  uint64_t bytesWritten = 0;
  uint64_t workspaceBytes = 0;
};

/// How an op stands half precision (DESIGN §4).
enum class PrecisionClass { HalfSafe, KeepFp32, FollowInputs };

/// Bytes of a tensor's elements, row-major and dense; i1 takes one byte.
uint64_t tensorBytes(mlir::Type type);
/// Default answers of the interfaces: one flop per result element; any operand of the result's exact type.
OpCost elementwiseCost(mlir::Operation *op);
llvm::SmallVector<unsigned> elementwiseInPlaceOperands(mlir::Operation *op, unsigned result);

/// Traits (GraphOps.td says what each marks).
template <typename Op> struct GraphElementwise : mlir::OpTrait::TraitBase<Op, GraphElementwise> {};
template <typename Op> struct GraphView : mlir::OpTrait::TraitBase<Op, GraphView> {};
template <typename Op> struct GraphLibrary : mlir::OpTrait::TraitBase<Op, GraphLibrary> {};

/// `tensor<shape x element of like>`.
inline mlir::RankedTensorType tensorLike(mlir::Type like, llvm::ArrayRef<int64_t> shape) {
  return mlir::RankedTensorType::get(shape, mlir::cast<mlir::RankedTensorType>(like).getElementType());
}
inline mlir::RankedTensorType tensorType(mlir::Value value) { return mlir::cast<mlir::RankedTensorType>(value.getType()); }
/// Whether the element type is a float (and so can carry a gradient).
inline bool isFloatTensor(mlir::Type type) {
  auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
  return tensor && mlir::isa<mlir::FloatType>(tensor.getElementType());
}

} // namespace plimsoll::graph

#include "dialects/Graph/GraphDialect.h.inc"
#include "dialects/Graph/GraphEnums.h.inc"
#include "dialects/Graph/GraphInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Graph/GraphAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/Graph/GraphOps.h.inc"

namespace plimsoll::graph {

/// Builders that pick the result type: shorthand for importers, adjoints and decompositions.
/// splat: every element `value` (converted to the element type). scalarLike broadcasts nothing: it makes a full constant.
mlir::Value splat(mlir::ImplicitLocOpBuilder &builder, mlir::Type type, double value);
/// Sums over `dims` (removed); identity when empty.
mlir::Value reduceSum(mlir::ImplicitLocOpBuilder &builder, mlir::Value operand, llvm::ArrayRef<int64_t> dims);
mlir::Value reduceMax(mlir::ImplicitLocOpBuilder &builder, mlir::Value operand, llvm::ArrayRef<int64_t> dims);
/// Broadcasts `operand`, whose dimension d is result dimension dims[d], to `shape`.
mlir::Value broadcast(mlir::ImplicitLocOpBuilder &builder, mlir::Value operand, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> shape);
/// Undoes reduceX(dims): broadcasts `reduced` back to `shape` along the removed `dims`.
mlir::Value broadcastBack(mlir::ImplicitLocOpBuilder &builder, mlir::Value reduced, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> shape);
mlir::Value reshape(mlir::ImplicitLocOpBuilder &builder, mlir::Value operand, llvm::ArrayRef<int64_t> shape);
mlir::Value transpose(mlir::ImplicitLocOpBuilder &builder, mlir::Value operand, llvm::ArrayRef<int64_t> perm);
mlir::Value convert(mlir::ImplicitLocOpBuilder &builder, mlir::Value operand, mlir::Type element);
mlir::Value compare(mlir::ImplicitLocOpBuilder &builder, CompareDirection direction, mlir::Value lhs, mlir::Value rhs);

} // namespace plimsoll::graph
