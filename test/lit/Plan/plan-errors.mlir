// Every invariant P1..P7 of dialects/Plan/README.md is reported by its label, at the op that breaks it.
// RUN: plimsoll-opt %s --split-input-file --verify-diagnostics

// P1: the arena exists.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  // expected-error @below {{P1: unknown arena @gone}}
  plan.buffer @w at @gone + 0 bytes 16 <parameter> from "w"
}

// -----

// P1: the range lies inside the arena.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  // expected-error @below {{P1: bytes [192, 320) leave the arena's 256}}
  plan.buffer @w at @device + 192 bytes 128 <parameter> from "w"
}

// -----

// P1: offsets are aligned.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  // expected-error @below {{P1: offset 32 is not a multiple of the arena's alignment 64}}
  plan.buffer @w at @device + 32 bytes 16 <parameter> from "w"
}

// -----

// P1 holds for transient buffers, too.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.entry @e inputs [] outputs [] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
    // expected-error @below {{P1: bytes [256, 272) leave the arena's 256}}
    plan.buffer @t at @device + 256 bytes 16 <activation> live 0 to 0 from "t"
  }
}

// -----

// P2: persistent buffers are disjoint.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.buffer @a at @device + 0 bytes 128 <parameter> from "a"
  // expected-error @below {{P2: overlaps a in bytes and time}}
  plan.buffer @b at @device + 64 bytes 16 <parameter> from "b"
}

// -----

// P2: nothing takes over a persistent buffer, not even for command 0 alone.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.buffer @w at @device + 0 bytes 64 <parameter> from "w"
  plan.entry @e inputs [] outputs [] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
    // expected-error @below {{P2: overlaps w in bytes and time}}
    plan.buffer @t at @device + 0 bytes 64 <activation> live 0 to 0 from "t"
  }
}

// -----

// P2: both live at command 1.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.entry @e inputs [] outputs [] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
    plan.buffer @a at @device + 0 bytes 64 <activation> live 0 to 2 from "a"
    // expected-error @below {{P2: overlaps a in bytes and time}}
    plan.buffer @b at @device + 0 bytes 64 <activation> live 1 to 3 from "b"
  }
}

// -----

// P2: a result may take over an operand only when both have the same bytes.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.entry @e inputs [] outputs [] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
    plan.buffer @a at @device + 0 bytes 64 <activation> live 0 to 1 from "a"
    // expected-error @below {{P2: overlaps a in bytes and time}}
    plan.buffer @b at @device + 0 bytes 128 <activation> live 1 to 3 from "b"
  }
}

// -----

// P2: two results of one command take over nothing from each other.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.entry @e inputs [] outputs [] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
    plan.buffer @a at @device + 0 bytes 64 <activation> live 1 to 1 from "a"
    // expected-error @below {{P2: overlaps a in bytes and time}}
    plan.buffer @b at @device + 0 bytes 64 <activation> live 1 to 1 from "b"
  }
}

// -----

// P2: scratch never takes over an operand.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.entry @e inputs [] outputs [] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
    plan.buffer @a at @device + 0 bytes 64 <activation> live 0 to 1 from "a"
    // expected-error @below {{P2: overlaps a in bytes and time}}
    plan.buffer @b at @device + 0 bytes 64 <workspace> live 1 to 1 from "b"
  }
}

// -----

// P2 allows: an input taken over at command 0, and bytes reused afterwards.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.entry @e inputs [#plan.port<"x" = <write @x + 0 : tensor<4xf32> strides [1]>>] outputs [] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
    plan.buffer @x at @device + 0 bytes 16 <input> live 0 to 0 from "x"
    plan.buffer @y at @device + 0 bytes 16 <activation> live 0 to 1 from "y"
    plan.buffer @z at @device + 0 bytes 16 <activation> live 2 to 2 from "z"
    plan.launch "k" [#plan.operand<read @x + 0 : tensor<4xf32> strides [1]>, #plan.operand<write @y + 0 : tensor<4xf32> strides [1]>] extent 1 grain 1 label "k"
    plan.launch "k" [#plan.operand<read @y + 0 : tensor<4xf32> strides [1]>] extent 1 grain 1 label "k"
    plan.launch "k" [#plan.operand<write @z + 0 : tensor<4xf32> strides [1]>] extent 1 grain 1 label "k"
  }
}

// -----

// P3: a transient buffer has a live range.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.entry @e inputs [] outputs [] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
    // expected-error @below {{P3: a transient buffer needs a live range first <= last}}
    plan.buffer @t at @device + 0 bytes 16 <activation> from "t"
  }
}

// -----

// P3: and it is not empty.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.entry @e inputs [] outputs [] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
    // expected-error @below {{P3: a transient buffer needs a live range first <= last}}
    plan.buffer @t at @device + 0 bytes 16 <activation> live 2 to 1 from "t"
  }
}

// -----

// P4: the buffer exists.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.entry @e inputs [] outputs [] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
    plan.buffer @t at @device + 0 bytes 16 <activation> live 0 to 0 from "t"
    // expected-error @below {{P4: unknown buffer @gone}}
    plan.launch "k" [#plan.operand<read @gone + 0 : tensor<4xf32> strides [1]>] extent 1 grain 1 label "k"
  }
}

// -----

