// Views that hide a matrix product's operands: exporters transpose through a merged batch, and multiply by transposed
// weights.
#include "lib/Passes/RecognizePatterns.h"

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::recognize {

namespace {
SmallVector<int64_t> swapLast(size_t rank) {
  SmallVector<int64_t> perm;
  for (size_t d = 0; d < rank; ++d)
    perm.push_back(static_cast<int64_t>(d));
  std::swap(perm[rank - 1], perm[rank - 2]);
  return perm;
}

/// reshape(transpose(reshape(x (b..., M, K) -> (B, M, K))) -> (b..., K, M)) is a transpose of x.
struct MergedTransposePattern : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto transpose = op.getOperand().getDefiningOp<TransposeOp>();
    auto merge = transpose ? transpose.getOperand().getDefiningOp<ReshapeOp>() : ReshapeOp();
    if (!merge || transpose.getPerm() != ArrayRef<int64_t>{0, 2, 1})
      return failure();
    ArrayRef<int64_t> from = tensorType(merge.getOperand()).getShape(), merged = merge.getType().getShape(),
                      to = op.getType().getShape();
    bool fits = from.size() >= 3 && from.size() == to.size() && from.take_back(2) == merged.take_back(2) &&
                from.drop_back(2) == to.drop_back(2) && to[to.size() - 2] == from.back() &&
                to.back() == from[from.size() - 2];
    if (!fits)
      return failure();
    rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getType(), merge.getOperand(), swapLast(from.size()));
    return success();
  }
};

/// A product of a transposed operand takes the operand itself and a flag.
struct TransposedProductPattern : OpRewritePattern<DotOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DotOp op, PatternRewriter &rewriter) const override {
    auto source = [](Value value) -> Value {
      auto transpose = value.getDefiningOp<TransposeOp>();
      return transpose && transpose.getPerm() == ArrayRef<int64_t>(swapLast(transpose.getPerm().size()))
                 ? transpose.getOperand()
                 : Value();
    };
    Value lhs = source(op.getLhs()), rhs = source(op.getRhs());
    if (!lhs && !rhs)
      return failure();
    rewriter.replaceOpWithNewOp<DotOp>(op, op.getType(), lhs ? lhs : op.getLhs(), rhs ? rhs : op.getRhs(),
                                       op.getTransA() != static_cast<bool>(lhs),
                                       op.getTransB() != static_cast<bool>(rhs));
    return success();
  }
};
} // namespace

void addViewPatterns(RewritePatternSet &patterns) {
  patterns.add<MergedTransposePattern, TransposedProductPattern>(patterns.getContext());
}

} // namespace plimsoll::recognize
