#include "common.cuh"
// noise = a hash of (seed, step, element) in [0, 1): splitmix64
ENTRY(walk_noise)(const i64* __restrict__ counters, f32* __restrict__ noise, const i64* __restrict__ seed, i64 n) {
  for (i64 i = first(); i < n; i += stride()) {
    u64 z = static_cast<u64>(seed[0]) + 0x9e3779b97f4a7c15ull * static_cast<u64>(counters[0] * n + i);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    noise[i] = static_cast<f32>((z ^ (z >> 31)) >> 40) * 0x1p-24f;
  }
}
