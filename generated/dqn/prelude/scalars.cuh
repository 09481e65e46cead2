// The platform, and the names of element types.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define FOXHUNT_CUDA 1
#define FOXHUNT_HOST 0
#define FH_DEVICE __device__ __forceinline__
#else
#define FOXHUNT_CUDA 0
#define FOXHUNT_HOST 1
#define FH_DEVICE inline __attribute__((always_inline))
#endif

#if defined(FOXHUNT_DEBUG) && FOXHUNT_HOST
#define FH_CHECKED 1
#else
#define FH_CHECKED 0
#endif

namespace foxhunt {

using u8 = unsigned char;
using i32 = int;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;
using f32 = float;
using f64 = double;

static_assert(sizeof(i32) == 4 && sizeof(i64) == 8 && sizeof(f32) == 4 && sizeof(void*) == 8, "a 64-bit platform");

struct alignas(16) f32x4 {
  f32 x, y, z, w;
};
struct alignas(16) u32x4 {
  u32 x, y, z, w;
};

}  // namespace foxhunt
