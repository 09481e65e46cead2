"""Size expressions against Python's own integers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foxhunt.expr import ExprError, evaluate, symbols

DIMS = {"B": 4096, "H1": 256, "one": 1, "zero": 0, "big": 2**62}
FUNCTIONS = {"ceil_div": lambda a, b: -(-a // b), "min": min, "max": max}

leaves = st.one_of(st.integers(0, 10**6).map(str), st.sampled_from(sorted(DIMS)))


def _combined(inner):
    operators = st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(" ".join)
    calls = st.tuples(st.sampled_from(sorted(FUNCTIONS)), inner, inner).map(
        lambda c: f"{c[0]}({c[1]}, {c[2]})"
    )
    return st.one_of(operators, calls, inner.map(lambda text: f"({text})"))


expressions = st.recursive(leaves, _combined, max_leaves=12)


def outcome(text, dims):
    """The value, or the error."""
    try:
        return evaluate(text, dims)
    except ExprError as error:
        return error


@given(expressions)
def test_a_value_is_what_python_computes_or_a_named_error(text):
    value = outcome(text, DIMS)
    if isinstance(value, ExprError):
        assert value.message.isprintable()
        if "zero" in value.message:
            with pytest.raises(ZeroDivisionError):
                eval(text, FUNCTIONS | DIMS)
        return
    assert 0 <= value < 2**63
    assert value == eval(text, FUNCTIONS | DIMS)


@given(expressions)
def test_a_value_depends_on_nothing_but_its_symbols(text):
    names = symbols(text)
    assert set(names) <= set(DIMS)
    few, all_of_them = outcome(text, {name: DIMS[name] for name in names}), outcome(text, DIMS)
    assert str(few) == str(all_of_them)


texts = (
    st.text(max_size=60),
    st.text("B0+-*/%(), min_ceil", max_size=60),
    st.text(min_size=999, max_size=1100),
)


@given(st.one_of(texts))
def test_any_text_is_a_size_or_an_error_within_it(text):
    value = outcome(text, DIMS)
    if isinstance(value, ExprError):
        assert 1 <= value.column <= len(text) + 1
        assert value.message.isprintable()
    else:
        assert 0 <= value < 2**63
