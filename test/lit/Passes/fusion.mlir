// --plimsoll-fuse forms kernel groups: which ops share one, which stay apart, and what is recomputed instead of stored.
// RUN: plimsoll-opt %s --pass-pipeline='builtin.module(func.func(plimsoll-fuse))' | FileCheck %s

// A bias and an activation after a product: one elementwise group; the bias is read through a broadcast.
// CHECK-LABEL: func.func @bias_gelu(
// CHECK-NEXT: %[[V0:.*]] = graph.reshape %arg0
// CHECK-NEXT: %[[V1:.*]] = graph.dot %[[V0]], %arg1
// CHECK-NEXT: %[[V2:.*]] = graph.group %[[V1]], %arg2 space [128, 256] reduced []
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[V3:.*]] = graph.broadcast %arg4 [1]
// CHECK-NEXT: %[[V4:.*]] = graph.add %arg3, %[[V3]]
// CHECK-NEXT: %[[V5:.*]] = graph.constant dense<0.707106769>
// CHECK-NEXT: %[[V6:.*]] = graph.mul %[[V4]], %[[V5]]
// CHECK-NEXT: %[[V7:.*]] = graph.erf %[[V6]]
// CHECK-NEXT: %[[V8:.*]] = graph.constant dense<1.000000e+00>
// CHECK-NEXT: %[[V9:.*]] = graph.add %[[V8]], %[[V7]]
// CHECK-NEXT: %[[V10:.*]] = graph.constant dense<5.000000e-01>
// CHECK-NEXT: %[[V11:.*]] = graph.mul %[[V4]], %[[V10]]
// CHECK-NEXT: %[[V12:.*]] = graph.mul %[[V11]], %[[V9]]
// CHECK-NEXT: graph.yield %[[V12]]
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V2]]
// CHECK-NEXT: }
func.func @bias_gelu(%x: tensor<8x16x64xf32>, %w: tensor<64x256xf32>, %b: tensor<256xf32>) -> tensor<128x256xf32> {
  %f = graph.reshape %x : tensor<8x16x64xf32> -> tensor<128x64xf32>
  %d = graph.dot %f, %w : (tensor<128x64xf32>, tensor<64x256xf32>) -> tensor<128x256xf32>
  %bb = graph.broadcast %b [1] : tensor<256xf32> -> tensor<128x256xf32>
  %s = graph.add %d, %bb : tensor<128x256xf32>
  %g = graph.gelu %s : tensor<128x256xf32>
  return %g : tensor<128x256xf32>
}

