// Rules G2 and G3, and operand types.
// RUN: plimsoll-opt %s --split-input-file --verify-diagnostics

func.func @iotaBeyondTheRank() -> tensor<2xi32> {
  // expected-error @+1 {{G2: dimension 1 is not below the rank 1}}
  %0 = graph.iota 1 : tensor<2xi32>
  return %0 : tensor<2xi32>
}

// -----
func.func @isNanChangesTheShape(%x: tensor<2xf32>) -> tensor<3xi1> {
  // expected-error @+1 {{G3: expected one shape, found 'tensor<2xf32>' and 'tensor<3xi1>'}}
  %0 = graph.is_nan %x : tensor<2xf32> -> tensor<3xi1>
  return %0 : tensor<3xi1>
}

// -----
func.func @compareChangesTheShape(%x: tensor<2xf32>) -> tensor<3xi1> {
  // expected-error @+1 {{G3: expected one shape}}
  %0 = graph.compare <lt> %x, %x : tensor<2xf32> -> tensor<3xi1>
  return %0 : tensor<3xi1>
}

// -----
func.func @selectByAnotherShape(%p: tensor<3xi1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{G3: expected one shape}}
  %0 = graph.select %p, %x, %x : tensor<3xi1>, tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----
func.func @convertChangesTheShape(%x: tensor<2xf32>) -> tensor<3xi32> {
  // expected-error @+1 {{G3: expected one shape}}
  %0 = graph.convert %x : tensor<2xf32> -> tensor<3xi32>
  return %0 : tensor<3xi32>
}

// -----
func.func @addOfTwoShapes(%x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{requires the same type for all operands and results}}
  %0 = "graph.add"(%x, %y) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----
func.func @expOfIntegers(%x: tensor<2xi32>) -> tensor<2xi32> {
  // expected-error @+1 {{operand #0 must be statically shaped tensor of}}
  %0 = "graph.exp"(%x) : (tensor<2xi32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// -----
func.func @dynamicShapes(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{operand #0 must be statically shaped tensor of}}
  %0 = "graph.neg"(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----
func.func @constantOfAnotherType() -> tensor<3xf32> {
  // expected-error @+1 {{failed to verify that all of {value, result} have same type}}
  %0 = "graph.constant"() {value = dense<1.0> : tensor<2xf32>} : () -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
