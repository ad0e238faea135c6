// Shared by the gradient tests: graph functions from text, their gradients in the same function, and finite
// differences.
#pragma once

#include "lib/Reference/Evaluate.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace plimsoll::test {

using reference::HostTensor;

/// A context with the graph and func dialects loaded.
struct GraphContext {
  GraphContext();
  mlir::MLIRContext context;
};

/// A parsed module whose only function is `f`.
struct GraphModule {
  GraphModule(mlir::MLIRContext &context, llvm::StringRef text);
  mlir::func::FuncOp function() const;
  std::string print() const;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// Replaces the results of `f` by its gradients in every float argument, for the loss sum_i <cotangents[i], result_i>
/// over float results. `present[k]` says whether argument k has a gradient; results are the present ones in order.
struct GradientFunction {
  GradientFunction(mlir::MLIRContext &context, llvm::StringRef text,
                   const std::vector<std::vector<double>> &cotangents);
  /// Gradients per argument; empty where absent.
  std::vector<std::vector<double>> run(const std::vector<HostTensor> &inputs, bool exactDouble = true) const;
  GraphModule graph;
  std::vector<bool> present;
  bool built = false;
};

/// Zeros of the function's argument types, filled with the numbers given (floats or integers).
std::vector<HostTensor> makeInputs(mlir::func::FuncOp function, const std::vector<std::vector<double>> &numbers);

/// sum_i <cotangents[i], result_i> of the forward function, evaluated in double throughout.
double lossOf(mlir::func::FuncOp function, const std::vector<HostTensor> &inputs,
              const std::vector<std::vector<double>> &cotangents);

/// d loss / d inputs[argument] by five-point central differences of step h = 1e-3: the error is h^4/30 times the fifth
/// derivative (some 1e-13 times it) plus 1.5 eps |loss|/h (some 3e-13 |loss|).
std::vector<double> differences(mlir::func::FuncOp function, std::vector<HostTensor> inputs, size_t argument,
                                const std::vector<std::vector<double>> &cotangents);

/// Largest |a - b| divided by max(1, largest finite |b|); infinite unless infinities and NaN agree in place and sign.
double relativeError(const std::vector<double> &a, const std::vector<double> &b);

/// Empty when every op built by differentiate() reads only forward values that its op's adjointUses() lists (or
/// constants); otherwise names the first that does not.
std::string unlistedUse(mlir::func::FuncOp function);

} // namespace plimsoll::test
