// Tile kernels for AVX-512: 24 of the 32 registers accumulate.
#include "runtime/CPU/TileKernels.h"

#define VECTOR_BYTES 64
#define PRODUCT_ROWS 6
#define PRODUCT_VECTORS 4
#define KERNELS_NAME "avx512"

namespace plimsoll::runtime {

namespace {
#include "runtime/CPU/TileKernels.inc"
} // namespace

const TileKernels *avx512TileKernels() {
  const bool supported = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  return supported ? &kernels : nullptr;
}

} // namespace plimsoll::runtime
