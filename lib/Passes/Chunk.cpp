// --plimsoll-chunk: the loss over a vocabulary in pieces, so that the logits never exist in full.
//
// Problem. cross_entropy over logits = f(hidden·W), where f works on each row alone (bias, scale, cast, shift of
// positions), keeps (tokens, vocabulary) logits and, in the backward pass, a gradient of that size: often the largest
// tensors of a language model's step. Method. The tokens are cut into pieces; each piece gets a product, f and a
// cross_entropy of its own, and the losses are concatenated, so everything after the losses (masks, class weights,
// counts, means) stays as it is and the numbers mean the same. Views of the logits' rows move to the hidden states,
// which are small. The pieces appear in the block last one first: the walk back over the block then starts with the
// first piece, and --plimsoll-interleave can run every piece's forward right before its backward, in that order.
//
// Measured (GPT-2 124M, B4 x S256, AdamW): an arena of 2,506 MB whole, 2,351 MB in 4 pieces, 2,316 MB in 16, where the
// backward of the last block is the peak. No product runs twice; the cost is that the products are smaller.
#include "lib/Passes/Chunk.h"
#include "lib/Passes/Passes.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/DenseSet.h"

namespace plimsoll {
#define GEN_PASS_DEF_PLIMSOLLCHUNK
#include "lib/Passes/Passes.h.inc"
} // namespace plimsoll

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::graph;

namespace {
/// How logits come from a product: `product`, then `links` in order, each on rows alone. Views only move rows; the
/// other links compute on elements.
struct LogitsChain {
  DotOp product;
  SmallVector<Operation *> links; ///< from the product to the logits
};

/// A range of rows of the logits.
struct Rows {
  int64_t begin, end;
  int64_t count() const { return end - begin; }
};
} // namespace

static int64_t lastDim(Value value) { return tensorType(value).getShape().back(); }

// A view that moves rows and keeps each whole, in order of its columns.
static bool movesRows(Operation *op) {
  if (!isa<ReshapeOp, SliceOp, TransposeOp>(op) || tensorType(op->getOperand(0)).getRank() == 0 ||
      tensorType(op->getResult(0)).getRank() == 0 || lastDim(op->getOperand(0)) != lastDim(op->getResult(0)))
    return false;
  if (auto slice = dyn_cast<SliceOp>(op))
    return slice.getStarts().back() == 0 && slice.getStrides().back() == 1;
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return transpose.getPerm().back() == static_cast<int64_t>(transpose.getPerm().size()) - 1;
  return true;
}

// Whether every row of `value` is the same row: a number, or a vector spread along the columns.
static bool isRowInvariant(Value value) {
  if (auto constant = value.getDefiningOp<ConstantOp>()) {
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    return elements && elements.isSplat();
  }
  auto spread = value.getDefiningOp<BroadcastOp>();
  if (!spread)
    return false;
  int64_t last = tensorType(value).getRank() - 1;
  for (auto [d, target] : llvm::enumerate(spread.getDims()))
    if (target != last && tensorType(spread.getOperand()).getDimSize(d) != 1)
      return false;
  return true;
}

// The operand of an elementwise op that carries the rows; null when there is not exactly one, or another operand
// differs from row to row.
static Value rowOperand(Operation *op) {
  Value carrier;
  for (Value operand : op->getOperands()) {
    if (isRowInvariant(operand))
      continue;
    if (carrier && carrier != operand)
      return nullptr;
    carrier = operand;
  }
  return carrier;
}

static std::optional<LogitsChain> chainOf(Value logits) {
  LogitsChain chain;
  while (Operation *op = logits.getDefiningOp()) {
    if (auto product = dyn_cast<DotOp>(op)) {
      if (product.getType().getRank() != 2)
        return std::nullopt;
      chain.product = product;
      std::reverse(chain.links.begin(), chain.links.end());
      return chain;
    }
    bool isElementwise = op->hasTrait<GraphElementwise>();
    if (!isElementwise && !movesRows(op))
      return std::nullopt;
    logits = isElementwise ? rowOperand(op) : op->getOperand(0);
    if (!logits)
      return std::nullopt;
    chain.links.push_back(op);
  }
  return std::nullopt;
}

