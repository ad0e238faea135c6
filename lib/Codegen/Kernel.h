// What a generated kernel needs to know of its operands' storage, and what a launch needs to know of the kernel.
#pragma once

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <string>

namespace plimsoll {

/// Where an operand's elements lie relative to its first: strides in elements, one per dimension of its shape (0 =
/// broadcast).
struct OperandLayout {
  llvm::SmallVector<int64_t> strides;
};

/// A generated kernel: its symbol, the number of parallel iterations, and the number that belong together in a chunk.
struct KernelInfo {
  std::string symbol;
  int64_t extent = 0;
  int64_t grain = 1;
};

} // namespace plimsoll
