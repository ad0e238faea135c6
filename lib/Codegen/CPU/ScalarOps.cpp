// One case per elementwise graph op; nothing here knows about loops or memory.
#include "lib/Codegen/CPU/ScalarOps.h"

#include "lib/Codegen/CPU/VectorMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::codegen {

Type computeType(Type element) {
  if (element.isF16() || element.isBF16())
    return Float32Type::get(element.getContext());
  if (auto integer = dyn_cast<IntegerType>(element))
    return IntegerType::get(element.getContext(), integer.getWidth());
  return element;
}

Value emitAdd(ImplicitLocOpBuilder &b, Value x, Value y) {
  return isa<FloatType>(getElementTypeOrSelf(x)) ? Value(arith::AddFOp::create(b, x, y))
                                                 : Value(arith::AddIOp::create(b, x, y));
}
Value emitMaximum(ImplicitLocOpBuilder &b, Value x, Value y, bool isUnsigned) {
  if (isa<FloatType>(getElementTypeOrSelf(x)))
    return arith::MaximumFOp::create(b, x, y);
  return isUnsigned ? Value(arith::MaxUIOp::create(b, x, y)) : Value(arith::MaxSIOp::create(b, x, y));
}

// Half the last kept bit, plus that bit itself for ties; NaN would overflow into infinity, so it is quieted instead.
Value roundToBf16Bits(ImplicitLocOpBuilder &b, Value x) {
  Type wide = typeLike(x.getType(), b.getI32Type()), narrow = typeLike(x.getType(), b.getIntegerType(16));
  Value bits = arith::BitcastOp::create(b, wide, x);
  Value sixteen = constantInt(b, wide, 16);
  Value last = arith::AndIOp::create(b, arith::ShRUIOp::create(b, bits, sixteen), constantInt(b, wide, 1));
  Value rounded = arith::AddIOp::create(b, bits, arith::AddIOp::create(b, last, constantInt(b, wide, 0x7fff)));
  Value isNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x);
  Value quiet = arith::OrIOp::create(b, bits, constantInt(b, wide, 0x400000));
  Value kept = arith::SelectOp::create(b, isNan, quiet, rounded);
  return arith::TruncIOp::create(b, narrow, arith::ShRUIOp::create(b, kept, sixteen));
}
Value fromBf16Bits(ImplicitLocOpBuilder &b, Value bits) {
  Type wide = typeLike(bits.getType(), b.getI32Type());
  Value shifted = arith::ShLIOp::create(b, arith::ExtUIOp::create(b, wide, bits), constantInt(b, wide, 16));
  return arith::BitcastOp::create(b, typeLike(bits.getType(), b.getF32Type()), shifted);
}

Value emitSplat(ImplicitLocOpBuilder &b, ConstantOp constant, Type type) {
  auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!elements || !elements.isSplat())
    return {};
  if (isa<FloatType>(elements.getElementType()))
    return constantLike(b, type, elements.getSplatValue<APFloat>().convertToDouble());
  const APInt value = elements.getSplatValue<APInt>();
  bool isUnsigned = elements.getElementType().isUnsignedInteger() || value.getBitWidth() == 1;
  return constantInt(b, type, isUnsigned ? static_cast<int64_t>(value.getZExtValue()) : value.getSExtValue());
}

namespace {
/// Emits one op; operands and result are in compute types.
class ScalarEmitter {
public:
  ScalarEmitter(ImplicitLocOpBuilder &builder, Operation *source, ValueRange values)
      : b(builder), op(source), x(values[0]), y(values.size() > 1 ? values[1] : Value()), operands(values),
        functions(builder) {
    auto type = cast<RankedTensorType>(source->getOperand(0).getType()).getElementType();
    isFloat = isa<FloatType>(type);
    isDouble = type.isF64();
    isUnsigned = type.isUnsignedInteger() || type.isInteger(1);
  }

