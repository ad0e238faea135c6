// Reading node attributes with ONNX's defaults.
#pragma once

#include "lib/Frontend/ONNX/HostTensor.h"

namespace plimsoll::onnx {

const Attribute *findAttribute(const Node &node, const char *name);
int64_t intAttribute(const Node &node, const char *name, int64_t otherwise);
/// The float as the shortest decimal that names it: 0.9 rather than 0.899999976.
double floatAttribute(const Node &node, const char *name, double otherwise);
std::string textAttribute(const Node &node, const char *name, const std::string &otherwise);
std::vector<int64_t> intsAttribute(const Node &node, const char *name, std::vector<int64_t> otherwise = {});
double shortestDecimal(float value);

/// `axis` counted from the end when negative; nullopt outside [-rank, rank).
std::optional<int64_t> normalAxis(int64_t axis, int64_t rank);
/// Sorted, distinct axes from attribute `axes` (older opsets) or known input `position`; nullopt when unknown, repeated
/// or out of range. Empty when neither is given.
std::optional<std::vector<int64_t>> axesOf(const Node &node, const std::vector<const HostTensor *> &inputs,
                                           size_t position, int64_t rank);
/// The shape a Reshape node asks for, with 0 and -1 resolved; nullopt when counts do not agree.
std::optional<std::vector<int64_t>> reshapeTarget(const HostTensor &wanted, std::span<const int64_t> from,
                                                  bool allowZero);

/// A Slice resolved per dimension: result size, first index and (possibly negative) step.
struct SliceDims {
  std::vector<int64_t> starts, steps, sizes;
};
std::optional<SliceDims> sliceDims(const Node &node, const std::vector<const HostTensor *> &inputs,
                                   std::span<const int64_t> from);
/// Part sizes of Split and SplitToSequence along an axis of `size`; nullopt when they do not add up.
std::optional<std::vector<int64_t>> splitSizes(const Node &node, const HostTensor *sizes, int64_t size, int64_t opset);
/// Row-major strides.
std::vector<int64_t> stridesOf(std::span<const int64_t> dims);

} // namespace plimsoll::onnx
