// The host entry's tools: typed arguments from its words, and the loop over the blocks of a task.
#pragma once

#include <stdlib.h>
#include <string.h>

#include "block_host.cuh"
#include "philox.cuh"

namespace foxhunt {
namespace host {

// How the threads of a block run: a plain loop over threads for bodies that never wait, a fiber each for bodies with
// barriers or collectives, one call a block (thread 0) for gemm bodies and those made of phases.
enum class Threads { loop, fibers, one };

// The arguments of an entry. Word k is a pointer to counts[k] elements, or an integer.
struct Words {
  const u64* words;
  const i64* counts;

#if FH_CHECKED
  template <class T>
  In<T> in(int k) const {
    return In<T>(pointer<T>(k), counts[k], k);
  }
  template <class T>
  Out<T> out(int k) const {
    return Out<T>(pointer<T>(k), counts[k], k);
  }
  template <class T>
  Update<T> update(int k) const {
    return Update<T>(pointer<T>(k), counts[k], k);
  }
#else
  template <class T>
  const T* in(int k) const {
    return pointer<T>(k);
  }
  template <class T>
  T* out(int k) const {
    return pointer<T>(k);
  }
  template <class T>
  T* update(int k) const {
    return pointer<T>(k);
  }
#endif
  i64 integer(int k) const { return static_cast<i64>(words[k]); }
  Bound bound(int k) const { return Bound(pointer<f32>(k), pointer<f32>(k + 1), integer(k + 2)); }
  Counter counter(int k) const { return Counter(pointer<i64>(k)); }
  Rng rng(int k) const { return Rng(pointer<i64>(k), pointer<i64>(k + 1), integer(k + 2)); }
  Ticket ticket(int k) const { return Ticket(pointer<u32>(k)); }
  template <class T>
  T* pointer(int k) const {
    return reinterpret_cast<T*>(words[k]);
  }
};

// Shared memory and fibers of one worker thread.
struct Worker {
  Scheduler scheduler;
  void* shared = nullptr;
  size_t shared_bytes = 0;

  Worker();
  ~Worker() { release(); }
  void release() {
    free(shared);
    shared = nullptr;
    shared_bytes = 0;
    scheduler.release();
  }
  void* reserve(size_t bytes) {
    if (bytes > shared_bytes) {
      free(shared);
      if (posix_memalign(&shared, 64, bytes) != 0) abort();
      shared_bytes = bytes;
    }
    return shared;
  }
};

FH_OWN inline Worker& worker() {
  static thread_local Worker w;
  return w;
}
inline Worker::Worker() { __atomic_store_n(&release_thread, [] { worker().release(); }, __ATOMIC_RELEASE); }

// Runs f(block) for the blocks [first, last) of a launch that belong to the task with `count` blocks from `start` on.
template <int BLOCK, Threads THREADS, class F>
void run_blocks(i64 first, i64 last, i64 start, i64 count, size_t shared_bytes, F f) {
  if (first < start) first = start;
  if (last > start + count) last = start + count;
  if (first >= last) return;
  Worker& w = worker();
  void* shared = w.reserve(shared_bytes);
  for (i64 b = first - start; b < last - start; ++b) {
#if FH_CHECKED
    if (shared_bytes != 0) memset(shared, 0xff, shared_bytes);
#endif
    if constexpr (THREADS == Threads::fibers) {
      auto thread_body = [&](int t) {
        Block<BLOCK> block(b, count, t, shared, w.scheduler);
        f(block);
      };
      w.scheduler.run(BLOCK, thread_body);
    } else if constexpr (THREADS == Threads::one) {
      WholeBlock<BLOCK> block(b, count, 0, shared);
      f(block);
    } else {
      for (int t = 0; t < BLOCK; ++t) {
        LoopBlock<BLOCK> block(b, count, t, shared);
        f(block);
      }
    }
  }
}

}  // namespace host
}  // namespace foxhunt
