"""Train a model on a recipe (hg38, sacCer3, toy, ...) or on your own FASTA; run again to resume."""

import json as json_module
import logging
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from genodiff.cli.common import OUTPUT, Common, Force
from genodiff.cli.settings_flags import SettingsFlags, collect_settings
from genodiff.cli.sources import make_absolute, resolve_source
from genodiff.errors import UsageError
from genodiff.runs.checkpoint import list_steps
from genodiff.runs.config import RunConfig
from genodiff.runs.folder import check_run_folder, explain_no_run, set_foreign_files_aside
from genodiff.runs.lock import check_lock_free
from genodiff.runs.resolve import read_config, resolve_config
from genodiff.settings import read_yaml

_log = logging.getLogger("genodiff")


@Parameter(name="*")
@dataclass(frozen=True)
class TrainCommon(Common):
    """The common flags; the seed is the configuration's unless `--seed` is given."""

    seed: Annotated[
        int | None, Parameter(help="Seed of every random draw [1].", show_default=False)
    ] = None  # type: ignore[assignment]

    def apply(self) -> str:
        """As `Common.apply`."""
        values = {f: getattr(self, f) for f in Common.__dataclass_fields__} | {
            "seed": 1 if self.seed is None else self.seed
        }
        return Common(**values).apply()


def train(
    recipe: Annotated[
        str | None,
        Parameter(
            help="hg38, sacCer3, toy, wikitext2, ... or a recipe's YAML file; with --domain "
            "text a file, too."
        ),
    ] = None,
    /,
    *,
    fasta: Annotated[
        str | None, Parameter(help="Your FASTA in the recipe's place (or without any recipe).")
    ] = None,
    bed: Annotated[
        str | None, Parameter(help="Your intervals; column 4 says train, valid or test.")
    ] = None,
    text: Annotated[
        str | None,
        Parameter(
            help="Your file or folder of text in the recipe's place (or without any recipe)."
        ),
    ] = None,
    preset: Annotated[
        str | None,
        Parameter(
            help="Network: caduceus-ps-470k, dit-470k, ...; `genodiff config presets` lists them."
        ),
    ] = None,
    config: Annotated[
        Path | None, Parameter(help="YAML file of settings; flags go over it.")
    ] = None,
    out: Annotated[
        Path | None, OUTPUT, Parameter(help="Run folder (default: runs/RECIPE-PRESET).")
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
    settings: Annotated[SettingsFlags | None, Parameter(name="*")] = None,  # type: ignore[valid-type]
    plan: Annotated[bool, Parameter(negative="", help="Say what would be done, and stop.")] = False,
    json: Annotated[
        bool, Parameter(negative="", help="With --plan: one JSON object on stdout.")
    ] = False,
    force: Force = False,
    common: TrainCommon = TrainCommon(),
) -> None:
    """Train, or go on in the run folder."""
    if resume is not None and (fresh or out is not None):
        raise UsageError(
            f"--resume and {'--fresh' if fresh else '--out'} exclude each other",
            fix="give one of them",
        )
    given = {} if config is None else read_yaml(config)
    meant: str | None = domain
    if resume is None:
        recipe, text, meant = resolve_source(recipe, fasta, text, domain, given)
    own = (fasta is not None or text is not None) and config is None and resume is None
    over = collect_settings(settings) | {
        key: value
        for key, value in {
            "recipe": recipe or ("own" if own else None),
            "fasta": make_absolute(fasta),
            "bed": make_absolute(bed),
            "text": make_absolute(text),
            "domain": meant,
            "preset": preset,
            "seed": common.seed,
        }.items()
        if value is not None
    }
    start = None
    if init is not None:
        start, given, over = read_init(init, resume or out, given, over)
    if resume is not None:
        if not (resume / "config.yaml").is_file():
            raise explain_no_run(resume)
        resolved = read_config(resume / "config.yaml", over)
    else:
        if (
            recipe is None
            and fasta is None
            and text is None
            and not (isinstance(given, dict) and "recipe" in given)
        ):
            fix = "name one, such as `genodiff train hg38`, or give --fasta FILE or --text FILE"
            raise UsageError("no recipe", fix=fix)
        resolved = resolve_config(given, file=config, over=over)
    folder = resume or out or Path("runs") / name_run(resolved)
    if fresh and (folder / "config.yaml").exists():
        raise UsageError(
            "holds a run already",
            file=folder,
            fix="leave --fresh out to go on with it, or choose another --out",
        )
    check_run_folder(folder, force=force)
    check_lock_free(folder)
    device = common.apply()
    if plan:
        from genodiff.training.estimate import estimate, lines

        found = estimate(resolved, folder, device)
        print(json_module.dumps(found, indent=2) if json else "\n".join(lines(found)))
        return
    from genodiff.training.run import train as run

    if force:
        set_foreign_files_aside(folder)
    if start is None and resolved.init is not None and not list_steps(folder):
        from genodiff.hub.warm_start import read_warm_start

        start = read_warm_start(resolved.init)
    done = run(resolved, folder, device=device, offline=common.offline, argv=sys.argv, start=start)
    if not done.already_done:
        bound = (
            f", validation {done.valid_bits:.4f} bits per {resolved.unit}"
            if done.valid_bits is not None
            else ""
        )
        _log.info("%s: done at step %d%s; next: genodiff eval %s", folder, done.step, bound, folder)


def read_init(
    init: str, folder: Path | None, given: Any, over: dict[str, Any]
) -> tuple[Any, Any, dict[str, Any]]:
    """The weights of `--init`, the settings below the flags, and the flags.

    The weights are None where the run in `folder` remembers them: the file may be gone by then.
    """
    from genodiff.hub.warm_start import find_remembered_config, put_network_below, read_warm_start

    known = find_remembered_config(folder, init)
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


def name_run(config: RunConfig) -> str:
    """RECIPE-PRESET, the default name of a run's folder."""
    file = config.fasta or config.text
    stem: Any = (
        Path(file).name.split(".")[0]
        if config.recipe == "own" and file
        else Path(config.recipe).stem
    )
    return f"{stem}-{config.preset or config.backbone.kind}"
