// Rules G16 to G21.
// RUN: plimsoll-opt %s --split-input-file --verify-diagnostics

func.func @dotOfBatches(%a: tensor<2x3x4xf32>, %b: tensor<3x4x5xf32>) -> tensor<2x3x5xf32> {
  // expected-error @+1 {{G16: ranks must be equal and at least 2 and batch dimensions must agree}}
  %0 = graph.dot %a, %b : (tensor<2x3x4xf32>, tensor<3x4x5xf32>) -> tensor<2x3x5xf32>
  return %0 : tensor<2x3x5xf32>
}

// -----
func.func @dotOfVectors(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<f32> {
  // expected-error @+1 {{G16: ranks must be equal and at least 2}}
  %0 = graph.dot %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----
func.func @dotContractsDifferentSizes(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>) -> tensor<3x4xf32> {
  // expected-error @+1 {{G17: contracted sizes 4 and 5, result should be (..., 3, 4)}}
  %0 = graph.dot %a, %b {trans_b = true} : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----
func.func @sumOfAnotherShape(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>, %c: tensor<5x3xf32>) -> tensor<3x5xf32> {
  // expected-error @+1 {{G17: the accumulator has type 'tensor<5x3xf32>', expected the result's, 'tensor<3x5xf32>'}}
  %0 = graph.dot_add %a, %b into %c : (tensor<3x4xf32>, tensor<4x5xf32>, tensor<5x3xf32>) -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}

// -----
func.func @sumContractsDifferentSizes(%a: tensor<3x4xf32>, %b: tensor<3x5xf32>, %c: tensor<3x5xf32>) -> tensor<3x5xf32> {
  // expected-error @+1 {{G17: contracted sizes 4 and 3}}
  %0 = graph.dot_add %a, %b into %c : (tensor<3x4xf32>, tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}

// -----
func.func @dotOfElementTypes(%a: tensor<3x4xf32>, %b: tensor<4x5xf16>) -> tensor<3x5xf32> {
  // expected-error @+1 {{G17: operands have different element types}}
  %0 = graph.dot %a, %b : (tensor<3x4xf32>, tensor<4x5xf16>) -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}

// -----
func.func @convOfMatrices(%x: tensor<1x2xf32>, %w: tensor<3x2xf32>) -> tensor<1x3xf32> {
  // expected-error @+1 {{G18: expected 1 to 3 spatial dimensions, found rank 2}}
  %0 = graph.conv %x, %w {strides = array<i64>, pads = array<i64>, dilations = array<i64>, groups = 1 : i64} : (tensor<1x2xf32>, tensor<3x2xf32>) -> tensor<1x3xf32>
  return %0 : tensor<1x3xf32>
}

// -----
func.func @convOfRanks(%x: tensor<1x2x4xf32>, %w: tensor<3x2x2x2xf32>) -> tensor<1x3x3xf32> {
  // expected-error @+1 {{G18: ranks differ}}
  %0 = graph.conv %x, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<1x2x4xf32>, tensor<3x2x2x2xf32>) -> tensor<1x3x3xf32>
  return %0 : tensor<1x3x3xf32>
}

// -----
func.func @convWithTooFewPads(%x: tensor<1x2x4xf32>, %w: tensor<3x2x2xf32>) -> tensor<1x3x3xf32> {
  // expected-error @+1 {{G18: expected 1 kernel sizes, strides and dilations and 2 pads}}
  %0 = graph.conv %x, %w {strides = array<i64: 1>, pads = array<i64: 0>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<1x2x4xf32>, tensor<3x2x2xf32>) -> tensor<1x3x3xf32>
  return %0 : tensor<1x3x3xf32>
}

// -----
func.func @convWithoutStride(%x: tensor<1x2x4xf32>, %w: tensor<3x2x2xf32>) -> tensor<1x3x3xf32> {
  // expected-error @+1 {{G18: strides must be positive}}
  %0 = graph.conv %x, %w {strides = array<i64: 0>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<1x2x4xf32>, tensor<3x2x2xf32>) -> tensor<1x3x3xf32>
  return %0 : tensor<1x3x3xf32>
}

// -----
func.func @convWithoutDilation(%x: tensor<1x2x4xf32>, %w: tensor<3x2x2xf32>) -> tensor<1x3x3xf32> {
  // expected-error @+1 {{G18: dilations must be positive}}
  %0 = graph.conv %x, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 0>, groups = 1 : i64} : (tensor<1x2x4xf32>, tensor<3x2x2xf32>) -> tensor<1x3x3xf32>
  return %0 : tensor<1x3x3xf32>
}

// -----
func.func @poolCropped(%x: tensor<1x2x4xf32>) -> tensor<1x2x3xf32> {
  // expected-error @+1 {{G18: pads must not be negative}}
  %0 = graph.avg_pool %x {kernel = array<i64: 1>, strides = array<i64: 1>, pads = array<i64: -1, 0>, dilations = array<i64: 1>} : (tensor<1x2x4xf32>) -> tensor<1x2x3xf32>
  return %0 : tensor<1x2x3xf32>
}

// -----
func.func @convOfGroups(%x: tensor<1x4x4xf32>, %w: tensor<3x2x2xf32>) -> tensor<1x3x3xf32> {
  // expected-error @+1 {{do not fit 2 groups}}
  %0 = graph.conv %x, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, groups = 2 : i64} : (tensor<1x4x4xf32>, tensor<3x2x2xf32>) -> tensor<1x3x3xf32>
  return %0 : tensor<1x3x3xf32>
}

// -----
func.func @convOfAnotherSize(%x: tensor<1x2x4xf32>, %w: tensor<3x2x2xf32>) -> tensor<1x3x4xf32> {
  // expected-error @+1 {{G20: output 'tensor<1x3x4xf32>' does not follow from 'tensor<1x2x4xf32>' and 'tensor<3x2x2xf32>'}}
  %0 = graph.conv %x, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<1x2x4xf32>, tensor<3x2x2xf32>) -> tensor<1x3x4xf32>
  return %0 : tensor<1x3x4xf32>
}

