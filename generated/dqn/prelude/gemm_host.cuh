// The host form of gemm.cuh: one call does a block's whole share, vectorised over the columns of the output.
//
// The output is cut into tiles of its own (HOST_ROWS x HOST_COLS); every chain, and the order in which slices and splits
// are added, is that of the CUDA form. A block takes tiles block.index, block.index + block.count, …, and sums all splits
// itself: partials and tickets are not used.
#pragma once

namespace foxhunt {

#if defined(__AVX512F__)
constexpr int VECTOR = 16, HOST_GROUP = 8;  // 16 accumulators and 2 columns of 32 vector registers
#else
constexpr int VECTOR = 8, HOST_GROUP = 4;  // 8 accumulators and 2 columns of 16
#endif
constexpr int GEMM_SHARED_BYTES = 16;  // the host form keeps its panels to itself
constexpr int HOST_ROWS = 64, HOST_COLS = 2 * VECTOR, HOST_DEPTH = 256;

typedef f32 Vector __attribute__((vector_size(VECTOR * 4), aligned(4), may_alias));

FH_DEVICE Vector fma_vector(Vector a, Vector b, Vector c) {
  Vector r;
  for (int i = 0; i < VECTOR; i++) r[i] = fma_(a[i], b[i], c[i]);
  return r;
}

template <class T>
struct GemmShared {
  static_assert(HOST_DEPTH % T::DEPTH == 0, "a packed panel holds whole tiles of the depth");
  f32 panel[HOST_DEPTH][HOST_COLS];                // B(n, k) for the columns of a tile
  f32 chain[T::SLICES][HOST_ROWS][HOST_COLS];      // the running chains
  f32 total[HOST_ROWS][HOST_COLS];                 // over splits
};

// Rows of a panel that a body works through with several gemms, one after the other.
template <class T>
constexpr i64 panel_rows = HOST_ROWS;

template <class T>
inline GemmShared<T>& gemm_shared(unsigned char*) {
  static thread_local GemmShared<T> scratch;
  return scratch;
}

// Continues one slice's chains of HOST_GROUP rows over the `depth` packed k's.
template <class T, class A>
inline void run_chain(const GemmShared<T>& s, f32 (*chain)[HOST_COLS], const A& a, const i64 (&at)[HOST_GROUP], int slice,
                      int depth) {
  Vector acc[HOST_GROUP][2];
  for (int i = 0; i < HOST_GROUP; i++) {
    acc[i][0] = *reinterpret_cast<const Vector*>(chain[i]);
    acc[i][1] = *reinterpret_cast<const Vector*>(chain[i] + VECTOR);
  }
  for (int k0 = slice * T::RUN; k0 < depth; k0 += T::DEPTH) {
    const int k1 = k0 + T::RUN < depth ? k0 + T::RUN : depth;
    for (int k = k0; k < k1; k++) {
      const Vector left = *reinterpret_cast<const Vector*>(s.panel[k]);
      const Vector right = *reinterpret_cast<const Vector*>(s.panel[k] + VECTOR);
#pragma GCC unroll 8
      for (int i = 0; i < HOST_GROUP; i++) {
        const Vector value = a.data[at[i] + k * a.depth_stride()] - Vector{};
        acc[i][0] = fma_vector(value, left, acc[i][0]);
        acc[i][1] = fma_vector(value, right, acc[i][1]);
      }
    }
  }
  for (int i = 0; i < HOST_GROUP; i++) {
    *reinterpret_cast<Vector*>(chain[i]) = acc[i][0];
    *reinterpret_cast<Vector*>(chain[i] + VECTOR) = acc[i][1];
  }
}

// s.total = (first ? 0 : s.total) + the sum over k in [k0, k1) for the host tile at (m0, n0).
template <class T, class A, class B>
inline void gemm_tile(GemmShared<T>& s, const A& a, const B& b, i64 m0, i64 n0, i64 M, i64 N, i64 k0, i64 k1, bool first) {
  const int rows = int(M - m0 < HOST_ROWS ? M - m0 : HOST_ROWS), cols = int(N - n0 < HOST_COLS ? N - n0 : HOST_COLS);
  for (int slice = 0; slice < T::SLICES; slice++)
    for (int i = 0; i < rows + HOST_GROUP - 1 && i < HOST_ROWS; i++)
      for (int j = 0; j < HOST_COLS; j++) s.chain[slice][i][j] = 0.0f;
  for (i64 kc = k0; kc < k1; kc += HOST_DEPTH) {
    const int depth = int(k1 - kc < HOST_DEPTH ? k1 - kc : HOST_DEPTH);
    if (B::depth_contiguous) {
      for (int j = 0; j < HOST_COLS; j++)
        for (int k = 0; k < depth; k++) s.panel[k][j] = j < cols ? b.data[b.offset(n0 + j) + kc + k] : 0.0f;
    } else {
      for (int k = 0; k < depth; k++)
        for (int j = 0; j < HOST_COLS; j++) s.panel[k][j] = j < cols ? b.data[b.offset(n0 + j) + (kc + k) * b.ld] : 0.0f;
    }
    for (int i = 0; i < rows; i += HOST_GROUP) {
      i64 at[HOST_GROUP];
      for (int r = 0; r < HOST_GROUP; r++)
        at[r] = a.offset(m0 + (i + r < rows ? i + r : rows - 1)) + kc * a.depth_stride();
      for (int slice = 0; slice < T::SLICES && slice * T::RUN < depth; slice++)
        run_chain<T>(s, &s.chain[slice][i], a, at, slice, depth);
    }
  }
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < HOST_COLS; j++) {
      f32 sum = s.chain[0][i][j];
      for (int slice = 1; slice < T::SLICES; slice++) sum = sum + s.chain[slice][i][j];
      s.total[i][j] = first ? sum : s.total[i][j] + sum;
    }
}

