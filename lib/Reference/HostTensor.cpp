// Host tensors: construction, rounding to element types, bytes and index arithmetic.
#include "lib/Reference/HostTensor.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/APFloat.h"

#include <bit>
#include <cstring>

using namespace mlir;

namespace plimsoll::reference {

HostTensor HostTensor::zeros(Type type) {
  HostTensor tensor{cast<RankedTensorType>(type), {}, {}};
  if (tensor.isFloat())
    tensor.floats.assign(tensor.size(), 0.0);
  else
    tensor.ints.assign(tensor.size(), 0);
  return tensor;
}

HostTensor HostTensor::ofFloats(Type type, std::vector<double> values) {
  HostTensor tensor{cast<RankedTensorType>(type), std::move(values), {}};
  assert(tensor.isFloat() && static_cast<int64_t>(tensor.floats.size()) == tensor.size());
  return tensor;
}

HostTensor HostTensor::ofInts(Type type, std::vector<int64_t> values) {
  HostTensor tensor{cast<RankedTensorType>(type), {}, std::move(values)};
  assert(!tensor.isFloat() && static_cast<int64_t>(tensor.ints.size()) == tensor.size());
  return tensor;
}

static APFloat toElement(double value, Type element) {
  APFloat number(value);
  bool losesInfo = false;
  number.convert(cast<FloatType>(element).getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
  return number;
}

double roundToElement(double value, Type element) {
  if (element.isF64())
    return value;
  if (element.isF32())
    return static_cast<float>(value);
  return toElement(value, element).convertToDouble();
}

int64_t wrapToElement(int64_t value, Type element) {
  unsigned width = element.getIntOrFloatBitWidth();
  if (width == 64)
    return value;
  auto bits = static_cast<uint64_t>(value) & ((uint64_t{1} << width) - 1);
  bool isSigned = width > 1 && !element.isUnsignedInteger();
  if (isSigned && bits >> (width - 1))
    bits |= ~uint64_t{0} << width;
  return static_cast<int64_t>(bits);
}

void roundInPlace(HostTensor &tensor) {
  Type element = tensor.type.getElementType();
  for (double &value : tensor.floats)
    value = roundToElement(value, element);
  for (int64_t &value : tensor.ints)
    value = wrapToElement(value, element);
}

static HostTensor fromDense(DenseElementsAttr dense) {
  HostTensor tensor = HostTensor::zeros(dense.getType());
  if (tensor.isFloat()) {
    for (auto [slot, value] : llvm::zip_equal(tensor.floats, dense.getValues<APFloat>()))
      slot = value.convertToDouble();
    return tensor;
  }
  bool isUnsigned = tensor.type.getElementType().isUnsignedInteger() || tensor.type.getElementType().isInteger(1);
  for (auto [slot, value] : llvm::zip_equal(tensor.ints, dense.getValues<APInt>()))
    slot = isUnsigned ? static_cast<int64_t>(value.getZExtValue()) : value.getSExtValue();
  return tensor;
}

FailureOr<HostTensor> fromAttribute(ElementsAttr value) {
  if (auto dense = dyn_cast<DenseElementsAttr>(value))
    return fromDense(dense);
  auto resource = dyn_cast<DenseResourceElementsAttr>(value);
  if (!resource || !resource.getRawHandle().getBlob())
    return failure();
  return fromBytes(cast<RankedTensorType>(resource.getType()), resource.getRawHandle().getBlob()->getData());
}

static size_t elementBytes(Type element) { return std::max<size_t>(element.getIntOrFloatBitWidth() / 8, 1); }

std::vector<char> toBytes(const HostTensor &tensor) {
  static_assert(std::endian::native == std::endian::little);
  Type element = tensor.type.getElementType();
  size_t width = elementBytes(element);
  std::vector<char> bytes(width * tensor.size());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    uint64_t bits = tensor.isFloat() ? toElement(tensor.floats[i], element).bitcastToAPInt().getZExtValue()
                                     : static_cast<uint64_t>(tensor.ints[i]);
    std::memcpy(bytes.data() + i * width, &bits, width);
  }
  return bytes;
}

FailureOr<HostTensor> fromBytes(RankedTensorType type, ArrayRef<char> bytes) {
  HostTensor tensor = HostTensor::zeros(type);
  Type element = type.getElementType();
  size_t width = elementBytes(element);
  if (bytes.size() != width * tensor.size())
    return failure();
  for (int64_t i = 0; i < tensor.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * width, width);
    if (tensor.isFloat())
      tensor.floats[i] =
          APFloat(cast<FloatType>(element).getFloatSemantics(), APInt(width * 8, bits)).convertToDouble();
    else
      tensor.ints[i] = wrapToElement(static_cast<int64_t>(bits), element);
  }
  return tensor;
}

SmallVector<int64_t> denseStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * shape[d];
  return strides;
}

void forEachIndex(ArrayRef<int64_t> shape, function_ref<void(ArrayRef<int64_t>)> visit) {
  if (llvm::is_contained(shape, 0))
    return;
  SmallVector<int64_t> index(shape.size(), 0);
  while (true) {
    visit(index);
    size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1])
      index[--d] = 0;
    if (d == 0)
      return;
  }
}

int64_t linearIndex(ArrayRef<int64_t> index, ArrayRef<int64_t> shape) {
  int64_t linear = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    linear = linear * shape[d] + index[d];
  return linear;
}

} // namespace plimsoll::reference
