"""Self-tests: the torch build, the selected scan and why others are not used, and correctness.

Three small problems with known answers: the selected scan against the naive one, the bound for a
distribution with an exact solution, and a network that must be reverse-complement equivariant.
Together they take well under a second.

The forecast of training speed on a GPU is derived from the cost of its kernels. A layer takes, for
each token, forward and backward together,

    scans     2 directions · E channels · (136 + 392) cycles of a scheduler for 32 channels, as
              counted in the machine code (`benchmarks/gpu/sass.py`)
    memory    `TRAFFIC` · E bytes at the rate at which the GPU copies

Products, embedding, loss, optimiser and memory stalls come on top, so a network is slower than
forecast. `REACHED` is the share that an H100 reached, at 131,072 tokens per step.
"""

import math
import os
import shutil
import time
from itertools import combinations
from typing import Any

import torch

from genodiff.alphabet import DNA
from genodiff.backbones.backbone import PRESETS
from genodiff.diagnosis.checks import Check
from genodiff.diffusion.loss import exact_count_loss
from genodiff.diffusion.masked import Clean, MaskedDiffusion
from genodiff.diffusion.schedule import schedule
from genodiff.errors import GenodiffError
from genodiff.io.process import count_usable_cores
from genodiff.kernels.dispatch import PROVIDERS, select_provider
from genodiff.kernels.library import BUILD, instruction_set
from genodiff.kernels.scan import selective_scan

# Bytes that a token of a layer moves, per channel (E = 2 D): what each kernel reads and writes, in
# bfloat16, the states (16 numbers for 16 steps) too, the residual in float32. Short vectors (r, B,
# C) and what is read again from the cache are left out.
FORWARD = {
    "residual and norm": 2 + 1 + 2 + 1,  # in one kernel: the stream, what is added; both again
    "in_proj": 1 + 4,
    "convolutions": 2 * (2 + 2),
    "x_proj, dt_proj": 2 * (2 + 2),
    "scans": 2 * (2 + 2 + 2 + 2),  # u, delta, y, states
    "gate": 2 * 2 + 2 + 2 + 2,  # both y, z; their sum, which is kept, and the product
    "out_proj": 2 + 1,
}
BACKWARD = {
    "residual and norm": 1 + 2 + 2 + 2 + 1,
    "out_proj": 1 + 2 + 1 + 2,
    "gate": 6 + 8,  # each direction's gy in its own order
    "convolutions, steps again": 2 * (4 + 2),
    "scans": 2 * (2 + 2 + 2 + 2 + 2 + 2),
    "sums of B's and C's gradients": 2 * (4 + 4),
    "dt_proj, x_proj": 2 * (2 + 2 + 2 + 2 + 2),
    "convolutions": 2 * (2 + 2 + 2 + 2) + 2,
    "in_proj": 4 + 1 + 4 + 1,
}
TRAFFIC = sum(FORWARD.values()) + sum(BACKWARD.values())
SCAN_CYCLES = 136 + 392
REACHED = (0.33, 0.51)
"""Least and most of nine measurements (commit 00386cd, `benchmarks/gpu/RESULTS.md`)."""
_CLOCK = 1.755e9  # of an H100 or H200 under load, where the driver does not say
_BYTES = 1 << 28
_SHOWN = ("caduceus-ph-470k", "caduceus-ph-7.7m")


def count_token_seconds(channels: int, schedulers: int, clock: float, bandwidth: float) -> float:
    """Seconds of a token in a layer of E `channels`: scans and memory, one after the other.

    `clock` is in Hz, `bandwidth` in bytes read and written per second.
    """
    scans = 2 * channels / 32 * SCAN_CYCLES / (schedulers * clock)
    return scans + TRAFFIC * channels / bandwidth


def measure_bandwidth(device: str) -> float:
    """Bytes per second read and written by a copy."""
    source = torch.zeros(_BYTES, dtype=torch.uint8, device=device)
    to, least = torch.empty_like(source), float("inf")
    for _ in range(5):
        torch.cuda.synchronize()
        began = time.perf_counter()
        to.copy_(source)
        torch.cuda.synchronize()
        least = min(least, time.perf_counter() - began)
    return 2 * _BYTES / least


