"""Units side by side, in processes of one machine, or one by one in this process; their progress.

Each process has one unit at a time, on the cores or on a GPU.

What a unit computes does not depend on where or beside what it runs; with `jobs` processes the
threads are shared out evenly. A signal lets every unit save and stop. A worker whose parent is gone
stops at its next step.
"""

import logging
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any, NamedTuple

import torch

from genodiff.errors import GenodiffError, Interrupted, MachineError
from genodiff.finetuning.fit_loop import Tick
from genodiff.finetuning.scored_unit import Keep, fit_unit, remove_test, run_unit
from genodiff.finetuning.unit import Unit
from genodiff.io.process import leave_script_out
from genodiff.io.progress import ProgressDisplay, format_duration
from genodiff.tasks.data_request import DataRequest, load_cached
from genodiff.training.signals import Signals, ignore_signals

_log = logging.getLogger("genodiff")
_PAUSE = 0.25

Report = Callable[[Unit, Tick], None]


class UnitOutcome(NamedTuple):
    """The outcome of a unit: its row, or its validation value alone, or what went wrong."""

    unit: Unit
    row: dict[str, Any] | None = None
    valid: float | None = None
    seconds: float = 0.0
    fault: GenodiffError | None = None


class Workers(NamedTuple):
    """Where units run."""

    request: DataRequest
    out: Path
    device: str
    jobs: int
    final: bool = True
    keep: Keep = "new"


class SweepProgress:
    """Shows how many units are done, where the running ones are, and the time to go."""

    def __init__(self, total: int, cost: dict[str, float], done: set[str]) -> None:
        """`cost` weighs the units, by key; `done` are those that need not run."""
        self._total, self._cost, self._done = total, cost, set(done)
        self._share: dict[str, float] = {}
        self._began = time.monotonic()
        self._before = sum(cost.get(key, 0.0) for key in done)
        self._display = ProgressDisplay()

    def tick(self, unit: Unit, tick: Tick) -> None:
        """After a step of a unit."""
        new = unit.key not in self._share
        self._share[unit.key] = tick.step / max(1, tick.steps)
        # What was done in an earlier session did not take time in this one.
        if new and tick.step > 1:
            self._before += self._share[unit.key] * self._cost.get(unit.key, 0.0)
        valid = "" if tick.valid is None else f", validation {tick.valid:.3f}"
        self._show(f"{unit.title}: epoch {tick.epoch + 1}/{tick.epochs}{valid}")

    def done(self, unit: Unit, row: dict[str, Any] | None) -> None:
        """After a unit."""
        self._share.pop(unit.key, None)
        self._done.add(unit.key)
        if row is not None and row["value"] is not None:
            value = f"{row['metric']} {row['value']:.4f} on {row['n_test']} test examples"
            _log.info("%s: %s (%s)", unit.title, value, self._left()[0])
        self._show(unit.title)

    def _left(self) -> tuple[str, float]:
        """What is done and how long the rest takes, in words, and the share that is done."""
        done = sum(self._cost.get(key, 0.0) for key in self._done)
        done += sum(part * self._cost.get(key, 0.0) for key, part in self._share.items())
        whole = sum(self._cost.values()) or 1.0
        text, now = f"{len(self._done)}/{self._total} units", done - self._before
        if now > 0:
            left = (time.monotonic() - self._began) * (whole - done) / now
            text += f", {format_duration(left)} to go"
        return text, min(1.0, done / whole)

    def _show(self, what: str) -> None:
        text, share = self._left()
        self._display.show(f"{text} · {what}", share, 1.0)

    def close(self) -> None:
        """Take the bar away."""
        self._display.close()


