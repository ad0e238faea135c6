// Softmax attention written out: scores = scale*(q k^T) (+ masks), softmax, an optional guard that turns NaN rows into
// zeros, times v. The scale may sit on q, on k, on both or on the scores; masks may be added or selected; key and value
// heads may be repeated from fewer. Not matched: dropout inside, a mask that a trainable parameter feeds (attention
// gives masks no gradient), and scores that something else reads.
#include "lib/Passes/RecognizePatterns.h"

#include "mlir/IR/BuiltinOps.h"

#include <cmath>

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::recognize {

namespace {
/// One mask over the scores: boolean (true keeps, or false keeps when `inverted`) or added.
struct Mask {
  Value value;
  bool inverted = false;
};

/// Everything found below the softmax.
struct Scores {
  DotOp dot;
  double scale = 1;
  SmallVector<Mask> masks;
};

/// Masking values of exporters: -inf, the lowest float of any type, -1e4 and the like.
constexpr double maskedBelow = -9999;

/// Follows the chain from the softmax's operand down to the product, through scaling and masking.
bool matchScores(Value value, Scores &scores) {
  bool scaled = false; // a scale above a mask would scale the mask too
  for (int depth = 0; depth < 12; ++depth) {
    value = peelConvert(value);
    Operation *op = value.getDefiningOp();
    if (!op || !value.hasOneUse())
      return false;
    if (auto dot = dyn_cast<DotOp>(op)) {
      scores.dot = dot;
      return true;
    }
    if (isa<MulOp, DivOp>(op)) {
      std::optional<double> right = splatNumber(op->getOperand(1)),
                            left = isa<MulOp>(op) ? splatNumber(op->getOperand(0)) : std::nullopt;
      if ((!right && !left) || (right && *right == 0))
        return false;
      scores.scale *= isa<DivOp>(op) ? 1 / *right : right ? *right : *left;
      value = op->getOperand(right ? 0 : 1);
      scaled = true;
      continue;
    }
    if (scaled)
      return false;
    if (auto select = dyn_cast<SelectOp>(op)) {
      std::optional<double> off = splatNumber(select.getOnFalse()), on = splatNumber(select.getOnTrue());
      if ((!off || *off > maskedBelow) && (!on || *on > maskedBelow))
        return false;
      bool keepsTrue = off && *off <= maskedBelow;
      scores.masks.push_back({select.getPredicate(), !keepsTrue});
      value = keepsTrue ? select.getOnTrue() : select.getOnFalse();
      continue;
    }
    auto add = dyn_cast<AddOp>(op);
    if (!add)
      return false;
    Scores attempt;
    bool rhsIsScores = add.getRhs().hasOneUse() && matchScores(add.getRhs(), attempt);
    bool lhsIsScores = add.getLhs().hasOneUse() && matchScores(add.getLhs(), attempt);
    if (rhsIsScores && lhsIsScores)
      return false;
    scores.masks.push_back({rhsIsScores ? add.getLhs() : add.getRhs()});
    value = rhsIsScores ? add.getRhs() : add.getLhs();
  }
  return false;
}

/// Whether a trainable parameter feeds `value` through float operations.
bool dependsOnParameter(Value value) {
  SmallVector<Value> work{value};
  llvm::SmallPtrSet<Operation *, 32> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (!op || !isFloatTensor(next.getType()) || !seen.insert(op).second)
      continue;
    if (auto read = dyn_cast<ReadOp>(op)) {
      auto variable = SymbolTable::lookupNearestSymbolFrom<VariableOp>(read, read.getVariableAttr());
      if (!variable || (variable.getKind() == VariableKind::Parameter && variable.getTrainable()))
        return true;
    }
    llvm::append_range(work, op->getOperands());
  }
  return false;
}

/// Takes scalar factors off a query or key.
Value peelScale(Value value, double &scale) {
  while (true) {
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<MulOp, DivOp>(op))
      return value;
    std::optional<double> right = splatNumber(op->getOperand(1)),
                          left = isa<MulOp>(op) ? splatNumber(op->getOperand(0)) : std::nullopt;
    if ((!right && !left) || (right && *right == 0))
      return value;
    scale *= isa<DivOp>(op) ? 1 / *right : right ? *right : *left;
    value = op->getOperand(right ? 0 : 1);
  }
}

