"""The Triton kernels on a GPU against float64: errors in float32 and bfloat16, decays near 1, time
split or not, the same bits again.

    python benchmarks/gpu/parity.py --out FILE [--rehearse] [--seconds 120] [--jobs 8]

Errors are relative norms of outputs and of each gradient. The truth is torch in float64: of the
scan `chunked_scan`, itself tested against the naive one. "fast exp" repeats float32 with the
machine's own 2^x, to see whether the exact one is worth its instructions.

A case is a process of its own, `--jobs` of them side by side: compiling takes most of the time and
is done on one core, and an illegal access leaves a process without a GPU. What fails is recorded
with its traceback, and the rest goes on. A rehearsal runs under Triton's interpreter.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

if "--rehearse" in sys.argv:  # Triton decides at its first import whether it interprets
    os.environ.setdefault("TRITON_INTERPRET", "1")
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "kernels"))
    import interpreted

import torch
from machine import DEVICE, describe_error, read_arguments, save
from torch import Tensor

from genodiff.kernels.conv import causal_conv1d
from genodiff.kernels.direction import ScanInputs, join_weights, split_weights
from genodiff.kernels.mixer import mixer_by_parts
from genodiff.kernels.norm import AddNorm, rms_norm
from genodiff.kernels.torch_scan import chunked_scan
from genodiff.kernels.triton.launch import CHOICES
from genodiff.kernels.triton.mixer import TritonConv, triton_mixer
from genodiff.kernels.triton.scan import plan_segments, triton_scan

TINIEST = 1e-30  # JSON has no number for 0/0
Result = dict[str, Tensor]


class Case(NamedTuple):
    """One operation at one shape."""

    kind: str  # scan, conv, norm or mixer
    batch: int
    length: int
    channels: int
    states: int = 16
    decay: float = 1.0
    reverse: bool = False


# Those that tell most come first: if the time is over, the rest is missing.
CASES = [
    Case("scan", 4, 1024, 256),
    Case("scan", 1, 16384, 64, 16, 0.02),
    Case("mixer", 2, 1000, 236),
    Case("scan", 2, 1000, 236, reverse=True),
    Case("mixer", 1, 4096, 512),
    Case("norm", 8, 1000, 236),
    Case("conv", 2, 1000, 236, reverse=True),
    Case("scan", 1, 131072, 256),
    Case("scan", 4, 1024, 256, reverse=True),
    Case("scan", 1, 16384, 64),
    Case("scan", 40, 129, 1024),
    Case("scan", 1, 63, 40, 8),
    Case("scan", 1, 1, 33, 1),
    Case("conv", 1, 1, 33),
    Case("norm", 3, 65, 118),
    Case("mixer", 1, 17, 24, 4),
]
TINY = [
    Case("scan", 1, 9, 3, 1, 0.02, reverse=True),
    Case("conv", 1, 6, 5),
    Case("norm", 2, 3, 5),
    Case("mixer", 1, 5, 8, 2),
]


def normal(seed: int) -> Callable[..., Tensor]:
    """Random numbers that bfloat16 holds exactly, in float64."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).bfloat16().double().to(DEVICE)

    return draw


def solve(run: Callable[..., Any], inputs: dict[str, Tensor], gy: Tensor) -> Result:
    """Outputs and gradients, in float64; `run` takes the inputs by name."""
    x = {name: value.detach().requires_grad_() for name, value in inputs.items()}
    out = run(**x)
    y, more = (out[0], {"state": out[1]}) if isinstance(out, tuple) else (out, {})
    grads = torch.autograd.grad((y.double() * gy).sum(), list(x.values()))
    found = {"y": y} | more | {f"d{k}": g for k, g in zip(x, grads, strict=True)}
    return {k: v.detach().double() for k, v in found.items()}


def errors(got: Result, truth: Result) -> dict[str, float]:
    sizes = {k: truth[k].norm().clamp(min=TINIEST) for k in truth}  # at length 1 dA is zero
    return {k: float((got[k] - truth[k]).norm() / sizes[k]) for k in truth}


def cast(inputs: dict[str, Tensor], low: torch.dtype, names: tuple[str, ...]) -> dict[str, Tensor]:
    """The inputs that vary in time in `low`, the others in float32."""
    return {k: v.to(low if k in names else torch.float32) for k, v in inputs.items()}


