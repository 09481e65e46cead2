"""The language of sizes and grids: `ceil_div(B * H2, 256)`. Total and bounded: no `eval`, no loops.

    sum     = product (("+" | "-") product)*
    product = atom (("*" | "//" | "%") atom)*
    atom    = INTEGER | NAME | "(" sum ")" | ("ceil_div" | "min" | "max") "(" sum ("," sum)* ")"

Division and remainder round down, as in Python. A value that leaves the signed 64-bit range is refused
where it arises; a result is never negative.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from foxhunt.diagnostics import Location, closest

MAX_LENGTH = 1000
MAX_DEPTH = 50
LIMIT = 2**63
FUNCTIONS = ("ceil_div", "max", "min")


class ExprError(ValueError):
    """A mistake in a size expression: what is wrong, at which column of the text (from 1), a hint or ''."""

    def __init__(self, message: str, column: int = 1, help: str = "") -> None:
        """A mistake at `column`."""
        super().__init__(message)
        self.message = message
        self.column = column
        self.help = help

    def at(self, start: Location) -> Location:
        """The place of the mistake in the file, for a text that stands on one line from `start` on."""
        return Location(start.path, start.line, start.column + self.column - 1) if start.line else start


class _Op(NamedTuple):
    """One instruction of the stack machine: push an integer, push a name's value, or apply an operator."""

    kind: str  # "int" | "name" | an operator | a function
    value: int | str
    column: int
    arity: int = 0


def evaluate(text: int | str, env: Mapping[str, int]) -> int:
    """The value of a size, from 0 to 2**63 - 1, with the names in `env`; raises ExprError."""
    if isinstance(text, int):
        return _checked_result(text)
    stack: list[int] = []
    for op in _parse(text):
        if op.kind == "int":
            stack.append(int(op.value))
        elif op.kind == "name":
            stack.append(_lookup(str(op.value), env, op.column))
        else:
            arguments = stack[-op.arity :]
            del stack[-op.arity :]
            stack.append(_apply(op, arguments))
    return _checked_result(stack[0])


def symbols(text: int | str) -> tuple[str, ...]:
    """The names in a size, each once, in order of appearance; raises ExprError on bad syntax."""
    if isinstance(text, int):
        return ()
    return tuple(dict.fromkeys(str(op.value) for op in _parse(text) if op.kind == "name"))


def _lookup(name: str, env: Mapping[str, int], column: int) -> int:
    value = env.get(name)
    if value is None:
        near = closest(name, env)
        raise ExprError(f"unknown name `{name}`", column, f"did you mean `{near}`?" if near else "")
    if not -LIMIT <= value < LIMIT:
        raise ExprError(f"the value of `{name}` does not fit in 64 bits", column)
    return value


def _checked_result(value: int) -> int:
    if value < 0:
        raise ExprError(f"the result {_shown(value)} is negative")
    if value >= LIMIT:
        raise ExprError(f"the result {_shown(value)} does not fit in 64 bits")
    return value


def _shown(value: int) -> str:
    return (
        str(value) if abs(value) < 10**40 else f"{'-' if value < 0 else ''}2^{abs(value).bit_length() - 1}…"
    )


