// --plimsoll-materialize inserts a copy exactly where a consumer cannot take the strides.
// RUN: plimsoll-opt %s --plimsoll-materialize | FileCheck %s
// RUN: plimsoll-opt %s --plimsoll-materialize --plimsoll-materialize | FileCheck %s

graph.variable @v : tensor<2x3xf32> {kind = #graph.variable_kind<model_state>, trainable = false}
graph.variable @u : tensor<2x3xf32> {kind = #graph.variable_kind<model_state>, trainable = false}

// A reshape of a transposed tensor has no strides; a reshape of a dense one has.
// CHECK-LABEL: func.func @reshapes(
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>)
// CHECK: %[[T:.*]] = graph.transpose %[[X]]
// CHECK-NEXT: %[[C:.*]] = graph.copy %[[T]] : tensor<3x2xf32>
// CHECK-NEXT: graph.reshape %[[C]]
// CHECK-NEXT: graph.reshape %[[X]]
// CHECK-NEXT: return
func.func @reshapes(%x: tensor<2x3xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %t = graph.transpose %x [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  %r = graph.reshape %t : tensor<3x2xf32> -> tensor<6xf32>
  %s = graph.reshape %x : tensor<2x3xf32> -> tensor<6xf32>
  return %r, %s : tensor<6xf32>, tensor<6xf32>
}

// Matrix products take a transposed matrix and a broadcast batch, but no matrix whose rows step over nothing.
// CHECK-LABEL: func.func @products(
// CHECK-NOT: graph.copy
// CHECK: graph.dot
// CHECK: %[[ROW:.*]] = graph.broadcast %{{.*}} [1]
// CHECK-NEXT: %[[C:.*]] = graph.copy %[[ROW]] : tensor<4x3xf32>
// CHECK-NEXT: graph.dot %{{.*}}, %[[C]]
func.func @products(%x: tensor<2x4xf32>, %w: tensor<3x4xf32>, %b: tensor<3xf32>) -> (tensor<5x2x3xf32>, tensor<2x3xf32>) {
  %xs = graph.broadcast %x [1, 2] : tensor<2x4xf32> -> tensor<5x2x4xf32>
  %t = graph.transpose %w [1, 0] : tensor<3x4xf32> -> tensor<4x3xf32>
  %ts = graph.broadcast %t [1, 2] : tensor<4x3xf32> -> tensor<5x4x3xf32>
  %y = graph.dot %xs, %ts : (tensor<5x2x4xf32>, tensor<5x4x3xf32>) -> tensor<5x2x3xf32>
  %rows = graph.broadcast %b [1] : tensor<3xf32> -> tensor<4x3xf32>
  %z = graph.dot %x, %rows : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return %y, %z : tensor<5x2x3xf32>, tensor<2x3xf32>
}

// State takes values with storage of their own: another variable's value and an argument are copied, a reshaped result is not.
// CHECK-LABEL: func.func @writes(
// CHECK: %[[C:.*]] = graph.copy %{{.*}} : tensor<2x3xf32>
// CHECK-NEXT: graph.write @u, %[[C]]
// CHECK: %[[R:.*]] = graph.reshape
// CHECK-NEXT: graph.write @v, %[[R]]
func.func @writes(%x: tensor<3x2xf32>) {
  %v = graph.read @v : tensor<2x3xf32>
  graph.write @u, %v : tensor<2x3xf32>
  %n = graph.cumsum %x axis 0 : tensor<3x2xf32>
  %r = graph.reshape %n : tensor<3x2xf32> -> tensor<2x3xf32>
  graph.write @v, %r : tensor<2x3xf32>
  return
}

// The caller gets the old value of a variable that is written, set aside where it is read; of one that is not, the variable itself.
// CHECK-LABEL: func.func @returns(
// CHECK: %[[V:.*]] = graph.read @v
// CHECK-NEXT: %[[OLD:.*]] = graph.copy %[[V]]
// CHECK-NEXT: %[[U:.*]] = graph.read @u
// CHECK: graph.write @v
// CHECK-NEXT: return %[[OLD]], %[[U]]
func.func @returns(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %v = graph.read @v : tensor<2x3xf32>
  %u = graph.read @u : tensor<2x3xf32>
  %n = graph.cumsum %x axis 0 : tensor<2x3xf32>
  graph.write @v, %n : tensor<2x3xf32>
  return %v, %u : tensor<2x3xf32>, tensor<2x3xf32>
}