// P4: one stride a dimension.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.entry @e inputs [] outputs [] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
    plan.buffer @t at @device + 0 bytes 16 <activation> live 0 to 0 from "t"
    // expected-error @below {{P4: expected one stride per dimension of 'tensor<4xf32>'}}
    plan.launch "k" [#plan.operand<read @t + 0 : tensor<4xf32> strides [4, 1]>] extent 1 grain 1 label "k"
  }
}

// -----

// P4: bytes 4 to 20 of 16.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.entry @e inputs [] outputs [] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
    plan.buffer @t at @device + 0 bytes 16 <activation> live 0 to 0 from "t"
    // expected-error @below {{P4: window leaves buffer @t of 16 bytes}}
    plan.launch "k" [#plan.operand<read @t + 4 : tensor<4xf32> strides [1]>] extent 1 grain 1 label "k"
  }
}

// -----

// P4: the last element lies at 3 + 1, byte 16.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.entry @e inputs [] outputs [] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
    plan.buffer @t at @device + 0 bytes 16 <activation> live 0 to 0 from "t"
    // expected-error @below {{P4: window leaves buffer @t of 16 bytes}}
    plan.launch "k" [#plan.operand<read @t + 0 : tensor<2x2xf32> strides [3, 1]>] extent 1 grain 1 label "k"
  }
}

// -----

// P4: an offset below 0 must not wrap around.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.entry @e inputs [] outputs [] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
    plan.buffer @t at @device + 0 bytes 16 <activation> live 0 to 0 from "t"
    // expected-error @below {{P4: window of @t has a negative offset or stride}}
    plan.launch "k" [#plan.operand<read @t + -4 : tensor<1xf32> strides [1]>] extent 1 grain 1 label "k"
  }
}

// -----

// P4: nor a stride.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.entry @e inputs [] outputs [] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
    plan.buffer @t at @device + 0 bytes 16 <activation> live 0 to 0 from "t"
    // expected-error @below {{P4: window of @t has a negative offset or stride}}
    plan.launch "k" [#plan.operand<read @t + 12 : tensor<4xf32> strides [-1]>] extent 1 grain 1 label "k"
  }
}

// -----

// P4 holds for copies.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.entry @e inputs [] outputs [] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
    plan.buffer @t at @device + 0 bytes 16 <activation> live 0 to 0 from "t"
    // expected-error @below {{P4: window leaves buffer @t of 16 bytes}}
    plan.copy <read @t + 0 : tensor<4xf32> strides [1]> to <write @t + 4 : tensor<4xf32> strides [1]> label "c"
  }
}

// -----

// P4 holds for ports.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  // expected-error @below {{P4: unknown buffer @gone}}
  plan.entry @e inputs [] outputs [#plan.port<"y" = <read @gone + 0 : tensor<f32> strides []>>] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
  }
}

// -----

// P5: used before it lives.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.entry @e inputs [] outputs [] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
    plan.buffer @t at @device + 0 bytes 16 <activation> live 1 to 1 from "t"
    // expected-error @below {{P5: command 0 uses @t outside its live range}}
    plan.launch "k" [#plan.operand<write @t + 0 : tensor<4xf32> strides [1]>] extent 1 grain 1 label "k"
    plan.launch "k" [#plan.operand<read @t + 0 : tensor<4xf32> strides [1]>] extent 1 grain 1 label "k"
  }
}

// -----

// P5: used after it died.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.entry @e inputs [] outputs [] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
    plan.buffer @t at @device + 0 bytes 16 <activation> live 0 to 0 from "t"
    plan.launch "k" [#plan.operand<write @t + 0 : tensor<4xf32> strides [1]>] extent 1 grain 1 label "k"
    // expected-error @below {{P5: command 1 uses @t outside its live range}}
    plan.launch "k" [#plan.operand<read @t + 0 : tensor<4xf32> strides [1]>] extent 1 grain 1 label "k"
  }
}

// -----

// P6: recorded first.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.entry @e inputs [] outputs [] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
    // expected-error @below {{P6: event 0 is waited for before it is recorded}}
    plan.wait 0
    plan.record 0
  }
}

// -----

// P7: no such operand.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.entry @e inputs [] outputs [] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
    plan.buffer @t at @device + 0 bytes 16 <activation> live 0 to 0 from "t"
    // expected-error @below {{P7: workspace index 1 is neither an operand nor -1}}
    plan.call "c" [#plan.operand<write @t + 0 : tensor<4xf32> strides [1]>] {} workspace 1 label "c"
  }
}

// -----

// P7: -1 alone means none.
plan.program @p {
  plan.arena @device {tier = #plan.tier<device>, bytes = 256 : i64, alignment = 64 : i64}
  plan.entry @e inputs [] outputs [] attributes {peak_bytes = 0 : i64, peak_command = 0 : i64, live_bytes = 0 : i64} {
    plan.buffer @t at @device + 0 bytes 16 <activation> live 0 to 0 from "t"
    // expected-error @below {{P7: workspace index -2 is neither an operand nor -1}}
    plan.call "c" [#plan.operand<write @t + 0 : tensor<4xf32> strides [1]>] {} workspace -2 label "c"
  }
}

// -----

// Commands live in entries.
// expected-error @below {{'plan.record' op expects parent op 'plan.entry'}}
plan.record 0
