//===- GraphOps.td - operations of the graph dialect ----------------------------===//
// Order: state, constants, elementwise, shape (views), data movement, reductions, linear algebra, pooling, whole ops,
// kernel groups. Rules are labelled G1..Gn; GraphVerify.cpp reports them by label and test/lit/Graph has a case for each.
//===----------------------------------------------------------------------------===//
#ifndef PLIMSOLL_GRAPH_OPS
#define PLIMSOLL_GRAPH_OPS

include "dialects/Graph/GraphBase.td"
include "dialects/Graph/GraphInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"

class Graph_Op<string mnemonic, list<Trait> traits = []> : Op<Graph_Dialect, mnemonic, traits>;

defvar Differentiable = DeclareOpInterfaceMethods<DifferentiableOpInterface>;
defvar Cost = CostOpInterface;
defvar OwnCost = DeclareOpInterfaceMethods<CostOpInterface, ["cost"]>;
defvar Recomputable = RecomputableOpInterface;
defvar InPlace = InPlaceOpInterface;
defvar Precision = PrecisionOpInterface;
defvar OwnPrecision = DeclareOpInterfaceMethods<PrecisionOpInterface, ["precisionClass"]>;
defvar Decomposable = DeclareOpInterfaceMethods<DecomposableOpInterface>;

/// Marks ops that compute each result element from the same element of the operands.
def Graph_Elementwise : NativeOpTrait<"GraphElementwise"> { let cppNamespace = "::plimsoll::graph"; }
/// Marks ops that only rename elements of their operand (no data moves when the consumer takes strides).
def Graph_View : NativeOpTrait<"GraphView"> { let cppNamespace = "::plimsoll::graph"; }
/// Marks ops executed as one call of the runtime's kernel library.
def Graph_Library : NativeOpTrait<"GraphLibrary"> { let cppNamespace = "::plimsoll::graph"; }

//===----------------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------------===//

def VariableOp : Graph_Op<"variable", [Symbol]> {
  let summary = "state that survives a step";
  let description = [{
    A parameter, optimizer slot, running statistic, counter or model constant. Tied weights are one variable with
    `aliases`. Without `fill` the initial value comes from the model (WeightStore, keyed by the symbol name); with `fill` every
    element starts as that number, with `value` as that tensor. `owner` names the parameter an optimizer slot belongs to.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type, Graph_VariableKindAttr:$kind,
                       DefaultValuedAttr<BoolAttr, "true">:$trainable, OptionalAttr<F64Attr>:$fill,
                       OptionalAttr<StrArrayAttr>:$aliases, OptionalAttr<FlatSymbolRefAttr>:$owner,
                       OptionalAttr<ElementsAttr>:$value);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::RankedTensorType":$type, "VariableKind":$kind), [{
    build($_builder, $_state, $_builder.getStringAttr(name), ::mlir::TypeAttr::get(type), VariableKindAttr::get($_builder.getContext(), kind),
          $_builder.getBoolAttr(kind == VariableKind::Parameter), {}, {}, {}, {});
  }]>];
  let assemblyFormat = "$sym_name `:` $type attr-dict";
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() { return ::mlir::cast<::mlir::RankedTensorType>(getType()); }
  }];
  let hasVerifier = 1;
}

