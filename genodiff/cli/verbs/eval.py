"""Bits per base with its confidence interval, beside Markov baselines."""

import json as json_module
import logging
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from genodiff.cli.common import Common, Force
from genodiff.cli.evaluation_tables import draw_suite, draw_tables
from genodiff.domain import DOMAINS
from genodiff.errors import CheckpointError, UsageError
from genodiff.io.progress import ProgressDisplay, format_duration
from genodiff.io.target import check_target, read_json_object
from genodiff.runs.model import TrainedModel, load_model
from genodiff.scoring.bound import Progress
from genodiff.scoring.eval_options import EvalOptions
from genodiff.scoring.evaluation import evaluate, plan_evaluation
from genodiff.scoring.evaluation_file import EVAL, write_evaluation

_log = logging.getLogger("genodiff")

_NARROWEST = 110  # columns where stdout is no terminal


def eval(
    run: Annotated[Path, Parameter(help="Run folder or checkpoint.")],
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
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Score the split, print what was found and write it to RUN/eval.json."""
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
    # What else stands in a JSON object there is kept.
    check_target(model.run / EVAL, force=force, known=lambda path: bool(read_json_object(path)))
    with ProgressDisplay() as display:
        results = _score(model, split, recipe, display.show_batches, **options)
    if len(results) == 1:
        _print(results[0], draw_tables(model.alphabet.domain, results[0]), json)
    else:
        by_recipe = {result["recipe"]: result for result in results}
        _print({"suite": by_recipe}, [draw_suite(results)], json)
    sys.stdout.flush()
    for result in results:
        name = write_evaluation(model.run, result)
        _log.info("%s: %s", model.run / EVAL, name)


def _print(result: dict[str, Any], tables: list[Table], json: bool) -> None:
    if json:
        print(json_module.dumps(result, allow_nan=False))
        return
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, _NARROWEST)
    console.print(*tables)


def _score(
    model: TrainedModel, split: str, recipes: list[str] | None, progress: Progress, **settings: Any
) -> list[dict[str, Any]]:
    """The evaluation on the run's own data, or on each of `recipes` (NAME or NAME=PATH)."""
    if not recipes:
        return [evaluate(model, split, progress=progress, **settings)]
    named = [recipe.partition("=") for recipe in recipes]
    if settings.get("text") is not None:
        if len(named) > 1 or named[0][2]:
            raise UsageError(
                "--text stands for one recipe's file, and more is given",
                fix="write --recipe NAME=FILE for each",
            )
        return [evaluate(model, split, recipe=recipes[0], progress=progress, **settings)]
    return [
        evaluate(
            model, split, progress=progress, **settings | {"recipe": name, "text": path or None}
        )
        for name, _, path in named
    ]


def _print_plan(model: TrainedModel, options: EvalOptions, json: bool) -> None:
    found = plan_evaluation(model, options)
    if json:
        print(json_module.dumps(found))
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
