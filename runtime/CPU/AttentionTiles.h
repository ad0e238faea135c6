// What the two directions of tiled attention share: operand strides, tile sizes, packing, masks. Private to this
// folder.
//
// A tile of scores is at most 64 x 64, so S x T never exists. Vector lanes run over the tile's rows (forward, dq) or
// its keys (dk, dv); the other operand is read in place as scalars, so only the lane operand is packed (transposed),
// once per tile. Method: online softmax of Milakov and Gimelshein (2018) with the recomputing backward pass of Dao et
// al., "FlashAttention", NeurIPS 2022, section 3 and appendix B.
#pragma once

#include "runtime/CPU/CpuCalls.h"
#include "runtime/Kernels/Geometry.h"

#include <algorithm>
#include <limits>

namespace plimsoll::runtime {

inline constexpr int64_t AttentionTile = 64; ///< rows and keys per tile

/// Lanes that hold `count` rows or keys: whole vectors.
inline int64_t laneCount(int64_t count) { return (count + FloatLanes - 1) / FloatLanes * FloatLanes; }

/// Strides of a [B, H, I, D] operand whose last dimension is contiguous, in elements.
struct HeadStrides {
  int64_t batch = 0, head = 0, row = 0;
  HeadStrides() = default;
  explicit HeadStrides(const TensorSpec &t) : batch(t.strides[0]), head(t.strides[1]), row(t.strides[2]) {}
  const float *at(const void *base, int64_t b, int64_t h, int64_t i) const {
    return static_cast<const float *>(base) + b * batch + h * head + i * row;
  }
  float *at(void *base, int64_t b, int64_t h, int64_t i) const {
    return static_cast<float *>(base) + b * batch + h * head + i * row;
  }
};

/// A tile of scores [outer][lanes]: either keys outside and rows in lanes, or rows outside and keys in lanes.
struct ScoreTile {
  float *scores;
  int64_t batch, head;
  int64_t firstRow, rows, firstKey, keys;
  bool rowsInLanes;
  int64_t outer() const { return rowsInLanes ? keys : rows; }
  int64_t used() const { return rowsInLanes ? rows : keys; }
  int64_t lanes() const { return laneCount(used()); }
};

/// Applies the mask operand and causality to score tiles.
class AttentionMask {
public:
  AttentionMask() = default;
  AttentionMask(const CallSpec &spec, const AttentionGeometry &geometry, size_t maskOperand);
  /// Sets hidden scores to -inf, adds a float mask to the others. `mask` is the operand's address (null without mask).
  void apply(const ScoreTile &tile, const void *mask) const;

private:
  void applyOperand(const ScoreTile &tile, const void *mask) const;
  static void applyCausal(const ScoreTile &tile);
  bool causal = false, present = false, isBool = false;
  int64_t batch = 0, head = 0, row = 0, key = 0; ///< strides of the mask
};

/// packed[d][lane] = factor * rows[lane][d] for lane < count, 0 for the lanes up to laneCount(count).
void packTransposed(const float *rows, int64_t rowStride, int64_t count, int64_t depth, float factor, float *packed);

/// rows[lane][d] = factor[lane] * packed[d][lane] for lane < count; the inverse of packTransposed.
void unpackTransposed(const float *packed, int64_t count, int64_t depth, const float *factor, float *rows,
                      int64_t rowStride);

} // namespace plimsoll::runtime
