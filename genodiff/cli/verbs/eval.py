"""Bits per base with its confidence interval, beside Markov baselines."""

import json as json_module
import logging
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from genodiff.api.evaluate import evaluate
from genodiff.cli.common import (
    OUTPUT,
    Common,
    Force,
    Json,
    ModelPath,
    Plan,
    RelativeFiles,
    Strains,
    stop_on_sigterm,
)
from genodiff.cli.evaluation_tables import draw_suite, draw_tables
from genodiff.domain import DOMAINS
from genodiff.errors import Interrupted
from genodiff.io.progress import format_duration

_log = logging.getLogger("genodiff")
_NARROWEST = 110  # columns where stdout is no terminal


def eval(
    run: ModelPath,
    *,
    split: Annotated[
        Literal["test", "valid", "train", "all"],
        Parameter(help="Which split is scored; all: every base of the file."),
    ] = "test",
    fasta: Annotated[
        str | None, Parameter(help="FASTA file in place of the one that the run was trained on.")
    ] = None,
    text: Annotated[
        str | None,
        Parameter(help="Text file or folder in place of the one that the run was trained on."),
    ] = None,
    recipe: Annotated[
        list[str] | None,
        Parameter(
            help="Zero-shot: another text recipe, NAME or NAME=FILE_OR_FOLDER; again for several."
        ),
    ] = None,
    bed: Annotated[
        str | None,
        Parameter(help="BED file whose 4th column names the splits; the strand is not used."),
    ] = None,
    repeats: Annotated[
        int, Parameter(help="Masks for each window: more make the interval narrower.")
    ] = 1,
    t_steps: Annotated[
        list[int] | None,
        Parameter(
            consume_multiple=True,
            help="The bound of sampling in so many steps, e.g. 10 20: masks each window again.",
        ),
    ] = None,
    max_windows: Annotated[
        int | None, Parameter(help="Score at most this many windows, evenly spread over the split.")
    ] = None,
    max_minutes: Annotated[
        float | None,
        Parameter(
            help="Score as many windows, evenly spread, as fit into about this time, which the "
            "baselines share; those that take more than half of it are left out."
        ),
    ] = None,
    soft_masked: Annotated[
        Literal[0, 1], Parameter(help="0: soft-masked bases are seen but not counted.")
    ] = 1,
    baselines: Annotated[
        bool,
        Parameter(help="What counting achieves; counted on the train split, kept in the cache."),
    ] = True,
    mixture: Annotated[
        bool | None,
        Parameter(help="Mixture of context orders 1 to 24 (default: where it takes little time)."),
    ] = None,
    context: Annotated[
        Literal["window", "contig"],
        Parameter(
            help="What a window sees: itself, or also the bases around it, in blocks of 65,536 "
            "bases (or eight windows, if that is more)."
        ),
    ] = "window",
    memory: Annotated[
        Literal["on", "off", "exhaustive"] | None,
        Parameter(
            help="on: the network with a memory of its training genome, beside the network alone "
            "(default: on for a run of train --memory); exhaustive: every place of the genome is "
            "tried, not only those that its index finds."
        ),
    ] = None,
    relatives: RelativeFiles = None,
    strains: Strains = False,
    batch_size: Annotated[
        int, Parameter(help="Windows at a time: changes the speed, not the figures.")
    ] = 32,
    domain: Annotated[
        Literal["dna", "text"] | None, Parameter(help="What the run is expected to hold.")
    ] = None,
    shard: Annotated[
        str | None,
        Parameter(help="i/n: the draws of the i-th of n parts, to --out; `genodiff merge` joins."),
    ] = None,
    out: Annotated[
        str | None,
        OUTPUT,
        Parameter(
            help="File.json to add the evaluation to, in place of RUN/eval.json; with --shard the "
            ".npy file to write."
        ),
    ] = None,
    fresh: Annotated[
        bool, Parameter(negative="", help="With --shard: do not go on after OUT.partial.")
    ] = False,
    json: Json = False,
    plan: Plan = False,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Score the split, print what was found and add it to RUN/eval.json.

    The run may be another user's: then the file is left out, with a line, or goes to --out.
    """
    common.prepare()
    try:
        with stop_on_sigterm():
            found = evaluate(
                run,
                split=split,
                fasta=fasta,
                bed=bed,
                text=text,
                recipe=recipe,
                repeats=repeats,
                t_steps=t_steps,
                max_windows=max_windows,
                max_minutes=max_minutes,
                soft_masked=bool(soft_masked),
                baselines=baselines,
                mixture=mixture,
                context=context,
                memory=memory,
                relatives=relatives or (),
                strains=strains,
                batch_size=batch_size,
                seed=common.seed,
                domain=domain,
                device=common.device,
                offline=common.offline,
                shard=shard,
                out=out,
                plan=plan,
                fresh=fresh,
                force=force,
            )
    except Interrupted as stop:
        if shard is not None:
            raise
        what = f"{stop.what}; eval.json keeps finished evaluations only"
        fix = "run it again, or give --max-minutes for fewer windows"
        raise Interrupted(what, stop.signum, fix=fix) from None
    if json:
        print(json_module.dumps(found, allow_nan=False))
    elif plan:
        _print_plan(found)
    elif shard is not None:
        _log.info("%s: draws of %s windows", out, f"{found['windows']:,}")
    elif "suite" in found:
        _print([draw_suite(list(found["suite"].values()))])
    else:
        _print(draw_tables(found.get("domain", "dna"), found))


def _print(tables: list[Table]) -> None:
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, _NARROWEST)
    console.print(*tables)


def _print_plan(found: dict[str, Any]) -> None:
    domain = DOMAINS[found["domain"]]
    print(
        f"model    {found['parameters']:,} parameters, checkpoint {found['checkpoint']}, "
        f"{found['alphabet']}"
    )
    print(
        f"windows  {found['windows']:,} of {found['windows_total']:,} of the split "
        f"{found['split']}, {found['repeats']} masks each"
    )
    print(f"{domain.units + ' ':<8} at most {found['tokens']:,} through the network")
    lines = found["seconds_of_baselines"]
    print(
        f"time     about {format_duration(found['seconds'])}"
        + ("" if lines is None else f", and {format_duration(lines)} to count the baselines")
    )
    if found["memory"] is not None:
        kept = found["memory"]
        print(
            f"memory   {kept['bases']:,} bases of the split {kept['split']}, {kept['folder']}; the "
            "time is with it"
        )
    print(f"files    {', '.join(found['files'])}")
