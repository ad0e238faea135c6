//===- Passes.td - the compiler's passes, in pipeline order --------------------===//
// Description template: Changes. Requires. Guarantees. Assumes. Explains (remarks). Example.
//===---------------------------------------------------------------------------===//
#ifndef PLIMSOLL_PASSES
#define PLIMSOLL_PASSES

include "mlir/Pass/PassBase.td"

def PlimsollRecognize : Pass<"plimsoll-recognize", "::mlir::ModuleOp"> {
  let summary = "find whole ops that an exporter wrote out";
  let description = [{
    Changes: softmax attention (with its masks, repeated heads and NaN guard), RMSNorm, LayerNorm, GELU, SiLU, log-softmax and
    cross-entropy that were written with small ops become the whole ops; equal ops become one. Requires: nothing. Guarantees: the
    same function up to rounding, except that an attention row with every key masked gives 0; every gradient that existed still
    does. Assumes: added masks at or below -9999 mean "masked". Example: test/lit/Frontend/recognize-attention.mlir.
  }];
}

def PlimsollChunk : Pass<"plimsoll-chunk", "::mlir::func::FuncOp"> {
  let summary = "compute losses over a vocabulary in pieces of the tokens";
  let description = [{
    Changes: cross_entropy over a matrix product, through bias, scale, casts and shifts of positions, becomes `count` products and
    losses over slices of the tokens, whose results are concatenated. Requires: a forward function. Guarantees: the same numbers up
    to rounding of sums over tokens; the logits are never needed in full by the loss. Assumes: --plimsoll-interleave runs after
    differentiation. Explains (remarks): losses that stay whole. Example: test/lit/Passes/chunk.mlir.
  }];
  let options = [Option<"count", "count", "int64_t", "1", "pieces; 1 = none">];
}

def PlimsollAutodiff : Pass<"plimsoll-autodiff", "::mlir::ModuleOp"> {
  let summary = "append the gradient of the loss in every trainable parameter to a function's results";
  let description = [{
    Changes: functions with a result of `graph.role = "loss"` get one more result per trainable parameter they read, named
    `grad.<variable>`, in order of first read; a parameter read several times has one gradient. Requires: forward functions of
    one block. Guarantees: only ops on paths from a parameter to the loss are emitted; their locations are the forward op's,
    fused with the tag "gradient". Assumes: writes come after the reads they could change. Explains (remarks): parameters
    without a gradient path. Example: test/lit/Passes/autodiff.mlir.
  }];
}

def PlimsollTrainingStep : Pass<"plimsoll-training-step", "::mlir::ModuleOp"> {
  let summary = "turn @forward into the entries of a training binary";
  let description = [{
    Changes: replaces @forward by train_step (or accumulate and apply), eval_step and forward, and adds optimizer variables.
    Requires: one result with graph.role "loss" and one with "weight". Guarantees: every state write happens once per entry and
    comes after every read. Assumes: writes of the forward function (running statistics) happen once per micro-batch.
    Example: test/lit/Passes/training-step.mlir.
  }];
  let options = [
    Option<"optimizer", "optimizer", "std::string", "\"adamw\"", "sgd, adam or adamw">,
    Option<"momentum", "momentum", "double", "0.0", "sgd momentum">,
    Option<"nesterov", "nesterov", "bool", "false", "sgd with Nesterov momentum">,
    Option<"weightDecay", "weight-decay", "double", "0.0", "weight decay">,
    Option<"clipNorm", "clip-norm", "double", "0.0", "global-norm clipping, 0 = none">,
    Option<"accumulation", "accumulation", "int64_t", "1", "micro-batches per update">,
    ListOption<"noDecay", "no-decay", "std::string", "patterns of parameters without weight decay">,
  ];
}

def PlimsollInterleave : Pass<"plimsoll-interleave", "::mlir::func::FuncOp"> {
  let summary = "run each piece of a chunked loss forward right before its backward";
  let description = [{
    Changes: order of the ops of chunked losses; sums of zero-padded pieces that lie side by side become concatenations.
    Requires: differentiated functions in which state is read before it is written. Guarantees: at most one piece's logits or their
    gradient are needed at a time. Assumes: pure ops commute. Explains (remarks): losses whose incoming gradient depends on
    losses, which keep their order. Example: test/lit/Passes/interleave.mlir.
  }];
}

def PlimsollEvalMode : Pass<"plimsoll-eval-mode", "::mlir::func::FuncOp"> {
  let summary = "evaluation mode: no dropout, running statistics, no state written";
  let description = [{
    Changes: dropout becomes its operand, batch_norm normalises with its running statistics, writes and what only they needed go.
    Requires: batch_norm ops name their statistics. Guarantees: no random op, no write. Assumes: nothing.
  }];
}

def PlimsollFuse : Pass<"plimsoll-fuse", "::mlir::func::FuncOp"> {
  let summary = "form kernel groups";
  let description = [{
    Changes: expands whole ops, drops size-1 dimensions of elementwise and reduce ops, and moves every elementwise and reduce op into
    a graph.group; broadcasts, splat constants and index values are cloned into each group that reads them. Reorders ops.
    Requires: single-block functions (run after differentiation and optimizer expansion). Guarantees: every op outside groups is a
    view, a library op, a read or write, a constant, or the terminator; a group has at most 32 operands, or is a single op; state is read and
    written in the order it was. Assumes: pure ops commute. Storage: a merge never makes more bytes live across a library op than it
    saves; cheap values are recomputed where what they are made of is live anyway.
    Explains (remarks): nothing. Example: test/lit/Passes/fusion.mlir.
  }];
}

def PlimsollMaterialize : Pass<"plimsoll-materialize", "::mlir::func::FuncOp"> {
  let summary = "insert copies where a consumer cannot take a strided view";
  let description = [{
    Changes: inserts graph.copy. Requires: nothing. Guarantees: every view resolves to a strided window, and every operand's
    window is one its consumer takes. Assumes: kernel groups and copies take any window.
  }];
}

def PlimsollSchedule : Pass<"plimsoll-schedule", "::mlir::func::FuncOp"> {
  let summary = "run each state update as soon as its gradient exists and nothing reads the old value any more";
  let description = [{
    Changes: order of ops only. Requires: fused functions. Guarantees: the order is topological; a write comes after every use of
    the value it replaces. Assumes: pure ops commute. A gradient then dies with its update.
  }];
}

#endif
