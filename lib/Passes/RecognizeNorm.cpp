// RMSNorm and LayerNorm written out: x * rsqrt(mean(x^2) + eps), the same for x - mean(x), and their division forms.
// The affine part stays explicit, as everywhere in the graph dialect.
#include "lib/Passes/RecognizePatterns.h"

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::recognize {

namespace {
/// What was found: `operand` normalised over the dimensions from `axis` on.
struct Norm {
  Value operand;
  int64_t axis = 0;
  double epsilon = 0;
};

/// Whether `square` is x*x (or x^2).
bool isSquareOf(Value square, Value x) {
  square = peelConvert(square);
  if (auto mul = square.getDefiningOp<MulOp>())
    return mul.getLhs() == x && mul.getRhs() == x;
  auto pow = square.getDefiningOp<PowOp>();
  return pow && pow.getLhs() == x && isNumber(pow.getRhs(), 2);
}

/// Matches `statistic` = mean(x^2) + eps, with unit dimensions anywhere.
bool matchMeanSquare(Value statistic, Value x, Norm &norm) {
  auto add = peelUnitDims(statistic).getDefiningOp<AddOp>();
  if (!add)
    return false;
  return eitherOrder(add.getLhs(), add.getRhs(), [&](Value mean, Value number) {
    std::optional<double> epsilon = splatNumber(number);
    if (!epsilon || *epsilon < 0 || *epsilon > 1)
      return false;
    Value square = meanOperand(mean, norm.axis);
    norm.epsilon = *epsilon;
    return square && isSquareOf(square, x);
  });
}

/// Shortest decimal of an epsilon that was rounded to f32, so that 1e-5 stays 1e-5.
double decimalOf(double value) {
  char text[32];
  snprintf(text, sizeof text, "%.7g", value);
  return std::strtod(text, nullptr);
}

/// The axis that a full-shape value is broadcast from, by trying every one.
bool matchScaled(Value x, Value factor, bool inverse, Norm &norm) {
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis) {
    Value row = peelUnitDims(rowStatistic(factor, shape, axis));
    Value inner = row ? (inverse ? operandOf<SqrtOp>(row) : operandOf<RsqrtOp>(row)) : Value();
    if (inner && matchMeanSquare(inner, x, norm) && norm.axis == axis) {
      norm.operand = x;
      return true;
    }
  }
  return false;
}

/// If x is y - mean(y) over the same dimensions, y.
Value uncentred(const Norm &norm) {
  auto sub = norm.operand.getDefiningOp<SubOp>();
  if (!sub)
    return {};
  Value row = rowStatistic(sub.getRhs(), tensorType(sub.getLhs()).getShape(), norm.axis);
  int64_t axis = -1;
  Value averaged = row ? meanOperand(row, axis) : Value();
  return averaged == sub.getLhs() && axis == norm.axis ? sub.getLhs() : Value();
}

void replaceWithNorm(Operation *op, const Norm &norm, PatternRewriter &rewriter) {
  Value centred = uncentred(norm), operand = centred ? centred : norm.operand;
  RankedTensorType type = tensorType(operand);
  Type element = type.getElementType().isF64() ? type.getElementType() : Type(rewriter.getF32Type());
  Type statistics = RankedTensorType::get(type.getShape().take_front(static_cast<size_t>(norm.axis)), element);
  IntegerAttr axis = rewriter.getI64IntegerAttr(norm.axis);
  FloatAttr epsilon = rewriter.getF64FloatAttr(decimalOf(norm.epsilon));
  Value result = centred
                     ? LayerNormOp::create(rewriter, op->getLoc(), type, statistics, statistics, operand, axis, epsilon)
                           .getResult()
                     : RmsNormOp::create(rewriter, op->getLoc(), type, statistics, operand, axis, epsilon).getResult();
  rewriter.replaceOp(op, result);
}

/// x * rsqrt(mean(x^2) + eps).
struct NormProductPattern : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MulOp op, PatternRewriter &rewriter) const override {
    Norm norm;
    if (!isFloatTensor(op.getType()) || !eitherOrder(op.getLhs(), op.getRhs(), [&](Value x, Value factor) {
          return matchScaled(x, factor, false, norm);
        }))
      return failure();
    replaceWithNorm(op, norm, rewriter);
    return success();
  }
};
/// x / sqrt(mean(x^2) + eps).
struct NormQuotientPattern : OpRewritePattern<DivOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DivOp op, PatternRewriter &rewriter) const override {
    Norm norm;
    if (!isFloatTensor(op.getType()) || !matchScaled(op.getLhs(), op.getRhs(), true, norm))
      return failure();
    replaceWithNorm(op, norm, rewriter);
    return success();
  }
};
} // namespace

void addNormPatterns(RewritePatternSet &patterns) {
  patterns.add<NormProductPattern, NormQuotientPattern>(patterns.getContext());
}

} // namespace plimsoll::recognize