// Residual sum, norm and affine part are one row group. Its backward is a row group (dx) and a column group (dgamma, dbeta); both recompute the normalised rows from the sum, mean and rstd, so the forward pass keeps no copy of them.
// CHECK-LABEL: func.func @norm(
// CHECK-NEXT: %[[V0:.*]]:4 = graph.group %arg0, %arg1, %arg2, %arg3 space [32, 64] reduced [1]
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[V5:.*]] = graph.add %arg6, %arg7
// CHECK-NEXT: %[[V6:.*]] = graph.reduce_sum %[[V5]] [1]
// CHECK-NEXT: %[[V7:.*]] = graph.constant dense<6.400000e+01>
// CHECK-NEXT: %[[V8:.*]] = graph.div %[[V6]], %[[V7]]
// CHECK-NEXT: %[[V9:.*]] = graph.broadcast %[[V8]] [0]
// CHECK-NEXT: %[[V10:.*]] = graph.sub %[[V5]], %[[V9]]
// CHECK-NEXT: %[[V11:.*]] = graph.mul %[[V10]], %[[V10]]
// CHECK-NEXT: %[[V12:.*]] = graph.reduce_sum %[[V11]] [1]
// CHECK-NEXT: %[[V13:.*]] = graph.div %[[V12]], %[[V7]]
// CHECK-NEXT: %[[V14:.*]] = graph.constant dense<9.99999974E-6>
// CHECK-NEXT: %[[V15:.*]] = graph.add %[[V13]], %[[V14]]
// CHECK-NEXT: %[[V16:.*]] = graph.rsqrt %[[V15]]
// CHECK-NEXT: %[[V17:.*]] = graph.broadcast %[[V16]] [0]
// CHECK-NEXT: %[[V18:.*]] = graph.mul %[[V10]], %[[V17]]
// CHECK-NEXT: %[[V19:.*]] = graph.broadcast %arg8 [1]
// CHECK-NEXT: %[[V20:.*]] = graph.mul %[[V18]], %[[V19]]
// CHECK-NEXT: %[[V21:.*]] = graph.broadcast %arg9 [1]
// CHECK-NEXT: %[[V22:.*]] = graph.add %[[V20]], %[[V21]]
// CHECK-NEXT: graph.yield %[[V5]], %[[V8]], %[[V16]], %[[V22]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[V1:.*]] = graph.dot %[[V0]]#3, %arg4
// CHECK-NEXT: %[[V2:.*]] = graph.dot %arg5, %arg4 {trans_b = true}
// CHECK-NEXT: %[[V3:.*]]:2 = graph.group %[[V2]], %[[V0]]#0, %[[V0]]#1, %[[V0]]#2 space [32, 64] reduced [0]
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[V5:.*]] = graph.broadcast %arg8 [0]
// CHECK-NEXT: %[[V6:.*]] = graph.sub %arg7, %[[V5]]
// CHECK-NEXT: %[[V7:.*]] = graph.broadcast %arg9 [0]
// CHECK-NEXT: %[[V8:.*]] = graph.mul %[[V6]], %[[V7]]
// CHECK-NEXT: %[[V9:.*]] = graph.mul %arg6, %[[V8]]
// CHECK-NEXT: %[[V10:.*]] = graph.reduce_sum %[[V9]] [0]
// CHECK-NEXT: %[[V11:.*]] = graph.reduce_sum %arg6 [0]
// CHECK-NEXT: graph.yield %[[V10]], %[[V11]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[V4:.*]] = graph.group %[[V2]], %arg2, %[[V0]]#0, %[[V0]]#1, %[[V0]]#2 space [32, 64] reduced [1]
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[V5:.*]] = graph.broadcast %arg7 [1]
// CHECK-NEXT: %[[V6:.*]] = graph.mul %arg6, %[[V5]]
// CHECK-NEXT: %[[V7:.*]] = graph.broadcast %arg9 [0]
// CHECK-NEXT: %[[V8:.*]] = graph.sub %arg8, %[[V7]]
// CHECK-NEXT: %[[V9:.*]] = graph.broadcast %arg10 [0]
// CHECK-NEXT: %[[V10:.*]] = graph.mul %[[V8]], %[[V9]]
// CHECK-NEXT: %[[V11:.*]] = graph.mul %[[V6]], %[[V10]]
// CHECK-NEXT: %[[V12:.*]] = graph.reduce_sum %[[V11]] [1]
// CHECK-NEXT: %[[V13:.*]] = graph.reduce_sum %[[V6]] [1]
// CHECK-NEXT: %[[V14:.*]] = graph.constant dense<1.562500e-02>
// CHECK-NEXT: %[[V15:.*]] = graph.mul %[[V12]], %[[V14]]
// CHECK-NEXT: %[[V16:.*]] = graph.mul %[[V13]], %[[V14]]
// CHECK-NEXT: %[[V17:.*]] = graph.broadcast %[[V15]] [0]
// CHECK-NEXT: %[[V18:.*]] = graph.mul %[[V10]], %[[V17]]
// CHECK-NEXT: %[[V19:.*]] = graph.broadcast %[[V16]] [0]
// CHECK-NEXT: %[[V20:.*]] = graph.sub %[[V6]], %[[V19]]
// CHECK-NEXT: %[[V21:.*]] = graph.sub %[[V20]], %[[V18]]
// CHECK-NEXT: %[[V22:.*]] = graph.mul %[[V21]], %[[V9]]
// CHECK-NEXT: graph.yield %[[V22]]
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V0]]#0, %[[V1]], %[[V4]], %[[V3]]#0, %[[V3]]#1
// CHECK-NEXT: }
func.func @norm(%x: tensor<32x64xf32>, %r: tensor<32x64xf32>, %g: tensor<64xf32>, %b: tensor<64xf32>, %w: tensor<64x64xf32>, %dy: tensor<32x64xf32>) -> (tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %h = graph.add %x, %r : tensor<32x64xf32>
  %n, %m, %s = graph.layer_norm %h axis 1 eps 1.0e-5 : (tensor<32x64xf32>) -> (tensor<32x64xf32>, tensor<32xf32>, tensor<32xf32>)
  %gb = graph.broadcast %g [1] : tensor<64xf32> -> tensor<32x64xf32>
  %bb = graph.broadcast %b [1] : tensor<64xf32> -> tensor<32x64xf32>
  %p = graph.mul %n, %gb : tensor<32x64xf32>
  %y = graph.add %p, %bb : tensor<32x64xf32>
  %z = graph.dot %y, %w : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
  %dz = graph.dot %dy, %w {trans_b = true} : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
  %dgf = graph.mul %dz, %n : tensor<32x64xf32>
  %dg = graph.reduce_sum %dgf [0] : tensor<32x64xf32> -> tensor<64xf32>
  %db = graph.reduce_sum %dz [0] : tensor<32x64xf32> -> tensor<64xf32>
  %dn = graph.mul %dz, %gb : tensor<32x64xf32>
  %mb = graph.broadcast %m [0] : tensor<32xf32> -> tensor<32x64xf32>
  %sb = graph.broadcast %s [0] : tensor<32xf32> -> tensor<32x64xf32>
  %xc = graph.sub %h, %mb : tensor<32x64xf32>
  %xh = graph.mul %xc, %sb : tensor<32x64xf32>
  %t = graph.mul %dn, %xh : tensor<32x64xf32>
  %t1 = graph.reduce_sum %t [1] : tensor<32x64xf32> -> tensor<32xf32>
  %t2 = graph.reduce_sum %dn [1] : tensor<32x64xf32> -> tensor<32xf32>
  %k = graph.constant dense<0.015625> : tensor<32xf32>
  %t1m = graph.mul %t1, %k : tensor<32xf32>
  %t2m = graph.mul %t2, %k : tensor<32xf32>
  %t1b = graph.broadcast %t1m [0] : tensor<32xf32> -> tensor<32x64xf32>
  %t2b = graph.broadcast %t2m [0] : tensor<32xf32> -> tensor<32x64xf32>
  %q = graph.mul %xh, %t1b : tensor<32x64xf32>
  %u = graph.sub %dn, %t2b : tensor<32x64xf32>
  %v = graph.sub %u, %q : tensor<32x64xf32>
  %dx = graph.mul %v, %sb : tensor<32x64xf32>
  return %h, %z, %dx, %dg, %db : tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>, tensor<64xf32>, tensor<64xf32>
}

