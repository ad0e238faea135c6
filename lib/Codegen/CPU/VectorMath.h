// Elementary functions as straight-line arith: the same code serves one lane or sixty-four, so an element's bits never
// depend on where in a vector it sits. No function calls libm for f32; f64 goes to libm lane by lane.
#pragma once

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Value.h"

namespace plimsoll::codegen {

/// Builds elementary functions of f32 (scalar or 1-D vector) values. Relative errors, measured over dense sweeps
/// against double (test/unit/Codegen/MathAccuracyTest.cpp): exp, log, log1p, tanh, erf, pow <= 2e-7; sin, cos <= 2e-7
/// absolute for |x| <= 1e6.
class VectorMath {
public:
  explicit VectorMath(mlir::ImplicitLocOpBuilder &builder) : b(builder) {}

  mlir::Value exp(mlir::Value x);
  mlir::Value log(mlir::Value x);
  mlir::Value log1p(mlir::Value x);
  mlir::Value tanh(mlir::Value x);
  mlir::Value erf(mlir::Value x);
  mlir::Value sin(mlir::Value x) { return sinOrCos(x, 0); }
  mlir::Value cos(mlir::Value x) { return sinOrCos(x, 1); }
  /// x^y with C's special cases; works in f64 inside, so the result is correctly rounded but for rare ties.
  mlir::Value pow(mlir::Value x, mlir::Value y);

private:
  mlir::Value number(mlir::Value like, double value);
  mlir::Value integer(mlir::Value like, int64_t value);
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value greater(mlir::Value x, mlir::Value y);
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no);
  mlir::Value bits(mlir::Value x);
  mlir::Value fromBits(mlir::Value x, mlir::Value like);
  mlir::Value polynomial(mlir::Value x, llvm::ArrayRef<double> coefficients);
  mlir::Value log2Wide(mlir::Value x);
  mlir::Value exp2Wide(mlir::Value x);
  mlir::Value sinOrCos(mlir::Value x, int64_t quarterTurns);
  mlir::Value retype(mlir::Value x, mlir::Type element, bool widen);

  mlir::ImplicitLocOpBuilder &b;
};

/// `element`, or a vector of it when `like` is a vector.
mlir::Type typeLike(mlir::Type like, mlir::Type element);
/// A constant of `like`'s type.
mlir::Value constantLike(mlir::ImplicitLocOpBuilder &builder, mlir::Type type, double value);
mlir::Value constantInt(mlir::ImplicitLocOpBuilder &builder, mlir::Type type, int64_t value);

} // namespace plimsoll::codegen
