// Losses computed in pieces of the tokens.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cstdint>

namespace plimsoll {

/// Marks a cross_entropy that is one piece of a loss; its value is the piece's first row.
inline constexpr llvm::StringLiteral chunkAttribute = "graph.chunk";

/// Cuts every cross_entropy of a forward function whose logits are a matrix product (and work on its rows alone) into
/// `count` pieces of equal size, the last one smaller when the tokens do not divide; fewer when there are fewer tokens.
/// A count below 2 changes nothing. Returns how many losses were cut; remarks say why others were not.
unsigned chunkLosses(mlir::func::FuncOp function, int64_t count);

} // namespace plimsoll
