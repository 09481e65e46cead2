"""pydantic's findings as diagnostics: the exact position, a spec author's words, and the mend."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import ValidationError

from foxhunt.diagnostics import Diagnostic, Location
from foxhunt.spec.models import Entry
from foxhunt.spec.positions import Map, Seq, locate
from foxhunt.spec.text import describe, nearest, shorten

Path = tuple[str | int, ...]
MAX_ERRORS = 400

_WANTED = {
    "string_type": "a text",
    "int_type": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}
_LIMITS = {
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "less_than": "below {lt}",
    "multiple_of": "a multiple of {multiple_of}",
    "finite_number": "a finite number",
}
_YAML_1_1 = {"yes", "no", "on", "off", "y", "n"}


@dataclass(frozen=True)
class _Problem:
    """One pydantic error, its path cut to what the file really holds."""

    path: Path
    kind: str
    context: dict[str, Any]
    of_key: bool  # the key itself is wrong, not the value there


def explain(error: ValidationError, root: Map, model: type[Entry]) -> tuple[Diagnostic, ...]:
    """The diagnostics of `error`, which validating `root` as `model` raised."""
    groups: dict[Path, list[_Problem]] = {}
    errors = error.errors(include_url=False, include_input=False)
    for found in errors[:MAX_ERRORS]:
        kind = found["type"]
        path = _written_path(root, found["loc"], last_is_key=kind in ("missing", "extra_forbidden"))
        of_key = found["loc"][-1:] == ("[key]",)
        groups.setdefault(path, []).append(_Problem(path, kind, found.get("ctx", {}), of_key))
    findings = [
        diagnostic
        for path, problems in groups.items()
        if not _is_shadowed(path, problems, groups)
        for diagnostic in _explain_group(path, problems, root, model)
    ]
    if len(errors) > MAX_ERRORS:
        findings.append(
            Diagnostic("FH104", f"{len(errors) - MAX_ERRORS} more mistakes are not shown", root.at)
        )
    return tuple(findings)


def _written_path(root: Map, loc: Path, last_is_key: bool) -> Path:
    """`loc` without the union members and `[key]` markers that pydantic puts into it."""
    current: Any = root
    path: list[str | int] = []
    for n, step in enumerate(loc):
        if (
            isinstance(current, Map)
            and isinstance(step, str)
            and (step in current or _is_last(n, loc, last_is_key))
        ):
            path.append(step)
            current = current.get(step)
        elif isinstance(current, Seq) and isinstance(step, int) and step < len(current):
            path.append(step)
            current = current[step]
    return tuple(path)


def _is_last(n: int, loc: Path, last_is_key: bool) -> bool:
    return last_is_key and n == len(loc) - 1


def _is_shadowed(path: Path, problems: Iterable[_Problem], groups: Iterable[Path]) -> bool:
    """Whether a deeper finding tells more: `str | tuple[str, ...]` complains of both of its members."""
    deeper = any(len(other) > len(path) and other[: len(path)] == path for other in groups)
    return deeper and all(p.kind in _WANTED for p in problems)


def _explain_group(path: Path, problems: list[_Problem], root: Map, model: type[Entry]) -> list[Diagnostic]:
    first = problems[0]
    if first.kind == "extra_forbidden":
        return [_unknown_key(path, root, model)]
    if first.kind == "missing":
        return [_missing_key(path, root, model)]
    if own := [p for p in problems if p.kind == "foxhunt"]:
        return [_own(own[0], root)]
    return [_wrong_value(path, problems, root)]


def _unknown_key(path: Path, root: Map, model: type[Entry]) -> Diagnostic:
    entry, key = _entry_at(model, path[:-1]), str(path[-1])
    keys = _keys(entry) if entry else ()
    message = f"unknown key `{shorten(key)}` in {_noun(entry)}"
    return Diagnostic("FH110", message, locate(root, path, key=True), nearest(key, keys, "its keys"))


def _missing_key(path: Path, root: Map, model: type[Entry]) -> Diagnostic:
    entry, written = _entry_at(model, path[:-1]), value_at(root, path[:-1])
    name = written.get("name", written.get("kernel")) if isinstance(written, Map) else None
    called = f" `{shorten(name)}`" if isinstance(name, str) and name.isprintable() else ""
    message = f"{_noun(entry)}{called} has no `{path[-1]}`"
    return Diagnostic("FH111", message, locate(root, path[:-1]), f"add `{path[-1]}:`")


def _own(problem: _Problem, root: Map) -> Diagnostic:
    at = locate(root, problem.path, key=problem.of_key)
    context = problem.context
    if at.line:
        at = Location(at.path, at.line, at.column + context["column"] - 1)
    return Diagnostic(context["code"], context["message"], at, context["help"])


def _wrong_value(path: Path, problems: list[_Problem], root: Map) -> Diagnostic:
    value, label = value_at(root, path), _label(path)
    help = ""
    if literals := [p for p in problems if p.kind == "literal_error"]:
        allowed = re.findall(r"'([^']*)'", str(literals[0].context.get("expected", "")))
        help = nearest(value, allowed) if isinstance(value, str) else nearest("", allowed)
        message = f"{label} cannot be {describe(value)}"
    else:
        wanted = list(dict.fromkeys(_wanted(p) for p in problems))
        choice = " or ".join(part for part in (", ".join(wanted[:-1]), wanted[-1]) if part)
        message = f"{label} must be {choice}, not {describe(value)}"
        if wanted == ["true or false"] and value in _YAML_1_1:
            help = "in YAML 1.2 only `true` and `false` are truth values"
        elif wanted == ["a list"]:
            help = "write it as [ … ]"
    if isinstance(value, int | float) and path[-2:-1] in (("args",), ("with",)):
        message = f"the literal {describe(value)} stands where {label} takes a slot, a counter or a tensor"
        help = "a number is frozen into the graph: make it a slot, or a const of the kernel"
        return Diagnostic("FH215", message, locate(root, path), help)
    return Diagnostic("FH112", message, locate(root, path), help)


def _wanted(problem: _Problem) -> str:
    if problem.kind in _LIMITS:
        limits = {k: f"{v:g}" if isinstance(v, float) else v for k, v in problem.context.items()}
        return _LIMITS[problem.kind].format(**limits)
    return _WANTED.get(problem.kind, "another value")


def _label(path: Path) -> str:
    key = next((step for step in reversed(path) if isinstance(step, str)), "the file")
    inner = isinstance(path[-1], int) if path else False
    return f"an element of `{shorten(key)}`" if inner else f"`{shorten(key)}`"


def value_at(root: Map, path: Path) -> Any:
    """The value at a path, or None."""
    current: Any = root
    for step in path:
        try:
            current = current[step]
        except (KeyError, IndexError, TypeError):
            return None
    return current


def _noun(entry: type[Entry] | None) -> str:
    if entry is None:
        return "this mapping"
    words = re.sub("([a-z])([A-Z])", r"\1 \2", entry.__name__).lower()
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def _keys(entry: type[Entry]) -> tuple[str, ...]:
    fields = entry.model_fields.items()
    return tuple(field.alias or name for name, field in fields if name not in ("at", "written"))


def _entry_at(model: type[Entry], path: Path) -> type[Entry] | None:
    """The model of the mapping at `path`, found along the type annotations."""
    current: Any = model
    for step in path:
        if isinstance(current, type) and issubclass(current, Entry):
            hints = get_type_hints(current)
            field = next((n for n, f in current.model_fields.items() if step in (n, f.alias)), None)
            current = _container(hints[field]) if field else None
        else:
            current = _element(current)
    return current if isinstance(current, type) and issubclass(current, Entry) else None


def _container(annotation: Any) -> Any:
    """The annotation without `Annotated` and `| None`; of several that a value may have, the only entry."""
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation = get_args(annotation)[0]
        elif origin in (Union, UnionType):
            members = [a for a in get_args(annotation) if a is not type(None)]
            if len(members) > 1:
                members = [a for a in members if isinstance(a, type) and issubclass(a, Entry)]
            if len(members) != 1:
                return None
            annotation = members[0]
        else:
            return annotation


def _element(annotation: Any) -> Any:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is tuple:
        return _container(arguments[0])
    return _container(arguments[1]) if origin is dict else None
