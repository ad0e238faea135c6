// Products, convolutions and pools survive printing and parsing.
// RUN: plimsoll-opt %s | plimsoll-opt | FileCheck %s
// RUN: plimsoll-opt %s --mlir-print-op-generic | plimsoll-opt | FileCheck %s

// CHECK-LABEL: @products
func.func @products(%a: tensor<2x4x3xf32>, %b: tensor<2x4x5xf32>, %c: tensor<2x3x4xf32>) -> tensor<2x3x5xf32> {
  // CHECK: graph.dot %{{.*}}, %{{.*}} {trans_a = true} : (tensor<2x4x3xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  %0 = graph.dot %a, %b {trans_a = true} : (tensor<2x4x3xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  // CHECK: graph.dot %{{.*}}, %{{.*}} : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  %1 = graph.dot %c, %b : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  // CHECK: graph.dot %{{.*}}, %{{.*}} {trans_a = true, trans_b = true} : (tensor<2x3x4xf32>, tensor<2x4x3xf32>) -> tensor<2x4x4xf32>
  %2 = graph.dot %c, %a {trans_a = true, trans_b = true} : (tensor<2x3x4xf32>, tensor<2x4x3xf32>) -> tensor<2x4x4xf32>
  return %0 : tensor<2x3x5xf32>
}

// CHECK-LABEL: @sums
func.func @sums(%a: tensor<4x3xf32>, %b: tensor<4x5xf32>, %c: tensor<3x5xf32>) -> tensor<3x5xf32> {
  // CHECK: graph.dot_add %{{.*}}, %{{.*}} into %{{.*}} {trans_a = true} : (tensor<4x3xf32>, tensor<4x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  %0 = graph.dot_add %a, %b into %c {trans_a = true} : (tensor<4x3xf32>, tensor<4x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}

// CHECK-LABEL: @convolutions
func.func @convolutions(%x: tensor<1x4x5x5xf32>, %w: tensor<6x2x3x3xf32>, %y: tensor<1x6x3x3xf32>) -> tensor<1x6x3x3xf32> {
  // CHECK: graph.conv %{{.*}}, %{{.*}} {dilations = array<i64: 1, 1>, groups = 2 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>}
  // CHECK-SAME: (tensor<1x4x5x5xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x3x3xf32>
  %0 = graph.conv %x, %w {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<1x4x5x5xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x3x3xf32>
  // CHECK: graph.conv_input_grad %{{.*}} : (tensor<1x6x3x3xf32>, tensor<6x2x3x3xf32>) -> tensor<1x4x5x5xf32>
  %1 = graph.conv_input_grad %y, %w {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<1x6x3x3xf32>, tensor<6x2x3x3xf32>) -> tensor<1x4x5x5xf32>
  // CHECK: graph.conv_weight_grad %{{.*}} : (tensor<1x4x5x5xf32>, tensor<1x6x3x3xf32>) -> tensor<6x2x3x3xf32>
  %2 = graph.conv_weight_grad %x, %y {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<1x4x5x5xf32>, tensor<1x6x3x3xf32>) -> tensor<6x2x3x3xf32>
  return %0 : tensor<1x6x3x3xf32>
}

// The second pool rounds its last window up.
// CHECK-LABEL: @pools
func.func @pools(%x: tensor<1x2x5xf32>) -> tensor<1x2x5xf32> {
  // CHECK: graph.max_pool %{{.*}} {dilations = array<i64: 1>, kernel = array<i64: 2>, pads = array<i64: 0, 0>, strides = array<i64: 2>} : (tensor<1x2x5xf32>) -> (tensor<1x2x2xf32>, tensor<1x2x2xi32>)
  %0, %i = graph.max_pool %x {kernel = array<i64: 2>, strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x2x5xf32>) -> (tensor<1x2x2xf32>, tensor<1x2x2xi32>)
  // CHECK: graph.max_pool %{{.*}} -> (tensor<1x2x3xf32>, tensor<1x2x3xi32>)
  %1, %j = graph.max_pool %x {kernel = array<i64: 2>, strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x2x5xf32>) -> (tensor<1x2x3xf32>, tensor<1x2x3xi32>)
  // CHECK: graph.max_pool_grad %{{.*}}, %{{.*}} : (tensor<1x2x2xf32>, tensor<1x2x2xi32>) -> tensor<1x2x5xf32>
  %2 = graph.max_pool_grad %0, %i {kernel = array<i64: 2>, strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x2x2xf32>, tensor<1x2x2xi32>) -> tensor<1x2x5xf32>
  // CHECK: graph.avg_pool %{{.*}} {count_include_pad = true,{{.*}}} : (tensor<1x2x5xf32>) -> tensor<1x2x3xf32>
  %3 = graph.avg_pool %x {kernel = array<i64: 3>, strides = array<i64: 2>, pads = array<i64: 1, 1>, dilations = array<i64: 1>, count_include_pad = true} : (tensor<1x2x5xf32>) -> tensor<1x2x3xf32>
  // CHECK: graph.avg_pool_grad %{{.*}} : (tensor<1x2x3xf32>) -> tensor<1x2x5xf32>
  %4 = graph.avg_pool_grad %3 {kernel = array<i64: 3>, strides = array<i64: 2>, pads = array<i64: 1, 1>, dilations = array<i64: 1>, count_include_pad = true} : (tensor<1x2x3xf32>) -> tensor<1x2x5xf32>
  return %4 : tensor<1x2x5xf32>
}
