// --plimsoll-autodiff appends one gradient per trainable parameter, emits nothing off the paths and names dead parameters.
// RUN: plimsoll-opt %s --plimsoll-autodiff --split-input-file | FileCheck %s
// RUN: plimsoll-opt %s --plimsoll-autodiff --split-input-file --remarks-filter=autodiff 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: plimsoll-opt %s --plimsoll-autodiff --split-input-file --mlir-print-debuginfo | FileCheck %s --check-prefix=LOCATION

graph.variable @w : tensor<4x3xf32> {kind = #graph.variable_kind<parameter>}
graph.variable @frozen : tensor<3xf32> {kind = #graph.variable_kind<parameter>, trainable = false}
graph.variable @dead : tensor<3xf32> {kind = #graph.variable_kind<parameter>}
graph.variable @table : tensor<3xf32> {kind = #graph.variable_kind<constant>}

// loss = sum(relu(x·w + frozen) * floor(dead)): dw = xᵀ·select(relu <= 0, 0, dy*floor(dead)).
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf32>) -> (tensor<f32> {graph.role = "loss"}, tensor<4x3xf32> {graph.name = "grad.w"})
// CHECK: %[[W:.*]] = graph.read @w
// CHECK: %[[R:.*]] = graph.relu
// CHECK: %[[FULL:.*]] = graph.broadcast
// CHECK: %[[LOSS:.*]] = graph.reduce_sum
// CHECK-NEXT: %[[ONE:.*]] = graph.constant dense<1.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[DY:.*]] = graph.broadcast %[[ONE]] [] : tensor<f32> -> tensor<2x3xf32>
// CHECK-NEXT: %[[DR:.*]] = graph.mul %[[DY]], %[[FULL]] : tensor<2x3xf32>
// CHECK: %[[OFF:.*]] = graph.compare <le> %[[R]]
// CHECK-NEXT: %[[DS:.*]] = graph.select %[[OFF]], %{{.*}}, %[[DR]]
// CHECK-NEXT: %[[DW:.*]] = graph.dot %[[X]], %[[DS]] {trans_a = true} : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
// CHECK-NEXT: return %[[LOSS]], %[[DW]]
// REMARK: dead-parameter
// REMARK-SAME: parameter @dead has no gradient path to the loss
// REMARK-NOT: parameter @frozen
// LOCATION-DAG: #[[SOURCE:.*]] = loc("block/matmul")
// LOCATION-DAG: fused<"gradient">[#[[SOURCE]]]
func.func @forward(%x: tensor<2x4xf32>) -> (tensor<f32> {graph.role = "loss"}) {
  %w = graph.read @w : tensor<4x3xf32>
  %f = graph.read @frozen : tensor<3xf32>
  %d = graph.read @dead : tensor<3xf32>
  %h = graph.dot %x, %w : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32> loc("block/matmul")
  %b = graph.broadcast %f [1] : tensor<3xf32> -> tensor<2x3xf32>
  %s = graph.add %h, %b : tensor<2x3xf32>
  %r = graph.relu %s : tensor<2x3xf32>
  %z = graph.floor %d : tensor<3xf32>
  %full = graph.broadcast %z [1] : tensor<3xf32> -> tensor<2x3xf32>
  %p = graph.mul %r, %full : tensor<2x3xf32>
  %loss = graph.reduce_sum %p [0, 1] : tensor<2x3xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----
// A variable read twice has one gradient: the sum over its reads. Functions without a loss are left alone.
graph.variable @w : tensor<2xf32> {kind = #graph.variable_kind<parameter>}

// CHECK-LABEL: func.func @twice
// CHECK-SAME: -> (tensor<2xf32> {graph.role = "loss"}, tensor<2xf32> {graph.name = "grad.w"})
// CHECK: %[[EXP:.*]] = graph.exp
// CHECK: %[[SIN:.*]] = graph.sin
// CHECK: %[[DB:.*]] = graph.mul %{{.*}}, %{{.*}}
// CHECK: %[[DA:.*]] = graph.mul %{{.*}}, %[[EXP]]
// CHECK: %[[SUM:.*]] = graph.add %[[DA]], %[[DB]]
// CHECK: return %{{.*}}, %[[SUM]]
func.func @twice() -> (tensor<2xf32> {graph.role = "loss"}) {
  %a = graph.read @w : tensor<2xf32>
  %b = graph.read @w : tensor<2xf32>
  %e = graph.exp %a : tensor<2xf32>
  %s = graph.sin %b : tensor<2xf32>
  %y = graph.add %e, %s : tensor<2xf32>
  return %y : tensor<2xf32>
}

// CHECK-LABEL: func.func @notALoss() -> tensor<2xf32> {
// CHECK-NEXT: graph.read
// CHECK-NEXT: return
func.func @notALoss() -> tensor<2xf32> {
  %a = graph.read @w : tensor<2xf32>
  return %a : tensor<2xf32>
}
