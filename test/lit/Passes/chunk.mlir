// --plimsoll-chunk: a loss over a vocabulary becomes losses over slices of the tokens; the logits in full are only left where something
// other than the loss wants them.
// RUN: plimsoll-opt %s --plimsoll-chunk=count=4 --canonicalize | FileCheck %s
// RUN: plimsoll-opt %s --plimsoll-chunk=count=4 --remarks-filter=chunk -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: plimsoll-opt %s --plimsoll-chunk=count=1 | FileCheck %s --check-prefix=ONE

graph.variable @w : tensor<4x7xf32> {kind = #graph.variable_kind<parameter>}
graph.variable @b : tensor<7xf32> {kind = #graph.variable_kind<parameter>}

// Bias and shift of a causal model: six rows in four pieces are three of two; the last piece comes first.
// ONE-NOT: graph.chunk
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[X:.*]]: tensor<2x4x4xf32>{{.*}}, %[[L:.*]]: tensor<6xi64>
// CHECK: %[[SHIFTED:.*]] = graph.slice %[[X]] [0, 0, 0] [1, 1, 1] : tensor<2x4x4xf32> -> tensor<2x3x4xf32>
// CHECK-NEXT: %[[H:.*]] = graph.reshape %[[SHIFTED]] : tensor<2x3x4xf32> -> tensor<6x4xf32>
// CHECK-NEXT: %[[H2:.*]] = graph.slice %[[H]] [4, 0] [1, 1] : tensor<6x4xf32> -> tensor<2x4xf32>
// CHECK-NEXT: %[[P2:.*]] = graph.dot %[[H2]], %{{.*}} : (tensor<2x4xf32>, tensor<4x7xf32>) -> tensor<2x7xf32>
// CHECK-NEXT: %[[B2:.*]] = graph.broadcast %{{.*}} [1] : tensor<7xf32> -> tensor<2x7xf32>
// CHECK-NEXT: %[[Z2:.*]] = graph.add %[[P2]], %[[B2]]
// CHECK-NEXT: %[[L2:.*]] = graph.slice %[[L]] [4] [1]
// CHECK-NEXT: %[[LOSS2:.*]], %{{.*}} = graph.cross_entropy %[[Z2]], %[[L2]] ignore -100 {graph.chunk = 4 : i64}
// CHECK: graph.slice %[[H]] [2, 0] [1, 1]
// CHECK: %[[LOSS1:.*]], %{{.*}} = graph.cross_entropy {{.*}} {graph.chunk = 2 : i64}
// CHECK: graph.slice %[[H]] [0, 0] [1, 1]
// CHECK: %[[LOSS0:.*]], %{{.*}} = graph.cross_entropy {{.*}} {graph.chunk = 0 : i64}
// CHECK: %[[ALL:.*]] = graph.concat %[[LOSS0]], %[[LOSS1]], %[[LOSS2]] axis 0
// CHECK: graph.reduce_sum %[[ALL]] [0]
func.func @forward(%x: tensor<2x4x4xf32> {graph.name = "x"}, %labels: tensor<6xi64> {graph.name = "labels"})
    -> (tensor<f32> {graph.role = "loss"}, tensor<2x4x7xf32> {graph.name = "logits"}) {
  %w = graph.read @w : tensor<4x7xf32>
  %b = graph.read @b : tensor<7xf32>
  %rows = graph.reshape %x : tensor<2x4x4xf32> -> tensor<8x4xf32>
  %p = graph.dot %rows, %w : (tensor<8x4xf32>, tensor<4x7xf32>) -> tensor<8x7xf32>
  %cube = graph.reshape %p : tensor<8x7xf32> -> tensor<2x4x7xf32>
  %bias = graph.broadcast %b [2] : tensor<7xf32> -> tensor<2x4x7xf32>
  %logits = graph.add %cube, %bias : tensor<2x4x7xf32>
  %shifted = graph.slice %logits [0, 0, 0] [1, 1, 1] : tensor<2x4x7xf32> -> tensor<2x3x7xf32>
  %flat = graph.reshape %shifted : tensor<2x3x7xf32> -> tensor<6x7xf32>
  %losses, %lse = graph.cross_entropy %flat, %labels ignore -100 : (tensor<6x7xf32>, tensor<6xi64>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = graph.reduce_sum %losses [0] : tensor<6xf32> -> tensor<f32>
  return %loss, %logits : tensor<f32>, tensor<2x4x7xf32>
}

// Five rows in four pieces: two, two, one. A cast and a soft cap work on rows alone, and log_sum_exp is put together too.
// CHECK-LABEL: func.func @capped(
// CHECK: graph.slice %{{.*}} [4, 0] [1, 1] : tensor<5x4xf32> -> tensor<1x4xf32>
// CHECK: %[[CAP:.*]] = graph.tanh %{{.*}} : tensor<1x7xf32>
// CHECK: %[[SCALED:.*]] = graph.mul %[[CAP]], %{{.*}} : tensor<1x7xf32>
// CHECK: %[[WIDE:.*]] = graph.convert %[[SCALED]] : tensor<1x7xf32> -> tensor<1x7xf64>
// CHECK: graph.cross_entropy %[[WIDE]], {{.*}} {graph.chunk = 4 : i64}
// CHECK: graph.concat {{.*}} : (tensor<2xf64>, tensor<2xf64>, tensor<1xf64>) -> tensor<5xf64>
// CHECK: graph.concat {{.*}} : (tensor<2xf64>, tensor<2xf64>, tensor<1xf64>) -> tensor<5xf64>
func.func @capped(%x: tensor<4x5xf32>, %labels: tensor<5xi64>) -> (tensor<5xf64> {graph.role = "loss"}, tensor<5xf64>) {
  %w = graph.read @w : tensor<4x7xf32>
  %p = graph.dot %x, %w {trans_a = true} : (tensor<4x5xf32>, tensor<4x7xf32>) -> tensor<5x7xf32>
  %t = graph.tanh %p : tensor<5x7xf32>
  %thirty = graph.constant dense<30.0> : tensor<5x7xf32>
  %s = graph.mul %t, %thirty : tensor<5x7xf32>
  %wide = graph.convert %s : tensor<5x7xf32> -> tensor<5x7xf64>
  %losses, %lse = graph.cross_entropy %wide, %labels ignore 0 : (tensor<5x7xf64>, tensor<5xi64>) -> (tensor<5xf64>, tensor<5xf64>)
  return %losses, %lse : tensor<5xf64>, tensor<5xf64>
}

// What cannot be cut stays, and says why: an operand that differs from row to row, logits that another term of the loss needs.
// CHECK-LABEL: func.func @masked(
// CHECK-NOT: graph.chunk
// REMARK: the logits are not a matrix product and work on its rows alone
func.func @masked(%x: tensor<5x4xf32>, %mask: tensor<5x7xf32>, %labels: tensor<5xi64>) -> (tensor<5xf32> {graph.role = "loss"}) {
  %w = graph.read @w : tensor<4x7xf32>
  %p = graph.dot %x, %w : (tensor<5x4xf32>, tensor<4x7xf32>) -> tensor<5x7xf32>
  %m = graph.add %p, %mask : tensor<5x7xf32>
  %losses, %lse = graph.cross_entropy %m, %labels ignore 0 : (tensor<5x7xf32>, tensor<5xi64>) -> (tensor<5xf32>, tensor<5xf32>)
  return %losses : tensor<5xf32>
}
// CHECK-LABEL: func.func @regularised(
// CHECK-NOT: graph.chunk
// REMARK: the loss needs the logits in another place too
func.func @regularised(%x: tensor<5x4xf32>, %labels: tensor<5xi64>) -> (tensor<5xf32> {graph.role = "loss"}) {
  %w = graph.read @w : tensor<4x7xf32>
  %p = graph.dot %x, %w : (tensor<5x4xf32>, tensor<4x7xf32>) -> tensor<5x7xf32>
  %losses, %lse = graph.cross_entropy %p, %labels ignore 0 : (tensor<5x7xf32>, tensor<5xi64>) -> (tensor<5xf32>, tensor<5xf32>)
  %square = graph.mul %p, %p : tensor<5x7xf32>
  %size = graph.reduce_sum %square [1] : tensor<5x7xf32> -> tensor<5xf32>
  %loss = graph.add %losses, %size : tensor<5xf32>
  return %loss : tensor<5xf32>
}
