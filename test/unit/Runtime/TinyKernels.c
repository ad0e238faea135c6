/* The kernels of the tiny artifact as a real ELF shared object, for the test that opens a session on the CPU backend.
 */
#include <stdint.h>

void kernel_mul(void *const *operands, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    ((float *)operands[2])[i] = ((float *)operands[0])[i] * ((float *)operands[1])[i];
}

void kernel_add(void *const *operands, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    ((float *)operands[2])[i] = ((float *)operands[0])[i] + ((float *)operands[1])[i];
}

void kernel_sgd(void *const *operands, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    ((float *)operands[0])[i] -= *(float *)operands[3] * ((float *)operands[2])[i];
    ((float *)operands[1])[i] += ((float *)operands[2])[i];
  }
}