  Value emit() {
    return TypeSwitch<Operation *, Value>(op)
        .Case<AddOp>([&](auto) { return emitAdd(b, x, y); })
        .Case<SubOp>(
            [&](auto) { return isFloat ? Value(arith::SubFOp::create(b, x, y)) : arith::SubIOp::create(b, x, y); })
        .Case<MulOp>(
            [&](auto) { return isFloat ? Value(arith::MulFOp::create(b, x, y)) : arith::MulIOp::create(b, x, y); })
        .Case<DivOp>([&](auto) { return isFloat ? Value(arith::DivFOp::create(b, x, y)) : divideIntegers(); })
        .Case<MaximumOp>([&](auto) { return emitMaximum(b, x, y, isUnsigned); })
        .Case<MinimumOp>([&](auto) { return minimum(); })
        .Case<AndOp>([&](auto) { return arith::AndIOp::create(b, x, y); })
        .Case<OrOp>([&](auto) { return arith::OrIOp::create(b, x, y); })
        .Case<NotOp>([&](auto) { return arith::XOrIOp::create(b, x, constantInt(b, x.getType(), 1)); })
        .Case<CompareOp>([&](CompareOp compare) { return emitCompare(compare.getDirection()); })
        .Case<SelectOp>([&](auto) { return arith::SelectOp::create(b, x, y, operands[2]); })
        .Case<IsNanOp>([&](auto) { return arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x); })
        .Case<ConvertOp>([&](ConvertOp convert) { return emitConvert(convert.getType().getElementType()); })
        .Case<PowOp>([&](auto) { return emitPow(); })
        .Default([&](Operation *) { return emitUnary(); });
  }

private:
  Value number(double value) { return constantLike(b, x.getType(), value); }

  Value emitUnary() {
    return TypeSwitch<Operation *, Value>(op)
        .Case<NegOp>(
            [&](auto) { return isFloat ? Value(arith::NegFOp::create(b, x)) : arith::SubIOp::create(b, zero(), x); })
        .Case<AbsOp>([&](auto) { return absolute(); })
        .Case<SignOp>([&](auto) { return sign(); })
        .Case<FloorOp>([&](auto) { return math::FloorOp::create(b, x); })
        .Case<SqrtOp>([&](auto) { return math::SqrtOp::create(b, x); })
        .Case<RsqrtOp>([&](auto) { return arith::DivFOp::create(b, number(1), math::SqrtOp::create(b, x)); })
        .Case<ReciprocalOp>([&](auto) { return arith::DivFOp::create(b, number(1), x); })
        .Case<ReluOp>([&](auto) { return relu(); })
        .Case<SigmoidOp>([&](auto) { return sigmoid(); })
        .Case<ExpOp>([&](auto) { return exp(x); })
        .Case<LogOp>([&](auto) { return isDouble ? Value(math::LogOp::create(b, x)) : functions.log(x); })
        .Case<Log1pOp>([&](auto) { return isDouble ? Value(math::Log1pOp::create(b, x)) : functions.log1p(x); })
        .Case<TanhOp>([&](auto) { return isDouble ? Value(math::TanhOp::create(b, x)) : functions.tanh(x); })
        .Case<ErfOp>([&](auto) { return isDouble ? Value(math::ErfOp::create(b, x)) : functions.erf(x); })
        .Case<SinOp>([&](auto) { return isDouble ? Value(math::SinOp::create(b, x)) : functions.sin(x); })
        .Case<CosOp>([&](auto) { return isDouble ? Value(math::CosOp::create(b, x)) : functions.cos(x); })
        .Default([&](Operation *) { return Value(); });
  }

