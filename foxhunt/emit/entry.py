"""The context of one entry: its words, its tasks, and each argument as CUDA and as host text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foxhunt.dtypes import DTYPES
from foxhunt.emit.signature import accessor, param_type
from foxhunt.ir.system import NAMES
from foxhunt.ir.types import Access, Argument, Launch
from foxhunt.schedule.abi import Word, dynamic_dims, launch_words, static_dims, task_words
from foxhunt.schedule.estimate import PARTIAL_BYTES
from foxhunt.schedule.types import FusedLaunch, Task

Text = dict[str, str]
"""The same argument in both forms: {"cuda": …, "host": …}."""


@dataclass(frozen=True)
class KernelText:
    """What an entry must know of a rendered kernel."""

    header: str  # path below the generated folder
    namespace: str
    threads: str  # how the host runs them: loop, fibers or one
    shared: bool  # whether it defines a Shared with members


def kernel_key(launch: Launch) -> str:
    """Which rendered text a launch runs: its kernel's, or for a system kernel its own."""
    return launch.name if launch.kernel.kernel in NAMES else launch.kernel.kernel


def word_name(index: int, word: Word) -> str:
    """The C name of a word; the index makes it unique in its entry."""
    return f"w{index}_{word.name}"


def word_type(word: Word) -> str:
    """The CUDA parameter type of a word."""
    if word.span is None:
        return "i64"
    const = "const " if word.access == "read" else ""
    return f"{const}{word.dtype.ctype}* __restrict__"


def entry_sizes(launch: FusedLaunch) -> list[tuple[str, int]]:
    """The constexpr dims of an entry: name in its namespace of layout.cuh, value."""
    return [
        (f"T{t}M{m}_{name}", value)
        for t, task in enumerate(launch.tasks)
        for m, member in enumerate(task.launches)
        for name, value in static_dims(member)
    ]


def entry_context(launch: FusedLaunch, kernels: Mapping[str, KernelText]) -> dict[str, Any]:
    """Everything that `program/launch.cu.j2` shows of one device launch."""
    words: list[Word] = []
    tasks = []
    for number, task in enumerate(launch.tasks):
        tasks.append(_task(number, task, kernels, words))
    texts = [kernels[kernel_key(n)] for t in launch.tasks for n in t.launches]
    return {
        "entry": launch.entry,
        "first": launch.name,
        "block": launch.block,
        "headers": sorted({t.header for t in texts}),
        "sizes": entry_sizes(launch),
        "words": [{"name": word_name(i, w), "type": word_type(w)} for i, w in enumerate(words)],
        "tasks": tasks,
        "shared": list(dict.fromkeys(t["shared"] for t in tasks if t["shared"])),
        "statistics": any(t.launches[0].kernel.kind == "statistic" for t in launch.tasks),
        "partial_bytes": PARTIAL_BYTES,
    }


def _task(number: int, task: Task, kernels: Mapping[str, KernelText], words: list[Word]) -> dict[str, Any]:
    """One task; its words are appended to `words`."""
    kernel = task.launches[0].kernel
    text = kernels[kernel_key(task.launches[0])]
    context: dict[str, Any] = {"block": task.block, "title": _title(task), "members": []}
    if kernel.kind == "statistic":
        members = [_member(number, m, n, task, kernels, words) for m, n in enumerate(task.launches)]
        passes = ", ".join(m["pass"] for m in members)
        context |= {
            "members": members,
            "domain": members[0]["domain"],
            "shared": f"StatisticsShared<{task.block}, {passes}>",
            "threads": "one",
        }
    else:
        launch = task.launches[0]
        sizes = [f"sizes::T{number}M0_{name}" for name, _ in static_dims(launch)]
        values = ", ".join([str(task.block), *sizes, *map(str, _row_counts(launch))])
        context |= {
            "function": f"{text.namespace}::body<{values}>",
            "arguments": list(_arguments(launch, words)),
            "shared": f"{text.namespace}::Shared" if text.shared else "",
            "threads": "one" if kernel.kind == "gemm" else text.threads,
        }
    own = task_words(task, {})
    names = {w.name: _raw(len(words) + i, w) for i, w in enumerate(own)}
    words += own
    return context | names


