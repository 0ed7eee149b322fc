"""Generative perplexity of samples, with entropy and diversity beside it."""

import json as json_format
import logging
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from genodiff.cli.common import Common
from genodiff.generate.text_output import END
from genodiff.io.fasta import read_fasta
from genodiff.io.text_file import read_text_pieces
from genodiff.runs.model import Model, load_model
from genodiff.runs.tokenizer_files import model_tokenizer
from genodiff.score.eval_data import open_data
from genodiff.score.eval_options import EvalOptions
from genodiff.score.generative import check_judge, figures

log = logging.getLogger("genodiff")
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
    """Perplexity of samples under an autoregressive model of yours, never without their entropy and
    diversity.
    """
    device = common.apply()
    model = load_model(judge, device=device)
    check_judge(model)
    sequences = _read(samples, model)
    found = {"samples": figures(model, sequences)}
    if reference:
        found["real"] = figures(
            model, _real(model, [len(ids) for ids in sequences], common.offline)
        )
    told = _sidecar(Path(f"{samples}.json"))
    result = {
        "file": samples,
        "judge": model.digest,
        "domain": model.alphabet.domain,
        "sampling": told,
        **found,
    }
    if json:
        print(json_format.dumps(result, allow_nan=False))
        return
    Console().print(_table(found, model))
    if told is None:
        log.warning(
            "%s.json is not there: who drew these samples, and in which precision, is not known",
            samples,
        )
    else:
        log.info(
            "drawn in %s by %s, temperature %s, top-p %s",
            told["precision"],
            told["sampler"],
            told["temperature"],
            told["top_p"],
        )


def _read(path: str, model: Model) -> list[Any]:
    if model.alphabet.domain == "dna":
        return [model.alphabet.encode(record.sequence) for record in read_fasta(path)]
    tokenizer, whole = model_tokenizer(model.run, model.alphabet), "".join(read_text_pieces(path))
    return [
        np.asarray(ids, np.int64) for ids in tokenizer.encode(_texts(whole, Path(f"{path}.json")))
    ]


def _texts(whole: str, sidecar: Path) -> list[str]:
    """The samples of a file of text: as its sidecar cuts it, else at end lines (which may stand
    inside a sample, too).
    """
    try:
        records, raw = (
            json_format.loads(sidecar.read_text(encoding="utf-8"))["records"],
            whole.encode(),
        )
        return [raw[record["start"] :][: record["bytes"]].decode() for record in records]
    except (OSError, ValueError, KeyError, TypeError):
        return [text.removesuffix("\n") for text in whole.split(f"\n{END.decode()}\n")]


def _real(model: Model, lengths: list[int], offline: bool) -> list[Any]:
    """About as many tokens of the judge's test split: windows, evenly spread, no longer than the
    longest sample.
    """
    data = open_data(model, EvalOptions(offline=offline))
    size = min(model.config.data.seq_len, max(lengths))
    windows = data.windows.spread(-(-sum(lengths) // size))
    return [
        windows.store.read_ids(a, a + min(n, size))
        for a, n in zip(windows.flat_start.tolist(), windows.length.tolist(), strict=True)
    ]


def _sidecar(path: Path) -> dict[str, Any] | None:
    try:
        told = json_format.loads(path.read_text(encoding="utf-8"))
        return {"precision": "float64", **{name: told[name] for name in _TOLD}}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _table(found: dict[str, dict[str, Any]], model: Model) -> Table:
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
