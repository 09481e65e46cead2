"""What can be seen in C++ without compiling it: comments, collectives, what a kernel must not say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""//(?:\\\n|[^\n])*            # line comment, continued lines included
      | /\*.*?(?:\*/|\Z)             # block comment
      | R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"
      | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
    """,
    re.VERBOSE | re.DOTALL,
)


def strip_comments(text: str) -> str:
    """C++ text with every comment replaced by a space, its lines kept; strings are left alone.

    >>> strip_comments('a /* x */ b // y') == 'a   b  '
    True
    >>> strip_comments('s = "// no";')
    's = "// no";'
    """

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        return " " + "\n" * found.count("\n") if found.startswith("/") else found

    return _TOKEN.sub(blank, text)


def normalise(text: str) -> str:
    """Comment-stripped text with runs of blanks made one: what the semantics hash is taken of."""
    return "\n".join(
        line for line in (" ".join(row.split()) for row in strip_comments(text).splitlines()) if line
    )


COLLECTIVES = (
    "block.sync(",
    "block.sum(",
    "block.max(",
    "block.min(",
    "block.warp_sum(",
    "block.warp_max(",
    "block.warp_min(",
    "block.shfl",
    "block.ballot(",
    "block.last_block(",
    "block.once(",
    "block.template sum<",
    "block.template max<",
    "block.template min<",
    "block.template reduce<",
)
"""Text of a body whose threads wait for one another: on the host it needs a fiber a thread."""


PER_THREAD = ("block.thread", "block.first(", "block.stride(", "block.lane(", "block.warp(")
"""Text that differs between the threads of a block."""


def waits(text: str) -> bool:
    """Whether a body has a barrier or a block collective, or hands its block to a function that may.

    >>> waits("y[i] = x[i];"), waits("block.sync();"), waits("tree(block, v);")
    (False, True, True)
    """
    code = strip_comments(text)
    if any(c in code for c in COLLECTIVES):
        return True
    handed = re.findall(r"\b(\w+)\s*(?:<[^;{}]*>)?\s*\(\s*block\s*[,)]", code)
    return any(name not in ("body",) for name in handed)


def host_threads(text: str) -> str:
    """How the host runs a body's threads: `one` call a block where nothing but phases tells them apart,
    `fibers` where they wait for one another otherwise, else a plain `loop` over them.

    >>> host_threads("block.phase(n, f);"), host_threads("block.sync();"), host_threads("y[i] = x[i];")
    ('one', 'fibers', 'loop')
    >>> host_threads("block.phase(n, f); y[block.first()] = 0.0f;")
    'fibers'
    """
    code = strip_comments(text).replace("block.last_block(", "(")
    if "block.phase(" not in code:
        return "fibers" if waits(text) else "loop"
    return "fibers" if waits(code) or any(p in code for p in PER_THREAD) else "one"


def defines_shared(text: str) -> bool:
    """Whether a kernel file defines its `Shared`."""
    return (
        re.search(r"\b(?:struct|using|union)\s+(?:alignas\s*\([^)]*\)\s*)?Shared\b", strip_comments(text))
        is not None
    )


def surviving(text: str, names: Iterable[str]) -> tuple[str, ...]:
    """Which of `names` still occur as whole words in comment-stripped code: the stop-gradient check.

    >>> surviving("dw[i] = dy[i]; // no dx here", ["dx", "dy"])
    ('dy',)
    """
    words = set(re.findall(r"\w+", strip_comments(text)))
    return tuple(sorted(n for n in set(names) if n in words))


@dataclass(frozen=True)
class Finding:
    """A line of a kernel that breaks a rule of the house."""

    code: str
    line: int
    message: str
    help: str


