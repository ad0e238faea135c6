// Tile kernels for any x86-64 (SSE2) or other machine: 8 of 16 registers accumulate.
#include "runtime/CPU/TileKernels.h"

#define VECTOR_BYTES 16
#define PRODUCT_ROWS 4
#define PRODUCT_VECTORS 2
#define KERNELS_NAME "generic"

namespace plimsoll::runtime {

namespace {
#include "runtime/CPU/TileKernels.inc"
} // namespace

const TileKernels *genericTileKernels() { return &kernels; }

const TileKernels &tileKernels() {
  static const TileKernels *const best = avx512TileKernels() ? avx512TileKernels()
                                         : avx2TileKernels() ? avx2TileKernels()
                                                             : genericTileKernels();
  return *best;
}

} // namespace plimsoll::runtime