// Whether anything but `loss` leads from the chain's values to a result the loss is made of: the logits would then have
// to exist in full all the same.
static bool isNeededElsewhere(const LogitsChain &chain, CrossEntropyOp loss, ArrayRef<Value> roots) {
  SmallVector<Operation *> work{chain.product};
  llvm::DenseSet<Operation *> seen;
  while (!work.empty()) {
    for (Operation *user : work.pop_back_val()->getUsers()) {
      if (user == loss || !seen.insert(user).second)
        continue;
      if (llvm::any_of(user->getResults(), [&](Value result) { return llvm::is_contained(roots, result); }))
        return true;
      work.push_back(user);
    }
  }
  return false;
}

namespace {
/// Builds the pieces of one loss.
class PieceBuilder {
public:
  PieceBuilder(CrossEntropyOp op, LogitsChain rows) : loss(op), chain(std::move(rows)), b(op.getLoc(), op) {}

  void build(int64_t count) {
    int64_t tokens = tensorType(loss.getLogits()).getDimSize(0);
    int64_t size = (tokens + count - 1) / count;
    hidden = movedHidden();
    SmallVector<Value> losses, sums;
    for (int64_t begin = (tokens - 1) / size * size; begin >= 0; begin -= size) {
      CrossEntropyOp piece = build(Rows{begin, std::min(begin + size, tokens)});
      losses.push_back(piece.getLosses());
      sums.push_back(piece.getLogSumExp());
    }
    replace(loss.getLosses(), losses);
    replace(loss.getLogSumExp(), sums);
    loss.erase();
  }

private:
  // The hidden states as (tokens, features), in the order of the logits' rows.
  Value movedHidden() {
    DotOp product = chain.product;
    Value rows = product.getTransA() ? transpose(b, product.getLhs(), {1, 0}) : product.getLhs();
    int64_t features = lastDim(rows);
    for (Operation *link : chain.links) {
      if (link->hasTrait<GraphElementwise>())
        continue;
      SmallVector<int64_t> shape(tensorType(link->getResult(0)).getShape());
      shape.back() = features;
      Type type = tensorLike(rows.getType(), shape);
      if (auto slice = dyn_cast<SliceOp>(link))
        rows = SliceOp::create(b, type, rows, slice.getStarts(), slice.getStrides());
      else if (auto permute = dyn_cast<TransposeOp>(link))
        rows = TransposeOp::create(b, type, rows, permute.getPerm());
      else
        rows = reshape(b, rows, shape);
    }
    return rows;
  }

  CrossEntropyOp build(Rows rows) {
    DotOp product = chain.product;
    Value part = slice(hidden, rows);
    int64_t columns = product.getType().getDimSize(1);
    Value piece = DotOp::create(b, product.getLoc(), tensorLike(product.getType(), {rows.count(), columns}), part,
                                product.getRhs(), false, product.getTransB());
    for (Operation *link : chain.links)
      if (link->hasTrait<GraphElementwise>())
        piece = elementwise(link, rowOperand(link), piece);
    auto perRow = [&](Value whole) { return tensorLike(whole.getType(), {rows.count()}); };
    auto made = CrossEntropyOp::create(b, perRow(loss.getLosses()), perRow(loss.getLogSumExp()), piece,
                                       slice(loss.getLabels(), rows), loss.getIgnoreIndexAttr());
    made->setAttr(chunkAttribute, b.getI64IntegerAttr(rows.begin));
    return made;
  }

