// --plimsoll-recognize turns softmax attention written out into graph.attention, and leaves alone what is not the same function.
// RUN: plimsoll-opt %s --plimsoll-recognize --split-input-file | FileCheck %s

// Scale on q and on k (the exporter's square roots), a causal additive mask stored once per batch, the NaN guard.
// CHECK-LABEL: func.func @causal(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<2x4x3x8xf32>, %[[K:[a-z0-9]+]]: tensor<2x4x3x8xf32>, %[[V:[a-z0-9]+]]: tensor<2x4x3x8xf32>
// CHECK-NEXT: graph.attention %[[Q]], %[[K]], %[[V]] {causal = true, scale = 2.500000e-01 : f64}
// CHECK-NEXT: return
func.func @causal(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %half = graph.constant dense<0.5> : tensor<2x4x3x8xf32>
  %halfT = graph.constant dense<0.5> : tensor<2x4x8x3xf32>
  %mask = graph.constant dense<[[[[0.0, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000], [0.0, 0.0, 0.0]]]]> : tensor<1x1x3x3xf32>
  %zero = graph.constant dense<0.0> : tensor<2x4x3x3xf32>
  %qs = graph.mul %q, %half : tensor<2x4x3x8xf32>
  %merged = graph.reshape %k : tensor<2x4x3x8xf32> -> tensor<8x3x8xf32>
  %turned = graph.transpose %merged [0, 2, 1] : tensor<8x3x8xf32> -> tensor<8x8x3xf32>
  %kt = graph.reshape %turned : tensor<8x8x3xf32> -> tensor<2x4x8x3xf32>
  %ks = graph.mul %kt, %halfT : tensor<2x4x8x3xf32>
  %s = graph.dot %qs, %ks : (tensor<2x4x3x8xf32>, tensor<2x4x8x3xf32>) -> tensor<2x4x3x3xf32>
  %m = graph.broadcast %mask [0, 1, 2, 3] : tensor<1x1x3x3xf32> -> tensor<2x4x3x3xf32>
  %sm = graph.add %s, %m : tensor<2x4x3x3xf32>
  %p = graph.softmax %sm axis 3 : tensor<2x4x3x3xf32>
  %nan = graph.is_nan %p : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xi1>
  %g = graph.select %nan, %zero, %p : tensor<2x4x3x3xi1>, tensor<2x4x3x3xf32>
  %o = graph.dot %g, %v : (tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  return %o : tensor<2x4x3x8xf32>
}

// -----

// A boolean padding mask, selected against the lowest float before softmax; scale on the scores.
// CHECK-LABEL: func.func @padding(
// CHECK-SAME: %[[KEEP:[a-z0-9]+]]: tensor<2x1x1x3xi1>
// CHECK: graph.attention %{{.*}}, %{{.*}}, %{{.*}} mask %[[KEEP]] {scale = 1.250000e-01 : f64}
// CHECK-NOT: graph.softmax
func.func @padding(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>, %keep: tensor<2x1x1x3xi1>) -> tensor<2x4x3x8xf32> {
  %eight = graph.constant dense<8.0> : tensor<2x4x3x3xf32>
  %low = graph.constant dense<-3.40282347E+38> : tensor<2x4x3x3xf32>
  %s = graph.dot %q, %k {trans_b = true} : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x3xf32>
  %d = graph.div %s, %eight : tensor<2x4x3x3xf32>
  %m = graph.broadcast %keep [0, 1, 2, 3] : tensor<2x1x1x3xi1> -> tensor<2x4x3x3xi1>
  %w = graph.select %m, %d, %low : tensor<2x4x3x3xi1>, tensor<2x4x3x3xf32>
  %p = graph.softmax %w axis 3 : tensor<2x4x3x3xf32>
  %o = graph.dot %p, %v : (tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  return %o : tensor<2x4x3x8xf32>
}

// -----

// Two key-value heads serve four query heads: the repetition disappears.
// CHECK-LABEL: func.func @grouped(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<2x4x3x8xf32>, %[[K:[a-z0-9]+]]: tensor<2x2x3x8xf32>, %[[V:[a-z0-9]+]]: tensor<2x2x3x8xf32>
// CHECK-NEXT: graph.attention %[[Q]], %[[K]], %[[V]] {scale = 1.000000e+00 : f64}
func.func @grouped(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %k1 = graph.reshape %k : tensor<2x2x3x8xf32> -> tensor<2x2x1x3x8xf32>
  %k2 = graph.broadcast %k1 [0, 1, 2, 3, 4] : tensor<2x2x1x3x8xf32> -> tensor<2x2x2x3x8xf32>
  %k3 = graph.reshape %k2 : tensor<2x2x2x3x8xf32> -> tensor<2x4x3x8xf32>
  %v1 = graph.reshape %v : tensor<2x2x3x8xf32> -> tensor<2x2x1x3x8xf32>
  %v2 = graph.broadcast %v1 [0, 1, 2, 3, 4] : tensor<2x2x1x3x8xf32> -> tensor<2x2x2x3x8xf32>
  %v3 = graph.reshape %v2 : tensor<2x2x2x3x8xf32> -> tensor<2x4x3x8xf32>
  %s = graph.dot %q, %k3 {trans_b = true} : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x3xf32>
  %p = graph.softmax %s axis 3 : tensor<2x4x3x3xf32>
  %o = graph.dot %p, %v3 : (tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  return %o : tensor<2x4x3x8xf32>
}

// -----

// A constant mask that hides the future but for one place is not causal: it stays a mask.
// CHECK-LABEL: func.func @almost_causal(
// CHECK: graph.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} {scale = 1.000000e+00 : f64}
func.func @almost_causal(%q: tensor<1x1x2x8xf32>, %k: tensor<1x1x2x8xf32>, %v: tensor<1x1x2x8xf32>) -> tensor<1x1x2x8xf32> {
  %mask = graph.constant dense<[[[[0.0, 0xFF800000], [0.0, 0.5]]]]> : tensor<1x1x2x2xf32>
  %s = graph.dot %q, %k {trans_b = true} : (tensor<1x1x2x8xf32>, tensor<1x1x2x8xf32>) -> tensor<1x1x2x2xf32>
  %sm = graph.add %s, %mask : tensor<1x1x2x2xf32>
  %p = graph.softmax %sm axis 3 : tensor<1x1x2x2xf32>
  %o = graph.dot %p, %v : (tensor<1x1x2x2xf32>, tensor<1x1x2x8xf32>) -> tensor<1x1x2x8xf32>
  return %o : tensor<1x1x2x8xf32>
}

// -----

// A learned bias on the scores needs its gradient, so the attention stays written out.
// CHECK-LABEL: func.func @learned_bias(
// CHECK-NOT: graph.attention
// CHECK: graph.softmax
graph.variable @bias : tensor<1x1x2x2xf32> {kind = #graph.variable_kind<parameter>}
func.func @learned_bias(%q: tensor<1x1x2x8xf32>, %k: tensor<1x1x2x8xf32>, %v: tensor<1x1x2x8xf32>) -> tensor<1x1x2x8xf32> {
  %mask = graph.read @bias : tensor<1x1x2x2xf32>
  %s = graph.dot %q, %k {trans_b = true} : (tensor<1x1x2x8xf32>, tensor<1x1x2x8xf32>) -> tensor<1x1x2x2xf32>
  %sm = graph.add %s, %mask : tensor<1x1x2x2xf32>
  %p = graph.softmax %sm axis 3 : tensor<1x1x2x2xf32>
  %o = graph.dot %p, %v : (tensor<1x1x2x2xf32>, tensor<1x1x2x8xf32>) -> tensor<1x1x2x8xf32>
  return %o : tensor<1x1x2x8xf32>
}

// -----

// Dropout on the probabilities is part of the function.
// CHECK-LABEL: func.func @dropout_inside(
// CHECK-NOT: graph.attention
// CHECK: graph.dropout
func.func @dropout_inside(%q: tensor<1x1x2x8xf32>, %k: tensor<1x1x2x8xf32>, %v: tensor<1x1x2x8xf32>, %seed: tensor<2xi64>) -> tensor<1x1x2x8xf32> {
  %s = graph.dot %q, %k {trans_b = true} : (tensor<1x1x2x8xf32>, tensor<1x1x2x8xf32>) -> tensor<1x1x2x2xf32>
  %p = graph.softmax %s axis 3 : tensor<1x1x2x2xf32>
  %d = graph.dropout %p, %seed ratio 0.1 id 1 : tensor<2xi64>, tensor<1x1x2x2xf32>
  %o = graph.dot %d, %v : (tensor<1x1x2x2xf32>, tensor<1x1x2x8xf32>) -> tensor<1x1x2x8xf32>
  return %o : tensor<1x1x2x8xf32>
}

// -----

// The scale sits above the mask and would scale the mask too; the probabilities are a result; softmax runs along queries.
// CHECK-LABEL: func.func @near_misses(
// CHECK-NOT: graph.attention
func.func @near_misses(%q: tensor<1x1x2x8xf32>, %k: tensor<1x1x2x8xf32>, %v: tensor<1x1x2x8xf32>, %m: tensor<1x1x2x2xf32>)
    -> (tensor<1x1x2x8xf32>, tensor<1x1x2x8xf32>, tensor<1x1x2x2xf32>, tensor<1x1x2x8xf32>) {
  %two = graph.constant dense<2.0> : tensor<1x1x2x2xf32>
  %s = graph.dot %q, %k {trans_b = true} : (tensor<1x1x2x8xf32>, tensor<1x1x2x8xf32>) -> tensor<1x1x2x2xf32>
  %sm = graph.add %s, %m : tensor<1x1x2x2xf32>
  %ss = graph.mul %sm, %two : tensor<1x1x2x2xf32>
  %p = graph.softmax %ss axis 3 : tensor<1x1x2x2xf32>
  %o = graph.dot %p, %v : (tensor<1x1x2x2xf32>, tensor<1x1x2x8xf32>) -> tensor<1x1x2x8xf32>
  %s2 = graph.dot %v, %k {trans_b = true} : (tensor<1x1x2x8xf32>, tensor<1x1x2x8xf32>) -> tensor<1x1x2x2xf32>
  %p2 = graph.softmax %s2 axis 3 : tensor<1x1x2x2xf32>
  %o2 = graph.dot %p2, %v : (tensor<1x1x2x2xf32>, tensor<1x1x2x8xf32>) -> tensor<1x1x2x8xf32>
  %s3 = graph.dot %k, %k {trans_b = true} : (tensor<1x1x2x8xf32>, tensor<1x1x2x8xf32>) -> tensor<1x1x2x2xf32>
  %p3 = graph.softmax %s3 axis 2 : tensor<1x1x2x2xf32>
  %o3 = graph.dot %p3, %v : (tensor<1x1x2x2xf32>, tensor<1x1x2x8xf32>) -> tensor<1x1x2x8xf32>
  return %o, %o2, %p2, %o3 : tensor<1x1x2x8xf32>, tensor<1x1x2x8xf32>, tensor<1x1x2x2xf32>, tensor<1x1x2x8xf32>
}