// Loss and gradient of cross-entropy share a row group when nothing stands between them; the sum over rows is another space.
// CHECK-LABEL: func.func @ce(
// CHECK-NEXT: %[[V0:.*]]:2 = graph.group %arg0, %arg1 space [32, 100] reduced [1]
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[V2:.*]] = graph.reduce_max %arg2 [1]
// CHECK-NEXT: %[[V3:.*]] = graph.broadcast %[[V2]] [0]
// CHECK-NEXT: %[[V4:.*]] = graph.sub %arg2, %[[V3]]
// CHECK-NEXT: %[[V5:.*]] = graph.exp %[[V4]]
// CHECK-NEXT: %[[V6:.*]] = graph.reduce_sum %[[V5]] [1]
// CHECK-NEXT: %[[V7:.*]] = graph.log %[[V6]]
// CHECK-NEXT: %[[V8:.*]] = graph.constant dense<100>
// CHECK-NEXT: %[[V9:.*]] = graph.compare <lt> %arg3, %[[V8]]
// CHECK-NEXT: %[[V10:.*]] = graph.constant dense<0>
// CHECK-NEXT: %[[V11:.*]] = graph.compare <ge> %arg3, %[[V10]]
// CHECK-NEXT: %[[V12:.*]] = graph.and %[[V9]], %[[V11]]
// CHECK-NEXT: %[[V13:.*]] = graph.constant dense<-1>
// CHECK-NEXT: %[[V14:.*]] = graph.select %[[V12]], %arg3, %[[V13]]
// CHECK-NEXT: %[[V15:.*]] = graph.convert %[[V14]]
// CHECK-NEXT: %[[V16:.*]] = graph.iota 1
// CHECK-NEXT: %[[V17:.*]] = graph.broadcast %[[V15]] [0]
// CHECK-NEXT: %[[V18:.*]] = graph.compare <eq> %[[V16]], %[[V17]]
// CHECK-NEXT: %[[V19:.*]] = graph.constant dense<0.000000e+00>
// CHECK-NEXT: %[[V20:.*]] = graph.select %[[V18]], %arg2, %[[V19]]
// CHECK-NEXT: %[[V21:.*]] = graph.reduce_sum %[[V20]] [1]
// CHECK-NEXT: %[[V22:.*]] = graph.sub %[[V21]], %[[V2]]
// CHECK-NEXT: %[[V23:.*]] = graph.sub %[[V7]], %[[V22]]
// CHECK-NEXT: %[[V24:.*]] = graph.constant dense<0>
// CHECK-NEXT: %[[V25:.*]] = graph.compare <lt> %[[V15]], %[[V24]]
// CHECK-NEXT: %[[V26:.*]] = graph.add %[[V2]], %[[V7]]
// CHECK-NEXT: %[[V27:.*]] = graph.select %[[V25]], %[[V26]], %[[V23]]
// CHECK-NEXT: %[[V28:.*]] = graph.constant dense<-100>
// CHECK-NEXT: %[[V29:.*]] = graph.compare <eq> %arg3, %[[V28]]
// CHECK-NEXT: %[[V30:.*]] = graph.constant dense<0.000000e+00>
// CHECK-NEXT: %[[V31:.*]] = graph.select %[[V29]], %[[V30]], %[[V27]]
// CHECK-NEXT: %[[V32:.*]] = graph.broadcast %[[V26]] [0]
// CHECK-NEXT: %[[V33:.*]] = graph.sub %arg2, %[[V32]]
// CHECK-NEXT: %[[V34:.*]] = graph.exp %[[V33]]
// CHECK-NEXT: %[[V35:.*]] = graph.constant dense<1.000000e+00>
// CHECK-NEXT: %[[V36:.*]] = graph.sub %[[V34]], %[[V35]]
// CHECK-NEXT: %[[V37:.*]] = graph.select %[[V18]], %[[V36]], %[[V34]]
// CHECK-NEXT: %[[V38:.*]] = graph.constant dense<3.125000e-02>
// CHECK-NEXT: %[[V39:.*]] = graph.mul %[[V37]], %[[V38]]
// CHECK-NEXT: %[[V40:.*]] = graph.broadcast %[[V29]] [0]
// CHECK-NEXT: %[[V41:.*]] = graph.select %[[V40]], %[[V19]], %[[V39]]
// CHECK-NEXT: graph.yield %[[V31]], %[[V41]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[V1:.*]] = graph.group %[[V0]]#0 space [32] reduced [0]
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[V2:.*]] = graph.reduce_sum %arg2 [0]
// CHECK-NEXT: graph.yield %[[V2]]
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V1]], %[[V0]]#1
// CHECK-NEXT: }
func.func @ce(%x: tensor<32x100xf32>, %l: tensor<32xi64>) -> (tensor<f32>, tensor<32x100xf32>) {
  %loss, %lse = graph.cross_entropy %x, %l ignore -100 : (tensor<32x100xf32>, tensor<32xi64>) -> (tensor<32xf32>, tensor<32xf32>)
  %s = graph.reduce_sum %loss [0] : tensor<32xf32> -> tensor<f32>
  %c = graph.constant dense<0.03125> : tensor<32xf32>
  %g = graph.cross_entropy_grad %x, %l, %lse, %c ignore -100 : (tensor<32x100xf32>, tensor<32xi64>, tensor<32xf32>, tensor<32xf32>) -> tensor<32x100xf32>
  return %s, %g : tensor<f32>, tensor<32x100xf32>
}

