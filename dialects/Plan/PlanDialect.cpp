// Registers the plan dialect.
#include "dialects/Plan/Plan.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace plimsoll::plan;

#include "dialects/Plan/PlanDialect.cpp.inc"
#include "dialects/Plan/PlanEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Plan/PlanAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Plan/PlanOps.cpp.inc"

void PlanDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Plan/PlanAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Plan/PlanOps.cpp.inc"
      >();
}

uint64_t plimsoll::plan::windowBytes(OperandAttr window) {
  RankedTensorType type = window.getType();
  if (type.getNumElements() == 0)
    return 0;
  uint64_t last = 0;
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), window.getStrides()))
    last += static_cast<uint64_t>((size - 1) * stride);
  uint64_t element = std::max<uint64_t>(type.getElementType().getIntOrFloatBitWidth() / 8, 1);
  return (last + 1) * element;
}
