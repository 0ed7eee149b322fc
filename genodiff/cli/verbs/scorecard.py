"""Generated DNA beside real DNA: words, motifs, embeddings, a discriminator, copies, diversity.

Every figure of the samples stands beside that of other real sequence (the floor), and of sequence
drawn from Markov models. Real sequence is the held-out split of a run, or a FASTA file. What is off
the floor is said in sentences. No model judges the samples; how likely they are to one is
`genodiff judge`.

With --designs it is a Pareto table of designs by several methods: the score that guided them, an
independent judge, naturalness, diversity, and copies.
"""

import json as json_module
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from genodiff.api.compare_designs import compare_designs, list_design_cells
from genodiff.api.scorecard import list_rows
from genodiff.api.scorecard import scorecard as measure_scorecard
from genodiff.cli.common import (
    Common,
    Force,
    Json,
    convert_whole_number,
    order_samples,
    stop_on_sigterm,
)
from genodiff.errors import UsageError
from genodiff.io.counts import format_count


def scorecard(
    samples: Annotated[Path | None, Parameter(help="FASTA file of generated DNA.")] = None,
    run: Annotated[
        Path | None,
        Parameter(
            name=["--model", "--checkpoint", "--run"],
            help="Run whose held-out split is the real sequence, and whose train split is searched "
            "for copies; with --designs, the model that was not guided.",
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
    designs: Annotated[
        list[str] | None,
        Parameter(
            negative="", help="NAME=FASTA, designs of a method; give it several times, with --real."
        ),
    ] = None,
    oracle: Annotated[
        str | None,
        Parameter(help="With --designs: what guided them, MODULE:FUNCTION or a fine-tuned unit."),
    ] = None,
    judge: Annotated[
        str | None, Parameter(help="With --designs: an oracle that guided none of them.")
    ] = None,
    oracle_input: Annotated[
        Literal["strings", "ids", "one-hot"] | None,
        Parameter(help="What the functions take [one-hot for a torch module, else strings]."),
    ] = None,
    oracle_label: Annotated[
        str | None, Parameter(help="The class of fine-tuned oracles whose log-odds count.")
    ] = None,
    lower: Annotated[
        bool, Parameter(negative="", help="With --designs: small scores are wanted.")
    ] = False,
    html: Annotated[Path | None, Parameter(help="Page to write, with pictures.")] = None,
    json: Json = False,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Print the figures of samples, of real sequence and of Markov sequence."""
    common.prepare()
    if samples is not None and run is not None:
        samples, run = order_samples(samples, run)
    if designs is not None:
        beyond = {
            "a FASTA file": samples,
            "--motifs": motifs,
            "--embed": embed,
            "--fasta": fasta,
            "--cnn": cnn or None,
        }
        for flag, value in beyond.items():
            if value is not None:
                raise UsageError(f"--designs and {flag} do not go together", fix="give one of them")
        if real is None:
            raise UsageError("--designs needs --real", fix="give natural sequences")
        with stop_on_sigterm():
            found = compare_designs(
                _parse_designs(designs),
                real=real,
                oracle=oracle,
                judge=judge,
                run=run,
                train=train,
                form=oracle_input,
                label=oracle_label,
                lower=lower,
                most=most,
                html=html,
                seed=common.seed,
                device=common.device,
                offline=common.offline,
                force=force,
            )
        _print(found, json, _draw_designs)
        return
    for flag, value in {"--oracle": oracle, "--judge": judge, "--lower": lower or None}.items():
        if value is not None:
            raise UsageError(f"{flag} is for --designs", fix="give --designs NAME=FASTA")
    if samples is None:
        raise UsageError("no samples", fix="give a FASTA file, or --designs NAME=FASTA")
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
    _print(found, json, _draw)


def _parse_designs(words: list[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for word in words:
        name, equals, path = word.partition("=")
        if not equals or not name or not path:
            raise UsageError(f"--designs {word}: expected NAME=FASTA", fix="write smc=smc.fa, say")
        if name in found:
            raise UsageError(f"--designs {name} stands twice", fix="give each method its own name")
        found[name] = Path(path)
    return found


def _print(
    found: dict[str, Any],
    json: bool,
    draw: Callable[[dict[str, Any], int], tuple[list[Table], list[str]]],
) -> None:
    if json:
        print(json_module.dumps(found, allow_nan=False))
        return
    console = Console()
    tables, lines = draw(found, console.width)
    for table in tables:
        console.print(table)
    for line in lines:
        console.print(line, markup=False, highlight=False)


def _draw_designs(found: dict[str, Any], width: int) -> tuple[list[Table], list[str]]:
    """As many tables as the terminal's width asks for: no heading and no figure is cut."""
    drawn = list_design_cells(found)
    columns = list(zip(drawn.columns, *drawn.rows, strict=True))
    sizes = [max(map(len, column)) + 3 for column in columns]
    parts: list[list[int]] = []
    room = 0
    for i in range(1, len(columns)):
        if room < sizes[i]:
            parts.append([0])
            room = width - sizes[0] - 1
        parts[-1].append(i)
        room -= sizes[i]
    tables = []
    for part in parts:
        table = Table(box=SIMPLE_HEAD)
        for i in part:
            table.add_column(columns[i][0], justify="right" if i else "left", no_wrap=True)
        for cells in drawn.rows:
            table.add_row(*(escape(cells[i]) for i in part))
        tables.append(table)
    return tables, drawn.notes


def _draw(found: dict[str, Any], width: int) -> tuple[list[Table], list[str]]:
    sets = found["sets"]
    compared = format_count(found["compared"], "sequence")
    title = f"{compared} of {found['length']:,} bases each, against as many"
    table = Table(title=f"{title} real ones", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("", no_wrap=True)
    for name in sets:
        table.add_column(name, justify="right", no_wrap=True)
    for row in list_rows(sets):
        table.add_row(row.title, *map(escape, row.cells))
    said = [f"{one['figure']}: {one['says']}" for one in found["findings"]]
    return [table], said or ["no figure is off its floor"]
