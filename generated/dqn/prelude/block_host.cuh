// Position and collectives of a thread block, host form: same names, same fixed orders as block_cuda.cuh.
//
// Block<BLOCK> runs its threads as fibers. LoopBlock<BLOCK> is for bodies that never wait: it has no collectives.
// WholeBlock<BLOCK> does all threads' work in one call: for gemms, statistics and bodies made of phases.
#pragma once

#include "arguments.cuh"
#include "reduce.cuh"
#include "scheduler_host.cuh"
#include "types.cuh"

namespace foxhunt {

// The CUDA butterfly as one tree: every lane of the butterfly ends with these bits. Destroys v[0:n], n a power of two.
template <class T, class Op>
FH_DEVICE T tree(T* v, int n) {
  for (int half = n / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) v[i] = Op::combine(v[i], v[i + half]);
  return v[0];
}

// A contiguous run of elements, for range-for.
class ElementRun {
 public:
  struct Iterator {
    i64 i;
    FH_DEVICE i64 operator*() const { return i; }
    FH_DEVICE Iterator& operator++() {
      ++i;
      return *this;
    }
    FH_DEVICE bool operator!=(Iterator other) const { return i < other.i; }
  };
  FH_DEVICE ElementRun(i64 first, i64 last) : first_(first), last_(last) {}
  FH_DEVICE Iterator begin() const { return {first_}; }
  FH_DEVICE Iterator end() const { return {last_}; }

 private:
  i64 first_, last_;
};

// What both host blocks share: position, elements, shared memory.
template <int BLOCK>
class Position {
  static_assert(BLOCK % WARP == 0 && BLOCK >= WARP && BLOCK <= 1024, "a block is whole warps, at most 1024 threads");

 public:
  static constexpr int size = BLOCK;
  static constexpr int warps = BLOCK / WARP;
  const i64 index;
  const i64 count;
  const int thread;

  FH_DEVICE Position(i64 index_, i64 count_, int thread_, void* shared)
      : index(index_), count(count_), thread(thread_), shared_(shared) {}

  FH_DEVICE i64 first() const { return index * BLOCK + thread; }
  FH_DEVICE i64 stride() const { return count * BLOCK; }
  FH_DEVICE int lane() const { return thread % WARP; }
  FH_DEVICE int warp() const { return thread / WARP; }

  // for (i64 i : block.elements(n)): every i in [0, n) once, by some thread of some block, in an unspecified order.
  // Thread 0 runs the block's share as one contiguous loop that the compiler can vectorise; the others get nothing.
  FH_DEVICE ElementRun elements(i64 n) const {
    const i64 share = (n + count - 1) / count;
    const i64 begin = index * share < n ? index * share : n;
    const i64 end = begin + share < n ? begin + share : n;
    return thread == 0 ? ElementRun(begin, end) : ElementRun(0, 0);
  }

  // The block's own shared memory, as T.
  template <class T>
  FH_DEVICE T& shared() {
    return *static_cast<T*>(shared_);
  }

 private:
  void* shared_;
};

template <int BLOCK>
class LoopBlock : public Position<BLOCK> {
 public:
  using Position<BLOCK>::Position;
};

template <int BLOCK>
class WholeBlock : public Position<BLOCK> {
 public:
  using Position<BLOCK>::Position;

  template <class F>
  FH_DEVICE void phase(int n, F f) {
    for (int k = 0; k < n; ++k) f(k);
  }
  template <class F>
  FH_DEVICE void phase(int rows, int cols, F f) {
    for (int row = 0; row < rows; ++row)
      for (int col = 0; col < cols; ++col) f(row, col);
  }

  // True in the last of `blocks` blocks that come here, as in Block.
  bool last_block(Ticket ticket, i64 index, i64 blocks) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    const bool last = ticket.take(index, blocks);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return last;
  }
};

template <int BLOCK>
class Block : public Position<BLOCK> {
  using Wait = host::Wait;

 public:
  FH_DEVICE Block(i64 index, i64 count, int thread, void* shared, host::Scheduler& scheduler)
      : Position<BLOCK>(index, count, thread, shared), scheduler_(scheduler) {}

  void sync() {
    scheduler_.wait_block(Wait::sync, this->thread, false, [] {});
  }

  template <class F>
  void phase(int n, F f) {
    for (int k = this->thread; k < n; k += BLOCK) f(k);
    sync();
  }
  template <class F>
  void phase(int rows, int cols, F f) {
    for (int k = this->thread; k < rows * cols; k += BLOCK) f(k / cols, k % cols);
    sync();
  }

  // Block reductions; all threads get the result. Not a memory barrier for other data: that is sync().
  template <class T>
  T sum(T v) {
    return reduce<T, Sum>(Wait::sum, v);
  }
  template <class T>
  T max(T v) {
    return reduce<T, Max>(Wait::max, v);
  }
  template <class T>
  T min(T v) {
    return reduce<T, Min>(Wait::min, v);
  }

