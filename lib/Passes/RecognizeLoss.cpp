// Negative log-likelihood over log_softmax: the looked-up and masked log-probabilities are cross_entropy's losses,
// without the (N, C) log-probabilities ever being stored.
#include "lib/Passes/RecognizePatterns.h"

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::recognize {

namespace {
/// If `predicate` is labels != number, sets both.
bool matchCounted(Value predicate, Value &labels, int64_t &ignored) {
  auto compare = predicate.getDefiningOp<CompareOp>();
  std::optional<double> number =
      compare && compare.getDirection() == CompareDirection::NE ? splatNumber(compare.getRhs()) : std::nullopt;
  if (!number)
    return false;
  labels = compare.getLhs();
  ignored = static_cast<int64_t>(*number);
  return tensorType(labels).getRank() == 1;
}

/// select(labels != ignored, -log_softmax(x)[select(labels != ignored, labels, 0)], 0).
struct CrossEntropyPattern : OpRewritePattern<SelectOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SelectOp op, PatternRewriter &rewriter) const override {
    Value labels;
    int64_t ignored = 0;
    std::optional<double> zero = splatNumber(op.getOnFalse());
    if (!zero || *zero != 0 || !isFloatTensor(op.getType()) || !matchCounted(op.getPredicate(), labels, ignored))
      return failure();
    Value picked = operandOf<NegOp>(op.getOnTrue());
    auto gather = picked ? peelUnitDims(picked).getDefiningOp<GatherElementsOp>() : GatherElementsOp();
    auto logSoftmax =
        gather && gather.getAxis() == 1 ? gather.getOperand().getDefiningOp<LogSoftmaxOp>() : LogSoftmaxOp();
    if (!logSoftmax || logSoftmax.getAxis() != 1 || logSoftmax.getType().getRank() != 2)
      return failure();
    auto safe = peelUnitDims(gather.getIndices()).getDefiningOp<SelectOp>();
    if (!safe || safe.getPredicate() != op.getPredicate() || safe.getOnTrue() != labels || op.getType().getRank() != 1)
      return failure();
    auto loss = CrossEntropyOp::create(rewriter, op.getLoc(), op.getType(), op.getType(), logSoftmax.getOperand(),
                                       labels, rewriter.getI64IntegerAttr(ignored));
    rewriter.replaceOp(op, loss.getLosses());
    return success();
  }
};
} // namespace

void addLossPatterns(RewritePatternSet &patterns) { patterns.add<CrossEntropyPattern>(patterns.getContext()); }

} // namespace plimsoll::recognize
