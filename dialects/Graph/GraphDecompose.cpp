// Decompositions (being written).
#include "dialects/Graph/Graph.h"
using namespace mlir;
using namespace plimsoll::graph;
SmallVector<Value> BatchNormOp::decompose(OpBuilder &) { llvm_unreachable("decomposition not written"); }
SmallVector<Value> CrossEntropyGradOp::decompose(OpBuilder &) { llvm_unreachable("decomposition not written"); }
SmallVector<Value> CrossEntropyOp::decompose(OpBuilder &) { llvm_unreachable("decomposition not written"); }
SmallVector<Value> DropoutOp::decompose(OpBuilder &) { llvm_unreachable("decomposition not written"); }
SmallVector<Value> GeluOp::decompose(OpBuilder &) { llvm_unreachable("decomposition not written"); }
SmallVector<Value> LayerNormOp::decompose(OpBuilder &) { llvm_unreachable("decomposition not written"); }
SmallVector<Value> LogSoftmaxOp::decompose(OpBuilder &) { llvm_unreachable("decomposition not written"); }
SmallVector<Value> RmsNormOp::decompose(OpBuilder &) { llvm_unreachable("decomposition not written"); }
SmallVector<Value> SiluOp::decompose(OpBuilder &) { llvm_unreachable("decomposition not written"); }
SmallVector<Value> SoftmaxOp::decompose(OpBuilder &) { llvm_unreachable("decomposition not written"); }
