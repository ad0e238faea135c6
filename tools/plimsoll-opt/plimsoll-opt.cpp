// plimsoll-opt: runs any single pass, or any pipeline of them, over textual IR.
#include "dialects/Graph/Graph.h"
#include "dialects/Plan/Plan.h"
#include "lib/Passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<plimsoll::graph::GraphDialect, plimsoll::plan::PlanDialect, mlir::func::FuncDialect>();
  mlir::registerTransformsPasses();
  plimsoll::registerPlimsollPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Plimsoll optimizer driver\n", registry));
}