def _title(task: Task) -> str:
    kernels = dict.fromkeys(n.kernel.kernel for n in task.launches)
    passes = f", pass {task.pass_index}" if task.launches[0].kernel.passes > 1 else ""
    return " + ".join(kernels) + passes


def _member(
    number: int, m: int, launch: Launch, task: Task, kernels: Mapping[str, KernelText], words: list[Word]
) -> dict[str, Any]:
    """One statistic of a task: its Args and pass types, and the fields of its Args."""
    namespace = kernels[kernel_key(launch)].namespace
    values = [f"sizes::T{number}M{m}_{name}" for name, _ in static_dims(launch)]
    values += map(str, _row_counts(launch))
    many = [a.name for a in launch.arguments if a.many and a.kind == "data" and a.access is Access.READ]
    fields = list(_arguments(launch, words))
    if launch.kernel.passes == 1:
        fields.append({"cuda": "nullptr", "host": "nullptr"})
    return {
        "type": f"{namespace}::Args" + (f"<{', '.join(values)}>" if values else ""),
        "pass": f"{namespace}::Pass{task.pass_index}",
        "arguments": fields,
        "domain": f"a{m}.{many[0]}" if many else f"Elements{{a{m}.n}}",
    }


def _row_counts(launch: Launch) -> list[int]:
    return [len(a.ranges) for a in launch.arguments if a.many]


def _arguments(launch: Launch, words: list[Word]) -> Iterator[Text]:
    """A launch's arguments in the order of its signature; their words are appended to `words`."""
    mine = launch_words(launch, {})
    start = len(words)
    words += mine
    at = 0
    for argument in launch.arguments:
        used = {"rng": 3, "bound": 3}.get(argument.kind, 2 * len(argument.ranges) if argument.many else 1)
        yield _argument(launch, argument, start + at, mine[at : at + used])
        at += used
    for name in sorted(launch.kernel.workspace):
        ctype = DTYPES[launch.kernel.workspace[name].dtype].ctype
        yield {"cuda": word_name(start + at, mine[at]), "host": f"w.out<{ctype}>({start + at})"}
        at += 1
    if launch.kernel.tickets != 0:
        yield {"cuda": f"Ticket({word_name(start + at, mine[at])})", "host": f"w.ticket({start + at})"}
        at += 1
    for _ in dynamic_dims(launch):
        yield {"cuda": word_name(start + at, mine[at]), "host": f"w.integer({start + at})"}
        at += 1
    if at < len(mine):  # the carry
        yield _raw(start + at, mine[at])


def _argument(launch: Launch, argument: Argument, start: int, words: Sequence[Word]) -> Text:
    param = launch.kernel.params[argument.name]
    names = [word_name(start + i, w) for i, w in enumerate(words)]
    if argument.kind == "rng":
        return {"cuda": f"Rng({', '.join(names)})", "host": f"w.rng({start})"}
    if argument.kind == "bound":
        return {"cuda": f"Bound({', '.join(names)})", "host": f"w.bound({start})"}
    if argument.kind == "counter" and param.access == "read":
        return {"cuda": f"Counter({names[0]})", "host": f"w.counter({start})"}
    getter = {"In": "in", "Out": "out", "Update": "update"}[accessor(param).split("<")[0]]
    ctype = DTYPES[param.dtype].ctype
    if not argument.many:
        return {"cuda": names[0], "host": f"w.{getter}<{ctype}>({start})"}
    table = param_type(argument.name, param).replace(f"ROWS_{argument.name}", str(len(argument.ranges)))
    places = range(start, start + len(words), 2)
    pointers = ", ".join(f"w.{getter}<{ctype}>({i})" for i in places)
    counts = ", ".join(f"w.integer({i + 1})" for i in places)
    return {
        "cuda": f"{table}{{{{{', '.join(names[::2])}}}, {{{', '.join(names[1::2])}}}}}",
        "host": f"{table}{{{{{pointers}}}, {{{counts}}}}}",
    }


def _raw(index: int, word: Word) -> Text:
    """A word as a raw pointer or an integer."""
    name = word_name(index, word)
    if word.span is None:
        return {"cuda": name, "host": f"w.integer({index})"}
    return {"cuda": name, "host": f"w.pointer<{word.dtype.ctype}>({index})"}