SmallVector<int64_t> swapLast(int64_t rank) {
  SmallVector<int64_t> perm;
  for (int64_t d = 0; d < rank; ++d)
    perm.push_back(d);
  std::swap(perm[static_cast<size_t>(rank) - 1], perm[static_cast<size_t>(rank) - 2]);
  return perm;
}

/// A side of a product as (b..., rows, width): factors and transposes taken off, `transposed` says whether rows come
/// last.
Value rowsOf(ImplicitLocOpBuilder &b, Value value, bool transposed, double &scale) {
  value = peelScale(value, scale);
  while (auto transpose = value.getDefiningOp<TransposeOp>()) {
    if (transpose.getPerm() != ArrayRef<int64_t>(swapLast(tensorType(value).getRank())))
      break;
    transposed = !transposed;
    value = peelScale(transpose.getOperand(), scale);
  }
  return transposed ? transpose(b, value, swapLast(tensorType(value).getRank())) : value;
}

/// (B, K, T, D) behind heads repeated as (B, K, 1, T, D) -> (B, K, G, T, D) -> (B, K*G, T, D); null when nothing is
/// repeated.
Value unrepeated(ImplicitLocOpBuilder &b, Value value) {
  auto merge = value.getDefiningOp<ReshapeOp>();
  auto spread = merge ? merge.getOperand().getDefiningOp<BroadcastOp>() : BroadcastOp();
  if (!spread)
    return {};
  ArrayRef<int64_t> wide = spread.getType().getShape(), to = merge.getType().getShape(),
                    from = tensorType(spread.getOperand()).getShape();
  if (wide.size() != 5 || to.size() != 4 || to[0] != wide[0] || to[1] != wide[1] * wide[2] || to[2] != wide[3] ||
      to[3] != wide[4])
    return {};
  ArrayRef<int64_t> dims = spread.getDims();
  bool unit = from.size() == 5 && from[2] == 1 && from[0] == wide[0] && from[1] == wide[1] && from[3] == wide[3] &&
              from[4] == wide[4];
  bool bare = from.size() == 4 && dims == ArrayRef<int64_t>{0, 1, 3, 4} && from[0] == wide[0] && from[1] == wide[1] &&
              from[2] == wide[3] && from[3] == wide[4];
  return unit || bare ? reshape(b, spread.getOperand(), {wide[0], wide[1], wide[3], wide[4]}) : Value();
}

/// A mask of the scores' shape as a 4-D value with size 1 where it repeats.
Value smallMask(ImplicitLocOpBuilder &b, Value value, int64_t scoresRank) {
  SmallVector<int64_t> shape(tensorType(value).getShape());
  if (auto spread = value.getDefiningOp<BroadcastOp>()) {
    ArrayRef<int64_t> from = tensorType(spread.getOperand()).getShape();
    std::fill(shape.begin(), shape.end(), 1);
    for (auto [size, dim] : llvm::zip(from, spread.getDims()))
      shape[static_cast<size_t>(dim)] = size;
    value = spread.getOperand();
  } else if (splatNumber(value)) {
    std::fill(shape.begin(), shape.end(), 1);
    value = splat(b, tensorLike(value.getType(), shape), *splatNumber(value));
  }
  if (scoresRank == 3) // (B, S, T) scores get one head
    shape.insert(shape.begin() + 1, 1);
  return reshape(b, value, shape);
}

/// What a constant mask says: nothing, causal, or something else.
enum class Meaning { Nothing, Causal, Other };

