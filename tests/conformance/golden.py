"""A small golden set that travels with the project: `golden.jsonl`, one case a line.

The full set holds numbers of the reference implementations and stays outside the project. These
cases are of the same kinds, with weights and inputs drawn from seeds, so only answers are stored.
The answers are genodiff's own, written when it reproduced the whole full set:

    python tests/conformance/golden.py        writes golden.jsonl; needs the shared folder

An answer of up to 24 numbers is stored whole, a larger one as four weighted sums.
"""

import importlib.util
import json
import os
import zlib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import adapter
import numpy as np
import torch
from torch import Tensor

FILE = Path(__file__).with_name("golden.jsonl")
# Cases of the full set that lend their settings and shapes.
KINDS = (
    "noise_schedules_f64", "diffusion_masklast_f64", "sample_subs_ddpm_cache_tc", "op_scan_basic",
    "op_conv", "module_mamba", "caduceus_ps_tiny_fused", "caduceus_ph_tiny_fused", "mdlm_dit_tiny",
    "mdlm_dimamba_adaln", "train_caduceus_ps_mdlm",
)  # fmt: skip
READ_SIGMA = ("mdlm_dit_tiny", "mdlm_dimamba_adaln")
STEPS = 2  # of a training run; the full set has 10
WHOLE = 24
IDS = ("input_ids", "input_ids_rc", "labels", "x0")


def draw(name: str, shape: list[int], meta: dict[str, Any]) -> Tensor:
    """A weight or an input from its name: the same numbers on every machine."""
    random = np.random.RandomState(zlib.crc32(name.encode()))  # its stream is frozen for good
    last = name.replace("/", ".").split(".")[-1]
    if last == "complement_map":
        return torch.tensor([0, 1, 2, 3, 4, 5, 6, 10, 9, 8, 7, *range(11, shape[0])])
    if last == "inv_freq":
        return 10000.0 ** -(torch.arange(shape[0]) / shape[0])
    if last in IDS:
        n, mask = meta.get("vocab_size", 12), meta.get("mask_index", 3)
        return torch.tensor(random.choice([i for i in range(n) if i != mask], shape))
    uniform = torch.tensor(random.random_sample(shape))
    if last == "attention_mask":
        return (uniform < 0.8).long()
    if last == "dt":
        return uniform.clamp(max=0.01)
    if last.startswith(("u_", "t_")) or last == "t":
        return 0.02 + 0.98 * uniform
    normal = torch.tensor(random.standard_normal(shape))
    if last == "A":
        return -normal.exp()
    if last == "sigma":
        return normal.abs()
    return (0.3 * normal + ("norm" in name)).float() if name.startswith("param/") else normal


def rebuild(record: dict[str, Any]) -> SimpleNamespace:
    """The case of one line of the file, as the adapter takes it."""
    meta, drawn = (
        record["meta"],
        {n: draw(n, s, record["meta"]) for n, s in record["drawn"].items()},
    )
    params = {n.removeprefix("param/"): x for n, x in drawn.items() if n.startswith("param/")}
    params |= {alias: params[stored] for alias, stored in meta.get("tied", {}).items()}
    inputs = {n.removeprefix("in/"): x for n, x in drawn.items() if n.startswith("in/")}
    wanted = {name: tuple(shape) for name, (shape, _) in record["answers"].items()}
    return SimpleNamespace(
        name=record["name"], meta=meta, params=params, inputs=inputs, wanted=wanted
    )


def condense(x: Tensor) -> list[float]:
    """The numbers of a small answer; the weighted sums of a large one, every number in each.

    What is not finite, and the reference's -1e6 for a chance of zero, counts as a marker.
    """
    x = x.detach().double().flatten()
    marker = ~x.isfinite() | (x < -1e5)
    x = torch.where(marker, 7.0, x)
    if len(x) > WHOLE:
        at = torch.arange(len(x), dtype=torch.float64)
        x = torch.stack([(x * torch.cos(k * (at + 1))).sum() for k in (0, 1, 2, 3)])
    return [float(f"{value:.12g}") for value in x.tolist()]


def differences(record: dict[str, Any]) -> list[str]:
    """The names of the answers that are missing or off by more than 1e-9 of their size.

    It is 1e-5 for networks that read sigma: their table of frequencies is float32, and torch's exp
    differs by a last bit between processors.
    """
    limit = 1e-5 if record["name"] in READ_SIGMA else 1e-9
    found = adapter.run(rebuild(record))
    wrong = []
    for name, (shape, values) in record["answers"].items():
        if name not in found or list(found[name].shape) != shape:
            wrong.append(f"{name} is missing or of another shape")
            continue
        got = np.array(condense(found[name]))
        size = max(1.0, float(np.abs(values).max()))
        error = float(np.abs(got - values).max())
        if not error <= limit * size:
            wrong.append(f"{name} is off by {error:.2g} of {size:.2g}")
    return wrong


def load_comparer(shared: Path) -> ModuleType:
    """The full set's own comparer."""
    spec = importlib.util.spec_from_file_location(
        "golden_comparer", shared / "conformance" / "compare.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(shared: Path) -> None:
    """Write the file from the kinds of the full set, each of which must first be reproduced."""
    comparer, lines = load_comparer(shared), []
    for kind in KINDS:
        case = comparer.load_case(str(shared / "conformance" / "cases" / f"{kind}.json"))
        assert comparer.compare(case, adapter.run, verbose=False, coverage=0.8), kind
        meta = {k: v for k, v in case.meta.items() if not k.startswith(("ref_", "rc_", "seed"))}
        tied = meta.get("tied", {})
        shapes = {f"param/{n}": list(x.shape) for n, x in case.params.items() if n not in tied}
        shapes |= {f"in/{n}": list(x.shape) for n, x in case.inputs.items()}
        if "optimizer" in meta:
            meta["steps"] = STEPS
            steps = {n: [STEPS, *s[1:]] for n, s in shapes.items() if n.startswith("in/")}
            shapes |= {n: s for n, s in steps.items() if n != "in/complement_map"}
        record = {"name": kind, "meta": meta, "drawn": shapes, "answers": {}}
        blind = rebuild(record)
        doubles = [n for n, x in case.expected.items() if x.dtype != torch.float32]
        blind.wanted = {name: tuple(case.expected[name].shape) for name in doubles}
        found = {n: x for n, x in adapter.run(blind).items() if "/ema_" not in n}
        record["answers"] = {n: [list(x.shape), condense(x)] for n, x in sorted(found.items())}
        lines.append(json.dumps(record, separators=(",", ":")))
    FILE.write_text("\n".join(lines) + "\n")


def records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in FILE.read_text().splitlines()]


if __name__ == "__main__":
    torch.set_num_threads(1)
    write(Path(os.environ["GENODIFF_SHARED"]))
