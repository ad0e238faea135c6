// Packing and masking of attention tiles: see AttentionTiles.h.
#include "runtime/CPU/AttentionTiles.h"

namespace plimsoll::runtime {

static constexpr float MinusInfinity = -std::numeric_limits<float>::infinity();

AttentionMask::AttentionMask(const CallSpec &spec, const AttentionGeometry &geometry, size_t maskOperand)
    : causal(geometry.causal), present(geometry.hasMask) {
  if (!present)
    return;
  const TensorSpec &mask = spec.operands[maskOperand];
  isBool = mask.dtype == artifact::DType::Bool;
  batch = mask.strides[0];
  head = mask.strides[1];
  row = mask.strides[2];
  key = mask.strides[3];
}

void AttentionMask::apply(const ScoreTile &tile, const void *mask) const {
  if (present)
    applyOperand(tile, mask);
  if (causal && tile.firstKey + tile.keys > tile.firstRow + 1)
    applyCausal(tile);
}

static float masked(float score, uint8_t keep) { return keep ? score : MinusInfinity; }

static float masked(float score, float term) { return term == MinusInfinity ? MinusInfinity : score + term; }

template <typename M> static void maskLanes(float *scores, int64_t used, const M *terms, int64_t stride) {
  if (stride == 0)
    for (int64_t lane = 0; lane < used; ++lane)
      scores[lane] = masked(scores[lane], *terms);
  else if (stride == 1)
    for (int64_t lane = 0; lane < used; ++lane)
      scores[lane] = masked(scores[lane], terms[lane]);
  else
    for (int64_t lane = 0; lane < used; ++lane)
      scores[lane] = masked(scores[lane], terms[lane * stride]);
}

void AttentionMask::applyOperand(const ScoreTile &tile, const void *mask) const {
  const int64_t outerStride = tile.rowsInLanes ? key : row, laneStride = tile.rowsInLanes ? row : key;
  const int64_t base = tile.batch * batch + tile.head * head + tile.firstRow * row + tile.firstKey * key;
  for (int64_t outer = 0; outer < tile.outer(); ++outer) {
    float *scores = tile.scores + outer * tile.lanes();
    const int64_t at = base + outer * outerStride;
    if (isBool)
      maskLanes(scores, tile.used(), static_cast<const uint8_t *>(mask) + at, laneStride);
    else
      maskLanes(scores, tile.used(), static_cast<const float *>(mask) + at, laneStride);
  }
}

/// Row s sees keys t <= s.
void AttentionMask::applyCausal(const ScoreTile &tile) {
  const int64_t shift = tile.firstKey - tile.firstRow;
  for (int64_t outer = 0; outer < tile.outer(); ++outer) {
    float *scores = tile.scores + outer * tile.lanes();
    if (tile.rowsInLanes)
      std::fill(scores, scores + std::clamp<int64_t>(outer + shift, 0, tile.used()), MinusInfinity);
    else
      std::fill(scores + std::clamp<int64_t>(outer - shift + 1, 0, tile.used()), scores + tile.used(), MinusInfinity);
  }
}

void packTransposed(const float *rows, int64_t rowStride, int64_t count, int64_t depth, float factor, float *packed) {
  const int64_t lanes = laneCount(count);
  for (int64_t d = 0; d < depth; ++d) {
    float *target = packed + d * lanes;
    for (int64_t lane = 0; lane < count; ++lane)
      target[lane] = factor * rows[lane * rowStride + d];
    std::fill(target + count, target + lanes, 0.0f);
  }
}

void unpackTransposed(const float *packed, int64_t count, int64_t depth, const float *factor, float *rows,
                      int64_t rowStride) {
  const int64_t lanes = laneCount(count);
  for (int64_t lane = 0; lane < count; ++lane)
    for (int64_t d = 0; d < depth; ++d)
      rows[lane * rowStride + d] = factor[lane] * packed[d * lanes + lane];
}

} // namespace plimsoll::runtime
