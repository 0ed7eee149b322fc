"""Predictions as tables: one model's or the mean of several seeds', a chunk of rows at a time.

name          of the sequence
prediction    the most probable class; all classes from 0.5 (multi-label); the value (regression)
p_CLASS       the probability of each class, in float32; none for regression
spread        of an ensemble: the standard deviation between seeds, of the probability of the
              predicted class (multi-label: the largest of all classes), or of the value
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

if TYPE_CHECKING:
    from genodiff.finetuning.predictor_files import PredictorCard
Floats = NDArray[np.float64]

THRESHOLD = 0.5
"""A yes/no answer is yes from this probability."""

_PREFIX = "p_"


def make_frame(names: list[str], scores: Floats, card: PredictorCard) -> pl.DataFrame:
    """The table of `scores`: (models, n, classes), or (models, n) for regression."""
    mean = scores[0] if len(scores) == 1 else scores.mean(0)
    columns: dict[str, Any] = {"name": names, "prediction": pl.Series(_answers(mean, card))}
    if card.kind != "regression":
        columns |= {
            column: pl.Series(mean[:, i].astype(np.float32))
            for i, column in enumerate(name_columns(card))
        }
    if len(scores) > 1:
        columns["spread"] = pl.Series(_spread(scores, mean, card).astype(np.float32))
    return pl.DataFrame(columns, schema_overrides={"name": pl.String})


def name_columns(card: PredictorCard) -> list[str]:
    """The column of each class's probability."""
    return [f"{_PREFIX}{name}" for name in card.classes]


def _answers(mean: Floats, card: PredictorCard) -> Any:
    if card.kind == "regression":
        return mean.astype(np.float32)
    if card.kind == "multilabel":
        return [
            [name for name, p in zip(card.classes, row, strict=True) if p >= THRESHOLD]
            for row in mean
        ]
    return [card.classes[i] for i in mean.argmax(1)]


def _spread(scores: Floats, mean: Floats, card: PredictorCard) -> Floats:
    found: Floats = scores.std(0, ddof=1)
    if card.kind == "regression":
        return found
    if card.kind == "multilabel":
        return found.max(1)
    return found[np.arange(len(mean)), mean.argmax(1)]


def make_rows(frame: pl.DataFrame, card: PredictorCard) -> Iterator[dict[str, Any]]:
    """The rows of a frame as JSON has them: name, prediction, probabilities, spread."""
    columns = name_columns(card)
    for row in frame.iter_rows(named=True):
        probabilities = {
            name: _short(row[column]) for name, column in zip(card.classes, columns, strict=True)
        }
        answer = row["prediction"]
        found = {
            "name": row["name"],
            "prediction": _short(answer) if card.kind == "regression" else answer,
            "probabilities": probabilities,
        }
        yield found | ({"spread": _short(row["spread"])} if "spread" in row else {})


def _short(value: float) -> float:
    """A float32 with as few decimals as tell it apart."""
    return float(str(np.float32(value)))