// Batch norm, scale and activation reduce over every dimension but the channel; statistics stay in the group.
// CHECK-LABEL: func.func @bn(
// CHECK-NEXT: %[[V0:.*]]:2 = graph.group %arg0, %arg1 space [4, 8, 6, 6] reduced [0, 2, 3]
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[V1:.*]] = graph.reduce_sum %arg2 [0, 2, 3]
// CHECK-NEXT: %[[V2:.*]] = graph.constant dense<1.440000e+02>
// CHECK-NEXT: %[[V3:.*]] = graph.div %[[V1]], %[[V2]]
// CHECK-NEXT: %[[V4:.*]] = graph.broadcast %[[V3]] [1]
// CHECK-NEXT: %[[V5:.*]] = graph.sub %arg2, %[[V4]]
// CHECK-NEXT: %[[V6:.*]] = graph.mul %[[V5]], %[[V5]]
// CHECK-NEXT: %[[V7:.*]] = graph.reduce_sum %[[V6]] [0, 2, 3]
// CHECK-NEXT: %[[V8:.*]] = graph.div %[[V7]], %[[V2]]
// CHECK-NEXT: %[[V9:.*]] = graph.constant dense<9.99999974E-6>
// CHECK-NEXT: %[[V10:.*]] = graph.add %[[V8]], %[[V9]]
// CHECK-NEXT: %[[V11:.*]] = graph.rsqrt %[[V10]]
// CHECK-NEXT: %[[V12:.*]] = graph.broadcast %[[V11]] [1]
// CHECK-NEXT: %[[V13:.*]] = graph.mul %[[V5]], %[[V12]]
// CHECK-NEXT: %[[V14:.*]] = graph.broadcast %arg3 [1]
// CHECK-NEXT: %[[V15:.*]] = graph.mul %[[V13]], %[[V14]]
// CHECK-NEXT: %[[V16:.*]] = graph.relu %[[V15]]
// CHECK-NEXT: %[[V17:.*]] = graph.constant dense<0.899999976>
// CHECK-NEXT: %[[V18:.*]] = graph.mul %[[V3]], %[[V17]]
// CHECK-NEXT: graph.yield %[[V16]], %[[V18]]
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V0]]#0, %[[V0]]#1
// CHECK-NEXT: }
func.func @bn(%x: tensor<4x8x6x6xf32>, %g: tensor<8xf32>) -> (tensor<4x8x6x6xf32>, tensor<8xf32>) {
  %y, %m, %v = graph.batch_norm %x eps 1.0e-5 : (tensor<4x8x6x6xf32>) -> (tensor<4x8x6x6xf32>, tensor<8xf32>, tensor<8xf32>)
  %gb = graph.broadcast %g [1] : tensor<8xf32> -> tensor<4x8x6x6xf32>
  %z = graph.mul %y, %gb : tensor<4x8x6x6xf32>
  %r = graph.relu %z : tensor<4x8x6x6xf32>
  %c = graph.constant dense<0.9> : tensor<8xf32>
  %mm = graph.mul %m, %c : tensor<8xf32>
  return %r, %mm : tensor<4x8x6x6xf32>, tensor<8xf32>
}

