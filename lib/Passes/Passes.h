// Every pass of the compiler, declared from Passes.td in pipeline order.
#pragma once

#include "dialects/Graph/Graph.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace plimsoll {

#define GEN_PASS_DECL
#include "lib/Passes/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "lib/Passes/Passes.h.inc"

} // namespace plimsoll
