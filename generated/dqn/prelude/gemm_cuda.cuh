// The CUDA form of gemm.cuh: register tiles over double-buffered shared memory, staged through registers.
#pragma once

namespace foxhunt {

constexpr int GEMM_SHARED_BYTES = 43008;  // of a gemm body, whichever tile its dims choose

template <class T>
struct alignas(16) GemmShared {
  static constexpr int PASSES = T::MICRO_ROWS / 4;  // the slices are added in this many passes over the tile's rows
  union {
    struct {
      f32 a[2][T::DEPTH][T::ROWS + 4];
      f32 b[2][T::DEPTH][T::COLS + 4];
    };
    f32 partial[T::SLICES][T::ROWS / PASSES][T::COLS];
  };
};

// Rows of a panel that a body works through with several gemms, one after the other.
template <class T>
constexpr i64 panel_rows = T::ROWS;

// The tile's view of a body's GEMM_SHARED_BYTES.
template <class T>
FH_DEVICE GemmShared<T>& gemm_shared(unsigned char* bytes) {
  static_assert(sizeof(GemmShared<T>) <= GEMM_SHARED_BYTES, "a tile that fits");
  return *reinterpret_cast<GemmShared<T>*>(bytes);
}

// A thread's share of one DEPTH x SIZE tile of an operand, held in registers between global and shared memory. It consists
// of groups of four: 4 rows at one k (one 16-byte store), or, where a stored row of the matrix is not a whole number of 16
// bytes, 4 k's of one row (four stores, but loads that neighbours share).
template <class T, int SIZE, class Op>
struct Stage {
  static constexpr int GROUPS = SIZE / 4 * T::DEPTH;
  static constexpr int SHARE = (GROUPS + T::BLOCK - 1) / T::BLOCK;
  static_assert(GROUPS % T::BLOCK == 0 || GROUPS < T::BLOCK, "all threads have equal shares, or some have none");
  static_assert(T::BLOCK % T::DEPTH == 0 && T::BLOCK % (SIZE / 4) == 0 && (T::BLOCK % SIZE == 0 || SHARE == 1), "even steps");
  enum Way { down_rows, along_rows, along_depth };
  const Op op;
  const i64 first, extent, end;  // the tile's first row, the operand's rows, the end of this block's depth
  const int thread;
  const Way way;
  const bool fast;    // rows need no care
  const int row, depth;  // the thread's first element in a tile
  const f32* source;     // its address in the tile to load next
  f32 held[SHARE][4];

  // Element j of group i, counted from the thread's first element: constants once unrolled.
  FH_DEVICE int rows_on(int i, int j) const {
    return way == down_rows ? 4 * (T::BLOCK / T::DEPTH) * i + j : way == along_rows ? j : 0;
  }
  FH_DEVICE int depths_on(int i, int j) const {
    return way == down_rows ? 0 : way == along_rows ? T::BLOCK / (SIZE / 4) * i : 4 * T::BLOCK / SIZE * i + j;
  }
  FH_DEVICE bool idle() const { return GROUPS < T::BLOCK && thread >= GROUPS; }
  FH_DEVICE i64 step(i64 rows, i64 depths) const {
    return Op::depth_contiguous ? rows * op.ld + depths : rows + depths * op.ld;
  }

  FH_DEVICE Stage(int thread_, const Op& op_, i64 first_, i64 extent_, i64 begin, i64 end_)
      : op(op_),
        first(first_),
        extent(extent_),
        end(end_),
        thread(thread_),
        way(Op::depth_contiguous ? down_rows : op_.ld % 4 == 0 ? along_rows : along_depth),
        fast(way == along_depth || (first_ + SIZE <= extent_ && (way == down_rows || aligned4(op_.data, op_.origin)))),
        row(way == down_rows ? 4 * (thread_ / T::DEPTH) : way == along_rows ? 4 * (thread_ % (SIZE / 4)) : thread_ % SIZE),
        depth(way == down_rows ? thread_ % T::DEPTH : way == along_rows ? thread_ / (SIZE / 4) : 4 * (thread_ / SIZE)) {
    const i64 r = way == along_depth && first + row >= extent ? extent - 1 : first + row;
    source = op.data + (op.origin + step(r, begin + depth));
  }