def solve_scan(case: Case, seed: int, row: dict[str, Any]) -> None:
    """The scan; the last state is compared, and its gradient is left out."""
    draw, (_, batch, length, channels, states, decay, reverse) = normal(seed), case
    timed = ("u", "delta", "B", "C")
    inputs = {"u": draw(batch, length, channels), "delta": draw(batch, length, channels)}
    inputs |= {"B": draw(batch, length, states), "C": draw(batch, length, states)}
    inputs |= {"A": -decay * torch.exp(draw(channels, states)), "D": draw(channels)}
    inputs["delta_bias"] = 0.3 * draw(channels) - 2
    gy = draw(batch, length, channels)
    row["segments"] = plan_segments(batch, length, channels)[0]

    def run(**x: Tensor) -> Any:
        scan = chunked_scan if x["u"].dtype == torch.float64 else triton_scan
        names = ("u", "delta", "A", "B", "C", "D", "delta_bias")
        return scan(ScanInputs(*(x[name] for name in names)), True, reverse)

    truth = solve(run, inputs, gy)
    compare(row, truth, lambda low: solve(run, cast(inputs, low, timed), gy))
    kind = CHOICES["float32"]
    pinned = kind["EXACT"]
    kind["EXACT"] = not pinned
    row["float32, fast exp"] = errors(solve(run, cast(inputs, torch.float32, timed), gy), truth)
    kind["EXACT"] = pinned
    if row["segments"] > 1:
        below, CHOICES["split_below"] = CHOICES["split_below"], 0
        unsplit = solve(run, cast(inputs, torch.float32, timed), gy)
        row["float32, unsplit"] = errors(unsplit, truth)
        CHOICES["split_below"] = below


def compare(row: dict[str, Any], truth: Result, run: Callable[[torch.dtype], Result]) -> None:
    """Errors in both dtypes, and whether the same call gives the same bits."""
    for name, low in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        first = run(low)
        row[name] = errors(first, truth)
        again = run(low)
        row[f"{name} repeats"] = all(torch.equal(first[k], again[k]) for k in first)


