// --plimsoll-interleave: every piece of a chunked loss runs forward right before its backward.
//
// Problem. After differentiation the pieces' logits are all computed, then all their gradients: everything is alive at
// once and chunking would have gained nothing. But the gradient that arrives at a piece (a constant over the number of
// counted tokens) does not depend on any loss. Method. What the losses feed (their sum, the mean, metrics, the writes
// of accumulators) moves to the end; then each piece's forward ops, last first, move down to right before their first
// reader, which now is the piece's backward. A piece whose incoming gradient does depend on losses stays where it is.
// Complexity: linear in the ops that move, times their users.
//
// The pieces' contributions to the gradient of the hidden states are slices padded with zeros and added up; pieces that
// lie side by side become one concatenation (also where an attention's q, k and v are slices of one product).
#include "lib/Passes/Chunk.h"
#include "lib/Passes/Passes.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SetVector.h"

namespace plimsoll {
#define GEN_PASS_DEF_PLIMSOLLINTERLEAVE
#include "lib/Passes/Passes.h.inc"
} // namespace plimsoll

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::graph;

//===----------------------------------------------------------------------------===//
// Sums of pieces that lie side by side
//===----------------------------------------------------------------------------===//

namespace {
/// A tensor that is zero but for [low, size - high) along one axis.
struct Piece {
  Value value;
  int64_t axis, low, high;
};
} // namespace

static std::optional<Piece> pieceOf(Value padded) {
  auto pad = padded.getDefiningOp<PadOp>();
  if (!pad || !pad->hasOneUse() || !pad.getValue().isZero() ||
      llvm::any_of(pad.getInterior(), [](int64_t gap) { return gap != 0; }))
    return std::nullopt;
  std::optional<Piece> piece;
  for (auto [d, low, high] : llvm::enumerate(pad.getLow(), pad.getHigh())) {
    if (low == 0 && high == 0)
      continue;
    if (piece)
      return std::nullopt;
    piece = Piece{pad.getOperand(), static_cast<int64_t>(d), low, high};
  }
  return piece;
}

static void appendPieces(Value value, int64_t axis, SmallVectorImpl<Value> &pieces) {
  auto joined = value.getDefiningOp<ConcatOp>();
  if (joined && joined->hasOneUse() && static_cast<int64_t>(joined.getAxis()) == axis)
    llvm::append_range(pieces, joined.getOperands());
  else
    pieces.push_back(value);
}

// pad(x) + pad(y), side by side, is pad(concat(x, y)).
static bool joinSum(AddOp sum) {
  std::optional<Piece> first = pieceOf(sum.getLhs()), second = pieceOf(sum.getRhs());
  if (!first || !second || first->axis != second->axis)
    return false;
  if (first->low > second->low)
    std::swap(first, second);
  int64_t size = sum.getType().getDimSize(first->axis);
  if (size - first->high != second->low)
    return false;
  ImplicitLocOpBuilder b(sum.getLoc(), sum);
  SmallVector<Value> pieces;
  appendPieces(first->value, first->axis, pieces);
  appendPieces(second->value, first->axis, pieces);
  SmallVector<int64_t> shape(sum.getType().getShape()), low(shape.size(), 0), high(shape.size(), 0);
  shape[first->axis] = size - first->low - second->high;
  low[first->axis] = first->low;
  high[first->axis] = second->high;
  Value joined = ConcatOp::create(b, tensorLike(sum.getType(), shape), pieces, first->axis);
  if (first->low || second->high)
    joined = PadOp::create(b, sum.getType(), joined, low, high, SmallVector<int64_t>(shape.size(), 0), APFloat(0.0));
  sum.replaceAllUsesWith(joined);
  return true;
}

static void joinPieces(Block &block) {
  for (AddOp sum : llvm::make_early_inc_range(block.getOps<AddOp>()))
    if (joinSum(sum)) {
      SmallVector<Operation *> sources{sum.getLhs().getDefiningOp(), sum.getRhs().getDefiningOp()};
      sum.erase();
      for (Operation *source : sources) {
        Operation *inner = source->getOperand(0).getDefiningOp();
        source->erase();
        if (inner && inner->use_empty() && isa<ConcatOp>(inner))
          inner->erase();
      }
    }
}

//===----------------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------------===//

// What the pieces' losses feed, in block order; with the gradients of pieces among it when those depend on losses.
static llvm::SetVector<Operation *> fedByLosses(Block &block) {
  llvm::SetVector<Operation *> fed;
  for (Operation &op : block.without_terminator())
    for (Value operand : op.getOperands()) {
      auto piece = operand.getDefiningOp<CrossEntropyOp>();
      bool isLoss = piece && piece->hasAttr(chunkAttribute) && operand == piece.getLosses();
      if (isLoss || (operand.getDefiningOp() && fed.contains(operand.getDefiningOp())))
        fed.insert(&op);
    }
  return fed;
}

static Operation *firstUser(Operation *op) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers())
    if (!first || user->isBeforeInBlock(first))
      first = user;
  return first;
}

// Moves a piece's loss, and what its logits are made of down to the product, to right before their first readers.
static void sinkPiece(CrossEntropyOp piece) {
  Operation *op = piece;
  while (op) {
    Operation *reader = firstUser(op);
    if (!reader)
      return;
    op->moveBefore(reader);
    Value logits = isa<DotOp>(op) ? Value() : op->getOperand(0);
    if (op->hasTrait<GraphElementwise>()) // the operand that carries rows is the one made for this piece alone
      for (Value operand : op->getOperands())
        if (operand.getDefiningOp() &&
            (isa<DotOp>(operand.getDefiningOp()) || operand.getDefiningOp()->hasTrait<GraphElementwise>()))
          logits = operand;
    op = logits ? logits.getDefiningOp() : nullptr;
  }
}

static void interleave(func::FuncOp function) {
  Block &block = function.getBody().front();
  SmallVector<CrossEntropyOp> pieces;
  for (CrossEntropyOp loss : block.getOps<CrossEntropyOp>())
    if (loss->hasAttr(chunkAttribute))
      pieces.push_back(loss);
  if (pieces.empty())
    return;
  llvm::SetVector<Operation *> fed = fedByLosses(block);
  if (llvm::any_of(fed, [](Operation *op) { return isa<CrossEntropyGradOp>(op); })) {
    remark::missed(function.getLoc(), remark::RemarkOpts::name("all-pieces-first").category("chunk"))
        << "the gradient that arrives at the losses depends on the losses";
    return;
  }
  for (Operation *op : fed)
    op->moveBefore(block.getTerminator());
  for (CrossEntropyOp piece : llvm::reverse(pieces))
    sinkPiece(piece);
}

namespace {
struct Interleave : public plimsoll::impl::PlimsollInterleaveBase<Interleave> {
  void runOnOperation() override {
    if (!getOperation().getBody().hasOneBlock())
      return;
    joinPieces(getOperation().getBody().front());
    interleave(getOperation());
  }
};
} // namespace
