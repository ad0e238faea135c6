// RUN: plimsoll-opt %s --verify-diagnostics --plimsoll-eval-mode

// Batch statistics alone have no evaluation mode.
func.func @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @below {{has no running statistics, so it has no evaluation mode}}
  %y:3 = graph.batch_norm %x eps 1.0e-3 : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %y#0 : tensor<2x3xf32>
}
