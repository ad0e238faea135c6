// Rules G4 to G8.
// RUN: plimsoll-opt %s --split-input-file --verify-diagnostics

func.func @tooFewDims(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{G4: expected 2 dims, found 1}}
  %0 = graph.broadcast %x [0] : tensor<2x3xf32> -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----
func.func @decreasingDims(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  // expected-error @+1 {{G4: dims must be strictly increasing and below the result rank 2}}
  %0 = graph.broadcast %x [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// -----
func.func @dimsBeyondTheRank(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{G4: dims must be strictly increasing and below the result rank 1}}
  %0 = graph.broadcast %x [1] : tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----
func.func @broadcastOfTwo(%x: tensor<2xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{G5: operand dimension 0 has size 2, result dimension 0 has 3}}
  %0 = graph.broadcast %x [0] : tensor<2xf32> -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----
func.func @broadcastChangesTheElement(%x: tensor<2xf32>) -> tensor<2xf16> {
  // expected-error @+1 {{expected one element type, found 'tensor<2xf32>' and 'tensor<2xf16>'}}
  %0 = graph.broadcast %x [0] : tensor<2xf32> -> tensor<2xf16>
  return %0 : tensor<2xf16>
}

// -----
func.func @reshapeLosesElements(%x: tensor<2x3xf32>) -> tensor<5xf32> {
  // expected-error @+1 {{G6: 'tensor<2x3xf32>' and 'tensor<5xf32>' have different element counts}}
  %0 = graph.reshape %x : tensor<2x3xf32> -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----
func.func @permOfAnotherRank(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  // expected-error @+1 {{G7: expected a permutation of 2 dimensions}}
  %0 = graph.transpose %x [0] : tensor<2x3xf32> -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// -----
func.func @permRepeats(%x: tensor<2x3xf32>) -> tensor<3x3xf32> {
  // expected-error @+1 {{G7: perm is not a permutation}}
  %0 = graph.transpose %x [1, 1] : tensor<2x3xf32> -> tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}

// -----
func.func @permDisagrees(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{G7: result dimension 0 has size 2, expected 3}}
  %0 = graph.transpose %x [1, 0] : tensor<2x3xf32> -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----
func.func @sliceOfAnotherRank(%x: tensor<4xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{G8: expected one start and one stride for each of 1 dimensions}}
  %0 = graph.slice %x [0, 0] [1] : tensor<4xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----
func.func @sliceLeavesTheOperand(%x: tensor<4xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{G8: dimension 0: start 1, stride 3 and size 2 leave the operand's 4}}
  %0 = graph.slice %x [1] [3] : tensor<4xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----
func.func @sliceBackwards(%x: tensor<4xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{G8: dimension 0: start 1, stride -1 and size 2 leave the operand's 4}}
  %0 = graph.slice %x [1] [-1] : tensor<4xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
