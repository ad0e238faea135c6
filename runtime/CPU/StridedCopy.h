// Copies between two strided views of equal shape, reduced at load to the fewest dimensions: the form behind copy and
// fill.
#pragma once

#include "runtime/Kernels/CallTools.h"

namespace plimsoll::runtime {

/// One loop dimension of a copy; strides in elements.
struct CopyDimension {
  int64_t extent, source, target;
};

/// A copy with dimensions ordered from the largest target stride to the smallest and neighbours merged where both sides
/// allow. The last one or two dimensions form the inner block; the others are the outer loop.
class StridedCopy {
public:
  StridedCopy(const TensorSpec &source, const TensorSpec &target);

  /// Copies everything on `threads` threads. The views must not overlap.
  void run(const void *source, void *target, unsigned threads) const;

private:
  enum class Form { Block, Rows, Transpose, Strided };
  void order();
  void merge();
  void classify();
  void offsets(int64_t outer, int64_t &source, int64_t &target) const;
  void runBlock(const char *source, char *target, unsigned threads) const;
  void runRows(const char *source, char *target, unsigned threads) const;
  template <typename T> void runTiles(const T *source, T *target, unsigned threads) const;
  template <typename T> void runStrided(const T *source, T *target, unsigned threads) const;
  template <typename T> void runElements(const void *source, void *target, unsigned threads) const;

  int64_t bytes;                     ///< of an element
  std::vector<CopyDimension> outers; ///< row-major
  CopyDimension middle{1, 0, 0};     ///< Transpose: the dimension that is contiguous in the source
  CopyDimension inner{1, 1, 1};      ///< the dimension with the smallest target stride
  int64_t outerCount = 1;
  Form form = Form::Strided;
};

} // namespace plimsoll::runtime
