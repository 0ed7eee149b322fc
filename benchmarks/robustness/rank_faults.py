"""Ranks that are killed: by the launcher of `--devices 2`, forked here so that torch is imported
once, and by whole commands."""

import atexit
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from harness import (
    TINY,
    contents,
    find_ranks,
    has_ended,
    is_same,
    last_step,
    log_path,
    name_start,
    read_resumed,
)
from score import Score, Trial, spread

_KILLS = 6  # of one run
_RESTARTS = 3  # of one run under torchrun
_RUN = [
    "-m", "genodiff", "train", "toy", "--device", "cpu", "--preset", "caduceus-ps-tiny",
    "--d-model", "16", "--n-layer", "1", "--d-state", "4", "--seq-len", "64", "--batch-size", "4",
    "--validate-windows", "8", "--validate-every", "8", "--checkpoint-every", "5",
    "--max-steps", "30",
]  # fmt: skip


class Launcher(NamedTuple):
    """A process that has started ranks: its pid, and its ranks' by number once they are there."""

    pid: int
    find: Callable[[int], dict[int, int]]


def kill_a_rank(trial: Trial) -> Score:
    """One of two ranks is killed, up to six times a run, by a step drawn at random; the same
    launch goes on from the newest checkpoint to the calm run's end. Ranks are forked here."""
    return _kill_ranks(trial, _fork_launcher)


def kill_a_rank_in_parts(trial: Trial) -> Score:
    """The same with `--fsdp`: each rank keeps a part of every tensor."""
    return _kill_ranks(trial, partial(_fork_launcher, fsdp=True))


def kill_a_rank_of_a_command(trial: Trial) -> Score:
    """The same with `genodiff train --devices 2` as a user starts it."""
    return _kill_ranks(trial, _start_command)


def kill_a_rank_under_torchrun(trial: Trial) -> Score:
    """One of two ranks under `torchrun --max-restarts` is killed, up to three times a run, by a
    step drawn at random. Nobody starts anything again: torchrun does, and the ranks go on from the
    newest checkpoint to the calm run's end."""
    calm = trial.root / "calm"
    if _await(_start_torchrun(calm).pid):
        raise SystemExit(f"the calm run failed, see {log_path(calm)}")
    expected = contents(calm)
    faults, tried, number = list[str](), 0, 0
    while tried < trial.n:
        out, number, mine = trial.root / f"run{number}", number + 1, 0
        launcher = _start_torchrun(out)
        for wanted in sorted(trial.draw.sample(range(6, 29), min(_RESTARTS, trial.n - tried))):
            while last_step(out) < wanted and not has_ended(launcher.pid):
                time.sleep(0.002)
            if has_ended(launcher.pid):
                break
            before = len(read_resumed(out))
            os.kill(launcher.find(launcher.pid)[trial.draw.randint(0, 1)], signal.SIGKILL)
            mine += 1
            while len(read_resumed(out)) == before and not has_ended(launcher.pid):
                time.sleep(0.05)
        code = _await(launcher.pid)
        tried += mine
        if code or not is_same(contents(out), expected):
            faults += [f"{out.name}: exit {code}, or another end"] * mine
    return Score(tried, tried - len(faults), {"runs": number}, faults)


