"""Training: `genodiff.train`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genodiff.api.sources import OWN, DataSource, locate_genomes, make_absolute, resolve_source
from genodiff.errors import UsageError
from genodiff.jobs.machine import choose_device
from genodiff.kernels.defaults import own_defaults
from genodiff.runs.lock import check_lock_free
from genodiff.runs.resolve import read_config, refuse_other_run, resolve_config
from genodiff.runs.sections import SPECIES
from genodiff.settings import read_yaml
from genodiff.training.devices import check_devices
from genodiff.training.logger_names import check_loggers
from genodiff.training.sbatch import write_sbatch

if TYPE_CHECKING:
    from genodiff.runs.config import RunConfig
    from genodiff.training.run import RunResult
    from genodiff.training.start import WarmStart


@own_defaults()
def train(
    source: str | Path | None = None,
    *,
    fasta: str | Path | None = None,
    bed: str | Path | None = None,
    text: str | Path | None = None,
    genomes: str | Path | None = None,
    labels: str | Path | None = None,
    memory: bool = False,
    preset: str | None = None,
    config: str | Path | None = None,
    out: str | Path | None = None,
    resume: str | Path | None = None,
    fresh: bool = False,
    init: str | Path | None = None,
    domain: str | None = None,
    seed: int | None = None,
    force: bool = False,
    device: str = "auto",
    offline: bool = False,
    logger: Sequence[str] = ("csv",),
    argv: list[str] | None = None,
    devices: int = 1,
    fsdp: bool = False,
    **settings: Any,
) -> RunResult:
    """Train until the run's limit, or go on in its folder; how the run stands then.

    `source` is a recipe ("toy", "hg38"), its YAML file, or your own FASTA, GenBank or EMBL file.
    `settings` are those of `genodiff config schema`, by their place or their own name:
    `train("toy", max_steps=50, lr=1e-3, out="runs/x")`, or by section: `optim={"lr": 1e-3}`.
    `genomes` is a list of many genomes (docs/how-to/many-genomes.md), or the folder or URL of what
    was built of one; `data={"temperature": T}` evens out how often each is drawn.
    `labels` is a table (CONTIG LABEL) or BED file (CONTIG START END LABEL): the network learns the
    law of each class beside that of all, for `genodiff.sample(label=...)`; with `genomes`,
    "species" is the list's column. With `memory` it is trained beside a memory of the train split,
    and learns what that does not know.
    `logger` adds curves for "tensorboard" or "wandb" to `metrics.csv`. With `devices` that many
    processes share each step, each on a GPU of its own or on the CPU; a script that asks for them
    needs `if __name__ == "__main__":`. With `fsdp` each of them keeps a part of every tensor.

    The result has `run` (the folder), `step`, `seconds`, `tokens`, `valid_bits` (bits per base of
    the last validation, or None) and `already_done`. Raises `UsageError`, `DataError`,
    `CheckpointError`, `MachineError`, and `Interrupted` (its state is saved) after a signal.
    """
    planned = plan_run(
        DataSource.of(source, fasta, text, domain, bed, genomes),
        labels=labels,
        memory=memory,
        preset=preset,
        config=config,
        out=out,
        resume=resume,
        fresh=fresh,
        init=init,
        seed=seed,
        force=force,
        **settings,
    )
    return planned.train(
        device=device, offline=offline, logger=logger, argv=argv, devices=devices, fsdp=fsdp
    )


@dataclass(frozen=True)
class PlannedRun:
    """A run whose configuration and folder are known, before anything is computed."""

    config: RunConfig
    folder: Path
    start: WarmStart | None = None
    force: bool = False
    """Files in the folder that genodiff did not write are set aside."""

    @own_defaults()
    def estimate(self, *, device: str = "auto") -> dict[str, Any]:
        """Parameters, tokens, memory, time and files, as `genodiff train --plan --json` prints."""
        device = choose_device(device)
        from genodiff.runs.folder import check_run_folder
        from genodiff.training.estimate import estimate

        self.config.check_together()
        check_run_folder(self.folder, force=self.force)
        return estimate(self.config, self.folder, device)

    @own_defaults()
    def describe(self, *, device: str = "auto") -> list[str]:
        """The estimate as lines of text."""
        found = self.estimate(device=device)
        from genodiff.training.estimate import format_estimate

        return format_estimate(found)

    def write_sbatch(
        self,
        words: Sequence[str],
        *,
        devices: int = 1,
        device: str = "auto",
        threads: int | None = None,
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
            threads=threads or max(1, devices) * 2,
        )

    @own_defaults()
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


def plan_run(
    source: DataSource,
    *,
    labels: str | Path | None = None,
    memory: bool = False,
    preset: str | None = None,
    config: str | Path | None = None,
    out: str | Path | None = None,
    resume: str | Path | None = None,
    fresh: bool = False,
    init: str | Path | None = None,
    seed: int | None = None,
    force: bool = False,
    **settings: Any,
) -> PlannedRun:
    """The run that `train` would train or go on with; options as there.

    Imports torch only where a run or weights are read (`init`, a folder that holds no run). Raises
    `UsageError`, `DataError`, `CheckpointError`.
    """
    if resume is not None and (fresh or out is not None):
        raise UsageError(
            f"--resume and {'--fresh' if fresh else '--out'} exclude each other",
            fix="give one of them",
        )
    given = {} if config is None else read_yaml(config)
    parts = (source.recipe, source.fasta, source.text, source.bed)
    if source.genomes is not None and parts != (None, None, None, None):
        what = "--genomes excludes a recipe, --fasta, --bed and --text"
        raise UsageError(what, fix="give the list alone; it names files and splits")
    if resume is None and source.genomes is None:
        source = resolve_source(source, given)
    files = (source.fasta, source.text, source.genomes)
    own = any(one is not None for one in files) and config is None and resume is None
    named = {
        "recipe": source.recipe or (OWN if own else None),
        "fasta": make_absolute(source.fasta),
        "bed": make_absolute(source.bed),
        "text": make_absolute(source.text),
        "genomes": locate_genomes(source.genomes),
        "domain": source.domain,
        "preset": preset,
        "seed": seed,
    }
    over = settings | {key: value for key, value in named.items() if value is not None}
    words_of = given.get("labels") if isinstance(given, dict) and not given.get("classes") else None
    if SPECIES in (labels, words_of if labels is None else None):
        from genodiff.runs.labels import read_species_settings

        stated = given.get("genomes") if isinstance(given, dict) else None
        over |= read_species_settings(over.get("genomes") or stated)
    elif labels is not None or words_of is not None:
        from genodiff.runs.labels import read_label_settings

        over |= read_label_settings(make_absolute(labels or words_of), given, over)
    if memory:
        over |= {"backbone.recalls": True}
    start = None
    if init is not None:
        start, given, over = _read_init(str(init), resume or out, given, over)
    if resume is not None:
        resume = Path(resume)
        if not (resume / "config.yaml").is_file():
            from genodiff.runs.folder import explain_no_run

            raise explain_no_run(resume)
        resolved = read_config(resume / "config.yaml", over, together=False)
    else:
        if "recipe" not in over and not (isinstance(given, dict) and "recipe" in given):
            fix = (
                "name one, such as `genodiff train hg38`, or give your FASTA: `genodiff train FILE`"
            )
            raise UsageError("no recipe", fix=fix)
        resolved = resolve_config(given, file=config, over=over, together=False)
    folder = Path(resume or out or Path("runs") / _name_run(resolved))
    if fresh and (folder / "config.yaml").exists():
        raise UsageError(
            "holds a run already",
            file=folder,
            fix="leave --fresh out to go on with it, or choose another --out",
        )
    check_lock_free(folder)
    return PlannedRun(resolved, folder, start, force)


def _read_init(
    init: str, folder: str | Path | None, given: Any, over: dict[str, Any]
) -> tuple[WarmStart | None, Any, dict[str, Any]]:
    """The weights to begin from, the settings below the flags, and the flags.

    The weights are None where the run in `folder` remembers them: the file may be gone by then.
    """
    from genodiff.hub.warm_start import find_remembered_config, put_network_below, read_warm_start

    known = find_remembered_config(None if folder is None else Path(folder), init)
    if known is not None:
        return (
            None,
            put_network_below(known.backbone, given),
            {**over, "init": known.init, "init_sha256": known.init_sha256},
        )
    start = read_warm_start(init)
    return (
        start,
        put_network_below(start.settings, given),
        {**over, "init": start.path, "init_sha256": start.digest},
    )


def _name_run(config: RunConfig) -> str:
    """RECIPE-PRESET, the default name of a run's folder."""
    file = config.fasta or config.text or config.genomes
    stem: Any = (
        Path(file).name.split(".")[0]
        if config.recipe == "own" and file
        else Path(config.recipe).stem
    )
    return f"{stem}-{config.preset or config.backbone.kind}"
