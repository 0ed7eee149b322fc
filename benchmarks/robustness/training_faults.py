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
    count_resumed,
    finish,
    has_ended,
    is_same,
    last_step,
    list_checkpoints,
    log_path,
    name_start,
    read_resumed,
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
    """Runs that are killed up to six times each, and then end as the calm one.

    What a session says it goes on from must be the newest checkpoint, and at most
    `checkpoint_every` logged steps before the kill, so that a run that begins anew is no success.
    """
    calm, kills, lost, resumed, most = trial.calm(), 0, 0, 0, 0
    faults: list[str] = []
    runs = 0
    while kills < trial.n and runs < 20 * trial.n:
        out = trial.root / f"run{runs}"
        runs, mine, wrong = runs + 1, 0, list[str]()
        expected: list[int] = []
        while mine < min(_KILLS, trial.n - kills) and kill(out):
            mine += 1
            expected += name_start(out, TINY)
            redone = last_step(out) - (list_checkpoints(out) or [0])[-1]
            most = max(most, redone)
            if redone > int(TINY["checkpoint_every"]):
                wrong.append(f"{redone} steps are lost")
        kills += mine
        code = finish(TINY, out)
        found = contents(out) if code == 0 else None
        if found is None or not is_same(found, calm):
            wrong.append(f"exit {code}, {'differs' if found else 'lost'}")
        elif found["leftovers"] or found["corrupt"]:
            wrong.append(f"left {found['leftovers']}, set aside {found['corrupt']}")
        if not _is_end(read_resumed(out), expected):
            wrong.append(f"went on from {read_resumed(out)}, not {expected}")
        if wrong:
            lost += mine
            faults.append(f"{out.name}: {'; '.join(wrong)}")
        resumed += count_resumed(out)
        shutil.rmtree(out, ignore_errors=True)
    figures = {"runs": runs, "resumed from a checkpoint": resumed, "most steps done again": most}
    return Score(kills, kills - lost, figures, faults)


def _is_end(said: list[int], expected: list[int]) -> bool:
    """Whether sessions went on from where they should; one that dies sooner says nothing."""
    left = iter(expected)
    return said[-1:] == expected[-1:] and all(step in left for step in said)


def crash_in_every_operation(trial: Trial) -> Score:
    """Each I/O operation of a short run with two checkpoints, one after the other."""
    config = TINY | {"steps": 4, "checkpoint_every": 2, "validate_every": 4, "keep": 1}
    calm = trial.calm(**config)
    tried, resumed, faults = 0, 0, []
    while tried < trial.n:
        out = trial.root / "run"
        shutil.rmtree(out, ignore_errors=True)
        if await_end(begin_session(config, out, crash_at=tried + 1)) == 0:
            break
        tried += 1
        done = name_start(out, config)
        code = finish(config, out)
        resumed += count_resumed(out)
        if code or not is_same(contents(out), calm) or contents(out)["leftovers"]:
            faults.append(f"operation {tried}: exit {code}")
        elif read_resumed(out) != done:
            faults.append(f"operation {tried}: went on from {read_resumed(out)}, not {done}")
        log_path(out).unlink()
    return Score(tried, tried - len(faults), {"resumed from a checkpoint": resumed}, faults)


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
        found, before = contents(out), newest - int(TINY["checkpoint_every"])
        named = f"step_{newest:08d}" in log_path(out).read_text()
        if code or not is_same(found, calm) or not found["corrupt"] or not named:
            faults.append(f"{how}: exit {code}, set aside {found['corrupt']}, named {named}")
        elif read_resumed(out) != [before]:
            faults.append(f"{how}: went on from {read_resumed(out)}, not {before}")
        shutil.rmtree(out)
    return Score(trial.n, trial.n - len(faults), {"files": len(files)}, faults)