template <class T, class A, class B, class Epilogue>
inline void gemm_splits(GemmShared<T>& s, const A& a, const B& b, i64 M, i64 N, i64 K, i64 splits, i64 first, i64 step,
                        Epilogue&& epilogue) {
  const i64 across = tiles_of(N, HOST_COLS), tiles = tiles_of(M, HOST_ROWS) * across;
  const i64 depth = tiles_of(tiles_of(K, T::DEPTH), splits) * T::DEPTH;
  for (i64 tile = first; tile < tiles; tile += step) {
    const i64 m0 = tile / across * HOST_ROWS, n0 = tile % across * HOST_COLS;
    for (i64 split = 0; split < splits; split++) {
      const i64 k0 = split * depth, k1 = k0 + depth < K ? k0 + depth : K;
      gemm_tile<T>(s, a, b, m0, n0, M, N, k0, k1, split == 0);
    }
    for (i64 m = m0; m < M && m < m0 + HOST_ROWS; m++)
      for (i64 n = n0; n < N && n < n0 + HOST_COLS; n++) epilogue(m, n, s.total[m - m0][n - n0]);
  }
}

template <class T, class Blk, class A, class B, class Epilogue>
inline void gemm(Blk&, GemmShared<T>& s, const A& a, const B& b, i64 M, i64 N, i64 K, i64 first, i64 step,
                 Epilogue&& epilogue) {
  gemm_splits<T>(s, a, b, M, N, K, 1, first, step, epilogue);
}

template <class T, class Blk, class A, class B, class Partials, class Epilogue>
inline void gemm_split(Blk& block, GemmShared<T>& s, const A& a, const B& b, i64 M, i64 N, i64 K, Partials&&, Ticket,
                       Epilogue&& epilogue) {
  const i64 splits = block.count / (tiles_of(M, T::ROWS) * tiles_of(N, T::COLS));
  gemm_splits<T>(s, a, b, M, N, K, splits, block.index, block.count, epilogue);
}

template <int BLOCK>
struct ColumnShared {
  f32 lane[BLOCK / COLUMN_TILE][COLUMN_TILE];
};

template <int BLOCK, class Blk, class Data, class Partials, class Emit>
inline void column_sums(Blk& block, ColumnShared<BLOCK>& s, Data x, i64 M, i64 N, Partials&&, Ticket, Emit&& emit) {
  constexpr int ROWS = BLOCK / COLUMN_TILE;
  const i64 tiles = tiles_of(N, COLUMN_TILE), splits = block.count / tiles, depth = tiles_of(M, splits);
  for (i64 tile = block.index; tile < tiles; tile += block.count) {
    const i64 n0 = tile * COLUMN_TILE;
    const int cols = int(N - n0 < COLUMN_TILE ? N - n0 : COLUMN_TILE);
    f32 total[COLUMN_TILE];
    for (i64 split = 0; split < splits; split++) {
      const i64 begin = split * depth, end = begin + depth < M ? begin + depth : M;
      for (int r = 0; r < ROWS; r++) {
        f32* chain = s.lane[r];
        for (int j = 0; j < COLUMN_TILE; j++) chain[j] = 0.0f;
        for (i64 m = begin + r; m < end; m += ROWS)
          for (int j = 0; j < cols; j++) chain[j] = chain[j] + x[m * N + n0 + j];
      }
      for (int j = 0; j < cols; j++) {
        f32 sum = s.lane[0][j];
        for (int r = 1; r < ROWS; r++) sum = sum + s.lane[r][j];
        total[j] = split == 0 ? sum : total[j] + sum;
      }
    }
    for (int j = 0; j < cols; j++) emit(n0 + j, total[j]);
  }
}

// What this launch's own earlier gemm stored, as data of an operand of the next.
template <class Data>
struct Stored {
  Data data;
  FH_DEVICE f32 operator[](i64 i) const { return load_fresh(data, i); }
};
template <class Data>
FH_DEVICE Stored<Data> stored(Data data) {
  return {data};
}

}  // namespace foxhunt
