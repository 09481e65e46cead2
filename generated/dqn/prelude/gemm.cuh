// Products of float32 matrices, with one order of summation on every processor.
//
// out(m, n) = epilogue(sum over k of A(m, k) * B(n, k)). The depth k is cut into chains. Within a tile of DEPTH rows of k,
// rows [s * RUN, (s + 1) * RUN) belong to slice s; a chain is one slice's rows of one split's tiles, k ascending, summed by
// fma from +0. Slices are then added in ascending order, then splits. Tile shapes only say who computes what: the bits
// follow from RUN, SLICES and the number of splits alone, so the vectorised host form may cut the output differently.
// Elements beyond the edge of a tile are computed from repeated rows and never stored; beyond the depth nothing is summed
// (fma(0, 0, -0) would be +0).
#pragma once

namespace foxhunt {

// A matrix seen from the product: element (i, k), k being summed over.
template <bool DEPTH_CONTIGUOUS, class Data>
struct Operand {
  static constexpr bool depth_contiguous = DEPTH_CONTIGUOUS;
  Data data;
  i64 ld;      // elements from one stored row to the next
  i64 origin;  // element offset of (0, 0)
  FH_DEVICE i64 offset(i64 i) const { return origin + (DEPTH_CONTIGUOUS ? i * ld : i); }
  FH_DEVICE i64 depth_stride() const { return DEPTH_CONTIGUOUS ? 1 : ld; }
};

// (i, k) = data[(first + i) * ld + k]
template <class Data>
FH_DEVICE Operand<true, Data> rows_of(Data data, i64 ld, i64 first = 0) {
  return {data, ld, first * ld};
}

// (i, k) = data[k * ld + first + i]
template <class Data>
FH_DEVICE Operand<false, Data> columns_of(Data data, i64 ld, i64 first = 0) {
  return {data, ld, first};
}

// Which part of a product a block computes: ROWS x COLS outputs, MICRO_ROWS x MICRO_COLS of them per thread and slice,
// RUN consecutive k a slice takes in turn. A block of BLOCK threads has SLICES groups that share the depth.
template <int BLOCK_, int ROWS_, int COLS_, int MICRO_ROWS_, int MICRO_COLS_, int RUN_>
struct Tile {
  static constexpr int BLOCK = BLOCK_, ROWS = ROWS_, COLS = COLS_, RUN = RUN_;
  static constexpr int MICRO_ROWS = MICRO_ROWS_, MICRO_COLS = MICRO_COLS_;
  static constexpr int ACROSS = COLS / MICRO_COLS, DOWN = ROWS / MICRO_ROWS;
  static constexpr int SLICES = BLOCK / (ACROSS * DOWN);
  static constexpr int DEPTH = SLICES * RUN;
  static_assert(MICRO_ROWS % 4 == 0 && MICRO_COLS % 4 == 0 && ROWS % MICRO_ROWS == 0 && COLS % MICRO_COLS == 0);
  static_assert(SLICES >= 1 && SLICES * ACROSS * DOWN == BLOCK);
};

// Column sums: a tile is COLUMN_TILE columns; in a split (consecutive rows) chain r takes rows r, r + BLOCK / COLUMN_TILE, …
// from +0; chains are added in ascending order, then splits.
constexpr int COLUMN_TILE = 32;

FH_DEVICE constexpr i64 tiles_of(i64 size, i64 tile) { return (size + tile - 1) / tile; }

template <bool FIRST, class A, class B>
struct Choose {
  using type = A;
};
template <class A, class B>
struct Choose<false, A, B> {
  using type = B;
};

// The largest of these tiles of which M x N outputs give enough to fill a GPU. A choice by dims alone. Kernels count the
// same tiles in their `grid`; another grid would be slower, not wrong.
template <i64 M, i64 N>
struct OutputTile {
  static constexpr i64 ENOUGH = 120;
  template <int ROWS, int COLS>
  static constexpr bool enough = tiles_of(M, ROWS) * tiles_of(N, COLS) >= ENOUGH;
  using T16x16 = Tile<256, 16, 16, 4, 4, 8>;
  using T16x32 = Tile<256, 16, 32, 4, 4, 8>;
  using T32x32 = Tile<256, 32, 32, 4, 4, 16>;
  using T64x64 = Tile<256, 64, 64, 8, 8, 8>;
  using T128x64 = Tile<256, 128, 64, 8, 8, 8>;
  using T128x128 = Tile<256, 128, 128, 8, 8, 16>;
  using type = typename Choose<
      enough<128, 128>, T128x128,
      typename Choose<enough<128, 64>, T128x64,
                      typename Choose<enough<64, 64>, T64x64,
                                      typename Choose<enough<32, 32>, T32x32,
                                                      typename Choose<enough<16, 32>, T16x32, T16x16>::type>::type>::type>::
                          type>::type;
};

}  // namespace foxhunt

#if FOXHUNT_CUDA
#include "gemm_cuda.cuh"
#else
#include "gemm_host.cuh"
#endif
