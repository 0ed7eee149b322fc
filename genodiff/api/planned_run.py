"""A run whose configuration and folder are known: its plan, its SLURM job, its training."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from genodiff.jobs.machine import choose_device, find_wanted_threads
from genodiff.runs.resolve import refuse_other_run
from genodiff.training.devices import check_devices
from genodiff.training.logger_names import check_loggers
from genodiff.training.sbatch import write_sbatch

if TYPE_CHECKING:
    from genodiff.api.train import TrainRequest
    from genodiff.runs.config import RunConfig
    from genodiff.training.run import RunResult
    from genodiff.training.start import WarmStart


class PlannedRun(NamedTuple):
    """A run before anything is computed."""

    config: RunConfig
    folder: Path
    start: WarmStart | None = None


def estimate_run(asked: TrainRequest) -> dict[str, Any]:
    """Parameters, tokens, memory, time and files, as `genodiff train --plan --json` prints."""
    device, run = choose_device(asked.device), asked.planned
    from genodiff.runs.folder import check_run_folder
    from genodiff.training.estimate import estimate

    run.config.check_together()
    check_run_folder(run.folder, force=asked.force)
    return estimate(run.config, run.folder, device)


def write_job(asked: TrainRequest, words: Sequence[str]) -> str:
    """A SLURM job for the command line `words`, which saves and queues again at its time's end.

    The devices "auto" and "cuda" ask for a GPU for each process.
    """
    run, devices = asked.planned, asked.devices
    check_devices(devices, run.config)
    return write_sbatch(
        words, run.config, name=f"genodiff-{run.folder.name}", devices=devices,
        device=asked.device, threads=find_wanted_threads() or max(1, devices) * 2,
    )  # fmt: skip


def train_run(asked: TrainRequest) -> RunResult:
    """Train until the run's limit; see `genodiff.train`."""
    planned = asked.planned
    config, folder, start = planned
    check_loggers(asked.logger)
    check_devices(asked.devices, config, fsdp=asked.fsdp)
    refuse_other_run(folder, config)
    device = choose_device(asked.device)
    from genodiff.runs.checkpoint import list_steps
    from genodiff.runs.folder import check_run_folder, set_foreign_files_aside
    from genodiff.training.run import read_world, train

    config.check_together()
    if read_world().rank == 0:  # the others may come when it has begun to write
        check_run_folder(folder, force=asked.force)
        if asked.force:
            set_foreign_files_aside(folder)
    later = None
    if config.init is not None and not list_steps(folder):
        from genodiff.hub.warm_start import read_warm_start

        later = partial(read_warm_start, config.init)
    if asked.devices != 1:
        return _launch(asked, device, later)
    if start is None and later is not None:
        start = later()
    return train(
        config, folder, device=device, offline=asked.offline, argv=asked.argv, start=start,
        loggers=asked.logger, fsdp=asked.fsdp,
    )  # fmt: skip


def _launch(asked: TrainRequest, device: str, start: partial[WarmStart] | None) -> RunResult:
    import torch

    from genodiff.kernels.dispatch import name_preferred
    from genodiff.training.launch import RankWork, launch_ranks

    work = RankWork(
        asked.planned.config, asked.planned.folder, device, asked.offline, asked.argv or sys.argv,
        start, asked.logger, threads=max(1, torch.get_num_threads() // max(1, asked.devices)),
        scan=name_preferred(), level=logging.getLogger("genodiff").getEffectiveLevel(),
        fsdp=asked.fsdp,
    )  # fmt: skip
    return launch_ranks(asked.devices, work)