  Value zero() { return isFloat ? number(0) : constantInt(b, x.getType(), 0); }
  Value exp(Value t) { return isDouble ? Value(math::ExpOp::create(b, t)) : functions.exp(t); }
  Value sigmoid() {
    Value power = exp(arith::NegFOp::create(b, x));
    return arith::DivFOp::create(b, number(1), arith::AddFOp::create(b, number(1), power));
  }
  // x where x > 0 or x is NaN, else 0 (one masked move; a maximum would have to order signed zeros).
  Value relu() {
    Value positive = arith::CmpFOp::create(b, arith::CmpFPredicate::UGT, x, number(0));
    return arith::SelectOp::create(b, positive, x, number(0));
  }
  Value absolute() {
    if (isFloat)
      return math::AbsFOp::create(b, x);
    return isUnsigned ? x : Value(arith::MaxSIOp::create(b, x, arith::SubIOp::create(b, zero(), x)));
  }
  Value sign() {
    if (!isFloat) {
      Value one = constantInt(b, x.getType(), 1), minusOne = constantInt(b, x.getType(), isUnsigned ? 1 : -1);
      return arith::MinSIOp::create(b, arith::MaxSIOp::create(b, x, minusOne), one);
    }
    Value isPositive = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, number(0));
    Value isNegative = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, number(0));
    return arith::SelectOp::create(b, isPositive, number(1),
                                   arith::SelectOp::create(b, isNegative, number(-1), number(0)));
  }
  Value minimum() {
    if (isFloat)
      return arith::MinimumFOp::create(b, x, y);
    return isUnsigned ? Value(arith::MinUIOp::create(b, x, y)) : Value(arith::MinSIOp::create(b, x, y));
  }

  // Division by 0 and by -1 would trap; both take another way.
  Value divideIntegers() {
    Value none = zero(), one = constantInt(b, x.getType(), 1);
    Value byZero = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, y, none);
    if (isUnsigned)
      return arith::SelectOp::create(b, byZero, none,
                                     arith::DivUIOp::create(b, x, arith::SelectOp::create(b, byZero, one, y)));
    Value byMinusOne = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, y, constantInt(b, x.getType(), -1));
    Value special = arith::OrIOp::create(b, byZero, byMinusOne);
    Value quotient = arith::DivSIOp::create(b, x, arith::SelectOp::create(b, special, one, y));
    quotient = arith::SelectOp::create(b, byMinusOne, arith::SubIOp::create(b, none, x), quotient);
    return arith::SelectOp::create(b, byZero, none, quotient);
  }

  Value emitCompare(CompareDirection direction) {
    using F = arith::CmpFPredicate;
    using I = arith::CmpIPredicate;
    auto slot = static_cast<size_t>(direction);
    static constexpr F floats[] = {F::OEQ, F::UNE, F::OLT, F::OLE, F::OGT, F::OGE};
    static constexpr I signedInts[] = {I::eq, I::ne, I::slt, I::sle, I::sgt, I::sge};
    static constexpr I unsignedInts[] = {I::eq, I::ne, I::ult, I::ule, I::ugt, I::uge};
    if (isFloat)
      return arith::CmpFOp::create(b, floats[slot], x, y);
    return arith::CmpIOp::create(b, isUnsigned ? unsignedInts[slot] : signedInts[slot], x, y);
  }

  Value emitConvert(Type to) {
    Type target = typeLike(x.getType(), computeType(to));
    if (to.isInteger(1))
      return isFloat ? Value(arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, x, zero()))
                     : Value(arith::CmpIOp::create(b, arith::CmpIPredicate::ne, x, zero()));
    if (!isa<FloatType>(to))
      return isFloat ? floatToInteger(target, to.isUnsignedInteger()) : resizeInteger(target);
    Value result = isFloat ? resizeFloat(target) : integerToFloat(target);
    return roundHalf(result, to);
  }
  Value integerToFloat(Type target) {
    return isUnsigned ? Value(arith::UIToFPOp::create(b, target, x)) : Value(arith::SIToFPOp::create(b, target, x));
  }
  // Truncates what fits; the rest goes to the nearest end of the range, NaN to 0 (a plain conversion would be
  // undefined).
  Value floatToInteger(Type target, bool toUnsigned) {
    auto width = static_cast<int>(getElementTypeOrSelf(target).getIntOrFloatBitWidth());
    double low = toUnsigned ? 0 : -std::ldexp(1.0, width - 1), high = std::ldexp(1.0, toUnsigned ? width : width - 1);
    APInt least = toUnsigned ? APInt::getMinValue(width) : APInt::getSignedMinValue(width);
    APInt most = toUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
    Value tooLow = arith::CmpFOp::create(b, arith::CmpFPredicate::ULT, x, number(low));
    Value tooHigh = arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, x, number(high));
    Value outside = arith::OrIOp::create(b, tooLow, tooHigh);
    Value safe = arith::SelectOp::create(b, outside, number(0), x);
    Value inside =
        toUnsigned ? Value(arith::FPToUIOp::create(b, target, safe)) : Value(arith::FPToSIOp::create(b, target, safe));
    Value isNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x);
    Value result = arith::SelectOp::create(b, tooHigh, constantInt(b, target, most.getSExtValue()), inside);
    Value lowest =
        arith::SelectOp::create(b, isNan, constantInt(b, target, 0), constantInt(b, target, least.getSExtValue()));
    return arith::SelectOp::create(b, tooLow, lowest, result);
  }
  Value resizeFloat(Type target) {
    unsigned from = getElementTypeOrSelf(x).getIntOrFloatBitWidth(),
             to = getElementTypeOrSelf(target).getIntOrFloatBitWidth();
    if (from == to)
      return x;
    return from < to ? Value(arith::ExtFOp::create(b, target, x)) : Value(arith::TruncFOp::create(b, target, x));
  }
  Value resizeInteger(Type target) {
    unsigned from = getElementTypeOrSelf(x).getIntOrFloatBitWidth(),
             to = getElementTypeOrSelf(target).getIntOrFloatBitWidth();
    if (from == to)
      return x;
    if (from > to)
      return arith::TruncIOp::create(b, target, x);
    return isUnsigned ? Value(arith::ExtUIOp::create(b, target, x)) : Value(arith::ExtSIOp::create(b, target, x));
  }
  Value roundHalf(Value result, Type to) {
    if (to.isBF16())
      return fromBf16Bits(b, roundToBf16Bits(b, result));
    if (!to.isF16())
      return result;
    Value half = arith::TruncFOp::create(b, typeLike(result.getType(), to), result);
    return arith::ExtFOp::create(b, result.getType(), half);
  }

  // Common constant exponents cost a multiplication or a root.
  Value emitPow() {
    double exponent = constantExponent();
    if (exponent == 2)
      return arith::MulFOp::create(b, x, x);
    if (exponent == 3)
      return arith::MulFOp::create(b, arith::MulFOp::create(b, x, x), x);
    if (exponent == -1)
      return arith::DivFOp::create(b, number(1), x);
    return isDouble ? Value(math::PowFOp::create(b, x, y)) : functions.pow(x, y);
  }
  double constantExponent() {
    Value source = op->getOperand(1);
    if (auto broadcast = source.getDefiningOp<BroadcastOp>())
      source = broadcast.getOperand();
    auto constant = source.getDefiningOp<ConstantOp>();
    auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
    return elements && elements.isSplat() ? elements.getSplatValue<APFloat>().convertToDouble() : NAN;
  }

  ImplicitLocOpBuilder &b;
  Operation *op;
  Value x, y;
  ValueRange operands;
  VectorMath functions;
  bool isFloat, isDouble, isUnsigned;
};
} // namespace

Value emitScalarOp(ImplicitLocOpBuilder &builder, Operation *op, ValueRange operands) {
  if (operands.empty() || op->getNumResults() != 1)
    return {};
  return ScalarEmitter(builder, op, operands).emit();
}

} // namespace plimsoll::codegen
