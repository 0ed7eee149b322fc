"""Faults of a run: kills in three placements, broken checkpoints, full disks, signals, NaN."""

import math
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import (
    TINY,
    await_end,
    begin_session,
    contents,
    corrupt,
    count_operations,
    finish,
    has_ended,
    is_same,
    last_step,
    list_checkpoints,
    log_path,
    signal_at_step,
)
from score import Score, Trial, spread

_KILLS = 6  # of one run
_CODES = {"TERM": 143, "INT": 130, "USR1": 138, "HUP": 129}


def kill_by_step(trial: Trial) -> Score:
    """SIGKILL 1 to 12 steps after the last that was logged."""

    def kill(out: Path) -> bool:
        before, done = last_step(out), list_checkpoints(out)
        begun = done[-1] if done else 0
        pid = begin_session(TINY, out)
        target = begun + trial.draw.randint(1, 12)
        sent = signal_at_step(pid, out, target, signal.SIGKILL, before, begun)
        await_end(pid)
        return sent

    return _kill_runs(trial, kill)


def kill_by_operation(trial: Trial) -> Score:
    """The run kills itself at an I/O operation of the one writer."""
    finish(TINY, trial.root / "counted")
    most = count_operations(trial.root / "counted")

    def kill(out: Path) -> bool:
        at = trial.draw.randint(1, most)
        return await_end(begin_session(TINY, out, crash_at=at)) == -signal.SIGKILL

    score = _kill_runs(trial, kill)
    return score._replace(figures=score.figures | {"operations": most})


def kill_by_time(trial: Trial) -> Score:
    """SIGKILL at a time that is uniform over the calm run's."""
    began = time.monotonic()
    finish(TINY, trial.root / "timed")
    whole = time.monotonic() - began

    def kill(out: Path) -> bool:
        pid = begin_session(TINY, out)
        deadline = time.monotonic() + trial.draw.uniform(0, whole)
        while time.monotonic() < deadline and not has_ended(pid):
            time.sleep(0.002)
        if not has_ended(pid):
            os.kill(pid, signal.SIGKILL)
        return await_end(pid) == -signal.SIGKILL

    return _kill_runs(trial, kill)


def _kill_runs(trial: Trial, kill: Callable[[Path], bool]) -> Score:
    """Runs that are killed up to six times each, and then end as the calm one."""
    calm, kills, lost, resumed = trial.calm(), 0, 0, 0
    faults: list[str] = []
    runs = 0
    while kills < trial.n:
        out = trial.root / f"run{runs}"
        runs, mine = runs + 1, 0
        while mine < min(_KILLS, trial.n - kills) and kill(out):
            mine += 1
            resumed += bool(list_checkpoints(out))
        kills += mine
        code = finish(TINY, out)
        found = contents(out) if code == 0 else None
        if found is None or not is_same(found, calm) or found["leftovers"]:
            lost += mine
            faults.append(f"{out.name}: exit {code}, {'differs' if found else 'lost'}")
        elif not mine:
            break
        shutil.rmtree(out, ignore_errors=True)
    figures = {"runs": runs, "resumed from a checkpoint": resumed}
    return Score(kills, kills - lost, figures, faults)


def crash_in_every_operation(trial: Trial) -> Score:
    """Each I/O operation of a short run with two checkpoints, one after the other."""
    config = TINY | {"steps": 4, "checkpoint_every": 2, "validate_every": 4, "keep": 1}
    calm = trial.calm(**config)
    tried, faults = 0, []
    while tried < trial.n:
        out = trial.root / "run"
        shutil.rmtree(out, ignore_errors=True)
        if await_end(begin_session(config, out, crash_at=tried + 1)) == 0:
            break
        tried += 1
        code = finish(config, out)
        if code or not is_same(contents(out), calm) or contents(out)["leftovers"]:
            faults.append(f"operation {tried}: exit {code}")
    return Score(tried, tried - len(faults), {}, faults)


