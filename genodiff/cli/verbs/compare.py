"""Runs side by side on the same bases: finished runs, or rows that a specification trains."""

import json as json_module
import logging
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from genodiff.api.compare import compare as compare_runs
from genodiff.cli.common import (
    OUTPUT,
    Common,
    Force,
    Json,
    Margin,
    Plan,
    convert_whole_number,
    stop_on_sigterm,
)

_log = logging.getLogger("genodiff")


def compare(
    *runs: Annotated[
        Path,
        Parameter(
            help="Two or more run folders; or one YAML file that names rows to train, see "
            "benchmarks/objectives."
        ),
    ],
    fasta: Annotated[
        str | None, Parameter(help="FASTA in place of the first run's, or of the recipe's.")
    ] = None,
    bed: Annotated[
        str | None,
        Parameter(help="BED file whose 4th column names the splits; the strand is not used."),
    ] = None,
    text: Annotated[
        str | None,
        Parameter(help="File or folder of text in place of the first run's, or of the recipe's."),
    ] = None,
    split: Annotated[
        Literal["test", "valid", "train", "all"],
        Parameter(help="Which split of the first run's data finished runs are scored on."),
    ] = "test",
    max_windows: Annotated[
        int | None,
        Parameter(converter=convert_whole_number, help="At most so many windows, evenly spread."),
    ] = None,
    repeats: Annotated[
        int, Parameter(converter=convert_whole_number, help="Masks for each window.")
    ] = 1,
    against: Annotated[
        str | None, Parameter(help="Run that the others are set against (default: the first).")
    ] = None,
    margin: Margin = None,
    tokens: Annotated[
        int | None, Parameter(help="Tokens of each run, in place of the spec's.")
    ] = None,
    seeds: Annotated[list[int] | None, Parameter(help="Seeds, in place of the spec's.")] = None,
    out: Annotated[
        Path | None,
        OUTPUT,
        Parameter(help="Where tables go (default: runs/SPEC, or runs/compare-RUN-RUN)."),
    ] = None,
    json: Json = False,
    plan: Plan = False,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Score runs in pairs, print the table; the same command again goes on where it stopped."""
    common.prepare()
    with stop_on_sigterm():
        found = compare_runs(
            runs,
            fasta=fasta,
            bed=bed,
            text=text,
            split=split,
            max_windows=max_windows,
            repeats=repeats,
            against=against,
            margin=margin,
            tokens=tokens,
            seeds=seeds,
            out=out,
            seed=common.seed,
            device=common.device,
            offline=common.offline,
            plan=plan,
            force=force,
        )
    folder = Path(found["folder"])
    if json:
        print(json_module.dumps(found, allow_nan=False))
    elif plan:
        _print_plan(found)
    else:
        print((folder / "table.md").read_text(encoding="utf-8").partition("\n<!--")[0])
    if not plan:
        _log.info("%s, %s", folder / "table.md", folder / "compare.html")


def _print_plan(found: dict[str, Any]) -> None:
    for one in found["runs"]:
        steps = f"{one['steps']:>8,} steps  {one['tokens']:>14,} tokens" if "steps" in one else ""
        seed = f"seed {one['seed']}" if "seed" in one else ""
        print(
            f"{one['name']:28s} {seed}  {one['parameters']:>12,} parameters  {steps}  "
            f"{(one['seconds'] or 0) / 60:8.1f} min"
        )
    hours = sum(one["seconds"] or 0 for one in found["runs"]) / 3600
    if "device" in found:
        rest = "without validation and scoring"
        print(f"in all {hours:.1f} h on {found['device']}, {rest}; into {found['folder']}")
    else:
        size = f"{found['tokens']:,} tokens in {found['windows']:,} windows"
        print(f"in all {hours:.1f} h for {size}; into {found['folder']}")
