//===- GraphInterfaces.td - what passes may ask of a graph op -----------------===//
// Each interface states its contract in full: what an answer promises, and what to answer when unknown.
//===--------------------------------------------------------------------------===//
#ifndef PLIMSOLL_GRAPH_INTERFACES
#define PLIMSOLL_GRAPH_INTERFACES

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::plimsoll::graph";
  let description = [{
    The op has an adjoint (vector-Jacobian product). An op without this interface stops the gradient only if all its
    results are integer or boolean; otherwise Autodiff reports it as a missing gradient.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds the cotangents of the operands at `adjoint.builder`'s insertion point. `adjoint.cotangents` has one value
      per result, null meaning zero. Returns one value per operand of the operand's exact type, null meaning zero;
      operands with `adjoint.wanted[i] == false` may be left null. Only forward values listed by adjointUses() may be
      read. Must be deterministic and must emit graph ops only.
    }], "::llvm::SmallVector<::mlir::Value>", "buildAdjoint", (ins "::plimsoll::graph::Adjoint &":$adjoint)>,
    InterfaceMethod<[{
      Which forward operands and results buildAdjoint reads when every operand is wanted: what liveness has to keep.
    }], "::plimsoll::graph::AdjointUses", "adjointUses", (ins)>,
  ];
}

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::plimsoll::graph";
  let description = [{
    Work of one execution. flops counts a multiply-add as 2 and a transcendental as 1; bytes count every operand and
    result once. The default answer is one flop per result element.
  }];
  let methods = [
    InterfaceMethod<"Cost of one execution of this op.", "::plimsoll::graph::OpCost", "cost", (ins), "",
      "return ::plimsoll::graph::elementwiseCost($_op);">,
  ];
}

def RecomputableOpInterface : OpInterface<"RecomputableOpInterface"> {
  let cppNamespace = "::plimsoll::graph";
  let description = [{
    True means: running the op again on the same operands gives the same bits and no other effect. The planner never
    duplicates an op that answers false or lacks the interface.
  }];
  let methods = [
    InterfaceMethod<"Whether the op may be executed more than once.", "bool", "isRecomputable", (ins), "", "return true;">,
  ];
}

def InPlaceOpInterface : OpInterface<"InPlaceOpInterface"> {
  let cppNamespace = "::plimsoll::graph";
  let description = [{
    Lists operands whose storage a result may take over: element i of the result is written only after element i of
    the operand was read for the last time, at the same byte offset. The planner decides whether the operand is dead.
  }];
  let methods = [
    InterfaceMethod<"Operand numbers whose storage result number `result` may take over.",
      "::llvm::SmallVector<unsigned>", "inPlaceOperands", (ins "unsigned":$result), "",
      "return ::plimsoll::graph::elementwiseInPlaceOperands($_op, result);">,
  ];
}

def PrecisionOpInterface : OpInterface<"PrecisionOpInterface"> {
  let cppNamespace = "::plimsoll::graph";
  let description = [{
    How the op stands half precision: HalfSafe ops run in the compute type, KeepFp32 ops are islands, FollowInputs ops
    take whatever their inputs have. The default is FollowInputs.
  }];
  let methods = [
    InterfaceMethod<"Precision class of this op.", "::plimsoll::graph::PrecisionClass", "precisionClass", (ins), "",
      "return ::plimsoll::graph::PrecisionClass::FollowInputs;">,
  ];
}

def DecomposableOpInterface : OpInterface<"DecomposableOpInterface"> {
  let cppNamespace = "::plimsoll::graph";
  let description = [{
    A whole op (softmax, layer_norm, gelu, ...) that code generation may expand into elementwise, broadcast and reduce
    ops inside a kernel group. The expansion defines the generated kernel; lib/Reference computes the op directly, so
    the two check each other.
  }];
  let methods = [
    InterfaceMethod<"Emits the expansion at the builder and returns one value per result.",
      "::llvm::SmallVector<::mlir::Value>", "decompose", (ins "::mlir::OpBuilder &":$builder)>,
  ];
}

#endif
