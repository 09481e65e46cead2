"""A tiny program in plain Python behind the Backend protocol, for tests of the runtime alone.

Its device runs late: enqueued steps wait until somebody asks how far it is, so a test sees every mistake in
the ring protocol. `train` adds LR to every weight, appends LR to `trace` and observes the sum of w.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np

from foxhunt.backend.plan import Buffer, Counter, Observation, Plan, Slot, Step, View
from foxhunt.dtypes import DTYPES

ISV, COUNTERS, HEALTH = 6, 2, 2
WORDS = 2 + ISV + 2 * COUNTERS + HEALTH + 3
TRACE = 400


def plan(**changes):
    """The toy's plan, with fields replaced."""
    lines = (
        "counter 0 foxhunt.step i64 [1]",
        "isv 0 LR f32 [1]",
        "isv 4 LOSS f32 [1]",
        "param 0 w f32 [4,3]",
        "param 12 b f32 [3]",
    )
    toy = Plan(
        program="toy",
        variant="default",
        precision="fp32",
        layout_hash="a" * 64,
        semantics_hash="b" * 64,
        layout_lines=lines,
        dims=(("B", 4),),
        buffers=(
            Buffer("isv", "f32", ISV, "isv", True),
            Buffer("wiener", "f32", 3, "wiener", True),
            Buffer("counters", "i64", COUNTERS, "system", True),
            Buffer("seed", "i64", 1, "system", True),
            Buffer("health", "i64", HEALTH, "system"),
            Buffer("params", "f32", 64, "params", True),
            Buffer("params.m", "f32", 64, "m", True),
            Buffer("trace", "f32", TRACE, "state", True),
            Buffer("ones", "f32", 2, "state", True),
            Buffer("feed", "i32", 5, "input"),
            Buffer("arena", "u8", 64, "arena"),
        ),
        views=(
            View("w", "params", 0, "f32", (4, 3), "orthogonal", "fold"),
            View("b", "params", 12, "f32", (3,), "ones", "never"),
            View("trunk", "params", 0, "f32", (15,)),
            View("w.m", "params.m", 0, "f32", (4, 3)),
            View("b.m", "params.m", 12, "f32", (3,)),
            View("trace", "trace", 0, "f32", (TRACE,)),
            View("ones", "ones", 0, "f32", (2,), "ones"),
            View("feed", "feed", 0, "i32", (5,)),
            View("h", "arena", 0, "f32", (4, 4)),
        ),
        slots=(
            Slot("LR", 0, 1, "host", 0.5, 0.0, "never"),
            Slot("GAIN", 1, 3, "host", 1.0, 0.0, "fold"),
            Slot("LOSS", 4, 1, "producer", 0.0, 0.0, "fold"),
            Slot("TEMP", 5, 1, "kernel", 2.0, 0.0, "never"),
        ),
        counters=(Counter("adam_t", 1, "train", "fold"),),
        observations=(Observation("loss", 0, 4),),
        diagnostics=(("LOSS", 0, 1), ("adam_t", 1, 2)),
        steps=(Step("train", (), 10), Step("idle", ())),
        resets=(Step("fold", ()),),
        data=(),
        publish_words=WORDS,
    )
    return replace(toy, **changes)


class ToyBackend:
    """Runs the toy; `eager=False` leaves steps queued until they are asked for."""

    name = "toy"

    def __init__(self, eager=False, fail_at=None):
        self.eager, self.fail_at = eager, fail_at
        self.queue = deque()
        self.done = 0
        self.closed = False

    def build(self, folder, plan, debug=False):
        self.plan = plan

    def allocate(self, plan):
        self.memory = {b.name: np.zeros(b.count, DTYPES[b.dtype].numpy) for b in plan.buffers}
        self.rows = np.zeros((plan.ingest_rows, 4), np.float32)
        self.ring = np.zeros(2 + plan.publish_rows * WORDS, np.uint32)

    def prepare(self, plan):
        self.prepared = True

    def read(self, buffer, offset_bytes, count, dtype):
        self.sync()
        raw = self.memory[buffer].view(np.uint8)[offset_bytes:]
        return raw[: count * DTYPES[dtype].size].view(DTYPES[dtype].numpy).copy()

    def write(self, buffer, offset_bytes, array):
        self.sync()
        assert array.ndim == 1
        self.memory[buffer].view(np.uint8)[offset_bytes : offset_bytes + array.nbytes] = array.view(np.uint8)

    def ingest_row(self, row):
        return self.rows[row]

    def publish_words(self):
        return self.ring

    def run(self, step, count, per_graph=1):
        self.queue.extend([step] * count)
        if self.eager:
            self.sync()

    def completed(self):
        if self.queue:
            self._execute(self.queue.popleft())
        return self.done

    def sync(self):
        while self.queue:
            self._execute(self.queue.popleft())

    def close(self):
        self.closed = True

    def _execute(self, step):
        m = self.memory
        if step == "fold":
            m["isv"][4], m["isv"][1:4], m["counters"][1] = 0, 1, 0
            m["wiener"][:] = 0
            m["params.m"][:12] = 0
            return
        k = int(m["counters"][0])
        if k == self.fail_at:
            raise RuntimeError("device lost")
        m["isv"][:4] = self.rows[k % 64]
        m["counters"][0] += 1
        if step == "train":
            m["counters"][1] += 1
            m["params"][:12] += m["isv"][0]
            m["trace"][k % TRACE] = m["isv"][0]
            m["isv"][4] = m["params"][:12].sum()
        row = self.ring[2 + k % 16 * WORDS :][:WORDS]
        row[0] = k + 1
        row[2 : 2 + ISV] = m["isv"].view(np.uint32)
        row[2 + ISV : 2 + ISV + 2 * COUNTERS] = m["counters"].view(np.uint32)
        row[2 + ISV + 2 * COUNTERS :][:HEALTH] = m["health"].astype(np.uint32)
        self.ring[:2].view(np.uint64)[0] = k + 1
        self.done += 1