def fill_disk(trial: Trial) -> Score:
    """A disk that is full at one of many levels, and has room again afterwards."""
    calm = trial.calm()
    whole = sum(p.stat().st_size for p in (trial.root / "calm").rglob("*") if p.is_file())
    disk, faults, codes = trial.root / "disk", list[str](), list[int]()
    kept = went_on = 0
    disk.mkdir()
    for number in range(trial.n):
        size = int(whole * (0.05 + 1.5 * number / trial.n)) // 4096 * 4096 + 4096
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
        if subprocess.run(mount, capture_output=True).returncode:
            return Score(0, 0, {"skipped": "no right to mount a disk of limited size"}, [])
        try:
            out = disk / f"run{number}"
            codes.append(finish(TINY, out))
            said = log_path(out).read_text(errors="replace")
            before = list_checkpoints(out) if out.exists() else []
            start = name_start(out, TINY)
            kept += bool(before)
            subprocess.run(["mount", "-o", "remount,size=1g", str(disk)], check=True)
            code = codes[-1] and finish(TINY, out)
            if codes[-1] not in (0, 5) or code or not is_same(contents(out), calm):
                faults.append(f"{size:,} bytes: exits {codes[-1]}, {code}; had {before}")
            elif codes[-1] and read_resumed(out) != start:
                faults.append(f"{size:,} bytes: went on from {read_resumed(out)}, not {start}")
            elif codes[-1] and ("bytes free" not in said or f"{disk}/" not in said):
                faults.append(f"{size:,} bytes: the message names no path or room")
            elif "Traceback" in said:
                faults.append(f"{size:,} bytes: a traceback")
            went_on += not codes[-1] and "continues without this checkpoint" in said
        finally:
            subprocess.run(["umount", str(disk)], check=True)
    stopped = sum(code != 0 for code in codes)
    figures = {
        "stopped with exit code 5": stopped, "went on without a checkpoint": went_on,
        "an older checkpoint stayed": kept,
    }  # fmt: skip
    return Score(trial.n, trial.n - len(faults), figures, faults)


def send_signals(trial: Trial) -> Score:
    """SIGTERM, SIGINT, SIGUSR1 or SIGHUP at a random time after the run took its folder.

    One that comes when the run has ended already is not counted.
    """
    calm = trial.calm()
    began = time.monotonic()
    finish(TINY, trial.root / "timed")
    whole = time.monotonic() - began
    faults, took, ends = [], [], dict[str, int]()
    late = saved = hits = number = 0
    while hits < trial.n and number < 9 * trial.n:
        number += 1
        out, name = trial.root / f"run{number}", trial.draw.choice(sorted(_CODES))
        pid = begin_session(TINY, out)
        while not (out / ".lock").exists() and not has_ended(pid):
            time.sleep(0.002)
        time.sleep(trial.draw.uniform(0, 0.8 * whole))
        at, sent = last_step(out), time.monotonic()
        if not has_ended(pid):
            os.kill(pid, getattr(signal, f"SIG{name}"))
        code = await_end(pid)
        if not code:
            shutil.rmtree(out)
            continue
        hits += 1
        took.append(time.monotonic() - sent)
        ends[str(code)] = ends.get(str(code), 0) + 1
        end, done, start = last_step(out), list_checkpoints(out), name_start(out, TINY)
        late, saved = max(late, end - at), saved + bool(done)
        # the step that was counted may end between the look and the signal
        if end - at > 2 or done[-1:] != ([end] if end else []):
            faults.append(f"SIG{name} at step {at}: ended at {end}, saved {done[-1:]}")
        again = finish(TINY, out)
        if code != _CODES[name] or again or not is_same(contents(out), calm):
            faults.append(f"SIG{name}: exits {code}, {again}")
        elif read_resumed(out) != start:
            faults.append(f"SIG{name}: went on from {read_resumed(out)}, not {start}")
        shutil.rmtree(out)
    figures = {
        "seconds to the end": spread(took), "exit codes": ends, "steps after the signal": late,
        "saved a checkpoint": saved,
        "runs": number,
    }  # fmt: skip
    return Score(hits, hits - len(faults), figures, faults)


_VALUES = (math.nan, math.inf, -math.inf)
_PLACES = ("weight", "activation", "gradient", "loss")


def inject_nonfinite(trial: Trial) -> Score:
    """NaN or Inf in a weight, an activation, a gradient or the loss, at a random step and place."""
    config = TINY | {"steps": 6, "checkpoint_every": 1, "validate_every": 99, "keep": 9}
    faults, stopped, kept = [], 0, 0
    for number in range(trial.n):
        out, step = trial.root / f"run{number}", trial.draw.randint(1, 5)
        place, value = _PLACES[number % 4], _VALUES[number // 4 % 3]
        seed = trial.draw.getrandbits(32)
        pid = begin_session(config, out, prepare=lambda: _poison(place, value, step, seed))  # noqa: B023
        code = await_end(pid)
        said = log_path(out).read_text(errors="replace")
        told = re.findall(r"step (\d+): [^\n]*(?:is|are) not finite", said)
        stopped += code != 0
        kept += (out / "faulty_batches").exists()
        if code not in (0, 1) or not told or int(told[0]) != step or _is_poisoned(out):
            faults.append(f"{place} {value} at step {step}: exit {code}, told at {told[:1]}")
        shutil.rmtree(out, ignore_errors=True)
    figures = {
        "stopped": stopped, "skipped and went on": trial.n - stopped, "batches kept": kept,
    }  # fmt: skip
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
