// Storage of host constants: rounding, splats and repeats.
#include "lib/Frontend/ONNX/Attributes.h"

#include "llvm/ADT/APFloat.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace plimsoll::onnx {

static const llvm::fltSemantics &semantics(DType dtype) {
  return dtype == DType::F16 ? llvm::APFloat::IEEEhalf() : llvm::APFloat::BFloat();
}

double roundReal(DType dtype, double value) {
  if (dtype == DType::F64)
    return value;
  if (dtype == DType::F32)
    return static_cast<double>(static_cast<float>(value));
  llvm::APFloat number(value);
  bool inexact = false;
  number.convert(semantics(dtype), llvm::APFloat::rmNearestTiesToEven, &inexact);
  number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &inexact);
  return number.convertToDouble();
}

int64_t wrapInteger(DType dtype, int64_t value) {
  switch (dtype) {
  case DType::Bool:
    return value != 0;
  case DType::U8:
    return static_cast<uint8_t>(value);
  case DType::I8:
    return static_cast<int8_t>(value);
  case DType::I16:
    return static_cast<int16_t>(value);
  case DType::I32:
    return static_cast<int32_t>(value);
  default:
    return value;
  }
}

/// Float to integer as a saturating truncation; NaN gives the smallest value.
static int64_t truncated(double value) {
  if (!(value > -9.2233720368547758e18))
    return INT64_MIN;
  return value >= 9.2233720368547758e18 ? INT64_MAX : static_cast<int64_t>(value);
}

void HostTensor::push(double value) {
  if (holdsReals())
    reals.push_back(roundReal(dtype, value));
  else
    ints.push_back(dtype == DType::Bool ? value != 0 : wrapInteger(dtype, truncated(value)));
}
void HostTensor::push(int64_t value) {
  if (holdsReals())
    reals.push_back(roundReal(dtype, static_cast<double>(value)));
  else
    ints.push_back(wrapInteger(dtype, value));
}
void HostTensor::pushFrom(const HostTensor &from, uint64_t i) {
  if (holdsReals())
    reals.push_back(from.reals[from.splat ? 0 : i]);
  else
    ints.push_back(from.ints[from.splat ? 0 : i]);
}

HostTensor hostInts(std::vector<int64_t> values, bool scalar) {
  HostTensor tensor;
  if (!scalar)
    tensor.dims = {static_cast<int64_t>(values.size())};
  tensor.ints = std::move(values);
  return tensor;
}

HostTensor hostSplat(DType dtype, std::vector<int64_t> dims, double value) {
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.dims = std::move(dims);
  tensor.splat = true;
  tensor.push(value);
  return tensor;
}

template <typename In> static In load(const std::byte *bytes, uint64_t i) {
  In value;
  std::memcpy(&value, bytes + i * sizeof(In), sizeof(In));
  return value;
}

static double loadReal(DType dtype, const std::byte *bytes, uint64_t i) {
  if (dtype == DType::F64)
    return load<double>(bytes, i);
  if (dtype == DType::F32)
    return load<float>(bytes, i);
  return llvm::APFloat(semantics(dtype), llvm::APInt(16, load<uint16_t>(bytes, i))).convertToDouble();
}

static int64_t loadInteger(DType dtype, const std::byte *bytes, uint64_t i) {
  switch (dtype) {
  case DType::Bool:
    return load<uint8_t>(bytes, i) != 0;
  case DType::U8:
    return load<uint8_t>(bytes, i);
  case DType::I8:
    return load<int8_t>(bytes, i);
  case DType::I16:
    return load<int16_t>(bytes, i);
  case DType::I32:
    return load<int32_t>(bytes, i);
  default:
    return load<int64_t>(bytes, i);
  }
}

std::optional<HostTensor> hostFrom(const TensorData &data) {
  std::optional<uint64_t> count = elementCount(data.dims);
  if (elementBytes(data.dtype) == 0 || !count || *count > hostElementLimit ||
      data.bytes.size() != *count * elementBytes(data.dtype))
    return std::nullopt;
  HostTensor tensor;
  tensor.dtype = data.dtype;
  tensor.dims = data.dims;
  for (uint64_t i = 0; i < *count; ++i)
    if (tensor.holdsReals())
      tensor.reals.push_back(loadReal(data.dtype, data.bytes.data(), i));
    else
      tensor.ints.push_back(loadInteger(data.dtype, data.bytes.data(), i));
  return tensor;
}