def solve_conv(case: Case, seed: int, row: dict[str, Any]) -> None:
    draw = normal(seed)
    inputs = {"x": draw(case.batch, case.length, case.channels)}
    inputs |= {"weight": draw(case.channels, 4), "bias": draw(case.channels)}

    def run(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        known = causal_conv1d if x.dtype == torch.float64 else TritonConv.apply
        return known(x, weight, bias, case.reverse, "silu")

    gy = draw(case.batch, case.length, case.channels)
    compare(row, solve(run, inputs, gy), lambda low: solve(run, cast(inputs, low, ("x",)), gy))


def solve_norm(case: Case, seed: int, row: dict[str, Any]) -> None:
    draw = normal(seed)
    inputs = {"x": draw(case.batch, case.length, case.channels), "weight": draw(case.channels)}

    def run(x: Tensor, weight: Tensor) -> Tensor:
        if x.dtype == torch.float64:
            return rms_norm(x, weight, 1e-5)
        y: Tensor = AddNorm.apply(x, None, weight, 1e-5)
        return y

    gy = draw(case.batch, case.length, case.channels)
    compare(row, solve(run, inputs, gy), lambda low: solve(run, cast(inputs, low, ("x",)), gy))


def solve_mixer(case: Case, seed: int, row: dict[str, Any]) -> None:
    """Both directions, as in a layer; bfloat16 is autocast's, the weights are float32."""
    draw, E, N = normal(seed), case.channels, case.states
    D, rank = max(2, E // 2), -(-E // 32)
    inputs = {"h": draw(case.batch, case.length, D), "w_in": draw(2 * E, D) / D**0.5}
    inputs["w_out"] = draw(D, E) / E**0.5
    for way in ("ahead", "back"):
        own = {"conv_weight": draw(E, 4) / 2, "conv_bias": draw(E) / 2}
        own |= {"x_weight": draw(rank + 2 * N, E) / E**0.5, "dt_weight": draw(E, rank)}
        own |= {"dt_bias": draw(E) - 3, "A_log": draw(E, N) / 4, "D": draw(E)}
        inputs |= {f"{way}_{name}": value for name, value in own.items()}
    gy = draw(case.batch, case.length, D)

    def run(h: Tensor, w_in: Tensor, w_out: Tensor, **own: Tensor) -> Tensor:
        weights: list[Tensor | None] = []
        for way in ("ahead", "back"):
            part = {k.removeprefix(f"{way}_"): v for k, v in own.items() if k.startswith(way)}
            A = -torch.exp(part.pop("A_log"))
            names = ("conv_weight", "conv_bias", "x_weight", "dt_weight", "dt_bias")
            weights += [*(part[name] for name in names), A, part["D"]]
        if h.dtype == torch.float64:
            return mixer_by_parts(h, w_in, None, w_out, split_weights(weights), (False, True), None)
        weights = list(join_weights(split_weights(weights)))
        return triton_mixer(h, w_in, None, w_out, None, (False, True), weights)

    def low_run(low: torch.dtype) -> Result:
        with torch.autocast(DEVICE, torch.bfloat16, enabled=low == torch.bfloat16):
            return solve(run, {k: v.float() for k, v in inputs.items()}, gy)

    compare(row, solve(run, inputs, gy), low_run)


SOLVERS = {"scan": solve_scan, "conv": solve_conv, "norm": solve_norm, "mixer": solve_mixer}


def solve_case(case: Case, seed: int, out: Path) -> bool:
    """One case, saved after every figure; whether it ran to its end."""
    row: dict[str, Any] = case._asdict() | {"segments": None}
    start = time.monotonic()
    try:
        SOLVERS[case.kind](case, seed, row)
    except Exception as error:
        row["error"] = describe_error(error)
    save(out, row | {"seconds": round(time.monotonic() - start, 1)})
    return "error" not in row


def describe_row(row: dict[str, Any]) -> str:
    """A line for the terminal."""
    shown = " ".join(str(row[k]) for k in ("kind", "batch", "length", "channels", "states"))
    shown += f" decay {row['decay']}" + (" reverse" if row["reverse"] else "")
    if "error" in row:
        return f"{shown}: FAILED, {row['error'].strip().splitlines()[-1][:200]}"
    worst = [f"{max(row[name].values()):.1e}" for name in ("float32", "bfloat16")]
    return f"{shown}: {' '.join(worst)}, repeats {row['float32 repeats']} {row['bfloat16 repeats']}"


def run_cases(cases: list[Case], arguments: Any) -> list[dict[str, Any]]:
    """All cases as processes; rows in the order in which they end."""
    start, waiting = time.monotonic(), list(range(len(cases)))
    running: dict[int, tuple[subprocess.Popen[bytes], Path]] = {}
    rows: list[dict[str, Any]] = []
    while waiting or running:
        over = time.monotonic() - start > arguments.seconds
        while waiting and len(running) < arguments.jobs and not over:
            i = waiting.pop(0)
            out = arguments.out.with_name(f"parity-{i}.json")
            command = [sys.executable, __file__, "--out", str(out), "--case", str(i)]
            command += ["--rehearse"] if arguments.rehearse else []
            running[i] = subprocess.Popen(command), out
        for i, (process, out) in list(running.items()):
            if process.poll() is None and not over:
                continue
            why = f"process ended with {process.returncode}"
            if process.poll() is None:
                process.kill()
                why = "out of time"
            process.wait()
            del running[i]
            lost = cases[i]._asdict() | {"error": why}
            rows.append(json.loads(out.read_text()) if out.exists() else lost)
            out.unlink(missing_ok=True)
            print(describe_row(rows[-1]), flush=True)
            save(arguments.out, {"rows": rows})
        if over:
            rows += [cases[i]._asdict() | {"error": "not begun: out of time"} for i in waiting]
            waiting = []
        time.sleep(0.1)
    save(arguments.out, {"rows": rows})
    return rows


def main() -> None:
    arguments = read_arguments(__doc__, seconds=120.0, jobs=8, case=-1)
    cases = TINY if arguments.rehearse else CASES
    if arguments.rehearse and interpreted.MISSING:
        sys.exit(interpreted.MISSING)
    if arguments.case >= 0:
        sys.exit(not solve_case(cases[arguments.case], arguments.case, arguments.out))
    rows = run_cases(cases, arguments)
    failed = [row for row in rows if "error" in row]
    print(f"{len(rows) - len(failed)} of {len(rows)} cases ran to their end")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