_OPERATORS: dict[str, Callable[..., int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "ceil_div": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
}


def _apply(op: _Op, arguments: list[int]) -> int:
    if op.kind in ("//", "%", "ceil_div") and arguments[1] == 0:
        raise ExprError(f"division by zero: {arguments[0]} {op.kind} 0", op.column)
    value = _OPERATORS[op.kind](*arguments)
    if not -LIMIT <= value < LIMIT:
        raise ExprError(f"`{op.kind}` gives {_shown(value)}, which does not fit in 64 bits", op.column)
    return value


_TOKEN = re.compile(r"\s*(?:(?P<int>[0-9]+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<op>//|[-+*%(),]))", re.ASCII)


class _Token(NamedTuple):
    kind: str  # "int" | "name" | "op" | "end"
    text: str
    column: int


def _tokens(text: str) -> list[_Token]:
    tokens, position = [], 0
    while text[position:].strip():
        found = _TOKEN.match(text, position)
        if found is None:
            column = len(text) - len(text[position:].lstrip()) + 1
            raise _unexpected(text[column - 1], column)
        kind = found.lastgroup or ""
        tokens.append(_Token(kind, found.group(kind), found.start(kind) + 1))
        position = found.end()
    return [*tokens, _Token("end", "", len(text) + 1)]


def _unexpected(character: str, column: int) -> ExprError:
    helps = {
        "/": "division is `//` (rounds down) or `ceil_div(a, b)` (rounds up)",
        ".": "sizes are integers",
    }
    return ExprError(f"unexpected {character!a}", column, helps.get(character, ""))


@lru_cache(maxsize=8192)
def _parse(text: str) -> tuple[_Op, ...]:
    if len(text) > MAX_LENGTH:
        raise ExprError(f"longer than {MAX_LENGTH} characters")
    parser = _Parser(_tokens(text))
    parser.sum(0)
    end = parser.peek
    if end.kind != "end":
        raise ExprError(f"unexpected `{end.text}` after the expression", end.column)
    return tuple(parser.code)


class _Parser:
    """Recursive descent to postfix code; the depth is bounded, so Python's stack is too."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens = tokens
        self.position = 0
        self.code: list[_Op] = []

    @property
    def peek(self) -> _Token:
        return self.tokens[self.position]

    def take(self) -> _Token:
        token = self.tokens[self.position]
        self.position += 1
        return token

    def expect(self, text: str, opened: _Token) -> None:
        token = self.peek
        if token.text != text:
            seen = f"`{token.text}`" if token.text else "the end"
            raise ExprError(f"expected `{text}` for `{opened.text}`, found {seen}", token.column)
        self.take()

    def sum(self, depth: int) -> None:
        self.left_associative(("+", "-"), self.product, depth)

    def product(self, depth: int) -> None:
        self.left_associative(("*", "//", "%"), self.atom, depth)

    def left_associative(
        self, operators: tuple[str, ...], operand: Callable[[int], None], depth: int
    ) -> None:
        operand(depth)
        while self.peek.kind == "op" and self.peek.text in operators:
            token = self.take()
            operand(depth)
            self.code.append(_Op(token.text, 0, token.column, 2))

    def atom(self, depth: int) -> None:
        token = self.peek
        if depth > MAX_DEPTH:
            raise ExprError(f"nested deeper than {MAX_DEPTH}", token.column)
        if token.kind == "end":
            raise ExprError("an operand is missing", token.column)
        self.take()
        if token.kind == "int":
            self.integer(token)
        elif token.kind == "name" and token.text in FUNCTIONS:
            self.call(token, depth)
        elif token.kind == "name":
            self.code.append(_Op("name", token.text, token.column))
        elif token.text == "(":
            self.sum(depth + 1)
            self.expect(")", token)
        else:
            raise ExprError(f"an operand is missing before `{token.text}`", token.column)

    def integer(self, token: _Token) -> None:
        if len(token.text) > 19 or int(token.text) >= LIMIT:
            raise ExprError("an integer does not fit in 64 bits", token.column)
        if len(token.text) > 1 and token.text[0] == "0":
            raise ExprError(f"an integer has a leading zero: {token.text}", token.column)
        self.code.append(_Op("int", int(token.text), token.column))

    def call(self, function: _Token, depth: int) -> None:
        self.expect("(", function)
        arity = 1
        self.sum(depth + 1)
        while self.peek.text == ",":
            self.take()
            self.sum(depth + 1)
            arity += 1
        self.expect(")", function)
        if arity < 2 or (arity > 2 and function.text == "ceil_div"):
            wanted = "two arguments" if function.text == "ceil_div" else "two arguments or more"
            raise ExprError(f"`{function.text}` takes {wanted}, not {arity}", function.column)
        self.code.append(_Op(function.text, 0, function.column, arity))
