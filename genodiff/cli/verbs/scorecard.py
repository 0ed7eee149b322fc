"""Generated DNA beside real DNA: words, motifs, embeddings, a discriminator, copies, diversity.

Every figure of the samples stands beside that of other real sequence (the floor), and of sequence
drawn from Markov models. Real sequence is the held-out split of a run, or a FASTA file. What is off
the floor is said in sentences.
"""

import json as json_module
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from genodiff.api.scorecard import list_rows
from genodiff.api.scorecard import scorecard as measure_scorecard
from genodiff.cli.common import Common, Force, Json, convert_whole_number, stop_on_sigterm


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
        Parameter(help="With --real: FASTA file, or run, that the generator was trained on."),
    ] = None,
    motifs: Annotated[
        Path | None, Parameter(help="MEME, JASPAR or TRANSFAC file of motifs to count.")
    ] = None,
    embed: Annotated[
        Path | None,
        Parameter(help="Run whose embeddings are compared (default: that of --model)."),
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
    most: Annotated[
        int,
        Parameter(converter=convert_whole_number, help="Samples to measure; more are drawn from."),
    ] = 1000,
    html: Annotated[Path | None, Parameter(help="Page to write, with pictures.")] = None,
    json: Json = False,
    force: Force = False,
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
            motifs=motifs,
            embed=embed,
            split=split,
            fasta=fasta,
            cnn=cnn,
            most=most,
            html=html,
            seed=common.seed,
            device=common.device,
            offline=common.offline,
            force=force,
        )
    if json:
        print(json_module.dumps(found, allow_nan=False))
        return
    console = Console()
    console.print(_draw(found))
    for one in found["findings"]:
        console.print(f"{one['figure']}: {one['says']}", markup=False, highlight=False)
    if not found["findings"]:
        console.print("no figure is off its floor")


def _draw(found: dict[str, Any]) -> Table:
    sets = found["sets"]
    title = f"{found['compared']:,} sequences of {found['length']:,} bases each, against as many"
    table = Table(title=f"{title} real ones", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("", no_wrap=True)
    for name in sets:
        table.add_column(name, justify="right", no_wrap=True)
    for row in list_rows(sets):
        table.add_row(row.title, *map(escape, row.cells))
    return table