// A statistic with a kept dimension of size 1 meets its row: unit dimensions are dropped, reshapes stay at the border.
// CHECK-LABEL: func.func @keepdims(
// CHECK-NEXT: %[[V0:.*]] = graph.reshape %arg0
// CHECK-NEXT: %[[V1:.*]] = graph.group %[[V0]] space [16, 64] reduced [1]
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[V3:.*]] = graph.reduce_sum %arg1 [1]
// CHECK-NEXT: %[[V4:.*]] = graph.constant dense<1.562500e-02>
// CHECK-NEXT: %[[V5:.*]] = graph.mul %[[V3]], %[[V4]]
// CHECK-NEXT: %[[V6:.*]] = graph.broadcast %[[V5]] [0]
// CHECK-NEXT: %[[V7:.*]] = graph.sub %arg1, %[[V6]]
// CHECK-NEXT: graph.yield %[[V7]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[V2:.*]] = graph.reshape %[[V1]]
// CHECK-NEXT: return %[[V2]]
// CHECK-NEXT: }
func.func @keepdims(%x: tensor<1x16x64xf32>) -> tensor<1x16x64xf32> {
  %m = graph.reduce_sum %x [2] : tensor<1x16x64xf32> -> tensor<1x16xf32>
  %mr = graph.reshape %m : tensor<1x16xf32> -> tensor<1x16x1xf32>
  %c = graph.constant dense<0.015625> : tensor<1x16x1xf32>
  %mean = graph.mul %mr, %c : tensor<1x16x1xf32>
  %b = graph.broadcast %mean [0, 1, 2] : tensor<1x16x1xf32> -> tensor<1x16x64xf32>
  %y = graph.sub %x, %b : tensor<1x16x64xf32>
  return %y : tensor<1x16x64xf32>
}

