// Runs the threads of one block as fibers: who may run, who waits for its warp or its block, and what a collective does
// when its last thread arrives. Exited threads do not count, as on the GPU.
#pragma once

#include "fault_host.cuh"
#include "fiber.cuh"
#include "reduce.cuh"
#include "types.cuh"

namespace foxhunt {
namespace host {

constexpr int MAX_BLOCK = 1024;
constexpr int MAX_WARPS = MAX_BLOCK / WARP;

// Which collective a thread waits in; a barrier whose threads wait in different ones is an error of the kernel.
enum class Wait : i32 { none, sync, sum, max, min, ticket, once, warp_sum, warp_max, warp_min, shuffle, ballot };

class Scheduler {
 public:
  // Runs body(thread) for `threads` threads until all have returned, or until a fault is reported.
  template <class Body>
  void run(int threads, Body& body) {
    begin(threads, [](Scheduler& self, int thread) { (*static_cast<Body*>(self.body_))(thread); }, &body);
  }

  void release() { stacks_.release(); }

  // Waits until all live threads of the block are in `wait`; the last to come runs complete().
  template <class Complete>
  void wait_block(Wait wait, int thread, bool needs_all, Complete complete) {
    if (arrived_ == 0) waiting_ = wait;
    if (waiting_ != wait) fail(FaultKind::divergent, thread);
    if (++arrived_ < live_count_) return yield(thread);
    if (needs_all && live_count_ != threads_) fail(FaultKind::exited, thread);
    complete();
    release_block();
    take(thread);
  }

  // The same for the live lanes of the thread's warp.
  template <class Complete>
  void wait_warp(Wait wait, int thread, bool needs_all, Complete complete) {
    const int w = thread / WARP;
    if (warp_arrived_[w] == 0) warp_waiting_[w] = wait;
    if (warp_waiting_[w] != wait) fail(FaultKind::divergent, thread);
    if (++warp_arrived_[w] < __builtin_popcount(live_[w])) return yield(thread);
    if (needs_all && live_[w] != 0xffffffffu) fail(FaultKind::exited, thread);
    complete();
    release_warp(w);
    take(thread);
  }

  u32 live_lanes(int warp) const { return live_[warp]; }

  // What threads bring to a collective, and what it gives back; u64 holds any element type.
  alignas(64) u64 brought[MAX_BLOCK];
  alignas(64) u64 given[MAX_BLOCK];
  int shuffle_arguments[MAX_BLOCK];

 private:
  using Invoke = void (*)(Scheduler&, int);

  void begin(int threads, Invoke invoke, void* body) {
    threads_ = live_count_ = threads;
    invoke_ = invoke;
    body_ = body;
    arrived_ = 0;
    warps_ = threads / WARP;
    ready_warps_ = warps_ == MAX_WARPS ? 0xffffffffu : (1u << warps_) - 1;
    for (int w = 0; w < warps_; ++w) {
      live_[w] = ready_[w] = 0xffffffffu;
      warp_arrived_[w] = 0;
    }
    stacks_.reserve(threads);
    for (int t = 0; t < threads; ++t) contexts_[t] = new_context(stacks_.top(t), &Scheduler::main, this);
    current_ = 0;
    take(0);
    switch_context(&caller_, contexts_[0]);
  }

  static void main(void* self_) {
    Scheduler& self = *static_cast<Scheduler*>(self_);
    self.invoke_(self, self.current_);
    self.exit(self.current_);
  }

  void take(int thread) {
    const int w = thread / WARP;
    ready_[w] &= ~(1u << thread % WARP);
    if (ready_[w] == 0) ready_warps_ &= ~(1u << w);
  }
  void release_warp(int w) {
    warp_arrived_[w] = 0;
    ready_[w] = live_[w];
    if (ready_[w] != 0) ready_warps_ |= 1u << w;
  }
  void release_block() {
    arrived_ = 0;
    for (int w = 0; w < warps_; ++w) {
      ready_[w] = live_[w];
      if (live_[w] != 0) ready_warps_ |= 1u << w;
    }
  }

  // Gives the processor to a thread that can run: of this warp if there is one.
  void yield(int thread) {
    int w = thread / WARP;
    if (ready_[w] == 0) {
      if (ready_warps_ == 0) fail(FaultKind::deadlock, thread);
      w = __builtin_ctz(ready_warps_);
    }
    const int next = w * WARP + __builtin_ctz(ready_[w]);
    take(next);
    current_ = next;
    switch_context(&contexts_[thread], contexts_[next]);
  }

  void exit(int thread) {
    const int w = thread / WARP;
    live_[w] &= ~(1u << thread % WARP);
    if (--live_count_ == 0) switch_context(&contexts_[thread], caller_);
    // A collective that waited only for this thread: threads have left, so only barriers can still be right.
    if (warp_arrived_[w] > 0 && warp_arrived_[w] == __builtin_popcount(live_[w])) fail(FaultKind::exited, thread);
    if (arrived_ > 0 && arrived_ == live_count_) {
      if (waiting_ != Wait::sync) fail(FaultKind::exited, thread);
      release_block();
    }
    yield(thread);
  }

  // Reports and abandons the block: its fibers are never resumed.
  [[noreturn]] void fail(FaultKind kind, int thread) {
    report(kind, -1, thread, threads_);
    switch_context(&contexts_[thread], caller_);
    __builtin_unreachable();
  }

  Context contexts_[MAX_BLOCK];
  Context caller_;
  u32 live_[MAX_WARPS];   // lanes that have not returned
  u32 ready_[MAX_WARPS];  // lanes that could run now, without the running one
  u32 ready_warps_;       // warps with ready lanes
  int warp_arrived_[MAX_WARPS];
  Wait warp_waiting_[MAX_WARPS];
  int arrived_, live_count_, threads_, warps_, current_;
  Wait waiting_;
  Invoke invoke_;
  void* body_;
  Stacks stacks_;
};

}  // namespace host
}  // namespace foxhunt
