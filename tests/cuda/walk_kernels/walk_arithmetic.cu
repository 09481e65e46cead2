#include "common.cuh"
// The operations that a host computes with the same bits, denormals and contraction included.
ENTRY(walk_arithmetic)(const f32* __restrict__ a, const f32* __restrict__ b, f32* __restrict__ out, i64 n) {
  for (i64 i = first(); i < n; i += stride()) {
    out[i] = a[i] * b[i] + a[i];
    out[n + i] = a[i] / b[i];
    out[2 * n + i] = sqrtf(fabsf(a[i]));
    out[3 * n + i] = a[i] * 0.5f;
  }
}