// Gradient of softmax: one reduction, used again by its own row.
// CHECK-LABEL: func.func @softmax_backward(
// CHECK-NEXT: %[[V0:.*]] = graph.group %arg0, %arg1 space [32, 100] reduced [1]
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[V1:.*]] = graph.mul %arg2, %arg3
// CHECK-NEXT: %[[V2:.*]] = graph.reduce_sum %[[V1]] [1]
// CHECK-NEXT: %[[V3:.*]] = graph.broadcast %[[V2]] [0]
// CHECK-NEXT: %[[V4:.*]] = graph.sub %arg3, %[[V3]]
// CHECK-NEXT: %[[V5:.*]] = graph.mul %arg2, %[[V4]]
// CHECK-NEXT: graph.yield %[[V5]]
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V0]]
// CHECK-NEXT: }
func.func @softmax_backward(%y: tensor<32x100xf32>, %dy: tensor<32x100xf32>) -> tensor<32x100xf32> {
  %p = graph.mul %y, %dy : tensor<32x100xf32>
  %s = graph.reduce_sum %p [1] : tensor<32x100xf32> -> tensor<32xf32>
  %sb = graph.broadcast %s [0] : tensor<32xf32> -> tensor<32x100xf32>
  %d = graph.sub %dy, %sb : tensor<32x100xf32>
  %r = graph.mul %y, %d : tensor<32x100xf32>
  return %r : tensor<32x100xf32>
}

