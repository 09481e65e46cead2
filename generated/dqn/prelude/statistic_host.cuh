// The host form of the statistics driver: one call a block, which holds the states of all its threads in an array and
// walks the trees of the CUDA form in their order.
#pragma once

#include <string.h>

#include "statistic.cuh"

namespace foxhunt {
namespace statistic {

template <int BLOCK, class P>
struct Shared {
  static constexpr int BINS = P::BINS > 0 ? P::BINS : 1;
  typename P::State states[BLOCK];
  u64 totals[BINS];
  u32 bins[BINS];
};

// One member while a task runs.
template <int BLOCK, int K, class P, class A, class Blk>
struct Member {
  using State = typename P::State;

  const A& a;
  Shared<BLOCK, P>& shared;
  Partials partials;

  Member(const A& args, Shared<BLOCK, P>& shared_, Partials partials_) : a(args), shared(shared_), partials(partials_) {
    check_pass<P>();
    const State first = P::init(a);
    for (int t = 0; t < BLOCK; ++t) shared.states[t] = first;
    for (int b = 0; b < P::BINS; ++b) shared.totals[b] = shared.bins[b] = 0;
  }

  // Elements first … first + width - 1 of a row, one for each thread.
  void observe(int row, i64 first, int width) {
    const Bins bins{shared.bins};
    for (int t = 0; t < width; ++t) P::observe(shared.states[t], bins, P::load(a, row, first + t));
  }

  static void join_warp(State* states, int step, int present) {
    for (int offset = WARP / 2; offset > 0; offset /= 2)
      for (int lane = 0; lane < offset && lane + offset < present; ++lane)
        P::combine(states[lane * step], states[(lane + offset) * step]);
  }
  // Joins the states of the first `present` threads into that of thread 0.
  void join(int present) {
    for (int first = 0; first < present; first += WARP) join_warp(shared.states + first, 1, present - first);
    join_warp(shared.states, WARP, (present + WARP - 1) / WARP);
  }

  void store(i64 block) {
    memcpy(partials.state(K, block), &shared.states[0], sizeof(State));
    for (int b = 0; b < P::BINS; ++b) partials.bins(K, block)[b] = shared.bins[b];
  }

  // The last block: thread t joins the states of blocks t, t + BLOCK, …; all blocks' bins are added.
  void gather(i64 blocks) {
    for (i64 block = 0; block < blocks; ++block) {
      State found;
      memcpy(&found, partials.state(K, block), sizeof(State));
      if (block < BLOCK) {
        shared.states[block] = found;
      } else {
        P::combine(shared.states[block % BLOCK], found);
      }
      for (int b = 0; b < P::BINS; ++b) shared.totals[b] += partials.bins(K, block)[b];
    }
  }

  // A task of one block has its totals in its own bins.
  void take_own() {
    for (int b = 0; b < P::BINS; ++b) shared.totals[b] = shared.bins[b];
  }

  void finish() { P::finish(shared.states[0], shared.totals, a); }
};

template <int BLOCK, class Blk, class Domain, class... M>
void run(Blk& block, const Domain& domain, u32* ticket, M... m) {
  for (int row = 0; row < Domain::rows(); ++row) {
    const i64 n = domain.count(row);
    for (i64 first = block.index * BLOCK; first < n; first += block.count * BLOCK) {
      const int width = n - first < BLOCK ? static_cast<int>(n - first) : BLOCK;
      (m.observe(row, first, width), ...);
    }
  }
  (m.join(BLOCK), ...);
  if (block.count == 1) {
    (m.take_own(), ...);
  } else {
    (m.store(block.index), ...);
    if (!Ticket(ticket).take(0, block.count)) return;
    (m.gather(block.count), ...);
    (m.join(block.count < BLOCK ? static_cast<int>(block.count) : BLOCK), ...);
  }
  (m.finish(), ...);
}

}  // namespace statistic
}  // namespace foxhunt
