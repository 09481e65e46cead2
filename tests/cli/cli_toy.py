"""The text of a small project: one program, one kernel of its own."""

SPEC = """\
program: toy
dims: {N: 12, M: 5}
isv:
  - {name: GAIN, source: host, init: 2.0, reset: never}
  - {name: SIZE, reset: fold}
  - {name: PEAK, reset: fold}
params:
  - {name: w, shape: [N], group: net, init: ones, reset: never}
  - {name: b, shape: [M], group: net, init: normal, reset: never}
buffers:
  - {name: x, shape: [N], lifetime: persistent, init: ones, reset: fold}
  - {name: trace, shape: [M], lifetime: persistent, reset: fold}
counters:
  - {name: t, advance: train, reset: never}
producers:
  - {name: size, kernel: rms, args: {x: x}, out: {y: SIZE}}
  - {name: peak, kernel: p99_abs, args: {x: w}, out: {y: PEAK}}
steps:
  - name: train
    items:
      - {kernel: scaled, args: {a: GAIN, x: w, y: x}, as: grow}
      - {kernel: scaled, args: {a: GAIN, x: b, y: trace}, as: note}
      - {producers: [size, peak]}
diagnostics: [{name: SIZE}, {name: PEAK}, {name: t}]
"""
KERNEL = """\
kernel: scaled
kind: body
doc: y = a x
params:
  a: {kind: slot}
  x: {access: read, shape: [n]}
  y: {access: write, shape: [n]}
consts: {ONE: 1.0}
grid: ceil_div(n, BLOCK)
reference: scaled
"""
BODY = """\
// y = a x
{{ signature }} {
  for (i64 i : block.elements(n)) y[i] = ONE * a[0] * x[i];
}
"""
