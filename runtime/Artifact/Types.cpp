// Arithmetic on artifact types.
#include "runtime/Artifact/Types.h"

#include <algorithm>

namespace plimsoll::artifact {

using Wide = __int128;
static constexpr Wide kWideLimit = Wide{1} << 62;

uint64_t dtypeBytes(DType dtype) {
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
  case DType::I8:
  case DType::U8:
  case DType::Bool:
    return 1;
  }
  return 0;
}

const char *dtypeName(DType dtype) {
  static const char *const names[] = {"f32", "f64", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool"};
  auto index = static_cast<size_t>(dtype);
  return index < std::size(names) ? names[index] : "?";
}

std::optional<uint64_t> elementCount(const std::vector<int64_t> &shape) {
  if (std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 0; }))
    return std::nullopt;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    return 0;
  Wide count = 1;
  for (int64_t size : shape) {
    count *= size;
    if (count > kWideLimit)
      return std::nullopt;
  }
  return static_cast<uint64_t>(count);
}

std::optional<uint64_t> byteCount(DType dtype, const std::vector<int64_t> &shape) {
  std::optional<uint64_t> count = elementCount(shape);
  if (!count || Wide{*count} * dtypeBytes(dtype) > kWideLimit)
    return std::nullopt;
  return *count * dtypeBytes(dtype);
}

std::optional<ByteRange> reach(const TensorViewT &view) {
  std::optional<uint64_t> count = elementCount(view.shape);
  if (!count || view.shape.size() > kMaxRank || view.shape.size() != view.strides.size() || view.offset > kWideLimit)
    return std::nullopt;
  if (*count == 0)
    return ByteRange{view.offset, view.offset};
  auto element = static_cast<Wide>(dtypeBytes(view.dtype));
  // At most kMaxRank terms below 2^62 · 2^63 · 8 in size would wrap 2^127, so each is bounded before it is added.
  Wide low = static_cast<Wide>(view.offset);
  Wide high = low + element;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    Wide span = static_cast<Wide>(view.shape[i] - 1) * view.strides[i];
    if (span > kWideLimit || span < -kWideLimit)
      return std::nullopt;
    (span < 0 ? low : high) += span * element;
    if (low < 0 || high > kWideLimit)
      return std::nullopt;
  }
  return ByteRange{static_cast<uint64_t>(low), static_cast<uint64_t>(high)};
}

std::vector<std::pair<int64_t, int64_t>> canonicalDims(const TensorViewT &view) {
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (size_t i = 0; i < view.shape.size() && i < view.strides.size(); ++i) {
    int64_t size = view.shape[i], stride = view.strides[i];
    if (size == 1)
      continue;
    bool merges = !dims.empty() && static_cast<Wide>(stride) * size == dims.back().second;
    if (merges)
      dims.back() = {dims.back().first * size, stride};
    else
      dims.emplace_back(size, stride);
  }
  return dims;
}

bool visitsSameElements(const TensorViewT &a, const TensorViewT &b) {
  return a.offset == b.offset && dtypeBytes(a.dtype) == dtypeBytes(b.dtype) && canonicalDims(a) == canonicalDims(b);
}

bool isContiguous(const TensorViewT &view) {
  if (elementCount(view.shape) == 0)
    return true;
  auto dims = canonicalDims(view);
  return dims.empty() || (dims.size() == 1 && dims[0].second == 1);
}

bool isInjective(const TensorViewT &view) {
  if (elementCount(view.shape) == 0)
    return true;
  auto dims = canonicalDims(view);
  for (auto &[size, stride] : dims)
    stride = stride < 0 ? -stride : stride;
  std::sort(dims.begin(), dims.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
  Wide covered = 0; // farthest element the smaller strides reach, from the view's lowest
  for (const auto &[size, stride] : dims) {
    if (stride <= covered)
      return false;
    covered += static_cast<Wide>(size - 1) * stride;
  }
  return true;
}

static std::string listText(const std::vector<int64_t> &values, char open, char close) {
  std::string text(1, open);
  for (size_t i = 0; i < values.size() && i < 2 * kMaxRank; ++i)
    text += (i ? "," : "") + std::to_string(values[i]);
  return text + (values.size() > 2 * kMaxRank ? ",…" : "") + close;
}

std::string viewText(const TensorViewT &view) {
  std::string text = dtypeName(view.dtype) + listText(view.shape, '[', ']');
  bool plain = view.shape.size() == view.strides.size() && reach(view) && isContiguous(view);
  return plain ? text : text + listText(view.strides, '{', '}');
}

std::vector<ViewUse> usesOf(const CommandT &command) {
  std::vector<ViewUse> uses;
  if (const LaunchT *launch = command.body.AsLaunch()) {
    for (const auto &operand : launch->operands)
      uses.push_back({operand->view.get(), operand->access, false});
  } else if (const LibraryCallT *call = command.body.AsLibraryCall()) {
    for (const auto &operand : call->operands)
      uses.push_back({operand->view.get(), operand->access, static_cast<int64_t>(uses.size()) == call->workspace});
  } else if (const CopyT *copy = command.body.AsCopy()) {
    uses.push_back({copy->source.get(), Access::Read, false});
    uses.push_back({copy->target.get(), Access::Write, false});
  }
  return uses;
}

} // namespace plimsoll::artifact
