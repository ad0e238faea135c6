// Decoding of checked calls into numbers: see Geometry.h.
#include "runtime/Kernels/Geometry.h"

namespace plimsoll::runtime {

/// Fills the attributes shared by convolutions and pools; dimension d of the call is slot 3 - rank + d.
static WindowGeometry windowGeometry(const CallSpec &spec, const TensorSpec &x, const TensorSpec &y) {
  WindowGeometry window;
  const size_t rank = x.shape.size() - 2;
  window.spatialRank = static_cast<int>(rank);
  const std::vector<int64_t> strides = intsAttribute(spec, "strides", rank, 1);
  const std::vector<int64_t> dilations = intsAttribute(spec, "dilations", rank, 1);
  const std::vector<int64_t> pads = intsAttribute(spec, "pads", 2 * rank, 0);
  for (size_t d = 0; d < rank; ++d) {
    const size_t slot = 3 - rank + d;
    window.input[slot] = x.shape[2 + d];
    window.output[slot] = y.shape[2 + d];
    window.stride[slot] = strides[d];
    window.dilation[slot] = dilations[d];
    window.padBegin[slot] = pads[d];
    window.padEnd[slot] = pads[rank + d];
  }
  return window;
}

ConvGeometry convGeometry(const CallSpec &spec, const TensorSpec &x, const TensorSpec &w, const TensorSpec &y) {
  ConvGeometry conv;
  conv.window = windowGeometry(spec, x, y);
  const size_t rank = x.shape.size() - 2;
  for (size_t d = 0; d < rank; ++d)
    conv.window.kernel[3 - rank + d] = w.shape[2 + d];
  conv.batch = x.shape[0];
  conv.inChannels = x.shape[1];
  conv.outChannels = y.shape[1];
  conv.groups = intAttribute(spec, "groups", 1);
  return conv;
}

PoolGeometry poolGeometry(const CallSpec &spec, const TensorSpec &x, const TensorSpec &y) {
  PoolGeometry pool;
  pool.window = windowGeometry(spec, x, y);
  const size_t rank = x.shape.size() - 2;
  const std::vector<int64_t> kernel = intsAttribute(spec, "kernel", rank, 1);
  for (size_t d = 0; d < rank; ++d)
    pool.window.kernel[3 - rank + d] = kernel[d];
  pool.planes = x.shape[0] * x.shape[1];
  return pool;
}

AxisSplit splitAt(const std::vector<int64_t> &shape, int64_t axis) {
  AxisSplit split;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d)
    (d < axis ? split.outer : d > axis ? split.inner : split.extent) *= shape[d];
  return split;
}

int64_t axisAttribute(const CallSpec &spec, size_t rank) {
  const int64_t axis = intAttribute(spec, "axis", 0);
  return axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
}

AttentionGeometry attentionGeometry(const CallSpec &spec, const TensorSpec &q, const TensorSpec &k,
                                    const TensorSpec &v) {
  AttentionGeometry geometry;
  geometry.batch = q.shape[0];
  geometry.heads = q.shape[1];
  geometry.rows = q.shape[2];
  geometry.depth = q.shape[3];
  geometry.keyHeads = k.shape[1];
  geometry.keys = k.shape[2];
  geometry.valueDepth = v.shape[3];
  geometry.scale = floatAttribute(spec, "scale", 1.0);
  geometry.causal = intAttribute(spec, "causal", 0) != 0;
  geometry.hasMask = intAttribute(spec, "has_mask", 0) != 0;
  return geometry;
}

} // namespace plimsoll::runtime
