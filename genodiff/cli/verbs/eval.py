"""Bits per base with its confidence interval, beside Markov baselines."""

import json as json_format
import logging
import sys
import time
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from genodiff.cli.common import Common
from genodiff.cli.eval_text import print_suite, score_suite, text_tables
from genodiff.domain import DOMAINS
from genodiff.errors import CheckpointError
from genodiff.runs.checkpoint import Model, load_model
from genodiff.score.eval_options import EvalOptions
from genodiff.score.evaluation import EVAL, plan_evaluation, write_evaluation
from genodiff.train.progress import clock

log = logging.getLogger("genodiff")

_FIRST, _LONGEST, _GROWTH = 2.0, 60.0, 1.5
_MOST_CONTIGS = 12
_NARROWEST = 100
_REGIONS = {
    "unique": "unique",
    "touched": "touched, < 1/4",
    "repeat": "repeat, ≥ 1/4",
    "upper_case": "upper case",
    "soft_masked": "soft-masked",
}
_REGION_TITLE = "regions, by bases in 24-mers that the train split has, and by case"


def eval(
    run: Annotated[Path, Parameter(help="Run folder or checkpoint.")],
    *,
    split: Annotated[
        Literal["test", "valid", "train"], Parameter(help="Which split is scored.")
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
        str | None, Parameter(help="BED file whose 4th column names the splits.")
    ] = None,
    repeats: Annotated[
        int, Parameter(help="Masks for each window: more make the interval narrower.")
    ] = 1,
    max_windows: Annotated[
        int | None, Parameter(help="Score at most this many windows, evenly spread over the split.")
    ] = None,
    max_minutes: Annotated[
        float | None,
        Parameter(help="Score as many windows, evenly spread, as fit into about this time."),
    ] = None,
    soft_masked: Annotated[
        Literal[0, 1], Parameter(help="0: soft-masked bases are seen but not counted.")
    ] = 1,
    baselines: Annotated[
        bool, Parameter(help="Markov lines and repeats, which take a pass over the train split.")
    ] = True,
    mixture: Annotated[
        bool | None,
        Parameter(help="Mixture of context orders 1 to 24 (default: where it takes little time)."),
    ] = None,
    context: Annotated[
        Literal["window", "contig"],
        Parameter(
            help="What a window sees: itself, or all of its contig or interval, streamed in "
            "bounded memory."
        ),
    ] = "window",
    batch_size: Annotated[
        int, Parameter(help="Windows at a time: changes the speed, not the figures.")
    ] = 32,
    domain: Annotated[
        Literal["dna", "text"] | None, Parameter(help="What the run is expected to hold.")
    ] = None,
    json: Annotated[
        bool, Parameter(negative="", help="One JSON object on stdout in place of the table.")
    ] = False,
    plan: Annotated[bool, Parameter(negative="", help="Say what would be done, and stop.")] = False,
    common: Common = Common(),
) -> None:
    """Bits per base with its confidence interval, beside Markov baselines; written to RUN/eval.json
    too.
    """
    device = common.apply()
    model = load_model(run, device=device)
    if domain not in (None, model.alphabet.domain):
        raise CheckpointError(
            f"is a {model.alphabet.domain} model", file=run, fix=f"give a {domain} run"
        )
    options: dict[str, Any] = {
        "fasta": fasta,
        "bed": bed,
        "text": text,
        "repeats": repeats,
        "batch_size": batch_size,
        "seed": common.seed,
        "soft_masked": bool(soft_masked),
        "max_windows": max_windows,
        "max_minutes": max_minutes,
        "baselines": baselines,
        "mixture": mixture,
        "context": context,
        "offline": common.offline,
    }
    if plan:
        options["recipe"] = recipe[0] if recipe else None
        _print_plan(model, EvalOptions(split=split, **options), json)
        return
    with _Progress() as progress:
        results = score_suite(model, split, recipe, progress.show, **options)
    if len(results) > 1:
        print_suite(results, json)
    show = text_tables if model.alphabet.domain == "text" else tables
    for result in results:
        _answer(model, result, [] if json else show(result), silent=len(results) > 1)


def _answer(
    model: Model, result: dict[str, Any], shown: list[Table], *, silent: bool = False
) -> None:
    """The result on stdout, as tables or else as JSON, and in RUN/eval.json; there only where
    `silent`.
    """
    if silent:
        pass
    elif not shown:
        print(json_format.dumps(result, allow_nan=False))
    else:
        console = Console()
        Console(width=max(console.width, _NARROWEST) if not console.is_terminal else None).print(
            *shown
        )
    sys.stdout.flush()
    name = write_evaluation(model.run, result)
    log.info("%s: %s", model.run / EVAL, name)


