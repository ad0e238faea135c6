// Elementary functions: argument reduction plus polynomials fitted for the reduced range (minimax by iteratively
// reweighted least squares on Chebyshev nodes, in 40 digits; each fit's error stands beside it). Reductions follow the
// usual Cody-Waite splitting (Muller, "Elementary Functions", ch. 11): ln 2 as a short high part and a low rest, so
// that n * high is exact. Selects replace branches; comparisons are written so that NaN falls through to the result.
#include "lib/Codegen/CPU/VectorMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;

namespace plimsoll::codegen {

Type typeLike(Type like, Type element) {
  auto vector = dyn_cast<VectorType>(like);
  return vector ? Type(VectorType::get(vector.getShape(), element)) : element;
}

static Value constantOf(ImplicitLocOpBuilder &builder, Type type, Attribute scalar) {
  auto vector = dyn_cast<VectorType>(type);
  Attribute value = vector ? Attribute(DenseElementsAttr::get(vector, scalar)) : scalar;
  return arith::ConstantOp::create(builder, cast<TypedAttr>(value));
}
Value constantLike(ImplicitLocOpBuilder &builder, Type type, double value) {
  return constantOf(builder, type, builder.getFloatAttr(getElementTypeOrSelf(type), value));
}
Value constantInt(ImplicitLocOpBuilder &builder, Type type, int64_t value) {
  return constantOf(builder, type, builder.getIntegerAttr(getElementTypeOrSelf(type), value));
}

Value VectorMath::number(Value like, double value) { return constantLike(b, like.getType(), value); }
Value VectorMath::integer(Value like, int64_t value) { return constantInt(b, like.getType(), value); }
Value VectorMath::fma(Value x, Value y, Value z) { return math::FmaOp::create(b, x, y, z); }
Value VectorMath::add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
Value VectorMath::sub(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
Value VectorMath::mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
Value VectorMath::greater(Value x, Value y) { return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, y); }
Value VectorMath::select(Value condition, Value yes, Value no) {
  return arith::SelectOp::create(b, condition, yes, no);
}
Value VectorMath::bits(Value x) {
  unsigned width = getElementTypeOrSelf(x).getIntOrFloatBitWidth();
  return arith::BitcastOp::create(b, typeLike(x.getType(), b.getIntegerType(width)), x);
}
Value VectorMath::fromBits(Value x, Value like) { return arith::BitcastOp::create(b, like.getType(), x); }
Value VectorMath::retype(Value x, Type element, bool widen) {
  Type type = typeLike(x.getType(), element);
  return widen ? Value(arith::ExtFOp::create(b, type, x)) : Value(arith::TruncFOp::create(b, type, x));
}

// c[0] + c[1] x + ... by Horner's rule.
Value VectorMath::polynomial(Value x, ArrayRef<double> coefficients) {
  Value sum = number(x, coefficients.back());
  for (double coefficient : llvm::reverse(coefficients.drop_back()))
    sum = fma(sum, x, number(x, coefficient));
  return sum;
}

// exp(x) = 2^n * exp(r), |r| <= ln2/2. The scale is applied in two halves so that denormal results and overflow come
// out as they should. Adding 1.5 * 2^23 rounds to an integer that sits in the low mantissa bits.
Value VectorMath::exp(Value x) {
  Value high = number(x, 89), low = number(x, -104), magic = number(x, 12582912.0);
  x = select(greater(x, high), high, x);
  x = select(greater(low, x), low, x);
  Value shifted = fma(x, number(x, M_LOG2E), magic);
  Value n = sub(shifted, magic);
  Value r = fma(n, number(x, -0.693359375), x);
  r = fma(n, number(x, 2.12194440054690582768e-4), r);
  // Relative error of the fit: 4.9e-11.
  Value p = polynomial(r, {0.5, 0.1666666716, 4.166626930e-02, 8.333264850e-03, 1.394615043e-03, 1.991791651e-04});
  Value power = add(fma(p, mul(r, r), r), number(x, 1));
  Value exponent = arith::SubIOp::create(b, bits(shifted), bits(magic));
  Value half = arith::ShRSIOp::create(b, exponent, integer(exponent, 1));
  Value rest = arith::SubIOp::create(b, exponent, half);
  auto scale = [&](Value e) -> Value {
    Value biased = arith::AddIOp::create(b, e, integer(e, 127));
    return fromBits(arith::ShLIOp::create(b, biased, integer(e, 23)), x);
  };
  return mul(mul(power, scale(half)), scale(rest));
}

// log(x) = e ln2 + log(1 + f), sqrt(1/2) <= 1 + f < sqrt(2). Denormals are scaled up first.
Value VectorMath::log(Value x) {
  Value smallest = number(x, 0x1p-126), zero = number(x, 0), infinity = number(x, INFINITY);
  Value tiny = greater(smallest, x);
  Value normal = select(tiny, mul(x, number(x, 0x1p23)), x);
  Value raw = bits(normal);
  Value offset = arith::SubIOp::create(b, raw, integer(raw, 0x3f3504f3));
  Value exponent = arith::ShRSIOp::create(b, offset, integer(raw, 23));
  Value mantissa = fromBits(arith::SubIOp::create(b, raw, arith::ShLIOp::create(b, exponent, integer(raw, 23))), x);
  Value e = arith::SIToFPOp::create(b, x.getType(), exponent);
  e = add(e, select(tiny, number(x, -23), zero));
  Value f = sub(mantissa, number(x, 1));
  // Relative error of the fit: 7.5e-10.
  Value p = polynomial(f, {3.333331347e-01, -2.500000894e-01, 2.000211924e-01, -1.666798592e-01, 1.421951950e-01,
                           -1.240575612e-01, 1.188860312e-01, -1.167480722e-01, 6.744542718e-02});
  Value square = mul(f, f);
  Value tail = fma(mul(square, f), p, mul(e, number(x, -2.12194440054690582768e-4)));
  tail = fma(square, number(x, -0.5), tail);
  Value result = fma(e, number(x, 0.693359375), add(f, tail));
  Value isZero = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, x, zero);
  Value finite = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, infinity);
  result = select(finite, result, x); // +inf and NaN
  result = select(greater(zero, x), number(x, NAN), result);
  return select(isZero, number(x, -INFINITY), result);
}