_LIBM = (
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "floor",
    "fma",
    "fmax",
    "fmin",
    "fmod",
    "hypot",
    "isfinite",
    "isinf",
    "isnan",
    "ldexp",
    "lgamma",
    "llrint",
    "llround",
    "log",
    "log10",
    "log1p",
    "log2",
    "lrint",
    "lround",
    "nearbyint",
    "pow",
    "remainder",
    "rint",
    "round",
    "rsqrt",
    "sin",
    "sincos",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "tgamma",
    "trunc",
)
_FLOATING = r"(?:\d\.\d*|\.\d+|\d)(?:[eEpP][+-]?\d+)?f\b|\b\d+\.\d*(?![\w.])"
_INTEGER_TYPE = (
    r"(?:i32|i64|u32|u64|u8|int|long|short|char|unsigned|signed|size_t)(?:\s+(?:int|long|char|short))*"
)
_FLOAT_CALLS = r"\b(?:exp_|log_|tanh_|sin_|cos_|sqrt_|fma_|floor_|ceil_|sigmoid_|load4)\s*\("


@dataclass(frozen=True)
class _Rule:
    code: str
    pattern: re.Pattern[str]
    message: str
    help: str


_RULES = (
    _Rule(
        "FH411",
        re.compile(rf"(?<![\w.>:])(?:::|std::)?(?:{'|'.join(_LIBM)})[fl]?\s*\(|\bstd\s*::"),
        "`{}` is a name of the C or C++ library, whose bits differ between host and GPU",
        "use the prelude: exp_ log_ tanh_ sin_ cos_ sqrt_ fma_ abs_ min_ max_ floor_ …",
    ),
    _Rule(
        "FH412",
        re.compile(r"\b__\w+"),
        "`{}` is an intrinsic or a compiler's name, not one of the prelude",
        "fast intrinsics round differently; barriers, shuffles and math come from the prelude",
    ),
    _Rule(
        "FH413",
        re.compile(r"\batomic\w*"),
        "`{}`: no kernel uses atomics, a float sum must have one order",
        "write partials to fixed slots and let the last block combine them (`block.last_block`)",
    ),
    _Rule(
        "FH414",
        re.compile(rf"\(\s*{_INTEGER_TYPE}\s*\)\s*[\w(.+-]|(?<![\w<:,.])\s(?:i32|i64|u32|u64|int)\s*\("),
        "`{}` is a bare cast to an integer; of a float that is undefined outside its range",
        "use to_i32(x) or to_i64(x), which saturate; static_cast<…> between integers",
    ),
    _Rule(
        "FH414",
        re.compile(
            rf"static_cast<\s*{_INTEGER_TYPE}\s*>\s*\((?:[^()]|\([^()]*\))*?(?:{_FLOATING}|{_FLOAT_CALLS})"
        ),
        "`{}` casts a float to an integer; outside its range that is undefined",
        "use to_i32(x) or to_i64(x), which saturate",
    ),
    _Rule(
        "FH415",
        re.compile(r"\bnumeric_limits\b|\b(?:FLT|DBL|LDBL)_\w+|\bINFINITY\b|\bHUGE_VALF?\b|\bNAN\b"),
        "`{}` is a limit out of a header",
        "limits come from `bound` parameters or named `consts`; inf_() and nan_() are in the prelude",
    ),
    _Rule(
        "FH416",
        re.compile(
            r"^\s*#\s*(?:include|import|pragma\s+(?!unroll)|define|undef)\b|\basm\b|\bgoto\b|\bmalloc\b|\bnew\b"
        ),
        "`{}` has no place in a kernel body",
        "the prelude is included already; name constants with constexpr or `consts`",
    ),
)


def findings(text: str) -> Iterator[Finding]:
    """What a kernel's text says that it must not, by line of that text; comments and strings do not count."""
    for number, row in enumerate(strip_comments(text).splitlines(), start=1):
        for rule in _RULES:
            for match in rule.pattern.finditer(row):
                shown = match.group().strip()
                yield Finding(rule.code, number, rule.message.format(shown), rule.help)
