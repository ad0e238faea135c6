// What @forward must be, and names that must be free.
// RUN: plimsoll-opt %s --split-input-file --verify-diagnostics --plimsoll-training-step="optimizer=sgd momentum=0.9"

// expected-error @below {{expected one function @forward with one block}}
module {
  func.func @other() {
    return
  }
}

// -----

// expected-error @below {{expected results with graph.role "loss" and "weight"}}
func.func @forward(%x: tensor<f32>) -> (tensor<f32> {graph.role = "loss"}) {
  return %x : tensor<f32>
}

// -----

// expected-error @below {{input 'lr' has the name of the learning rate's input; rename it in the model}}
func.func @forward(%x: tensor<f32> {graph.name = "lr"}) -> (tensor<f32> {graph.role = "loss"}, tensor<f32> {graph.role = "weight"}) {
  return %x, %x : tensor<f32>, tensor<f32>
}

// -----

graph.variable @w : tensor<f32> {kind = #graph.variable_kind<parameter>}
// expected-error @below {{has a name the optimizer needs for its own state; rename it in the model}}
graph.variable @w.momentum : tensor<f32> {kind = #graph.variable_kind<parameter>, trainable = false}
// expected-error @below {{has a name the optimizer needs for its own state; rename it in the model}}
graph.variable @optimizer.step : tensor<f32> {kind = #graph.variable_kind<model_state>, trainable = false}
func.func @forward(%x: tensor<f32>) -> (tensor<f32> {graph.role = "loss"}, tensor<f32> {graph.role = "weight"}) {
  return %x, %x : tensor<f32>, tensor<f32>
}

// -----

// Every parameter is frozen or dead.
graph.variable @frozen : tensor<f32> {kind = #graph.variable_kind<parameter>, trainable = false}
graph.variable @dead : tensor<f32> {kind = #graph.variable_kind<parameter>}
// expected-error @below {{no trainable parameter has a path to the loss; check the loss output and --freeze}}
func.func @forward(%x: tensor<f32>) -> (tensor<f32> {graph.role = "loss"}, tensor<f32> {graph.role = "weight"}) {
  %f = graph.read @frozen : tensor<f32>
  %d = graph.read @dead : tensor<f32>
  %y = graph.mul %x, %f : tensor<f32>
  return %y, %x : tensor<f32>, tensor<f32>
}
