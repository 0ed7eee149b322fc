"""Timing for a machine that is never quiet: CPU seconds of this process, variants taking turns,
medians and spread.

A ratio is the median over rounds of the ratio within a round, so that what slows a whole round
cancels.
"""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

from genodiff.kernels.library import instruction_set, multiply_adds

Times = dict[str, list[float]]


def interleaved(
    variants: dict[str, Callable[[], Any]], rounds: int, slow: dict[str, int] | None = None
) -> Times:
    """CPU seconds of each variant in each round, after one run that does not count. `slow` says how
    many rounds a variant joins.
    """
    for name, run in variants.items():
        if not (slow or {}).get(name):
            run()
    found: Times = {name: [] for name in variants}
    for i in range(rounds):
        for name, run in variants.items():
            if i < (slow or {}).get(name, rounds):
                began = time.process_time()
                run()
                found[name].append(time.process_time() - began)
    return found


def spread(values: list[float]) -> list[float]:
    """The smallest and the largest."""
    return [min(values), max(values)]


def ratios(times: Times, ours: str) -> dict[str, float]:
    """How many times longer the others take."""
    return {
        name: round(median(b / a for a, b in zip(times[ours], other, strict=False)), 2)
        for name, other in times.items()
        if name != ours
    }


def pace(times: Times, tokens: int) -> dict[str, float]:
    """Thousands of tokens per core second, by the median."""
    return {name: round(tokens / median(t) / 1e3, 2) for name, t in times.items()}


def pace_spread(times: Times, tokens: int) -> dict[str, list[float]]:
    """The slowest and the fastest round, in thousands of tokens per core second."""
    return {
        name: [round(tokens / t / 1e3, 2) for t in (max(ts), min(ts))] for name, ts in times.items()
    }


def multiply_adds_per_second() -> float:
    """Vector multiply-adds of one core, the best of a few."""
    best = 0.0
    for _ in range(7):
        began = time.process_time()
        done = multiply_adds(2_000_000)
        best = max(best, done / (time.process_time() - began))
    return best


def bytes_per_second() -> float:
    """Read and written in a copy of 64 MB, the best of a few."""
    x, y = torch.ones(2**24), torch.empty(2**24)
    best = 0.0
    for _ in range(7):
        began = time.process_time()
        y.copy_(x)
        best = max(best, 2 * x.nbytes / (time.process_time() - began))
    return best


def provenance() -> dict[str, Any]:
    """What a figure needs beside it: the commit, the command, the machine, and its load."""
    here = Path(__file__).resolve().parent
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True
    ).stdout.strip()
    changed = subprocess.run(
        ["git", "status", "--porcelain", "-uno"], cwd=here, capture_output=True, text=True
    ).stdout.strip()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    said = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return {
        "commit": commit + ("+" if changed else ""),
        "command": " ".join(
            ["python", f"benchmarks/speed/{Path(sys.argv[0]).name}", *sys.argv[1:]]
        ),
        "hardware": f"{said.get('model name', platform.machine())}, family "
        f"{said.get('cpu family')}, model {said.get('model')}, "
        f"{os.cpu_count()} cores, {instruction_set()}",
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 1),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def show(result: dict[str, Any], as_json: bool) -> None:
    """The result on stdout, as one object or as a line for each figure."""
    if as_json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        if isinstance(value, dict):
            print(f"{name}:")
            for key, figure in value.items():
                print(f"  {key:28} {figure}")
        else:
            print(f"{name}: {value}")
