// Elementwise ops: each result element from the same element of the operands.
#include "lib/Reference/Rules.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::reference {

static double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
static double geluErf(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
static double geluTanh(double x) { return x * sigmoid(2.0 * std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)); }
static double signOf(double x) { return static_cast<double>((x > 0) - (x < 0)); }

using FloatUnary = double (*)(double);
static FloatUnary floatUnary(Operation *op) {
  return TypeSwitch<Operation *, FloatUnary>(op)
      .Case<NegOp>([](auto) { return [](double x) { return -x; }; })
      .Case<AbsOp>([](auto) { return [](double x) { return std::fabs(x); }; })
      .Case<SignOp>([](auto) { return signOf; })
      .Case<FloorOp>([](auto) { return [](double x) { return std::floor(x); }; })
      .Case<ExpOp>([](auto) { return [](double x) { return std::exp(x); }; })
      .Case<LogOp>([](auto) { return [](double x) { return std::log(x); }; })
      .Case<Log1pOp>([](auto) { return [](double x) { return std::log1p(x); }; })
      .Case<SqrtOp>([](auto) { return [](double x) { return std::sqrt(x); }; })
      .Case<RsqrtOp>([](auto) { return [](double x) { return 1.0 / std::sqrt(x); }; })
      .Case<ReciprocalOp>([](auto) { return [](double x) { return 1.0 / x; }; })
      .Case<SinOp>([](auto) { return [](double x) { return std::sin(x); }; })
      .Case<CosOp>([](auto) { return [](double x) { return std::cos(x); }; })
      .Case<TanhOp>([](auto) { return [](double x) { return std::tanh(x); }; })
      .Case<ErfOp>([](auto) { return [](double x) { return std::erf(x); }; })
      .Case<SigmoidOp>([](auto) { return sigmoid; })
      .Case<ReluOp>([](auto) { return [](double x) { return x <= 0 ? 0.0 : x; }; })
      .Case<SiluOp>([](auto) { return [](double x) { return x * sigmoid(x); }; })
      .Case<GeluOp>([](GeluOp gelu) { return gelu.getApproximate() ? geluTanh : geluErf; })
      .Default([](Operation *) { return nullptr; });
}

using IntUnary = int64_t (*)(int64_t);
static IntUnary intUnary(Operation *op) {
  return TypeSwitch<Operation *, IntUnary>(op)
      .Case<NegOp>([](auto) { return [](int64_t x) { return static_cast<int64_t>(-static_cast<uint64_t>(x)); }; })
      .Case<AbsOp>(
          [](auto) { return [](int64_t x) { return x < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(x)) : x; }; })
      .Case<SignOp>([](auto) { return [](int64_t x) { return static_cast<int64_t>((x > 0) - (x < 0)); }; })
      .Case<NotOp>([](auto) { return [](int64_t x) { return static_cast<int64_t>(x == 0); }; })
      .Default([](Operation *) { return nullptr; });
}

static double larger(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? std::numeric_limits<double>::quiet_NaN() : std::fmax(x, y);
}
static double smaller(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? std::numeric_limits<double>::quiet_NaN() : std::fmin(x, y);
}

using FloatBinary = double (*)(double, double);
static FloatBinary floatBinary(Operation *op) {
  return TypeSwitch<Operation *, FloatBinary>(op)
      .Case<AddOp>([](auto) { return [](double x, double y) { return x + y; }; })
      .Case<SubOp>([](auto) { return [](double x, double y) { return x - y; }; })
      .Case<MulOp>([](auto) { return [](double x, double y) { return x * y; }; })
      .Case<DivOp>([](auto) { return [](double x, double y) { return x / y; }; })
      .Case<PowOp>([](auto) { return [](double x, double y) { return std::pow(x, y); }; })
      .Case<MaximumOp>([](auto) { return larger; })
      .Case<MinimumOp>([](auto) { return smaller; })
      .Default([](Operation *) { return nullptr; });
}

// Wrapping arithmetic in 64 bits; the driver wraps the result to the element width.
static int64_t wrapping(uint64_t bits) { return static_cast<int64_t>(bits); }
using IntBinary = int64_t (*)(int64_t, int64_t);
static IntBinary intBinary(Operation *op) {
  return TypeSwitch<Operation *, IntBinary>(op)
      .Case<AddOp>([](auto) {
        return [](int64_t x, int64_t y) { return wrapping(static_cast<uint64_t>(x) + static_cast<uint64_t>(y)); };
      })
      .Case<SubOp>([](auto) {
        return [](int64_t x, int64_t y) { return wrapping(static_cast<uint64_t>(x) - static_cast<uint64_t>(y)); };
      })
      .Case<MulOp>([](auto) {
        return [](int64_t x, int64_t y) { return wrapping(static_cast<uint64_t>(x) * static_cast<uint64_t>(y)); };
      })
      .Case<DivOp>([](auto) {
        return [](int64_t x, int64_t y) { return y == -1 ? wrapping(-static_cast<uint64_t>(x)) : x / y; };
      })
      .Case<MaximumOp>([](auto) { return [](int64_t x, int64_t y) { return std::max(x, y); }; })
      .Case<MinimumOp>([](auto) { return [](int64_t x, int64_t y) { return std::min(x, y); }; })
      .Case<AndOp>([](auto) { return [](int64_t x, int64_t y) { return x & y; }; })
      .Case<OrOp>([](auto) { return [](int64_t x, int64_t y) { return x | y; }; })
      .Default([](Operation *) { return nullptr; });
}