// Optimizer arithmetic: one group per parameter, state read and written in order; the step size is a scalar group of its own.
// CHECK-LABEL: func.func @update(
// CHECK-NEXT: %[[V0:.*]] = graph.read @p
// CHECK-NEXT: %[[V1:.*]] = graph.read @m
// CHECK-NEXT: %[[V2:.*]] = graph.group %arg2, %arg1 space [] reduced []
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[V4:.*]] = graph.constant dense<0.899999976>
// CHECK-NEXT: %[[V5:.*]] = graph.pow %[[V4]], %arg3
// CHECK-NEXT: %[[V6:.*]] = graph.div %arg4, %[[V5]]
// CHECK-NEXT: graph.yield %[[V6]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[V3:.*]]:2 = graph.group %[[V1]], %arg0, %[[V2]], %[[V0]] space [64, 32] reduced []
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[V4:.*]] = graph.constant dense<0.899999976>
// CHECK-NEXT: %[[V5:.*]] = graph.mul %arg3, %[[V4]]
// CHECK-NEXT: %[[V6:.*]] = graph.constant dense<1.000000e-01>
// CHECK-NEXT: %[[V7:.*]] = graph.mul %arg4, %[[V6]]
// CHECK-NEXT: %[[V8:.*]] = graph.add %[[V5]], %[[V7]]
// CHECK-NEXT: %[[V9:.*]] = graph.broadcast %arg5 []
// CHECK-NEXT: %[[V10:.*]] = graph.mul %[[V8]], %[[V9]]
// CHECK-NEXT: %[[V11:.*]] = graph.sub %arg6, %[[V10]]
// CHECK-NEXT: graph.yield %[[V8]], %[[V11]]
// CHECK-NEXT: }
// CHECK-NEXT: graph.write @m, %[[V3]]#0
// CHECK-NEXT: graph.write @p, %[[V3]]#1
// CHECK-NEXT: return
// CHECK-NEXT: }
graph.variable @p : tensor<64x32xf32> {kind = #graph.variable_kind<parameter>}
graph.variable @m : tensor<64x32xf32> {kind = #graph.variable_kind<optimizer_state>, fill = 0.0}
func.func @update(%g: tensor<64x32xf32>, %lr: tensor<f32>, %t: tensor<f32>) {
  %p = graph.read @p : tensor<64x32xf32>
  %m = graph.read @m : tensor<64x32xf32>
  %b = graph.constant dense<0.9> : tensor<64x32xf32>
  %c = graph.constant dense<0.1> : tensor<64x32xf32>
  %b0 = graph.constant dense<0.9> : tensor<f32>
  %bt = graph.pow %b0, %t : tensor<f32>
  %step = graph.div %lr, %bt : tensor<f32>
  %m0 = graph.mul %m, %b : tensor<64x32xf32>
  %m1 = graph.mul %g, %c : tensor<64x32xf32>
  %mn = graph.add %m0, %m1 : tensor<64x32xf32>
  graph.write @m, %mn : tensor<64x32xf32>
  %sb = graph.broadcast %step [] : tensor<f32> -> tensor<64x32xf32>
  %d = graph.mul %mn, %sb : tensor<64x32xf32>
  %pn = graph.sub %p, %d : tensor<64x32xf32>
  graph.write @p, %pn : tensor<64x32xf32>
  return
}

// Near miss: exp and add have a product between them; one group would wait for itself.
// CHECK-LABEL: func.func @outside_path(
// CHECK-NEXT: %[[V0:.*]] = graph.group %arg0 space [8, 8] reduced []
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[V3:.*]] = graph.exp %arg2
// CHECK-NEXT: graph.yield %[[V3]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[V1:.*]] = graph.dot %[[V0]], %arg1
// CHECK-NEXT: %[[V2:.*]] = graph.group %[[V0]], %[[V1]] space [8, 8] reduced []
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[V3:.*]] = graph.add %arg2, %arg3
// CHECK-NEXT: graph.yield %[[V3]]
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V2]]
// CHECK-NEXT: }
func.func @outside_path(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = graph.exp %x : tensor<8x8xf32>
  %d = graph.dot %e, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %a = graph.add %e, %d : tensor<8x8xf32>
  return %a : tensor<8x8xf32>
}

// Near miss: row sums spread along rows are no statistic of their own row.
// CHECK-LABEL: func.func @transposed_statistic(
// CHECK-NEXT: %[[V0:.*]] = graph.group %arg0 space [8, 8] reduced [1]
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[V2:.*]] = graph.reduce_sum %arg1 [1]
// CHECK-NEXT: graph.yield %[[V2]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[V1:.*]] = graph.group %arg0, %[[V0]] space [8, 8] reduced []
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[V2:.*]] = graph.broadcast %arg2 [1]
// CHECK-NEXT: %[[V3:.*]] = graph.sub %arg1, %[[V2]]
// CHECK-NEXT: graph.yield %[[V3]]
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V1]]
// CHECK-NEXT: }
func.func @transposed_statistic(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %s = graph.reduce_sum %x [1] : tensor<8x8xf32> -> tensor<8xf32>
  %b = graph.broadcast %s [1] : tensor<8xf32> -> tensor<8x8xf32>
  %y = graph.sub %x, %b : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// Near miss: a tensor that a product reads is written row by row; its column sums stay apart.
// CHECK-LABEL: func.func @streaming(
// CHECK-NEXT: %[[V0:.*]] = graph.group %arg0, %arg1 space [8, 64] reduced []
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[V3:.*]] = graph.mul %arg3, %arg4
// CHECK-NEXT: graph.yield %[[V3]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[V1:.*]] = graph.group %[[V0]] space [8, 64] reduced [0]
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[V3:.*]] = graph.reduce_sum %arg3 [0]
// CHECK-NEXT: graph.yield %[[V3]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[V2:.*]] = graph.dot %[[V0]], %arg2
// CHECK-NEXT: return %[[V2]], %[[V1]]
// CHECK-NEXT: }
func.func @streaming(%x: tensor<8x64xf32>, %dy: tensor<8x64xf32>, %w: tensor<64x4xf32>) -> (tensor<8x4xf32>, tensor<64xf32>) {
  %g = graph.mul %x, %dy : tensor<8x64xf32>
  %s = graph.reduce_sum %g [0] : tensor<8x64xf32> -> tensor<64xf32>
  %z = graph.dot %g, %w : (tensor<8x64xf32>, tensor<64x4xf32>) -> tensor<8x4xf32>
  return %z, %s : tensor<8x4xf32>, tensor<64xf32>
}

