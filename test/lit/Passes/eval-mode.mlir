// --plimsoll-eval-mode: dropout is its operand, batch_norm uses running statistics, nothing is written or drawn.
// RUN: plimsoll-opt %s --plimsoll-eval-mode --split-input-file | FileCheck %s

graph.variable @mean : tensor<3xf32> {kind = #graph.variable_kind<model_state>, trainable = false}
graph.variable @var : tensor<3xf32> {kind = #graph.variable_kind<model_state>, trainable = false}

// (x - mean) * rsqrt(var + eps); the update of the statistic and what only it needed are gone.
// CHECK-LABEL: func.func @normalise(
// CHECK-SAME: %[[X:.*]]: tensor<2x3x4xf32>)
// CHECK-DAG: %[[M:.*]] = graph.read @mean
// CHECK-DAG: %[[V:.*]] = graph.read @var
// CHECK-DAG: %[[E:.*]] = graph.constant dense<1.000000e-03> : tensor<3xf32>
// CHECK: %[[S:.*]] = graph.add %[[V]], %[[E]]
// CHECK-NEXT: %[[MB:.*]] = graph.broadcast %[[M]] [1] : tensor<3xf32> -> tensor<2x3x4xf32>
// CHECK-NEXT: %[[C:.*]] = graph.sub %[[X]], %[[MB]]
// CHECK-NEXT: %[[R:.*]] = graph.rsqrt %[[S]]
// CHECK-NEXT: %[[RB:.*]] = graph.broadcast %[[R]] [1]
// CHECK-NEXT: %[[Y:.*]] = graph.mul %[[C]], %[[RB]]
// CHECK-NEXT: return %[[Y]]
func.func @normalise(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %y:3 = graph.batch_norm %x eps 1.0e-3 {running_mean = @mean, running_var = @var} : (tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>)
  %old = graph.read @mean : tensor<3xf32>
  %new = graph.add %old, %y#1 : tensor<3xf32>
  graph.write @mean, %new : tensor<3xf32>
  return %y#0 : tensor<2x3x4xf32>
}

// -----

graph.variable @seed : tensor<2xi64> {kind = #graph.variable_kind<step_state>, trainable = false, fill = 0.0 : f64}

// CHECK-LABEL: func.func @drop(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>)
// CHECK-NEXT: return %[[X]]
func.func @drop(%x: tensor<4xf32>) -> tensor<4xf32> {
  %s = graph.read @seed : tensor<2xi64>
  %a = graph.dropout %x, %s ratio 0.1 id 1 : tensor<2xi64>, tensor<4xf32>
  %b = graph.dropout %a, %s ratio 0.5 id 2 : tensor<2xi64>, tensor<4xf32>
  return %b : tensor<4xf32>
}
