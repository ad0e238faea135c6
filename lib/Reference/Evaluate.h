// The slow, obvious evaluator of graph functions: the oracle for adjoints, kernels and code generation. It computes
// every op directly from its definition, never through its decomposition or the runtime, in double (floats) or int64
// (integers).
#pragma once

#include "lib/Reference/HostTensor.h"

#include "dialects/Graph/Graph.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <string>
#include <vector>

namespace plimsoll::reference {

/// Current values of a module's variables, by symbol name.
using VariableState = std::map<std::string, HostTensor>;

struct EvaluateOptions {
  /// Keep float results in double instead of rounding each to its op's element type (for finite differences).
  bool exactDouble = false;
};

/// State of every variable of `module` that has a `fill` or a `value`; variables filled from the model are left out.
VariableState initialState(mlir::ModuleOp module);

/// Runs a single-block function on `inputs` (one per argument, of the argument's type); reads and writes go to `state`.
/// Returns one tensor per function result. Fails, with an error at the op, on: an input of another type, a variable
/// without a value, an index out of range, an integer division by zero, or an op that is not of the graph dialect.
/// Deterministic; single-threaded.
mlir::FailureOr<std::vector<HostTensor>> evaluate(mlir::func::FuncOp function, llvm::ArrayRef<HostTensor> inputs,
                                                  VariableState &state, const EvaluateOptions &options = {});

} // namespace plimsoll::reference