// log(1 + x) = log(u) + (x - (u - 1))/u with u = fl(1 + x): the second term is what rounding u lost.
Value VectorMath::log1p(Value x) {
  Value one = number(x, 1), u = add(one, x);
  Value lost = arith::DivFOp::create(b, sub(x, sub(u, one)), u);
  Value whole = log(u);
  Value inside = arith::AndIOp::create(b, greater(u, number(x, 0)),
                                       arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, u, number(x, INFINITY)));
  Value result = select(inside, add(whole, lost), whole);
  Value unchanged = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, u, one); // |x| < 2^-24: log1p(x) rounds to x
  return select(unchanged, x, result);
}

// Odd polynomial near 0; 1 - 2/(exp(2|x|) + 1) elsewhere, where the subtraction no longer cancels.
Value VectorMath::tanh(Value x) {
  Value magnitude = math::AbsFOp::create(b, x), square = mul(x, x);
  // Relative error of the fit: 1.8e-10 for |x| <= 0.625.
  Value p = polynomial(square, {-3.333333135e-01, 1.333319545e-01, -5.394525081e-02, 2.169190161e-02, -8.154507726e-03,
                                2.121102298e-03});
  Value near = fma(mul(square, p), x, x);
  Value power = exp(add(magnitude, magnitude));
  Value quotient = arith::DivFOp::create(b, number(x, 2), add(power, number(x, 1)));
  Value far = sub(number(x, 1), quotient);
  Value isFar = greater(magnitude, number(x, 0.625));
  return math::CopySignOp::create(b, select(isFar, far, near), x); // also keeps the sign of -0
}

// Odd polynomial for |x| <= 1; 1 - exp(q(|x|)) with q fitted to log erfc up to 4, where erf rounds to 1.
Value VectorMath::erf(Value x) {
  Value magnitude = math::AbsFOp::create(b, x), square = mul(x, x);
  // erf(x)/x = 2/sqrt(pi) + t p(t), t = x^2; error of the fit: 1.2e-9.
  Value p = polynomial(square, {0.1283791671, -3.761262596e-01, 1.128360033e-01, -2.685444430e-02, 5.189535208e-03,
                                -8.020841051e-04, 7.889119297e-05});
  Value near = fma(x, p, x);
  Value four = number(x, 4.0), capped = select(greater(magnitude, four), four, magnitude);
  // Absolute error of the fit in erfc: 2.1e-11.
  Value q = polynomial(capped, {1.880381897e-04, -1.129578471e+00, -6.332198977e-01, -1.084185615e-01, 2.520824969e-02,
                                -4.204559140e-03, 4.413358984e-04, -2.168681567e-05});
  Value far = math::CopySignOp::create(b, sub(number(x, 1), exp(q)), x);
  return select(greater(magnitude, number(x, 1.0)), far, near);
}

