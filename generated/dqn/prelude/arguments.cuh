// Argument kinds other than plain data: tables of rows, bounds, counters, tickets.
#pragma once

#include "math.cuh"
#include "types.cuh"

namespace foxhunt {

// A table of (accessor, count) rows; a row of count 0 is a no-op.
template <class A, int ROWS>
struct Many {
  A pointers[ROWS];
  i64 counts[ROWS];

  FH_DEVICE static constexpr int rows() { return ROWS; }
  FH_DEVICE A row(int r) const { return pointers[r]; }
  FH_DEVICE i64 count(int r) const { return counts[r]; }
  FH_DEVICE i64 total() const {
    i64 n = 0;
    for (int r = 0; r < ROWS; ++r) n += counts[r];
    return n;
  }
};

// A slot as a limit: inactive (+inf) until the slot has been observed since its last reset, then max(slot, floor).
// `triple` is the slot's Wiener state (S, D, lag): all zero until the applicator has folded a first observation, whose
// value it leaves in lag.
struct Bound {
  const f32* slot;
  const f32* triple;
  f32 floor;

  FH_DEVICE Bound(const f32* slot_, const f32* triple_, i64 floor_bits)
      : slot(slot_), triple(triple_), floor(from_bits(static_cast<u32>(floor_bits))) {}
  FH_DEVICE bool observed() const { return triple[0] != 0.0f || triple[1] != 0.0f || triple[2] != 0.0f; }
  FH_DEVICE f32 limit() const { return observed() ? max_(slot[0], floor) : from_bits(0x7f800000u); }
};

// A 64-bit counter, read-only for kernels.
struct Counter {
  const i64* word;

  FH_DEVICE explicit Counter(const i64* word_) : word(word_) {}
  FH_DEVICE i64 value() const { return *word; }
};

// Integer tickets for finishing across blocks: they wrap, so they need no reset between launches.
struct Ticket {
  u32* words;

  FH_DEVICE explicit Ticket(u32* words_) : words(words_) {}
  // True for the last of `blocks` takers of ticket `index`. One thread per block calls it, after its fence.
  FH_DEVICE bool take(i64 index, i64 blocks) const {
    const u32 last = static_cast<u32>(blocks - 1);
#if FOXHUNT_CUDA
    return atomicInc(words + index, last) == last;
#else
    u32 old = __atomic_load_n(words + index, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(words + index, &old, old >= last ? 0u : old + 1u, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
    }
    return old == last;
#endif
  }
};

}  // namespace foxhunt
