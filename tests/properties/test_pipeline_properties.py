"""Whatever the specs say: the whole pipeline compiles them, or says why with a place. Never a traceback.

Two sources of specs: the shipped program and its kernels with a few tokens replaced, and small programs put
together at random from declarations that mostly fit.
"""

from __future__ import annotations

import random
import re
import shutil
from functools import cache
from pathlib import Path

import pytest

from foxhunt.diagnostics import FoxhuntError
from foxhunt.emit.templates import TemplateSet, load_templates
from foxhunt.pipeline import compile_program
from foxhunt.spec.load import load_specs

ROOT = Path(__file__).parents[2]
NAME, NUMBER, MARK = (re.compile(p) for p in (r"[A-Za-z_][\w.]*", r"\d[\w.e+-]*", r"[\[\]{},:*/+-]"))
ODD = (
    *(
        "-1",
        "0",
        "1",
        "2",
        ".nan",
        "1e30",
        "9223372036854775807",
        "B*B*B*B*B*B",
        "ceil_div(B,0)",
        "x[0:1]",
        "x[5]",
    ),
    *(
        "[]",
        "{}",
        "null",
        "~",
        "true",
        "false",
        "i64",
        "u8",
        "bf16",
        "read",
        "write",
        "update",
        "slot",
        "bound",
    ),
    *(
        "foreach",
        "many",
        "fold",
        "never",
        "step",
        "persistent",
        "input",
        "resident",
        "host",
        "body",
        "statistic",
    ),
)


