// What the system kernels need besides the rest of the prelude: tables of constants and words that the CPU reads.
#pragma once

#include "types.cuh"

#if FOXHUNT_CUDA
#define FH_TABLE static __device__ const
#else
#define FH_TABLE static const
#endif

namespace foxhunt {

constexpr i64 INGEST_ROWS = 64;
constexpr i64 PUBLISH_ROWS = 16;

// Orders this thread's stores before its later ones, for readers on the CPU as well.
FH_DEVICE void fence_system() {
#if FOXHUNT_CUDA
  __threadfence_system();
#else
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

// One 64-bit store to two aligned words, low first; a reader on the CPU sees the old or the new value, never half.
FH_DEVICE void store_whole(u32* words, i64 v) {
#if FOXHUNT_CUDA
  *reinterpret_cast<volatile i64*>(words) = v;
#else
  __atomic_store_n(reinterpret_cast<i64*>(words), v, __ATOMIC_RELEASE);
#endif
}

}  // namespace foxhunt
