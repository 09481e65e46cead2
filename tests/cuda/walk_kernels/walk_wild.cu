#include "common.cuh"
// A store to an address that no allocation has.
ENTRY(walk_wild)(f32* __restrict__ w) { w[1ll << 40] = 1.0f; }
