#include "common.cuh"
// A row of words that all say which step wrote them, then `latest`.
ENTRY(walk_publish)(const i64* __restrict__ counters, u32* __restrict__ ring, i64 words) {
  const i64 step = counters[0];
  u32* row = ring + 2 + ((step - 1) % 16) * words;
  for (i64 i = threadIdx.x; i < words; i += 256) row[i] = static_cast<u32>(step);
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) *reinterpret_cast<volatile i64*>(ring) = step;
}
