//===- PlanBase.td - the plan dialect, its attributes ---------------------------===//
// The plan dialect is the memory-planned step: arenas, buffers with offsets, and commands in order. No values, only bytes.
//===----------------------------------------------------------------------------===//
#ifndef PLIMSOLL_PLAN_BASE
#define PLIMSOLL_PLAN_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::plimsoll::plan";
  let summary = "a memory-planned training step: where every byte lives and what runs when";
  let description = [{
    Neighbours: `lib/Passes/LowerToPlan` alone produces it from the graph dialect, `lib/Emit` alone consumes it. It mirrors the
    artifact (docs/Artifact.md): one `plan.program` is one sealed plan. Offsets and sizes are bytes, command numbers count
    the commands of an entry from 0, live ranges are inclusive.

    ```mlir
    plan.program @default {
      plan.arena @device {tier = #plan.tier<device>, bytes = 1024 : i64, alignment = 64 : i64}
      plan.buffer @w {arena = @device, offset = 0, bytes = 48, ...}                    // persistent: 48 bytes at 0
      plan.entry @train_step {...} {
        plan.buffer @t0 {arena = @device, offset = 64, bytes = 24, first = 0, last = 1, ...}
        plan.call "dot" [#plan.operand<read @x + 0 : tensor<2x4xf32> strides [4, 1]>, ...]
        plan.launch @k0 [...] {extent = 6, grain = 1}
      }
    }
    ```
  }];
  let useDefaultAttributePrinterParser = 1;
}

class Plan_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::plimsoll::plan";
}
// Values equal those of the artifact schema (runtime/Artifact/Artifact.fbs).
def Plan_Tier : Plan_Enum<"Tier", "where an arena lives", [
    I32EnumAttrCase<"Device", 0, "device">, I32EnumAttrCase<"Host", 1, "host">, I32EnumAttrCase<"Disk", 2, "disk">]>;
def Plan_BufferClass : Plan_Enum<"BufferClass", "what a buffer holds", [
    I32EnumAttrCase<"Parameter", 0, "parameter">, I32EnumAttrCase<"Gradient", 1, "gradient">,
    I32EnumAttrCase<"OptimizerState", 2, "optimizer_state">, I32EnumAttrCase<"ModelState", 3, "model_state">,
    I32EnumAttrCase<"StepState", 4, "step_state">, I32EnumAttrCase<"Activation", 5, "activation">,
    I32EnumAttrCase<"Workspace", 6, "workspace">, I32EnumAttrCase<"Input", 7, "input">,
    I32EnumAttrCase<"Output", 8, "output">, I32EnumAttrCase<"Constant", 9, "constant">]>;
def Plan_Access : Plan_Enum<"Access", "what a command does to an operand", [
    I32EnumAttrCase<"Read", 1, "read">, I32EnumAttrCase<"Write", 2, "write">, I32EnumAttrCase<"ReadWrite", 3, "readwrite">]>;

def Plan_TierAttr : EnumAttr<Plan_Dialect, Plan_Tier, "tier"> { let assemblyFormat = "`<` $value `>`"; }
def Plan_BufferClassAttr : EnumAttr<Plan_Dialect, Plan_BufferClass, "class"> { let assemblyFormat = "`<` $value `>`"; }

def Plan_OperandAttr : AttrDef<Plan_Dialect, "Operand"> {
  let mnemonic = "operand";
  let summary = "strided window of a buffer and how a command uses it: offset in bytes, strides in elements (0 = broadcast)";
  let parameters = (ins EnumParameter<Plan_Access>:$access, "::mlir::FlatSymbolRefAttr":$buffer, "int64_t":$offset,
                        "::mlir::RankedTensorType":$type, OptionalArrayRefParameter<"int64_t">:$strides);
  let assemblyFormat = "`<` $access $buffer `+` $offset `:` $type `strides` `[` (`]`) : ($strides^ `]`)? `>`";
}
def Plan_OperandArray : TypedArrayAttrBase<Plan_OperandAttr, "operands of a command">;

def Plan_PortAttr : AttrDef<Plan_Dialect, "Port"> {
  let mnemonic = "port";
  let summary = "named tensor at the boundary of an entry";
  let parameters = (ins "::mlir::StringAttr":$name, "::plimsoll::plan::OperandAttr":$view);
  let assemblyFormat = "`<` $name `=` $view `>`";
}
def Plan_PortArray : TypedArrayAttrBase<Plan_PortAttr, "ports of an entry">;

#endif
