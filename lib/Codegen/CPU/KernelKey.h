// A kernel's identity: two groups with one key can share code.
#pragma once

#include "dialects/Graph/Graph.h"
#include "lib/Codegen/Kernel.h"

#include <string>

namespace plimsoll::codegen {

/// Everything code generation reads, as text: space, operand and result types with strides, and the region with values
/// numbered in order. Locations and unknown attributes of the group do not count.
std::string kernelKey(graph::GroupOp group, llvm::ArrayRef<OperandLayout> inputs,
                      llvm::ArrayRef<OperandLayout> outputs);

} // namespace plimsoll::codegen
