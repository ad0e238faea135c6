// A tensor in host memory as the reference evaluator holds it: floats widened to double, integers to int64.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include <cstdint>
#include <vector>

namespace plimsoll::reference {

/// Elements in row-major order. Exactly one of `floats` and `ints` is filled: `floats` for float element types, `ints`
/// for integers and booleans (0 or 1).
struct HostTensor {
  mlir::RankedTensorType type;
  std::vector<double> floats;
  std::vector<int64_t> ints;

  bool isFloat() const { return mlir::isa<mlir::FloatType>(type.getElementType()); }
  llvm::ArrayRef<int64_t> shape() const { return type.getShape(); }
  int64_t size() const { return type.getNumElements(); }

  /// All zeros of a static ranked tensor type.
  static HostTensor zeros(mlir::Type type);
  /// `values` must have one entry per element and match the element class (float or integer).
  static HostTensor ofFloats(mlir::Type type, std::vector<double> values);
  static HostTensor ofInts(mlir::Type type, std::vector<int64_t> values);
};

/// `value` rounded to nearest even in `element` (a float type).
double roundToElement(double value, mlir::Type element);
/// `value` wrapped to the width and signedness of `element` (an integer type); i1 keeps the lowest bit.
int64_t wrapToElement(int64_t value, mlir::Type element);
/// Rounds or wraps every element to the tensor's own element type.
void roundInPlace(HostTensor &tensor);

/// The literal's elements. Fails on an ElementsAttr that is neither dense nor a dense resource.
mlir::FailureOr<HostTensor> fromAttribute(mlir::ElementsAttr value);
/// Dense little-endian bytes in row-major order, as the runtime stores a tensor (i1 takes one byte), and back.
/// fromBytes fails when `bytes` has another size than the type needs.
std::vector<char> toBytes(const HostTensor &tensor);
mlir::FailureOr<HostTensor> fromBytes(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes);

/// Row-major element strides of a dense tensor of `shape`.
llvm::SmallVector<int64_t> denseStrides(llvm::ArrayRef<int64_t> shape);
/// Calls `visit` with every index of `shape` in row-major order (never when a dimension is 0).
void forEachIndex(llvm::ArrayRef<int64_t> shape, llvm::function_ref<void(llvm::ArrayRef<int64_t>)> visit);
/// Row-major position of `index` in `shape`.
int64_t linearIndex(llvm::ArrayRef<int64_t> index, llvm::ArrayRef<int64_t> shape);

} // namespace plimsoll::reference