def check_forecast() -> list[Check]:
    """Forecast the training speed on this GPU in one line; none without a GPU."""
    if not torch.cuda.is_available():
        return []
    try:
        bandwidth = measure_bandwidth("cuda")
    except RuntimeError as fault:
        detail = f"copying does not run: {fault}"
        return [Check("forecast", "warn", detail, "free the GPU's memory, or restart its driver")]
    properties = torch.cuda.get_device_properties(0)
    schedulers = 4 * properties.multi_processor_count
    # In kHz; not every torch has it.
    clock = 1e3 * getattr(properties, "clock_rate", 0) or _CLOCK
    paces = []
    for name in _SHOWN:
        settings = PRESETS[name]
        layer = count_token_seconds(2 * settings.d_model, schedulers, clock, bandwidth)
        pace = 1e-6 / (settings.n_layer * layer)
        paces.append(f"{pace:.3g} of {name.removeprefix('caduceus-')}")
    detail = (
        f"it copies {bandwidth / 1e12:.2f} TB/s; training in bf16 takes at most so many million "
        f"tokens/s: {', '.join(paces)} (counted; an H100 reached "
        f"{REACHED[0]} to {REACHED[1]} of it)"
    )
    return [Check("forecast", "ok", detail)]


TOLERANCE = 1e-4


def check_torch() -> tuple[list[Check], str | None]:
    """Run all checks that need torch; also returns the name of the working scan, if any."""
    scan, name = check_scans()
    numbers = [check_numbers("auto"), *check_forecast(), check_bound(), check_strands()]
    return [check_build(), check_device(), *scan, *numbers], name


def check_build() -> Check:
    """Check the torch build and its number of threads."""
    kind = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU build"
    libraries = (("MKL", torch.backends.mkl), ("oneDNN", torch.backends.mkldnn))
    parts = [name for name, library in libraries if library.is_available()]
    built = f"{torch.__version__} ({kind}; {', '.join(parts) or 'neither MKL nor oneDNN'})"
    detail = f"{built}, threads: {torch.get_num_threads()}"
    usable = count_usable_cores()
    if torch.get_num_threads() > usable:
        detail += f", more than the {usable} usable cores"
        return Check("torch", "warn", detail, f"pass --threads {usable}")
    return Check("torch", "ok", detail)


def check_device() -> Check:
    """Check the accelerator, or report why there is none."""
    if torch.cuda.is_available():
        cards = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
        names = (f"{card.name} ({card.total_memory / 2**30:.0f} GiB)" for card in cards)
        return Check("gpu", "ok", ", ".join(names))
    if shutil.which("nvidia-smi") is None and not os.path.exists("/dev/nvidia0"):
        return Check("gpu", "ok", "none; everything runs on the CPU")
    if torch.version.cuda is None:
        fix = "install a CUDA build of torch (see the selector on the PyTorch site) in this "
        fix += "environment"
        return Check("gpu", "warn", "there is an NVIDIA GPU, but this torch is a CPU build", fix)
    fix = "compare `nvidia-smi` with torch's CUDA version"
    return Check("gpu", "warn", "there is an NVIDIA driver, but torch cannot use it", fix)


def check_scans() -> tuple[list[Check], str | None]:
    """Report the selected scan with its instruction set, and one line for each other scan."""
    try:
        best = select_provider(device="cuda" if torch.cuda.is_available() else "cpu")
    except GenodiffError as fault:
        fix = "unset GENODIFF_SCAN, or install genodiff again"
        return [Check("scan", "fail", str(fault), fix)], None
    checks = [Check("scan", "ok", f"{best.name}: {best.reason}")]
    for p in (one for one in PROVIDERS.values() if one.name != best.name):
        standing = "available, not preferred" if p.available else "not available"
        if p.name == "native" and not p.available and not torch.cuda.is_available():
            lost = "training on this CPU is four to six times slower than with the C scan"
            what = f"{standing}: {p.reason.split(':')[0]}; {lost}"
            checks.append(Check("scan native", "warn", what, BUILD))
        elif p.name == "triton" and not p.available and torch.cuda.is_available():
            what = f"{standing}: {p.reason}; slower kernels run on this GPU instead"
            fix = "pip install 'genodiff[triton]', on a GPU of compute capability 8.0 or newer"
            fix = "see the traceback above, and report it" if p.find_missing() is None else fix
            checks.append(Check("scan triton", "warn", what, fix))
        else:
            checks.append(Check(f"scan {p.name}", "ok", f"{standing}: {p.reason}"))
    return checks, f"{best.name}-{instruction_set()}" if best.name == "native" else best.name


