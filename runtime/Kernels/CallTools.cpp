// Readers of a CallSpec: see CallTools.h.
#include "runtime/Kernels/CallTools.h"

namespace plimsoll::runtime {

using artifact::DType;

int64_t dtypeBytes(DType dtype) {
  switch (dtype) {
  case DType::F64:
  case DType::I64:
    return 8;
  case DType::F32:
  case DType::I32:
    return 4;
  case DType::F16:
  case DType::BF16:
  case DType::I16:
    return 2;
  default:
    return 1;
  }
}

const char *dtypeName(DType dtype) {
  static const char *const names[] = {"f32", "f64", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool"};
  const auto at = static_cast<size_t>(dtype);
  return at < std::size(names) ? names[at] : "an unknown type";
}

const artifact::AttributeT *findAttribute(const CallSpec &spec, std::string_view key) {
  for (const artifact::AttributeT &attribute : spec.attributes)
    if (attribute.key == key)
      return &attribute;
  return nullptr;
}

int64_t intAttribute(const CallSpec &spec, std::string_view key, int64_t fallback) {
  const artifact::AttributeT *found = findAttribute(spec, key);
  return found && !found->ints.empty() ? found->ints[0] : fallback;
}

std::vector<int64_t> intsAttribute(const CallSpec &spec, std::string_view key, size_t count, int64_t fallback) {
  if (const artifact::AttributeT *found = findAttribute(spec, key))
    return found->ints;
  return std::vector<int64_t>(count, fallback);
}

double floatAttribute(const CallSpec &spec, std::string_view key, double fallback) {
  const artifact::AttributeT *found = findAttribute(spec, key);
  return found && !found->floats.empty() ? found->floats[0] : fallback;
}

int64_t elementCount(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

std::vector<int64_t> contiguousStrides(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * shape[d];
  return strides;
}

bool isContiguous(const TensorSpec &tensor) {
  int64_t expected = 1;
  for (size_t d = tensor.shape.size(); d-- > 0;) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != expected)
      return false;
    expected *= tensor.shape[d];
  }
  return true;
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t d = 0; d < shape.size(); ++d)
    text += (d ? ", " : "") + std::to_string(shape[d]);
  return text + "]";
}

} // namespace plimsoll::runtime
