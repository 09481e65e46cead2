// What the hand-written program of the CUDA tests shares. Entries take 8-byte words, as emitted ones do.
#pragma once
typedef float f32;
typedef long long i64;
typedef unsigned int u32;
typedef unsigned long long u64;

#define ENTRY(name) extern "C" __global__ void __launch_bounds__(256) name
__device__ __forceinline__ i64 first() { return static_cast<i64>(blockIdx.x) * 256 + threadIdx.x; }
__device__ __forceinline__ i64 stride() { return static_cast<i64>(gridDim.x) * 256; }
