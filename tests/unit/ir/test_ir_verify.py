"""The rules: each program here breaks one, and the sound one none."""

import pytest
from ir_builders import check, findings, hints

from foxhunt.rules import RULES

SOUND = """
program: p
dims: {B: 8, HALF: 4, K: 2}
isv:
  - {name: LR, source: host, init: 0.1, reset: never}
  - {name: LIMIT, floor: 0.0, reset: fold}
  - {name: LAMBDA, source: kernel, reset: never}
  - {name: SEEN, reset: fold}
counters: [{name: t, advance: train, reset: never}]
params: [{name: w, shape: [B], group: g, reset: never}]
buffers:
  - {name: fed, shape: [B], lifetime: input}
  - {name: h, shape: [B], lifetime: step}
  - {name: table, shape: [B], lifetime: resident, fill: bars.table}
data: [{name: bars, reader: ohlcv}]
blocks: [{name: part, items: [{kernel: copy, args: {x: fed, y: h}}]}]
producers:
  - {name: oracle, kernel: p99, args: {x: w}, out: {y: LIMIT}}
  - {name: seen, kernel: p99, args: {x: h}, out: {y: SEEN}}
steps:
  - name: train
    items:
      - {use: part}
      - {kernel: look, args: {x: table}}
      - {kernel: tick, args: {t: t, y: w.g}}
      - {kernel: scale, args: {x: w, s: LR}, as: update}
      - {producers: [oracle, seen]}
      - {kernel: limit, args: {w: w, limit: LIMIT}}
      - {kernel: set_slot, args: {s: LAMBDA}}
diagnostics: [{name: SEEN}, {name: LAMBDA}]
"""


def test_a_sound_program_has_no_findings():
    check(SOUND)


BROKEN = [
    ("orphan slot", "diagnostics: [{name: SEEN}, {name: LAMBDA}]", "diagnostics: [{name: SEEN}]",
     "FH250", "slot LAMBDA is read by no launch and not listed under diagnostics"),
    ("orphan buffer", "buffers:", "buffers:\n  - {name: spare, shape: [B], lifetime: input}",
     "FH250", "buffer spare is used by no launch"),
    ("orphan param", "params: [", "params: [{name: v, shape: [B], group: f, reset: never}, ",
     "FH250", "param v is used by no launch"),
    ("orphan counter", "counters: [", "counters: [{name: u, reset: never}, ",
     "FH250", "counter u is used by no launch"),
    ("orphan block", "blocks: [", "blocks: [{name: idle, items: []}, ",
     "FH250", "block idle is used by no step"),
    ("orphan data", "data: [", "data: [{name: more, reader: ohlcv}, ",
     "FH250", "data source more fills no buffer"),
    ("unlisted producer", "{producers: [oracle, seen]}", "{producers: [oracle]}",
     "FH203", "slot SEEN: no step lists its producer seen"),
    ("no producer", "  - {name: SEEN, reset: fold}",
     "  - {name: SEEN, reset: fold}\n  - {name: ALONE, reset: fold}",
     "FH203", "slot ALONE has no producer and is not set by the host"),
    ("no writer", "      - {kernel: set_slot, args: {s: LAMBDA}}\n", "",
     "FH203", "slot LAMBDA has source kernel, but no launch writes it"),
    ("two producers", "out: {y: SEEN}", "out: {y: LIMIT}",
     "FH253", "slot LIMIT has 2 producers: oracle.y, seen.y"),
    ("two writers", "      - {kernel: set_slot, args: {s: LAMBDA}}\n",
     "      - {kernel: set_slot, args: {s: LAMBDA}, as: one}\n"
     "      - {kernel: set_slot, args: {s: LAMBDA}, as: two}\n",
     "FH253", "slot LAMBDA is written by train.one and train.two"),
    ("no reset policy", "init: 0.1, reset: never", "init: 0.1", "FH252", "slot LR has no reset policy"),
    ("no reset of a param", "group: g, reset: never", "group: g", "FH252", "param w has no reset policy"),
    ("no reset of a counter", "advance: train, reset: never", "advance: train",
     "FH252", "counter t has no reset policy"),
    ("read before write", "      - {use: part}\n      - {kernel: look, args: {x: table}}",
     "      - {kernel: look, args: {x: table}}\n      - {kernel: look, args: {x: h}, as: early}\n"
     "      - {use: part}",
     "FH251", "train.early reads h, which nothing has written before"),
    ("half written", "copy, args: {x: fed, y: h}}", "copy, args: {x: 'fed[0:HALF]', y: 'h[0:HALF]'}}",
     "FH251", "train.seen reads h, which nothing has written before"),
    ("update of nothing", "{kernel: tick, args: {t: t, y: w.g}}", "{kernel: scale, args: {x: w.g, s: LR}}",
     "FH251", "train.scale updates w.g, which nothing has written before"),
    ("no fill", "lifetime: resident, fill: bars.table", "lifetime: resident",
     "FH251", "resident buffer table is filled from nowhere"),
    ("input written", "{kernel: scale, args: {x: w, s: LR}, as: update}",
     "{kernel: scale, args: {x: fed, s: LR}, as: update}",
     "FH254", "train.update writes fed, an input buffer, which the host feeds"),
    ("resident written", "{kernel: scale, args: {x: w, s: LR}, as: update}",
     "{kernel: scale, args: {x: table, s: LR}, as: update}",
     "FH254", "train.update writes table, a resident buffer, which is filled once and not checkpointed"),
    ("bound of itself",
     "      - {producers: [oracle, seen]}\n      - {kernel: limit, args: {w: w, limit: LIMIT}}\n",
     "      - {kernel: limit, args: {w: w, limit: LIMIT}}\n      - {producers: [oracle, seen]}\n",
     "FH255", "train.oracle observes w for bound LIMIT after train.limit has clamped it"),
    ("bound of itself, a step later", "{kernel: scale, args: {x: w, s: LR}, as: update}",
     "{kernel: scale, args: {x: h, s: LR}, as: update}",
     "FH255", "train.oracle observes w for bound LIMIT after train.limit has clamped it"),
    ("overlap", "copy, args: {x: fed, y: h}}",
     "copy, args: {x: fed, y: h}}, {kernel: copy, args: {x: 'h[0:HALF]', y: 'h[1:HALF + 1]'}, as: shift}",
     "FH256", "train.part.shift: x = h[0:4] and y = h[1:5] overlap"),
    ("two rows over one range", "{w: w, limit: LIMIT}", "{w: [w, 'w[0:HALF]'], limit: LIMIT}",
     "FH256", "train.limit: w = w[0:4] and w = w overlap"),
    ("live producer of a retired slot", "{name: SEEN, reset: fold}", "{name: SEEN, retired: no longer}",
     "FH204", "SEEN is retired: no longer"),
    ("literal for a bound", "limit: LIMIT}", "limit: '1.0'}", "FH215",
     "train.limit: the literal 1.0 stands where limit takes a bound"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "old", "new", "code", "message"), BROKEN, ids=[b[0] for b in BROKEN])