Meaning meaningOf(const Mask &mask, int64_t queries, int64_t keys) {
  Value value = mask.value;
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getOperand();
  auto constant = value.getDefiningOp<ConstantOp>();
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!elements)
    return Meaning::Other;
  bool isFloat = isa<FloatType>(elements.getElementType());
  if (!isFloat && !elements.getElementType().isInteger(1))
    return Meaning::Other;
  ArrayRef<int64_t> shape = tensorType(mask.value).getShape();
  bool nothing = true,
       causal = shape.size() == 4 && shape[0] == 1 && shape[1] == 1 && shape[2] == queries && shape[3] == keys;
  int64_t i = 0;
  auto visit = [&](bool keeps, bool drops) {
    bool before = i % keys <= i / keys + keys - queries;
    nothing &= keeps;
    causal = causal && (before ? keeps : drops);
    ++i;
  };
  if (isFloat)
    for (APFloat number : elements.getValues<APFloat>())
      visit(number.isZero(), number.convertToDouble() <= maskedBelow);
  else
    for (bool bit : elements.getValues<bool>())
      visit(bit != mask.inverted, bit == mask.inverted);
  return nothing ? Meaning::Nothing : causal ? Meaning::Causal : Meaning::Other;
}

/// An added mask that is itself select(p, 0, -large), through views and conversions, is the boolean p.
Mask asBoolean(ImplicitLocOpBuilder &b, Mask mask) {
  auto select = peelConvert(mask.value).getDefiningOp<SelectOp>();
  if (!select || !isFloatTensor(select.getType()))
    return mask;
  std::optional<double> on = splatNumber(select.getOnTrue()), off = splatNumber(select.getOnFalse());
  if (on && off && *on == 0 && *off <= maskedBelow)
    return {select.getPredicate(), false};
  if (on && off && *off == 0 && *on <= maskedBelow)
    return {select.getPredicate(), true};
  return mask;
}

/// Masks of one attention, reduced to at most one value and a causal flag.
struct Combined {
  Value mask;
  bool causal = false;
};

/// Joins two 4-D masks of one element type: boolean by and, float by addition.
Value joined(ImplicitLocOpBuilder &b, Value lhs, Value rhs) {
  SmallVector<int64_t> shape;
  for (auto [l, r] : llvm::zip(tensorType(lhs).getShape(), tensorType(rhs).getShape()))
    shape.push_back(std::max(l, r));
  Value a = broadcast(b, lhs, {0, 1, 2, 3}, shape), c = broadcast(b, rhs, {0, 1, 2, 3}, shape);
  return isFloatTensor(a.getType()) ? AddOp::create(b, a, c).getResult() : AndOp::create(b, a, c).getResult();
}

Combined combine(ImplicitLocOpBuilder &b, Scores &scores, Type element, int64_t queries, int64_t keys) {
  Combined result;
  int64_t rank = tensorType(scores.dot.getResult()).getRank();
  for (Mask mask : scores.masks) {
    bool isFloat = isFloatTensor(mask.value.getType());
    if (isFloat) {
      if (auto spread = mask.value.getDefiningOp<BroadcastOp>()) // look for the select behind the repetition
        if (Mask inner = asBoolean(b, {spread.getOperand(), false}); inner.value != spread.getOperand())
          mask = {BroadcastOp::create(b, tensorLike(inner.value.getType(), spread.getType().getShape()), inner.value,
                                      spread.getDims()),
                  inner.inverted};
      mask = mask.inverted || !isFloatTensor(mask.value.getType()) ? mask : asBoolean(b, mask);
    }
    mask.value = smallMask(b, mask.value, rank);
    Meaning meaning = meaningOf(mask, queries, keys);
    result.causal |= meaning == Meaning::Causal;
    if (meaning != Meaning::Other)
      continue;
    Value value = mask.inverted ? NotOp::create(b, mask.value).getResult() : mask.value;
    if (isFloatTensor(value.getType()))
      value = convert(b, value, element);
    if (result.mask && isFloatTensor(result.mask.getType()) != isFloatTensor(value.getType())) {
      Value &boolean = isFloatTensor(value.getType()) ? result.mask : value;
      Type type = RankedTensorType::get(tensorType(boolean).getShape(), element);
      boolean = SelectOp::create(b, type, boolean, splat(b, type, 0), splat(b, type, -HUGE_VAL));
    }
    result.mask = result.mask ? joined(b, result.mask, value) : value;
  }
  return result;
}

