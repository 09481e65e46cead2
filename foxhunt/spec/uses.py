"""`uses:` between programs: no circles, no unknown names, and one meaning for every block name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from foxhunt.diagnostics import Diagnostic, SpecError, fail
from foxhunt.spec.models import Block, Program, SpecSet
from foxhunt.spec.text import nearest

MAX_CHAIN = 16


def visible_blocks(specs: SpecSet, program: str) -> dict[str, Block]:
    """The blocks that `program` may use: its own, then those of the programs that it uses, however far away.

    Programs are visited in depth-first order of `uses`, each once. `load_specs` has refused circles and two
    blocks of one name in this set, so a name means the same wherever it is seen. Raises SpecError for an
    unknown program.
    """
    if program not in specs.programs:
        raise fail(
            SpecError, "FH118", f"there is no program `{program}`", help=nearest(program, specs.programs)
        )
    return {block.name: block for home in _reachable(specs.programs, program) for block in home.blocks}


def _reachable(programs: Mapping[str, Program], start: str) -> list[Program]:
    """`start` and what it uses, depth first, each once; names that do not exist are passed over."""
    order: dict[str, Program] = {}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name in programs and name not in order:
            order[name] = programs[name]
            waiting += reversed(programs[name].uses)
    return list(order.values())


def check_uses(programs: Mapping[str, Program], folders: frozenset[str]) -> Iterator[Diagnostic]:
    """Findings about `uses` and block names. `folders` also has the programs that could not be read."""
    unknown = list(_unknown(programs, folders))
    yield from unknown
    chains = list(_chains(programs))
    yield from chains
    if not chains:
        yield from _ambiguous(programs)


def _unknown(programs: Mapping[str, Program], folders: frozenset[str]) -> Iterator[Diagnostic]:
    for program in programs.values():
        for n, used in enumerate(program.uses):
            if used not in folders:
                message = f"`{program.program}` uses `{used}`, but there is no such program folder"
                others = folders - {program.program}
                yield Diagnostic(
                    "FH118", message, program.spot("uses", n), nearest(used, others, "the others are")
                )


def _chains(programs: Mapping[str, Program]) -> Iterator[Diagnostic]:
    """One finding for each circle, and for each first program of a chain that is too long."""
    depth: dict[str, int] = {}
    circles = False
    for start in sorted(programs):
        if start in depth:
            continue
        path: list[str] = []
        entered = [(start, 0)]
        while entered:
            name, next_use = entered.pop()
            if next_use == 0:
                path.append(name)
            uses = [u for u in programs[name].uses if u in programs]
            if next_use < len(uses):
                entered.append((name, next_use + 1))
                used = uses[next_use]
                if used in path:
                    circles = True
                    yield _circle(programs, [*path[path.index(used) :], used])
                elif used not in depth:
                    entered.append((used, 0))
                continue
            path.pop()
            depth[name] = 1 + max((depth.get(u, 0) for u in uses), default=0)
    if not circles:
        yield from _too_long(programs, depth)


def _circle(programs: Mapping[str, Program], chain: list[str]) -> Diagnostic:
    last = programs[chain[-2]]
    at = last.spot("uses", last.uses.index(chain[-1]))
    if len(chain) == 2:
        return Diagnostic("FH118", f"`{chain[0]}` uses itself", at, "remove it")
    return Diagnostic("FH118", f"`uses` goes in a circle: {_arrows(chain)}", at, "remove one of them")


def _too_long(programs: Mapping[str, Program], depth: Mapping[str, int]) -> Iterator[Diagnostic]:
    used = {u for program in programs.values() for u in program.uses}
    for name in sorted(depth):
        if depth[name] <= MAX_CHAIN or name in used:
            continue
        chain = [name]
        while following := [u for u in programs[chain[-1]].uses if u in depth]:
            chain.append(max(following, key=lambda u: depth[u]))
        message = f"`uses` is a chain of {len(chain)}, at most {MAX_CHAIN}: {_arrows(chain)}"
        yield Diagnostic("FH118", message, programs[name].spot("uses"), "use the needed program directly")


def _arrows(chain: list[str]) -> str:
    shown = chain if len(chain) <= 10 else [*chain[:7], "…", *chain[-2:]]
    return " → ".join(shown)


def _ambiguous(programs: Mapping[str, Program]) -> Iterator[Diagnostic]:
    """Blocks of one name that one program would see twice, each pair once."""
    told: set[tuple[str, str, int]] = set()
    for start in sorted(programs):
        seen: dict[str, tuple[Program, Block]] = {}
        for home in _reachable(programs, start):
            for n, block in enumerate(home.blocks):
                first_home, first = seen.setdefault(block.name, (home, block))
                if first is block or (block.name, home.program, n) in told:
                    continue
                told.add((block.name, home.program, n))
                where = "" if first_home is home else f" in `{first_home.program}` and in `{home.program}`"
                message = f"two blocks are named `{block.name}`{where}"
                note = ((first.spot("name"), "the other one"),)
                yield Diagnostic("FH118", message, block.spot("name"), "rename one of them", related=note)
