#include "common.cuh"
// Slots take the host's row of this step, then the step counter advances.
ENTRY(walk_ingest)(i64* __restrict__ counters, f32* __restrict__ isv, const f32* __restrict__ ring, i64 hosts) {
  const i64 step = counters[0];
  for (i64 i = threadIdx.x; i < hosts; i += 256) isv[i] = ring[(step % 64) * hosts + i];
  __syncthreads();
  if (threadIdx.x == 0) counters[0] = step + 1;
}
