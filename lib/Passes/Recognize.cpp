// Recognition: exporters write softmax attention, norms, activations and losses as many small ops; this pass finds them
// again, because the whole ops are where memory and speed are. A match is only made where the whole op computes the
// same function (up to rounding) and has every gradient that the parts had. Method: common subexpressions first, so
// that equal parts are one value; then greedy bottom-up rewriting, which ends because every rewrite removes small ops
// and adds none that match again.
#include "lib/Passes/Passes.h"
#include "lib/Passes/RecognizePatterns.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <cmath>

namespace plimsoll {
#define GEN_PASS_DEF_PLIMSOLLRECOGNIZE
#include "lib/Passes/Passes.h.inc"
} // namespace plimsoll

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::recognize {

bool closeTo(double found, double expected) { return std::fabs(found - expected) <= 1e-5 * std::fabs(expected); }

std::optional<double> splatNumber(Value value) {
  while (value) {
    Operation *op = value.getDefiningOp();
    if (auto constant = dyn_cast_or_null<ConstantOp>(op)) {
      auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
      if (!elements || !elements.isSplat())
        return std::nullopt;
      if (isa<FloatType>(elements.getElementType()))
        return elements.getSplatValue<APFloat>().convertToDouble();
      if (elements.getElementType().isInteger(1))
        return elements.getSplatValue<bool>() ? 1 : 0;
      return static_cast<double>(elements.getSplatValue<APInt>().getSExtValue());
    }
    if (!isa_and_nonnull<BroadcastOp, ReshapeOp, ConvertOp, TransposeOp>(op))
      return std::nullopt;
    value = op->getOperand(0);
  }
  return std::nullopt;
}

bool isNumber(Value value, double expected) {
  std::optional<double> found = splatNumber(value);
  return found && closeTo(*found, expected);
}

static SmallVector<int64_t> withoutUnits(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> kept(shape.begin(), shape.end());
  llvm::erase(kept, 1);
  return kept;
}

Value peelUnitDims(Value value) {
  while (auto reshape = value ? value.getDefiningOp<ReshapeOp>() : ReshapeOp()) {
    if (withoutUnits(reshape.getType().getShape()) != withoutUnits(tensorType(reshape.getOperand()).getShape()))
      break;
    value = reshape.getOperand();
  }
  return value;
}

Value peelConvert(Value value) {
  while (auto convert = value ? value.getDefiningOp<ConvertOp>() : ConvertOp()) {
    if (!isFloatTensor(convert.getType()) || !isFloatTensor(convert.getOperand().getType()))
      break;
    value = convert.getOperand();
  }
  return value;
}

Value rowStatistic(Value value, ArrayRef<int64_t> shape, int64_t axis) {
  auto broadcast = value ? value.getDefiningOp<BroadcastOp>() : BroadcastOp();
  if (!broadcast || tensorType(value).getShape() != shape)
    return {};
  ArrayRef<int64_t> from = tensorType(broadcast.getOperand()).getShape(),
                    rows = shape.take_front(static_cast<size_t>(axis));
  for (auto [d, dim] : llvm::enumerate(broadcast.getDims()))
    if (dim != static_cast<int64_t>(d))
      return {};
  bool fits = from.size() >= rows.size() && from.take_front(rows.size()) == rows &&
              llvm::all_of(from.drop_front(rows.size()), [](int64_t size) { return size == 1; });
  return fits ? broadcast.getOperand() : Value();
}

Value meanOperand(Value value, int64_t &axis) {
  value = peelUnitDims(value);
  std::optional<double> factor;
  Value sum;
  if (auto div = value ? value.getDefiningOp<DivOp>() : DivOp()) {
    sum = div.getLhs();
    if (std::optional<double> by = splatNumber(div.getRhs()))
      factor = 1 / *by;
  } else if (auto mul = value ? value.getDefiningOp<MulOp>() : MulOp()) {
    sum = mul.getLhs();
    factor = splatNumber(mul.getRhs());
  }
  auto reduce = factor ? peelUnitDims(sum).getDefiningOp<ReduceSumOp>() : ReduceSumOp();
  if (!reduce || reduce.getDims().empty())
    return {};
  ArrayRef<int64_t> shape = tensorType(reduce.getOperand()).getShape();
  axis = static_cast<int64_t>(shape.size() - reduce.getDims().size());
  double count = 1;
  for (auto [i, dim] : llvm::enumerate(reduce.getDims())) {
    if (dim != axis + static_cast<int64_t>(i))
      return {};
    count *= static_cast<double>(shape[static_cast<size_t>(dim)]);
  }
  return closeTo(*factor * count, 1) ? reduce.getOperand() : Value();
}

bool eitherOrder(Value lhs, Value rhs, llvm::function_ref<bool(Value, Value)> match) {
  return match(lhs, rhs) || match(rhs, lhs);
}

} // namespace plimsoll::recognize

namespace {
struct Recognize : plimsoll::impl::PlimsollRecognizeBase<Recognize> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    plimsoll::recognize::addViewPatterns(patterns);
    plimsoll::recognize::addActivationPatterns(patterns);
    plimsoll::recognize::addNormPatterns(patterns);
    plimsoll::recognize::addAttentionPatterns(patterns);
    plimsoll::recognize::addLossPatterns(patterns);
    FrozenRewritePatternSet frozen(std::move(patterns));
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>()) {
      IRRewriter rewriter(&getContext());
      DominanceInfo dominance(function);
      eliminateCommonSubExpressions(rewriter, dominance, function);
      if (failed(applyPatternsGreedily(function, frozen)))
        return signalPassFailure();
    }
  }
};
} // namespace
