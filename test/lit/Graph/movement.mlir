// Data movement and reductions survive printing and parsing.
// RUN: plimsoll-opt %s | plimsoll-opt | FileCheck %s
// RUN: plimsoll-opt %s --mlir-print-op-generic | plimsoll-opt | FileCheck %s

// CHECK-LABEL: @movement
func.func @movement(%x: tensor<2x3xf32>, %i: tensor<5xi64>, %e: tensor<2x2xi32>, %u: tensor<5x3xf32>, %v: tensor<2x2xf32>, %s: tensor<2xi64>) -> tensor<2x3xf32> {
  // CHECK: graph.copy %{{.*}} : tensor<2x3xf32>
  %0 = graph.copy %x : tensor<2x3xf32>
  // CHECK: graph.concat %{{.*}}, %{{.*}} axis 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  %1 = graph.concat %x, %0 axis 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  // CHECK: graph.pad %{{.*}} low [1, 0] high [0, 2] interior [0, 1] : tensor<2x3xf32> -> tensor<3x7xf32>
  %2 = graph.pad %x low [1, 0] high [0, 2] interior [0, 1] : tensor<2x3xf32> -> tensor<3x7xf32>
  // CHECK: graph.pad %{{.*}} low [0, 0] high [0, 0] interior [0, 0] {value = 1.500000e+00 : f64} : tensor<2x3xf32> -> tensor<2x3xf32>
  %3 = graph.pad %x low [0, 0] high [0, 0] interior [0, 0] {value = 1.5 : f64} : tensor<2x3xf32> -> tensor<2x3xf32>
  // CHECK: graph.gather %{{.*}}, %{{.*}} axis 0 : (tensor<2x3xf32>, tensor<5xi64>) -> tensor<5x3xf32>
  %4 = graph.gather %x, %i axis 0 : (tensor<2x3xf32>, tensor<5xi64>) -> tensor<5x3xf32>
  // CHECK: graph.scatter_add %{{.*}}, %{{.*}} axis 0 : (tensor<5xi64>, tensor<5x3xf32>) -> tensor<2x3xf32>
  %5 = graph.scatter_add %i, %u axis 0 : (tensor<5xi64>, tensor<5x3xf32>) -> tensor<2x3xf32>
  // CHECK: graph.gather_elements %{{.*}}, %{{.*}} axis 1 : (tensor<2x3xf32>, tensor<2x2xi32>) -> tensor<2x2xf32>
  %6 = graph.gather_elements %x, %e axis 1 : (tensor<2x3xf32>, tensor<2x2xi32>) -> tensor<2x2xf32>
  // CHECK: graph.scatter_add_elements %{{.*}}, %{{.*}} axis 1 : (tensor<2x2xi32>, tensor<2x2xf32>) -> tensor<2x3xf32>
  %7 = graph.scatter_add_elements %e, %v axis 1 : (tensor<2x2xi32>, tensor<2x2xf32>) -> tensor<2x3xf32>
  // CHECK: graph.random_uniform %{{.*}} id 7 : tensor<2xi64> -> tensor<4xf32>
  %8 = graph.random_uniform %s id 7 : tensor<2xi64> -> tensor<4xf32>
  // CHECK: graph.cumsum %{{.*}} axis 1 : tensor<2x3xf32>
  %9 = graph.cumsum %x axis 1 : tensor<2x3xf32>
  // CHECK: graph.cumsum %{{.*}} axis 0 {exclusive = true, reverse = true} : tensor<2x3xf32>
  %10 = graph.cumsum %x axis 0 {exclusive = true, reverse = true} : tensor<2x3xf32>
  // CHECK: graph.reduce_sum %{{.*}} [0, 1] : tensor<2x3xf32> -> tensor<f32>
  %11 = graph.reduce_sum %x [0, 1] : tensor<2x3xf32> -> tensor<f32>
  // CHECK: graph.reduce_max %{{.*}} [1] : tensor<2x3xf32> -> tensor<2xf32>
  %12 = graph.reduce_max %x [1] : tensor<2x3xf32> -> tensor<2xf32>
  return %5 : tensor<2x3xf32>
}
