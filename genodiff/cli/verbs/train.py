"""Train a model on a recipe (hg38, sacCer3, toy, ...) or on your own FASTA; run again to resume."""

import json as json_module
import logging
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from genodiff.api.sources import DataSource
from genodiff.api.train import plan_run
from genodiff.cli.common import OUTPUT, Common, Device, Force, Plan, convert_whole_number
from genodiff.cli.settings_flags import MOST_USED, SettingsFlags, collect_settings

_log = logging.getLogger("genodiff")


@Parameter(name="*")
@dataclass(frozen=True)
class TrainCommon(Common):
    """The common flags; the seed is the configuration's unless `--seed` is given."""

    seed: Annotated[
        int | None, Parameter(help="Seed of every random draw [1].", show_default=False)
    ] = None  # type: ignore[assignment]
    device: Annotated[Device, Parameter(group=MOST_USED)] = "auto"

    def prepare(self) -> None:
        """As `Common.prepare`."""
        values = {f: getattr(self, f) for f in Common.__dataclass_fields__} | {
            "seed": 1 if self.seed is None else self.seed
        }
        Common(**values).prepare()


def train(
    source: Annotated[
        str | None,
        Parameter(
            name="RECIPE",
            help="hg38, sacCer3, toy, wikitext2, ..., a recipe's YAML file, or your FASTA or "
            "GenBank file; with --domain text a text.",
        ),
    ] = None,
    /,
    *,
    fasta: Annotated[
        str | None,
        Parameter(
            group=MOST_USED, help="Your FASTA in the recipe's place (or without any recipe)."
        ),
    ] = None,
    bed: Annotated[
        str | None,
        Parameter(
            group=MOST_USED,
            help="Your intervals as BED; column 4 says train, valid or test. The strand column is "
            "not used: a base is in one split, whichever strand is read.",
        ),
    ] = None,
    text: Annotated[
        str | None,
        Parameter(
            help="Your file or folder of text in the recipe's place (or without any recipe)."
        ),
    ] = None,
    genomes: Annotated[
        str | None,
        Parameter(
            help="Many genomes: a list (columns path, name, weight, species, split, sha256), or "
            "the folder or URL that `genodiff data genomes` built."
        ),
    ] = None,
    labels: Annotated[
        str | None,
        Parameter(
            help="Conditional training: CONTIG LABEL, or BED with the label in column 4 (its "
            "strand is not used: a label is of a window), or the word species with --genomes. See "
            "sample --label."
        ),
    ] = None,
    memory: Annotated[
        bool,
        Parameter(
            negative="",
            help="Train beside a memory of the train split: the network learns what it lacks.",
        ),
    ] = False,
    preset: Annotated[
        str | None,
        Parameter(
            group=MOST_USED,
            help="Network: caduceus-ps-470k, dit-470k, ...; `genodiff config presets` lists them.",
        ),
    ] = None,
    config: Annotated[
        Path | None, Parameter(help="YAML file of settings; flags go over it.")
    ] = None,
    out: Annotated[
        Path | None,
        OUTPUT,
        Parameter(group=MOST_USED, help="Run folder (default: runs/RECIPE-PRESET)."),
    ] = None,
    resume: Annotated[
        Path | None, Parameter(help="Go on in this run folder, which must exist.")
    ] = None,
    fresh: Annotated[
        bool,
        Parameter(
            name=["--fresh", "--from-scratch"],
            negative="",
            help="Refuse to go on: the folder must hold no run.",
        ),
    ] = False,
    init: Annotated[
        str | None,
        Parameter(help="Begin from these weights: a run, a checkpoint or a published folder."),
    ] = None,
    domain: Annotated[
        Literal["dna", "text"] | None,
        Parameter(help="What the sequences are (default: the recipe's).", show_default=False),
    ] = None,
    logger: Annotated[
        list[Literal["csv", "tensorboard", "wandb"]] | None,
        Parameter(
            help="Where curves go; repeatable. metrics.csv is always written; W&B stays offline "
            "unless WANDB_MODE=online [csv].",
            negative="",
            consume_multiple=True,
        ),
    ] = None,
    devices: Annotated[
        int,
        Parameter(
            converter=convert_whole_number,
            help="Processes that share each step, each on a GPU of its own or on the CPU.",
        ),
    ] = 1,
    fsdp: Annotated[
        bool,
        Parameter(
            negative="",
            help="Each process keeps a part of every tensor (FSDP2), where one GPU does not hold "
            "the network.",
        ),
    ] = False,
    settings: Annotated[SettingsFlags | None, Parameter(name="*")] = None,  # type: ignore[valid-type]
    plan: Annotated[Plan, Parameter(group=MOST_USED)] = False,
    json: Annotated[
        bool, Parameter(negative="", help="With --plan: one JSON object on stdout.")
    ] = False,
    print_sbatch: Annotated[
        bool,
        Parameter(negative="", help="Print a SLURM job of this command that requeues, and stop."),
    ] = False,
    force: Force = False,
    common: TrainCommon = TrainCommon(),
) -> None:
    """Train, or go on in the run folder."""
    common.prepare()
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
        seed=common.seed,
        force=force,
        **collect_settings(settings),
    )
    if print_sbatch:
        words = [word for word in sys.argv[1:] if word != "--print-sbatch"]
        print(
            planned.write_sbatch(
                words, devices=devices, device=common.device, threads=common.threads
            ),
            end="",
        )
        return
    if plan:
        if json:
            print(json_module.dumps(planned.estimate(device=common.device), indent=2))
        else:
            print("\n".join(planned.describe(device=common.device)))
        return
    done = planned.train(
        device=common.device,
        offline=common.offline,
        logger=logger or ["csv"],
        argv=sys.argv,
        devices=devices,
        fsdp=fsdp,
    )
    if not done.already_done:
        bound = (
            f", validation {done.valid_bits:.4f} bits per {planned.config.unit}"
            if done.valid_bits is not None
            else ""
        )
        where = planned.folder
        _log.info("%s: done at step %d%s; next: genodiff eval %s", where, done.step, bound, where)