def run_units(
    units: Sequence[Unit], place: Workers, report: Report | None = None
) -> Iterator[UnitOutcome]:
    """Each unit's outcome, as it comes.

    Raises `Interrupted` after a signal, with every unit's state saved.
    """
    with Signals() as signals:
        if place.jobs > 1 and len(units) > 1:
            yield from _side_by_side(units, place, report, signals)
            return
        for unit in units:

            def watch(tick: Tick, unit: Unit = unit) -> None:
                if report is not None:
                    report(unit, tick)
                _stop_for(signals)

            _stop_for(signals)
            yield _outcome(unit, place, place.device, watch)
        _stop_for(signals)


def _stop_for(signals: Signals) -> None:
    if signals.caught is not None:
        what = f"{signals.caught.name}: stopped; finished work is saved"
        raise Interrupted(what, signals.caught, fix="run the same command again to resume")


def _outcome(unit: Unit, place: Workers, device: str, watch: Callable[[Tick], None]) -> UnitOutcome:
    data = load_cached(place.request.to_json(), unit.task)
    try:
        if place.final:
            row = run_unit(unit, data, place.out, device=device, keep=place.keep, watch=watch)
            return UnitOutcome(unit, row)
        found = fit_unit(unit, remove_test(data), place.out, device=device, watch=watch).found
        return UnitOutcome(unit, None, found["valid"], found["seconds"])
    except Interrupted:
        raise
    except GenodiffError as fault:
        return UnitOutcome(unit, fault=fault)


def _side_by_side(
    units: Sequence[Unit], place: Workers, report: Report | None, signals: Signals
) -> Iterator[UnitOutcome]:
    context = multiprocessing.get_context("spawn")
    ticks, stop, index = context.Queue(), context.Event(), context.Value("i", 0)
    gpus = torch.cuda.device_count() if place.device.startswith("cuda") else 0
    threads = max(1, torch.get_num_threads() // place.jobs)
    arguments = (ticks, stop, index, gpus, threads, os.getpid(), _log.level)
    by_key = {unit.key: unit for unit in units}
    pool = ProcessPoolExecutor(
        min(place.jobs, len(units)), mp_context=context, initializer=_begin, initargs=arguments
    )
    pending: set[Future[UnitOutcome | None]] = set()
    try:
        with leave_script_out():
            pending = {pool.submit(_work, unit, place) for unit in units}
        while pending:
            done, pending = wait(pending, _PAUSE, FIRST_COMPLETED)
            with suppress(Empty):
                while True:
                    key, tick = ticks.get_nowait()
                    if report is not None:
                        report(by_key[key], tick)
            for future in done:
                outcome = future.result()
                if outcome is not None:
                    yield outcome
            if signals.caught is not None and not stop.is_set():
                stop.set()
                for future in pending:
                    future.cancel()
                pending = {future for future in pending if not future.cancelled()}
        _stop_for(signals)
    except BrokenProcessPool:
        what = "a worker process died (killed, or out of memory); finished work is saved"
        raise MachineError(what, fix="give the same command, with fewer --jobs") from None
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
        ticks.close()


_worker: dict[str, Any] = {}


def _begin(
    ticks: Any, stop: Any, index: Any, gpus: int, threads: int, parent: int, level: int
) -> None:
    ignore_signals()
    torch.set_num_threads(threads)
    logging.getLogger("genodiff").setLevel(level)
    with index.get_lock():
        mine = index.value
        index.value += 1
    device = f"cuda:{mine % gpus}" if gpus else "cpu"
    _worker.update(ticks=ticks, stop=stop, parent=parent, device=device, last=0.0)


def _work(unit: Unit, place: Workers) -> UnitOutcome | None:
    def watch(tick: Tick) -> None:
        if os.getppid() != _worker["parent"]:
            os._exit(1)
        if _worker["stop"].is_set():
            raise Interrupted("stopped", 15)
        if time.monotonic() - _worker["last"] > _PAUSE:
            _worker["last"] = time.monotonic()
            _worker["ticks"].put((unit.key, tick))

    if _worker["stop"].is_set():
        return None
    try:
        return _outcome(unit, place, _worker["device"], watch)
    except Interrupted:  # it could not be pickled, and the parent knows
        return None
