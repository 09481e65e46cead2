"""Size expressions against Python's own integers."""

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from foxhunt.expr import ExprError, evaluate, symbols

DIMS = {"B": 4096, "H1": 256, "one": 1, "zero": 0, "big": 2**62}
FUNCTIONS = {"ceil_div": lambda a, b: -(-a // b), "min": min, "max": max}

leaves = st.one_of(st.integers(0, 10**6).map(str), st.sampled_from(sorted(DIMS)))


def _combined(inner):
    operators = st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(" ".join)
    calls = st.tuples(st.sampled_from(sorted(FUNCTIONS)), inner, inner).map(lambda c: f"{c[0]}({c[1]}, {c[2]})")
    return st.one_of(operators, calls, inner.map(lambda text: f"({text})"))


expressions = st.recursive(leaves, _combined, max_leaves=12)


@given(expressions)
def test_a_value_is_what_python_computes_or_a_named_error(text):
    try:
        value = evaluate(text, DIMS)
    except ExprError as error:
        if "zero" in error.message:
            with contextlib.suppress(ZeroDivisionError):
                eval(text, FUNCTIONS | DIMS)
                raise AssertionError("Python divides") from None
        return
    assert 0 <= value < 2**63
    assert value == eval(text, FUNCTIONS | DIMS)


@given(expressions)
def test_a_value_depends_on_nothing_but_its_symbols(text):
    names = symbols(text)
    assert set(names) <= set(DIMS)
    needed = {name: DIMS[name] for name in names}
    try:
        assert evaluate(text, needed) == evaluate(text, DIMS)
    except ExprError as error:
        assert "unknown name" not in error.message


@given(st.one_of(st.text(max_size=60), st.text("B0+-*/%(), min_ceil", max_size=60), st.text(min_size=999, max_size=1100)))
def test_any_text_is_a_size_or_an_error_within_it(text):
    try:
        assert 0 <= evaluate(text, DIMS) < 2**63
    except ExprError as error:
        assert 1 <= error.column <= len(text) + 1
        assert error.message.isprintable()
