// Position and collectives of a thread block, CUDA form. Every collective must be reached by all threads of the task.
#pragma once

#include "arguments.cuh"
#include "reduce.cuh"
#include "types.cuh"

namespace foxhunt {

// Two buffers, used in turn, so that a collective needs one barrier: who writes a buffer again has passed the barrier
// in between, which everybody reaches after reading it.
struct CollectiveScratch {
  u64 values[2][WARP];
};
FH_DEVICE CollectiveScratch& collective_scratch() {
  __shared__ CollectiveScratch scratch;
  return scratch;
}

template <class T, class Op>
FH_DEVICE T warp_tree(T v, int width) {
  for (int offset = width / 2; offset > 0; offset /= 2) v = Op::combine(v, __shfl_xor_sync(0xffffffffu, v, offset));
  return v;
}

template <int BLOCK>
class Block {
  static_assert(BLOCK % WARP == 0 && BLOCK >= WARP && BLOCK <= 1024, "a block is whole warps, at most 1024 threads");

 public:
  static constexpr int size = BLOCK;
  static constexpr int warps = BLOCK / WARP;
  const i64 index;
  const i64 count;
  const int thread;

  FH_DEVICE Block(i64 index_, i64 count_, void* shared)
      : index(index_), count(count_), thread(static_cast<int>(threadIdx.x)), shared_(shared) {}

  FH_DEVICE i64 first() const { return index * BLOCK + thread; }
  FH_DEVICE i64 stride() const { return count * BLOCK; }
  FH_DEVICE int lane() const { return thread % WARP; }
  FH_DEVICE int warp() const { return thread / WARP; }

  // for (i64 i : block.elements(n)): every i in [0, n) once, by some thread of some block, in an unspecified order.
  // On the host one thread runs a block's elements as one contiguous loop that the compiler can vectorise.
  class Elements {
   public:
    struct Iterator {
      i64 i, stride;
      FH_DEVICE i64 operator*() const { return i; }
      FH_DEVICE Iterator& operator++() {
        i += stride;
        return *this;
      }
      FH_DEVICE bool operator!=(i64 end) const { return i < end; }
    };
    FH_DEVICE Elements(i64 first, i64 stride, i64 n) : first_(first), stride_(stride), n_(n) {}
    FH_DEVICE Iterator begin() const { return {first_, stride_}; }
    FH_DEVICE i64 end() const { return n_; }

   private:
    i64 first_, stride_, n_;
  };
  FH_DEVICE Elements elements(i64 n) const { return Elements(first(), stride(), n); }

  FH_DEVICE void sync() { __syncthreads(); }

  // f(k) for every k below n, or f(row, col) for every pair below, each once, by some thread; then a barrier. A body that
  // is the same in all threads but for its phases runs on the host as plain loops, one call a block.
  template <class F>
  FH_DEVICE void phase(int n, F f) {
    for (int k = thread; k < n; k += BLOCK) f(k);
    __syncthreads();
  }
  template <class F>
  FH_DEVICE void phase(int rows, int cols, F f) {
    for (int k = thread; k < rows * cols; k += BLOCK) f(k / cols, k % cols);
    __syncthreads();
  }

  // Block reductions; all threads get the result. Not a memory barrier for other data: that is sync().
  template <class T>
  FH_DEVICE T sum(T v) {
    return reduce<T, Sum>(v);
  }
  template <class T>
  FH_DEVICE T max(T v) {
    return reduce<T, Max>(v);
  }
  template <class T>
  FH_DEVICE T min(T v) {
    return reduce<T, Min>(v);
  }

  // Reductions over the 32 lanes of a warp; all lanes get the result.
  template <class T>
  FH_DEVICE T warp_sum(T v) {
    return warp_tree<T, Sum>(v, WARP);
  }
  template <class T>
  FH_DEVICE T warp_max(T v) {
    return warp_tree<T, Max>(v, WARP);
  }
  template <class T>
  FH_DEVICE T warp_min(T v) {
    return warp_tree<T, Min>(v, WARP);
  }

  template <class T>
  FH_DEVICE T shfl(T v, int source) {
    return __shfl_sync(0xffffffffu, v, source);
  }
  template <class T>
  FH_DEVICE T shfl_xor(T v, int mask) {
    return __shfl_xor_sync(0xffffffffu, v, mask);
  }
  template <class T>
  FH_DEVICE T shfl_down(T v, int delta) {
    return __shfl_down_sync(0xffffffffu, v, static_cast<unsigned>(delta));
  }
  FH_DEVICE u32 ballot(bool predicate) { return __ballot_sync(0xffffffffu, predicate); }

  // The block's own shared memory, as T.
  template <class T>
  FH_DEVICE T& shared() {
    return *static_cast<T*>(shared_);
  }

  // True in all threads of the last of `blocks` blocks that come here: it may then read what they stored before, with
  // load_fresh. Ticket `index` is back at zero afterwards.
  FH_DEVICE bool last_block(Ticket ticket, i64 index, i64 blocks) {
    __threadfence();
    __syncthreads();
    u64* slot = next_scratch();
    if (thread == 0) slot[0] = ticket.take(index, blocks) ? 1 : 0;
    __syncthreads();
    const bool last = slot[0] != 0;
    if (last) __threadfence();
    return last;
  }

 private:
  FH_DEVICE u64* next_scratch() {
    parity_ ^= 1;
    return collective_scratch().values[parity_];
  }

  // A xor butterfly in each warp, then the warps' values in ascending order by the same tree.
  template <class T, class Op>
  FH_DEVICE T reduce(T v) {
    v = warp_tree<T, Op>(v, WARP);
    if (warps == 1) return v;
    T* slots = reinterpret_cast<T*>(next_scratch());
    if (lane() == 0) slots[warp()] = v;
    __syncthreads();
    v = lane() < warps ? slots[lane()] : Op::template identity<T>();
    return __shfl_sync(0xffffffffu, warp_tree<T, Op>(v, power_of_two(warps)), 0);
  }

  void* shared_;
  int parity_ = 0;
};

}  // namespace foxhunt
