"""Objectives and networks side by side: equal tokens, one store, one table."""

import json as json_module
import logging
import os
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from genodiff.cli.common import Common, Force
from genodiff.io.progress import ProgressDisplay
from genodiff.io.target import check_target

_log = logging.getLogger("genodiff")


def compare(
    spec: Annotated[
        Path, Parameter(help="YAML file that names the rows; see benchmarks/objectives.")
    ],
    /,
    *,
    fasta: Annotated[str | None, Parameter(help="Your FASTA in the recipe's place.")] = None,
    text: Annotated[
        str | None, Parameter(help="Your file or folder of text in the recipe's place.")
    ] = None,
    tokens: Annotated[
        int | None, Parameter(help="Tokens of each run, in place of the spec's.")
    ] = None,
    seeds: Annotated[list[int] | None, Parameter(help="Seeds, in place of the spec's.")] = None,
    out: Annotated[
        Path | None, Parameter(help="Where runs and tables go (default: runs/SPEC).")
    ] = None,
    json: Annotated[
        bool, Parameter(negative="", help="The rows as one JSON object on stdout.")
    ] = False,
    plan: Annotated[
        bool, Parameter(negative="", help="Say what would be trained, and stop.")
    ] = False,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Train and score the rows of a spec; the same command again goes on where it stopped."""
    device = common.apply()
    from genodiff.studies.compare import plan as runs_of
    from genodiff.studies.compare import read_spec, run, schedules
    from genodiff.studies.compare_page import write_page

    over: dict[str, Any] = {
        name: os.path.abspath(path)
        for name, path in (("fasta", fasta), ("text", text))
        if path is not None
    }
    over |= {} if tokens is None else {"tokens": tokens}
    over |= {} if not seeds else {"seeds": seeds}
    asked = read_spec(spec, over)
    folder = out or Path("runs") / spec.stem
    for name in ("table.md", "compare.html", "results.json"):
        check_target(folder / name, force=force, inputs=(spec, fasta, text))
    if plan:
        _print_plan(runs_of(asked, spec), folder, device, json)
        return
    with ProgressDisplay() as display:
        entries = run(
            asked,
            spec,
            folder,
            device=device,
            offline=common.offline,
            progress=display.show_batches,
        )
    rows = write_page(
        asked, entries, schedules(asked, entries, device=device, offline=common.offline), folder
    )
    if json:
        print(json_module.dumps({"title": asked.title, "rows": rows}, allow_nan=False))
    else:
        print((folder / "table.md").read_text(encoding="utf-8"))
    _log.info("%s, %s", folder / "table.md", folder / "compare.html")


def _print_plan(runs: list[Any], folder: Path, device: str, json: bool) -> None:
    from genodiff.training.estimate import estimate

    found = [
        {"name": row.name, "seed": seed, **estimate(config, folder, device)}
        for row, seed, config in runs
    ]
    seconds = sum(one["seconds"] or 0 for one in found)
    if json:
        print(json_module.dumps({"runs": found, "seconds": seconds}))
        return
    for one in found:
        print(
            f"{one['name']:28s} seed {one['seed']}  {one['parameters']:>12,} parameters  "
            f"{one['steps']:>8,} steps  "
            f"{one['tokens']:>14,} tokens  {(one['seconds'] or 0) / 60:8.1f} min"
        )
    print(
        f"in all {seconds / 3600:.1f} h on {device}, without validation and scoring; into {folder}"
    )
