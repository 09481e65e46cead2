"""Whatever stands in a specs folder: it loads, or SpecError says why. Never anything else."""

import contextlib
import shutil
import string
import tempfile
from pathlib import Path
from unittest import mock

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foxhunt.diagnostics import Diagnostic, Location, SpecError, render_text
from foxhunt.spec.load import load_specs
from foxhunt.spec.models import Item, Kernel, Program
from foxhunt.spec.positions import Map, Seq, locate
from foxhunt.spec.schema import json_schema
from foxhunt.spec.yaml import parse, parse_bytes

KEYS = sorted({key for model in json_schema()["$defs"].values() for key in model["properties"]})
quick = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def check_findings(findings: tuple[Diagnostic, ...]) -> None:
    assert findings
    for found in findings:
        assert found.message.isprintable()
        assert found.location is not None


def load_files(files: dict[str, bytes]) -> None:
    """Load these files and check that what is raised is a SpecError fit to print."""
    folder = Path(tempfile.mkdtemp())
    try:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        try:
            with mock.patch("foxhunt.spec.load.library_root", return_value=folder):
                load_specs(folder)
        except SpecError as error:
            check_findings(error.diagnostics)
            render_text(error.diagnostics, {k: v.decode("utf-8", "replace") for k, v in files.items()})
    finally:
        shutil.rmtree(folder)


yamlish = st.text(st.sampled_from(list("abz019 \n\t:-?[]{},&*!|>'\"#%@`.<~e+\\_é\u2028\x00")), max_size=80)


@quick
@given(st.one_of(st.binary(max_size=200), st.text(max_size=100).map(str.encode), yamlish.map(str.encode)))
def test_any_bytes_are_read_or_refused(data):
    text, root, findings = parse_bytes(data, "f.yaml")
    assert root is not None or findings
    lines = text.split("\n")
    for found in findings:
        assert found.message.isprintable()
        if found.location.line and text:
            assert found.location.line <= len(lines)
            assert found.location.column <= len(lines[found.location.line - 1]) + 1
    load_files({"p/program.yaml": data, "kernels/k.yaml": data})


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["x", "B * 2", "f32", "step"]),
)
keys = st.one_of(
    st.sampled_from(KEYS),
    st.sampled_from(KEYS).map(lambda k: k[:-1] + "q"),
    st.text(string.printable, max_size=6),
)
anything = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=4)),
    max_leaves=15,
)


@quick
@given(st.dictionaries(keys, anything, max_size=5), st.booleans())
def test_any_structure_is_loaded_or_refused(content, is_kernel):
    content |= {"kernel": "k"} if is_kernel else {"program": "p"}
    text = yaml.safe_dump(content, allow_unicode=True)
    load_files({"kernels/k.yaml" if is_kernel else "p/program.yaml": text.encode()})


names = st.from_regex(r"[a-z][a-z0-9]{0,5}_[a-z0-9]", fullmatch=True)
slots = st.builds(
    lambda name, index, floor: {"name": name, "index": index, "floor": floor, "reset": "fold"},
    names,
    st.integers(0, 1000),
    st.floats(0.0078125, 100, width=32).filter(lambda x: x != 1),
)
buffers = st.builds(
    lambda name, shape: {"name": name, "shape": shape, "lifetime": "step"}, names, st.lists(names, max_size=3)
)
items = st.builds(
    lambda kernel, args: {"kernel": kernel, "args": args}, names, st.dictionaries(names, names, max_size=3)
)
programs = st.fixed_dictionaries(
    {
        "program": st.just("p"),
        "dims": st.dictionaries(names, st.integers(0, 2**40), max_size=4),
        "isv": st.lists(slots, max_size=4),
        "buffers": st.lists(buffers, max_size=4),
        "steps": st.lists(
            st.builds(lambda n, i: {"name": n, "items": i}, names, st.lists(items, max_size=3)), max_size=2
        ),
    }
)


@quick
@given(programs, st.randoms(use_true_random=False), st.booleans())
def test_a_sound_program_is_read_as_written_in_any_key_order_and_style(program, random, flow):
    def shuffled(value):
        if isinstance(value, dict):
            pairs = list(value.items())
            random.shuffle(pairs)
            return {key: shuffled(inner) for key, inner in pairs}
        return [shuffled(inner) for inner in value] if isinstance(value, list) else value

    def tupled(value):
        if isinstance(value, dict):
            return {key: tupled(inner) for key, inner in value.items()}
        return tuple(tupled(inner) for inner in value) if isinstance(value, list) else value

    text = yaml.safe_dump(shuffled(program), default_flow_style=flow, sort_keys=False)
    root, findings = parse(text, "f.yaml")
    assert findings == ()
    read = Program.model_validate(root, by_alias=True, by_name=False)
    assert read.model_dump(by_alias=True) == Program.model_validate(tupled(program)).model_dump(by_alias=True)


SOUND = """\
program: p
dims: {B: 4096, ENC: "B * 7 + 2"}
variants: {demo: {B: 256}}
isv:
  - {name: BOUND, index: 131, floor: 1.0e-8, reset: fold, doc: "a 'bound'"}
buffers:
  - {name: h1, shape: [B, ENC], lifetime: step}
producers:
  - {name: h_rms, foreach: {b: B}, kernel: rms, args: {x: "h1[b]"}, out: {y: "BOUND[b]"}}
steps:
  - name: train
    items:
      - {kernel: relu, args: {x: h1, y: [h1, "h1[0:B]"]}, as: update}
      - {producers: [h_rms]}
"""
edits = st.tuples(st.integers(0, len(SOUND)), st.integers(0, 12), st.one_of(yamlish, st.text(max_size=3)))


@quick
@given(st.lists(edits, min_size=1, max_size=3))
def test_a_sound_program_after_any_edits_is_loaded_or_refused(changes):
    text = SOUND
    for start, length, replacement in changes:
        text = text[:start] + replacement + text[start + length :]
    load_files({"p/program.yaml": text.encode("utf-8", "surrogatepass")})


@quick
@given(st.dictionaries(keys.filter(str.isprintable).filter(bool), anything, max_size=4))
def test_every_position_is_where_its_value_is_written(content):
    text = yaml.safe_dump(content, allow_unicode=True, default_flow_style=True, width=10**6)
    root, _ = parse(text, "f.yaml")
    lines = text.split("\n")

    def check(value, path):
        at = locate(root, path)
        assert at != Location("f.yaml")
        start = lines[at.line - 1][at.column - 1 :]
        if isinstance(value, Map):
            assert start.startswith("{")
            for key in value:
                check(value[key], (*path, key))
        elif isinstance(value, Seq):
            assert start.startswith("[")
            for n, inner in enumerate(value):
                check(inner, (*path, n))
        elif isinstance(value, str) and value.isalnum() and value.isascii():
            assert start.startswith(value)

    if root is not None:
        check(root, ())


def test_models_can_be_made_in_python_without_positions():
    item = Item(kernel="rms", args={"x": "h1"}, as_="r")
    assert item.spot("args", "x") == item.at == Location("<memory>")
    kernel = Kernel(kernel="rms", kind="body", doc="", params={}, reference="rms")
    assert hash(kernel) == hash(Kernel(kernel="rms", kind="body", doc="", params={}, reference="rms"))
    with contextlib.suppress(ValueError):
        Kernel(kernel="asm", kind="body", doc="", params={}, reference="rms")
        raise AssertionError("a reserved name was taken")
