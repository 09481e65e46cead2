"""Whatever bytes come in, the runtime answers with its own errors; whatever it writes, it reads back."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from foxhunt.diagnostics import CheckpointError, DataError
from foxhunt.runtime.data import ohlcv
from foxhunt.runtime.init import POLICIES, initial
from foxhunt.runtime.tensorfile import read_tensors, write_tensors

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
DTYPES = st.sampled_from(["float32", "int32", "uint32", "int64", "uint8"])
SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
TENSORS = st.dictionaries(
    st.text(min_size=1, max_size=20).filter(lambda name: name != "__metadata__" and name.isprintable()),
    DTYPES.flatmap(lambda dtype: arrays.arrays(dtype, SHAPES)),
    max_size=5,
)


def refusals(kind, call):
    """The findings of a call that may refuse with `kind`; anything else escapes."""
    try:
        call()
    except kind as error:
        return error.diagnostics
    return ()


@QUICK
@given(tensors=TENSORS, seed=st.integers(-(2**63), 2**63 - 1))
def test_tensors_read_back_bit_for_bit(tmp_path, tensors, seed):
    path = tmp_path / "x"
    write_tensors(path, tensors, {"seed": str(seed)})
    loaded, metadata = read_tensors(path)
    assert metadata == {"seed": str(seed)}
    assert set(loaded) == set(tensors)
    for name, tensor in tensors.items():
        assert loaded[name].dtype == tensor.dtype
        assert loaded[name].shape == tensor.shape
        assert loaded[name].tobytes() == tensor.tobytes()


@QUICK
@given(data=st.data())
def test_a_damaged_tensor_file_is_read_or_refused_and_never_a_traceback(tmp_path, data):
    path = tmp_path / "x"
    write_tensors(path, {"a": np.arange(6, dtype=np.float32), "b": np.zeros((2, 0), np.int64)}, {"k": [1]})
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path.write_bytes(raw)
    assert {d.code for d in refusals(CheckpointError, lambda: read_tensors(path))} <= {"FH531"}


@QUICK
@given(
    lines=st.lists(
        st.one_of(
            st.text(max_size=40),
            st.lists(
                st.sampled_from(["", "1", "1.1", "nan", "-1", "01.01.2024 00:00:00.000", "x"]), max_size=8
            ).map(",".join),
        ),
        max_size=12,
    ),
    header=st.sampled_from(["Time,Open,High,Low,Close,Volume", "Time", ""]),
)
def test_a_strange_bar_file_is_read_or_refused_and_never_a_traceback(tmp_path, lines, header):
    path = tmp_path / "bars.csv"
    path.write_bytes("\n".join([header, *lines]).encode("utf-8", "surrogatepass"))
    options = {"window": 2, "horizon": 1, "regime_bars": 1, "regimes": 2}
    found = refusals(DataError, lambda: ohlcv(path, options))
    assert len(found) <= 21
    assert all(d.code.startswith("FH52") for d in found)


@QUICK
@given(
    policy=st.sampled_from(POLICIES),
    shape=arrays.array_shapes(min_dims=1, max_dims=3, max_side=9),
    seed=st.integers(-(2**63), 2**63 - 1),
    name=st.text(max_size=10).filter(str.isprintable),
)
def test_first_values_are_finite_and_repeat(policy, shape, seed, name):
    values = initial(policy, shape, seed, name)
    assert values.shape == shape
    assert np.isfinite(values).all()
    assert values.tobytes() == initial(policy, shape, seed, name).tobytes()
