// LLVM-dialect loads and stores of one vector of lanes.
#include "lib/Codegen/CPU/ElementAccess.h"

#include "lib/Codegen/CPU/ScalarOps.h"
#include "lib/Codegen/CPU/VectorMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace plimsoll::codegen {

Type storageType(Type element) {
  MLIRContext *context = element.getContext();
  if (element.isInteger(1))
    return IntegerType::get(context, 8);
  if (element.isBF16())
    return IntegerType::get(context, 16);
  return element.isF16() ? element : computeType(element);
}

static unsigned bytesOf(Type element) { return storageType(element).getIntOrFloatBitWidth() / 8; }
static Type laneType(Type element, unsigned width) {
  return width == 1 ? element : Type(VectorType::get({static_cast<int64_t>(width)}, element));
}

Value advance(ImplicitLocOpBuilder &b, Value base, Value elements, Type element) {
  return LLVM::GEPOp::create(b, base.getType(), storageType(element), base, ValueRange{elements});
}

static Value fromStorage(ImplicitLocOpBuilder &b, Value stored, Type element) {
  if (element.isInteger(1))
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, stored, constantInt(b, stored.getType(), 0));
  if (element.isBF16())
    return fromBf16Bits(b, stored);
  return element.isF16() ? Value(arith::ExtFOp::create(b, typeLike(stored.getType(), b.getF32Type()), stored)) : stored;
}

static Value toStorage(ImplicitLocOpBuilder &b, Value value, Type element) {
  Type type = typeLike(value.getType(), storageType(element));
  if (element.isInteger(1))
    return arith::ExtUIOp::create(b, type, value);
  if (element.isBF16())
    return roundToBf16Bits(b, value);
  return element.isF16() ? Value(arith::TruncFOp::create(b, type, value)) : value;
}

// Addresses of the lanes of a strided access.
static Value lanePointers(ImplicitLocOpBuilder &b, Value pointer, const LaneAccess &access) {
  SmallVector<int64_t> offsets;
  for (unsigned lane = 0; lane < access.width; ++lane)
    offsets.push_back(static_cast<int64_t>(lane) * access.stride);
  auto indexType = VectorType::get({static_cast<int64_t>(access.width)}, b.getI64Type());
  Value index = arith::ConstantOp::create(b, DenseElementsAttr::get(indexType, ArrayRef<int64_t>(offsets)));
  Type pointers = VectorType::get({static_cast<int64_t>(access.width)}, pointer.getType());
  return LLVM::GEPOp::create(b, pointers, storageType(access.element), pointer, ValueRange{index});
}

static Value maskOf(ImplicitLocOpBuilder &b, const LaneAccess &access) {
  return access.mask ? access.mask : constantInt(b, laneType(b.getI1Type(), access.width), 1);
}
static Value zeroOf(ImplicitLocOpBuilder &b, Type type) {
  return isa<FloatType>(getElementTypeOrSelf(type)) ? constantLike(b, type, 0) : constantInt(b, type, 0);
}

Value loadLanes(ImplicitLocOpBuilder &b, Value pointer, const LaneAccess &access) {
  Type element = storageType(access.element), type = laneType(element, access.width);
  unsigned bytes = bytesOf(access.element);
  if (access.width == 1 || access.stride == 0) {
    Value one = fromStorage(b, LLVM::LoadOp::create(b, element, pointer, bytes), access.element);
    return access.width == 1
               ? one
               : vector::BroadcastOp::create(b, cast<VectorType>(typeLike(type, one.getType())), one).getResult();
  }
  Value stored;
  if (access.stride != 1)
    stored = LLVM::masked_gather::create(b, type, lanePointers(b, pointer, access), maskOf(b, access),
                                         ValueRange{zeroOf(b, type)}, b.getI32IntegerAttr(static_cast<int32_t>(bytes)));
  else if (access.mask)
    stored = LLVM::MaskedLoadOp::create(b, type, pointer, access.mask, zeroOf(b, type),
                                        b.getI32IntegerAttr(static_cast<int32_t>(bytes)),
                                        /*nontemporal=*/UnitAttr());
  else
    stored = LLVM::LoadOp::create(b, type, pointer, bytes);
  return fromStorage(b, stored, access.element);
}

void storeLanes(ImplicitLocOpBuilder &b, Value value, Value pointer, const LaneAccess &access) {
  Value stored = toStorage(b, value, access.element);
  auto bytes = static_cast<int32_t>(bytesOf(access.element));
  if (access.width > 1 && access.stride != 1)
    LLVM::masked_scatter::create(b, stored, lanePointers(b, pointer, access), maskOf(b, access),
                                 b.getI32IntegerAttr(bytes));
  else if (access.width > 1 && access.mask)
    LLVM::MaskedStoreOp::create(b, stored, pointer, access.mask, b.getI32IntegerAttr(bytes));
  else
    LLVM::StoreOp::create(b, stored, pointer, static_cast<unsigned>(bytes));
}

} // namespace plimsoll::codegen
