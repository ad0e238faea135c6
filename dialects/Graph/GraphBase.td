//===- GraphBase.td - the graph dialect, its types and attributes -----------===//
// The graph dialect holds a training step as differentiable tensor operations: values, no addresses.
//===------------------------------------------------------------------------===//
#ifndef PLIMSOLL_GRAPH_BASE
#define PLIMSOLL_GRAPH_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"

def Graph_Dialect : Dialect {
  let name = "graph";
  let cppNamespace = "::plimsoll::graph";
  let summary = "a training step as differentiable tensor operations";
  let description = [{
    Neighbours: `lib/Frontend` produces it, `lib/Passes` differentiates, fuses and orders it, `lib/Passes/LowerToPlan`
    turns it into the plan dialect. In: a model's forward function with state as `graph.variable`s. Out: entry
    functions (`train_step`, `eval_step`, ...) made of kernel groups, library operations and views.

    ```mlir
    graph.variable @w : tensor<4x3xf32> {kind = #graph.variable_kind<parameter>}     // 48 bytes, persistent
    func.func @forward(%x: tensor<2x4xf32> {graph.name = "x"}) -> (tensor<2x3xf32> {graph.name = "y"}) {
      %w = graph.read @w : tensor<4x3xf32>
      %y = graph.dot %x, %w : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>  // 24 bytes
      %r = graph.relu %y : tensor<2x3xf32>
      return %r : tensor<2x3xf32>
    }
    ```
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
}

// Every shape is static: dims are bound at import (docs/decisions/0002-bind-at-import.md).
def Graph_Float : AnyTypeOf<[F16, BF16, F32, F64]>;
def Graph_Element : AnyTypeOf<[F16, BF16, F32, F64, I1, I8, UI8, I16, I32, I64]>;
def Graph_Tensor : StaticShapeTensorOf<[Graph_Element]>;
def Graph_FloatTensor : StaticShapeTensorOf<[Graph_Float]>;
def Graph_IntTensor : StaticShapeTensorOf<[I32, I64]>;
def Graph_BoolTensor : StaticShapeTensorOf<[I1]>;
def Graph_LabelTensor : StaticShapeTensorOf<[I32, I64]>;

def Graph_Direction : I32EnumAttr<"CompareDirection", "how two elements are compared", [
    I32EnumAttrCase<"EQ", 0, "eq">, I32EnumAttrCase<"NE", 1, "ne">, I32EnumAttrCase<"LT", 2, "lt">,
    I32EnumAttrCase<"LE", 3, "le">, I32EnumAttrCase<"GT", 4, "gt">, I32EnumAttrCase<"GE", 5, "ge">]> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::plimsoll::graph";
}
def Graph_DirectionAttr : EnumAttr<Graph_Dialect, Graph_Direction, "direction"> { let assemblyFormat = "`<` $value `>`"; }

def Graph_VariableKind : I32EnumAttr<"VariableKind", "what a variable holds", [
    I32EnumAttrCase<"Parameter", 0, "parameter">, I32EnumAttrCase<"OptimizerState", 1, "optimizer_state">,
    I32EnumAttrCase<"ModelState", 2, "model_state">, I32EnumAttrCase<"StepState", 3, "step_state">,
    I32EnumAttrCase<"GradientAccumulator", 4, "gradient_accumulator">, I32EnumAttrCase<"Constant", 5, "constant">]> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::plimsoll::graph";
}
def Graph_VariableKindAttr : EnumAttr<Graph_Dialect, Graph_VariableKind, "variable_kind"> { let assemblyFormat = "`<` $value `>`"; }

#endif
