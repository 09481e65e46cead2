// The CUDA form of the statistics driver: states in registers, joined by shuffles.
#pragma once

#include "statistic.cuh"

namespace foxhunt {
namespace statistic {

// A state as the 32-bit words that shuffles and partials move.
template <class State>
union Words {
  static constexpr int count = static_cast<int>(sizeof(State) / 4);
  State state;
  u32 at[sizeof(State) / 4];
  FH_DEVICE Words() {}
};

template <class State>
FH_DEVICE void store_state(u32* to, const State& s) {
  Words<State> w;
  w.state = s;
#pragma unroll
  for (int k = 0; k < Words<State>::count; ++k) to[k] = w.at[k];
}

// What other blocks stored before their ticket is read past the L1 cache.
template <class State>
FH_DEVICE State load_state(const u32* from) {
  Words<State> w;
#pragma unroll
  for (int k = 0; k < Words<State>::count; ++k) {
    w.at[k] = __ldcg(from + k);
  }
  return w.state;
}

FH_DEVICE u32x4 load_quad(const u32* from) {
  const uint4 v = __ldcg(reinterpret_cast<const uint4*>(from));
  return {v.x, v.y, v.z, v.w};
}

template <int BLOCK, class P>
struct Shared {
  static constexpr int BINS = P::BINS > 0 ? P::BINS : 1;
  typename P::State states[BLOCK / WARP];
  u64 totals[BINS];
  u32 bins[BINS];
};

template <class State>
FH_DEVICE State from_lane(const State& s, int offset) {
  Words<State> w;
  w.state = s;
#pragma unroll
  for (int k = 0; k < Words<State>::count; ++k) w.at[k] = __shfl_down_sync(0xffffffffu, w.at[k], offset);
  return w.state;
}

// Joins the first `present` lanes of a warp into its lane 0.
template <class P>
FH_DEVICE void join_warp(typename P::State& s, int lane, int present) {
#pragma unroll
  for (int offset = WARP / 2; offset > 0; offset /= 2) {
    const typename P::State other = from_lane(s, offset);
    if (lane < offset && lane + offset < present) P::combine(s, other);
  }
}

// One member while a task runs: its state in registers, its place in shared memory and in the partials.
// Its second stage and its finish run in warp K, so that members do not wait for one another.
template <int BLOCK, int K, class P, class A, class Blk>
struct Member {
  using State = typename P::State;
  static constexpr int WARPS = BLOCK / WARP;
  static constexpr int HOME = K % WARPS;
  static constexpr bool BINNED = P::BINS > 0;
  static constexpr int QUADS = FH_STATISTIC_BINS / 4;
  static constexpr int GROUPS = BLOCK > QUADS ? BLOCK / QUADS : 1;

  const A& a;
  Shared<BLOCK, P>& shared;
  Partials partials;
  State s;
  typename P::Value values[FH_STATISTIC_UNROLL];

  FH_DEVICE Member(const A& args, Shared<BLOCK, P>& shared_, Partials partials_)
      : a(args), shared(shared_), partials(partials_), s(P::init(args)) {
    check_pass<P>();
  }

  FH_DEVICE void clear(Blk& block) {
    if constexpr (BINNED) {
      for (int b = block.thread; b < P::BINS; b += BLOCK) {
        shared.bins[b] = 0;
        shared.totals[b] = 0;
      }
    }
  }

  // Elements first, first + stride, …: all loads stand before the first observation, so they are in flight together.
  FH_DEVICE void load(int row, i64 first, i64 stride, i64 n) {
#pragma unroll
    for (int k = 0; k < FH_STATISTIC_UNROLL; ++k)
      values[k] = first + k * stride < n ? P::load(a, row, first + k * stride) : typename P::Value{};
  }
  FH_DEVICE void observe(i64 first, i64 stride, i64 n) {
#pragma unroll
    for (int k = 0; k < FH_STATISTIC_UNROLL; ++k)
      if (first + k * stride < n) P::observe(s, Bins{shared.bins}, values[k]);
  }

