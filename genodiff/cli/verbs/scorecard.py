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
    table.add_column("", no_wrap=True)
    for name in sets:
        table.add_column(name, justify="right", no_wrap=True)

    def add(title: str, show: Callable[[dict[str, Any]], str]) -> None:
        table.add_row(title, *(show(part) for part in sets.values()))

    def add_with_error(title: str, pick: Callable[[dict[str, Any]], Any]) -> None:
        """A row whose first cell, that of the samples, has an error: all would be too wide."""
        first, *others = (pick(part) for part in sets.values())
        table.add_row(title, _show(first, error=True), *(_show(one) for one in others))

    for k in sets["samples"]["js"]:
        add_with_error(f"{k}-mers, distance", lambda part, k=k: part["js"][k])  # type: ignore[misc]
    for by in sets["samples"]["auroc"]:
        add_with_error(f"AUROC, {by}", lambda part, by=by: part["auroc"][by])  # type: ignore[misc]
    add("GC", lambda part: f"{part['gc']:.1%}")
    add("GC, sd", lambda part: f"{part['gc_sd']:.1%}")
    add("CpG, o/e", lambda part: f"{part['cpg']:.3f}")
    add("runs of 6 and more", lambda part: f"{part['long_runs']:.2%}")
    add("open frame, codons", lambda part: f"{part['open_frame']['mean']:.1f}")
    if sets["samples"]["match"] is not None:
        add("match, median", lambda part: f"{part['match']['median']:g}")
        add("match, 99 %", lambda part: f"{part['match']['p99']:.0f}")
        add("match, longest", lambda part: f"{part['match']['max']}")
        add("match of 20 bases", lambda part: f"{part['match']['long']:.1%}")
    add("duplicates", lambda part: str(part["duplicates"]))
    return table


def _show(figure: dict[str, Any] | None, *, error: bool = False) -> str:
    if figure is None:
        return ""
    half = figure["se"]
    shown = f"{figure['value']:.3f}"
    return f"{shown} ± {1.96 * half:.3f}" if error and half is not None else shown
