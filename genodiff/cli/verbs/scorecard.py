"""Generated DNA beside real DNA: k-mers, composition, a discriminator, and memorisation.

Every figure of the samples stands beside that of other real sequence (the floor), and of sequence
drawn from Markov models. Real sequence is the held-out split of a run, or a FASTA file. Nothing is
written.
"""

import json as json_module
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from genodiff.api.scorecard import scorecard as measure_scorecard
from genodiff.cli.common import Common, Json, stop_on_sigterm


def scorecard(
    samples: Annotated[Path, Parameter(help="FASTA file of generated DNA.")],
    run: Annotated[
        Path | None,
        Parameter(
            name=["--model", "--checkpoint", "--run"],
            help="Run whose held-out split is the real sequence, and whose train split is searched "
            "for copies.",
        ),
    ] = None,
    *,
    real: Annotated[
        Path | None, Parameter(help="FASTA file of real sequence, in place of a run's.")
    ] = None,
    train: Annotated[
        Path | None,
        Parameter(help="With --real: FASTA file that the generator was trained on."),
    ] = None,
    split: Annotated[
        Literal["test", "valid"], Parameter(help="Split of the run's data that is held out.")
    ] = "test",
    fasta: Annotated[
        str | None, Parameter(help="The run's FASTA file, where it has moved.")
    ] = None,
    cnn: Annotated[
        bool, Parameter(negative="", help="A convolutional discriminator too (minutes).")
    ] = False,
    json: Json = False,
    common: Common = Common(),
) -> None:
    """Print the figures of samples, of real sequence and of Markov sequence."""
    common.prepare()
    with stop_on_sigterm():
        found = measure_scorecard(
            samples,
            run=run,
            real=real,
            train=train,
            split=split,
            fasta=fasta,
            cnn=cnn,
            seed=common.seed,
            offline=common.offline,
        )
    if json:
        print(json_module.dumps(found, allow_nan=False))
        return
    Console().print(_draw(found))


def _draw(found: dict[str, Any]) -> Table:
    sets = found["sets"]
    title = f"{found['compared']:,} sequences of {found['length']:,} bases each, against as many"
    table = Table(title=f"{title} real ones", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("")
    for name in sets:
        table.add_column("other real" if name == "real" else name, justify="right")

    def add(title: str, show: Callable[[dict[str, Any]], str]) -> None:
        table.add_row(title, *(show(part) for part in sets.values()))

    for k in sets["samples"]["js"]:
        add(f"distance of {k}-mers", lambda part, k=k: _with_error(part["js"][k]))  # type: ignore[misc]
    for by in sets["samples"]["auroc"]:
        add(f"AUROC, {by}", lambda part, by=by: _with_error(part["auroc"][by], 3))  # type: ignore[misc]
    add("GC", lambda part: f"{part['gc']:.1%}")
    add("GC, sd over sequences", lambda part: f"{part['gc_sd']:.1%}")
    add("CpG observed / expected", lambda part: f"{part['cpg']:.3f}")
    add("bases in runs of 6 and more", lambda part: f"{part['long_runs']:.2%}")
    add("longest open frame, codons", lambda part: f"{part['open_frame']['mean']:.1f}")
    if sets["samples"]["match"] is not None:
        add("longest match in train, median", lambda part: f"{part['match']['median']:g}")
        add("the same, 99th percentile", lambda part: f"{part['match']['p99']:.0f}")
        add("the same, longest", lambda part: f"{part['match']['max']}")
        add("share with 20 bases or more", lambda part: f"{part['match']['long']:.1%}")
    add("duplicates", lambda part: str(part["duplicates"]))
    return table


def _with_error(figure: dict[str, Any] | None, digits: int = 4) -> str:
    if figure is None:
        return ""
    se = figure["se"]
    shown = f"{figure['value']:.{digits}f}"
    return shown if se is None else f"{shown} ± {1.96 * se:.{digits}f}"
