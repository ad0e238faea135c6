// --plimsoll-schedule: reads first, and every update as soon as its gradient exists and nobody needs the old value any more.
// RUN: plimsoll-opt %s --plimsoll-schedule | FileCheck %s
// RUN: plimsoll-opt %s --plimsoll-schedule --plimsoll-schedule | FileCheck %s

graph.variable @a : tensor<2x2xf32> {kind = #graph.variable_kind<parameter>}
graph.variable @b : tensor<2x2xf32> {kind = #graph.variable_kind<parameter>}

// a's gradient exists at once, but a is read by the dot after it; b's old value has no other reader.
// CHECK-LABEL: func.func @updates(
// CHECK-NEXT: graph.read @a
// CHECK-NEXT: graph.read @b
// CHECK-NEXT: %[[G:.*]] = graph.dot %arg0, %arg0
// CHECK-NEXT: %[[NB:.*]] = graph.group
// CHECK: graph.write @b, %[[NB]]
// CHECK-NEXT: graph.reshape %[[G]]
// CHECK-NEXT: %[[Y:.*]] = graph.dot %[[G]], %{{.*}}
// CHECK-NEXT: %[[NA:.*]] = graph.group
// CHECK: %[[R:.*]] = graph.reshape %[[NA]]
// CHECK-NEXT: graph.write @a, %[[R]]
// CHECK-NEXT: graph.dot %[[Y]], %[[Y]]
// CHECK-NEXT: return
func.func @updates(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %g = graph.dot %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %a = graph.read @a : tensor<2x2xf32>
  %y = graph.dot %g, %a : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %z = graph.dot %y, %y : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %b = graph.read @b : tensor<2x2xf32>
  %flat = graph.reshape %g : tensor<2x2xf32> -> tensor<4xf32>
  %na = graph.group %flat space [4] reduced [] : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<4xf32>):
    %n = graph.neg %i : tensor<4xf32>
    graph.yield %n : tensor<4xf32>
  }
  %r = graph.reshape %na : tensor<4xf32> -> tensor<2x2xf32>
  %nb = graph.group %b, %g space [2, 2] reduced [] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32> {
  ^bb0(%i: tensor<2x2xf32>, %j: tensor<2x2xf32>):
    %n = graph.sub %i, %j : tensor<2x2xf32>
    graph.yield %n : tensor<2x2xf32>
  }
  graph.write @a, %r : tensor<2x2xf32>
  graph.write @b, %nb : tensor<2x2xf32>
  return %z : tensor<2x2xf32>
}

// A result that something else needs stays where it is.
// CHECK-LABEL: func.func @needed(
// CHECK: graph.dot
// CHECK-NEXT: %[[N:.*]] = graph.group
// CHECK: graph.write @b, %[[N]]
func.func @needed(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %z = graph.dot %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %n = graph.group %x space [2, 2] reduced [] : (tensor<2x2xf32>) -> tensor<2x2xf32> {
  ^bb0(%i: tensor<2x2xf32>):
    %m = graph.neg %i : tensor<2x2xf32>
    graph.yield %m : tensor<2x2xf32>
  }
  graph.write @b, %n : tensor<2x2xf32>
  return %z, %n : tensor<2x2xf32>, tensor<2x2xf32>
}
