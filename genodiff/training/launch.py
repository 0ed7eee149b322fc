"""Several ranks of one run on this machine: started here, watched, and ended together.

Each rank is a process of Python's `multiprocessing` and finds its place in the variables that
torchrun sets, so `train` is the same under both. A rank that dies is named at once; the others are
ended, and the run goes on from its last checkpoint when the same command is given again.
"""

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Any, NamedTuple

import torch

from genodiff.errors import GenodiffError, Interrupted, MachineError
from genodiff.io.process import end_process, leave_script_out
from genodiff.kernels.dispatch import name_preferred, prefer_provider
from genodiff.registry import load_plugins
from genodiff.training.run import RunResult
from genodiff.training.signals import Signals

_GRACE = 3.0  # seconds that the other ranks have to end by themselves after one that has told why
_MOMENT = 0.5  # the same after one that was killed: without it the others can do nothing more


class _Rank(NamedTuple):
    number: int
    process: Any
    reports: Connection


def launch_ranks(size: int, work: Callable[[], RunResult], device: str) -> RunResult:
    """Let `size` ranks of this machine do the same `work`, a call of `train`; its result.

    They share the threads of this process. Raises what `train` raises, and `MachineError` where
    there are not so many GPUs, or naming a rank that died or does not answer.
    """
    there = torch.cuda.device_count()
    if device.startswith("cuda") and (size > there or ":" in device):
        what = f"--devices {size} with --device {device}: torch sees {there} CUDA devices here"
        raise MachineError(what, fix="give fewer, and --device cuda")
    level = logging.getLogger("genodiff").getEffectiveLevel()
    threads, scan = max(1, torch.get_num_threads() // size), name_preferred()
    context = multiprocessing.get_context("spawn")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = int(one.getsockname()[1])
    ranks = []
    for number in range(size):
        receiver, sender = context.Pipe(duplex=False)
        given = (number, size, port, work, threads, scan, level, sender)
        process = context.Process(target=_be_rank, args=given, daemon=True)
        with leave_script_out():
            process.start()
        sender.close()
        ranks.append(_Rank(number, process, receiver))
    with _Forwarding(ranks) as caught:
        try:
            return _watch(ranks, caught.numbers)
        finally:
            for rank in ranks:
                rank.process.kill()
                rank.process.join()


def _watch(ranks: Sequence[_Rank], caught: Sequence[int]) -> RunResult:
    """The first rank's result, once all ranks have ended well."""
    live, reports = {rank.number: rank for rank in ranks}, dict[int, Any]()
    deadline = None
    died: list[str] = []
    while live:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            died += [f"rank {n} does not answer" for n in live if not died]
            break
        ready = wait([r.process.sentinel for r in live.values()], left)
        for rank in [r for r in live.values() if r.process.sentinel in ready]:
            live.pop(rank.number)
            rank.process.join()
            try:
                report = rank.reports.recv()
            except EOFError:  # it died before it could send one
                report = None
            reports[rank.number] = report
            if report is None:
                died.append(f"rank {rank.number} {_describe_end(rank.process.exitcode)}")
            if not isinstance(report, RunResult):
                end = time.monotonic() + (_MOMENT if report is None else _GRACE)
                deadline = end if deadline is None else min(deadline, end)
    return _judge(reports, died, caught)


def _judge(reports: dict[int, Any], died: Sequence[str], caught: Sequence[int]) -> RunResult:
    faults = [report for report in reports.values() if isinstance(report, GenodiffError)]
    stops = [fault for fault in faults if isinstance(fault, Interrupted)]
    if stops:
        raise stops[0]
    if caught:
        what = f"stopped by {signal.Signals(caught[0]).name} before the ranks could save"
        raise Interrupted(what, caught[0], fix="run the same command again to resume")
    if died:
        what = f"{' and '.join(died[:4])}; the other ranks were ended"
        raise MachineError(what, fix="run the same command again; the last checkpoint is valid")
    if faults:
        raise faults[0]
    result = reports[0]
    assert isinstance(result, RunResult)
    return result


def _describe_end(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended without a report (exit code {code})"


class _Forwarding(Signals):
    """A context in which signals are sent on to all ranks, which save and stop together."""

    def __init__(self, ranks: Sequence[_Rank]) -> None:
        super().__init__()
        self.ranks, self.numbers = ranks, list[int]()

    def _catch(self, number: int, _: FrameType | None) -> None:
        self.numbers.append(number)
        for rank in self.ranks:
            if rank.process.is_alive():
                os.kill(rank.process.pid, number)


def _be_rank(
    number: int,
    size: int,
    port: int,
    work: Callable[[], RunResult],
    threads: int,
    scan: str,
    level: int,
    reports: Connection,
) -> None:
    """One rank's process: train, report, end."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()  # Ctrl-C reaches the launcher alone, which sends it on once
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ |= {
        "RANK": str(number), "LOCAL_RANK": str(number), "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
    }  # fmt: skip
    _speak(number, level)
    load_plugins()
    torch.set_num_threads(threads)
    prefer_provider(scan)
    try:
        report: Any = work()
    except GenodiffError as fault:
        report = fault
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    reports.send(report)
    reports.close()
    end_process(0)


def _speak(number: int, level: int) -> None:
    """The first rank speaks as a run without others does, another only of what went wrong."""
    log = logging.getLogger("genodiff")
    log.setLevel(level if number == 0 else max(level, logging.WARNING))
    handler = logging.StreamHandler()
    name = "genodiff" if number == 0 else f"genodiff: rank {number}"
    handler.setFormatter(logging.Formatter(f"{name}: %(message)s"))
    log.addHandler(handler)
    log.propagate = False


def _end_with_parent() -> None:
    """Where the launcher was killed, ask this rank to save and stop."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
