// What the operands and attributes of a checked call mean as numbers: windows of convolutions and pools, the three-way
// split of a tensor around an axis, the sizes of an attention call. Filled once at load; kernels only read them.
#pragma once

#include "runtime/Kernels/CallTools.h"

#include <array>

namespace plimsoll::runtime {

/// Sliding windows over up to three spatial dimensions; absent leading dimensions have extent 1, kernel 1, stride 1.
struct WindowGeometry {
  int spatialRank = 0;                      ///< spatial dimensions of the call, 1..3
  std::array<int64_t, 3> input{1, 1, 1};    ///< input extent (elements)
  std::array<int64_t, 3> output{1, 1, 1};   ///< output extent (positions of the window)
  std::array<int64_t, 3> kernel{1, 1, 1};   ///< window extent (taps)
  std::array<int64_t, 3> stride{1, 1, 1};   ///< distance of neighbouring windows (input elements)
  std::array<int64_t, 3> dilation{1, 1, 1}; ///< distance of neighbouring taps (input elements)
  std::array<int64_t, 3> padBegin{0, 0, 0}; ///< padding before the first input element
  std::array<int64_t, 3> padEnd{0, 0, 0};   ///< padding after the last input element

  int64_t inputPlane() const { return input[0] * input[1] * input[2]; }
  int64_t outputPlane() const { return output[0] * output[1] * output[2]; }
  int64_t kernelTaps() const { return kernel[0] * kernel[1] * kernel[2]; }
  /// Input coordinate of tap `tap` of window `position` in dimension d; may lie in the padding.
  int64_t coordinate(int d, int64_t position, int64_t tap) const {
    return position * stride[d] - padBegin[d] + tap * dilation[d];
  }
  bool inside(int d, int64_t at) const { return at >= 0 && at < input[d]; }
};

/// A convolution: x [N, C, s...], w [O, C/groups, k...], y [N, O, t...].
struct ConvGeometry {
  WindowGeometry window;
  int64_t batch = 0, inChannels = 0, outChannels = 0, groups = 1;
  int64_t inPerGroup() const { return inChannels / groups; }
  int64_t outPerGroup() const { return outChannels / groups; }
};

/// `x`, `w`, `y` are the operands that play these roles in conv or one of its adjoints.
ConvGeometry convGeometry(const CallSpec &spec, const TensorSpec &x, const TensorSpec &w, const TensorSpec &y);

/// A pool over x [N, C, s...] giving y [N, C, t...]: `planes` = N * C.
struct PoolGeometry {
  WindowGeometry window;
  int64_t planes = 0;
};

PoolGeometry poolGeometry(const CallSpec &spec, const TensorSpec &x, const TensorSpec &y);

/// A tensor seen as [outer, extent, inner] around an axis.
struct AxisSplit {
  int64_t outer = 1, extent = 1, inner = 1;
};

AxisSplit splitAt(const std::vector<int64_t> &shape, int64_t axis);

/// The axis attribute, counted from the front.
int64_t axisAttribute(const CallSpec &spec, size_t rank);

/// Sizes and flags of attention: q [B, H, S, D], k [B, Hk, T, D], v [B, Hk, T, Dv].
struct AttentionGeometry {
  int64_t batch = 0, heads = 0, keyHeads = 0, rows = 0, keys = 0, depth = 0, valueDepth = 0;
  double scale = 1.0;
  bool causal = false; ///< row s sees keys t <= s (aligned at the upper left)
  bool hasMask = false;
  int64_t headsPerKeyHead() const { return heads / keyHeads; }
};

AttentionGeometry attentionGeometry(const CallSpec &spec, const TensorSpec &q, const TensorSpec &k,
                                    const TensorSpec &v);

} // namespace plimsoll::runtime