  // Loads the next tile, of whose DEPTH k's `left` may be fewer. What does not exist repeats the last that does.
  FH_DEVICE void load(i64 left) {
    if (idle()) return;
    if (fast && left >= T::DEPTH) {
#pragma unroll
      for (int i = 0; i < SHARE; i++) {
        if (way == along_rows) {
          *reinterpret_cast<f32x4*>(held[i]) = load4(source, step(0, depths_on(i, 0)));
        } else {
#pragma unroll
          for (int j = 0; j < 4; j++) held[i][j] = source[step(rows_on(i, j), depths_on(i, j))];
        }
      }
    } else {
      // Not a plain load: the compiler would else merge both ways and compute every address of the fast one too.
#pragma unroll
      for (int i = 0; i < SHARE; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) held[i][j] = load_fresh(op.data, careful(i, j, left));
    }
    source += step(0, T::DEPTH);
  }

  FH_DEVICE void store(f32 (&to)[T::DEPTH][SIZE + 4]) const {
    if (idle()) return;
#pragma unroll
    for (int i = 0; i < SHARE; i++) {
      if (way == along_depth) {
#pragma unroll
        for (int j = 0; j < 4; j++) to[depth + depths_on(i, j)][row] = held[i][j];
      } else {
        *reinterpret_cast<f32x4*>(&to[depth + depths_on(i, 0)][row + rows_on(i, 0)]) =
            f32x4{held[i][0], held[i][1], held[i][2], held[i][3]};
      }
    }
  }
 private:
  FH_DEVICE i64 careful(int i, int j, i64 left) const {
    const i64 r = first + row + rows_on(i, j);
    const i64 d = depth + depths_on(i, j);
    return op.origin + step(r < extent ? r : extent - 1, end - left + (d < left ? d : left - 1));
  }
};

// The place of a thread in its slice. Lanes l and l ^ 1 read the same rows and lanes l and l ^ 2 the same columns, which
// lets a warp's 16-byte loads from shared memory go through in half the time.
template <class T>
struct Seat {
  int slice, across, down;
  explicit FH_DEVICE Seat(int thread) {
    const int t = thread % (T::ACROSS * T::DOWN), lane = t % 32, warp = t / 32;
    slice = thread / (T::ACROSS * T::DOWN);
    if (T::DOWN % 8 == 0 && T::ACROSS % 4 == 0) {
      constexpr int WIDE = T::ACROSS >= 4 ? T::ACROSS / 4 : 1;
      down = (lane >> 1 & 7) + 8 * (warp / WIDE);
      across = (lane & 1) + 2 * (lane >> 4) + 4 * (warp % WIDE);
    } else if (T::ACROSS % 8 == 0 && T::DOWN % 4 == 0) {
      constexpr int WIDE = T::ACROSS >= 8 ? T::ACROSS / 8 : 1;
      down = (lane & 1) + 2 * (lane >> 4) + 4 * (warp / WIDE);
      across = (lane >> 1 & 7) + 8 * (warp % WIDE);
    } else if (T::DOWN == 4 && T::ACROSS == 4) {
      down = lane >> 1 & 3;
      across = (lane & 1) + 2 * (lane >> 3 & 1);
    } else {
      across = t % T::ACROSS;
      down = t / T::ACROSS;
    }
  }
};

template <class T>
FH_DEVICE void micro_step(const f32* a, const f32* b, f32 (&acc)[T::MICRO_ROWS][T::MICRO_COLS]) {
  f32 u[T::MICRO_ROWS], v[T::MICRO_COLS];
#pragma unroll
  for (int i = 0; i < T::MICRO_ROWS; i += 4)
    *reinterpret_cast<f32x4*>(u + i) = *reinterpret_cast<const f32x4*>(a + i / 4 * (T::DOWN * 4));
#pragma unroll
  for (int j = 0; j < T::MICRO_COLS; j += 4)
    *reinterpret_cast<f32x4*>(v + j) = *reinterpret_cast<const f32x4*>(b + j / 4 * (T::ACROSS * 4));
#pragma unroll
  for (int i = 0; i < T::MICRO_ROWS; i++)
#pragma unroll
    for (int j = 0; j < T::MICRO_COLS; j++) acc[i][j] = fma_(u[i], v[j], acc[i][j]);
}

// The tile of outputs at (m0, n0), summed over k in [k0, k1): emit(m, n, value) for every output that exists.
template <class T, class Blk, class A, class B, class Emit>
FH_DEVICE void gemm_tile(Blk& block, GemmShared<T>& s, const A& a, const B& b, i64 m0, i64 n0, i64 M, i64 N, i64 k0,
                         i64 k1, Emit&& emit) {
  const Seat<T> seat(block.thread);
  f32 acc[T::MICRO_ROWS][T::MICRO_COLS];
#pragma unroll
  for (int i = 0; i < T::MICRO_ROWS; i++)
#pragma unroll
    for (int j = 0; j < T::MICRO_COLS; j++) acc[i][j] = 0.0f;

  if (k0 < k1) {
    Stage<T, T::ROWS, A> stage_a(block.thread, a, m0, M, k0, k1);
    Stage<T, T::COLS, B> stage_b(block.thread, b, n0, N, k0, k1);
    i64 left = k1 - k0;  // k's to come
    int buffer = 0;
    stage_a.load(left);
    stage_b.load(left);
    stage_a.store(s.a[0]);
    stage_b.store(s.b[0]);
    block.sync();
#pragma unroll 1
    for (; left > 0; left -= T::DEPTH, buffer ^= 1) {
      const bool more = left > T::DEPTH;
      if (more) {
        stage_a.load(left - T::DEPTH);
        stage_b.load(left - T::DEPTH);
      }
      const f32* from_a = &s.a[buffer][seat.slice * T::RUN][seat.down * 4];
      const f32* from_b = &s.b[buffer][seat.slice * T::RUN][seat.across * 4];
      if (left >= T::DEPTH) {
#pragma unroll
        for (int r = 0; r < T::RUN; r++) micro_step<T>(from_a + r * (T::ROWS + 4), from_b + r * (T::COLS + 4), acc);
      } else {
        const int mine = static_cast<int>(left) - seat.slice * T::RUN;
#pragma unroll 1
        for (int r = 0; r < T::RUN && r < mine; r++)
          micro_step<T>(from_a + r * (T::ROWS + 4), from_b + r * (T::COLS + 4), acc);
      }
      if (more) {
        stage_a.store(s.a[buffer ^ 1]);
        stage_b.store(s.b[buffer ^ 1]);
      }
      block.sync();
    }
  }

  constexpr int PASSES = GemmShared<T>::PASSES, BAND = T::ROWS / PASSES;
#pragma unroll
  for (int pass = 0; pass < PASSES; pass++) {
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int j = 0; j < T::MICRO_COLS; j += 4)
        *reinterpret_cast<f32x4*>(&s.partial[seat.slice][seat.down * 4 + i][j / 4 * (T::ACROSS * 4) + seat.across * 4]) =
            f32x4{acc[pass * 4 + i][j], acc[pass * 4 + i][j + 1], acc[pass * 4 + i][j + 2], acc[pass * 4 + i][j + 3]};
    block.sync();
#pragma unroll
    for (int e = block.thread; e < BAND * T::COLS; e += T::BLOCK) {
      const int row = e / T::COLS, col = e % T::COLS;
      f32 sum = s.partial[0][row][col];
#pragma unroll
      for (int slice = 1; slice < T::SLICES; slice++) sum = sum + s.partial[slice][row][col];
      const i64 m = m0 + pass * BAND + row, n = n0 + col;
      if (m < M && n < N) emit(m, n, sum);
    }
    block.sync();
  }
}

