#include "common.cuh"
ENTRY(walk_clear)(f32* __restrict__ w, i64 n) {
  for (i64 i = first(); i < n; i += stride()) w[i] = 0.0f;
}
