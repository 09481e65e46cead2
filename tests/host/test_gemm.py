"""The gemm collective on the host: the promised order of summation, special values, threads."""

import math
from functools import reduce

import numpy as np
import pytest
from kernel_harness import kernel_program, library

from foxhunt.backend.host import HostBackend
from foxhunt.verify.cases import make

KERNELS = library()
RNG = np.random.default_rng(17)


def launch(kernel, folder, threads=2, **example):
    """What one launch of a library kernel writes."""
    plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in example.items()}
    case = make(KERNELS[kernel], plain, "case")
    with kernel_program([case], HostBackend(threads=threads), folder) as program:
        program.run()
        return program.found(0)


def fma(a, b, c):
    """a·b + c rounded once: an extended product of float32 values is exact, and its sum almost always."""
    return (a.astype(np.longdouble) * b + c).astype(np.float32)


def product(a, b, run, slices, splits):
    """a [M, K] · b [K, N] in the stated order: fma chains, then slices, then splits, ascending."""
    depth = run * slices
    tiles = math.ceil(a.shape[1] / depth)
    per_split = math.ceil(tiles / splits) * depth
    sums = []
    for split in range(splits):
        chain = np.zeros((slices, a.shape[0], b.shape[1]), np.float32)
        begin = split * per_split
        for k in range(begin, min(begin + per_split, a.shape[1])):
            s = (k - begin) // run % slices
            chain[s] = fma(a[:, k, None], b[None, k, :], chain[s])
        sums.append(reduce(np.add, chain))
    return reduce(np.add, sums)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("rows", "cols", "run", "slices"),
    [(33, 31, 8, 16), (1025, 65, 8, 8), (1100, 107, 16, 4), (2049, 230, 8, 4)],
)
def test_a_layer_sums_in_the_stated_order(rows, cols, run, slices, tmp_path):
    x, w, b = normal(rows, 83), normal(83, cols), normal(cols)
    y = launch("linear", tmp_path, B=rows, K=83, N=cols, x=x, w=w, b=b)["y"]
    np.testing.assert_array_equal(y, product(x, w, run, slices, 1) + b)


@pytest.mark.parametrize(("samples", "splits"), [(7, 1), (3000, 2)])
def test_a_weight_gradient_sums_in_the_stated_order(samples, splits, tmp_path):
    a, d = normal(samples, 35), normal(samples, 3)
    dw = launch("bwd_dW_reduce", tmp_path, B=samples, K=35, N=3, a=a, d=d)["dw"]
    np.testing.assert_array_equal(dw, product(a.T, d, 16, 4, splits))


@pytest.mark.parametrize(("samples", "splits"), [(5, 1), (300, 2)])
def test_a_bias_gradient_sums_in_the_stated_order(samples, splits, tmp_path):
    d = normal(samples, 33)
    db = launch("bwd_db_reduce", tmp_path, B=samples, N=33, d=d)["db"]
    length, sums = -(-samples // splits), []
    for begin in range(0, samples, length):
        chain = np.zeros((8, 33), np.float32)
        for row, value in enumerate(d[begin : begin + length]):
            chain[row % 8] += value
        sums.append(reduce(np.add, chain))
    np.testing.assert_array_equal(db, reduce(np.add, sums))


def test_results_do_not_depend_on_the_number_of_threads(tmp_path):
    x, w, b = normal(130, 443), normal(443, 65), normal(65)
    one, two, three = (
        launch("linear_elu", tmp_path / str(t), t, B=130, K=443, N=65, x=x, w=w, b=b)["y"] for t in (1, 2, 3)
    )
    assert (one == two).all()
    assert (one == three).all()


def test_nan_and_inf_stay_in_their_row_and_column(tmp_path):
    x, w, b = normal(37, 19), normal(19, 33), normal(33)
    x[36, 18], x[3, 0] = np.nan, np.inf
    w[:, 32] = np.nan
    y = launch("linear", tmp_path, B=37, K=19, N=33, x=x, w=w, b=b)["y"]
    assert np.isnan(y[36]).all()
    assert np.isnan(y[:, 32]).all()
    assert (np.abs(y[3, :32]) == np.inf).all()
    rest = np.delete(y, [3, 36], axis=0)[:, :32]
    assert np.isfinite(rest).all()


def test_the_slope_of_elu_is_exactly_one_where_it_was_linear(tmp_path):
    dh3, w3 = normal(1, 5), normal(3, 5)
    values = {"w2": normal(2, 3), "h2": [[89.0, 100.0, 1e30]], "h1": [[1e30, -1.0]]}
    found = launch("bwd_dh_pre", tmp_path, B=1, AUX=5, H2=3, H1=2, dh3=dh3, w3=w3, **values)
    np.testing.assert_array_equal(found["dh2_pre"], product(dh3, w3.T, 4, 8, 1))
    assert found["dh1_pre"][0, 1] == 0  # ELU is flat where it gave −1