def corrupt_newest(trial: Trial) -> Score:
    """A bit of the newest checkpoint flipped, or a file of it cut, emptied or missing."""
    calm = trial.calm()
    base = trial.root / "base"
    pid = begin_session(TINY, base)
    signal_at_step(pid, base, 22, signal.SIGKILL, 0, 0)
    await_end(pid)
    newest = list_checkpoints(base)[-1]
    files = sorted(p.name for p in (base / "checkpoints" / f"step_{newest:08d}").iterdir())
    structural = [f"{files[i % len(files)]}:{how}" for i, how in enumerate(
        ("missing", "empty", "half", "missing", "half"))]  # fmt: skip
    flips = [
        f"{trial.draw.choice(files)}:{trial.draw.random():.9f}" for _ in range(max(0, trial.n - 5))
    ]
    faults = []
    for number, how in enumerate([*structural, *flips][: trial.n]):
        out = trial.copy(base, f"run{number}")
        corrupt(out, newest, how)
        code = finish(TINY, out)
        found = contents(out)
        if code or not is_same(found, calm) or not found["corrupt"]:
            faults.append(f"{how}: exit {code}, set aside {found['corrupt']}")
        shutil.rmtree(out)
    return Score(trial.n, trial.n - len(faults), {"files": len(files)}, faults)


def fill_disk(trial: Trial) -> Score:
    """A disk that is full at one of many levels, and has room again afterwards."""
    calm = trial.calm()
    whole = sum(p.stat().st_size for p in (trial.root / "calm").rglob("*") if p.is_file())
    disk, faults, codes = trial.root / "disk", list[str](), list[int]()
    disk.mkdir()
    for number in range(trial.n):
        size = int(whole * (0.05 + 1.5 * number / trial.n)) // 4096 * 4096 + 4096
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
        if subprocess.run(mount, capture_output=True).returncode:
            return Score(0, 0, {"skipped": "no right to mount a disk of limited size"}, [])
        try:
            out = disk / "run"
            codes.append(finish(TINY, out))
            said = disk.joinpath("run.log").read_text(errors="replace") if codes[-1] else ""
            before = list_checkpoints(out) if out.exists() else []
            subprocess.run(["mount", "-o", "remount,size=1g", str(disk)], check=True)
            code = codes[-1] and finish(TINY, out)
            if codes[-1] not in (0, 5) or code or not is_same(contents(out), calm):
                faults.append(f"{size:,} bytes: exits {codes[-1]}, {code}; had {before}")
            elif "Traceback" in said:
                faults.append(f"{size:,} bytes: a traceback")
        finally:
            subprocess.run(["umount", str(disk)], check=True)
    stopped = sum(code != 0 for code in codes)
    return Score(trial.n, trial.n - len(faults), {"stopped with exit code 5": stopped}, faults)


def send_signals(trial: Trial) -> Score:
    """SIGTERM, SIGINT, SIGUSR1 or SIGHUP at a random time after the run took its folder."""
    calm = trial.calm()
    began = time.monotonic()
    finish(TINY, trial.root / "timed")
    whole = time.monotonic() - began
    faults, took, ends = [], [], dict[str, int]()
    for number in range(trial.n):
        out, name = trial.root / f"run{number}", trial.draw.choice(sorted(_CODES))
        pid = begin_session(TINY, out)
        while not (out / ".lock").exists() and not has_ended(pid):
            time.sleep(0.002)
        time.sleep(trial.draw.uniform(0, whole))
        sent = time.monotonic()
        if not has_ended(pid):
            os.kill(pid, getattr(signal, f"SIG{name}"))
        code = await_end(pid)
        took.append(time.monotonic() - sent)
        ends[str(code)] = ends.get(str(code), 0) + 1
        again = finish(TINY, out)
        if code not in (0, _CODES[name]) or again or not is_same(contents(out), calm):
            faults.append(f"SIG{name}: exits {code}, {again}")
        shutil.rmtree(out)
    figures = {"seconds to the end": spread(took), "exit codes": ends}
    return Score(trial.n, trial.n - len(faults), figures, faults)