// out(m, n) for all m < M and n < N: this block takes tiles first, first + step, …
template <class T, class Blk, class A, class B, class Epilogue>
FH_DEVICE void gemm(Blk& block, GemmShared<T>& s, const A& a, const B& b, i64 M, i64 N, i64 K, i64 first, i64 step,
                    Epilogue&& epilogue) {
  const i64 across = tiles_of(N, T::COLS), tiles = tiles_of(M, T::ROWS) * across;
  for (i64 tile = first; tile < tiles; tile += step)
    gemm_tile<T>(block, s, a, b, tile / across * T::ROWS, tile % across * T::COLS, M, N, 0, K, epilogue);
}

// The same with the depth cut into `count / tiles` splits; block `index` of `count` takes one split of one tile. The last
// block of a tile to arrive adds the splits in ascending order. partials: [splits, M, N]; one ticket a tile.
template <class T, class Blk, class A, class B, class Epilogue>
FH_DEVICE void gemm_split(Blk& block, GemmShared<T>& s, const A& a, const B& b, i64 M, i64 N, i64 K, f32* partials,
                          Ticket ticket, Epilogue&& epilogue) {
  const i64 across = tiles_of(N, T::COLS), tiles = tiles_of(M, T::ROWS) * across, splits = block.count / tiles;
  const i64 tile = block.index % tiles, split = block.index / tiles;
  if (split >= splits) return;
  const i64 m0 = tile / across * T::ROWS, n0 = tile % across * T::COLS;
  const i64 depth = tiles_of(tiles_of(K, T::DEPTH), splits) * T::DEPTH;
  const i64 k0 = split * depth, k1 = k0 + depth < K ? k0 + depth : K;
  if (splits == 1) {
    gemm_tile<T>(block, s, a, b, m0, n0, M, N, k0, k1, epilogue);
    return;
  }
  f32* mine = partials + split * M * N;
  gemm_tile<T>(block, s, a, b, m0, n0, M, N, k0, k1, [&](i64 m, i64 n, f32 value) { mine[m * N + n] = value; });
  if (!block.last_block(ticket, tile, splits)) return;
  const i64 rows = M - m0 < T::ROWS ? M - m0 : T::ROWS, cols = N - n0 < T::COLS ? N - n0 : T::COLS;
#pragma unroll 4
  for (int e = block.thread; e < T::ROWS * T::COLS; e += T::BLOCK) {
    const i64 row = e / T::COLS, col = e % T::COLS;
    if (row >= rows || col >= cols) continue;
    const f32* p = partials + (m0 + row) * N + n0 + col;
    f32 sum = load_fresh(p, 0);
#pragma unroll 8
    for (i64 i = 1; i < splits; i++) sum = sum + load_fresh(p, i * M * N);
    epilogue(m0 + row, n0 + col, sum);
  }
}

