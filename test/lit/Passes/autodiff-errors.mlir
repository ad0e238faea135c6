// What cannot be differentiated is reported all at once.
// RUN: plimsoll-opt %s --plimsoll-autodiff --split-input-file --verify-diagnostics

graph.variable @w : tensor<2x3xf32> {kind = #graph.variable_kind<parameter>}
// expected-error @+1 {{no gradient rule for 2 ops on a path to the loss: graph.cross_entropy_grad (head/loss), graph.group (fused/kernel); replace them, or freeze the parameters they depend on}}
func.func @secondOrder(%l: tensor<2xi64>, %s: tensor<2xf32>) -> (tensor<2x3xf32> {graph.role = "loss"}) {
  %w = graph.read @w : tensor<2x3xf32>
  %d = graph.cross_entropy_grad %w, %l, %s, %s ignore -100 : (tensor<2x3xf32>, tensor<2xi64>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x3xf32> loc("head/loss")
  %g = graph.group %d space [2, 3] reduced [] : (tensor<2x3xf32>) -> tensor<2x3xf32> {
  ^bb0(%e: tensor<2x3xf32>):
    graph.yield %e : tensor<2x3xf32>
  } loc("fused/kernel")
  return %g : tensor<2x3xf32>
}

// -----
// expected-error @+1 {{cannot differentiate a loss of type 'tensor<2xi64>', expected a float tensor}}
func.func @integerLoss(%l: tensor<2xi64>) -> (tensor<2xi64> {graph.role = "loss"}) {
  return %l : tensor<2xi64>
}