// -----
func.func @inputGradOfAnotherSize(%y: tensor<1x3x3xf32>, %w: tensor<3x2x2xf32>) -> tensor<1x2x5xf32> {
  // expected-error @+1 {{G20: output 'tensor<1x3x3xf32>' does not follow}}
  %0 = graph.conv_input_grad %y, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<1x3x3xf32>, tensor<3x2x2xf32>) -> tensor<1x2x5xf32>
  return %0 : tensor<1x2x5xf32>
}

// -----
func.func @weightGradOfChannels(%x: tensor<1x2x4xf32>, %y: tensor<1x3x3xf32>) -> tensor<4x2x2xf32> {
  // expected-error @+1 {{G19: channels of}}
  %0 = graph.conv_weight_grad %x, %y {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<1x2x4xf32>, tensor<1x3x3xf32>) -> tensor<4x2x2xf32>
  return %0 : tensor<4x2x2xf32>
}

// -----
func.func @poolOfAnotherSize(%x: tensor<1x2x5xf32>) -> tensor<1x2x4xf32> {
  // expected-error @+1 {{G20: output 'tensor<1x2x4xf32>' does not follow from 'tensor<1x2x5xf32>'}}
  %0 = graph.avg_pool %x {kernel = array<i64: 2>, strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x2x5xf32>) -> tensor<1x2x4xf32>
  return %0 : tensor<1x2x4xf32>
}

// -----
func.func @poolOfRanks(%x: tensor<1x2x5xf32>) -> tensor<1x2xf32> {
  // expected-error @+1 {{G18: ranks differ}}
  %0 = graph.avg_pool %x {kernel = array<i64: 2>, strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x2x5xf32>) -> tensor<1x2xf32>
  return %0 : tensor<1x2xf32>
}

// -----
func.func @indicesOfAnotherShape(%x: tensor<1x2x4xf32>) -> tensor<1x2x2xf32> {
  // expected-error @+1 {{G21: indices and result have different shapes}}
  %0, %i = graph.max_pool %x {kernel = array<i64: 2>, strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x2x4xf32>) -> (tensor<1x2x2xf32>, tensor<1x2x3xi32>)
  return %0 : tensor<1x2x2xf32>
}

// -----
func.func @poolGradOfAnotherShape(%y: tensor<1x2x2xf32>, %i: tensor<1x2x3xi32>) -> tensor<1x2x4xf32> {
  // expected-error @+1 {{G21: indices and cotangent have different shapes}}
  %0 = graph.max_pool_grad %y, %i {kernel = array<i64: 2>, strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x2x2xf32>, tensor<1x2x3xi32>) -> tensor<1x2x4xf32>
  return %0 : tensor<1x2x4xf32>
}