  FH_DEVICE void join_lanes(Blk& block, int present) {
    const int first = block.thread - block.thread % WARP;
    join_warp<P>(s, block.thread % WARP, present - first);
    if (block.thread == first) shared.states[first / WARP] = s;
  }
  FH_DEVICE void join_warps(Blk& block, int present) {
    if (block.thread / WARP != HOME) return;
    const int lane = block.thread % WARP;
    if (lane < WARPS) s = shared.states[lane];
    join_warp<P>(s, lane, (present + WARP - 1) / WARP);
  }

  // A block's partial: its state and its bins, in the slots of this block.
  FH_DEVICE void store(Blk& block) {
    if (block.thread == HOME * WARP) store_state(partials.state(K, block.index), s);
    if constexpr (BINNED) {
      u32* own = partials.bins(K, block.index);
      for (int b = block.thread; b < P::BINS; b += BLOCK) own[b] = shared.bins[b];
    }
  }

  // The last block: thread t joins the states of blocks t, t + BLOCK, …, and adds a quarter of the blocks' bins.
  FH_DEVICE void gather(Blk& block) {
    if (block.thread < block.count) s = load_state<State>(partials.state(K, block.thread));
    for (i64 b = block.thread + static_cast<i64>(BLOCK); b < block.count; b += BLOCK)
      P::combine(s, load_state<State>(partials.state(K, b)));
    if constexpr (BINNED) {
      for (int item = block.thread; item < QUADS * GROUPS; item += BLOCK) add_bins(item % QUADS, item / QUADS, block.count);
    }
  }

  FH_DEVICE void add_bins(int quad, int group, i64 blocks) {
    u64 sum[4] = {0, 0, 0, 0};
#pragma unroll 16
    for (i64 b = group; b < blocks; b += GROUPS) {
      const u32x4 c = load_quad(partials.bins(K, b) + 4 * quad);
      sum[0] += c.x;
      sum[1] += c.y;
      sum[2] += c.z;
      sum[3] += c.w;
    }
    for (int k = 0; k < 4; ++k) atomicAdd(shared.totals + 4 * quad + k, sum[k]);
  }

  // A task of one block has its totals in its own bins.
  FH_DEVICE void take_own(Blk& block) {
    if constexpr (BINNED) {
      for (int b = block.thread; b < P::BINS; b += BLOCK) shared.totals[b] = shared.bins[b];
    }
  }

  FH_DEVICE void finish(Blk& block) {
    if (block.thread == HOME * WARP) P::finish(s, shared.totals, a);
  }
};

template <class Blk, class Domain, class... M>
FH_DEVICE void sweep(Blk& block, const Domain& domain, M&... m) {
  const i64 stride = block.stride();
#pragma unroll
  for (int row = 0; row < Domain::rows(); ++row) {
    const i64 n = domain.count(row);
    for (i64 i = block.first(); i < n; i += FH_STATISTIC_UNROLL * stride) {
      (m.load(row, i, stride, n), ...);
      (m.observe(i, stride, n), ...);
    }
  }
}

template <int BLOCK, class Blk, class Domain, class... M>
FH_DEVICE void run(Blk& block, const Domain& domain, u32* ticket, M... m) {
  (m.clear(block), ...);
  if ((M::BINNED || ...)) block.sync();
  sweep(block, domain, m...);
  (m.join_lanes(block, BLOCK), ...);
  block.sync();
  (m.join_warps(block, BLOCK), ...);
  if (block.count == 1) {
    (m.take_own(block), ...);
  } else {
    (m.store(block), ...);
    if (!block.last_block(Ticket(ticket), 0, block.count)) return;
    const int present = block.count < BLOCK ? static_cast<int>(block.count) : BLOCK;
    (m.gather(block), ...);
    (m.join_lanes(block, present), ...);
    block.sync();
    (m.join_warps(block, present), ...);
  }
  block.sync();
  (m.finish(block), ...);
}

}  // namespace statistic
}  // namespace foxhunt
