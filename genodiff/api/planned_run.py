"""A run whose configuration and folder are known, before it is trained."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genodiff.jobs.machine import choose_device, find_wanted_threads
from genodiff.runs.resolve import refuse_other_run
from genodiff.training.devices import check_devices
from genodiff.training.logger_names import check_loggers
from genodiff.training.sbatch import write_sbatch

if TYPE_CHECKING:
    from genodiff.runs.config import RunConfig
    from genodiff.training.run import RunResult
    from genodiff.training.start import WarmStart


@dataclass(frozen=True)
class PlannedRun:
    """A run whose configuration and folder are known, before anything is computed."""

    config: RunConfig
    folder: Path
    start: WarmStart | None = None
    force: bool = False
    """Files in the folder that genodiff did not write are set aside."""

    def estimate(self, *, device: str = "auto") -> dict[str, Any]:
        """Parameters, tokens, memory, time and files, as `genodiff train --plan --json` prints."""
        device = choose_device(device)
        from genodiff.runs.folder import check_run_folder
        from genodiff.training.estimate import estimate

        self.config.check_together()
        check_run_folder(self.folder, force=self.force)
        return estimate(self.config, self.folder, device)

    def write_sbatch(
        self,
        words: Sequence[str],
        *,
        devices: int = 1,
        device: str = "auto",
    ) -> str:
        """A SLURM job for the command line `words`, which saves and queues again at its time's end.

        "auto" and "cuda" ask for a GPU for each of the `devices`.
        """
        check_devices(devices, self.config)
        return write_sbatch(
            words,
            self.config,
            name=f"genodiff-{self.folder.name}",
            devices=devices,
            device=device,
            threads=find_wanted_threads() or max(1, devices) * 2,
        )

    def train(
        self,
        *,
        device: str = "auto",
        offline: bool = False,
        logger: Sequence[str] = ("csv",),
        argv: list[str] | None = None,
        devices: int = 1,
        fsdp: bool = False,
    ) -> RunResult:
        """Train until the run's limit; see `genodiff.train`."""
        check_loggers(logger)
        check_devices(devices, self.config, fsdp=fsdp)
        refuse_other_run(self.folder, self.config)
        device = choose_device(device)
        from genodiff.runs.checkpoint import list_steps
        from genodiff.runs.folder import check_run_folder, set_foreign_files_aside
        from genodiff.training.run import read_world
        from genodiff.training.run import train as run

        self.config.check_together()
        if read_world().rank == 0:  # the others may come when it has begun to write
            check_run_folder(self.folder, force=self.force)
            if self.force:
                set_foreign_files_aside(self.folder)
        if devices != 1:
            return self._launch(devices, device, offline, logger, argv or sys.argv, fsdp)
        start = self.start
        if start is None and self.config.init is not None and not list_steps(self.folder):
            from genodiff.hub.warm_start import read_warm_start

            start = read_warm_start(self.config.init)
        return run(
            self.config,
            self.folder,
            device=device,
            offline=offline,
            argv=argv,
            start=start,
            loggers=logger,
            fsdp=fsdp,
        )

    def _launch(
        self, devices: int, device: str, offline: bool, logger: Sequence[str], argv: list[str],
        fsdp: bool,
    ) -> RunResult:  # fmt: skip
        import torch

        from genodiff.hub.warm_start import read_warm_start
        from genodiff.kernels.dispatch import name_preferred
        from genodiff.runs.checkpoint import list_steps
        from genodiff.training.launch import RankWork, launch_ranks

        init = None if list_steps(self.folder) else self.config.init
        work = RankWork(
            self.config,
            self.folder,
            device,
            offline,
            argv,
            partial(read_warm_start, init) if init is not None else None,
            logger,
            threads=max(1, torch.get_num_threads() // max(1, devices)),
            scan=name_preferred(),
            level=logging.getLogger("genodiff").getEffectiveLevel(),
            fsdp=fsdp,
        )
        return launch_ranks(devices, work)
