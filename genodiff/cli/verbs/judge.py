"""Generative perplexity of samples, with entropy and diversity beside it.

The judge is a model of yours: autoregressive, whose figure is exact, or masked, whose figure is an
upper bound. A low perplexity alone says little, as text that repeats itself has it too; so entropy
and diversity are always shown. `judge` asks how likely samples are to a model; `scorecard` asks no
model, and sets the statistics of generated DNA beside those of real DNA.
"""

import logging
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from genodiff.api.judge import judge as judge_samples
from genodiff.cli.common import order_samples
from genodiff.cli.request_flags import make_verb
from genodiff.statistics.reasons import TOO_FEW

_log = logging.getLogger("genodiff")


def _show(asked: Any, result: dict[str, Any]) -> None:
    Console().print(_draw(result))
    told = result["sampling"]
    if told is None:
        file = asked.samples
        _log.warning("%s.json is not there: how these samples were drawn is not known", file)
    else:
        _log.info(
            "drawn in %s by %s, temperature %s, top-p %s",
            told["precision"],
            told["sampler"],
            told["temperature"],
            told["top_p"],
        )


def _draw(result: dict[str, Any]) -> Table:
    found = {name: result[name] for name in ("samples", "real") if name in result}
    table = Table(
        title=f"under {result['run']} ({result['judge']})", title_justify="left", box=SIMPLE_HEAD
    )
    table.add_column("")
    for name in found:
        table.add_column(name, justify="right")

    def row(title: str, show: Any) -> None:
        table.add_row(title, *(show(part) for part in found.values()))

    row("samples, tokens", lambda part: f"{part['samples']:,}, {part['tokens']:,}")
    at_most = "" if result["figure"] == "exact" else ", at most"
    row(f"perplexity{at_most}", lambda part: f"{part['perplexity']:.4g}")
    row(
        "95 % interval",
        lambda part: (
            TOO_FEW
            if part["ci95_perplexity"] is None
            else " – ".join(f"{e:.4g}" for e in part["ci95_perplexity"])
        ),
    )
    row("entropy, nats", lambda part: f"{part['entropy_nats']:.3f}")
    for n in next(iter(found.values()))["distinct"]:
        row(
            f"distinct {n}-grams",
            lambda part, n=n: "" if part["distinct"][n] is None else f"{part['distinct'][n]:.3f}",
        )
    row("duplicates", lambda part: str(part["duplicates"]))
    return table


judge = make_verb(judge_samples, arrange=order_samples, show=_show)