def ReadOp : Graph_Op<"read", [DeclareOpInterfaceMethods<SymbolUserOpInterface>, MemoryEffects<[MemRead]>]> {
  let summary = "value of a variable at this point of the step";
  let description = [{ Rule G1: the variable exists and has the result's type. }];
  let arguments = (ins FlatSymbolRefAttr:$variable);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$variable `:` type($result) attr-dict";
}

def WriteOp : Graph_Op<"write", [DeclareOpInterfaceMethods<SymbolUserOpInterface>, MemoryEffects<[MemWrite]>]> {
  let summary = "new value of a variable; happens exactly once per step";
  let description = [{ Rule G1: the variable exists and has the operand's type. Never recomputed or duplicated. }];
  let arguments = (ins FlatSymbolRefAttr:$variable, Graph_Tensor:$value);
  let assemblyFormat = "$variable `,` $value `:` type($value) attr-dict";
}

//===----------------------------------------------------------------------------===//
// Constants and index values
//===----------------------------------------------------------------------------===//

def ConstantOp : Graph_Op<"constant", [Pure, ConstantLike, Recomputable, Cost, Precision, AllTypesMatch<["value", "result"]>]> {
  let summary = "literal tensor";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$value attr-dict";
  let builders = [OpBuilder<(ins "::mlir::ElementsAttr":$value), [{ build($_builder, $_state, value.getType(), value); }]>];
  let hasFolder = 1;
  let hasVerifier = 1;
}

def IotaOp : Graph_Op<"iota", [Pure, Recomputable, Cost, Precision]> {
  let summary = "index along one dimension";
  let description = [{ result[i0..in] = i_dimension. Rule G2: dimension < rank. }];
  let arguments = (ins I64Attr:$dimension);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$dimension attr-dict `:` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------------===//

class Graph_Unary<string mnemonic, Type type = Graph_FloatTensor, list<Trait> traits = [Differentiable]>
    : Graph_Op<mnemonic, !listconcat([Pure, SameOperandsAndResultType, Graph_Elementwise, Cost, Recomputable, InPlace, Precision], traits)> {
  let arguments = (ins type:$operand);
  let results = (outs type:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}
class Graph_Binary<string mnemonic, Type type = Graph_Tensor, list<Trait> traits = [Differentiable]>
    : Graph_Op<mnemonic, !listconcat([Pure, SameOperandsAndResultType, Graph_Elementwise, Cost, Recomputable, InPlace, Precision], traits)> {
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

def NegOp : Graph_Unary<"neg", Graph_Tensor> { let summary = "-x"; }
def AbsOp : Graph_Unary<"abs", Graph_Tensor> { let summary = "|x|; gradient sign(x), 0 at 0"; }
def SignOp : Graph_Unary<"sign", Graph_Tensor> { let summary = "-1, 0 or 1; gradient 0"; }
def FloorOp : Graph_Unary<"floor"> { let summary = "largest integer <= x; gradient 0"; }
def ExpOp : Graph_Unary<"exp"> { let summary = "e^x"; }
def LogOp : Graph_Unary<"log"> { let summary = "natural logarithm"; }
def Log1pOp : Graph_Unary<"log1p"> { let summary = "log(1+x)"; }
def SqrtOp : Graph_Unary<"sqrt"> { let summary = "square root"; }
def RsqrtOp : Graph_Unary<"rsqrt"> { let summary = "1/sqrt(x)"; }
def ReciprocalOp : Graph_Unary<"reciprocal"> { let summary = "1/x"; }
def SinOp : Graph_Unary<"sin"> { let summary = "sine, radians"; }
def CosOp : Graph_Unary<"cos"> { let summary = "cosine, radians"; }
def TanhOp : Graph_Unary<"tanh"> { let summary = "hyperbolic tangent"; }
def ErfOp : Graph_Unary<"erf"> { let summary = "Gauss error function"; }
def SigmoidOp : Graph_Unary<"sigmoid"> { let summary = "1/(1+e^-x)"; }
def ReluOp : Graph_Unary<"relu"> { let summary = "max(x,0); gradient 0 at 0, as PyTorch"; }
def SiluOp : Graph_Unary<"silu", Graph_FloatTensor, [Differentiable, Decomposable]> { let summary = "x*sigmoid(x)"; }
def GeluOp : Graph_Unary<"gelu", Graph_FloatTensor, [Differentiable, Decomposable]> {
  let summary = "Gaussian error linear unit";
  let description = [{
    approximate = false: x*(1+erf(x/sqrt 2))/2; true: x*(1+tanh(sqrt(2/pi)*(x+0.044715 x^3)))/2, formed from exp so that
    the left tail keeps its relative accuracy. Source: arXiv 1606.08415.
  }];
  let arguments = (ins Graph_FloatTensor:$operand, DefaultValuedAttr<BoolAttr, "false">:$approximate);
}
def NotOp : Graph_Unary<"not", Graph_BoolTensor, []> { let summary = "logical negation"; }

def IsNanOp : Graph_Op<"is_nan", [Pure, Graph_Elementwise, Cost, Recomputable, Precision]> {
  let summary = "whether an element is NaN";
  let description = [{ Rule G3: operand and result have one shape. }];
  let arguments = (ins Graph_FloatTensor:$operand);
  let results = (outs Graph_BoolTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def AddOp : Graph_Binary<"add"> { let summary = "x+y"; let hasFolder = 1; }
def SubOp : Graph_Binary<"sub"> { let summary = "x-y"; let hasFolder = 1; }
def MulOp : Graph_Binary<"mul"> { let summary = "x*y"; let hasFolder = 1; }
def DivOp : Graph_Binary<"div"> { let summary = "x/y; integers truncate"; let hasFolder = 1; }
def PowOp : Graph_Binary<"pow", Graph_FloatTensor> { let summary = "x^y"; let hasFolder = 1; }
def MaximumOp : Graph_Binary<"maximum"> { let summary = "larger of x and y; NaN propagates; gradient split evenly on ties, as PyTorch"; }
def MinimumOp : Graph_Binary<"minimum"> { let summary = "smaller of x and y; NaN propagates; gradient split evenly on ties, as PyTorch"; }
def AndOp : Graph_Binary<"and", Graph_BoolTensor, []> { let summary = "logical and"; }
def OrOp : Graph_Binary<"or", Graph_BoolTensor, []> { let summary = "logical or"; }

def CompareOp : Graph_Op<"compare", [Pure, SameTypeOperands, Graph_Elementwise, Cost, Recomputable, Precision]> {
  let summary = "elementwise comparison; NaN compares unequal and unordered";
  let description = [{ Rule G3: operands and result have one shape. }];
  let arguments = (ins Graph_DirectionAttr:$direction, Graph_Tensor:$lhs, Graph_Tensor:$rhs);
  let results = (outs Graph_BoolTensor:$result);
  let assemblyFormat = "$direction $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)";
  let hasVerifier = 1;
}

def SelectOp : Graph_Op<"select", [Pure, Graph_Elementwise, Cost, Recomputable, InPlace, Precision, Differentiable,
                                   AllTypesMatch<["on_true", "on_false", "result"]>]> {
  let summary = "on_true where the predicate holds, else on_false";
  let description = [{ Rule G3: predicate and result have one shape. The gradient flows only through the taken side (0 elsewhere, never 0*inf). }];
  let arguments = (ins Graph_BoolTensor:$predicate, Graph_Tensor:$on_true, Graph_Tensor:$on_false);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$predicate `,` $on_true `,` $on_false attr-dict `:` type($predicate) `,` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def ConvertOp : Graph_Op<"convert", [Pure, Graph_Elementwise, Cost, Recomputable, Precision, Differentiable]> {
  let summary = "change of element type";
  let description = [{
    Float to narrower float rounds to nearest even; float to integer truncates; anything to i1 is x != 0.
    Rule G3: operand and result have one shape. Gradient: converted back; none for integers.
  }];
  let arguments = (ins Graph_Tensor:$operand);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

//===----------------------------------------------------------------------------===//
// Shape: views of the operand
//===----------------------------------------------------------------------------===//

class Graph_ViewOp<string mnemonic> : Graph_Op<mnemonic, [Pure, Graph_View, Cost, Recomputable, Precision, Differentiable]> {
  let results = (outs Graph_Tensor:$result);
  let hasVerifier = 1;
  let hasFolder = 1;
}

def BroadcastOp : Graph_ViewOp<"broadcast"> {
  let summary = "repeat along new or size-1 dimensions";
  let description = [{
    Operand dimension d becomes result dimension dims[d]; every other result dimension repeats. Rules: G4 dims is strictly
    increasing, one entry per operand dimension, below the result rank; G5 operand size is 1 or equals the result's.
    Gradient: sum over the repeated dimensions.
  }];
  let arguments = (ins Graph_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let assemblyFormat = "$operand $dims attr-dict `:` type($operand) `->` type($result)";
}
def ReshapeOp : Graph_ViewOp<"reshape"> {
  let summary = "same elements in row-major order under another shape";
  let description = [{ Rule G6: element counts are equal. }];
  let arguments = (ins Graph_Tensor:$operand);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
}
def TransposeOp : Graph_ViewOp<"transpose"> {
  let summary = "permute dimensions: result dimension d is operand dimension perm[d]";
  let description = [{ Rule G7: perm is a permutation and the result shape follows it. }];
  let arguments = (ins Graph_Tensor:$operand, DenseI64ArrayAttr:$perm);
  let assemblyFormat = "$operand $perm attr-dict `:` type($operand) `->` type($result)";
}
def SliceOp : Graph_ViewOp<"slice"> {
  let summary = "operand[start : start + size*stride : stride] in every dimension";
  let description = [{ Rule G8: one start and positive stride per dimension, last element inside the operand. Gradient: pad. }];
  let arguments = (ins Graph_Tensor:$operand, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$strides);
  let assemblyFormat = "$operand $starts $strides attr-dict `:` type($operand) `->` type($result)";
}

//===----------------------------------------------------------------------------===//
// Data movement
//===----------------------------------------------------------------------------===//

class Graph_LibraryOp<string mnemonic, list<Trait> traits = [Differentiable]>
    : Graph_Op<mnemonic, !listconcat([Pure, Graph_Library, Recomputable, Precision], traits)> {
  let hasVerifier = 1;
}

def CopyOp : Graph_LibraryOp<"copy", [Cost, SameOperandsAndResultType, Differentiable]> {
  let summary = "materialise a view as contiguous storage";
  let arguments = (ins Graph_Tensor:$operand);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
  let hasVerifier = 0;
}
def ConcatOp : Graph_LibraryOp<"concat", [Cost, Differentiable]> {
  let summary = "join along one dimension";
  let description = [{ Rules: G9 axis < rank; G10 all other dimensions agree, the axis sizes add up. Gradient: slices. }];
  let arguments = (ins Variadic<Graph_Tensor>:$operands, I64Attr:$axis);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$operands `axis` $axis attr-dict `:` functional-type($operands, $result)";
}
def PadOp : Graph_LibraryOp<"pad", [Cost, Differentiable]> {
  let summary = "surround (and space out) with one value";
  let description = [{
    result[low + i*(interior+1)] = operand[i], elsewhere `value`. Rule G11: sizes follow low + (n-1)*(interior+1) + 1 + high
    (n > 0), low, high, interior >= 0. Gradient: strided slice.
  }];
  let arguments = (ins Graph_Tensor:$operand, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high, DenseI64ArrayAttr:$interior,
                       DefaultValuedAttr<F64Attr, "0.0">:$value);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$operand `low` $low `high` $high `interior` $interior attr-dict `:` type($operand) `->` type($result)";
}
def GatherOp : Graph_LibraryOp<"gather", [OwnCost, Differentiable]> {
  let summary = "rows of the operand along one axis by index (embedding lookup)";
  let description = [{
    operand (A..., D, B...), indices (I...), result (A..., I..., B...). Negative indices count from the end; an index out of
    range is a run-time fault naming this op. Rule G12: axis < rank and the result shape follows. Gradient: scatter_add.
  }];
  let arguments = (ins Graph_Tensor:$operand, Graph_IntTensor:$indices, I64Attr:$axis);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$operand `,` $indices `axis` $axis attr-dict `:` functional-type(operands, $result)";
}
def ScatterAddOp : Graph_LibraryOp<"scatter_add", [OwnCost, Differentiable]> {
  let summary = "zeros plus updates added at rows by index; sums in index order, so the bits never depend on threads";
  let description = [{ indices (I...), updates (A..., I..., B...), result (A..., D, B...). Rule G12. Gradient: gather. }];
  let arguments = (ins Graph_IntTensor:$indices, Graph_FloatTensor:$updates, I64Attr:$axis);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$indices `,` $updates `axis` $axis attr-dict `:` functional-type(operands, $result)";
}
def GatherElementsOp : Graph_LibraryOp<"gather_elements", [OwnCost, Differentiable]> {
  let summary = "result[i..] = operand[i.. with the axis coordinate replaced by indices[i..]]";
  let description = [{ Rule G13: ranks agree, result and indices have one shape, other dimensions fit in the operand. }];
  let arguments = (ins Graph_Tensor:$operand, Graph_IntTensor:$indices, I64Attr:$axis);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$operand `,` $indices `axis` $axis attr-dict `:` functional-type(operands, $result)";
}
def ScatterAddElementsOp : Graph_LibraryOp<"scatter_add_elements", [OwnCost, Differentiable]> {
  let summary = "zeros plus updates added where gather_elements would read";
  let description = [{ Rule G13. Gradient: gather_elements. }];
  let arguments = (ins Graph_IntTensor:$indices, Graph_FloatTensor:$updates, I64Attr:$axis);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$indices `,` $updates `axis` $axis attr-dict `:` functional-type(operands, $result)";
}
def RandomUniformOp : Graph_LibraryOp<"random_uniform", [Cost]> {
  let summary = "uniform numbers in [0,1) from a counter: pure, so a recomputation draws the same bits";
  let description = [{
    Philox4x32-10, key = seed[0], counter = (element/4, op_id, seed[1] = step), word element%4, (word>>8)*2^-24.
    Source: Salmon et al., SC'11. Rule G14: seed is tensor<2xi64>.
  }];
  let arguments = (ins Graph_IntTensor:$seed, I64Attr:$op_id);
  let results = (outs StaticShapeTensorOf<[F32]>:$result);
  let assemblyFormat = "$seed `id` $op_id attr-dict `:` type($seed) `->` type($result)";
}
def CumsumOp : Graph_LibraryOp<"cumsum", [Cost, Differentiable, SameOperandsAndResultType]> {
  let summary = "running sum along an axis";
  let description = [{ Rule G9. Gradient: cumsum in the other direction. }];
  let arguments = (ins Graph_Tensor:$operand, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$exclusive,
                       DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$operand `axis` $axis attr-dict `:` type($result)";
}

//===----------------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------------===//

class Graph_Reduce<string mnemonic> : Graph_Op<mnemonic, [Pure, OwnCost, Recomputable, OwnPrecision, Differentiable]> {
  let arguments = (ins Graph_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$operand $dims attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def ReduceSumOp : Graph_Reduce<"reduce_sum"> {
  let summary = "sum over dims, which are removed";
  let description = [{ Rule G15: dims strictly increasing and below the rank; the result keeps the others in order. Gradient: broadcast. }];
}
def ReduceMaxOp : Graph_Reduce<"reduce_max"> {
  let summary = "largest element over dims, which are removed; NaN propagates";
  let description = [{ Rule G15. Gradient: shared evenly between equal maxima, as torch.amax. }];
}

//===----------------------------------------------------------------------------===//
// Linear algebra
//===----------------------------------------------------------------------------===//

def DotOp : Graph_LibraryOp<"dot", [OwnCost, Differentiable]> {
  let summary = "batched matrix product with transpose flags, so no transposed copy is ever made";
  let description = [{
    a (b..., M, K) or (b..., K, M) when trans_a; b (b..., K, N) or (b..., N, K) when trans_b; result (b..., M, N).
    Rules: G16 ranks are equal and >= 2, batch dimensions agree; G17 the contracted sizes agree and the result is (b..., M, N).
    Gradient: dA = dC·Bᵀ, dB = Aᵀ·dC. Source: Giles, "Collected matrix derivative results" (2008).
  }];
  let arguments = (ins Graph_FloatTensor:$lhs, Graph_FloatTensor:$rhs, DefaultValuedAttr<BoolAttr, "false">:$trans_a,
                       DefaultValuedAttr<BoolAttr, "false">:$trans_b);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def DotAddOp : Graph_LibraryOp<"dot_add", [OwnCost, DeclareOpInterfaceMethods<InPlaceOpInterface, ["inPlaceOperands"]>]> {
  let summary = "a sum that takes in one more matrix product: accumulator + a·b";
  let description = [{
    Shapes and flags as dot's; the accumulator has the result's type and its storage becomes the result's when nobody reads it later,
    so a gradient that is a sum of products never needs a second buffer of its size. Autodiff makes it; it has no gradient of its own.
    Rules: G16, G17.
  }];
  let arguments = (ins Graph_FloatTensor:$lhs, Graph_FloatTensor:$rhs, Graph_FloatTensor:$accumulator,
                       DefaultValuedAttr<BoolAttr, "false">:$trans_a, DefaultValuedAttr<BoolAttr, "false">:$trans_b);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs `into` $accumulator attr-dict `:` functional-type(operands, $result)";
}

class Graph_ConvLike<string mnemonic> : Graph_LibraryOp<mnemonic, [OwnCost, Differentiable]> {
  let results = (outs Graph_FloatTensor:$result);
}
defvar ConvAttributes = (ins DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations, I64Attr:$groups);
def ConvOp : Graph_ConvLike<"conv"> {
  let summary = "cross-correlation over 1 to 3 spatial dimensions";
  let description = [{
    input (N, C, s...), filter (O, C/groups, k...), result (N, O, t...), pads = begins then ends (zeros).
    Rules: G18 ranks 3..5 and attribute lengths fit; G19 channels divide by groups; G20 t = (s + pads - dilation*(k-1) - 1)/stride + 1.
    Gradient: conv_input_grad, conv_weight_grad. Source: Dumoulin & Visin, arXiv 1603.07285.
  }];
  let arguments = !con((ins Graph_FloatTensor:$input, Graph_FloatTensor:$filter), ConvAttributes);
  let assemblyFormat = "$input `,` $filter attr-dict `:` functional-type(operands, $result)";
}
def ConvInputGradOp : Graph_ConvLike<"conv_input_grad"> {
  let summary = "adjoint of conv in its input; also a transposed convolution";
  let description = [{ cotangent (N, O, t...), filter (O, C/groups, k...), result (N, C, s...). Rules G18..G20. Bilinear, so its gradients are conv and conv_weight_grad. }];
  let arguments = !con((ins Graph_FloatTensor:$cotangent, Graph_FloatTensor:$filter), ConvAttributes);
  let assemblyFormat = "$cotangent `,` $filter attr-dict `:` functional-type(operands, $result)";
}
def ConvWeightGradOp : Graph_ConvLike<"conv_weight_grad"> {
  let summary = "adjoint of conv in its filter";
  let description = [{ input (N, C, s...), cotangent (N, O, t...), result (O, C/groups, k...). Rules G18..G20. }];
  let arguments = !con((ins Graph_FloatTensor:$input, Graph_FloatTensor:$cotangent), ConvAttributes);
  let assemblyFormat = "$input `,` $cotangent attr-dict `:` functional-type(operands, $result)";
}

//===----------------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------------===//

defvar PoolAttributes = (ins DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations);
def MaxPoolOp : Graph_LibraryOp<"max_pool", [OwnCost, Differentiable]> {
  let summary = "largest element of each window and where it was (first maximum wins)";
  let description = [{ input (N, C, s...), result and indices (N, C, t...); indices are flat within the input plane. Rules G18, G20 (t may be rounded up: ceil mode). Gradient: max_pool_grad. }];
  let arguments = !con((ins Graph_FloatTensor:$input), PoolAttributes);
  let results = (outs Graph_FloatTensor:$result, StaticShapeTensorOf<[I32]>:$indices);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}
def MaxPoolGradOp : Graph_LibraryOp<"max_pool_grad", [OwnCost]> {
  let summary = "cotangent added at the recorded positions";
  let description = [{ Rule G21: cotangent and indices have one shape, batch and channels agree with the result. }];
  let arguments = !con((ins Graph_FloatTensor:$cotangent, StaticShapeTensorOf<[I32]>:$indices), PoolAttributes);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$cotangent `,` $indices attr-dict `:` functional-type(operands, results)";
}
def AvgPoolOp : Graph_LibraryOp<"avg_pool", [OwnCost, Differentiable]> {
  let summary = "mean of each window";
  let description = [{ Rules G18, G20. count_include_pad: pads count in the divisor. Gradient: avg_pool_grad. }];
  let arguments = !con((ins Graph_FloatTensor:$input), PoolAttributes, (ins DefaultValuedAttr<BoolAttr, "false">:$count_include_pad));
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}
def AvgPoolGradOp : Graph_LibraryOp<"avg_pool_grad", [OwnCost, Differentiable]> {
  let summary = "adjoint of avg_pool";
  let description = [{ Rules G18, G20. Linear: its gradient is avg_pool. }];
  let arguments = !con((ins Graph_FloatTensor:$cotangent), PoolAttributes, (ins DefaultValuedAttr<BoolAttr, "false">:$count_include_pad));
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$cotangent attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------------===//
// Whole ops: kept because the memory and the speed are there
//===----------------------------------------------------------------------------===//

class Graph_Whole<string mnemonic, list<Trait> traits = []>
    : Graph_Op<mnemonic, !listconcat([Pure, OwnCost, Recomputable, OwnPrecision, Decomposable], traits)> {
  let hasVerifier = 1;
}

class Graph_SoftmaxLike<string mnemonic> : Graph_Whole<mnemonic, [SameOperandsAndResultType, Differentiable, InPlace]> {
  let arguments = (ins Graph_FloatTensor:$operand, I64Attr:$axis);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$operand `axis` $axis attr-dict `:` type($result)";
}
def SoftmaxOp : Graph_SoftmaxLike<"softmax"> {
  let summary = "exp(x - max)/sum along an axis";
  let description = [{ Rule G9. Gradient: y*(dy - sum(dy*y)). Source: PyTorch derivatives.yaml `_softmax`. }];
}
def LogSoftmaxOp : Graph_SoftmaxLike<"log_softmax"> {
  let summary = "x - max - log(sum(exp(x - max))) along an axis";
  let description = [{ Rule G9. Gradient: dy - exp(y)*sum(dy). }];
}
def LayerNormOp : Graph_Whole<"layer_norm", [Differentiable]> {
  let summary = "(x - mean)*rstd over the dimensions from axis on";
  let description = [{
    Results: normalised (x's type), mean and rstd = 1/sqrt(variance + eps) over x.shape[axis:] (shape x.shape[:axis], fp32 unless x is f64).
    The affine part is explicit mul/add, so one op serves layer, group and instance norms. Rules: G9; G22 the statistics have
    shape x.shape[:axis]. Gradient from x, mean, rstd: rstd*(dy - mean(dy) - xhat*mean(dy*xhat)). Source: Ba et al., arXiv 1607.06450.
  }];
  let arguments = (ins Graph_FloatTensor:$operand, I64Attr:$axis, F64Attr:$epsilon);
  let results = (outs Graph_FloatTensor:$result, Graph_FloatTensor:$mean, Graph_FloatTensor:$rstd);
  let assemblyFormat = "$operand `axis` $axis `eps` $epsilon attr-dict `:` functional-type(operands, results)";
}
def RmsNormOp : Graph_Whole<"rms_norm", [Differentiable]> {
  let summary = "x*rstd over the dimensions from axis on, rstd = 1/sqrt(mean(x^2) + eps)";
  let description = [{ Rules G9, G22. Gradient: rstd*(dy - xhat*mean(dy*xhat)). Source: Zhang & Sennrich, arXiv 1910.07467. }];
  let arguments = (ins Graph_FloatTensor:$operand, I64Attr:$axis, F64Attr:$epsilon);
  let results = (outs Graph_FloatTensor:$result, Graph_FloatTensor:$rstd);
  let assemblyFormat = "$operand `axis` $axis `eps` $epsilon attr-dict `:` functional-type(operands, results)";
}
def BatchNormOp : Graph_Whole<"batch_norm", [Differentiable]> {
  let summary = "(x - mean)*rsqrt(variance + eps) over all dimensions but channel dimension 1, batch statistics";
  let description = [{
    Results: normalised, mean (C), variance (C; population, N). The affine part and the update of running statistics are explicit
    ops beside it; running_mean and running_var name the variables that evaluation mode normalises with.
    Rules: G23 rank >= 2; G24 the statistics have shape (C). Source: Ioffe & Szegedy, arXiv 1502.03167.
  }];
  let arguments = (ins Graph_FloatTensor:$operand, F64Attr:$epsilon, OptionalAttr<FlatSymbolRefAttr>:$running_mean,
                       OptionalAttr<FlatSymbolRefAttr>:$running_var);
  let results = (outs Graph_FloatTensor:$result, Graph_FloatTensor:$mean, Graph_FloatTensor:$variance);
  let assemblyFormat = "$operand `eps` $epsilon attr-dict `:` functional-type(operands, results)";
}
def DropoutOp : Graph_Whole<"dropout", [Differentiable, AllTypesMatch<["operand", "result"]>]> {
  let summary = "x/(1-ratio) where uniform >= ratio, else 0";
  let description = [{
    uniform is random_uniform(seed, op_id), so the adjoint is the same op on the cotangent and no mask is ever kept.
    Evaluation mode removes it. Rules: G14; G25 0 <= ratio < 1.
  }];
  let arguments = (ins Graph_FloatTensor:$operand, Graph_IntTensor:$seed, F64Attr:$ratio, I64Attr:$op_id);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$operand `,` $seed `ratio` $ratio `id` $op_id attr-dict `:` type($seed) `,` type($result)";
}
def CrossEntropyOp : Graph_Whole<"cross_entropy", [Differentiable]> {
  let summary = "per-row -log softmax(logits)[label], 0 where label == ignore_index";
  let description = [{
    logits (N, C), labels (N), results: losses (N) and log-sum-exp (N). Reductions and class weights are explicit ops beside it.
    A label outside [0, C) that is not ignore_index contributes log-sum-exp only and is reported by the runner's label check.
    Rule G26: shapes are as stated. Gradient: cross_entropy_grad.
  }];
  let arguments = (ins Graph_FloatTensor:$logits, Graph_LabelTensor:$labels, I64Attr:$ignore_index);
  let results = (outs Graph_FloatTensor:$losses, Graph_FloatTensor:$log_sum_exp);
  let assemblyFormat = "$logits `,` $labels `ignore` $ignore_index attr-dict `:` functional-type(operands, results)";
}
def CrossEntropyGradOp : Graph_Whole<"cross_entropy_grad", []> {
  let summary = "(softmax(logits) - onehot(label))*cotangent, 0 rows where ignored";
  let description = [{ logits (N, C), labels (N), log_sum_exp (N), cotangent (N), result (N, C). Rule G26. }];
  let arguments = (ins Graph_FloatTensor:$logits, Graph_LabelTensor:$labels, Graph_FloatTensor:$log_sum_exp,
                       Graph_FloatTensor:$cotangent, I64Attr:$ignore_index);
  let results = (outs Graph_FloatTensor:$result);
  let assemblyFormat = "$logits `,` $labels `,` $log_sum_exp `,` $cotangent `ignore` $ignore_index attr-dict `:` functional-type(operands, results)";
}

def AttentionOp : Graph_LibraryOp<"attention", [OwnCost, Differentiable]> {
  let summary = "softmax(scale*q·kᵀ + mask)·v without the S×T matrix";
  let description = [{
    q (B, H, S, D), k (B, K, T, D), v (B, K, T, E), H a multiple of K (grouped heads), optional mask broadcastable by size-1
    dimensions to (B, H, S, T): i1 keeps where true, float is added. causal keeps key t <= query s + (T - S).
    Results: out (B, H, S, E), log_sum_exp (B, H, S). A fully masked row gives 0 and gradient 0.
    Rules: G27 ranks and sizes; G28 the mask broadcasts. Gradient: attention_grad; a float mask's, when wanted, from explicit scores.
    Source: Dao et al., arXiv 2205.14135.
  }];
  let arguments = (ins Graph_FloatTensor:$query, Graph_FloatTensor:$key, Graph_FloatTensor:$value, Optional<Graph_Tensor>:$mask,
                       F64Attr:$scale, DefaultValuedAttr<BoolAttr, "false">:$causal);
  let results = (outs Graph_FloatTensor:$result, Graph_FloatTensor:$log_sum_exp);
  let assemblyFormat = "$query `,` $key `,` $value (`mask` $mask^)? attr-dict `:` functional-type(operands, results)";
}
def AttentionGradOp : Graph_LibraryOp<"attention_grad", [OwnCost]> {
  let summary = "adjoint of attention in query, key and value";
  let description = [{ Rules G27, G28. Scores are recomputed tile by tile from log_sum_exp. }];
  let arguments = (ins Graph_FloatTensor:$cotangent, Graph_FloatTensor:$query, Graph_FloatTensor:$key, Graph_FloatTensor:$value,
                       Optional<Graph_Tensor>:$mask, Graph_FloatTensor:$out, Graph_FloatTensor:$log_sum_exp,
                       F64Attr:$scale, DefaultValuedAttr<BoolAttr, "false">:$causal);
  let results = (outs Graph_FloatTensor:$query_grad, Graph_FloatTensor:$key_grad, Graph_FloatTensor:$value_grad);
  let assemblyFormat = [{ $cotangent `,` $query `,` $key `,` $value (`mask` $mask^)? `saved` $out `,` $log_sum_exp attr-dict
                          `:` functional-type(operands, results) }];
}

//===----------------------------------------------------------------------------===//
// Kernel groups: the result of fusion
//===----------------------------------------------------------------------------===//

def GroupOp : Graph_Op<"group", [IsolatedFromAbove, Recomputable, Cost, InPlace, SingleBlock,
                                 DeclareOpInterfaceMethods<InPlaceOpInterface, ["inPlaceOperands"]>,
                                 DeclareOpInterfaceMethods<CostOpInterface, ["cost"]>, Pure]> {
  let summary = "ops that run as one generated kernel";
  let description = [{
    The region holds elementwise, broadcast, iota, constant and reduce ops (whole ops already decomposed) over one iteration
    space; values inside have no storage. Operands may be strided views. Rules: G29 the region's arguments match the operands and
    the yielded values the results; G30 only ops with a scalar form inside; G31 one iteration space: every shape inside is the
    iteration shape, or it with the reduced dimensions removed.
    `parallel` and `reduced` give the iteration shape and which dimensions are reduced (empty = elementwise).
  }];
  let arguments = (ins Variadic<Graph_Tensor>:$inputs, DenseI64ArrayAttr:$iteration, DenseI64ArrayAttr:$reduced);
  let results = (outs Variadic<Graph_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{ $inputs `space` $iteration `reduced` $reduced attr-dict `:` functional-type($inputs, $outputs) $body }];
  let hasRegionVerifier = 1;
}
def YieldOp : Graph_Op<"yield", [Pure, Terminator, HasParent<"GroupOp">]> {
  let summary = "results of a kernel group";
  let arguments = (ins Variadic<Graph_Tensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif
