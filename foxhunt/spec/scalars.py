"""What an unquoted YAML 1.2 scalar means; what readers of YAML disagree on is refused."""

from __future__ import annotations

import math
import re


class BadScalar(ValueError):  # noqa: N818 - named for what it reports
    """A plain scalar that no two readers need agree on, or that does not fit its type."""

    def __init__(self, message: str, help: str) -> None:
        """What is wrong, and the mend or ''."""
        super().__init__(message)
        self.help = help


_WORDS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_START = frozenset("0123456789+-.")
_INT = re.compile(r"[-+]?[0-9]+", re.ASCII)
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_SPECIAL = re.compile(r"([-+]?)\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_LEGACY = re.compile(r"[-+]?0[bB][01_]+|[-+]?[0-9][0-9_]*_[0-9_.eE]*", re.ASCII)
_LONGEST_LEGACY = 80  # the pattern backtracks, which must not cost much in a text of megabytes
_PLAIN_HELP = "write a plain decimal number, or quote it if it is text"


def resolve_plain(text: str) -> object:
    """None, a bool, an int, a float or the text itself, by the YAML 1.2 core schema; raises BadScalar.

    `on`, `no`, `yes` and `12:30` are text; `1e-3` is a number; `010`, `1_000`, `0b1` and `1e400` are refused.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _START:
        return text
    if _INT.fullmatch(text):
        return _integer(text, 10)
    if _BASED.fullmatch(text):
        return _integer(text, 16 if text[1] == "x" else 8)
    if _FLOAT.fullmatch(text):
        return _float(text)
    if special := _SPECIAL.fullmatch(text):
        return math.nan if special[3] else math.copysign(math.inf, -1.0 if special[1] == "-" else 1.0)
    if len(text) <= _LONGEST_LEGACY and _LEGACY.fullmatch(text):
        raise BadScalar(f"`{text[:24]}` is a number in some readers of YAML and text in others", _PLAIN_HELP)
    return text


def _integer(text: str, base: int) -> int:
    digits = text.lstrip("+-")
    if base == 10 and len(digits) > 1 and digits[0] == "0":
        message = f"`{text[:24]}` is octal in some readers of YAML and decimal in others"
        raise BadScalar(message, "write it without the leading zero, or quote it if it is text")
    if len(digits) > 24 or not -(2**63) <= int(text, base) < 2**63:
        raise BadScalar(f"an integer of {len(digits)} digits does not fit in 64 bits", "")
    return int(text, base)


def _float(text: str) -> float:
    value = float(text)
    mantissa = re.split("[eE]", text)[0]
    if math.isinf(value) or (value == 0 and any(c in "123456789" for c in mantissa)):
        raise BadScalar(f"`{text[:24]}` is outside the range of a float64", "")
    return value
