// Small dense kernels on tiles that fit in cache, compiled once per instruction set and chosen at run time. They are
// the arithmetic of attention and of the matrix products that oneDNN has no fast kernel for. Lanes (vector elements)
// never mix, so padding lanes may hold anything.
#pragma once

#include <cstdint>

namespace plimsoll::runtime {

/// Lanes come in groups of 64 bytes: 16 floats or 8 doubles.
inline constexpr int64_t FloatLanes = 16;
inline constexpr int64_t DoubleLanes = 8;

/// c[m][n] (+)= sum over k of a[m * aRow + k * aColumn] * b[k * bRow + n]. n is a multiple of the lane group; rows of b
/// and c are contiguous. Strides in elements.
template <typename T> struct ProductTile {
  int64_t m, n, k;
  const T *a;
  int64_t aRow, aColumn;
  const T *b;
  int64_t bRow;
  T *c;
  int64_t cRow;
  bool accumulate;
};

/// One step of the online softmax over a tile of scores [keys][lanes], a query row per lane: on return scores hold
/// exp(score - new maximum), `maximum` and `sum` are the running statistics, `correction` is what earlier sums must be
/// multiplied with.
struct SoftmaxTile {
  float *scores;
  int64_t keys, lanes;
  float *maximum, *sum, *correction;
};

/// Turns scores and gradients of probabilities into probabilities and gradients of scores: p = exp(score - lse),
/// ds = p * (dp - delta). lse and delta belong to query rows; a row with lse = +inf has only zeros.
struct SoftmaxGradTile {
  float *scores;    ///< [outer][lanes]: scores in, probabilities out
  float *gradients; ///< [outer][lanes]: dp in, ds out
  int64_t outer, lanes;
  const float *lse, *delta; ///< per lane (rows in lanes) or per outer index (keys in lanes)
};

struct TileKernels {
  const char *name; ///< "avx512", "avx2", "generic"
  void (*productFloat)(const ProductTile<float> &tile);
  void (*productDouble)(const ProductTile<double> &tile);
  void (*softmax)(const SoftmaxTile &tile);
  void (*softmaxGradRowLanes)(const SoftmaxGradTile &tile); ///< a query row per lane
  void (*softmaxGradKeyLanes)(const SoftmaxGradTile &tile); ///< a key per lane
  /// rows[i][0..lanes) *= factor[0..lanes) for i < count.
  void (*scaleRows)(float *rows, int64_t count, int64_t lanes, const float *factor);
};

inline void product(const TileKernels &kernels, const ProductTile<float> &tile) { kernels.productFloat(tile); }
inline void product(const TileKernels &kernels, const ProductTile<double> &tile) { kernels.productDouble(tile); }

/// The kernels of one instruction set, or null when this machine lacks it.
const TileKernels *avx512TileKernels();
const TileKernels *avx2TileKernels();
const TileKernels *genericTileKernels();

/// The best kernels this machine has.
const TileKernels &tileKernels();

} // namespace plimsoll::runtime
