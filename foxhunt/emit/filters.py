"""Values as C++ text: pure functions, the same bits after both compilers."""

from __future__ import annotations

import math
import re
import struct
from fractions import Fraction

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def f32(value: float | int) -> str:
    """A float as an f32 expression with exactly the bits that rounding `value` to f32 gives.

    Finite values are the shortest decimal within a quarter of a step, so that a compiler that rounds twice,
    by way of double, reads the same bits. NaN, infinities and values that round to infinity are bit
    patterns.

    >>> f32(1.0), f32(0.1), f32(-0.0), f32(1/3)
    ('1.0f', '0.1f', '-0.0f', '0.33333334f')
    >>> f32(1e-45), f32(-3.4028235e38), f32(1e16), f32(1e-7)
    ('1.4e-45f', '-3.4028235e+38f', '1.00000003e+16f', '1e-07f')
    >>> f32(float("nan")), f32(float("-inf")), f32(1e39)
    ('from_bits(0x7fc00000u)', 'from_bits(0xff800000u)', 'from_bits(0x7f800000u)')
    """
    try:
        (rounded,) = struct.unpack("<f", struct.pack("<f", float(value)))
    except OverflowError:
        rounded = math.copysign(math.inf, value)
    if math.isnan(rounded):
        return "from_bits(0x7fc00000u)"
    if math.isinf(rounded):
        return "from_bits(0x7f800000u)" if rounded > 0 else "from_bits(0xff800000u)"
    exponent = max(math.frexp(rounded)[1] - 24, -149)
    quarter = Fraction(2) ** (exponent - 2)
    texts = (f"{rounded:.{digits}g}" for digits in range(1, 18))
    text = next(t for t in texts if abs(Fraction(t) - Fraction(rounded)) <= quarter)
    return text + ("f" if "e" in text or "." in text else ".0f")


def i64(value: int) -> str:
    """An integer as an i64 expression.

    >>> i64(7), i64(-3), i64(2**40), i64(-(2**63))
    ('7', '-3', '1099511627776LL', '(-9223372036854775807LL - 1)')
    """
    value = int(value)
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} does not fit in 64 bits")
    if value == -(2**63):
        return "(-9223372036854775807LL - 1)"
    return str(value) if -(2**31) < value < 2**31 else f"{value}LL"


def comment(text: str) -> str:
    """Any text as one line that may stand in a `//` or a block comment and does nothing there.

    Line ends, control characters and what is not ASCII become spaces or escapes; a backslash, a comment's
    end or start and a trigraph are taken apart, so nothing can continue or leave the comment.

    >>> comment("rate */ of ??/ change" + chr(92) + chr(10) + "next")
    'rate * / of ? ?/ change/ next'
    >>> comment("µ"), comment("#include <x>")
    ('/u00b5', '#include <x>')
    """
    inert = []
    for character in text:
        if character == "\\":
            inert.append("/")
        elif character < " " or character == "\x7f" or character in "\u0085\u2028\u2029":
            inert.append(" ")
        elif character > "~":
            inert.append(f"/u{ord(character):04x}")
        else:
            inert.append(character)
    line = re.sub(r" +", " ", "".join(inert)).strip()
    while "??" in line or "*/" in line or "/*" in line:
        line = line.replace("??", "? ?").replace("*/", "* /").replace("/*", "/ *")
    return line


def ident(name: str) -> str:
    """The name itself, refused unless it is a plain C++ identifier.

    >>> ident("h1")
    'h1'
    >>> ident("a.b")
    Traceback (most recent call last):
    ValueError: 'a.b' is not an identifier
    """
    if not _IDENTIFIER.fullmatch(name):
        raise ValueError(f"{name!r} is not an identifier")
    return name


FILTERS = {"f32": f32, "i64": i64, "comment": comment, "ident": ident}