@cache
def templates() -> TemplateSet:
    return load_templates([ROOT / "templates"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A project with `aux`, and a library of the kernels that it launches."""
    root = tmp_path_factory.mktemp("project")
    used = {path.stem for path in (ROOT / "generated/aux/kernels").glob("*.cuh")}
    (root / "library/specs/kernels").mkdir(parents=True)
    for name in used:
        shutil.copy(ROOT / f"specs/kernels/{name}.yaml", root / "library/specs/kernels")
    shutil.copytree(ROOT / "specs/aux", root / "specs/aux")
    shutil.copytree(ROOT / "examples/data", root / "examples/data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("foxhunt.spec.load.library_root", lambda: root / "library")
        yield root


def outcome(specs: Path, name: str, of: TemplateSet) -> str:
    """`ok`, or the codes of the findings; each finding must be fit to show."""
    try:
        compile_program(load_specs(specs), name, templates=of)
    except FoxhuntError as error:
        findings = error.diagnostics
    else:
        return "ok"
    assert findings
    for found in findings:
        assert found.location is not None, found
        assert found.message.isprintable(), found
    return " ".join(sorted({d.code for d in findings}))


def mutated(text: str, others: list[str], rng: random.Random) -> str:
    """The text with one to three of its tokens replaced, mostly by tokens of their kind from all files."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        kind = rng.choices((NAME, NUMBER, MARK), (6, 3, 1))[0]
        found = list(kind.finditer(text))
        if found:
            token = rng.choice(found)
            words = kind.findall(rng.choice([text, *others])) if rng.random() < 0.8 else ODD
            text = text[: token.start()] + rng.choice(words or ODD) + text[token.end() :]
    return text


def try_mutation(root: Path, seed: int) -> str:
    """Compile with one file mutated, and put it back."""
    rng = random.Random(seed)
    files = sorted(root.rglob("*.yaml"))
    texts = {path: path.read_text() for path in files}
    program = [path for path in files if path.parent.name == "aux"]
    path = rng.choice(program if rng.random() < 0.7 else files)
    try:
        path.write_text(mutated(texts[path], list(texts.values()), rng))
        return outcome(root / "specs", "aux", templates())
    finally:
        path.write_text(texts[path])


def test_mutated_specs_compile_or_say_why(folder):
    found = [try_mutation(folder, seed) for seed in range(40)]
    codes = {code for text in found for code in text.split()}
    assert "ok" in codes
    assert {code[:3] for code in codes} >= {"FH1", "FH2"}  # the loader's and the resolver's


KERNELS = """\
- {kernel: k_one, params: {x: {shape: [n]}, y: {access: write, shape: [n]}}, grid: "ceil_div(n, BLOCK)"}
- {kernel: k_two, params: {x: {shape: [n]}, y: {access: update, shape: [n]}, s: {kind: slot}}}
- {kernel: k_any, params: {x: {shape: [...n]}, y: {access: write, shape: [n]}, b: {kind: bound}}}
- {kernel: k_rng, params: {y: {access: write, shape: [n]}, rng: {kind: rng}}}
- {kernel: k_work, params: {x: {shape: [n]}, y: {access: write, shape: [n]}}, workspace: {w: {shape: [n]}}}
- {kernel: k_many, params: {xs: {shape: [n], many: true}, y: {access: write, shape: [n]}}}
- {kernel: k_count, params: {c: {kind: counter}, y: {access: write, shape: [n]}}}
"""
STATISTICS = ("rms", "p99_abs", "mean")


def build_small(root: Path) -> None:
    """The library of the small programs: real statistics, and bodies that do nothing."""
    specs = root / "library/specs"
    (specs / "kernels").mkdir(parents=True)
    for name in STATISTICS:
        shutil.copy(ROOT / f"specs/kernels/{name}.yaml", specs / "kernels")
    for line in KERNELS.splitlines():
        name = re.findall(r"k_\w+", line)[0]
        text = line[2:].replace("{kernel", "{kind: body, doc: none, reference: none, kernel", 1)
        (specs / "kernels" / f"{name}.yaml").write_text(text + "\n")


@cache
def small_templates() -> TemplateSet:
    bodies = {
        f"kernels/{name}.cu.j2": "// nothing\n{{ signature }} {\n}\n"
        for name in re.findall(r"k_\w+", KERNELS)
    }
    return TemplateSet({**templates().files, **bodies})


def small_program(rng: random.Random, slip: float) -> str:
    """A program of a few declarations and launches that refer to one another; `slip` is the share of choices
    that need not fit.
    """

    def pick(
        *fitting: str, odd: tuple[str, ...] = ("nowhere", "g", "c0", "S0", "t0[0:M]", "t1[5]", "w0.g")
    ) -> str:
        return rng.choice(odd if rng.random() < slip else fitting)

    def shape() -> str:
        return pick("[N]", odd=("[N, M]", "[0]", "[K, K, K]", "[NO]", "['N * N * N']", "[]"))

    size = pick("1", "3", "1048576", odd=("0", "-1", "9223372036854775807"))
    lines = ["program: toy", f"dims: {{N: {size}, M: {rng.randrange(1, 5)}, K: 2 * M}}", "isv:"]
    observed = [f"S{i}" for i in range(rng.randrange(1, 4))]
    lines += [
        f"  - {{name: {s}, {pick('floor: 1.0e-8', odd=('count: M', 'source: host'))}, reset: fold}}"
        for s in observed
    ]
    lines += ["  - {name: H, source: host, init: 1.0, reset: never}", "buffers:"]
    life = "lifetime: persistent, reset: fold"
    tensors = {
        f"t{i}": pick(life, life, "lifetime: step", odd=("lifetime: input", "lifetime: step, reset: fold"))
        for i in range(rng.randrange(2, 6))
    }
    lines += [f"  - {{name: {t}, shape: {shape()}, {lifetime}}}" for t, lifetime in tensors.items()]
    lines += ["params:", f"  - {{name: w0, shape: {shape()}, group: g, reset: never}}"]
    lines += ["counters:", "  - {name: c0, advance: train, reset: never}", "producers:"]
    items, written, read = [], [t for t, lifetime in tensors.items() if lifetime == life] + ["w0"], set()
    for i in range(rng.randrange(2, 7)):
        line = rng.choice(KERNELS.splitlines())
        args, used = [], set()
        for name in re.findall(r"(\w+): \{(?!\w+: \{)", line.split("workspace")[0]):
            if name == "rng":
                continue
            if name in ("s", "b"):
                value = pick("H" if name == "s" else rng.choice(observed))
            elif name == "c":
                value = pick("c0")
            elif name == "y":
                value = pick(*sorted(tensors.keys() - used or tensors))
                written.append(value)
            else:
                value = pick(*written)
                read.add(value)
                used.add(value)
            args.append(f"{name}: '{value}'")
        items.append(f"{{kernel: {re.findall(r'k_[a-z]+', line)[0]}, args: {{{', '.join(args)}}}, as: i{i}}}")
    for i, name in enumerate(t for t in (*tensors, "w0") if f"'{t}'" not in str(items)):
        items.append(f"{{kernel: k_one, args: {{x: w0, y: {name}}}, as: j{i}}}")
    for i, slot in enumerate(observed):
        source = pick(*([t for t in written if t not in read] or written))
        kernel = rng.choice(STATISTICS)
        lines.append(f"  - {{name: p{i}, kernel: {kernel}, args: {{x: '{source}'}}, out: {{y: {slot}}}}}")
    items.append(f"{{producers: [{', '.join(f'p{i}' for i in range(len(observed)))}]}}")
    lines += ["steps:", "  - name: train", "    items:", *(f"      - {item}" for item in items)]
    shown = ", ".join(f"{{name: {name}}}" for name in (*observed, "H", "c0"))
    return "\n".join(lines) + f"\ndiagnostics: [{shown}]\n"


def try_small(specs: Path, seed: int) -> str:
    """Compile a small program; half of them were put together without a slip."""
    rng = random.Random(seed)
    (specs / "toy").mkdir(parents=True, exist_ok=True)
    (specs / "toy/program.yaml").write_text(small_program(rng, rng.choice((0.0, 0.05))))
    return outcome(specs, "toy", small_templates())


def test_small_programs_compile_or_say_why(tmp_path, monkeypatch):
    monkeypatch.setattr("foxhunt.spec.load.library_root", lambda: tmp_path / "library")
    build_small(tmp_path)
    found = [try_small(tmp_path / "specs", seed) for seed in range(80)]
    codes = {code for text in found for code in text.split()}
    assert found.count("ok") > 15
    assert len(codes) > 12
