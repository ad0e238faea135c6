// --plimsoll-interleave: each piece of a chunked loss runs forward right before its backward, and its share of the weight's gradient is
// added where the others are.
// RUN: plimsoll-opt %s --split-input-file --plimsoll-chunk=count=2 --canonicalize --plimsoll-autodiff --cse --plimsoll-interleave | FileCheck %s
// RUN: plimsoll-opt %s --split-input-file --plimsoll-chunk=count=2 --canonicalize --plimsoll-autodiff --cse --plimsoll-interleave --remarks-filter=chunk -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

graph.variable @e : tensor<6x4xf32> {kind = #graph.variable_kind<parameter>}
graph.variable @w : tensor<4x7xf32> {kind = #graph.variable_kind<parameter>}

// CHECK-LABEL: func.func @forward(
// CHECK: %[[Z0:.*]] = graph.dot %[[H0:.*]], %[[W:.*]] : (tensor<3x4xf32>, tensor<4x7xf32>)
// CHECK-NEXT: %[[L0:.*]], %{{.*}} = graph.cross_entropy %[[Z0]], {{.*}} {graph.chunk = 0 : i64}
// CHECK-NEXT: %[[D0:.*]] = graph.cross_entropy_grad %[[Z0]]
// CHECK-NEXT: %[[DH0:.*]] = graph.dot %[[D0]], %[[W]] {trans_b = true}
// CHECK-NEXT: %[[DW0:.*]] = graph.dot %[[H0]], %[[D0]] {trans_a = true}
// CHECK-NEXT: %[[Z1:.*]] = graph.dot %[[H1:.*]], %[[W]]
// CHECK-NEXT: %[[L1:.*]], %{{.*}} = graph.cross_entropy %[[Z1]], {{.*}} {graph.chunk = 3 : i64}
// CHECK-NEXT: %[[D1:.*]] = graph.cross_entropy_grad %[[Z1]]
// CHECK-NEXT: %[[DH1:.*]] = graph.dot %[[D1]], %[[W]] {trans_b = true}
// CHECK-NEXT: %[[DW:.*]] = graph.dot_add %[[H1]], %[[D1]] into %[[DW0]] {trans_a = true}
// CHECK-NEXT: %[[DE:.*]] = graph.concat %[[DH0]], %[[DH1]] axis 0
// CHECK-NEXT: %[[ALL:.*]] = graph.concat %[[L0]], %[[L1]] axis 0
// CHECK-NEXT: %[[LOSS:.*]] = graph.reduce_sum %[[ALL]] [0]
// CHECK-NEXT: return %[[LOSS]], %[[DE]], %[[DW]]
func.func @forward(%labels: tensor<6xi64>) -> (tensor<f32> {graph.role = "loss"}) {
  %x = graph.read @e : tensor<6x4xf32>
  %w = graph.read @w : tensor<4x7xf32>
  %z = graph.dot %x, %w : (tensor<6x4xf32>, tensor<4x7xf32>) -> tensor<6x7xf32>
  %losses, %lse = graph.cross_entropy %z, %labels ignore -100 : (tensor<6x7xf32>, tensor<6xi64>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = graph.reduce_sum %losses [0] : tensor<6xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----
// A loss of losses: what arrives at each piece depends on all of them, so no piece can finish before the others have begun.
graph.variable @w : tensor<4x7xf32> {kind = #graph.variable_kind<parameter>}
// REMARK: the gradient that arrives at the losses depends on the losses
// CHECK-LABEL: func.func @squared(
// CHECK: graph.cross_entropy {{.*}}
// CHECK: graph.cross_entropy {{.*}}
// CHECK: graph.cross_entropy_grad
// CHECK: graph.cross_entropy_grad
func.func @squared(%x: tensor<6x4xf32>, %labels: tensor<6xi64>) -> (tensor<f32> {graph.role = "loss"}) {
  %w = graph.read @w : tensor<4x7xf32>
  %z = graph.dot %x, %w : (tensor<6x4xf32>, tensor<4x7xf32>) -> tensor<6x7xf32>
  %losses, %lse = graph.cross_entropy %z, %labels ignore -100 : (tensor<6x7xf32>, tensor<6xi64>) -> (tensor<6xf32>, tensor<6xf32>)
  %mean = graph.reduce_sum %losses [0] : tensor<6xf32> -> tensor<f32>
  %loss = graph.mul %mean, %mean : tensor<f32>
  return %loss : tensor<f32>
}

// -----
// Slices of one product, as an attention's q, k and v: their gradients are put side by side, not padded and added.
// CHECK-LABEL: func.func @sides(
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<2x3xf32>, %[[B:[a-z0-9]*]]: tensor<2x2xf32>, %[[C:[a-z0-9]*]]: tensor<2x1xf32>
// CHECK-NEXT: %[[ALL:.*]] = graph.concat %[[A]], %[[B]], %[[C]] axis 1
// CHECK-NEXT: return %[[ALL]]
func.func @sides(%a: tensor<2x3xf32>, %b: tensor<2x2xf32>, %c: tensor<2x1xf32>) -> tensor<2x6xf32> {
  %pc = graph.pad %c low [0, 5] high [0, 0] interior [0, 0] : tensor<2x1xf32> -> tensor<2x6xf32>
  %pb = graph.pad %b low [0, 3] high [0, 1] interior [0, 0] : tensor<2x2xf32> -> tensor<2x6xf32>
  %bc = graph.add %pc, %pb : tensor<2x6xf32>
  %pa = graph.pad %a low [0, 0] high [0, 3] interior [0, 0] : tensor<2x3xf32> -> tensor<2x6xf32>
  %sum = graph.add %bc, %pa : tensor<2x6xf32>
  return %sum : tensor<2x6xf32>
}
// Pieces that overlap, leave a gap or are needed elsewhere stay a sum.
// CHECK-LABEL: func.func @apart(
// CHECK-NOT: graph.concat
// CHECK: return
func.func @apart(%a: tensor<2x3xf32>, %b: tensor<2x2xf32>) -> (tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>) {
  %pa = graph.pad %a low [0, 0] high [0, 3] interior [0, 0] : tensor<2x3xf32> -> tensor<2x6xf32>
  %over = graph.pad %b low [0, 2] high [0, 2] interior [0, 0] : tensor<2x2xf32> -> tensor<2x6xf32>
  %0 = graph.add %pa, %over : tensor<2x6xf32>
  %pa1 = graph.pad %a low [0, 0] high [0, 3] interior [0, 0] : tensor<2x3xf32> -> tensor<2x6xf32>
  %gap = graph.pad %b low [0, 4] high [0, 0] interior [0, 0] : tensor<2x2xf32> -> tensor<2x6xf32>
  %1 = graph.add %pa1, %gap : tensor<2x6xf32>
  %pa2 = graph.pad %a low [0, 0] high [0, 3] interior [0, 0] : tensor<2x3xf32> -> tensor<2x6xf32>
  %pb = graph.pad %b low [0, 3] high [0, 1] interior [0, 0] : tensor<2x2xf32> -> tensor<2x6xf32>
  %2 = graph.add %pa2, %pb : tensor<2x6xf32>
  return %0, %1, %2, %pb : tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>
}
