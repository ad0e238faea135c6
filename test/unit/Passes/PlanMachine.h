// Runs plans without a machine: a target whose kernels are the reference evaluator, and an arena of bytes. What a plan
// computes can so be compared with what the graph means, whatever code generation and the fast kernels do.
#pragma once

#include "dialects/Plan/Plan.h"
#include "lib/Codegen/Target.h"
#include "lib/Passes/LowerToPlan.h"
#include "lib/Reference/Evaluate.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <string>
#include <vector>

namespace plimsoll::test {

using reference::HostTensor;
using Tensors = std::map<std::string, HostTensor>;

/// A context with the graph, plan and func dialects that collects the diagnostics it is given.
struct PassContext {
  PassContext();
  mlir::MLIRContext context;
  std::string messages;

private:
  mlir::ScopedDiagnosticHandler handler;
};

mlir::OwningOpRef<mlir::ModuleOp> parseModule(mlir::MLIRContext &context, llvm::StringRef text);

/// A target that accepts everything: kernel kN is the N-th group, a library call named in `scratch` needs that many
/// bytes.
class FakeTarget : public CompileTarget {
public:
  mlir::FailureOr<KernelInfo> addKernel(graph::GroupOp group, llvm::ArrayRef<OperandLayout> inputs,
                                        llvm::ArrayRef<OperandLayout> outputs) override;
  Result<uint64_t> workspaceBytes(const runtime::CallSpec &call) override;

  std::map<std::string, uint64_t> scratch;
  bool refuseKernels = false;
  mlir::OwningOpRef<mlir::ModuleOp> kernels; ///< one function per kernel
  std::vector<runtime::CallSpec> calls;      ///< every library call asked about, in order
};

/// The arena of a program and what runs on it. Bytes that hold no variable are filled with 0xFF (NaN, -1) before each
/// run.
class PlanMachine {
public:
  PlanMachine(plan::ProgramOp planned, FakeTarget &chosen, const Tensors &state);

  /// Runs an entry; results by port name. A command that cannot run is reported as a gtest failure.
  Tensors run(llvm::StringRef entry, const Tensors &inputs);
  /// The variables' current values.
  Tensors state();

private:
  HostTensor load(plan::OperandAttr window);
  void store(plan::OperandAttr window, const HostTensor &value);
  uint64_t addressOf(plan::OperandAttr window);
  void execute(mlir::Operation &command);
  void launch(plan::LaunchOp op);
  void call(plan::CallOp op);

  plan::ProgramOp program;
  plan::EntryOp current;
  FakeTarget &target;
  std::vector<char> arena;
};

/// The functions' meaning by lib/Reference on a clone: results by port name; `state` is advanced.
Tensors evaluateEntry(mlir::ModuleOp module, llvm::StringRef entry, const Tensors &inputs, Tensors &state);

/// Fuse, outline constants, materialise, schedule: what the pipeline does between a training step and its plan.
mlir::LogicalResult prepareForPlan(mlir::ModuleOp module);

} // namespace plimsoll::test
