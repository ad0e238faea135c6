// Folds: constants, identities and views of views. Only rewrites that change no bit of the result.
#include "dialects/Graph/Graph.h"

#include "mlir/Dialect/CommonFolders.h"

using namespace mlir;
using namespace plimsoll::graph;

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

static bool isSplatOf(Attribute attribute, double value) {
  auto elements = dyn_cast_or_null<DenseElementsAttr>(attribute);
  if (!elements || !elements.isSplat())
    return false;
  if (isa<FloatType>(elements.getElementType())) {
    double splat = elements.getSplatValue<APFloat>().convertToDouble();
    return splat == value && !(value == 0 && std::signbit(splat) != std::signbit(value));
  }
  return elements.getElementType().isSignlessInteger() && elements.getSplatValue<APInt>().getSExtValue() == static_cast<int64_t>(value);
}

// x + (-0.0) is x for every x; x + (+0.0) turns -0.0 into +0.0, so only integers fold on plain zero.
OpFoldResult AddOp::fold(FoldAdaptor adaptor) {
  double zero = isFloatTensor(getType()) ? -0.0 : 0.0;
  if (isSplatOf(adaptor.getRhs(), zero))
    return getLhs();
  if (isSplatOf(adaptor.getLhs(), zero))
    return getRhs();
  return {};
}
OpFoldResult SubOp::fold(FoldAdaptor adaptor) { return isSplatOf(adaptor.getRhs(), 0.0) ? OpFoldResult(getLhs()) : OpFoldResult(); }
OpFoldResult MulOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getRhs(), 1.0))
    return getLhs();
  return isSplatOf(adaptor.getLhs(), 1.0) ? OpFoldResult(getRhs()) : OpFoldResult();
}
OpFoldResult DivOp::fold(FoldAdaptor adaptor) { return isSplatOf(adaptor.getRhs(), 1.0) ? OpFoldResult(getLhs()) : OpFoldResult(); }
OpFoldResult PowOp::fold(FoldAdaptor adaptor) { return isSplatOf(adaptor.getRhs(), 1.0) ? OpFoldResult(getLhs()) : OpFoldResult(); }

OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  if (getOnTrue() == getOnFalse())
    return getOnTrue();
  if (isSplatOf(adaptor.getPredicate(), -1.0))
    return getOnTrue();
  return isSplatOf(adaptor.getPredicate(), 0.0) ? OpFoldResult(getOnFalse()) : OpFoldResult();
}

OpFoldResult ConvertOp::fold(FoldAdaptor) { return getOperand().getType() == getType() ? OpFoldResult(getOperand()) : OpFoldResult(); }

// A splat constant seen through any view is a splat of the view's type.
static OpFoldResult foldSplat(Attribute operand, Type type) {
  auto elements = dyn_cast_or_null<DenseElementsAttr>(operand);
  return elements && elements.isSplat() ? OpFoldResult(elements.resizeSplat(cast<ShapedType>(type))) : OpFoldResult();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  return foldSplat(adaptor.getOperand(), getType());
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  if (auto elements = dyn_cast_or_null<DenseElementsAttr>(adaptor.getOperand()))
    return elements.reshape(getType());
  if (auto inner = getOperand().getDefiningOp<ReshapeOp>()) {
    setOperand(inner.getOperand());
    return getResult();
  }
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  ArrayRef<int64_t> perm = getPerm();
  if (llvm::all_of(llvm::enumerate(perm), [](auto pair) { return static_cast<int64_t>(pair.index()) == pair.value(); }))
    return getOperand();
  if (auto inner = getOperand().getDefiningOp<TransposeOp>()) {
    SmallVector<int64_t> composed;
    for (int64_t source : perm)
      composed.push_back(inner.getPerm()[source]);
    setPerm(composed);
    setOperand(inner.getOperand());
    return getResult();
  }
  return foldSplat(adaptor.getOperand(), getType());
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  return foldSplat(adaptor.getOperand(), getType());
}

OpFoldResult ReduceSumOp::fold(FoldAdaptor) { return getDims().empty() ? OpFoldResult(getOperand()) : OpFoldResult(); }
OpFoldResult ReduceMaxOp::fold(FoldAdaptor) { return getDims().empty() ? OpFoldResult(getOperand()) : OpFoldResult(); }