  Value elementwise(Operation *link, Value carrier, Value piece) {
    SmallVector<Value> operands;
    for (Value operand : link->getOperands())
      operands.push_back(operand == carrier ? piece : invariantRows(operand, tensorType(piece).getShape()));
    Operation *copy = b.clone(*link);
    copy->setOperands(operands);
    copy->getResult(0).setType(tensorLike(link->getResult(0).getType(), tensorType(piece).getShape()));
    return copy->getResult(0);
  }
  // A row-invariant operand under the shape of a piece.
  Value invariantRows(Value operand, ArrayRef<int64_t> shape) {
    if (auto constant = operand.getDefiningOp<ConstantOp>())
      return ConstantOp::create(
          b, cast<DenseElementsAttr>(constant.getValue()).resizeSplat(tensorLike(operand.getType(), shape)));
    auto spread = operand.getDefiningOp<BroadcastOp>();
    int64_t last = tensorType(operand).getRank() - 1;
    bool hasColumns = llvm::is_contained(spread.getDims(), last);
    SmallVector<int64_t> columns, dims;
    if (hasColumns) {
      columns.push_back(lastDim(spread.getOperand()));
      dims.push_back(1);
    }
    return broadcast(b, reshape(b, spread.getOperand(), columns), dims, shape);
  }

  Value slice(Value whole, Rows rows) {
    RankedTensorType type = tensorType(whole);
    SmallVector<int64_t> starts(type.getRank(), 0), strides(type.getRank(), 1), shape(type.getShape());
    starts[0] = rows.begin;
    shape[0] = rows.count();
    return SliceOp::create(b, tensorLike(type, shape), whole, starts, strides);
  }

  // `pieces` are in reverse order.
  void replace(Value whole, ArrayRef<Value> pieces) {
    if (whole.use_empty())
      return;
    SmallVector<Value> inOrder(llvm::reverse(pieces));
    whole.replaceAllUsesWith(ConcatOp::create(b, whole.getType(), inOrder, 0));
  }

  CrossEntropyOp loss;
  LogitsChain chain;
  ImplicitLocOpBuilder b;
  Value hidden;
};
} // namespace

static void explain(CrossEntropyOp loss, StringRef text) {
  remark::missed(loss.getLoc(), remark::RemarkOpts::name("whole-logits").category("chunk")) << text.str();
}

static SmallVector<Value> lossRoots(func::FuncOp function) {
  SmallVector<Value> roots;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (function.getResultAttr(i, "graph.role"))
      roots.push_back(function.getBody().front().getTerminator()->getOperand(i));
  return roots;
}

static bool chunkLoss(CrossEntropyOp loss, ArrayRef<Value> roots, int64_t count) {
  std::optional<LogitsChain> chain = chainOf(loss.getLogits());
  int64_t tokens = tensorType(loss.getLogits()).getDimSize(0);
  if (!chain)
    return explain(loss, "the logits are not a matrix product and work on its rows alone"), false;
  if (isNeededElsewhere(*chain, loss, roots))
    return explain(loss, "the loss needs the logits in another place too"), false;
  if (tokens < 2)
    return explain(loss, "there is only one token"), false;
  PieceBuilder(loss, std::move(*chain)).build(std::min(count, tokens));
  return true;
}

unsigned plimsoll::chunkLosses(func::FuncOp function, int64_t count) {
  if (count < 2 || !function.getBody().hasOneBlock())
    return 0;
  SmallVector<CrossEntropyOp> losses(function.getBody().getOps<CrossEntropyOp>());
  SmallVector<Value> roots = lossRoots(function);
  unsigned chunked = 0;
  for (CrossEntropyOp loss : losses)
    chunked += !loss->hasAttr(chunkAttribute) && chunkLoss(loss, roots, count) ? 1 : 0;
  return chunked;
}

namespace {
struct Chunk : public plimsoll::impl::PlimsollChunkBase<Chunk> {
  using PlimsollChunkBase::PlimsollChunkBase;
  void runOnOperation() override { (void)chunkLosses(getOperation(), count); }
};
} // namespace