// Near miss: fusing across the product would keep two operands alive to save one.
// CHECK-LABEL: func.func @held(
// CHECK-NEXT: %[[V0:.*]] = graph.dot %arg0, %arg1
// CHECK-NEXT: %[[V1:.*]] = graph.dot %arg1, %arg0
// CHECK-NEXT: %[[V2:.*]] = graph.group %[[V0]], %[[V1]] space [8, 8] reduced []
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[V5:.*]] = graph.add %arg2, %arg3
// CHECK-NEXT: graph.yield %[[V5]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[V3:.*]] = graph.dot %arg1, %arg1
// CHECK-NEXT: %[[V4:.*]] = graph.group %[[V2]], %[[V3]] space [8, 8] reduced []
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[V5:.*]] = graph.mul %arg2, %arg3
// CHECK-NEXT: graph.yield %[[V5]]
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V4]]
// CHECK-NEXT: }
func.func @held(%a: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %l = graph.dot %a, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = graph.dot %w, %a : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = graph.add %l, %r : tensor<8x8xf32>
  %z = graph.dot %w, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t = graph.mul %s, %z : tensor<8x8xf32>
  return %t : tensor<8x8xf32>
}

// One operand held, one result saved: the exponential moves behind the product.
// CHECK-LABEL: func.func @paid(
// CHECK-NEXT: %[[V0:.*]] = graph.dot %arg0, %arg1
// CHECK-NEXT: %[[V1:.*]] = graph.dot %arg1, %arg1
// CHECK-NEXT: %[[V2:.*]] = graph.group %[[V0]], %[[V1]] space [8, 8] reduced []
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[V3:.*]] = graph.exp %arg2
// CHECK-NEXT: %[[V4:.*]] = graph.mul %[[V3]], %arg3
// CHECK-NEXT: graph.yield %[[V4]]
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V2]]
// CHECK-NEXT: }
func.func @paid(%a: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %l = graph.dot %a, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = graph.exp %l : tensor<8x8xf32>
  %z = graph.dot %w, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t = graph.mul %s, %z : tensor<8x8xf32>
  return %t : tensor<8x8xf32>
}

// Index values that a library op reads get storage.
// CHECK-LABEL: func.func @indices(
// CHECK-NEXT: %[[V0:.*]] = graph.group  space [3] reduced []
// CHECK-NEXT: %[[V2:.*]] = graph.iota 0
// CHECK-NEXT: graph.yield %[[V2]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[V1:.*]] = graph.gather %arg0, %[[V0]] axis 0
// CHECK-NEXT: return %[[V1]]
// CHECK-NEXT: }
func.func @indices(%x: tensor<10x4xf32>) -> tensor<3x4xf32> {
  %i = graph.iota 0 : tensor<3xi64>
  %g = graph.gather %x, %i axis 0 : (tensor<10x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  return %g : tensor<3x4xf32>
}