def check_numbers(provider: str) -> Check:
    """Compare a scan with the naive one on a problem larger than its own self-test, and time it."""
    batch, length, channels, states = 4, 512, 128, 16
    where = "cuda" if torch.cuda.is_available() else "cpu"
    at = torch.arange(batch * length * channels)
    waves = {"u": torch.sin(at * 0.37), "delta": torch.cos(at * 0.11)}
    at = torch.arange(batch * length * states)
    waves |= {"B": torch.sin(at * 0.5), "C": torch.sin(at * 0.7)}
    problem: dict[str, Any] = {
        name: wave.reshape(batch, length, -1).to(where) for name, wave in waves.items()
    }
    problem["A"] = -torch.arange(1.0, states + 1).repeat(channels, 1).to(where)
    problem["delta_softplus"] = True
    try:
        with torch.inference_mode():
            truth = selective_scan(**problem, provider="naive")
            selective_scan(**problem, provider=provider)
            began = time.perf_counter()
            scanned = selective_scan(**problem, provider=provider)
            if where == "cuda":
                torch.cuda.synchronize()
            seconds = time.perf_counter() - began
    except (GenodiffError, RuntimeError) as fault:
        what = f"the scan does not run: {fault}"
        return Check("scan numbers", "fail", what, "set GENODIFF_SCAN=torch")
    assert isinstance(truth, torch.Tensor)
    assert isinstance(scanned, torch.Tensor)
    worst = float((truth - scanned).abs().max())
    if not worst <= TOLERANCE:
        fix = "set GENODIFF_SCAN=torch, and report this"
        return Check("scan numbers", "fail", f"differs from the naive scan by {worst:.0e}", fix)
    pace = f"{batch * length / seconds / 1000:,.0f} thousand tokens/s forward at width {channels}"
    return Check("scan numbers", "ok", f"within {worst:.0e} of the naive scan; {pace}")


def check_bound() -> Check:
    """Check the exact-count bound of the best denoiser of four equal letters: ln 4 nats."""
    n = 4
    diffusion = MaskedDiffusion(schedule("linear"), DNA.mask_id, DNA.targets)

    def best(xt: torch.Tensor, sigma: torch.Tensor | None) -> torch.Tensor:
        logits = torch.zeros(*xt.shape, DNA.padded_size)
        for row, letters in enumerate(xt.tolist()):
            logits[row, :, list({*letters} - {DNA.mask_id})] = 100.0
        return logits

    nats = 0.0
    for k in range(1, n + 1):
        choices = list(combinations(range(n), k))
        drawn = [[0.1 if p in places else 0.9 for p in range(n)] for places in choices]
        x0 = torch.full((len(choices), n), DNA.targets[2])
        clean = Clean(x0, torch.ones_like(x0, dtype=torch.bool))
        counts, u = torch.full((len(choices),), k), torch.tensor(drawn, dtype=torch.float64)
        terms = exact_count_loss(diffusion, best, clean, counts, u)
        nats += float(terms.nats_unweighted) / len(choices) / n
    off = abs(nats - math.log(4))
    if not off <= TOLERANCE:
        fix = "install genodiff and torch again; if it stays, report this line"
        what = f"{nats:.6f} nats in a world of ln 4 = {math.log(4):.6f}"
        return Check("bound", "fail", what, fix)
    what = f"equals its exact value, ln 4, within {off:.0e} nats on independent bases"
    return Check("bound", "ok", what)


def check_strands() -> Check:
    """Check that a small random Caduceus-PS is reverse-complement equivariant."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        network = PRESETS["caduceus-ps-tiny"].build(DNA.padded_size, DNA.complement).eval()
    x = torch.tensor([[DNA.targets[(i * i + i // 3) % 4] for i in range(65)]])
    complement = torch.tensor(DNA.complement)
    with torch.inference_mode():
        here, there = network(x), network(complement[x].flip(1))
    worst = float((here - there.flip(1)[..., complement]).abs().max())
    if not worst <= TOLERANCE:
        fix = "set GENODIFF_SCAN=torch and report this"
        return Check("strands", "fail", f"the two strands differ by {worst:.0e}", fix)
    what = f"a Caduceus-PS is reverse-complement equivariant within {worst:.0e}"
    return Check("strands", "ok", what)
