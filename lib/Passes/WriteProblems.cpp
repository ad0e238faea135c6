// Planner problems as files: any compile's problem can be replayed in a test, measured by a bench, or solved by others.
#include "lib/Passes/LowerToPlan.h"
#include "lib/Passes/PlanProblem.h"

#include "plimsoll/Planner/ProblemText.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace plimsoll;

static Status writeText(const llvm::Twine &path, llvm::StringRef text) {
  std::error_code error;
  llvm::raw_fd_ostream file(path.str(), error);
  if (!error) {
    file << text;
    file.close();
    error = file.error();
    file.clear_error();
  }
  return error ? badInput("cannot write '" + path.str() + "': " + error.message()) : Status::ok();
}

Status plimsoll::writeProblems(ModuleOp module, CompileTarget &target, const LowerOptions &options,
                               llvm::StringRef folder) {
  if (std::error_code error = llvm::sys::fs::create_directories(folder))
    return badInput("cannot make the folder '" + folder.str() + "': " + error.message());
  for (auto function : module.getOps<func::FuncOp>()) {
    FailureOr<EntryDraft> draft = readEntry(function, target, options.costs, options.alignment);
    if (failed(draft))
      return Status(ExitCode::Unsupported,
                    "entry " + function.getName().str() + " cannot be lowered; see the errors above");
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, function.getName() + ".problem");
    if (Status status = writeText(path, planner::writeProblem(draft->problem)); !status)
      return status;
  }
  return Status::ok();
}
