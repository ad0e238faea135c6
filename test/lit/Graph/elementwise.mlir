// Every elementwise op and constant survives printing and parsing.
// RUN: plimsoll-opt %s | plimsoll-opt | FileCheck %s
// RUN: plimsoll-opt %s --mlir-print-op-generic | plimsoll-opt | FileCheck %s

// CHECK-LABEL: @unary
func.func @unary(%x: tensor<2x3xf32>, %i: tensor<4xi32>, %b: tensor<4xi1>) -> tensor<2x3xf32> {
  // CHECK: graph.neg %{{.*}} : tensor<2x3xf32>
  %0 = graph.neg %x : tensor<2x3xf32>
  // CHECK: graph.abs %{{.*}} : tensor<4xi32>
  %1 = graph.abs %i : tensor<4xi32>
  // CHECK: graph.sign
  %2 = graph.sign %x : tensor<2x3xf32>
  // CHECK: graph.floor
  %3 = graph.floor %x : tensor<2x3xf32>
  // CHECK: graph.exp
  %4 = graph.exp %x : tensor<2x3xf32>
  // CHECK: graph.log %
  %5 = graph.log %x : tensor<2x3xf32>
  // CHECK: graph.log1p
  %6 = graph.log1p %x : tensor<2x3xf32>
  // CHECK: graph.sqrt
  %7 = graph.sqrt %x : tensor<2x3xf32>
  // CHECK: graph.rsqrt
  %8 = graph.rsqrt %x : tensor<2x3xf32>
  // CHECK: graph.reciprocal
  %9 = graph.reciprocal %x : tensor<2x3xf32>
  // CHECK: graph.sin
  %10 = graph.sin %x : tensor<2x3xf32>
  // CHECK: graph.cos
  %11 = graph.cos %x : tensor<2x3xf32>
  // CHECK: graph.tanh
  %12 = graph.tanh %x : tensor<2x3xf32>
  // CHECK: graph.erf
  %13 = graph.erf %x : tensor<2x3xf32>
  // CHECK: graph.sigmoid
  %14 = graph.sigmoid %x : tensor<2x3xf32>
  // CHECK: graph.relu
  %15 = graph.relu %x : tensor<2x3xf32>
  // CHECK: graph.silu
  %16 = graph.silu %x : tensor<2x3xf32>
  // CHECK: graph.gelu %{{.*}} : tensor<2x3xf32>
  %17 = graph.gelu %x : tensor<2x3xf32>
  // CHECK: graph.gelu %{{.*}} {approximate = true} : tensor<2x3xf32>
  %18 = graph.gelu %x {approximate = true} : tensor<2x3xf32>
  // CHECK: graph.not %{{.*}} : tensor<4xi1>
  %19 = graph.not %b : tensor<4xi1>
  // CHECK: graph.is_nan %{{.*}} : tensor<2x3xf32> -> tensor<2x3xi1>
  %20 = graph.is_nan %x : tensor<2x3xf32> -> tensor<2x3xi1>
  return %0 : tensor<2x3xf32>
}

// CHECK-LABEL: @binary
func.func @binary(%x: tensor<3xf16>, %y: tensor<3xf16>, %p: tensor<3xi1>, %q: tensor<3xi1>) -> tensor<3xf16> {
  // CHECK: graph.add %{{.*}}, %{{.*}} : tensor<3xf16>
  %0 = graph.add %x, %y : tensor<3xf16>
  // CHECK: graph.sub
  %1 = graph.sub %x, %y : tensor<3xf16>
  // CHECK: graph.mul
  %2 = graph.mul %x, %y : tensor<3xf16>
  // CHECK: graph.div
  %3 = graph.div %x, %y : tensor<3xf16>
  // CHECK: graph.pow
  %4 = graph.pow %x, %y : tensor<3xf16>
  // CHECK: graph.maximum
  %5 = graph.maximum %x, %y : tensor<3xf16>
  // CHECK: graph.minimum
  %6 = graph.minimum %x, %y : tensor<3xf16>
  // CHECK: graph.and %{{.*}}, %{{.*}} : tensor<3xi1>
  %7 = graph.and %p, %q : tensor<3xi1>
  // CHECK: graph.or
  %8 = graph.or %p, %q : tensor<3xi1>
  // CHECK: graph.compare <eq> %{{.*}}, %{{.*}} : tensor<3xf16> -> tensor<3xi1>
  %9 = graph.compare <eq> %x, %y : tensor<3xf16> -> tensor<3xi1>
  // CHECK: graph.compare <ne>
  %10 = graph.compare <ne> %x, %y : tensor<3xf16> -> tensor<3xi1>
  // CHECK: graph.compare <lt>
  %11 = graph.compare <lt> %x, %y : tensor<3xf16> -> tensor<3xi1>
  // CHECK: graph.compare <le>
  %12 = graph.compare <le> %x, %y : tensor<3xf16> -> tensor<3xi1>
  // CHECK: graph.compare <gt>
  %13 = graph.compare <gt> %x, %y : tensor<3xf16> -> tensor<3xi1>
  // CHECK: graph.compare <ge>
  %14 = graph.compare <ge> %x, %y : tensor<3xf16> -> tensor<3xi1>
  // CHECK: graph.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<3xi1>, tensor<3xf16>
  %15 = graph.select %p, %x, %y : tensor<3xi1>, tensor<3xf16>
  // CHECK: graph.convert %{{.*}} : tensor<3xf16> -> tensor<3xf32>
  %16 = graph.convert %x : tensor<3xf16> -> tensor<3xf32>
  return %15 : tensor<3xf16>
}

// CHECK-LABEL: @constants
func.func @constants() -> tensor<2xf32> {
  // CHECK: graph.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
  %0 = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
  // CHECK: graph.constant dense<true> : tensor<i1>
  %1 = graph.constant dense<true> : tensor<i1>
  // CHECK: graph.iota 1 : tensor<2x4xi64>
  %2 = graph.iota 1 : tensor<2x4xi64>
  return %0 : tensor<2xf32>
}