/// The softmax whose result `value` is, below an optional guard select(is_nan(p), 0, p).
SoftmaxOp softmaxOf(Value value) {
  value = peelConvert(value);
  if (auto select = value.getDefiningOp<SelectOp>()) {
    std::optional<double> zero = splatNumber(select.getOnTrue());
    if (operandOf<IsNanOp>(select.getPredicate()) != select.getOnFalse() || !zero || *zero != 0)
      return {};
    value = peelConvert(select.getOnFalse());
  }
  auto softmax = value.getDefiningOp<SoftmaxOp>();
  return softmax && softmax.getAxis() == static_cast<uint64_t>(softmax.getType().getRank() - 1) ? softmax : SoftmaxOp();
}

/// Whether nothing but the product (and the guard) reads the probabilities.
bool isPrivate(SoftmaxOp softmax, DotOp product) {
  for (Operation *user : softmax->getUsers())
    for (Operation *next : isa<IsNanOp>(user) ? SmallVector<Operation *>(user->user_begin(), user->user_end())
                                              : SmallVector<Operation *>{user}) {
      SmallVector<Operation *> readers{next};
      while (!readers.empty()) {
        Operation *reader = readers.pop_back_val();
        if (isa<SelectOp, ConvertOp>(reader))
          readers.append(reader->user_begin(), reader->user_end());
        else if (reader != product)
          return false;
      }
    }
  return true;
}

struct AttentionPattern : OpRewritePattern<DotOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DotOp op, PatternRewriter &rewriter) const override {
    int64_t rank = op.getType().getRank();
    SoftmaxOp softmax = op.getTransA() || (rank != 3 && rank != 4) ? SoftmaxOp() : softmaxOf(op.getLhs());
    Scores scores;
    if (!softmax || !isPrivate(softmax, op) || !matchScores(softmax.getOperand(), scores) ||
        llvm::any_of(scores.masks, [](const Mask &mask) { return dependsOnParameter(mask.value); }))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    double scale = scores.scale;
    Value q = rowsOf(b, scores.dot.getLhs(), scores.dot.getTransA(), scale),
          k = rowsOf(b, scores.dot.getRhs(), !scores.dot.getTransB(), scale);
    double none = 1;
    Value v = rowsOf(b, op.getRhs(), op.getTransB(), none);
    if (none != 1)
      v = op.getTransB() ? transpose(b, op.getRhs(), swapLast(rank)) : op.getRhs();
    if (rank == 3)
      for (Value *side : {&q, &k, &v}) {
        ArrayRef<int64_t> s = tensorType(*side).getShape();
        *side = reshape(b, *side, {s[0], 1, s[1], s[2]});
      }
    Value fewerK = unrepeated(b, k), fewerV = unrepeated(b, v);
    if (fewerK && fewerV && tensorType(fewerK).getDimSize(1) == tensorType(fewerV).getDimSize(1)) {
      k = fewerK;
      v = fewerV;
    }
    ArrayRef<int64_t> qShape = tensorType(q).getShape();
    Type element = tensorType(q).getElementType();
    Combined masks = combine(b, scores, element, qShape[2], tensorType(k).getDimSize(2));
    Type out = RankedTensorType::get({qShape[0], qShape[1], qShape[2], tensorType(v).getDimSize(3)}, element);
    Type statistics = RankedTensorType::get(qShape.take_front(3), element.isF64() ? element : Type(b.getF32Type()));
    auto attention = AttentionOp::create(b, out, statistics, q, k, v, masks.mask, b.getF64FloatAttr(scale),
                                         b.getBoolAttr(masks.causal));
    rewriter.replaceOp(op, reshape(b, attention.getResult(), op.getType().getShape()));
    return success();
  }
};
} // namespace

void addAttentionPatterns(RewritePatternSet &patterns) { patterns.add<AttentionPattern>(patterns.getContext()); }

} // namespace plimsoll::recognize
