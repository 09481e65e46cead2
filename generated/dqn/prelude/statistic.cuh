// The statistics driver: one sweep over the elements of a domain feeds every member, whatever their number.
//
// A member is a pass of a statistic: `init / load / observe / combine / finish`, written once per element. Thread t of
// block b takes elements b*BLOCK + t, then every stride. A tree joins the threads' states: in a warp lane l takes lane
// l + 16, then l + 8, … l + 1; then the same over the warps. A fixed slot of `partials` keeps the block's state, and the
// last block to end joins the blocks' states by the same tree and finishes. Bins are counts: their order cannot matter.
// The host form (one call a block) walks the same trees in the same order, so both give the same bits.
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

template <int BLOCK, class P>
struct Shared;  // what a member keeps per block

// Where the members of a task keep their partials: all states first, then all bins.
struct Partials {
  u8* at;
  i64 blocks;
  int members;

  FH_DEVICE u32* state(int member, i64 block) const {
    return reinterpret_cast<u32*>(at + (member * blocks + block) * FH_STATISTIC_STATE_BYTES);
  }
  FH_DEVICE u32* bins(int member, i64 block) const {
    return reinterpret_cast<u32*>(at + members * blocks * FH_STATISTIC_STATE_BYTES) +
           (member * blocks + block) * FH_STATISTIC_BINS;
  }
};

template <class P>
FH_DEVICE void check_pass() {
  static_assert(sizeof(typename P::State) % 4 == 0 && sizeof(typename P::State) <= FH_STATISTIC_STATE_BYTES,
                "a State is whole words, at most 64 bytes");
  static_assert(P::BINS == 0 || P::BINS == FH_STATISTIC_BINS, "bins are 0 or 256");
}

}  // namespace statistic
}  // namespace foxhunt

#if FOXHUNT_CUDA
#include "statistic_cuda.cuh"
#else
#include "statistic_host.cuh"
#endif

namespace foxhunt {
namespace statistic {

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
             Member<BLOCK, K, P, A, Blk>(args, member_of<K>(shared), Partials{partials, block.count, members})...);
}

}  // namespace statistic

// One pass of the statistics whose passes are P over `domain`; args are their Args in the same order.
template <int BLOCK, class... P, class Blk, class Domain, class... A>
FH_DEVICE void statistics(Blk& block, const Domain& domain, u8* partials, u32* ticket, const A&... args) {
  using Numbers = typename statistic::Count<static_cast<int>(sizeof...(P))>::type;
  statistic::start<BLOCK, P...>(Numbers{}, block, domain, partials, ticket, args...);
}

}  // namespace foxhunt