template <typename T> static bool holds(CompareDirection direction, T x, T y) {
  switch (direction) {
  case CompareDirection::EQ:
    return x == y;
  case CompareDirection::NE:
    return x != y;
  case CompareDirection::LT:
    return x < y;
  case CompareDirection::LE:
    return x <= y;
  case CompareDirection::GT:
    return x > y;
  case CompareDirection::GE:
    return x >= y;
  }
  llvm_unreachable("unknown direction");
}

static void evaluateCompare(CompareOp op, Frame &frame) {
  const HostTensor &lhs = *frame.in[0], &rhs = *frame.in[1];
  for (int64_t i = 0; i < lhs.size(); ++i)
    frame.out[0].ints[i] = lhs.isFloat() ? holds(op.getDirection(), lhs.floats[i], rhs.floats[i])
                                         : holds(op.getDirection(), lhs.ints[i], rhs.ints[i]);
}

static void evaluateSelect(Frame &frame) {
  for (int64_t i = 0; i < frame.out[0].size(); ++i) {
    const HostTensor &taken = *frame.in[frame.in[0]->ints[i] ? 1 : 2];
    if (taken.isFloat())
      frame.out[0].floats[i] = taken.floats[i];
    else
      frame.out[0].ints[i] = taken.ints[i];
  }
}

// Truncation toward zero; NaN gives 0 and numbers outside int64 saturate, so that the oracle itself is defined
// everywhere.
static int64_t truncate(double value) {
  if (std::isnan(value))
    return 0;
  constexpr double limit = 9223372036854775808.0;
  return value >= limit   ? std::numeric_limits<int64_t>::max()
         : value < -limit ? std::numeric_limits<int64_t>::min()
                          : static_cast<int64_t>(value);
}

static void evaluateConvert(Frame &frame) {
  const HostTensor &from = *frame.in[0];
  HostTensor &to = frame.out[0];
  bool toBool = to.type.getElementType().isInteger(1);
  for (int64_t i = 0; i < to.size(); ++i) {
    if (to.isFloat())
      to.floats[i] = from.isFloat() ? from.floats[i] : static_cast<double>(from.ints[i]);
    else if (toBool)
      to.ints[i] = from.isFloat() ? from.floats[i] != 0 : from.ints[i] != 0;
    else
      to.ints[i] = from.isFloat() ? truncate(from.floats[i]) : from.ints[i];
  }
}

static bool applyUnary(Frame &frame) {
  if (frame.in.size() != 1)
    return false;
  FloatUnary ofFloats = frame.in[0]->isFloat() ? floatUnary(frame.op) : nullptr;
  IntUnary ofInts = frame.in[0]->isFloat() ? nullptr : intUnary(frame.op);
  for (int64_t i = 0; ofFloats && i < frame.out[0].size(); ++i)
    frame.out[0].floats[i] = ofFloats(frame.in[0]->floats[i]);
  for (int64_t i = 0; ofInts && i < frame.out[0].size(); ++i)
    frame.out[0].ints[i] = ofInts(frame.in[0]->ints[i]);
  return ofFloats || ofInts;
}

static FailureOr<bool> applyBinary(Frame &frame) {
  if (frame.in.size() != 2)
    return false;
  const HostTensor &lhs = *frame.in[0], &rhs = *frame.in[1];
  FloatBinary ofFloats = lhs.isFloat() ? floatBinary(frame.op) : nullptr;
  IntBinary ofInts = lhs.isFloat() ? nullptr : intBinary(frame.op);
  if (ofInts && isa<DivOp>(frame.op) && llvm::is_contained(rhs.ints, 0))
    return frame.op->emitOpError("integer division by zero");
  for (int64_t i = 0; ofFloats && i < lhs.size(); ++i)
    frame.out[0].floats[i] = ofFloats(lhs.floats[i], rhs.floats[i]);
  for (int64_t i = 0; ofInts && i < lhs.size(); ++i)
    frame.out[0].ints[i] = ofInts(lhs.ints[i], rhs.ints[i]);
  return ofFloats || ofInts;
}

FailureOr<bool> evaluateElementwise(Frame &frame) {
  if (!frame.op->hasTrait<GraphElementwise>())
    return false;
  if (auto compare = dyn_cast<CompareOp>(frame.op))
    return evaluateCompare(compare, frame), true;
  if (isa<SelectOp>(frame.op))
    return evaluateSelect(frame), true;
  if (isa<ConvertOp>(frame.op))
    return evaluateConvert(frame), true;
  if (isa<IsNanOp>(frame.op)) {
    for (int64_t i = 0; i < frame.out[0].size(); ++i)
      frame.out[0].ints[i] = std::isnan(frame.in[0]->floats[i]);
    return true;
  }
  return applyUnary(frame) ? FailureOr<bool>(true) : applyBinary(frame);
}

} // namespace plimsoll::reference
