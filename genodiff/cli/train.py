"""`genodiff train`: a model from a recipe or a FASTA; the same command again goes on."""

import json as jsonlib
import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from genodiff.cli.common import Common
from genodiff.cli.flags import SettingsFlags, chosen
from genodiff.errors import UsageError
from genodiff.settings import read_yaml
from genodiff.train.config import RunConfig, read_config, resolve
from genodiff.train.lock import check_free

_log = logging.getLogger("genodiff")


@Parameter(name="*")
@dataclass(frozen=True)
class TrainCommon(Common):
    """The common flags; without `--seed` the configuration's stands."""

    seed: Annotated[int | None, Parameter(help="Seed of every random draw [1].", show_default=False)] = None  # type: ignore[assignment]

    def apply(self) -> str:
        """As `Common.apply`."""
        values = {f: getattr(self, f) for f in Common.__dataclass_fields__} | {
            "seed": 1 if self.seed is None else self.seed
        }
        return Common(**values).apply()


def train(
    recipe: Annotated[
        str | None, Parameter(help="hg38, mm39, sacCer3, ecoli_k12, toy, or a recipe's YAML file.")
    ] = None,
    /,
    *,
    fasta: Annotated[str | None, Parameter(help="Your FASTA in the recipe's place (or without any recipe).")] = None,
    bed: Annotated[str | None, Parameter(help="Your intervals; column 4 says train, valid or test.")] = None,
    preset: Annotated[
        str | None, Parameter(help="Network: caduceus-ps-tiny, -470k, -1.9m, -7.7m, or caduceus-ph-*.")
    ] = None,
    config: Annotated[Path | None, Parameter(help="YAML file of settings; flags go over it.")] = None,
    out: Annotated[Path | None, Parameter(help="Run folder (default: runs/RECIPE-PRESET).")] = None,
    resume: Annotated[Path | None, Parameter(help="Go on in this run folder, which must exist.")] = None,
    fresh: Annotated[
        bool,
        Parameter(
            name=["--fresh", "--from-scratch"], negative="", help="Refuse to go on: the folder must hold no run."
        ),
    ] = False,
    init: Annotated[str | None, Parameter(help="Begin from the weights of a checkpoint (not in this version).")] = None,
    domain: Annotated[Literal["dna", "text"], Parameter(help="What the sequences are.")] = "dna",
    settings: Annotated[SettingsFlags | None, Parameter(name="*")] = None,  # type: ignore[valid-type]
    plan: Annotated[bool, Parameter(negative="", help="Say what would be done, and stop.")] = False,
    json: Annotated[bool, Parameter(negative="", help="With --plan: one JSON object on stdout.")] = False,
    common: TrainCommon = TrainCommon(),
) -> None:
    """Train a model on a recipe or on your own FASTA; the same command again goes on where it stopped."""
    if resume is not None and (fresh or out is not None):
        raise UsageError(f"--resume and {'--fresh' if fresh else '--out'} exclude each other", fix="give one of them")
    if init is not None:
        raise UsageError("--init is not supported in this version", fix="leave it out to train from random weights")
    if domain == "text":
        raise UsageError("--domain text is not supported in this version", fix="train on DNA, or use a later version")
    over = chosen(settings) | {
        key: value
        for key, value in {
            "recipe": recipe or ("own" if fasta is not None and config is None and resume is None else None),
            "fasta": absolute(fasta),
            "bed": absolute(bed),
            "preset": preset,
            "seed": common.seed,
        }.items()
        if value is not None
    }
    if resume is not None:
        if not (resume / "config.yaml").is_file():
            raise UsageError("is no run folder (no such config.yaml)", file=resume, fix="give an existing run folder")
        resolved = read_config(resume / "config.yaml", over)
    else:
        given = {} if config is None else read_yaml(config)
        if recipe is None and fasta is None and not (isinstance(given, dict) and "recipe" in given):
            raise UsageError("no recipe", fix="name one, such as `genodiff train hg38`, or give --fasta FILE")
        resolved = resolve(given, file=config, over=over)
    folder = resume or out or Path("runs") / run_name(resolved)
    if fresh and (folder / "config.yaml").exists():
        raise UsageError(
            "holds a run already", file=folder, fix="leave --fresh out to go on with it, or choose another --out"
        )
    check_free(folder)
    device = common.apply()
    if plan:
        from genodiff.train.estimate import estimate, lines

        found = estimate(resolved, folder, device)
        print(jsonlib.dumps(found, indent=2) if json else "\n".join(lines(found)))
        return
    from genodiff.train.run import train as run

    done = run(resolved, folder, device=device, offline=common.offline, argv=sys.argv)
    if not done.already_done:
        bound = f", validation {done.valid_bits:.4f} bits per base" if done.valid_bits is not None else ""
        _log.info("%s: done at step %d%s; next: genodiff eval %s", folder, done.step, bound, folder)


def absolute(path: str | None) -> str | None:
    """The path from the root, so that a run folder can be used from anywhere; links stay as they are."""
    return None if path is None else os.path.abspath(path)


def run_name(config: RunConfig) -> str:
    """RECIPE-PRESET, the default name of a run's folder."""
    stem: Any = (
        Path(config.fasta).name.split(".")[0] if config.recipe == "own" and config.fasta else Path(config.recipe).stem
    )
    return f"{stem}-{config.preset or config.backbone.kind}"
