// Activations written out: GELU in its erf and tanh forms, SiLU, log(softmax), 1/sqrt; and booleans that say nothing.
#include "lib/Passes/RecognizePatterns.h"

#include <cmath>

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::recognize {

namespace {
/// Coefficients by degree of a polynomial in one value.
using Polynomial = std::array<double, 4>;

std::optional<Polynomial> polynomialIn(Value value, Value x, int depth = 0);

std::optional<Polynomial> multiplied(Value lhs, Value rhs, Value x, int depth) {
  std::optional<Polynomial> a = polynomialIn(lhs, x, depth), b = a ? polynomialIn(rhs, x, depth) : std::nullopt;
  if (!b)
    return std::nullopt;
  Polynomial product{};
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < 4; ++j) {
      double term = (*a)[i] * (*b)[j];
      if (term != 0 && i + j > 3)
        return std::nullopt;
      if (i + j <= 3)
        product[i + j] += term;
    }
  return product;
}

/// `value` as a polynomial of degree <= 3 in `x`; nullopt when it is none.
std::optional<Polynomial> polynomialIn(Value value, Value x, int depth) {
  if (value == x)
    return Polynomial{0, 1, 0, 0};
  if (std::optional<double> number = splatNumber(value))
    return Polynomial{*number, 0, 0, 0};
  Operation *op = value.getDefiningOp();
  if (!op || depth > 8)
    return std::nullopt;
  if (isa<MulOp>(op))
    return multiplied(op->getOperand(0), op->getOperand(1), x, depth + 1);
  if (auto pow = dyn_cast<PowOp>(op);
      pow && pow.getLhs() == x && (isNumber(pow.getRhs(), 3) || isNumber(pow.getRhs(), 2)))
    return isNumber(pow.getRhs(), 3) ? Polynomial{0, 0, 0, 1} : Polynomial{0, 0, 1, 0};
  bool add = isa<AddOp>(op), sub = isa<SubOp>(op), div = isa<DivOp>(op);
  if (!add && !sub && !div)
    return std::nullopt;
  std::optional<Polynomial> a = polynomialIn(op->getOperand(0), x, depth + 1),
                            b = polynomialIn(op->getOperand(1), x, depth + 1);
  if (!a || !b || (div && ((*b)[1] != 0 || (*b)[2] != 0 || (*b)[3] != 0 || (*b)[0] == 0)))
    return std::nullopt;
  for (size_t i = 0; i < 4; ++i)
    (*a)[i] = add ? (*a)[i] + (*b)[i] : sub ? (*a)[i] - (*b)[i] : (*a)[i] / (*b)[0];
  return a;
}

bool isPolynomial(const std::optional<Polynomial> &found, double linear, double cubic) {
  auto matches = [](double value, double expected) { return expected == 0 ? value == 0 : closeTo(value, expected); };
  return found && (*found)[0] == 0 && (*found)[2] == 0 && matches((*found)[1], linear) && matches((*found)[3], cubic);
}

/// Factors of a product tree: the number in front and the values.
struct Product {
  double number = 1;
  SmallVector<Value> values;
};

void collectFactors(Value value, Product &product, int depth = 0) {
  if (std::optional<double> number = splatNumber(value)) {
    product.number *= *number;
    return;
  }
  auto mul = value.getDefiningOp<MulOp>();
  if (mul && depth < 4 && (depth == 0 || value.hasOneUse())) {
    collectFactors(mul.getLhs(), product, depth + 1);
    collectFactors(mul.getRhs(), product, depth + 1);
    return;
  }
  auto div = value.getDefiningOp<DivOp>();
  std::optional<double> by = div && (depth == 0 || value.hasOneUse()) ? splatNumber(div.getRhs()) : std::nullopt;
  if (!by || *by == 0 || depth >= 4) {
    product.values.push_back(value);
    return;
  }
  product.number /= *by;
  collectFactors(div.getLhs(), product, depth + 1);
}

/// Whether `factor` is 1 + erf(x/sqrt 2) (sets `approximate` false) or 1 + tanh(sqrt(2/pi)(x + 0.044715 x^3)) (true).
bool isGeluFactor(Value factor, Value x, bool &approximate) {
  auto add = factor.getDefiningOp<AddOp>();
  if (!add)
    return false;
  return eitherOrder(add.getLhs(), add.getRhs(), [&](Value inner, Value one) {
    if (!isNumber(one, 1))
      return false;
    Value erf = operandOf<ErfOp>(inner), tanh = operandOf<TanhOp>(inner);
    approximate = static_cast<bool>(tanh);
    const double width = std::sqrt(2 / M_PI);
    return erf ? isPolynomial(polynomialIn(erf, x), M_SQRT1_2, 0)
               : tanh && isPolynomial(polynomialIn(tanh, x), width, width * 0.044715);
  });
}

/// x * (1 + erf or tanh) / 2 in any order of its factors.
template <typename Root> struct GeluPattern : OpRewritePattern<Root> {
  using OpRewritePattern<Root>::OpRewritePattern;
  LogicalResult matchAndRewrite(Root op, PatternRewriter &rewriter) const override {
    if (!isFloatTensor(op.getType()))
      return failure();
    Product product;
    collectFactors(op.getResult(), product);
    if (product.values.size() != 2 || !closeTo(product.number, 0.5))
      return failure();
    bool approximate = false;
    Value x;
    bool found = eitherOrder(product.values[0], product.values[1], [&](Value factor, Value candidate) {
      x = candidate;
      return isGeluFactor(factor, candidate, approximate);
    });
    if (!found || x.getType() != op.getType())
      return failure();
    rewriter.replaceOpWithNewOp<GeluOp>(op, op.getType(), x, approximate);
    return success();
  }
};

/// x * sigmoid(x).
struct SiluPattern : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MulOp op, PatternRewriter &rewriter) const override {
    Value x;
    if (!eitherOrder(op.getLhs(), op.getRhs(), [&](Value a, Value b) { return (x = a) == operandOf<SigmoidOp>(b); }))
      return failure();
    rewriter.replaceOpWithNewOp<SiluOp>(op, op.getType(), x);
    return success();
  }
};

