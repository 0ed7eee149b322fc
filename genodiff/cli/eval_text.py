"""`genodiff eval` of a run on text: bits per byte and perplexity per token, beside n-grams of the
train split.
"""

import json as json_format
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from genodiff.errors import UsageError
from genodiff.io.progress import format_duration
from genodiff.runs.checkpoint import Model
from genodiff.score.bound import Progress
from genodiff.score.evaluation import evaluate


def score_suite(
    model: Model, split: str, recipes: list[str] | None, progress: Progress, **settings: Any
) -> list[dict[str, Any]]:
    """The evaluation on the run's own text, or on each of `recipes` (NAME or NAME=PATH); see
    `evaluate`.
    """
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


def print_suite(results: list[dict[str, Any]], json: bool) -> None:
    """Several evaluations of one checkpoint on stdout: one table, or one JSON object by recipe."""
    if json:
        print(
            json_format.dumps(
                {"suite": {result["recipe"]: result for result in results}}, allow_nan=False
            )
        )
        return
    table = Table(
        title=f"zero-shot, {results[0]['split']}, {results[0]['tokenizer']}",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    for i, column in enumerate(
        ("", "tokens", "bits/byte", "95 % interval", "perplexity/token", "95 % interval", "packing")
    ):
        table.add_column(column, justify="right" if i else "left", no_wrap=True)
    for result in results:
        sign = "=" if result["figure"] == "exact" else "≤"
        bits, perplexity = f"{sign} {result['bits_per_byte']:.4f}", f"{result['perplexity']:.4g}"
        ends = _ends(result["ci95_bits"], ".4f"), _ends(result["ci95_perplexity"], ".4g")
        table.add_row(
            result["recipe"],
            f"{result['tokens']:,}",
            bits,
            ends[0],
            perplexity,
            ends[1],
            result["packing"],
        )
    Console(width=110).print(table)


def text_tables(result: dict[str, Any]) -> list[Table]:
    """An evaluation of text as a table to read."""
    named = result["recipe"] if result["recipe"] != "own" else Path(result["text"] or "own").name
    of = f" of {result['windows_total']:,}" if result["windows"] < result["windows_total"] else ""
    size = (
        f"{result['tokens']:,} tokens, {result['bytes']:,} bytes in "
        f"{result['windows']:,}{of} {result['packing']} windows"
    )
    title = (
        f"{result['split']} of {named}: {size} "
        f"({result['tokenizer']}{'' if result['lossless'] else ', loses text'})"
    )
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("", no_wrap=True)
    for column in (
        "bits/byte",
        "95 % interval",
        "perplexity/token",
        "95 % interval",
        "line − model, bits",
    ):
        table.add_column(column, justify="right", no_wrap=True)
    sign = "=" if result["figure"] == "exact" else "≤"
    bits, perplexity = f"{result['bits_per_byte']:.4f}", f"{result['perplexity']:,.2f}"
    table.add_row(
        f"model {sign}",
        bits,
        _ends(result["ci95_bits"], ".4f"),
        perplexity,
        _ends(result["ci95_perplexity"], ",.2f"),
        "",
    )
    for k, line in result["markov_bits"].items():
        gap = result["markov_minus_model_bits"][k]
        reach = "" if gap["ci95"] is None else f" ± {(gap['ci95'][1] - gap['ci95'][0]) / 2:.4f}"
        table.add_row(
            f"{int(k) + 1}-gram",
            f"{line:.4f}",
            "",
            f"{result['markov_perplexity'][k]:,.2f}",
            "",
            f"{gap['bits']:+.4f}{reach}",
        )
    uniform = result["uniform_bits"]
    table.add_row(
        "uniform",
        f"{uniform:.4f}",
        "",
        f"{2 ** (uniform * result['bytes'] / result['tokens']):,.2f}",
        "",
        "",
    )
    return [table]


def _ends(pair: list[float] | None, form: str) -> str:
    return "" if pair is None else f"{pair[0]:{form}} – {pair[1]:{form}}"
