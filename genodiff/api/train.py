"""Training: `genodiff.train`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from annotated_types import Ge

from genodiff.api.config import ConfigFile
from genodiff.api.sources import OWN, DataSource, locate_genomes, make_absolute, resolve_source
from genodiff.errors import UsageError
from genodiff.jobs.machine import choose_device, find_wanted_threads
from genodiff.jobs.options import OUT, Force, Offline
from genodiff.jobs.request import Option, Request
from genodiff.jobs.verbs import verb
from genodiff.runs.lock import check_lock_free
from genodiff.runs.resolve import read_config, refuse_other_run, resolve_config
from genodiff.runs.sections import SPECIES
from genodiff.settings import read_yaml
from genodiff.training.devices import check_devices, check_loggers
from genodiff.training.sbatch import write_sbatch

if TYPE_CHECKING:
    from genodiff.runs.config import RunConfig
    from genodiff.training.run import RunResult
    from genodiff.training.start import WarmStart


class PlannedRun(NamedTuple):
    """A run before anything is computed."""

    config: RunConfig
    folder: Path
    start: WarmStart | None = None


@verb(
    "train",
    help="Train a model on a recipe (hg38, sacCer3, toy, ...) or on your own FASTA; run again to "
    "resume.",
)
@dataclass(frozen=True, kw_only=True)
class TrainRequest(Request["RunResult"]):
    """Train a network up to the run's limit, or resume training in its folder.

    `source` is a recipe ("toy", "hg38"), its YAML file, or your own FASTA, GenBank or EMBL file.
    `settings` are those of `genodiff config schema`, by position or name: `train("toy",
    max_steps=50, lr=1e-3, out="runs/x")`, or by section: `optim={"lr": 1e-3}`. `genomes` is a list
    of many genomes (docs/how-to/many-genomes.md), or the folder or URL of a built one;
    `data={"temperature": T}` evens out how often each is drawn. `labels` is a table (CONTIG LABEL)
    or BED file (CONTIG START END LABEL): the network learns the distribution of each class and of
    the whole data, for `genodiff.sample(label=...)`; with `genomes`, "species" is the list's
    column. `teacher` is related genomes (a FASTA file, folder or list) or a folder of
    `genodiff tracks`, whose probabilities the network learns at the bases that it sees. With
    `memory` it is trained together with retrieval from the train split.
    `logger` adds curves for "tensorboard" or "wandb" to `metrics.csv`. With `devices` that many
    processes share each step, each on a GPU of its own or on the CPU; a script that uses them needs
    `if __name__ == "__main__":`. With `fsdp` each of them holds a shard of every tensor.

    The result has `run` (the folder), `step`, `seconds`, `tokens`, `valid_bits` (bits per base of
    the last validation, or None) and `already_done`. Raises `UsageError`, `DataError`,
    `CheckpointError`, `MachineError`, and `Interrupted` (its state is saved) after a signal.
    """

    json_help: ClassVar[str] = "With --plan: one JSON object on stdout."
    json_indent: ClassVar[int | None] = 2
    catches_stop: ClassVar[bool] = False

    source: Annotated[
        str | Path | None,
        Option(
            "hg38, sacCer3, toy, wikitext2, ..., a recipe's YAML file, or your FASTA or "
            "GenBank file; with --domain text a text file.",
            ("RECIPE",),
            is_word=True,
        ),
    ] = field(default=None, kw_only=False)
    fasta: Annotated[
        str | Path | None,
        Option("Your FASTA file instead of the recipe's (or without any recipe).", is_first=True),
    ] = None
    bed: Annotated[
        str | Path | None,
        Option(
            "Your splits as BED: column 4 is train, valid or test. The strand column is not "
            "used: a base is in one split, whichever strand is read.",
            is_first=True,
        ),
    ] = None
    text: Annotated[
        str | Path | None,
        Option("Your file or folder of text instead of the recipe's (or without any recipe)."),
    ] = None
    genomes: Annotated[
        str | Path | None,
        Option(
            "Many genomes: a list (columns path, name, weight, species, split, sha256), or the "
            "folder or URL that `genodiff data genomes` built."
        ),
    ] = None
    labels: Annotated[
        str | Path | None,
        Option(
            "Conditional training: CONTIG LABEL, or BED with the label in column 4 (its strand"
            " is not used: a window has one label), or the word species with --genomes. See "
            "sample --label."
        ),
    ] = None
    teacher: Annotated[
        str | Path | None,
        Option(
            "Related genomes (FASTA file, folder or list), or a folder of `genodiff tracks`: at "
            "visible bases the network learns their probabilities (for score --method wildtype)."
        ),
    ] = None
    memory: Annotated[bool, Option("Train together with retrieval from the train split.")] = False
    preset: Annotated[
        str | None,
        Option(
            "Network preset: caduceus-ps-470k, dit-470k, ...; see `genodiff config presets`.",
            is_first=True,
        ),
    ] = None
    config: ConfigFile = None
    out: Annotated[
        Path | str | None, Option("Run folder (default: runs/RECIPE-PRESET).", OUT, is_first=True)
    ] = None
    resume: Annotated[Path | str | None, Option("Resume in this run folder, which must exist.")] = (
        None
    )
    fresh: Annotated[
        bool,
        Option(
            "Refuse to resume: the folder must not contain a run.", ("--fresh", "--from-scratch")
        ),
    ] = False
    init: Annotated[
        str | Path | None,
        Option("Start from these weights: a run, a checkpoint or a published folder."),
    ] = None
    domain: Annotated[
        Literal["dna", "text"] | None, Option("Domain of the sequences (default: the recipe's).")
    ] = None
    seed: Annotated[int | None, Ge(0), Option("Random seed [1].", on_line=False)] = None
    device: Annotated[str, Option("Device.", on_line=False, is_first=True)] = "auto"
    offline: Offline = False
    logger: Annotated[
        Sequence[Literal["csv", "tensorboard", "wandb"]],
        Option(
            "Loggers for curves; repeatable. metrics.csv is always written; W&B is offline "
            "unless WANDB_MODE=online [csv]."
        ),
    ] = ("csv",)
    argv: Annotated[
        list[str] | None, Option("Command recorded in the run folder.", on_line=False)
    ] = None
    devices: Annotated[
        int, Option("Processes that share each step, each on a GPU of its own or on the CPU.")
    ] = 1
    fsdp: Annotated[
        bool,
        Option(
            "Each process holds a shard of every tensor (FSDP2), for networks too large for "
            "one GPU."
        ),
    ] = False
    settings: Annotated[
        Mapping[str, Any], Option("Settings of the run, by name.", is_settings=True)
    ] = field(default_factory=dict)
    plan: Annotated[bool, Option("Print the plan without running.", is_first=True)] = False
    print_sbatch: Annotated[
        bool,
        Option(
            "Print a Slurm job script of this command that requeues, and exit.", is_general=True
        ),
    ] = False
    force: Force = False

    @cached_property
    def planned(self) -> PlannedRun:
        """The run that is trained or gone on with.

        Imports torch only where a run or weights are read (`init`, a folder that holds no run).
        Raises `UsageError`, `DataError`, `CheckpointError`.
        """
        source = DataSource.of(
            self.source, self.fasta, self.text, self.domain, self.bed, self.genomes
        )
        if self.resume is not None and (self.fresh or self.out is not None):
            what = f"--resume and {'--fresh' if self.fresh else '--out'} exclude each other"
            raise UsageError(what, fix="give one of them")
        given = {} if self.config is None else read_yaml(self.config)
        parts = (source.recipe, source.fasta, source.text, source.bed)
        if source.genomes is not None and parts != (None, None, None, None):
            what = "--genomes excludes a recipe, --fasta, --bed and --text"
            raise UsageError(what, fix="give the list alone; it names files and splits")
        if self.resume is None and source.genomes is None:
            source = resolve_source(source, given)
        files = (source.fasta, source.text, source.genomes)
        own = any(one is not None for one in files) and self.config is None and self.resume is None
        named = {
            "recipe": source.recipe or (OWN if own else None),
            "fasta": make_absolute(source.fasta),
            "bed": make_absolute(source.bed),
            "text": make_absolute(source.text),
            "genomes": locate_genomes(source.genomes),
            "domain": source.domain,
            "teacher": make_absolute(self.teacher),
            "preset": self.preset,
            "seed": self.seed,
        }
        over = {**self.settings, **{key: x for key, x in named.items() if x is not None}}
        stated = given if isinstance(given, dict) else {}
        words_of = None if stated.get("classes") else stated.get("labels")
        if SPECIES in (self.labels, words_of if self.labels is None else None):
            from genodiff.runs.labels import read_species_settings

            over |= read_species_settings(over.get("genomes") or stated.get("genomes"))
        elif self.labels is not None or words_of is not None:
            from genodiff.runs.labels import read_label_settings

            over |= read_label_settings(make_absolute(self.labels or words_of), given, over)
        if self.memory:
            over |= {"backbone.recalls": True}
        start = None
        if self.init is not None:
            start, given, over = _read_init(str(self.init), self.resume or self.out, given, over)
        if self.resume is not None:
            resume = Path(self.resume)
            if not (resume / "config.yaml").is_file():
                from genodiff.runs.folder import explain_no_run

                raise explain_no_run(resume)
            resolved = read_config(resume / "config.yaml", over, together=False)
        else:
            if "recipe" not in over and not (isinstance(given, dict) and "recipe" in given):
                fix = "name one, such as `genodiff train hg38`, or give your FASTA: "
                fix += "`genodiff train FILE`"
                raise UsageError("no recipe", fix=fix)
            resolved = resolve_config(given, file=self.config, over=over, together=False)
        if resolved.teacher is not None:
            from genodiff.runs.related_teacher import check_teacher

            check_teacher(resolved.teacher)
        folder = Path(self.resume or self.out or Path("runs") / _name_run(resolved))
        if self.fresh and (folder / "config.yaml").exists():
            fix = "leave --fresh out to resume it, or choose another --out"
            raise UsageError("already contains a run", file=folder, fix=fix)
        check_lock_free(folder)
        return PlannedRun(resolved, folder, start)

    def answer(self, *given: Any) -> Any:
        """How the run stands; with `plan` a mapping: parameters, tokens, memory, time and files."""
        if self.print_sbatch:
            run, devices = self.planned, self.devices
            check_devices(devices, run.config)
            words = [word for word in sys.argv[1:] if word != "--print-sbatch"]
            return write_sbatch(
                words, run.config, name=f"genodiff-{run.folder.name}", devices=devices,
                device=self.device, threads=find_wanted_threads() or max(1, devices) * 2,
            )  # fmt: skip
        if not self.plan:
            return _train(self, self.planned)
        device, run = choose_device(self.device), self.planned
        from genodiff.runs.folder import check_run_folder
        from genodiff.training.estimate import estimate

        run.config.check_together()
        check_run_folder(run.folder, force=self.force)
        return estimate(run.config, run.folder, device)

    def list_rows(self, answer: Any) -> list[Any]:
        return [answer] if self.plan else []

    def show(self, answer: Any) -> None:
        if self.print_sbatch:
            print(answer, end="")
        elif self.plan:
            from genodiff.training.estimate import format_estimate

            print("\n".join(format_estimate(answer)))

    def conclude(self, answer: Any) -> str:
        if self.plan or self.print_sbatch or answer.already_done:
            return ""
        bits, unit, where = answer.valid_bits, self.planned.config.unit, self.planned.folder
        bound = "" if bits is None else f", validation {bits:.4f} bits per {unit}"
        return f"{where}: done at step {answer.step}{bound}; next: genodiff eval {where}"


def _train(asked: TrainRequest, planned: PlannedRun) -> RunResult:
    """Train until the run's limit."""
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
        from genodiff.hub.adopt import read_warm_start

        later = partial(read_warm_start, config.init)
    given = partial(
        train, config, folder, device=device, offline=asked.offline, argv=asked.argv or sys.argv,
        loggers=asked.logger, fsdp=asked.fsdp,
    )  # fmt: skip
    if asked.devices == 1:
        return given(start=start or later)
    from genodiff.training.launch import launch_ranks

    return launch_ranks(asked.devices, partial(given, start=later), device)


def _read_init(
    init: str, folder: str | Path | None, given: Any, over: dict[str, Any]
) -> tuple[WarmStart | None, Any, dict[str, Any]]:
    """The weights to begin from, the settings below the flags, and the flags.

    The weights are None where the run in `folder` remembers them: the file may be gone by then.
    """
    from genodiff.hub.adopt import find_remembered_config, put_network_below, read_warm_start

    known = find_remembered_config(None if folder is None else Path(folder), init)
    if known is not None:
        over = {**over, "init": known.init, "init_sha256": known.init_sha256}
        return None, put_network_below(known.backbone, given), over
    start = read_warm_start(init)
    over = {**over, "init": start.path, "init_sha256": start.digest}
    return start, put_network_below(start.settings, given), over


def _name_run(config: RunConfig) -> str:
    """RECIPE-PRESET, the default name of a run's folder."""
    file, stem = config.fasta or config.text or config.genomes, Path(config.recipe).stem
    if config.recipe == OWN and file:
        stem = Path(file).name.split(".")[0]
    return f"{stem}-{config.preset or config.backbone.kind}"
