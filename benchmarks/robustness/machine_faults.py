"""Faults around a run: races for its folder and an index, layouts of ranks, growth."""

import importlib.util
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

from harness import (
    TINY,
    await_end,
    begin_session,
    contents,
    count_resumed,
    finish,
    has_ended,
    is_same,
    last_step,
    log_path,
)
from score import Score, Trial, spread

ROOT = Path(__file__).resolve().parents[2]


def race_for_folder(trial: Trial) -> Score:
    """Two runs into one folder, at once or while the first trains; the one that got it is killed,
    and goes on to the calm run's end."""
    config = TINY | {"steps": 200, "checkpoint_every": 20}
    calm = trial.calm(**config)
    faults, took, resumed = [], [], 0
    for number in range(trial.n):
        out = trial.root / f"run{number}"
        pids = [begin_session(config, out)]
        while number % 2 and not last_step(out) and not has_ended(pids[0]):
            time.sleep(0.002)
        began = time.monotonic()
        pids.append(begin_session(config, out))
        while not any(has_ended(pid) for pid in pids):
            time.sleep(0.002)
        took.append(time.monotonic() - began)
        winner = pids[0] if has_ended(pids[1]) else pids[1]
        loser = pids[1] if has_ended(pids[1]) else pids[0]
        code, alive = await_end(loser), not has_ended(winner)
        while last_step(out) < 25 and not has_ended(winner):
            time.sleep(0.002)
        os.kill(winner, signal.SIGKILL)
        await_end(winner)
        again = finish(config, out)
        said = log_path(out).read_text(errors="replace")
        resumed += count_resumed(out)
        named = f"pid {winner}" in said
        if code != 2 or not alive or again or not is_same(contents(out), calm) or not named:
            faults.append(f"race {number}: exits {code}, {again}; alive {alive}, named {named}")
        shutil.rmtree(out)
    figures = {"seconds to refuse": spread(took), "resumed from a checkpoint": resumed}
    return Score(trial.n, trial.n - len(faults), figures, faults)


def race_for_index(trial: Trial) -> Score:
    """Eight processes open a new FASTA in the same moment, and read all of it."""
    path = ROOT / "tests" / "io" / "test_faidx_shared.py"
    sys.path[:0] = [str(path.parent), str(ROOT / "tests"), str(ROOT)]
    spec = importlib.util.spec_from_file_location("faidx_shared", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    counts = module.race(trial.root, max(1, trial.n // 8), 8)
    right = counts.pop("right", 0)
    tried = right + sum(counts.values())
    return Score(
        tried, right, {"processes at once": 8}, [f"{n}: {what}" for what, n in counts.items()]
    )


def compare_layouts(trial: Trial) -> Score:
    """1, 2 and 4 ranks with 0, 2 and 4 workers: the windows of a step, in their order."""
    from torch.utils.data import DataLoader

    from genodiff.runs.feed import open_feed, open_train_batches
    from genodiff.runs.resolve import resolve_config

    config = resolve_config(TINY)
    feed, steps = open_feed(config), 12
    seen: dict[str, list[list[int]]] = {}
    for world in (1, 2, 4):
        for workers in (0, 2, 4):
            parts: list[list[int]] = [[] for _ in range(steps)]
            for rank in range(world):
                stream = open_train_batches(feed, config, rank=rank, world_size=world)
                loader: DataLoader[Any] = DataLoader(
                    stream.from_batch(0, steps), batch_size=None, num_workers=workers
                )
                for step, batch in enumerate(loader):
                    parts[step] += batch.index.tolist()
            seen[f"{world} ranks, {workers} workers"] = parts
    first = seen["1 ranks, 0 workers"]
    faults = [name for name, parts in seen.items() if parts != first]
    return Score(len(seen), len(seen) - len(faults), {"steps": steps}, faults)


def measure_growth(trial: Trial) -> Score:
    """Memory, open files and threads of one process over many steps."""
    out, rows = trial.root / "run", list[tuple[int, float, int, int]]()
    config = TINY | {"steps": trial.n, "checkpoint_every": 1000, "validate_every": 1000}
    pid = begin_session(config, out)
    while not has_ended(pid):
        status = Path(f"/proc/{pid}/status").read_text()
        resident = int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024
        threads = int(re.findall(r"Threads:\s+(\d+)", status)[0])
        rows.append((last_step(out), resident, len(os.listdir(f"/proc/{pid}/fd")), threads))
        time.sleep(0.5)
    code = await_end(pid)
    late = [row for row in rows if row[0] >= trial.n // 5]
    steps = [row[0] for row in late]
    middle = sum(steps) / len(steps)
    mean = sum(row[1] for row in late) / len(late)
    spreads = sum((s - middle) ** 2 for s in steps)
    slope = sum((row[0] - middle) * (row[1] - mean) for row in late) / spreads * 10_000
    files, threads_seen = {row[2] for row in late}, {row[3] for row in late}
    figures = {
        "MB in 10,000 steps": round(slope, 2), "open files": sorted(files),
        "threads": sorted(threads_seen), "steps": trial.n,
    }  # fmt: skip
    good = code == 0 and slope < 1 and max(files) - min(files) <= 1
    return Score(1, int(good), figures, [] if good else [f"exit {code}"])
