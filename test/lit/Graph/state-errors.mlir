// Rule G1: variables are static ranked tensors, and reads and writes agree with them.
// RUN: plimsoll-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{G1: expected a static ranked tensor type, found 'tensor<?xf32>'}}
graph.variable @w : tensor<?xf32> {kind = #graph.variable_kind<parameter>}

// -----
func.func @readsNothing() -> tensor<2xf32> {
  // expected-error @+1 {{G1: unknown variable @w}}
  %0 = graph.read @w : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----
graph.variable @w : tensor<3xf32> {kind = #graph.variable_kind<parameter>}
func.func @readsAnotherType() -> tensor<2xf32> {
  // expected-error @+1 {{G1: variable @w has type 'tensor<3xf32>' but 'tensor<2xf32>' is used here}}
  %0 = graph.read @w : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----
graph.variable @w : tensor<3xf32> {kind = #graph.variable_kind<parameter>}
func.func @writesAnotherType(%x: tensor<2xf32>) {
  // expected-error @+1 {{G1: variable @w has type 'tensor<3xf32>' but 'tensor<2xf32>' is used here}}
  graph.write @w, %x : tensor<2xf32>
  return
}

// -----
func.func @writesNothing(%x: tensor<2xf32>) {
  // expected-error @+1 {{G1: unknown variable @w}}
  graph.write @w, %x : tensor<2xf32>
  return
}
