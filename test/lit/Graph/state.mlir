// Variables of every kind, reads and writes survive printing and parsing.
// RUN: plimsoll-opt %s | plimsoll-opt | FileCheck %s
// RUN: plimsoll-opt %s --mlir-print-op-generic | plimsoll-opt | FileCheck %s

// CHECK: graph.variable @w : tensor<4x3xf32> {aliases = ["head.weight"], kind = #graph.variable_kind<parameter>}
graph.variable @w : tensor<4x3xf32> {kind = #graph.variable_kind<parameter>, aliases = ["head.weight"]}
// CHECK: graph.variable @frozen : tensor<3xf32> {kind = #graph.variable_kind<parameter>, trainable = false}
graph.variable @frozen : tensor<3xf32> {kind = #graph.variable_kind<parameter>, trainable = false}
// CHECK: graph.variable @m : tensor<4x3xf32> {fill = 0.000000e+00 : f64, kind = #graph.variable_kind<optimizer_state>, owner = @w}
graph.variable @m : tensor<4x3xf32> {kind = #graph.variable_kind<optimizer_state>, fill = 0.0 : f64, owner = @w}
// CHECK: #graph.variable_kind<model_state>
graph.variable @mean : tensor<3xf32> {kind = #graph.variable_kind<model_state>}
// CHECK: #graph.variable_kind<step_state>
graph.variable @step : tensor<i64> {kind = #graph.variable_kind<step_state>, fill = 0.0 : f64}
// CHECK: #graph.variable_kind<gradient_accumulator>
graph.variable @acc : tensor<4x3xf32> {kind = #graph.variable_kind<gradient_accumulator>, fill = 0.0 : f64}
// CHECK: #graph.variable_kind<constant>
graph.variable @table : tensor<8xf32> {kind = #graph.variable_kind<constant>}
// CHECK: graph.variable @literal : tensor<2xi32> {kind = #graph.variable_kind<constant>, value = dense<[1, 2]> : tensor<2xi32>}
graph.variable @literal : tensor<2xi32> {kind = #graph.variable_kind<constant>, value = dense<[1, 2]> : tensor<2xi32>}

// CHECK-LABEL: @step_once
func.func @step_once() {
  // CHECK: %[[STEP:.*]] = graph.read @step : tensor<i64>
  %0 = graph.read @step : tensor<i64>
  // CHECK: graph.write @step, %[[STEP]] : tensor<i64>
  graph.write @step, %0 : tensor<i64>
  return
}