def tables(result: dict[str, Any]) -> list[Table]:
    """An evaluation as tables to read: the split and its lines, its regions, its contigs."""
    named = Path(result["fasta"]).name if result["fasta"] else result["recipe"]
    head = _table(
        f"{result['split']} of {named}: {_size(result)}",
        "bits per base",
        "95 % interval",
        "perplexity",
    )
    head.add_column("line − model", justify="right", no_wrap=True)
    bits = result["bits_per_base"]
    name = "model =" if result["figure"] == "exact" else "model ≤"
    head.add_row(name, f"{bits:.4f}", _interval(result["ci95_bits"]), f"{2**bits:.4f}", "")
    if result["source_bits"] is not None:
        truth, gap = result["source_bits"], result["model_minus_source_bits"]
        head.add_row(
            "the source",
            f"{truth:.4f}",
            _interval(result["source_ci95_bits"]),
            f"{2**truth:.4f}",
            _gap(gap, -1),
        )
    for k, line in result["markov_bits"].items():
        gap = _gap(result["markov_minus_model_bits"][k])
        head.add_row(f"Markov {k}", f"{line:.4f}", "", f"{2**line:.4f}", gap)
    if result["markov_fitted"] is not None:
        line = result["markov_fitted"]
        name, gap = f"fitted, {line['order']}", _gap(line["minus_model_bits"])
        head.add_row(name, f"{line['bits']:.4f}", "", f"{line['perplexity']:.4f}", gap)
    if result["markov_mixture"] is not None:
        line = result["markov_mixture"]
        head.add_row(
            "mixture, 1 to 24",
            f"{line['bits']:.4f}",
            "",
            f"{line['perplexity']:.4f}",
            _gap(line["minus_model_bits"]),
        )
    head.add_row("uniform", "2.0000", "", "4.0000", f"{2 - bits:+.4f}")
    found = [head]
    for title, parts, labels in (
        (_REGION_TITLE, result["regions"], _REGIONS),
        ("contigs", result["contigs"], {}),
    ):
        if len(parts) > 1:
            found.append(_parts(title, parts, labels))
    return found


def _parts(title: str, parts: dict[str, Any], labels: dict[str, str]) -> Table:
    """The model on each part, beside the Markov line that happens to be the best there."""
    lines = {name: best_line(part) for name, part in parts.items()}
    more = ("best Markov",) if any(lines.values()) else ()
    table = _table(title, "bases", "bits per base", "95 % interval", *more)
    for name, part in list(parts.items())[:_MOST_CONTIGS]:
        line = lines[name]
        beside = (f"{line[1]:.4f} ({line[0]})" if line else "",) if more else ()
        figures = (f"{part['bits_per_base']:.4f}", _interval(part["ci95_bits"]))
        table.add_row(labels.get(name, name), f"{part['tokens']:,}", *figures, *beside)
    if len(parts) > _MOST_CONTIGS:
        table.add_row(f"and {len(parts) - _MOST_CONTIGS} more", *[""] * (len(table.columns) - 1))
    return table


def best_line(part: dict[str, Any]) -> tuple[str, float] | None:
    """Name ("0" .. "8", "fitted", "mixture") and bits of the lowest Markov line on a part; None
    without baselines.
    """
    lines = dict(part["markov_bits"])
    if part["fitted_bits"] is not None:
        lines["fitted"] = part["fitted_bits"]
    if part["mixture_bits"] is not None:
        lines["mixture"] = part["mixture_bits"]
    return min(lines.items(), key=lambda line: line[1]) if lines else None


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _size(result: dict[str, Any]) -> str:
    of = f" of {result['windows_total']:,}" if result["windows"] < result["windows_total"] else ""
    again = f", {result['repeats']} masks each" if result["repeats"] > 1 else ""
    return f"{result['tokens']:,} bases in {result['windows']:,}{of} windows{again}"


def _interval(ends: list[float] | None) -> str:
    return "" if ends is None else f"{ends[0]:.4f} – {ends[1]:.4f}"


def _gap(gap: dict[str, Any], sign: int = 1) -> str:
    reach = "" if gap["ci95"] is None else f" ± {(gap['ci95'][1] - gap['ci95'][0]) / 2:.4f}"
    return f"{sign * gap['bits']:+.4f}{reach}"


def _print_plan(model: Model, options: EvalOptions, json: bool) -> None:
    found = plan_evaluation(model, options)
    if json:
        print(json_format.dumps(found))
        return
    domain = DOMAINS[model.alphabet.domain]
    print(
        f"model    {found['parameters']:,} parameters, checkpoint {model.digest}, "
        f"{model.alphabet.name}"
    )
    print(
        f"windows  {found['windows']:,} of {found['windows_total']:,} of the split "
        f"{options.split}, {options.repeats} masks each"
    )
    print(f"{domain.units + ' ':<8} at most {found['tokens']:,} through the network")
    print(
        f"time     about {format_duration(found['seconds'])}, and a pass over the train split for "
        f"the baselines"
    )
    print(f"files    {model.run / EVAL}")


class _Progress:
    """Windows done and time to go, on stderr: a bar on a terminal, a line every so often elsewhere."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()
        self._wait = _FIRST
        self._bar: Progress | None = None
        console = Console(stderr=True)
        if console.is_terminal and log.isEnabledFor(logging.INFO):
            columns = (
                TextColumn("scoring"),
                BarColumn(),
                TaskProgressColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Progress(*columns, console=console, transient=True)
            self._task = self._bar.add_task("scoring", total=None)

    def __enter__(self) -> "_Progress":
        return self

    def __exit__(self, *fault: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, done: int, total: int) -> None:
        """After a batch."""
        now = time.monotonic()
        if done == 1:
            self._began = now
            if self._bar is not None:
                self._bar.start()
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total)
        elif now - self._last >= self._wait and done > 1:
            self._last, self._wait = now, min(_LONGEST, self._wait * _GROWTH)
            log.info(
                "scored %d of %d batches · %s to go",
                done,
                total,
                format_duration((now - self._began) / (done - 1) * (total - done)),
            )
