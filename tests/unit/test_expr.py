import pytest

from foxhunt.diagnostics import Location
from foxhunt.expr import MAX_DEPTH, ExprError, evaluate, symbols


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (7, 7),
        ("7", 7),
        ("B", 4096),
        ("BARS * FEATURES + 2", 443),
        ("2 + 3 * 4 - 1", 13),
        ("20 - 5 - 3", 12),
        ("7 // 2 * 2", 6),
        ("2 * 7 % 4", 2),
        ("(2 + 3) * 4", 20),
        ("ceil_div(B * 128, 256)", 2048),
        ("ceil_div(1, 256)", 1),
        ("ceil_div(0, 256)", 0),
        ("min(B, 3, 9)", 3),
        ("max(1, ceil_div(B, 100000))", 1),
        ("(1 - 3) // 2 + 5", 4),
        ("9223372036854775807", 2**63 - 1),
        ("\tB\n", 4096),
    ],
)
def test_size_expressions_have_these_values(text, value):
    assert evaluate(text, {"B": 4096, "BARS": 63, "FEATURES": 7}) == value


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 1, "an operand is missing"),
        ("B +", 4, "an operand is missing"),
        ("* B", 1, "an operand is missing before `*`"),
        ("-B", 1, "an operand is missing before `-`"),
        ("B / 2", 3, "unexpected '/'"),
        ("1.5 * B", 2, "unexpected '.'"),
        ("B 2", 3, "unexpected `2` after the expression"),
        ("(B", 3, "expected `)` for `(`, found the end"),
        ("B)", 2, "unexpected `)` after the expression"),
        ("Bx + 1", 1, "unknown name `Bx`"),
        ("1 + B // (B - B)", 7, "division by zero: 4096 // 0"),
        ("B % 0", 3, "division by zero: 4096 % 0"),
        ("ceil_div(B, 0)", 1, "division by zero: 4096 ceil_div 0"),
        ("ceil_div(B)", 1, "`ceil_div` takes two arguments, not 1"),
        ("ceil_div(B, 1, 2)", 1, "`ceil_div` takes two arguments, not 3"),
        ("min(B)", 1, "`min` takes two arguments or more, not 1"),
        ("min + 1", 5, "expected `(` for `min`, found `+`"),
        ("abs(B)", 4, "unexpected `(` after the expression"),
        ("1 - B", 1, "the result -4095 is negative"),
        ("B * 4611686018427387904", 3, "`*` gives 18889465931478580854784, which does not fit in 64 bits"),
        ("9223372036854775807 + 1", 21, "`+` gives 9223372036854775808, which does not fit in 64 bits"),
        ("9223372036854775808", 1, "an integer does not fit in 64 bits"),
        ("9" * 900, 1, "an integer does not fit in 64 bits"),
        ("010", 1, "an integer has a leading zero: 010"),
        ("B;", 2, "unexpected ';'"),
        ("B.real", 2, "unexpected '.'"),
        ("µ", 1, "unexpected '\\xb5'"),
        ("B\x00", 2, "unexpected '\\x00'"),
        ("[B]", 1, "unexpected '['"),
        ("B ** 2", 4, "an operand is missing before `*`"),
        ("B + " * 400 + "B", 1, "longer than 1000 characters"),
    ],
)
def test_mistakes_are_named_with_their_column(text, column, message):
    with pytest.raises(ExprError) as caught:
        evaluate(text, {"B": 4096})
    assert (caught.value.message, caught.value.column) == (message, column)


def test_mends():
    with pytest.raises(ExprError) as caught:
        evaluate("BRANCHS + 1", {"BRANCHES": 4})
    assert caught.value.help == "did you mean `BRANCHES`?"
    with pytest.raises(ExprError) as caught:
        evaluate("B / 2", {"B": 4})
    assert "ceil_div" in caught.value.help


def test_a_mistake_has_a_place_in_the_file():
    with pytest.raises(ExprError) as caught:
        evaluate("B + nope", {"B": 1})
    assert caught.value.at(Location("a.yaml", 3, 10)) == Location("a.yaml", 3, 14)
    assert caught.value.at(Location("a.yaml")) == Location("a.yaml")


@pytest.mark.parametrize("value", [-1, 2**63, 10**400])
def test_plain_integers_keep_to_the_same_range(value):
    with pytest.raises(ExprError):
        evaluate(value, {})
    with pytest.raises(ExprError):
        evaluate("B - B", {"B": value} if value > 0 else {"B": -(2**63) - 1})


def test_symbols_stand_once_in_order_of_appearance():
    assert symbols("ceil_div(B * H2, 256) + min(H1, B)") == ("B", "H2", "H1")
    assert symbols(12) == symbols("12") == ()
    with pytest.raises(ExprError):
        symbols("B +")


def test_nesting_is_bounded():
    deep = "(" * MAX_DEPTH + "1" + ")" * MAX_DEPTH
    assert evaluate(deep, {}) == 1
    with pytest.raises(ExprError, match="nested deeper than"):
        evaluate(f"({deep})", {})
    with pytest.raises(ExprError, match="nested deeper than"):
        evaluate("min(1," * 60 + "1" + ")" * 60, {})
