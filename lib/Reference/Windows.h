// Window arithmetic of convolutions and pools: which input elements one output element looks at.
#pragma once

#include "lib/Reference/HostTensor.h"

namespace plimsoll::reference {

/// Sliding windows over the spatial dimensions `input` (s...): output index o and tap k meet input o*stride +
/// k*dilation - pad, per dimension. pads = begins then ends.
struct Windows {
  llvm::ArrayRef<int64_t> input, kernel, strides, pads, dilations;

  /// Elements of one input plane.
  int64_t planeSize() const {
    int64_t size = 1;
    for (int64_t extent : input)
      size *= extent;
    return size;
  }

  /// Calls visit(tap, position) for the taps of output `index` that fall inside the input: both are row-major
  /// positions, of the tap in the kernel and of the element in the plane.
  void forEachTap(llvm::ArrayRef<int64_t> index, llvm::function_ref<void(int64_t, int64_t)> visit) const {
    int64_t tap = 0;
    forEachIndex(kernel, [&](llvm::ArrayRef<int64_t> offset) {
      int64_t at = 0;
      bool inside = true;
      for (size_t d = 0; d < input.size(); ++d) {
        int64_t coordinate = index[d] * strides[d] + offset[d] * dilations[d] - pads[d];
        inside &= coordinate >= 0 && coordinate < input[d];
        at = at * input[d] + coordinate;
      }
      if (inside)
        visit(tap, at);
      ++tap;
    });
  }

  /// Taps of output `index` that fall inside the padded input; a window rounded up (ceil mode) may hang over the end.
  int64_t paddedTaps(llvm::ArrayRef<int64_t> index) const {
    int64_t taps = 1;
    for (size_t d = 0; d < input.size(); ++d) {
      int64_t start = index[d] * strides[d] - pads[d], end = input[d] + pads[d + input.size()], inside = 0;
      for (int64_t k = 0; k < kernel[d]; ++k)
        inside += start + k * dilations[d] < end;
      taps *= std::max<int64_t>(inside, 1);
    }
    return taps;
  }
};

} // namespace plimsoll::reference
