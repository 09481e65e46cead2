"""Programs to look at: the shipped `aux`, and a chain of any length with side branches and watchers."""

from __future__ import annotations

from pathlib import Path

from kernel_harness import ROOT

from foxhunt.cli.whole import open_programs
from foxhunt.view.index import Index


def aux() -> Index:
    """The shipped program."""
    return open_programs(ROOT / "specs", ["aux"])[0]


def deep(folder: Path, layers: int, wide: bool = True) -> Index:
    """A chain of `layers` matrix products in stages of 50; every third has a side branch, every tenth a
    watcher. Unless `wide`, they are small enough to share launches.
    """
    sides = [i for i in range(layers) if i % 3 == 0]
    watched = list(range(0, layers, 10))
    names = [f"left{i}" for i in range(layers)] + [f"right{i}" for i in sides]
    lines = ["program: deep", f"dims: {{B: {4096 if wide else 64}, H: 256}}", "isv:"]
    lines += [f"  - {{name: SEEN_{i}, reset: fold}}" for i in watched]
    lines += ["params:", "  - {name: w, shape: [H, H], group: net, init: he, reset: never}"]
    lines += ["  - {name: b, shape: [H], group: net, reset: never}"]
    lines += ["buffers:", "  - {name: start, shape: [B, H], lifetime: input}"]
    lines += [f"  - {{name: {name}, shape: [B, H], lifetime: step}}" for name in names]
    lines += ["producers:"]
    lines += [
        f"  - {{name: watch_{i}, kernel: rms, args: {{x: left{i}}}, out: {{y: SEEN_{i}}}}}" for i in watched
    ]
    lines += ["blocks:"]
    for i in range(layers):
        if i % 50 == 0:
            lines += [f"  - name: stage_{i // 50}", "    items:"]
        source = f"left{i - 1}" if i else "start"
        form = "      - {{kernel: {}, args: {{x: {}, w: w, b: b, y: {}{}}}, as: {}_{}}}"
        lines.append(form.format("linear_elu", source, "left", i, "left", i))
        if i in sides:
            lines.append(form.format("linear", source, "right", i, "right", i))
    lines += ["steps:", "  - name: train", "    items:"]
    lines += [f"      - {{use: stage_{k}, as: stage_{k}}}" for k in range(-(-layers // 50))]
    lines += [f"      - producers: [{', '.join(f'watch_{i}' for i in watched)}]", "diagnostics:"]
    lines += [f"  - {{name: SEEN_{i}}}" for i in watched]
    (folder / "specs" / "deep").mkdir(parents=True, exist_ok=True)
    (folder / "specs" / "deep" / "deep.yaml").write_text("\n".join(lines) + "\n")
    return open_programs(folder / "specs", ["deep"])[0]


def two_lanes(folder: Path) -> Index:
    """Two independent launches that are each long enough for a lane of their own, and one that joins them."""
    text = """\
program: lanes
dims: {N: 50000000}
isv:
  - {name: LIMIT, reset: fold}
  - {name: BOTH, reset: fold}
buffers:
  - {name: a, shape: [N], lifetime: input}
  - {name: b, shape: [N], lifetime: input}
  - {name: x, shape: [N], lifetime: persistent, reset: never}
  - {name: y, shape: [N], lifetime: persistent, reset: never}
  - {name: length, shape: [1], lifetime: step}
producers:
  - {name: both, kernel: rms, args: {x: length}, out: {y: BOTH}}
  - {name: limit, kernel: max_abs, args: {x: length}, out: {y: LIMIT}}
steps:
  - name: train
    items:
      - {kernel: ema, args: {x: a, s: x}, as: left}
      - {kernel: ema, args: {x: b, s: y}, as: right}
      - {kernel: l2_norm, args: {x: [x, y], y: length}}
      - {producers: [both, limit]}
diagnostics:
  - {name: LIMIT}
  - {name: BOTH}
"""
    (folder / "specs" / "lanes").mkdir(parents=True, exist_ok=True)
    (folder / "specs" / "lanes" / "lanes.yaml").write_text(text)
    return open_programs(folder / "specs", ["lanes"])[0]
