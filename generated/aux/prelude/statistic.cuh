// The statistics driver: one sweep over the elements of a domain feeds every member, whatever their number.
//
// A member is a pass of a statistic: `init / load / observe / combine / finish`, written once per element. Thread t of
// block b takes elements b*BLOCK + t, then every stride; a fixed tree joins the threads' states, a fixed slot of
// `partials` keeps the block's, and the last block to end joins the blocks' by the same tree and finishes. Bins are
// counts, so their order cannot matter. The same bits come out on the host, where one thread walks the trees.
#pragma once

#include "arguments.cuh"
#include "reduce.cuh"
#include "types.cuh"

namespace foxhunt {

constexpr int FH_STATISTIC_BINS = 256;
constexpr int FH_STATISTIC_STATE_BYTES = 64;
constexpr i64 FH_STATISTIC_PARTIAL_BYTES = FH_STATISTIC_STATE_BYTES + 4 * FH_STATISTIC_BINS;
constexpr int FH_STATISTIC_UNROLL = 8;  // loads of one member in flight

FH_DEVICE f64 sqrt_(f64 x) {
#if FOXHUNT_CUDA
  return __dsqrt_rn(x);
#else
  return __builtin_sqrt(x);
#endif
}

// A domain of n elements in one row; the other kind of domain is `Many`.
struct Elements {
  i64 n;
  FH_DEVICE static constexpr int rows() { return 1; }
  FH_DEVICE i64 count(int) const { return n; }
};

// The shared bins of one member.
struct Bins {
  u32* counts;
  FH_DEVICE void bump(int bin) const {
#if FOXHUNT_CUDA
    atomicAdd(counts + bin, 1u);
#else
    counts[bin] += 1;
#endif
  }
};

// The words of `carry`, which pass k leaves for pass k + 1.
FH_DEVICE void carry_i64(u32* carry, int word, i64 v) {
  carry[word] = static_cast<u32>(static_cast<u64>(v));
  carry[word + 1] = static_cast<u32>(static_cast<u64>(v) >> 32);
}
FH_DEVICE i64 carried_i64(const u32* carry, int word) {
  return static_cast<i64>(static_cast<u64>(carry[word]) | static_cast<u64>(carry[word + 1]) << 32);
}

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
#if FOXHUNT_CUDA
    w.at[k] = __ldcg(from + k);
#else
    w.at[k] = from[k];
#endif
  }
  return w.state;
}

FH_DEVICE u32x4 load_quad(const u32* from) {
#if FOXHUNT_CUDA
  const uint4 v = __ldcg(reinterpret_cast<const uint4*>(from));
  return {v.x, v.y, v.z, v.w};
#else
  return {from[0], from[1], from[2], from[3]};
#endif
}

FH_DEVICE void add_total(u64* total, u64 v) {
#if FOXHUNT_CUDA
  atomicAdd(total, v);
#else
  *total += v;
#endif
}

template <int BLOCK, class P>
struct Shared {
#if FOXHUNT_CUDA
  static constexpr int STATES = BLOCK / WARP;
#else
  static constexpr int STATES = BLOCK;
#endif
  static constexpr int BINS = P::BINS > 0 ? P::BINS : 1;
  typename P::State states[STATES];
  u64 totals[BINS];
  u32 bins[BINS];
};

// The tree of one block: in a warp, lane l takes lane l + 16, then l + 8, … l + 1; then the same over the warps' states.
// Only the first `present` threads have a state. The result stands in thread HOME*WARP.
template <int BLOCK, int HOME, class P, class Blk>
struct Tree {
  using State = typename P::State;

#if FOXHUNT_CUDA
  FH_DEVICE static State from_lane(const State& s, int offset) {
    Words<State> w;
    w.state = s;
#pragma unroll
    for (int k = 0; k < Words<State>::count; ++k) w.at[k] = __shfl_down_sync(0xffffffffu, w.at[k], offset);
    return w.state;
  }

  FH_DEVICE static void warp(State& s, int lane, int present) {
#pragma unroll
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
      const State other = from_lane(s, offset);
      if (lane < offset && lane + offset < present) P::combine(s, other);
    }
  }

  FH_DEVICE static void lanes(Blk& block, Shared<BLOCK, P>& shared, State& s, int present) {
    const int first = block.thread - block.thread % WARP;
    warp(s, block.thread % WARP, present - first);
    if (block.thread == first) shared.states[first / WARP] = s;
  }

  FH_DEVICE static void warps(Blk& block, Shared<BLOCK, P>& shared, State& s, int present) {
    if (block.thread / WARP != HOME) return;
    const int lane = block.thread % WARP;
    if (lane < BLOCK / WARP) s = shared.states[lane];
    warp(s, lane, (present + WARP - 1) / WARP);
  }
#else
  FH_DEVICE static void walk(State* states, int step, int present) {
    for (int offset = WARP / 2; offset > 0; offset /= 2)
      for (int lane = 0; lane < offset && lane + offset < present; ++lane)
        P::combine(states[lane * step], states[(lane + offset) * step]);
  }

  FH_DEVICE static void lanes(Blk& block, Shared<BLOCK, P>& shared, State& s, int) {
    shared.states[block.thread] = s;
  }

  FH_DEVICE static void warps(Blk& block, Shared<BLOCK, P>& shared, State& s, int present) {
    if (block.thread != HOME * WARP) return;
    for (int first = 0; first < present; first += WARP) walk(shared.states + first, 1, present - first);
    walk(shared.states, WARP, (present + WARP - 1) / WARP);
    s = shared.states[0];
  }