// x = k pi/2 + r with k and r formed in f64, so r keeps full f32 accuracy for |x| up to about 1e9; the quadrant picks
// sine or cosine of r and its sign.
Value VectorMath::sinOrCos(Value x, int64_t quarterTurns) {
  Value wide = retype(x, b.getF64Type(), true);
  Value magic = number(wide, 0x1.8p52);
  Value shifted = fma(wide, number(wide, M_2_PI), magic);
  Value k = sub(shifted, magic);
  Value rest = fma(k, number(wide, -0x1.921fb54442d18p+0), wide);
  rest = fma(k, number(wide, -0x1.1a62633145c07p-54), rest);
  Value r = retype(rest, b.getF32Type(), false);
  Value quadrant = arith::TruncIOp::create(b, typeLike(x.getType(), b.getI32Type()), bits(shifted));
  quadrant = arith::AddIOp::create(b, quadrant, integer(quadrant, quarterTurns));
  Value square = mul(r, r);
  // Relative errors of the fits: 5.3e-12 and 1.1e-13.
  Value s = polynomial(square, {-1.666666716e-01, 8.333329111e-03, -1.983927068e-04, 2.717699999e-06});
  Value sine = fma(mul(square, s), r, r);
  Value c = polynomial(square, {4.166666791e-02, -1.388888340e-03, 2.479945215e-05, -2.720456109e-07});
  Value cosine = fma(mul(square, square), c, fma(square, number(r, -0.5), number(r, 1)));
  Value zero = integer(quadrant, 0);
  auto bitSet = [&](int64_t bit) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                                 arith::AndIOp::create(b, quadrant, integer(quadrant, bit)), zero);
  };
  Value result = select(bitSet(1), cosine, sine);
  return select(bitSet(2), arith::NegFOp::create(b, result), result);
}

// log2 of a positive finite f64: mantissa in [sqrt(1/2), sqrt(2)), then the series of atanh((m - 1)/(m + 1)), whose
// first omitted term is below 1e-14.
Value VectorMath::log2Wide(Value x) {
  Value raw = bits(x), shift = integer(raw, 52);
  Value offset = arith::SubIOp::create(b, raw, integer(raw, 0x3fe6a09e667f3bcd));
  Value exponent = arith::ShRSIOp::create(b, offset, shift);
  Value mantissa = fromBits(arith::SubIOp::create(b, raw, arith::ShLIOp::create(b, exponent, shift)), x);
  Value one = number(x, 1);
  Value s = arith::DivFOp::create(b, sub(mantissa, one), add(mantissa, one));
  Value series = polynomial(mul(s, s), {1.0, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15});
  Value e = arith::SIToFPOp::create(b, x.getType(), exponent);
  return fma(mul(s, series), number(x, 2 * M_LOG2E), e);
}

// 2^x in f64 for any x; the argument is capped where an f32 result is 0 or infinite anyway.
Value VectorMath::exp2Wide(Value x) {
  Value high = number(x, 200), low = number(x, -200), magic = number(x, 0x1.8p52);
  x = select(greater(x, high), high, x);
  x = select(greater(low, x), low, x);
  Value shifted = add(x, magic);
  Value t = mul(sub(x, sub(shifted, magic)), number(x, M_LN2));
  SmallVector<double> taylor{1};
  for (int n = 1; n <= 11; ++n)
    taylor.push_back(taylor.back() / n);
  Value power = polynomial(t, taylor);
  Value exponent = arith::SubIOp::create(b, bits(shifted), bits(magic));
  Value biased = arith::AddIOp::create(b, exponent, integer(exponent, 1023));
  return mul(power, fromBits(arith::ShLIOp::create(b, biased, integer(exponent, 52)), x));
}

Value VectorMath::pow(Value x, Value y) {
  using P = arith::CmpFPredicate;
  auto test = [&](P predicate, Value l, Value r) -> Value { return arith::CmpFOp::create(b, predicate, l, r); };
  Value zero = number(x, 0), one = number(x, 1), infinity = number(x, INFINITY);
  Value magnitude = math::AbsFOp::create(b, x);
  Value wideY = retype(y, b.getF64Type(), true);
  Value log2 = log2Wide(retype(magnitude, b.getF64Type(), true));
  // 0 and infinity have logarithms of infinite size; NaN keeps its own.
  Value wideMagnitude = retype(magnitude, b.getF64Type(), true);
  log2 = select(test(P::OEQ, magnitude, zero), number(log2, -INFINITY), log2);
  log2 = select(test(P::OLT, magnitude, infinity), log2, wideMagnitude);
  Value result = retype(exp2Wide(mul(wideY, log2)), b.getF32Type(), false);

  Value whole = test(P::OEQ, math::FloorOp::create(b, y), y);
  Value halfY = mul(y, number(y, 0.5));
  Value evenHalf = test(P::OEQ, math::FloorOp::create(b, halfY), halfY);
  Value trueValue = constantInt(b, whole.getType(), 1);
  Value odd = arith::AndIOp::create(b, whole, arith::XOrIOp::create(b, evenHalf, trueValue));
  Value signedResult = math::CopySignOp::create(b, result, x);
  result = select(odd, signedResult, result); // covers negative bases and -0
  Value negative = arith::AndIOp::create(b, greater(zero, x), test(P::OLT, magnitude, infinity));
  Value noPower = arith::AndIOp::create(b, negative, arith::XOrIOp::create(b, whole, trueValue));
  result = select(noPower, number(x, NAN), result);
  Value isOne = arith::OrIOp::create(b, test(P::OEQ, y, zero), test(P::OEQ, x, one));
  Value unitBase =
      arith::AndIOp::create(b, test(P::OEQ, magnitude, one), test(P::OEQ, math::AbsFOp::create(b, y), infinity));
  return select(arith::OrIOp::create(b, isOne, unitBase), one, result);
}

} // namespace plimsoll::codegen
