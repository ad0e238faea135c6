// Views survive printing and parsing.
// RUN: plimsoll-opt %s | plimsoll-opt | FileCheck %s
// RUN: plimsoll-opt %s --mlir-print-op-generic | plimsoll-opt | FileCheck %s

// CHECK-LABEL: @views
func.func @views(%x: tensor<2x3xf32>, %s: tensor<f32>, %one: tensor<2x1xf32>) -> tensor<2x3xf32> {
  // CHECK: graph.broadcast %{{.*}} [1, 2] : tensor<2x3xf32> -> tensor<4x2x3xf32>
  %0 = graph.broadcast %x [1, 2] : tensor<2x3xf32> -> tensor<4x2x3xf32>
  // CHECK: graph.broadcast %{{.*}} [] : tensor<f32> -> tensor<5xf32>
  %1 = graph.broadcast %s [] : tensor<f32> -> tensor<5xf32>
  // CHECK: graph.broadcast %{{.*}} [0, 1] : tensor<2x1xf32> -> tensor<2x3xf32>
  %2 = graph.broadcast %one [0, 1] : tensor<2x1xf32> -> tensor<2x3xf32>
  // CHECK: graph.reshape %{{.*}} : tensor<2x3xf32> -> tensor<6xf32>
  %3 = graph.reshape %x : tensor<2x3xf32> -> tensor<6xf32>
  // CHECK: graph.transpose %{{.*}} [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  %4 = graph.transpose %x [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  // CHECK: graph.slice %{{.*}} [0, 1] [1, 2] : tensor<2x3xf32> -> tensor<1x1xf32>
  %5 = graph.slice %x [0, 1] [1, 2] : tensor<2x3xf32> -> tensor<1x1xf32>
  return %2 : tensor<2x3xf32>
}
