// Registers the graph dialect and defines the shorthand builders of Graph.h.
#include "dialects/Graph/Graph.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace plimsoll::graph;

#include "dialects/Graph/GraphDialect.cpp.inc"
#include "dialects/Graph/GraphEnums.cpp.inc"
#include "dialects/Graph/GraphInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Graph/GraphAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Graph/GraphOps.cpp.inc"

void GraphDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Graph/GraphAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Graph/GraphOps.cpp.inc"
      >();
}

Operation *GraphDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  return elements && elements.getType() == type ? ConstantOp::create(builder, loc, elements).getOperation() : nullptr;
}

namespace plimsoll::graph {

Value splat(ImplicitLocOpBuilder &builder, Type type, double value) {
  auto tensor = cast<RankedTensorType>(type);
  Type element = tensor.getElementType();
  Attribute scalar = isa<FloatType>(element) ? Attribute(builder.getFloatAttr(element, value))
                                             : Attribute(builder.getIntegerAttr(element, static_cast<int64_t>(value)));
  return ConstantOp::create(builder, DenseElementsAttr::get(tensor, scalar));
}

static Type reducedType(Value operand, ArrayRef<int64_t> dims) {
  RankedTensorType type = tensorType(operand);
  SmallVector<int64_t> shape;
  for (int64_t d = 0; d < type.getRank(); ++d)
    if (!llvm::is_contained(dims, d))
      shape.push_back(type.getDimSize(d));
  return tensorLike(type, shape);
}

Value reduceSum(ImplicitLocOpBuilder &builder, Value operand, ArrayRef<int64_t> dims) {
  return dims.empty() ? operand : ReduceSumOp::create(builder, reducedType(operand, dims), operand, dims).getResult();
}
Value reduceMax(ImplicitLocOpBuilder &builder, Value operand, ArrayRef<int64_t> dims) {
  return dims.empty() ? operand : ReduceMaxOp::create(builder, reducedType(operand, dims), operand, dims).getResult();
}

Value broadcast(ImplicitLocOpBuilder &builder, Value operand, ArrayRef<int64_t> dims, ArrayRef<int64_t> shape) {
  if (tensorType(operand).getShape() == shape)
    return operand;
  return BroadcastOp::create(builder, tensorLike(operand.getType(), shape), operand, dims);
}

Value broadcastBack(ImplicitLocOpBuilder &builder, Value reduced, ArrayRef<int64_t> dims, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> kept;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d)
    if (!llvm::is_contained(dims, d))
      kept.push_back(d);
  return dims.empty() ? reduced : BroadcastOp::create(builder, tensorLike(reduced.getType(), shape), reduced, kept).getResult();
}

Value reshape(ImplicitLocOpBuilder &builder, Value operand, ArrayRef<int64_t> shape) {
  if (tensorType(operand).getShape() == shape)
    return operand;
  return ReshapeOp::create(builder, tensorLike(operand.getType(), shape), operand);
}

Value transpose(ImplicitLocOpBuilder &builder, Value operand, ArrayRef<int64_t> perm) {
  SmallVector<int64_t> shape;
  for (int64_t source : perm)
    shape.push_back(tensorType(operand).getDimSize(source));
  return TransposeOp::create(builder, tensorLike(operand.getType(), shape), operand, perm);
}

Value convert(ImplicitLocOpBuilder &builder, Value operand, Type element) {
  RankedTensorType type = tensorType(operand);
  if (type.getElementType() == element)
    return operand;
  return ConvertOp::create(builder, RankedTensorType::get(type.getShape(), element), operand);
}

Value compare(ImplicitLocOpBuilder &builder, CompareDirection direction, Value lhs, Value rhs) {
  auto type = RankedTensorType::get(tensorType(lhs).getShape(), builder.getI1Type());
  return CompareOp::create(builder, type, direction, lhs, rhs);
}

} // namespace plimsoll::graph
