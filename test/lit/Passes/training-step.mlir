// --plimsoll-training-step replaces @forward by the entries of a training binary and adds the state they need.
// RUN: plimsoll-opt %s --plimsoll-training-step="optimizer=sgd momentum=0.9 weight-decay=0.1 no-decay=*.bias" | FileCheck %s --check-prefix=SGD
// RUN: plimsoll-opt %s --plimsoll-training-step="optimizer=adamw clip-norm=1.0 accumulation=4" | FileCheck %s --check-prefix=ACC
// RUN: plimsoll-opt %s --plimsoll-training-step | plimsoll-opt --canonicalize --cse --plimsoll-fuse --plimsoll-materialize --plimsoll-schedule | plimsoll-opt | FileCheck %s --check-prefix=PIPELINE

// Slots are created after the model's variables, zero-filled, owned by their parameter; frozen ones have none.
// SGD: graph.variable @fc.weight : tensor<3x2xf32>
// SGD-NEXT: graph.variable @fc.bias : tensor<2xf32>
// SGD-NEXT: graph.variable @frozen : tensor<2xf32>
// SGD-NEXT: graph.variable @optimizer.step : tensor<i64> {fill = 0.000000e+00 : f64, kind = #graph.variable_kind<step_state>, trainable = false}
// SGD-DAG: graph.variable @fc.weight.momentum : tensor<3x2xf32> {fill = 0.000000e+00 : f64, kind = #graph.variable_kind<optimizer_state>, owner = @fc.weight, trainable = false}
// SGD-DAG: graph.variable @fc.bias.momentum
// SGD-NOT: @frozen.momentum
// SGD-NOT: func.func @forward(%{{.*}}: tensor<4x3xf32> {graph.name = "x"}, %
// SGD-LABEL: func.func @train_step(
// SGD-SAME: %{{.*}}: tensor<4x3xf32> {graph.name = "x"}, %{{.*}}: tensor<4x2xf32> {graph.name = "y"}, %[[LR:.*]]: tensor<f32> {graph.name = "lr"})
// SGD-SAME: -> (tensor<f32> {graph.name = "loss"}, tensor<f32> {graph.name = "tokens"})
// The decayed parameter's gradient gets 0.1*w; the bias's does not. The weight is a non-zero constant: no guard.
// SGD-NOT: graph.select
// SGD-NOT: graph.write @frozen
// SGD-DAG: graph.write @optimizer.step
// SGD-DAG: graph.constant dense<1.000000e-01> : tensor<3x2xf32>
// SGD-NOT: dense<1.000000e-01> : tensor<2xf32>
// SGD-DAG: graph.write @fc.weight,
// SGD-DAG: graph.write @fc.bias,
// Evaluation has no learning rate, no backward and no write; @forward gives the other results and needs no labels.
// SGD-LABEL: func.func @eval_step(
// SGD-SAME: "x"}, %{{.*}}: tensor<4x2xf32> {graph.name = "y"}) -> (tensor<f32> {graph.name = "loss"}, tensor<f32> {graph.name = "tokens"})
// SGD-NOT: graph.write
// SGD-LABEL: func.func @forward(
// SGD-SAME: %{{[a-z0-9]*}}: tensor<4x3xf32> {graph.name = "x"}) -> (tensor<4x2xf32> {graph.name = "out"})
// SGD-NOT: graph.write

// Accumulation: gradients of the loss times its weight are added up; apply divides, clips, guards, updates, clears.
// ACC-DAG: graph.variable @fc.weight.grad : tensor<3x2xf32> {fill = 0.000000e+00 : f64, kind = #graph.variable_kind<gradient_accumulator>, owner = @fc.weight, trainable = false}
// ACC-DAG: graph.variable @accumulate.loss : tensor<f32>
// ACC-DAG: graph.variable @accumulate.weight : tensor<f32>
// ACC-LABEL: func.func @accumulate(
// ACC-NOT: "lr"
// ACC: graph.write @fc.weight.grad
// ACC: graph.write @accumulate.weight
// ACC-LABEL: func.func @eval_step(
// ACC-LABEL: func.func @apply(
// ACC-SAME: %{{.*}}: tensor<f32> {graph.name = "lr"}) -> (tensor<f32> {graph.name = "loss"}, tensor<f32> {graph.name = "tokens"}, tensor<f32> {graph.name = "grad_norm"}, tensor<f32> {graph.name = "skipped"})
// ACC: graph.compare <gt>
// ACC: graph.sqrt
// ACC: graph.minimum
// ACC: graph.and
// ACC: graph.select
// ACC-DAG: graph.write @fc.weight,
// ACC-DAG: graph.write @fc.weight.exp_avg,
// ACC: graph.write @fc.weight.grad
// ACC: graph.write @accumulate.loss
// ACC: graph.write @accumulate.weight

// PIPELINE-LABEL: func.func @train_step(
// PIPELINE: graph.group
// PIPELINE: graph.write @fc.weight

graph.variable @fc.weight : tensor<3x2xf32> {kind = #graph.variable_kind<parameter>}
graph.variable @fc.bias : tensor<2xf32> {kind = #graph.variable_kind<parameter>}
graph.variable @frozen : tensor<2xf32> {kind = #graph.variable_kind<parameter>, trainable = false}
func.func @forward(%x: tensor<4x3xf32> {graph.name = "x"}, %y: tensor<4x2xf32> {graph.name = "y"})
    -> (tensor<f32> {graph.role = "loss", graph.name = "loss"}, tensor<f32> {graph.role = "weight", graph.name = "weight"}, tensor<4x2xf32> {graph.name = "out"}) {
  %w = graph.read @fc.weight : tensor<3x2xf32>
  %b = graph.read @fc.bias : tensor<2xf32>
  %f = graph.read @frozen : tensor<2xf32>
  %h = graph.dot %x, %w : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  %bb = graph.broadcast %b [1] : tensor<2xf32> -> tensor<4x2xf32>
  %fb = graph.broadcast %f [1] : tensor<2xf32> -> tensor<4x2xf32>
  %a = graph.add %h, %bb : tensor<4x2xf32>
  %out = graph.mul %a, %fb : tensor<4x2xf32>
  %d = graph.sub %out, %y : tensor<4x2xf32>
  %s = graph.mul %d, %d : tensor<4x2xf32>
  %loss = graph.reduce_sum %s [0, 1] : tensor<4x2xf32> -> tensor<f32>
  %weight = graph.constant dense<8.0> : tensor<f32>
  return %loss, %weight, %out : tensor<f32>, tensor<f32>, tensor<4x2xf32>
}