  // Reductions over the 32 lanes of a warp; all lanes get the result.
  template <class T>
  T warp_sum(T v) {
    return warp_reduce<T, Sum>(Wait::warp_sum, v);
  }
  template <class T>
  T warp_max(T v) {
    return warp_reduce<T, Max>(Wait::warp_max, v);
  }
  template <class T>
  T warp_min(T v) {
    return warp_reduce<T, Min>(Wait::warp_min, v);
  }

  template <class T>
  T shfl(T v, int source) {
    return exchange(v, [](int, int argument) { return argument & (WARP - 1); }, source);
  }
  template <class T>
  T shfl_xor(T v, int mask) {
    return exchange(v, [](int lane, int argument) { return lane ^ argument; }, mask);
  }
  template <class T>
  T shfl_down(T v, int delta) {
    return exchange(v, [](int lane, int argument) { return lane + argument; }, delta);
  }

  u32 ballot(bool predicate) {
    const int thread = this->thread, first = this->warp() * WARP;
    host::Scheduler& s = scheduler_;
    s.brought[thread] = predicate ? 1 : 0;
    s.wait_warp(Wait::ballot, thread, false, [&] {
      u32 votes = 0;
      for (int l = 0; l < WARP; ++l)
        if (s.live_lanes(first / WARP) >> l & 1) votes |= static_cast<u32>(s.brought[first + l]) << l;
      s.given[first] = votes;
    });
    return static_cast<u32>(s.given[first]);
  }

  // True in all threads of the last of `blocks` blocks that come here: it may then read what they stored before, with
  // load_fresh. Ticket `index` is back at zero afterwards.
  bool last_block(Ticket ticket, i64 index, i64 blocks) {
    host::Scheduler& s = scheduler_;
    s.wait_block(Wait::ticket, this->thread, true, [&] {
      __atomic_thread_fence(__ATOMIC_SEQ_CST);
      s.given[0] = ticket.take(index, blocks) ? 1 : 0;
      __atomic_thread_fence(__ATOMIC_SEQ_CST);
    });
    return s.given[0] != 0;
  }

  // Host form only: f() runs once, when all threads have come here, with the barrier of sync() before and after.
  template <class F>
  void once(F f) {
    scheduler_.wait_block(Wait::once, this->thread, true, f);
  }

 private:
  template <class T>
  static T* typed(u64* words) {
    return reinterpret_cast<T*>(words);
  }

  // A xor butterfly in each warp, then the warps' values in ascending order by the same tree.
  template <class T, class Op>
  T reduce(Wait wait, T v) {
    host::Scheduler& s = scheduler_;
    typed<T>(s.brought)[this->thread] = v;
    s.wait_block(wait, this->thread, true, [&] {
      T* values = typed<T>(s.brought);
      T of_warp[power_of_two(Block::warps)];
      for (int w = 0; w < power_of_two(Block::warps); ++w)
        of_warp[w] = w < Block::warps ? tree<T, Op>(values + w * WARP, WARP) : Op::template identity<T>();
      typed<T>(s.given)[0] = tree<T, Op>(of_warp, power_of_two(Block::warps));
    });
    return typed<T>(s.given)[0];
  }

  template <class T, class Op>
  T warp_reduce(Wait wait, T v) {
    host::Scheduler& s = scheduler_;
    const int first = this->warp() * WARP;
    typed<T>(s.brought + first)[this->lane()] = v;
    s.wait_warp(wait, this->thread, true,
                [&] { typed<T>(s.given + first)[0] = tree<T, Op>(typed<T>(s.brought + first), WARP); });
    return typed<T>(s.given + first)[0];
  }

  // Each lane gets the value of lane source(lane, its own argument); its own where that lane is outside or has exited.
  template <class T, class Source>
  T exchange(T v, Source source, int argument) {
    host::Scheduler& s = scheduler_;
    const int thread = this->thread, first = this->warp() * WARP;
    typed<T>(s.brought + first)[this->lane()] = v;
    arguments()[thread] = argument;
    s.wait_warp(Wait::shuffle, thread, false, [&] {
      const T* from = typed<T>(s.brought + first);
      T* to = typed<T>(s.given + first);
      const u32 live = s.live_lanes(first / WARP);
      for (int l = 0; l < WARP; ++l) {
        const int other = source(l, arguments()[first + l]);
        to[l] = other >= 0 && other < WARP && (live >> other & 1) ? from[other] : from[l];
      }
    });
    return typed<T>(s.given + first)[this->lane()];
  }
  int* arguments() { return scheduler_.shuffle_arguments; }

  host::Scheduler& scheduler_;
};

}  // namespace foxhunt
