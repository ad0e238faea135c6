//===- PlanOps.td - operations of the plan dialect ------------------------------===//
// Invariants P1..Pn are listed in README.md; PlanVerify.cpp reports them by label.
//===----------------------------------------------------------------------------===//
#ifndef PLIMSOLL_PLAN_OPS
#define PLIMSOLL_PLAN_OPS

include "dialects/Plan/PlanBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/BuiltinAttributes.td"

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;

def ProgramOp : Plan_Op<"program", [Symbol, SymbolTable, IsolatedFromAbove, NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "one sealed plan: arenas, persistent buffers, kernels and entries";
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def ArenaOp : Plan_Op<"arena", [Symbol]> {
  let summary = "one allocation made at load";
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_TierAttr:$tier, I64Attr:$bytes, I64Attr:$alignment,
                       DefaultValuedAttr<I64Attr, "0">:$device);
  let assemblyFormat = "$sym_name attr-dict";
}

def BufferOp : Plan_Op<"buffer", [Symbol]> {
  let summary = "byte range of an arena";
  let description = [{
    Directly in a program: persistent, lives for the whole session. In an entry: live from command `first` to command `last`,
    both inclusive. `source` names the model node or parameter it comes from.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$arena, I64Attr:$offset, I64Attr:$bytes,
                       Plan_BufferClassAttr:$klass, OptionalAttr<I64Attr>:$first, OptionalAttr<I64Attr>:$last, StrAttr:$source);
  let assemblyFormat = "$sym_name `at` $arena `+` $offset `bytes` $bytes $klass (`live` $first^ `to` $last)? `from` $source attr-dict";
}

def VariableOp : Plan_Op<"variable"> {
  let summary = "state that survives a step, held by the persistent buffer of the same name";
  let arguments = (ins FlatSymbolRefAttr:$buffer, TypeAttr:$type, StrAttr:$kind, BoolAttr:$trainable, OptionalAttr<F64Attr>:$fill,
                       OptionalAttr<StrArrayAttr>:$aliases, OptionalAttr<StrAttr>:$owner);
  let assemblyFormat = "$buffer `:` $type $kind attr-dict";
}

def EntryOp : Plan_Op<"entry", [Symbol, SymbolTable, NoTerminator, SingleBlock, NoRegionArguments, HasParent<"ProgramOp">]> {
  let summary = "one program: its boundary, transient buffers and commands in order";
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_PortArray:$inputs, Plan_PortArray:$outputs, I64Attr:$peak_bytes,
                       I64Attr:$peak_command, I64Attr:$live_bytes, DefaultValuedAttr<I64Attr, "1">:$streams,
                       DefaultValuedAttr<I64Attr, "0">:$events);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `inputs` $inputs `outputs` $outputs attr-dict-with-keyword $body";
}

class Plan_Command<string mnemonic, list<Trait> traits = []> : Plan_Op<mnemonic, !listconcat([HasParent<"EntryOp">], traits)>;

def LaunchOp : Plan_Command<"launch"> {
  let summary = "run a generated kernel over [0, extent) in chunks that are multiples of grain";
  let arguments = (ins StrAttr:$kernel, Plan_OperandArray:$arguments, I64Attr:$extent, I64Attr:$grain,
                       DefaultValuedAttr<I64Attr, "0">:$stream, StrAttr:$label);
  let assemblyFormat = "$kernel $arguments `extent` $extent `grain` $grain `label` $label attr-dict";
}
def CallOp : Plan_Command<"call"> {
  let summary = "run a library operation (docs/Artifact.md lists them)";
  let arguments = (ins StrAttr:$callee, Plan_OperandArray:$arguments, DictionaryAttr:$parameters, I64Attr:$workspace,
                       DefaultValuedAttr<I64Attr, "0">:$stream, StrAttr:$label);
  let assemblyFormat = "$callee $arguments $parameters `workspace` $workspace `label` $label attr-dict";
}
def CopyOp : Plan_Command<"copy"> {
  let summary = "move bytes between tiers or within one; both views are contiguous and equally large";
  let arguments = (ins Plan_OperandAttr:$source, Plan_OperandAttr:$target, DefaultValuedAttr<I64Attr, "0">:$stream, StrAttr:$label);
  let assemblyFormat = "$source `to` $target `label` $label attr-dict";
}
def RecordOp : Plan_Command<"record"> {
  let summary = "mark a point of a stream";
  let arguments = (ins I64Attr:$event, DefaultValuedAttr<I64Attr, "0">:$stream);
  let assemblyFormat = "$event attr-dict";
}
def WaitOp : Plan_Command<"wait"> {
  let summary = "hold a stream until a recorded point is reached";
  let arguments = (ins I64Attr:$event, DefaultValuedAttr<I64Attr, "0">:$stream);
  let assemblyFormat = "$event attr-dict";
}

#endif