def _kill_ranks(trial: Trial, launch: Callable[[Path], Launcher]) -> Score:
    calm = trial.root / "calm"
    if _await(launch(calm).pid):
        raise SystemExit(f"the calm run failed, see {log_path(calm)}")
    expected = contents(calm)
    faults, took, resumed, left, number = [], list[float](), 0, 0, 0
    while len(took) < trial.n and number < 9 * trial.n:
        out, number, mine, wrong = trial.root / f"run{number}", number + 1, 0, list[str]()
        while True:
            start = name_start(out, TINY)
            target = max(start, default=0) + trial.draw.randint(1, 8)
            wanted = mine < _KILLS and len(took) < trial.n and target < TINY["steps"]
            victim, before = trial.draw.randint(0, 1), last_step(out)
            began, log = time.monotonic(), log_path(out)
            said = log.stat().st_size if log.exists() else 0
            launcher = launch(out)
            while wanted and not has_ended(launcher.pid) and not before != last_step(out) >= target:
                time.sleep(0.002)
            ranks = launcher.find(launcher.pid) if wanted else {}
            killed = victim in ranks
            if killed:
                began = time.monotonic()
                os.kill(ranks[victim], signal.SIGKILL)
            code = _await(launcher.pid)
            told = log.read_text(errors="replace")[said:]
            found = [int(step) for step in re.findall(r"resuming from step (\d+)", told)]
            resumed += bool(found)
            if found != start:
                wrong.append(f"went on from {found}, not {start}")
            if not killed:
                break
            took.append(time.monotonic() - began)
            mine += 1
            orphans = [pid for pid in ranks.values() if Path(f"/proc/{pid}").exists()]
            left += len(orphans)
            named = f"rank {victim} was killed" in told
            if code != 5 or orphans or not named:
                wrong.append(f"exit {code}, orphans {orphans}, rank {victim} named {named}")
        if code or not is_same(contents(out), expected):
            wrong.append(f"at last exit {code}, or another end")
        faults += [f"{out.name}: {'; '.join(wrong)}"] * (mine if wrong else 0)
        shutil.rmtree(out)
        log_path(out).unlink()
    figures = {
        "seconds to the end": spread(took), "runs": number, "resumed from a checkpoint": resumed,
        "orphans": left, "load of the machine": round(os.getloadavg()[0], 1),
    }  # fmt: skip
    return Score(len(took), len(took) - len(faults), figures, faults)


def _await(pid: int) -> int:
    """The exit code of a launcher, or minus the signal that ended it."""
    status = os.waitpid(pid, 0)[1]
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _start_command(out: Path) -> Launcher:
    return Launcher(_begin([*_RUN, "--devices", "2", "--out", str(out)], out), find_ranks)


def _start_torchrun(out: Path) -> Launcher:
    dealt = ["--standalone", "--nproc-per-node", "2", "--max-restarts", str(_RESTARTS)]
    pid = _begin(["-m", "torch.distributed.run", *dealt, *_RUN, "--out", str(out)], out)
    return Launcher(pid, partial(find_ranks, word="--checkpoint-every"))


def _begin(words: list[str], out: Path) -> int:
    """A process of this Python, which speaks into the run's log; its pid."""
    with log_path(out).open("ab") as log:
        env = os.environ | {"OMP_NUM_THREADS": "1"}
        return subprocess.Popen([sys.executable, *words], stderr=log, stdout=log, env=env).pid


def _fork_launcher(out: Path, *, fsdp: bool = False) -> Launcher:
    pid = os.fork()
    if pid:
        return Launcher(pid, _find_children)
    code = 99
    # What this process does at its end is not the ranks' to do, such as to delete its folders.
    atexit._clear()
    try:
        os.dup2(os.open(log_path(out), os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
        import multiprocessing

        from genodiff.errors import GenodiffError
        from genodiff.runs.resolve import resolve_config
        from genodiff.training.launch import launch_ranks
        from genodiff.training.run import train

        fork = multiprocessing.get_context("fork")
        multiprocessing.get_context = lambda method=None: fork  # type: ignore[assignment,misc]
        logging.getLogger("genodiff").setLevel(logging.INFO)
        config = resolve_config(TINY)
        try:
            launch_ranks(2, partial(train, config, out, argv=["faults"], fsdp=fsdp), "cpu")
            code = 0
        except GenodiffError as error:
            print(f"error: {error}", file=sys.stderr)
            code = error.exit_code
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def _find_children(launcher: int) -> dict[int, int]:
    """The ranks of a forked launcher, in the order in which it forked them."""
    listed = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    return dict(enumerate(sorted(map(int, listed))))
