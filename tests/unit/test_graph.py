"""`foxhunt graph`: pictures of steps, and that they say what was scheduled."""

import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_harness import ROOT
from view_programs import aux, deep, two_lanes

from foxhunt.cli import main
from foxhunt.cli.whole import open_programs
from foxhunt.view import text
from foxhunt.view.layout import MARGIN, layout, spread
from foxhunt.view.page import page
from foxhunt.view.picture import picture
from foxhunt.view.svg import svg

VOID = {"meta", "input", "br", "link", "img"}


class Page(HTMLParser):
    """Elements by id, the text of the data element, and whether every element is closed."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.ids, self.open, self.tags = set(), [], []
        self.inside = ""
        self.data = ""
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append((tag, found))
        if "id" in found:
            assert found["id"] not in self.ids, found["id"]
            self.ids.add(found["id"])
        self.inside = found.get("id", "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script" and self.inside == "data":
            self.data += data


@pytest.fixture(scope="module")
def index():
    return aux()


@pytest.fixture(scope="module")
def source(index):
    return page(index)


@pytest.fixture(scope="module")
def thousand(tmp_path_factory):
    return deep(tmp_path_factory.mktemp("deep"), 1000)


def test_the_picture_has_every_launch_and_every_edge_of_the_schedule(index):
    shown = picture(index, "train")
    step = index.steps["train"]
    assert [n.name for n in shown.nodes] == [n.name for n in step.launches]
    assert len(shown.links) == len(step.edges)
    declared = {e for link in shown.links for e in link.hazards}
    assert declared <= set(index.graphs["train"].edges)


def test_the_svg_is_well_formed_and_refers_to_nothing_outside(index):
    drawn = svg(picture(index, "train"))
    root = ET.fromstring(drawn)
    boxes = [g for g in root.iter("{http://www.w3.org/2000/svg}g") if "data-n" in g.attrib]
    assert len(boxes) == len(index.steps["train"].launches)
    assert not re.search(r"(href|src|url)\s*=|https?://(?!www\.w3\.org/2000/svg)|<script", drawn)


def test_the_drawing_of_the_readme_is_what_the_command_draws(index):
    drawn = (ROOT / "docs" / "aux-step.svg").read_text()
    assert drawn == svg(picture(index, "train")), "foxhunt graph aux --svg --out docs/aux-step.svg"


def test_dot_and_mermaid_quote_what_they_show(index):
    shown = picture(index, "train")
    dot, mermaid = text.dot(shown), text.mermaid(shown)
    assert dot.count("->") == len(shown.links)
    assert len(re.findall(r'^  n\d+ \[label="(?:[^"\\]|\\.)*"', dot, re.M)) == len(shown.nodes)
    assert mermaid.splitlines()[0] == "flowchart TD"
    assert len(re.findall(r'^  n\d+ (-->|-\.->)\|"[^"]*"\| n\d+$', mermaid, re.M)) == len(shown.links)


def test_the_tree_has_a_line_a_launch_and_says_why_it_waits(index):
    lines = text.tree(picture(index, "train"), index).splitlines()
    assert "← forward.l1 RAW h1 [0:1048576)" in next(line for line in lines if "forward.l2" in line)
    assert all(
        any(n.name.partition(".")[2] in line for line in lines) for n in index.graphs["train"].launches
    )


def test_the_page_is_whole_offline_and_has_its_panels(source):
    read = Page(source)
    assert read.open == []
    assert {"steps", "kinds", "search", "list", "stage", "map", "detail", "timeline", "data"} <= read.ids
    assert not [t for t, a in read.tags if t in ("link", "img", "iframe") or "src" in a or "href" in a]
    policy = next(a["content"] for t, a in read.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy


def test_the_page_knows_slots_arena_specs_and_emitted_sources(index, source):
    data = json.loads(Page(source).data)
    train = data["steps"][0]
    assert train["name"] == "train"
    assert {row[1] for row in data["slots"]} == set(index.slots)
    arena = {row[0]: row[1:] for row in train["arena"]}
    assert arena["h1"][0] == index.compiled.schedule.arena["h1"]
    slot = data["facts"]["slot:TRUNK_WEIGHT_BOUND"]
    path, line = slot["at"]
    assert "TRUNK_WEIGHT_BOUND" in data["sources"][path].splitlines()[line - 1]
    emitted = data["facts"]["device:train.forward.l1"]["emitted"]
    assert all(path in data["sources"] for path in emitted)
    clamp = index.homes["train.optimise.clamp_trunk"].numbers[0]
    assert [clamp, 0] in data["touches"]["slot:TRUNK_WEIGHT_BOUND"]["train"]


def test_text_of_a_spec_cannot_end_the_script_it_stands_in(tmp_path):
    deep(tmp_path, 3)
    path = tmp_path / "specs" / "deep" / "deep.yaml"
    path.write_text("# </script><script>alert(1)</script><!--\n" + path.read_text())
    source = page(open_programs(tmp_path / "specs", ["deep"])[0])
    assert "<script>alert" not in source
    assert "</script><script>alert(1)" in json.loads(Page(source).data)["sources"][str(path)]


def test_a_second_lane_stands_apart_in_every_form(tmp_path):
    index = two_lanes(tmp_path)
    shown = picture(index, "train")
    apart = [k for k, n in enumerate(shown.nodes) if n.lane]
    assert [shown.nodes[k].title for k in apart] == ["right"]
    beside = next(k for k, n in enumerate(shown.nodes) if n.title == "left")
    boxes = shown.layout.boxes
    assert boxes[apart[0]].x > boxes[beside].x
    assert 'class="n l1"' in svg(shown)
    assert "style=dashed" in text.dot(shown)
    assert f"class n{apart[0]} lane;" in text.mermaid(shown)
    assert " lane 1" in text.tree(shown, index)


def overlaps(a, b):
    return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height


def test_a_thousand_launches_do_not_overlap_and_make_no_ribbon(thousand):
    shown = picture(thousand, "train")
    assert len(shown.nodes) > 1000
    boxes = sorted(shown.layout.boxes, key=lambda b: (b.x, b.y))
    assert not any(overlaps(a, b) for k, a in enumerate(boxes) for b in boxes[k + 1 : k + 80])
    assert 0.5 < shown.layout.width / shown.layout.height < 3


@given(st.integers(1, 40).flatmap(
    lambda n: st.tuples(
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=80),
        st.lists(st.integers(0, 1), min_size=n, max_size=n),
    )
))  # fmt: skip
def test_any_graph_is_drawn_without_overlap_and_with_edges_between_its_boxes(graph):
    pairs, lanes = graph
    edges = sorted({(min(p), max(p)) for p in pairs if p[0] != p[1]})
    placed = layout([(100.0, 20.0 + 5 * (k % 4)) for k in range(len(lanes))], edges, lanes)
    boxes = placed.boxes
    assert not any(overlaps(a, b) for k, a in enumerate(boxes) for b in boxes[k + 1 :])
    for (a, b), points in zip(edges, placed.paths, strict=True):
        assert points[0] == (boxes[a].x + 50, boxes[a].y + boxes[a].height)
        assert points[-1] == (boxes[b].x + 50, boxes[b].y)
    assert all(b.x >= MARGIN - 1e-6 and b.x + b.width <= placed.width for b in boxes)
    assert all(b.y + b.height <= placed.height for b in boxes)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20))
def test_things_in_a_row_keep_their_order_and_distance(wanted):
    centres = spread(wanted, [10.0] * len(wanted))
    assert all(b - a >= 10 - 1e-6 for a, b in pairwise(centres))


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    done = capsys.readouterr()
    return stop.value.code, done.out, done.err


def test_the_command_writes_a_page_and_prints_the_other_forms(capsys, tmp_path):
    specs = str(ROOT / "specs")
    code, out, _ = run(capsys, "graph", "aux", "--specs", specs, "--out", str(tmp_path / "a" / "aux.html"))
    assert code == 0
    assert (tmp_path / "a" / "aux.html").read_text().startswith("<!doctype html>")
    for form, start in (
        ("--svg", "<svg"),
        ("--dot", "digraph"),
        ("--mermaid", "flowchart"),
        ("--tree", "aux.train"),
    ):
        code, out, _ = run(capsys, "graph", "aux", "--specs", specs, form)
        assert code == 0
        assert out.startswith(start)
    code, out, _ = run(
        capsys, "graph", "aux", "--specs", specs, "--tree", "--step", "evaluate", "--variant", "tiny"
    )
    assert (code, out.splitlines()[0].split(":")[0]) == (0, "aux.evaluate")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["auxx"], "aux"),
        (["aux", "--step", "trains", "--svg"], "did you mean `train`?"),
        (["aux", "--variant", "tinny"], "tiny"),
        (["aux", "--dim", "B=x"], "NAME=NUMBER"),
        (["aux", "--out", "/dev/null/aux.html"], "FH495"),
        (["aux", "--out", "/dev/full"], "FH495"),
        (["aux", "--out", "/tmp"], "FH495"),
    ],
)
def test_the_command_refuses_with_words(capsys, arguments, words):
    code, out, err = run(capsys, "graph", *arguments, "--specs", str(ROOT / "specs"))
    assert code == 2
    assert words in err
    assert "Traceback" not in err
    assert out == ""