_VALUES = (math.nan, math.inf, -math.inf)
_PLACES = ("weight", "activation", "gradient", "loss")


def inject_nonfinite(trial: Trial) -> Score:
    """NaN or Inf in a weight, an activation, a gradient or the loss, at a random step and place."""
    config = TINY | {"steps": 6, "checkpoint_every": 1, "validate_every": 99, "keep": 9}
    faults, stopped = [], 0
    for number in range(trial.n):
        out, step = trial.root / f"run{number}", trial.draw.randint(1, 5)
        place, value = _PLACES[number % 4], _VALUES[number // 4 % 3]
        seed = trial.draw.getrandbits(32)
        pid = begin_session(config, out, prepare=lambda: _poison(place, value, step, seed))  # noqa: B023
        code = await_end(pid)
        said = log_path(out).read_text(errors="replace")
        told = re.findall(r"step (\d+): [^\n]*(?:is|are) not finite", said)
        stopped += code != 0
        if code not in (0, 1) or not told or int(told[0]) != step or _is_poisoned(out):
            faults.append(f"{place} {value} at step {step}: exit {code}, told at {told[:1]}")
        shutil.rmtree(out, ignore_errors=True)
    figures = {"stopped": stopped, "skipped and went on": trial.n - stopped}
    return Score(trial.n, trial.n - len(faults), figures, faults)


def _poison(place: str, value: float, step: int, seed: int) -> None:
    """Spoil one number in the step's only micro-batch."""
    import torch

    from genodiff.training import module

    real, generator = module.batch_loss, torch.Generator().manual_seed(seed)

    def spoil(tensor: torch.Tensor) -> None:
        at = int(torch.randint(tensor.numel(), (1,), generator=generator))
        tensor.data.view(-1)[at] = value

    def batch_loss(objective: Any, backbone: torch.nn.Module, batch: Any, *rest: Any) -> Any:
        if int(batch.index[0]) // len(batch.index) + 1 != step:
            return real(objective, backbone, batch, *rest)
        parameters = [p for p in backbone.parameters() if p.requires_grad]
        chosen = parameters[int(torch.randint(len(parameters), (1,), generator=generator))]
        if place == "weight":
            spoil(chosen)
        hook = None
        if place == "activation":
            mixer = next(iter(backbone.blocks)).mixer  # type: ignore[arg-type]

            def change(_: Any, __: Any, out: Any) -> Any:
                first = out if isinstance(out, torch.Tensor) else out[0]
                spoiled = first.clone()
                spoil(spoiled)
                return spoiled if isinstance(out, torch.Tensor) else (spoiled, *out[1:])

            hook = mixer.register_forward_hook(change)
        terms, weights = real(objective, backbone, batch, *rest)
        if hook is not None:
            hook.remove()
        if place == "loss":
            terms = terms._replace(nats=terms.nats * value)
        if place == "gradient":
            mask = torch.zeros_like(chosen)
            spoil(mask)
            terms = terms._replace(nats=terms.nats + _Backward.apply(chosen, mask))
        return terms, weights

    class _Backward(torch.autograd.Function):
        """0 forward; `mask` is added to the gradient backward."""

        @staticmethod
        def forward(ctx: Any, weight: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(mask)
            return weight.new_zeros(())

        @staticmethod
        def backward(ctx: Any, *_: Any) -> Any:
            return ctx.saved_tensors[0], None

    module.batch_loss = batch_loss  # type: ignore[assignment]


def _is_poisoned(out: Path) -> bool:
    """Whether any checkpoint holds a number that is not finite."""
    import torch
    from safetensors.torch import load_file

    return any(
        not bool(torch.isfinite(tensor).all())
        for path in out.rglob("*.safetensors")
        if path.parent.name != "faulty_batches"
        for tensor in load_file(path).values()
    )
