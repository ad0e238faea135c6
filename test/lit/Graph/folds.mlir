// Folds: constants, identities and views of views, only where no bit of the result changes.
// RUN: plimsoll-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: @neutralElements
// CHECK-SAME: %[[X:.*]]: tensor<2xf32>, %[[I:.*]]: tensor<2xi64>
// CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]], %[[I]]
func.func @neutralElements(%x: tensor<2xf32>, %i: tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xi64>) {
  %zero = graph.constant dense<0.0> : tensor<2xf32>
  %minusZero = graph.constant dense<-0.0> : tensor<2xf32>
  %one = graph.constant dense<1.0> : tensor<2xf32>
  %none = graph.constant dense<0> : tensor<2xi64>
  %0 = graph.add %x, %minusZero : tensor<2xf32>
  %1 = graph.sub %x, %zero : tensor<2xf32>
  %2 = graph.mul %one, %x : tensor<2xf32>
  %d = graph.div %x, %one : tensor<2xf32>
  %3 = graph.pow %d, %one : tensor<2xf32>
  %4 = graph.add %none, %i : tensor<2xi64>
  return %0, %1, %2, %3, %4 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xi64>
}

// -0.0 + 0.0 is 0.0, and x*0 may be NaN: neither folds.
// CHECK-LABEL: @notNeutral
// CHECK: graph.add
// CHECK: graph.mul
func.func @notNeutral(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %zero = graph.constant dense<0.0> : tensor<2xf32>
  %0 = graph.add %x, %zero : tensor<2xf32>
  %1 = graph.mul %x, %zero : tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: @selects
// CHECK-SAME: %[[P:.*]]: tensor<2xi1>, %[[X:.*]]: tensor<2xf32>, %[[Y:.*]]: tensor<2xf32>
// CHECK-NEXT: return %[[X]], %[[X]], %[[Y]]
func.func @selects(%p: tensor<2xi1>, %x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %true = graph.constant dense<true> : tensor<2xi1>
  %false = graph.constant dense<false> : tensor<2xi1>
  %0 = graph.select %p, %x, %x : tensor<2xi1>, tensor<2xf32>
  %1 = graph.select %true, %x, %y : tensor<2xi1>, tensor<2xf32>
  %2 = graph.select %false, %x, %y : tensor<2xi1>, tensor<2xf32>
  return %0, %1, %2 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: @identityViews
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>
// CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]], %[[X]], %[[X]], %[[X]]
func.func @identityViews(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = graph.broadcast %x [0, 1] : tensor<2x3xf32> -> tensor<2x3xf32>
  %1 = graph.reshape %x : tensor<2x3xf32> -> tensor<2x3xf32>
  %2 = graph.transpose %x [0, 1] : tensor<2x3xf32> -> tensor<2x3xf32>
  %3 = graph.slice %x [0, 0] [1, 1] : tensor<2x3xf32> -> tensor<2x3xf32>
  %4 = graph.convert %x : tensor<2x3xf32> -> tensor<2x3xf32>
  %5 = graph.reduce_sum %x [] : tensor<2x3xf32> -> tensor<2x3xf32>
  %6 = graph.reduce_max %x [] : tensor<2x3xf32> -> tensor<2x3xf32>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// CHECK-LABEL: @viewsOfViews
func.func @viewsOfViews(%x: tensor<2x3x4xf32>) -> (tensor<4x6xf32>, tensor<3x4x2xf32>, tensor<2x3x4xf32>) {
  // CHECK: %[[R:.*]] = graph.reshape %arg0 : tensor<2x3x4xf32> -> tensor<4x6xf32>
  %a = graph.reshape %x : tensor<2x3x4xf32> -> tensor<24xf32>
  %b = graph.reshape %a : tensor<24xf32> -> tensor<4x6xf32>
  // CHECK: %[[T:.*]] = graph.transpose %arg0 [1, 2, 0] : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
  %c = graph.transpose %x [2, 0, 1] : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
  %d = graph.transpose %c [2, 0, 1] : tensor<4x2x3xf32> -> tensor<3x4x2xf32>
  // CHECK: return %[[R]], %[[T]], %arg0
  %e = graph.transpose %d [2, 0, 1] : tensor<3x4x2xf32> -> tensor<2x3x4xf32>
  return %b, %d, %e : tensor<4x6xf32>, tensor<3x4x2xf32>, tensor<2x3x4xf32>
}

// CHECK-LABEL: @viewsOfConstants
func.func @viewsOfConstants() -> (tensor<2x3xf32>, tensor<3x2xf32>, tensor<1x2xf32>, tensor<2x2xi64>) {
  %s = graph.constant dense<2.0> : tensor<f32>
  // CHECK-DAG: graph.constant dense<2.000000e+00> : tensor<2x3xf32>
  %0 = graph.broadcast %s [] : tensor<f32> -> tensor<2x3xf32>
  // CHECK-DAG: graph.constant dense<2.000000e+00> : tensor<3x2xf32>
  %1 = graph.transpose %0 [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  // CHECK-DAG: graph.constant dense<2.000000e+00> : tensor<1x2xf32>
  %2 = graph.slice %1 [1, 0] [1, 1] : tensor<3x2xf32> -> tensor<1x2xf32>
  // CHECK-DAG: graph.constant dense<{{\[}}[1, 2], [3, 4]]> : tensor<2x2xi64>
  %l = graph.constant dense<[1, 2, 3, 4]> : tensor<4xi64>
  %3 = graph.reshape %l : tensor<4xi64> -> tensor<2x2xi64>
  return %0, %1, %2, %3 : tensor<2x3xf32>, tensor<3x2xf32>, tensor<1x2xf32>, tensor<2x2xi64>
}
