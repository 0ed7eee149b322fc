"""Generative perplexity of samples, with entropy and diversity beside it.

The judge is an autoregressive model of yours. A low perplexity alone says little, as text that
repeats itself has it too; so entropy and diversity are always shown.
"""

import json as json_module
import logging
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from genodiff.cli.common import Common
from genodiff.generate.samples_file import read_samples
from genodiff.runs.model import TrainedModel, load_model
from genodiff.scoring.eval_data import open_data
from genodiff.scoring.eval_options import EvalOptions
from genodiff.scoring.generative import check_judge, figures

_log = logging.getLogger("genodiff")
_TOLD = ("sampler", "steps", "temperature", "top_p", "run", "checkpoint")


def judge(
    samples: Annotated[
        str,
        Parameter(
            help="FASTA of DNA, or text with <|endoftext|> lines between samples, as "
            "`sample` writes it."
        ),
    ],
    /,
    *,
    judge: Annotated[
        Path, Parameter(help="Run folder of an autoregressive model (--objective ar).")
    ],
    reference: Annotated[
        bool, Parameter(help="The same figures of as many real windows of the judge's test split.")
    ] = True,
    json: Annotated[
        bool, Parameter(negative="", help="One JSON object on stdout in place of the table.")
    ] = False,
    common: Common = Common(),
) -> None:
    """Print the perplexity of samples under an autoregressive model, entropy and diversity."""
    device = common.apply()
    model = load_model(judge, device=device)
    check_judge(model)
    sequences = read_samples(samples, model)
    found = {"samples": figures(model, sequences)}
    if reference:
        found["real"] = figures(
            model, _read_real(model, [len(ids) for ids in sequences], common.offline)
        )
    told = _read_sidecar(Path(f"{samples}.json"))
    result = {
        "file": samples,
        "judge": model.digest,
        "domain": model.alphabet.domain,
        "sampling": told,
        **found,
    }
    if json:
        print(json_module.dumps(result, allow_nan=False))
        return
    Console().print(_table(found, model))
    if told is None:
        _log.warning(
            "%s.json is not there: how these samples were drawn is not known",
            samples,
        )
    else:
        _log.info(
            "drawn in %s by %s, temperature %s, top-p %s",
            told["precision"],
            told["sampler"],
            told["temperature"],
            told["top_p"],
        )


def _read_real(model: TrainedModel, lengths: list[int], offline: bool) -> list[Any]:
    """About as many tokens of the judge's test split, in windows that are evenly spread.

    None is longer than the longest sample.
    """
    data = open_data(model, EvalOptions(offline=offline))
    size = min(model.config.data.seq_len, max(lengths))
    windows = data.windows.spread(-(-sum(lengths) // size))
    return [
        windows.store.read_ids(a, a + min(n, size))
        for a, n in zip(windows.flat_start.tolist(), windows.length.tolist(), strict=True)
    ]


def _read_sidecar(path: Path) -> dict[str, Any] | None:
    try:
        told = json_module.loads(path.read_text(encoding="utf-8"))
        return {"precision": "float64", **{name: told[name] for name in _TOLD}}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _table(found: dict[str, dict[str, Any]], model: TrainedModel) -> Table:
    table = Table(
        title=f"under {model.run.name} ({model.digest})", title_justify="left", box=SIMPLE_HEAD
    )
    table.add_column("")
    for name in found:
        table.add_column(name, justify="right")

    def row(title: str, show: Any) -> None:
        table.add_row(title, *(show(part) for part in found.values()))

    row("samples, tokens", lambda part: f"{part['samples']:,}, {part['tokens']:,}")
    row("perplexity", lambda part: f"{part['perplexity']:.4g}")
    row(
        "95 % interval",
        lambda part: (
            ""
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
