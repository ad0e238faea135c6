// Runs an imported model's @forward on the reference evaluator: the bridge between ONNX files and recorded numbers.
#pragma once

#include "lib/Frontend/ONNX/Import.h"
#include "lib/Reference/Evaluate.h"
#include "runtime/Core/SafeTensors.h"

namespace plimsoll::test {

/// Initial values of every variable: from the weight store, or its fill.
reference::VariableState stateOf(onnx::ImportResult &imported);
/// @forward's arguments by graph.name; fails naming the argument that `inputs` lacks or has with another type.
Result<std::vector<reference::HostTensor>> argumentsOf(mlir::func::FuncOp forward, const runtime::SafeTensors &inputs,
                                                       const std::string &prefix);
/// The function called `forward`.
mlir::func::FuncOp forwardOf(onnx::ImportResult &imported);
/// Name (or role, when asked) of result `i`.
std::string resultName(mlir::func::FuncOp forward, unsigned i, const char *attribute = "graph.name");

} // namespace plimsoll::test
