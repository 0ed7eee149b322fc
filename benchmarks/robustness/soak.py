"""A soak: one run that is disturbed at random for an hour, and must end as the calm one."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from harness import (
    TINY,
    await_end,
    begin_session,
    contents,
    corrupt,
    count_resumed,
    finish,
    has_ended,
    is_same,
    last_step,
    list_checkpoints,
)
from score import Score, Trial, draw_kinds

PACE = 0.2  # seconds that a step waits, as one of a larger network would take
_LIMIT = 3600.0  # seconds of a session without waits
_HOUR, _GAP, _SHORT_GAP = 29, 120.0, 3.0  # faults of a full soak, seconds between two of them
_ENDS = {
    "KILL": -9, "corrupt": -9, "operation": -9, "TERM": 143, "INT": 130, "USR1": 138, "HUP": 129,
}  # fmt: skip
_KINDS = (*_ENDS, "full disk", "pause", "second run")


def soak(trial: Trial) -> Score:
    """A run of an hour with one fault in every two minutes, at a random moment: kills, signals,
    kills in an I/O operation, a corrupted checkpoint, a full disk, a pause, a second run.

    `n` is the number of faults; 29 and more come two minutes apart, fewer three seconds apart. The
    calm run, beside it, does not wait between its steps.
    """
    gap = _GAP if trial.n >= _HOUR else _SHORT_GAP
    steps = int((trial.n - 1) * gap / PACE)
    config = TINY | {"steps": steps, "checkpoint_every": 50, "keep": 3, "validate_every": 500}
    calm = begin_session(config, trial.root / "calm")
    disk = trial.root / "disk"
    disk.mkdir()
    limited = _mount(disk, "size=16m")
    out, faults, redone, pid = disk / "run", list[str](), 0, 0
    kinds = draw_kinds(trial, [k for k in _KINDS if limited or k != "full disk"])
    try:
        began = time.monotonic()
        pid = begin_session(config, out, prepare=_slow_down(out))
        for number, kind in enumerate(kinds):
            moment = began + gap * (number + trial.draw.uniform(0.25, 1))
            while time.monotonic() < moment and not has_ended(pid):
                time.sleep(0.05)
            if has_ended(pid):
                faults.append(f"fault {number}: the session had ended before")
            else:
                faults += [f"fault {number}: {f}" for f in _disturb(kind, pid, out, config, trial)]
            if has_ended(pid):
                code, found = await_end(pid), list_checkpoints(out)
                if code != _ENDS.get(kind, 5):
                    faults.append(f"fault {number}, {kind}: exit {code}")
                redone += last_step(out) - (found[-1] if found else 0)
                if kind == "corrupt" and len(found) > 1:
                    _corrupt_newest(out, found[-1], trial)
                    redone += found[-1] - found[-2]
                pid = begin_session(config, out, prepare=_slow_down(out))
        seconds = time.monotonic() - began
        os.kill(pid, signal.SIGKILL)
        await_end(pid)
        found = list_checkpoints(out)
        redone += last_step(out) - (found[-1] if found else 0)
        reached = last_step(out)
        code = finish(config, out, _LIMIT)
        calm_code = await_end(calm, _LIMIT)
        same = not code and not calm_code and is_same(contents(out), contents(trial.root / "calm"))
        resumed = count_resumed(out)
    finally:
        if pid and Path(f"/proc/{pid}").exists():
            os.kill(pid, signal.SIGKILL)
        if limited:
            subprocess.run(["umount", "-l", str(disk)], check=True)
    figures = {
        "faults": {k: kinds.count(k) for k in _KINDS}, "seconds of faults": round(seconds),
        "steps": steps, "steps at the last fault": reached, "steps computed again": redone,
        "useful steps": f"{steps / (steps + redone):.1%}", "resumed from a checkpoint": resumed,
        "bit-equal to the calm run": same,
    }  # fmt: skip
    if not same:
        faults.append(f"exit {code}, or another end than the calm run's")
    return Score(trial.n, trial.n - len(faults) if same else 0, figures, faults)


def _mount(disk: Path, options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)]
    return not subprocess.run(command, capture_output=True).returncode


def _slow_down(out: Path) -> Callable[[], None]:
    """In the child: wait in each step, and die in an I/O operation after SIGWINCH says in which."""

    def prepare() -> None:
        from genodiff.io import atomic
        from genodiff.training import module

        real = module.batch_loss

        def wait(*asked: object, **named: object) -> object:
            time.sleep(PACE)
            return real(*asked, **named)  # type: ignore[arg-type]

        def plan_death(*_: object) -> None:
            ahead = int(out.with_name("ahead").read_text())
            os.environ["GENODIFF_CRASH_AT"] = str(atomic._operations + ahead)

        module.batch_loss = wait  # type: ignore[assignment]
        signal.signal(signal.SIGWINCH, plan_death)

    return prepare


def _disturb(kind: str, pid: int, out: Path, config: dict[str, object], trial: Trial) -> list[str]:
    """One fault; what is wrong at once. The session may have ended after it."""
    if kind == "pause":
        os.kill(pid, signal.SIGSTOP)
        time.sleep(2)
        os.kill(pid, signal.SIGCONT)
        return []
    if kind == "second run":
        code = finish(config, out)
        return [] if code == 2 else [f"a second run exits {code}"]
    if kind == "full disk":
        return _fill(pid, out)
    if kind == "operation":
        out.with_name("ahead").write_text(str(trial.draw.randint(1, 40)))
        os.kill(pid, signal.SIGWINCH)
    else:
        os.kill(pid, signal.SIGKILL if kind == "corrupt" else getattr(signal, f"SIG{kind}"))
    _await_death(pid, 60)
    return [] if has_ended(pid) else [f"{kind}: does not end"]


def _fill(pid: int, out: Path) -> list[str]:
    """No room on the disk until the run has tried to write; what became of older checkpoints."""
    disk = out.parent
    before = list_checkpoints(out)
    ballast = disk / "ballast"  # a write of 4096 bytes at a time fills the last page too
    with ballast.open("wb", buffering=0) as file:
        while True:
            try:
                file.write(bytes(4096))
            except OSError:
                break
    _await_death(pid, 60 * PACE + 2)
    ballast.unlink()
    lost = bool(before) and not list_checkpoints(out)
    return [f"a full disk took the checkpoints {before}"] if lost else []


def _await_death(pid: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not has_ended(pid):
        time.sleep(0.05)


def _corrupt_newest(out: Path, step: int, trial: Trial) -> None:
    names = sorted(p.name for p in (out / "checkpoints" / f"step_{step:08d}").iterdir())
    corrupt(out, step, f"{trial.draw.choice(names)}:{trial.draw.random():.9f}")
