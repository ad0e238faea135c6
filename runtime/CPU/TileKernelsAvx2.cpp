// Tile kernels for AVX2 with FMA: 12 of the 16 registers accumulate.
#include "runtime/CPU/TileKernels.h"

#define VECTOR_BYTES 32
#define PRODUCT_ROWS 6
#define PRODUCT_VECTORS 2
#define KERNELS_NAME "avx2"

namespace plimsoll::runtime {

namespace {
#include "runtime/CPU/TileKernels.inc"
} // namespace

const TileKernels *avx2TileKernels() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &kernels : nullptr;
}

} // namespace plimsoll::runtime
