// Whole ops and kernel groups survive printing and parsing.
// RUN: plimsoll-opt %s | plimsoll-opt | FileCheck %s
// RUN: plimsoll-opt %s --mlir-print-op-generic | plimsoll-opt | FileCheck %s

graph.variable @mean : tensor<3xf32> {kind = #graph.variable_kind<model_state>}
graph.variable @var : tensor<3xf32> {kind = #graph.variable_kind<model_state>}

// CHECK-LABEL: @norms
func.func @norms(%x: tensor<2x3xf32>, %h: tensor<2x3xbf16>) -> tensor<2x3xf32> {
  // CHECK: graph.softmax %{{.*}} axis 1 : tensor<2x3xf32>
  %0 = graph.softmax %x axis 1 : tensor<2x3xf32>
  // CHECK: graph.log_softmax %{{.*}} axis 0 : tensor<2x3xf32>
  %1 = graph.log_softmax %x axis 0 : tensor<2x3xf32>
  // CHECK: graph.layer_norm %{{.*}} axis 1 eps {{.*}} : (tensor<2x3xbf16>) -> (tensor<2x3xbf16>, tensor<2xf32>, tensor<2xf32>)
  %2:3 = graph.layer_norm %h axis 1 eps 1.0e-5 : (tensor<2x3xbf16>) -> (tensor<2x3xbf16>, tensor<2xf32>, tensor<2xf32>)
  // CHECK: graph.rms_norm %{{.*}} axis 0 eps {{.*}} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<f32>)
  %3:2 = graph.rms_norm %x axis 0 eps 1.0e-6 : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<f32>)
  // CHECK: graph.batch_norm %{{.*}} eps {{.*}} {running_mean = @mean, running_var = @var} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  %4:3 = graph.batch_norm %x eps 1.0e-5 {running_mean = @mean, running_var = @var} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %0 : tensor<2x3xf32>
}

// CHECK-LABEL: @losses
func.func @losses(%x: tensor<2x3xf32>, %s: tensor<2xi64>, %l: tensor<2xi32>) -> tensor<2x3xf32> {
  // CHECK: graph.dropout %{{.*}}, %{{.*}} ratio 1.000000e-01 id 3 : tensor<2xi64>, tensor<2x3xf32>
  %0 = graph.dropout %x, %s ratio 0.1 id 3 : tensor<2xi64>, tensor<2x3xf32>
  // CHECK: graph.cross_entropy %{{.*}}, %{{.*}} ignore -100 : (tensor<2x3xf32>, tensor<2xi32>) -> (tensor<2xf32>, tensor<2xf32>)
  %1:2 = graph.cross_entropy %0, %l ignore -100 : (tensor<2x3xf32>, tensor<2xi32>) -> (tensor<2xf32>, tensor<2xf32>)
  // CHECK: graph.cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} ignore -100 : (tensor<2x3xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  %2 = graph.cross_entropy_grad %0, %l, %1#1, %1#0 ignore -100 : (tensor<2x3xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}

// CHECK-LABEL: @attentions
func.func @attentions(%q: tensor<1x4x8x2xf32>, %k: tensor<1x2x8x2xf32>, %v: tensor<1x2x8x3xf32>, %m: tensor<1x1x8x8xi1>) -> tensor<1x4x8x2xf32> {
  // CHECK: graph.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} {scale = 5.000000e-01 : f64} : (tensor<1x4x8x2xf32>, tensor<1x2x8x2xf32>, tensor<1x2x8x3xf32>, tensor<1x1x8x8xi1>) -> (tensor<1x4x8x3xf32>, tensor<1x4x8xf32>)
  %0:2 = graph.attention %q, %k, %v mask %m {scale = 0.5 : f64} : (tensor<1x4x8x2xf32>, tensor<1x2x8x2xf32>, tensor<1x2x8x3xf32>, tensor<1x1x8x8xi1>) -> (tensor<1x4x8x3xf32>, tensor<1x4x8xf32>)
  // CHECK: graph.attention %{{.*}}, %{{.*}}, %{{.*}} {causal = true, scale = 5.000000e-01 : f64}
  %1:2 = graph.attention %q, %k, %v {scale = 0.5 : f64, causal = true} : (tensor<1x4x8x2xf32>, tensor<1x2x8x2xf32>, tensor<1x2x8x3xf32>) -> (tensor<1x4x8x3xf32>, tensor<1x4x8xf32>)
  // CHECK: graph.attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} saved %{{.*}}, %{{.*}} {scale = 5.000000e-01 : f64}
  %2:3 = graph.attention_grad %0#0, %q, %k, %v mask %m saved %0#0, %0#1 {scale = 0.5 : f64} : (tensor<1x4x8x3xf32>, tensor<1x4x8x2xf32>, tensor<1x2x8x2xf32>, tensor<1x2x8x3xf32>, tensor<1x1x8x8xi1>, tensor<1x4x8x3xf32>, tensor<1x4x8xf32>) -> (tensor<1x4x8x2xf32>, tensor<1x2x8x2xf32>, tensor<1x2x8x3xf32>)
  return %2#0 : tensor<1x4x8x2xf32>
}

// CHECK-LABEL: @groups
func.func @groups(%x: tensor<2x3xf32>, %b: tensor<3xf32>) -> tensor<2xf32> {
  // CHECK: graph.group %{{.*}}, %{{.*}} space [2, 3] reduced [1] : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32> {
  %0 = graph.group %x, %b space [2, 3] reduced [1] : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32> {
  ^bb0(%e: tensor<2x3xf32>, %f: tensor<3xf32>):
    %g = graph.broadcast %f [1] : tensor<3xf32> -> tensor<2x3xf32>
    %h = graph.mul %e, %g : tensor<2x3xf32>
    %r = graph.reduce_sum %h [1] : tensor<2x3xf32> -> tensor<2xf32>
    // CHECK: graph.yield %{{.*}} : tensor<2xf32>
    graph.yield %r : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}
