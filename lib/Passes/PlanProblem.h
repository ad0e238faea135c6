// Reads one entry function into a planner Problem and the commands that will run it. No IR is changed.
#pragma once

#include "lib/Codegen/Target.h"
#include "lib/Passes/CostModel.h"
#include "lib/Passes/Layout.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "plimsoll/Planner/Problem.h"

namespace plimsoll {

/// A strided window of a storage as a command uses it. Offset in bytes, strides in elements.
struct CommandOperand {
  planner::StorageId storage;
  planner::AccessMode access;
  mlir::RankedTensorType type;
  int64_t offsetBytes;
  llvm::SmallVector<int64_t> strides;
};

/// One command before placement. kernel and callee exclude each other.
struct CommandDraft {
  std::string kernel; ///< symbol of a generated kernel, or empty
  std::string callee; ///< library operation, or empty
  llvm::SmallVector<CommandOperand> operands;
  llvm::SmallVector<mlir::NamedAttribute> parameters; ///< of a library operation
  int64_t extent = 0, grain = 1;                      ///< of a kernel
  std::string label;                                  ///< model node it comes from
};

/// A named window at the boundary.
struct PortDraft {
  std::string name;
  CommandOperand window;
};

/// An entry ready to be planned: step k of `problem` is command k.
struct EntryDraft {
  planner::Problem problem;
  std::vector<CommandDraft> commands;
  std::vector<PortDraft> inputs, outputs;
};

/// Reads `function`. The persistent storages of the problem are the module's variables, in order, whether used or not.
/// Requires: fused, materialised, no tensor constant outside kernel groups. Emits an error naming the op that has no
/// command.
/// Steps get their predicted duration from `costs`.
mlir::FailureOr<EntryDraft> readEntry(mlir::func::FuncOp function, CompileTarget &target, const CostModel &costs,
                                      uint64_t alignment);

/// The name a location gives to the model node it comes from; empty when it has none.
std::string locationName(mlir::Location loc);

/// The artifact's element type; i1 is a byte. Fails (nullopt) for a type the runtime does not have.
std::optional<artifact::DType> artifactType(mlir::Type element);

/// A library call's attributes in the artifact's form.
std::vector<artifact::AttributeT> artifactAttributes(llvm::ArrayRef<mlir::NamedAttribute> parameters);

} // namespace plimsoll
