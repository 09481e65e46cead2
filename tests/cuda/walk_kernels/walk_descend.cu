#include "common.cuh"
// w <- w - lr (w - target), and the learning rate that this step saw is written down
ENTRY(walk_descend)(const i64* __restrict__ counters, const f32* __restrict__ isv, const f32* __restrict__ target,
                    f32* __restrict__ trace, f32* __restrict__ w, i64 n, i64 n_trace) {
  const f32 rate = isv[0];
  for (i64 i = first(); i < n; i += stride()) w[i] = w[i] - rate * (w[i] - target[i]);
  if (first() == 0) trace[(counters[0] - 1) % n_trace] = rate;
}
