"""A miniature with the bus and producers of the hand-written trainer, in the generations of its history."""

from __future__ import annotations

# name, count, index
SLOTS = [
    ("REWARD_COMPONENT_EMA", 6, 63),
    ("H_S2_RMS_EMA", 1, 96),
    ("IQN_QUANTILE_EMA", 4, 99),
    ("VSN_MASK_EMA", 6, 105),
    ("AUX_NEXT_BAR_LOSS_EMA", 1, 113),
    ("AUX_REGIME_LOSS_EMA", 1, 114),
    ("AUX_LABEL_SCALE_EMA", 1, 117),
    ("MOE_EXPERT_UTIL_EMA", 8, 118),
    ("MOE_GATE_ENTROPY_EMA", 1, 126),
    ("TARGET_Q_BOUND", 1, 131),
    ("ATOM_POS_BOUND", 4, 132),
    ("WEIGHT_BOUND", 8, 136),
    ("ADAM_M_BOUND", 8, 144),
    ("ADAM_V_BOUND", 8, 152),
    ("WD_RATE", 8, 160),
    ("GRAD_CLIP_BOUND", 1, 168),
    ("H_S2_BOUND", 1, 169),
    ("L1_LAMBDA_TRUNK", 1, 170),
    ("BW_D_H_S2_BOUND", 1, 171),
    ("Q_DIR_GRAD_BOUND", 1, 172),
]
DIMS = {6: "SIX", 4: "BRANCHES", 8: "GROUPS", 1: "1"}
KERNELS = """
- {kernel: oracle, kind: statistic, outputs: [weight, m, v, wd], params: {x: {shape: [...n]},
   weight: {access: write}, m: {access: write}, v: {access: write}, wd: {access: write}}}
- {kernel: losses, kind: statistic, outputs: [next_bar, regime], params: {x: {shape: [...n]},
   next_bar: {access: write}, regime: {access: write}}}
- {kernel: moe, kind: statistic, outputs: [util, entropy], params: {x: {shape: [B, K]},
   util: {access: write, shape: [K]}, entropy: {access: write}}}
"""
SP4 = [
    "{name: target_q_p99, kernel: p99, args: {x: t}, out: {y: TARGET_Q_BOUND}}",
    "{name: atom_pos_p99, kernel: p99, foreach: {b: BRANCHES}, args: {x: t}, out: {y: 'ATOM_POS_BOUND[b]'}}",
    "{name: param_group_oracle, kernel: oracle, foreach: {g: GROUPS}, args: {x: t}, out: {wd: 'WD_RATE[g]',"
    " v: 'ADAM_V_BOUND[g]', m: 'ADAM_M_BOUND[g]', weight: 'WEIGHT_BOUND[g]'}}",
    "{name: l1_lambda, kernel: p99, args: {x: t}, out: {y: L1_LAMBDA_TRUNK}}",
    "{name: grad_norm_p99, kernel: p99, args: {x: t}, out: {y: GRAD_CLIP_BOUND}}",
    "{name: h_s2_p99, kernel: p99, args: {x: t}, out: {y: H_S2_BOUND}}",
]
RETROFITS = [
    "{name: h_s2_rms, kernel: p99, args: {x: t}, out: {y: H_S2_RMS_EMA}}",
    "{name: aux_losses, kernel: losses, args: {x: t},"
    " out: {next_bar: AUX_NEXT_BAR_LOSS_EMA, regime: AUX_REGIME_LOSS_EMA}}",
    "{name: aux_label_scale, kernel: p99, args: {x: t}, out: {y: AUX_LABEL_SCALE_EMA}}",
    "{name: moe_util, kernel: moe, args: {x: gate},"
    " out: {util: MOE_EXPERT_UTIL_EMA, entropy: MOE_GATE_ENTROPY_EMA}}",
    "{name: vsn_mask, kernel: p99, foreach: {g: SIX}, args: {x: t}, out: {y: 'VSN_MASK_EMA[g]'}}",
    "{name: iqn_quantile, kernel: p99, foreach: {q: BRANCHES}, args: {x: t},"
    " out: {y: 'IQN_QUANTILE_EMA[q]'}}",
    "{name: reward_component, kernel: p99, foreach: {c: SIX}, args: {x: t},"
    " out: {y: 'REWARD_COMPONENT_EMA[c]'}}",
]
LAST = [
    "{name: bw_d_h_s2_p99, kernel: p99, args: {x: t}, out: {y: BW_D_H_S2_BOUND}}",
    "{name: q_dir_grad_p99, kernel: p99, args: {x: t}, out: {y: Q_DIR_GRAD_BOUND}}",
]
RETIRED = 'retired: "labels are z-normalised; the divisor was always 1"'


def dqn(producers: list[str], slots: int = len(SLOTS), retire: bool = True) -> str:
    """The program with `producers` and the first `slots` slots of the list; slot 117 retired or not."""
    lines = []
    for name, count, index in SLOTS[:slots]:
        gone = retire and name == "AUX_LABEL_SCALE_EMA"
        fate = RETIRED if gone else "reset: fold"
        lines.append(f"  - {{name: {name}, count: {DIMS[count]}, index: {index}, {fate}}}")
    if retire:
        producers = [
            p.replace("kernel: p99", f"kernel: p99, {RETIRED}") if "aux_label" in p else p for p in producers
        ]
    names = [p.split(",")[0].removeprefix("{name: ") for p in producers]
    live = ", ".join(n for n in names if not retire or n != "aux_label_scale")
    listed = "".join(f"  - {p}\n" for p in producers)
    return (
        "program: dqn\n"
        "dims: {B: 4, SIX: 6, BRANCHES: 4, GROUPS: 8}\n"
        "isv:\n  - {name: LR, index: 0, source: host, init: 3.0e-4, reset: never}\n" + "\n".join(lines) + "\n"
        "params: [{name: t, shape: [B], group: g, reset: never}]\n"
        "buffers: [{name: gate, shape: [B, GROUPS], lifetime: input}]\n"
        f"producers:\n{listed}"
        f"steps: [{{name: train, items: [{{producers: [{live}]}}]}}]\n"
    )
