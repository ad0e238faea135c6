// --plimsoll-recognize on norms, activations and losses: each form once, and its near-miss.
// RUN: plimsoll-opt %s --plimsoll-recognize --split-input-file | FileCheck %s

// Llama's norm: x * (1/sqrt(mean(x^2) + eps)).
// CHECK-LABEL: func.func @rms_norm(
// CHECK-NEXT: graph.rms_norm %{{.*}} axis 2 eps 9.9999999999999995E-7
// CHECK-NEXT: return
func.func @rms_norm(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %n = graph.constant dense<8.0> : tensor<2x3xf32>
  %eps = graph.constant dense<1.0e-06> : tensor<2x3x1xf32>
  %sq = graph.mul %x, %x : tensor<2x3x8xf32>
  %sum = graph.reduce_sum %sq [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %mean = graph.div %sum, %n : tensor<2x3xf32>
  %kept = graph.reshape %mean : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %a = graph.add %kept, %eps : tensor<2x3x1xf32>
  %root = graph.sqrt %a : tensor<2x3x1xf32>
  %r = graph.reciprocal %root : tensor<2x3x1xf32>
  %spread = graph.broadcast %r [0, 1, 2] : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %y = graph.mul %x, %spread : tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// Dividing by the sum (not the mean) of squares is another function.
// CHECK-LABEL: func.func @not_rms_norm(
// CHECK-NOT: graph.rms_norm
func.func @not_rms_norm(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %eps = graph.constant dense<1.0e-06> : tensor<2xf32>
  %sq = graph.mul %x, %x : tensor<2x8xf32>
  %sum = graph.reduce_sum %sq [1] : tensor<2x8xf32> -> tensor<2xf32>
  %a = graph.add %sum, %eps : tensor<2xf32>
  %r = graph.rsqrt %a : tensor<2xf32>
  %spread = graph.broadcast %r [0] : tensor<2xf32> -> tensor<2x8xf32>
  %y = graph.mul %x, %spread : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// LayerNorm written out with its subtraction twice and a division.
// CHECK-LABEL: func.func @layer_norm(
// CHECK-NEXT: graph.layer_norm %{{.*}} axis 1 eps 1.000000e-05
// CHECK-NEXT: return
func.func @layer_norm(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %n = graph.constant dense<8.0> : tensor<2xf32>
  %eps = graph.constant dense<1.0e-05> : tensor<2xf32>
  %sum = graph.reduce_sum %x [1] : tensor<2x8xf32> -> tensor<2xf32>
  %mean = graph.div %sum, %n : tensor<2xf32>
  %m = graph.broadcast %mean [0] : tensor<2xf32> -> tensor<2x8xf32>
  %d = graph.sub %x, %m : tensor<2x8xf32>
  %d2 = graph.sub %x, %m : tensor<2x8xf32>
  %sq = graph.mul %d2, %d2 : tensor<2x8xf32>
  %s2 = graph.reduce_sum %sq [1] : tensor<2x8xf32> -> tensor<2xf32>
  %var = graph.div %s2, %n : tensor<2xf32>
  %a = graph.add %var, %eps : tensor<2xf32>
  %root = graph.sqrt %a : tensor<2xf32>
  %spread = graph.broadcast %root [0] : tensor<2xf32> -> tensor<2x8xf32>
  %y = graph.div %d, %spread : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: func.func @gelu_erf(
// CHECK-NEXT: graph.gelu %{{[a-z0-9]+}} : tensor<4xf32>
func.func @gelu_erf(%x: tensor<4xf32>) -> tensor<4xf32> {
  %root = graph.constant dense<1.41421354> : tensor<4xf32>
  %one = graph.constant dense<1.0> : tensor<4xf32>
  %half = graph.constant dense<0.5> : tensor<4xf32>
  %d = graph.div %x, %root : tensor<4xf32>
  %e = graph.erf %d : tensor<4xf32>
  %a = graph.add %e, %one : tensor<4xf32>
  %p = graph.mul %x, %a : tensor<4xf32>
  %y = graph.mul %p, %half : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// GPT-2's form.
// CHECK-LABEL: func.func @gelu_tanh(
// CHECK-NEXT: graph.gelu %{{[a-z0-9]+}} {approximate = true} : tensor<4xf32>
func.func @gelu_tanh(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.constant dense<4.471500e-02> : tensor<4xf32>
  %w = graph.constant dense<0.797884583> : tensor<4xf32>
  %one = graph.constant dense<1.0> : tensor<4xf32>
  %half = graph.constant dense<0.5> : tensor<4xf32>
  %h = graph.mul %x, %half : tensor<4xf32>
  %x2 = graph.mul %x, %x : tensor<4xf32>
  %x3 = graph.mul %x2, %x : tensor<4xf32>
  %cx = graph.mul %x3, %c : tensor<4xf32>
  %s = graph.add %x, %cx : tensor<4xf32>
  %u = graph.mul %s, %w : tensor<4xf32>
  %t = graph.tanh %u : tensor<4xf32>
  %a = graph.add %t, %one : tensor<4xf32>
  %y = graph.mul %h, %a : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// A wrong constant, and a missing half.
// CHECK-LABEL: func.func @not_gelu(
// CHECK-NOT: graph.gelu
func.func @not_gelu(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %root = graph.constant dense<1.5> : tensor<4xf32>
  %right = graph.constant dense<1.41421354> : tensor<4xf32>
  %one = graph.constant dense<1.0> : tensor<4xf32>
  %half = graph.constant dense<0.5> : tensor<4xf32>
  %d = graph.div %x, %root : tensor<4xf32>
  %e = graph.erf %d : tensor<4xf32>
  %a = graph.add %e, %one : tensor<4xf32>
  %p = graph.mul %x, %a : tensor<4xf32>
  %y = graph.mul %p, %half : tensor<4xf32>
  %d2 = graph.div %x, %right : tensor<4xf32>
  %e2 = graph.erf %d2 : tensor<4xf32>
  %a2 = graph.add %e2, %one : tensor<4xf32>
  %y2 = graph.mul %x, %a2 : tensor<4xf32>
  return %y, %y2 : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @silu(
// CHECK-NEXT: %[[Y:.*]] = graph.silu
// CHECK: graph.sigmoid
// CHECK: graph.mul
func.func @silu(%x: tensor<4xf32>, %z: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %s = graph.sigmoid %x : tensor<4xf32>
  %y = graph.mul %s, %x : tensor<4xf32>
  %s2 = graph.sigmoid %z : tensor<4xf32>
  %y2 = graph.mul %s2, %x : tensor<4xf32>
  return %y, %y2 : tensor<4xf32>, tensor<4xf32>
}

// -----

// NLL of log(softmax): both steps disappear into cross_entropy.
// CHECK-LABEL: func.func @nll(
// CHECK-NEXT: %[[L:.*]], %{{.*}} = graph.cross_entropy %{{[a-z0-9]+}}, %{{[a-z0-9]+}} ignore -100
// CHECK-NEXT: return %[[L]]
func.func @nll(%x: tensor<4x9xf32>, %labels: tensor<4xi64>) -> tensor<4xf32> {
  %ignored = graph.constant dense<-100> : tensor<4xi64>
  %zero = graph.constant dense<0> : tensor<4xi64>
  %none = graph.constant dense<0.0> : tensor<4xf32>
  %p = graph.softmax %x axis 1 : tensor<4x9xf32>
  %lp = graph.log %p : tensor<4x9xf32>
  %counted = graph.compare <ne> %labels, %ignored : tensor<4xi64> -> tensor<4xi1>
  %safe = graph.select %counted, %labels, %zero : tensor<4xi1>, tensor<4xi64>
  %column = graph.reshape %safe : tensor<4xi64> -> tensor<4x1xi64>
  %picked = graph.gather_elements %lp, %column axis 1 : (tensor<4x9xf32>, tensor<4x1xi64>) -> tensor<4x1xf32>
  %row = graph.reshape %picked : tensor<4x1xf32> -> tensor<4xf32>
  %neg = graph.neg %row : tensor<4xf32>
  %loss = graph.select %counted, %neg, %none : tensor<4xi1>, tensor<4xf32>
  return %loss : tensor<4xf32>
}

// -----

// Probabilities along the wrong dimension are not a loss over classes.
// CHECK-LABEL: func.func @not_nll(
// CHECK-NOT: graph.cross_entropy
func.func @not_nll(%x: tensor<4x9xf32>, %labels: tensor<4xi64>) -> tensor<4xf32> {
  %ignored = graph.constant dense<-100> : tensor<4xi64>
  %zero = graph.constant dense<0> : tensor<4xi64>
  %none = graph.constant dense<0.0> : tensor<4xf32>
  %lp = graph.log_softmax %x axis 0 : tensor<4x9xf32>
  %counted = graph.compare <ne> %labels, %ignored : tensor<4xi64> -> tensor<4xi1>
  %safe = graph.select %counted, %labels, %zero : tensor<4xi1>, tensor<4xi64>
  %column = graph.reshape %safe : tensor<4xi64> -> tensor<4x1xi64>
  %picked = graph.gather_elements %lp, %column axis 1 : (tensor<4x9xf32>, tensor<4x1xi64>) -> tensor<4x1xf32>
  %row = graph.reshape %picked : tensor<4x1xf32> -> tensor<4xf32>
  %neg = graph.neg %row : tensor<4xf32>
  %loss = graph.select %counted, %neg, %none : tensor<4xi1>, tensor<4xf32>
  return %loss : tensor<4xf32>
}
