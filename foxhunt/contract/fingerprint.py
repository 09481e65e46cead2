"""Two hashes of a program: what a checkpoint holds (layout), and what its numbers mean (semantics)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256

from foxhunt.ir.types import LaidOutProgram, LayoutEntry, Lifetime
from foxhunt.ir.watch import UNDOING, ignored_names, policy

PRELUDE_VERSION = 1
"""Raised when the prelude changes what a kernel computes."""


@dataclass(frozen=True)
class Fingerprint:
    """Both hashes in hexadecimal, and the lines that the layout hash is made of."""

    layout: str
    semantics: str
    lines: tuple[str, ...]


def fingerprint(laid_out: LaidOutProgram, rendered_kernels: Mapping[str, str]) -> Fingerprint:
    """The fingerprint of a program and its `rendered_kernels` (path → comment-stripped C++ text).

    Neither hash depends on YAML formatting, file names, comments, dims that no checkpointed shape has, the
    version of the tool or the machine.
    """
    lines = layout_lines(laid_out.entries)
    words = (f"{what} {meant}" for what, meant in declared(laid_out))
    semantics = _hash([*words, *_sources(rendered_kernels)])
    return Fingerprint(layout_hash(lines), semantics, lines)


def layout_lines(entries: Iterable[LayoutEntry]) -> tuple[str, ...]:
    """`<kind> <position> <name> <dtype> <shape>` for each entry, by (kind, position, name)."""
    return tuple(map(layout_line, sorted(entries, key=lambda e: (e.kind, e.position, e.name))))


def layout_line(entry: LayoutEntry) -> str:
    """One line of the layout.

    >>> layout_line(LayoutEntry("param", 64, "w", "f32", (3, 2)))
    'param 64 w f32 [3,2]'
    """
    shape = ",".join(map(str, entry.shape))
    return f"{entry.kind} {entry.position} {entry.name} {entry.dtype} [{shape}]"


def layout_hash(lines: Iterable[str]) -> str:
    """SHA-256 over the lines, each ended by LF."""
    return _hash(lines)


def _hash(lines: Iterable[str]) -> str:
    return sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def declared(laid_out: LaidOutProgram) -> Iterator[tuple[str, str]]:
    """What the entries mean beyond their place, as (what, meaning): first values, smoothing, reset policies.

    A slot's meaning is `<source> <init> <sentinel> <floor or -> <reset>`, floats in hexadecimal.
    """
    program = laid_out.program
    yield "prelude", str(PRELUDE_VERSION)
    yield "precision", program.precision
    yield "health", _health(laid_out)
    for slot in sorted(program.slots, key=lambda s: s.name):
        if slot.retired is None:
            floor = "-" if slot.floor is None else slot.floor.hex()
            values = f"{slot.init.hex()} {slot.sentinel.hex()} {floor}"
            yield f"slot {slot.name}", f"{slot.source} {values} {slot.reset}"
    degenerate = {(o.slot, o.degenerate_zero) for o in program.observations if not o.retired}
    for name, zero in sorted(degenerate):
        yield f"smoothing {name}", "skips zero" if zero else "keeps zero"
    for tensor in sorted(program.tensors, key=lambda t: t.name):
        if tensor.lifetime is Lifetime.PERSISTENT and tensor.retired is None:
            yield f"tensor {tensor.name}", f"{tensor.init} {tensor.reset}"
    for counter in sorted(program.counters, key=lambda c: c.name):
        yield f"counter {counter.name}", f"{counter.advance or '-'} {counter.reset}"


def _health(laid_out: LaidOutProgram) -> str:
    """The policy; with what it ignores only where that may change what a run computes."""
    program = laid_out.program
    ignored = ignored_names(program)
    changes = ignored and policy(program) in UNDOING
    return policy(program) + (f" ignoring {', '.join(ignored)}" if changes else "")


def _sources(rendered: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(rendered):
        yield f"kernel {name}"
        yield rendered[name]
