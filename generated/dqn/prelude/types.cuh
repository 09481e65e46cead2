// Element types and accessors. In<T> is read, Out<T> is stored to, Update<T> may be both.
//
// Release: accessors are restrict pointers. Debug on the host (FOXHUNT_DEBUG): checked classes that record the first
// out-of-range index; there a read of an Out<T> does not even compile.
#pragma once

#include "scalars.cuh"

#if FH_CHECKED
#include "checked.cuh"
#else

namespace foxhunt {

template <class T>
using In = const T* __restrict__;
template <class T>
using Out = T* __restrict__;
template <class T>
using Update = T* __restrict__;

// Whether load4 and store4 may be used at element i: the address is a multiple of 16 bytes.
FH_DEVICE bool aligned4(const f32* p, i64 i) { return (reinterpret_cast<u64>(p + i) & 15) == 0; }

#if FOXHUNT_CUDA
FH_DEVICE f32x4 load4(const f32* p, i64 i) { return *reinterpret_cast<const f32x4*>(p + i); }
FH_DEVICE void store4(f32* p, i64 i, f32x4 v) { *reinterpret_cast<f32x4*>(p + i) = v; }
#else
FH_DEVICE f32x4 load4(const f32* p, i64 i) { return {p[i], p[i + 1], p[i + 2], p[i + 3]}; }
FH_DEVICE void store4(f32* p, i64 i, f32x4 v) {
  p[i] = v.x;
  p[i + 1] = v.y;
  p[i + 2] = v.z;
  p[i + 3] = v.w;
}
#endif

// Reads what other blocks of this launch stored before their ticket: past the L1 cache, never from it.
template <class T>
FH_DEVICE T load_fresh(const T* p, i64 i) {
#if FOXHUNT_CUDA
  return __ldcg(p + i);
#else
  return p[i];
#endif
}

}  // namespace foxhunt

#endif  // FH_CHECKED
