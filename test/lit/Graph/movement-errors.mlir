// Rules G9 to G15.
// RUN: plimsoll-opt %s --split-input-file --verify-diagnostics

func.func @concatBeyondTheRank(%x: tensor<2xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{G9: axis 1 is not in [0, 1)}}
  %0 = graph.concat %x, %x axis 1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
func.func @cumsumBeyondTheRank(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{G9: axis -1 is not in [0, 1)}}
  %0 = graph.cumsum %x axis -1 : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----
func.func @concatOfRanks(%x: tensor<2xf32>, %y: tensor<2x1xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{G10: operand rank 2 differs from the result rank 1}}
  %0 = graph.concat %x, %y axis 0 : (tensor<2xf32>, tensor<2x1xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
func.func @concatOfWidths(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) -> tensor<4x3xf32> {
  // expected-error @+1 {{G10: dimension 1 is 4 in an operand and 3 in the result}}
  %0 = graph.concat %x, %y axis 0 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// -----
func.func @concatDoesNotAddUp(%x: tensor<2xf32>) -> tensor<5xf32> {
  // expected-error @+1 {{G10: operands add up to 4 along the axis, the result has 5}}
  %0 = graph.concat %x, %x axis 0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----
func.func @padOfAnotherRank(%x: tensor<2xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{G11: expected low, high and interior for each of 1 dimensions}}
  %0 = graph.pad %x low [1, 0] high [0] interior [0] : tensor<2xf32> -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----
func.func @padNegative(%x: tensor<2xf32>) -> tensor<1xf32> {
  // expected-error @+1 {{G11: dimension 0 has a negative padding}}
  %0 = graph.pad %x low [-1] high [0] interior [0] : tensor<2xf32> -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @padOfAnotherSize(%x: tensor<2xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{G11: dimension 0 should have size 5, the result has 4}}
  %0 = graph.pad %x low [1] high [1] interior [1] : tensor<2xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
func.func @gatherBeyondTheRank(%x: tensor<2xf32>, %i: tensor<3xi64>) -> tensor<3xf32> {
  // expected-error @+1 {{G12: axis 1 is not in [0, 1)}}
  %0 = graph.gather %x, %i axis 1 : (tensor<2xf32>, tensor<3xi64>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----
func.func @gatherOfAnotherShape(%x: tensor<2x4xf32>, %i: tensor<3xi64>) -> tensor<3x2xf32> {
  // expected-error @+1 {{G12: expected 'tensor<3x4xf32>' beside 'tensor<2x4xf32>' and 'tensor<3xi64>', found 'tensor<3x2xf32>'}}
  %0 = graph.gather %x, %i axis 0 : (tensor<2x4xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// -----
func.func @scatterOfAnotherShape(%i: tensor<3xi64>, %u: tensor<2x4xf32>) -> tensor<5x4xf32> {
  // expected-error @+1 {{G12: expected 'tensor<3x4xf32>'}}
  %0 = graph.scatter_add %i, %u axis 0 : (tensor<3xi64>, tensor<2x4xf32>) -> tensor<5x4xf32>
  return %0 : tensor<5x4xf32>
}

// -----
func.func @elementsOfAnotherRank(%x: tensor<2x4xf32>, %i: tensor<3xi64>) -> tensor<3xf32> {
  // expected-error @+1 {{G13: 'tensor<3xi64>' does not index 'tensor<2x4xf32>' along axis 0 into 'tensor<3xf32>'}}
  %0 = graph.gather_elements %x, %i axis 0 : (tensor<2x4xf32>, tensor<3xi64>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----
func.func @elementsOutsideTheOperand(%i: tensor<3x1xi64>, %u: tensor<3x1xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{G13: 'tensor<3x1xi64>' does not index 'tensor<2x4xf32>' along axis 1}}
  %0 = graph.scatter_add_elements %i, %u axis 1 : (tensor<3x1xi64>, tensor<3x1xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----
func.func @seedOfOneNumber(%s: tensor<1xi64>) -> tensor<4xf32> {
  // expected-error @+1 {{G14: expected a seed of type tensor<2xi64>, found 'tensor<1xi64>'}}
  %0 = graph.random_uniform %s id 0 : tensor<1xi64> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
func.func @seedOf32Bits(%x: tensor<4xf32>, %s: tensor<2xi32>) -> tensor<4xf32> {
  // expected-error @+1 {{G14: expected a seed of type tensor<2xi64>, found 'tensor<2xi32>'}}
  %0 = graph.dropout %x, %s ratio 0.5 id 0 : tensor<2xi32>, tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
func.func @reduceDimsRepeat(%x: tensor<2x3xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{G15: dims must be strictly increasing and below the rank 2}}
  %0 = graph.reduce_sum %x [1, 1] : tensor<2x3xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----
func.func @reduceToAnotherShape(%x: tensor<2x3xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{G15: expected result 'tensor<2xf32>', found 'tensor<3xf32>'}}
  %0 = graph.reduce_max %x [1] : tensor<2x3xf32> -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
