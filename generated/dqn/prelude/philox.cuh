// Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011): counter-based random numbers, the same bits everywhere.
#pragma once

#include "math.cuh"
#include "types.cuh"

namespace foxhunt {

FH_DEVICE u32x4 philox(u32x4 counter, u32 key0, u32 key1) {
  for (int round = 0; round < 10; ++round) {
    const u64 p0 = static_cast<u64>(0xD2511F53u) * counter.x;
    const u64 p1 = static_cast<u64>(0xCD9E8D57u) * counter.z;
    counter = {static_cast<u32>(p1 >> 32) ^ counter.y ^ key0, static_cast<u32>(p1),
               static_cast<u32>(p0 >> 32) ^ counter.w ^ key1, static_cast<u32>(p0)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// floor(a * b / 2^64)
FH_DEVICE u64 multiply_high(u64 a, u64 b) {
#if FOXHUNT_CUDA
  return __umul64hi(a, b);
#else
  return static_cast<u64>(static_cast<unsigned __int128>(a) * b >> 64);
#endif
}

// Random numbers of one launch in one step: a pure function of (seed, element, draw, step, launch). An element below
// 2^32 has 2^32 draws; beyond that, elements below 2^48 have 2^16 each.
struct Rng {
  u64 seed;
  u32 step;
  u32 launch;

  FH_DEVICE Rng(const i64* seed_, const i64* step_, i64 launch_)
      : seed(static_cast<u64>(*seed_)), step(static_cast<u32>(*step_)), launch(static_cast<u32>(launch_)) {}

  // Four independent words.
  FH_DEVICE u32x4 bits(i64 element, u32 draw) const {
    const u32 high = static_cast<u32>(static_cast<u64>(element) >> 32);
    return philox({static_cast<u32>(element), draw ^ (high << 16), step, launch}, static_cast<u32>(seed),
                  static_cast<u32>(seed >> 32));
  }
  // In [0, 1), a multiple of 2^-24.
  FH_DEVICE f32 uniform(i64 element, u32 draw) const { return unit(bits(element, draw).x); }
  // In [0, n), n >= 1; the bias is below n / 2^64.
  FH_DEVICE i64 below(i64 element, u32 draw, i64 n) const {
    const u32x4 r = bits(element, draw);
    return static_cast<i64>(multiply_high(static_cast<u64>(r.y) << 32 | r.x, static_cast<u64>(n)));
  }
  // Standard normal by Box and Muller, |value| < 5.8.
  FH_DEVICE f32 normal(i64 element, u32 draw) const {
    const u32x4 r = bits(element, draw);
    const f32 u = (static_cast<f32>(r.x >> 8) + 1.0f) * 0x1p-24f;
    return sqrt_(-2.0f * log_(u)) * cos_turns_(unit(r.y));
  }

  FH_DEVICE static f32 unit(u32 word) { return static_cast<f32>(word >> 8) * 0x1p-24f; }
};

}  // namespace foxhunt
