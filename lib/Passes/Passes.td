//===- Passes.td - the compiler's passes, in pipeline order --------------------===//
// Description template: Changes. Requires. Guarantees. Assumes. Explains (remarks). Example.
//===---------------------------------------------------------------------------===//
#ifndef PLIMSOLL_PASSES
#define PLIMSOLL_PASSES

include "mlir/Pass/PassBase.td"

#endif