/// log(softmax(x)).
struct LogSoftmaxPattern : OpRewritePattern<LogOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LogOp op, PatternRewriter &rewriter) const override {
    auto softmax = op.getOperand().getDefiningOp<SoftmaxOp>();
    if (!softmax)
      return failure();
    rewriter.replaceOpWithNewOp<LogSoftmaxOp>(op, op.getType(), softmax.getOperand(), softmax.getAxis());
    return success();
  }
};

/// 1/sqrt(x), as reciprocal or division.
struct RsqrtPattern : OpRewritePattern<ReciprocalOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReciprocalOp op, PatternRewriter &rewriter) const override {
    Value x = operandOf<SqrtOp>(op.getOperand());
    if (!x)
      return failure();
    rewriter.replaceOpWithNewOp<RsqrtOp>(op, op.getType(), x);
    return success();
  }
};
struct DividedSqrtPattern : OpRewritePattern<DivOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DivOp op, PatternRewriter &rewriter) const override {
    Value x = operandOf<SqrtOp>(op.getRhs());
    std::optional<double> one = splatNumber(op.getLhs());
    if (!x || !one || *one != 1)
      return failure();
    rewriter.replaceOpWithNewOp<RsqrtOp>(op, op.getType(), x);
    return success();
  }
};

/// p and true, p or false.
template <typename Op, int neutral> struct NeutralLogicPattern : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    Value kept;
    bool found = eitherOrder(op.getLhs(), op.getRhs(), [&](Value a, Value b) {
      kept = a;
      std::optional<double> number = splatNumber(b);
      return number && *number == neutral;
    });
    if (!found)
      return failure();
    rewriter.replaceOp(op, kept);
    return success();
  }
};
} // namespace

void addActivationPatterns(RewritePatternSet &patterns) {
  patterns.add<GeluPattern<MulOp>, GeluPattern<DivOp>, SiluPattern, LogSoftmaxPattern, RsqrtPattern, DividedSqrtPattern,
               NeutralLogicPattern<AndOp, 1>, NeutralLogicPattern<OrOp, 0>>(patterns.getContext());
}

} // namespace plimsoll::recognize