#endif
};

// One member while a task runs: its state in registers, its place in shared memory and in the partials.
template <int BLOCK, int HOME, class P, class A, class Blk>
struct Member {
  using State = typename P::State;
  using Join = Tree<BLOCK, HOME, P, Blk>;
  static_assert(sizeof(State) % 4 == 0 && sizeof(State) <= FH_STATISTIC_STATE_BYTES, "a State is at most 64 bytes");
  static_assert(P::BINS == 0 || P::BINS == FH_STATISTIC_BINS, "bins are 0 or 256");
  static constexpr bool BINNED = P::BINS > 0;
  static constexpr int QUADS = FH_STATISTIC_BINS / 4;
  static constexpr int GROUPS = BLOCK > QUADS ? BLOCK / QUADS : 1;

  const A& a;
  Shared<BLOCK, P>& shared;
  u32* states;  // of all blocks
  u32* bins;    // of all blocks
  State s;
  typename P::Value values[FH_STATISTIC_UNROLL];

  FH_DEVICE Member(const A& args, Shared<BLOCK, P>& shared_, u8* partials, i64 blocks, int member, int members)
      : a(args), shared(shared_), s(P::init(args)) {
    states = reinterpret_cast<u32*>(partials + member * blocks * FH_STATISTIC_STATE_BYTES);
    bins = reinterpret_cast<u32*>(partials + members * blocks * FH_STATISTIC_STATE_BYTES) +
           member * blocks * FH_STATISTIC_BINS;
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

  FH_DEVICE void join_lanes(Blk& block, int present) { Join::lanes(block, shared, s, present); }
  FH_DEVICE void join_warps(Blk& block, int present) { Join::warps(block, shared, s, present); }

  // A block's partial: its state and its bins, in the slots of this block.
  FH_DEVICE void store(Blk& block) {
    if (block.thread == HOME * WARP) store_state(states + block.index * (FH_STATISTIC_STATE_BYTES / 4), s);
    if constexpr (BINNED) {
      u32* own = bins + block.index * FH_STATISTIC_BINS;
      for (int b = block.thread; b < P::BINS; b += BLOCK) own[b] = shared.bins[b];
    }
  }

  // The last block: thread t joins the states of blocks t, t + BLOCK, …, and adds a quarter of the blocks' bins.
  FH_DEVICE void gather(Blk& block) {
    constexpr i64 step = FH_STATISTIC_STATE_BYTES / 4;
    if (block.thread < block.count) s = load_state<State>(states + block.thread * step);
    for (i64 b = block.thread + static_cast<i64>(BLOCK); b < block.count; b += BLOCK)
      P::combine(s, load_state<State>(states + b * step));
    if constexpr (BINNED) {
      for (int item = block.thread; item < QUADS * GROUPS; item += BLOCK) add_bins(item % QUADS, item / QUADS, block.count);
    }
  }

  FH_DEVICE void add_bins(int quad, int group, i64 blocks) {
    u64 sum[4] = {0, 0, 0, 0};
#pragma unroll 16
    for (i64 b = group; b < blocks; b += GROUPS) {
      const u32x4 c = load_quad(bins + b * FH_STATISTIC_BINS + 4 * quad);
      sum[0] += c.x;
      sum[1] += c.y;
      sum[2] += c.z;
      sum[3] += c.w;
    }
    for (int k = 0; k < 4; ++k) add_total(shared.totals + 4 * quad + k, sum[k]);
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

template <int... K>
struct Indices {};
template <int N, int... K>
struct Count : Count<N - 1, N - 1, K...> {};
template <int... K>
struct Count<0, K...> {
  using type = Indices<K...>;
};

// The shared memory of member k, found by walking the list.
template <int K, class Shared>
FH_DEVICE auto& member_of(Shared& shared) {
  if constexpr (K == 0) {
    return shared.first;
  } else {
    return member_of<K - 1>(shared.rest);
  }
}

}  // namespace statistic

// The shared memory of a task whose members are the passes P.
template <int BLOCK, class... P>
struct StatisticsShared;
template <int BLOCK, class P>
struct StatisticsShared<BLOCK, P> {
  statistic::Shared<BLOCK, P> first;
};
template <int BLOCK, class P, class Q, class... R>
struct StatisticsShared<BLOCK, P, Q, R...> {
  statistic::Shared<BLOCK, P> first;
  StatisticsShared<BLOCK, Q, R...> rest;
};

namespace statistic {

template <int BLOCK, class... P, int... K, class Blk, class Domain, class... A>
FH_DEVICE void start(Indices<K...>, Blk& block, const Domain& domain, u8* partials, u32* ticket, const A&... args) {
  auto& shared = block.template shared<StatisticsShared<BLOCK, P...>>();
  constexpr int members = static_cast<int>(sizeof...(P));
  run<BLOCK>(block, domain, ticket,
             Member<BLOCK, K % (BLOCK / WARP), P, A, Blk>(args, member_of<K>(shared), partials, block.count, K, members)...);
}

}  // namespace statistic

// One pass of the statistics whose passes are P over `domain`; args are their Args in the same order.
template <int BLOCK, class... P, class Blk, class Domain, class... A>
FH_DEVICE void statistics(Blk& block, const Domain& domain, u8* partials, u32* ticket, const A&... args) {
  using Numbers = typename statistic::Count<static_cast<int>(sizeof...(P))>::type;
  statistic::start<BLOCK, P...>(Numbers{}, block, domain, partials, ticket, args...);
}

}  // namespace foxhunt