def test_a_program_that_breaks_a_rule_is_refused_by_name(what, old, new, code, message):
    assert old in SOUND
    found = findings(SOUND.replace(old, new))
    assert (code, message) in found
    assert all(c in RULES for c, _ in found)


def test_launches_may_share_a_kernel_slot_element_by_element():
    def written(*elements):
        items = "".join(
            f"      - {{kernel: set_slot, args: {{s: 'LAMBDA[{k}]'}}, as: l{n}}}\n"
            for n, k in enumerate(elements)
        )
        one = "      - {kernel: set_slot, args: {s: LAMBDA}}\n"
        return SOUND.replace(one, items).replace("{name: LAMBDA,", "{name: LAMBDA, count: K,")

    check(written(0, 1))
    assert findings(written(1)) == [("FH203", "only LAMBDA[1] of slot LAMBDA is written")]
    assert ("FH253", "slot LAMBDA is written by train.l0 and train.l2") in findings(written(0, 1, 0))


def test_a_clamp_in_another_step_counts_as_the_last_writer():
    limit = "      - {kernel: limit, args: {w: w, limit: LIMIT}}\n"
    other = "  - {name: other, items: [{kernel: limit, args: {w: w, limit: LIMIT}}]}\n"
    text = SOUND.replace(limit, "").replace("diagnostics:", other + "diagnostics:")
    check(text)  # here the update stands between the clamp and the oracle
    text = text.replace("args: {x: w, s: LR}", "args: {x: h, s: LR}")
    message = "train.oracle observes w for bound LIMIT after other.limit has clamped it"
    assert ("FH255", message) in findings(text)


def test_an_own_kernel_that_no_program_uses_is_an_orphan():
    from ir_builders import specs

    from foxhunt.diagnostics import SpecError
    from foxhunt.ir.resolve import resolve

    found = specs(SOUND)
    own = found.model_copy(update={"library": found.library - {"noise"}})
    with pytest.raises(SpecError) as caught:
        resolve(own, "p")
    assert [d.message for d in caught.value.diagnostics] == ["kernel noise is used by no program"]


def test_a_finding_says_how_to_mend_it():
    assert "add `- {producers: [seen]}` to a step" in hints(
        SOUND.replace("{producers: [oracle, seen]}", "{producers: [oracle]}")
    )