template <typename Out> static void store(std::vector<std::byte> &bytes, Out value) {
  size_t at = bytes.size();
  bytes.resize(at + sizeof(Out));
  std::memcpy(bytes.data() + at, &value, sizeof(Out));
}

std::vector<std::byte> hostBytes(const HostTensor &tensor) {
  std::vector<std::byte> bytes;
  uint64_t count = tensor.count(), width = elementBytes(tensor.dtype);
  bytes.reserve(count * width);
  for (uint64_t i = 0; i < count; ++i) {
    if (tensor.dtype == DType::F64)
      store(bytes, tensor.real(i));
    else if (tensor.dtype == DType::F32)
      store(bytes, static_cast<float>(tensor.real(i)));
    else if (tensor.holdsReals()) {
      llvm::APFloat number(tensor.real(i));
      bool inexact = false;
      number.convert(semantics(tensor.dtype), llvm::APFloat::rmNearestTiesToEven, &inexact);
      store(bytes, static_cast<uint16_t>(number.bitcastToAPInt().getZExtValue()));
    } else {
      int64_t value = tensor.integer(i);
      size_t at = bytes.size();
      bytes.resize(at + width);
      std::memcpy(bytes.data() + at, &value, width);
    }
  }
  return bytes;
}

static bool sameElement(const HostTensor &tensor, uint64_t i, uint64_t j) {
  if (!tensor.holdsReals())
    return tensor.ints[i] == tensor.ints[j];
  return std::bit_cast<uint64_t>(tensor.reals[i]) == std::bit_cast<uint64_t>(tensor.reals[j]);
}

void findSplat(HostTensor &tensor) {
  uint64_t count = tensor.count();
  if (tensor.splat || count == 0)
    return;
  for (uint64_t i = 1; i < count; ++i)
    if (!sameElement(tensor, i, 0))
      return;
  tensor.splat = true;
  tensor.ints.resize(tensor.holdsReals() ? 0 : 1);
  tensor.reals.resize(tensor.holdsReals() ? 1 : 0);
}

/// Whether all slices along dimension `d` are equal.
static bool repeats(const HostTensor &tensor, size_t d) {
  uint64_t inner = 1, size = static_cast<uint64_t>(tensor.dims[d]);
  for (size_t i = d + 1; i < tensor.dims.size(); ++i)
    inner *= static_cast<uint64_t>(tensor.dims[i]);
  uint64_t outer = tensor.count() / (inner * size);
  for (uint64_t o = 0; o < outer; ++o)
    for (uint64_t i = inner; i < inner * size; ++i)
      if (!sameElement(tensor, o * inner * size + i, o * inner * size + i % inner))
        return false;
  return true;
}

HostTensor shrinkRepeats(const HostTensor &tensor) {
  HostTensor result = tensor;
  if (tensor.splat) {
    std::fill(result.dims.begin(), result.dims.end(), 1);
    return result;
  }
  for (size_t d = 0; d < result.dims.size(); ++d) {
    if (result.dims[d] < 2 || !repeats(result, d))
      continue;
    HostTensor smaller;
    smaller.dtype = tensor.dtype;
    smaller.dims = result.dims;
    smaller.dims[d] = 1;
    uint64_t inner = 1, size = static_cast<uint64_t>(result.dims[d]);
    for (size_t i = d + 1; i < result.dims.size(); ++i)
      inner *= static_cast<uint64_t>(result.dims[i]);
    for (uint64_t i = 0; i < result.count(); ++i)
      if (i / inner % size == 0)
        smaller.pushFrom(result, i);
    result = std::move(smaller);
  }
  return result;
}

std::optional<std::vector<int64_t>> broadcastShapes(std::span<const int64_t> a, std::span<const int64_t> b) {
  std::vector<int64_t> out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      return std::nullopt;
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

std::optional<std::vector<HostTensor>> foldNode(const Node &node, const std::vector<const HostTensor *> &inputs,
                                                int64_t opset) {
  if (!node.domain.empty())
    return std::nullopt;
  if (auto result = foldElementwise(node, inputs))
    return result;
  if (auto result = foldMovement(node, inputs, opset))
    return result;
  if (auto result = foldIndexing(node, inputs))
    return result;
  return foldReduction(node, inputs);
}

} // namespace plimsoll::onnx
