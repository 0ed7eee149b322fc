"""The GPU that is measured on: what it is, what it copies and multiplies at best, and how things
are timed on it.

    python benchmarks/gpu/machine.py --out FILE [--rehearse]

Times are CUDA events around one call, after warm-up, of the variants in turn; figures are medians
with the quartiles beside them. On a CPU (`--rehearse`) the same control flow runs with the clock of
the process. What the scripts of this folder share stands here too: they refuse to run where the
Triton kernels do not, so that nothing is measured on slower ones.
"""

import argparse
import platform
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from genodiff.io.atomic import write_json

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def read_arguments(about: str | None, **options: Any) -> argparse.Namespace:
    """The flags of a script: --out, --rehearse and `options` with their defaults.

    Exits with 3 where what is to be measured does not run: without a GPU, unless it is a rehearsal,
    and on a GPU where the Triton kernels fail their self-test.
    """
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rehearse", action="store_true", help="tiny, on a CPU")
    for name, default in options.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(default, bool):
            parser.add_argument(flag, action="store_true")
        else:
            kind = default if isinstance(default, type) else type(default)
            value = None if isinstance(default, type) else default
            parser.add_argument(flag, type=kind, default=value)
    arguments = parser.parse_args()
    if DEVICE == "cpu" and not arguments.rehearse:
        print("no CUDA device: --rehearse tries the control flow on a CPU", file=sys.stderr)
        sys.exit(3)
    return arguments


def require_kernels() -> None:
    """Exits with 3, and says why, where a GPU is there and the Triton kernels do not run on it."""
    from genodiff.kernels.dispatch import PROVIDERS

    triton = PROVIDERS["triton"]
    if DEVICE == "cuda" and not triton.available:
        print(f"refused, the Triton kernels do not run here: {triton.reason}", file=sys.stderr)
        sys.exit(3)


def describe_error(error: BaseException) -> str:
    """The traceback, which is also printed; device memory is given back."""
    text = "".join(traceback.format_exception(error))
    print(text, flush=True)
    if DEVICE == "cuda" and isinstance(error, torch.OutOfMemoryError):
        torch.cuda.empty_cache()
    return text[-3000:]


def save(path: Path, value: Any) -> None:
    """Write `value` as JSON, after every figure: a run that is cut off keeps what it has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, value)


def once(run: Callable[[], Any]) -> float:
    """Milliseconds of one call."""
    if DEVICE == "cpu":
        start = time.process_time()
        run()
        return 1e3 * (time.process_time() - start)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    run()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end))


def interleaved(
    variants: dict[str, Callable[[], Any]], seconds: float, least: int = 5
) -> dict[str, dict[str, Any]]:
    """Milliseconds of each variant, in turn until the time is over. A variant that fails is
    reported with its error and left out.
    """
    times: dict[str, list[float]] = {}
    errors: dict[str, str] = {}
    for name, run in variants.items():
        try:
            for _ in range(2):
                run()
            once(run)
            times[name] = []
        except Exception as error:
            errors[name] = describe_error(error)
    start = time.monotonic()
    while times and (time.monotonic() - start < seconds or min(map(len, times.values())) < least):
        for name in times:
            times[name].append(once(variants[name]))
    found: dict[str, dict[str, Any]] = {name: {"error": error} for name, error in errors.items()}
    for name, ms in times.items():
        quartiles = statistics.quantiles(ms, n=4) if len(ms) > 1 else [ms[0]] * 3
        found[name] = {
            "ms": statistics.median(ms),
            "quartiles": [quartiles[0], quartiles[2]],
            "times": len(ms),
        }
    return found


def ceilings(rehearse: bool) -> dict[str, float]:
    """Device copies in bytes read and written per second, bfloat16 products in operations per
    second, on random data, and what sums in float32 cost against rounded ones.
    """
    n, m = (2**31, 8192) if not rehearse else (2**20, 128)
    x = torch.empty(n // 4, device=DEVICE).uniform_()
    y = torch.empty_like(x)
    a, b = (torch.randn(m, m, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    # A weight's gradient: a long sum over tokens, which is split. Its parts are summed in float32
    # in training; torch's default may round them.
    tokens = 131072 if not rehearse else 256
    g, h = (torch.randn(tokens, 512, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    products = torch.backends.cuda.matmul

    def sum_over_tokens(rounded: bool) -> None:
        products.allow_bf16_reduced_precision_reduction = rounded
        g.t() @ h

    found = interleaved(
        {
            "copy": lambda: y.copy_(x),
            "product": lambda: a @ b,
            "sum": lambda: sum_over_tokens(False),
            "rounded sum": lambda: sum_over_tokens(True),
        },
        0.1 if rehearse else 2.0,
    )
    return {
        "copy_bytes_per_s": 2 * n / (found["copy"]["ms"] / 1e3),
        "bf16_flops_per_s": 2 * m**3 / (found["product"]["ms"] / 1e3),
        "exact_sum_costs": found["sum"]["ms"] / found["rounded sum"]["ms"],
    }


def describe(rehearsal: bool = False) -> dict[str, Any]:
    """The machine, the versions and the commit."""

    def tool(*command: str) -> str:
        try:
            return subprocess.run(
                command, capture_output=True, text=True, timeout=30
            ).stdout.strip()
        except OSError:
            return ""

    found: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if DEVICE == "cuda"
        else platform.processor() or platform.machine(), "rehearsal": rehearsal,
        "torch": torch.__version__, "triton": version("triton") if find_spec("triton") else None,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "driver": tool("nvidia-smi",
        "--query-gpu=driver_version,clocks.sm,clocks.max.sm,temperature.gpu",
        "--format=csv,noheader"),
    }  # fmt: skip
    if DEVICE == "cuda":
        properties = torch.cuda.get_device_properties(0)
        found |= {"sm": properties.multi_processor_count, "memory": properties.total_memory}
        found["capability"] = torch.cuda.get_device_capability()
    return found


def main() -> None:
    arguments = read_arguments(__doc__)
    found = describe(arguments.rehearse)
    save(arguments.out, found)
    save(arguments.out, found | ceilings(arguments.rehearse))
    print({k: found[k] for k in ("device", "torch", "triton", "driver")}, flush=True)


if __name__ == "__main__":
    main()
