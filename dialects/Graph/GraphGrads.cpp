// Adjoint rules (being written).
#include "dialects/Graph/Graph.h"
using namespace mlir;
using namespace plimsoll::graph;
SmallVector<Value> AbsOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses AbsOp::adjointUses() { return {}; }
SmallVector<Value> AddOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses AddOp::adjointUses() { return {}; }
SmallVector<Value> AttentionOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses AttentionOp::adjointUses() { return {}; }
SmallVector<Value> AvgPoolGradOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses AvgPoolGradOp::adjointUses() { return {}; }
SmallVector<Value> AvgPoolOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses AvgPoolOp::adjointUses() { return {}; }
SmallVector<Value> BatchNormOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses BatchNormOp::adjointUses() { return {}; }
SmallVector<Value> BroadcastOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses BroadcastOp::adjointUses() { return {}; }
SmallVector<Value> ConcatOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses ConcatOp::adjointUses() { return {}; }
SmallVector<Value> ConvInputGradOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses ConvInputGradOp::adjointUses() { return {}; }
SmallVector<Value> ConvOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses ConvOp::adjointUses() { return {}; }
SmallVector<Value> ConvWeightGradOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses ConvWeightGradOp::adjointUses() { return {}; }
SmallVector<Value> ConvertOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses ConvertOp::adjointUses() { return {}; }
SmallVector<Value> CopyOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses CopyOp::adjointUses() { return {}; }
SmallVector<Value> CosOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses CosOp::adjointUses() { return {}; }
SmallVector<Value> CrossEntropyOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses CrossEntropyOp::adjointUses() { return {}; }
SmallVector<Value> CumsumOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses CumsumOp::adjointUses() { return {}; }
SmallVector<Value> DivOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses DivOp::adjointUses() { return {}; }
SmallVector<Value> DotOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses DotOp::adjointUses() { return {}; }
SmallVector<Value> DropoutOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses DropoutOp::adjointUses() { return {}; }
SmallVector<Value> ErfOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses ErfOp::adjointUses() { return {}; }
SmallVector<Value> ExpOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses ExpOp::adjointUses() { return {}; }
SmallVector<Value> FloorOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses FloorOp::adjointUses() { return {}; }
SmallVector<Value> GatherElementsOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses GatherElementsOp::adjointUses() { return {}; }
SmallVector<Value> GatherOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses GatherOp::adjointUses() { return {}; }
SmallVector<Value> GeluOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses GeluOp::adjointUses() { return {}; }
SmallVector<Value> LayerNormOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses LayerNormOp::adjointUses() { return {}; }
SmallVector<Value> Log1pOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses Log1pOp::adjointUses() { return {}; }
SmallVector<Value> LogOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses LogOp::adjointUses() { return {}; }
SmallVector<Value> LogSoftmaxOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses LogSoftmaxOp::adjointUses() { return {}; }
SmallVector<Value> MaxPoolOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses MaxPoolOp::adjointUses() { return {}; }
SmallVector<Value> MaximumOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses MaximumOp::adjointUses() { return {}; }
SmallVector<Value> MinimumOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses MinimumOp::adjointUses() { return {}; }
SmallVector<Value> MulOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses MulOp::adjointUses() { return {}; }
SmallVector<Value> NegOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses NegOp::adjointUses() { return {}; }
SmallVector<Value> PadOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses PadOp::adjointUses() { return {}; }
SmallVector<Value> PowOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses PowOp::adjointUses() { return {}; }
SmallVector<Value> ReciprocalOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses ReciprocalOp::adjointUses() { return {}; }
SmallVector<Value> ReduceMaxOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses ReduceMaxOp::adjointUses() { return {}; }
SmallVector<Value> ReduceSumOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses ReduceSumOp::adjointUses() { return {}; }
SmallVector<Value> ReluOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses ReluOp::adjointUses() { return {}; }
SmallVector<Value> ReshapeOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses ReshapeOp::adjointUses() { return {}; }
SmallVector<Value> RmsNormOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses RmsNormOp::adjointUses() { return {}; }
SmallVector<Value> RsqrtOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses RsqrtOp::adjointUses() { return {}; }
SmallVector<Value> ScatterAddElementsOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses ScatterAddElementsOp::adjointUses() { return {}; }
SmallVector<Value> ScatterAddOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses ScatterAddOp::adjointUses() { return {}; }
SmallVector<Value> SelectOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses SelectOp::adjointUses() { return {}; }
SmallVector<Value> SigmoidOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses SigmoidOp::adjointUses() { return {}; }
SmallVector<Value> SignOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses SignOp::adjointUses() { return {}; }
SmallVector<Value> SiluOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses SiluOp::adjointUses() { return {}; }
SmallVector<Value> SinOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses SinOp::adjointUses() { return {}; }
SmallVector<Value> SliceOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses SliceOp::adjointUses() { return {}; }
SmallVector<Value> SoftmaxOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses SoftmaxOp::adjointUses() { return {}; }
SmallVector<Value> SqrtOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses SqrtOp::adjointUses() { return {}; }
SmallVector<Value> SubOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses SubOp::adjointUses() { return {}; }
SmallVector<Value> TanhOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses TanhOp::adjointUses() { return {}; }
SmallVector<Value> TransposeOp::buildAdjoint(Adjoint &) { llvm_unreachable("adjoint not written"); }
AdjointUses TransposeOp::adjointUses() { return {}; }