template <int BLOCK>
struct ColumnShared {
  f32 lane[BLOCK / COLUMN_TILE][COLUMN_TILE];
};

// emit(n, sum over all m < M of x(m, n)), in the order that gemm.cuh states.
template <int BLOCK, class Blk, class Data, class Emit>
FH_DEVICE void column_sums(Blk& block, ColumnShared<BLOCK>& s, Data x, i64 M, i64 N, f32* partials, Ticket ticket,
                           Emit&& emit) {
  constexpr int ROWS = BLOCK / COLUMN_TILE;
  const i64 tiles = tiles_of(N, COLUMN_TILE), splits = block.count / tiles;
  const i64 tile = block.index % tiles, split = block.index / tiles;
  if (split >= splits) return;
  const int row = block.thread / COLUMN_TILE, col = block.thread % COLUMN_TILE;
  const i64 n = tile * COLUMN_TILE + col, depth = tiles_of(M, splits), end = (split + 1) * depth < M ? (split + 1) * depth : M;
  f32 chain = 0.0f;
  if (n < N) {
#pragma unroll 8
    for (i64 m = split * depth + row; m < end; m += ROWS) chain = chain + x[m * N + n];
  }
  s.lane[row][col] = chain;
  block.sync();
  f32 sum = s.lane[0][col];
#pragma unroll
  for (int r = 1; r < ROWS; r++) sum = sum + s.lane[r][col];
  if (splits == 1) {
    if (row == 0 && n < N) emit(n, sum);
    return;
  }
  if (row == 0 && n < N) partials[split * N + n] = sum;
  if (!block.last_block(ticket, tile, splits) || row != 0 || n >= N) return;
  sum = load_fresh(partials, n);
#pragma unroll 8
  for (i64 i = 1; i < splits; i++) sum = sum + load_fresh(partials, i * N + n);
  emit(n, sum);
}

// What this launch's own earlier gemm stored, as data of an operand of the next.
FH_DEVICE const f32* stored(const f32* data) { return data; }

}  // namespace foxhunt
