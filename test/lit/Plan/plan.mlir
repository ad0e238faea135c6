// Every op and attribute of the plan dialect, printed and parsed again. The plan is a real one in small: a persistent weight, an
// input staged before command 0, a result that takes over its operand's bytes, scratch, a copy to the host and an event.
// RUN: plimsoll-opt %s | plimsoll-opt | FileCheck %s
// RUN: plimsoll-opt %s --emit-bytecode | plimsoll-opt | FileCheck %s

// CHECK: plan.program @default {
plan.program @default {
  // CHECK-NEXT: plan.arena @device {alignment = 64 : i64, bytes = 256 : i64, tier = #plan.tier<device>}
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  // CHECK-NEXT: plan.arena @host {alignment = 64 : i64, bytes = 64 : i64, device = 1 : i64, tier = #plan.tier<host>}
  plan.arena @host {tier = #plan.tier<host>, bytes = 64 : i64, alignment = 64 : i64, device = 1 : i64}
  // CHECK-NEXT: plan.buffer @w at @device + 0 bytes 16 <parameter> from "layer.weight"
  plan.buffer @w at @device + 0 bytes 16 <parameter> from "layer.weight"
  // CHECK-NEXT: plan.variable @w : tensor<4xf32> "parameter" {aliases = ["head.weight"], fill = 1.000000e+00 : f64, owner = "w", trainable = true}
  plan.variable @w : tensor<4xf32> "parameter" {trainable = true, fill = 1.0 : f64, aliases = ["head.weight"], owner = "w"}
  // CHECK-NEXT: plan.entry @train_step inputs [#plan.port<"x" = <write @x + 0 : tensor<4xf32> strides[1]>>] outputs [#plan.port<"y" = <read @y + 0 : tensor<2x2xf32> strides[2, 1]>>]
  // CHECK-SAME: attributes {events = 1 : i64, live_bytes = 192 : i64, peak_bytes = 256 : i64, peak_command = 1 : i64, streams = 2 : i64} {
  plan.entry @train_step inputs [#plan.port<"x" = <write @x + 0 : tensor<4xf32> strides [1]>>]
      outputs [#plan.port<"y" = <read @y + 0 : tensor<2x2xf32> strides [2, 1]>>]
      attributes {peak_bytes = 256 : i64, peak_command = 1 : i64, live_bytes = 192 : i64, streams = 2 : i64, events = 1 : i64} {
    // CHECK-NEXT: plan.buffer @x at @device + 64 bytes 16 <input> live 0 to 0 from "x"
    plan.buffer @x at @device + 64 bytes 16 <input> live 0 to 0 from "x"
    // CHECK-NEXT: plan.buffer @y at @device + 64 bytes 16 <activation> live 0 to 4 from "add"
    plan.buffer @y at @device + 64 bytes 16 <activation> live 0 to 4 from "add"
    plan.buffer @scratch at @device + 128 bytes 64 <workspace> live 1 to 1 from "dot"
    plan.buffer @h at @host + 0 bytes 16 <activation> live 2 to 4 from "add"
    // CHECK: plan.launch "k0" [#plan.operand<read @w + 0 : tensor<4xf32> strides[1]>, #plan.operand<read @x + 0 : tensor<4xf32> strides[1]>, #plan.operand<write @y + 0 : tensor<4xf32> strides[1]>] extent 4 grain 2 label "add"
    plan.launch "k0" [#plan.operand<read @w + 0 : tensor<4xf32> strides [1]>, #plan.operand<read @x + 0 : tensor<4xf32> strides [1]>,
                      #plan.operand<write @y + 0 : tensor<4xf32> strides [1]>] extent 4 grain 2 label "add"
    // CHECK-NEXT: plan.call "dot" [#plan.operand<readwrite @w + 4 : tensor<f32> strides[]>, #plan.operand<read @y + 0 : tensor<2x2xf32> strides[1, 2]>, #plan.operand<write @scratch + 0 : tensor<64xui8> strides[1]>] {alpha = 1.000000e+00 : f64} workspace 2 label "dot" {stream = 1 : i64}
    plan.call "dot" [#plan.operand<readwrite @w + 4 : tensor<f32> strides []>, #plan.operand<read @y + 0 : tensor<2x2xf32> strides [1, 2]>,
                     #plan.operand<write @scratch + 0 : tensor<64xui8> strides [1]>] {alpha = 1.0 : f64} workspace 2 label "dot" {stream = 1 : i64}
    // CHECK-NEXT: plan.copy <read @y + 0 : tensor<4xf32> strides[1]> to <write @h + 0 : tensor<4xf32> strides[1]> label "offload"
    plan.copy <read @y + 0 : tensor<4xf32> strides [1]> to <write @h + 0 : tensor<4xf32> strides [1]> label "offload"
    // CHECK-NEXT: plan.record 0 {stream = 1 : i64}
    plan.record 0 {stream = 1 : i64}
    // CHECK-NEXT: plan.wait 0
    plan.wait 0
  }
}
