"""The whole prelude compiles for CUDA, with each CUDA compiler that is here; no GPU needed."""

import shutil

import pytest
from host_programs import PRELUDE

from foxhunt.backend.cubin import build_cubins
from foxhunt.backend.cubin_compilers import find_compiler
from foxhunt.diagnostics import BuildError

EVERYTHING = """
#include "../prelude/prelude.cuh"
using namespace foxhunt;
struct Shared { f32 tile[256]; };
template <int BLOCK, class Blk>
FH_DEVICE void body(Blk& block, In<f32> x, Out<f32> y, Update<f32> z, Bound limit, Counter t, Rng rng,
                    Many<In<f32>, 2> w, Out<f32> partials, Ticket ticket, i64 n) {
  auto& shared = block.template shared<Shared>();
  for (i64 i : block.elements(n)) {
    const f32 v = aligned4(x, i) ? load4(x, i).x : x[i];
    const f32 smooth = exp_(v) + expm1_(v) + log_(v) + log1p_(v) + tanh_(v) + sigmoid_(v) + softplus_(v);
    y[i] = clamp_(smooth, 0.0f, limit.limit()) + sin_(v) + cos_(v) + sqrt_(v) + floor_(v) + ceil_(v);
    y[i] = elu_(v);
    z[i] += rng.uniform(i, 0) + rng.normal(i, 1) + static_cast<f32>(rng.below(i, 2, n) + t.value());
    z[i] += static_cast<f32>(to_i64(v) + to_i32(v));
  }
  f32 acc = w.rows() > 1 ? w.row(1)[0] : static_cast<f32>(w.total());
  shared.tile[block.thread] = acc;
  block.sync();
  acc = block.sum(shared.tile[BLOCK - 1 - block.thread]) + block.max(acc) + block.min(acc);
  acc += block.warp_sum(acc) + block.warp_max(acc) + block.warp_min(acc);
  acc += block.shfl(acc, 1) + block.shfl_xor(acc, 1) + block.shfl_down(acc, 1);
  acc += static_cast<f32>(block.ballot(acc > 0.0f));
  acc += static_cast<f32>(block.sum(static_cast<i64>(block.warp())));
  if (block.thread == 0) partials[block.index] = acc;
  if (block.last_block(ticket, 0, block.count)) y[block.lane()] = load_fresh(partials, 0);
}
extern "C" __global__ void __launch_bounds__(256) everything(
    const f32* __restrict__ x, f32* __restrict__ y, f32* __restrict__ z, const f32* slot,
    const f32* triple, i64 floor, const i64* t, const i64* seed, const i64* step, i64 hash,
    const f32* w0, i64 n0, const f32* w1, i64 n1, f32* partials, u32* ticket, i64 n, i64 grid) {
  __shared__ alignas(16) unsigned char shared[sizeof(Shared)];
  Block<256> block(blockIdx.x, grid, shared);
  body<256>(block, x, y, z, Bound(slot, triple, floor), Counter(t), Rng(seed, step, hash),
            Many<In<f32>, 2>{{w0, w1}, {n0, n1}}, partials, Ticket(ticket), n);
}
"""


@pytest.mark.parametrize("compiler", ["nvrtc", "nvcc"])
def test_the_prelude_compiles_without_spilling(tmp_path, monkeypatch, compiler):
    try:
        find_compiler(compiler)
    except BuildError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("FOXHUNT_CACHE", str(tmp_path / "cache"))
    shutil.copytree(PRELUDE, tmp_path / "prelude")
    (tmp_path / "launches").mkdir()
    (tmp_path / "launches" / "everything.cu").write_text(EVERYTHING)
    (cubin,) = build_cubins(tmp_path, "sm_90", compiler).values()
    assert cubin.image[:4] == b"\x7fELF"
    assert cubin.resources.spill == 0
