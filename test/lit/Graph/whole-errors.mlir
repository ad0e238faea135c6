// Rules G9 and G22 to G31.
// RUN: plimsoll-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

func.func @softmaxBeyondTheRank(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{G9: axis 2 is not in [0, 2)}}
  %0 = graph.softmax %x axis 2 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----
func.func @logSoftmaxBeyondTheRank(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{G9: axis 2 is not in [0, 2)}}
  %0 = graph.log_softmax %x axis 2 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----
func.func @layerNormStatistics(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{G22: statistics must have the shape of the first 1 dimensions, found 'tensor<3xf32>'}}
  %0:3 = graph.layer_norm %x axis 1 eps 1.0e-5 : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>)
  return %0#0 : tensor<2x3xf32>
}

// -----
func.func @rmsNormChangesTheType(%x: tensor<2x3xf32>) -> tensor<2x3xf16> {
  // expected-error @+1 {{G22: the normalised result must have the operand's type}}
  %0:2 = graph.rms_norm %x axis 1 eps 1.0e-5 : (tensor<2x3xf32>) -> (tensor<2x3xf16>, tensor<2xf32>)
  return %0#0 : tensor<2x3xf16>
}

// -----
func.func @batchNormOfVectors(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{G23: expected rank >= 2, found 'tensor<2xf32>'}}
  %0:3 = graph.batch_norm %x eps 1.0e-5 : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
  return %0#0 : tensor<2xf32>
}

// -----
func.func @batchNormStatistics(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{G24: statistics must have 3 elements, found 'tensor<2xf32>'}}
  %0:3 = graph.batch_norm %x eps 1.0e-5 : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>)
  return %0#0 : tensor<2x3xf32>
}

// -----
func.func @dropsEverything(%x: tensor<3xf32>, %s: tensor<2xi64>) -> tensor<3xf32> {
  // expected-error @+1 {{G25: ratio 1.0}}
  %0 = graph.dropout %x, %s ratio 1.0 id 0 : tensor<2xi64>, tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----
func.func @labelsOfAnotherLength(%x: tensor<2x3xf32>, %l: tensor<3xi64>) -> tensor<2xf32> {
  // expected-error @+1 {{G26: expected logits (N, C) and one entry per row, found 'tensor<2x3xf32>'}}
  %0:2 = graph.cross_entropy %x, %l ignore -100 : (tensor<2x3xf32>, tensor<3xi64>) -> (tensor<2xf32>, tensor<2xf32>)
  return %0#0 : tensor<2xf32>
}

// -----
func.func @lossGradOfAnotherType(%x: tensor<2x3xf32>, %l: tensor<2xi64>, %s: tensor<2xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{G26: the result must have the logits' type}}
  %0 = graph.cross_entropy_grad %x, %l, %s, %s ignore -100 : (tensor<2x3xf32>, tensor<2xi64>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----
func.func @headsDoNotDivide(%q: tensor<1x3x4x2xf32>, %k: tensor<1x2x4x2xf32>) -> tensor<1x3x4x2xf32> {
  // expected-error @+1 {{G27: sizes do not fit}}
  %0:2 = graph.attention %q, %k, %k {scale = 1.0 : f64} : (tensor<1x3x4x2xf32>, tensor<1x2x4x2xf32>, tensor<1x2x4x2xf32>) -> (tensor<1x3x4x2xf32>, tensor<1x3x4xf32>)
  return %0#0 : tensor<1x3x4x2xf32>
}

// -----
func.func @attentionGradOfAnotherType(%q: tensor<1x1x4x2xf32>, %l: tensor<1x1x4xf32>) -> tensor<1x1x4x3xf32> {
  // expected-error @+1 {{G27: gradients must have the types of query, key and value}}
  %0:3 = graph.attention_grad %q, %q, %q, %q saved %q, %l {scale = 1.0 : f64} : (tensor<1x1x4x2xf32>, tensor<1x1x4x2xf32>, tensor<1x1x4x2xf32>, tensor<1x1x4x2xf32>, tensor<1x1x4x2xf32>, tensor<1x1x4xf32>) -> (tensor<1x1x4x3xf32>, tensor<1x1x4x2xf32>, tensor<1x1x4x2xf32>)
  return %0#0 : tensor<1x1x4x3xf32>
}

// -----
func.func @maskDoesNotBroadcast(%q: tensor<1x1x4x2xf32>, %m: tensor<1x1x2x4xi1>) -> tensor<1x1x4x2xf32> {
  // expected-error @+1 {{G28: mask 'tensor<1x1x2x4xi1>' does not broadcast to the scores}}
  %0:2 = graph.attention %q, %q, %q mask %m {scale = 1.0 : f64} : (tensor<1x1x4x2xf32>, tensor<1x1x4x2xf32>, tensor<1x1x4x2xf32>, tensor<1x1x2x4xi1>) -> (tensor<1x1x4x2xf32>, tensor<1x1x4xf32>)
  return %0#0 : tensor<1x1x4x2xf32>
}

// -----
func.func @groupWithoutYield(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{G29: expected graph.yield at the end of the region}}
  %0 = graph.group %x space [2] reduced [] : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%e: tensor<2xf32>):
    "test.end"(%e) : (tensor<2xf32>) -> ()
  }
  return %0 : tensor<2xf32>
}

// -----
func.func @groupArguments(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{G29: region arguments differ from the operands}}
  %0 = graph.group %x space [2] reduced [] : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%e: tensor<2xf32>, %f: tensor<2xf32>):
    graph.yield %e : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}

// -----
func.func @groupResults(%x: tensor<2xf32>) -> tensor<2xf16> {
  // expected-error @+1 {{G29: yielded values differ from the results}}
  %0 = graph.group %x space [2] reduced [] : (tensor<2xf32>) -> tensor<2xf16> {
  ^bb0(%e: tensor<2xf32>):
    graph.yield %e : tensor<2xf32>
  }
  return %0 : tensor<2xf16>
}

// -----
func.func @groupOfLibraryCalls(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = graph.group %x space [2, 2] reduced [] : (tensor<2x2xf32>) -> tensor<2x2xf32> {
  ^bb0(%e: tensor<2x2xf32>):
    // expected-error @+1 {{G30: has no scalar form and cannot be in a kernel group}}
    %d = graph.dot %e, %e : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    graph.yield %d : tensor<2x2xf32>
  }
  return %0 : tensor<2x2xf32>
}

// -----
func.func @groupOfTwoSpaces(%x: tensor<2x3xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{G31: graph.reduce_sum has shape 'tensor<3xf32>', which is neither the iteration space nor its parallel part}}
  %0 = graph.group %x space [2, 3] reduced [1] : (tensor<2x3xf32>) -> tensor<3xf32> {
  ^bb0(%e: tensor<2x3xf32>):
    %r = graph.reduce_sum %e [0] : tensor<2x3xf32> -> tensor<3xf32>
    graph.yield %r : tensor<3xf32>
  }
  return %0 : tensor<3xf32>
}
