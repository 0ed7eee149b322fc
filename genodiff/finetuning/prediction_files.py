"""Predictions as files, written as they come: memory holds one chunk of rows.

.csv .tsv    a line for each sequence; several classes of one prediction are joined by ;
.jsonl       an object for each sequence: name, prediction, probabilities
.parquet     the same columns as .csv, with several classes as a list
-            stdout
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import polars as pl

from genodiff.finetuning.prediction_format import STDOUT, Format
from genodiff.finetuning.predictions import make_rows
from genodiff.io import atomic
from genodiff.io.file_kinds import find_plain_path

if TYPE_CHECKING:
    from genodiff.finetuning.predictor_files import PredictorCard


def write_predictions(
    path: str | Path, frames: Iterable[pl.DataFrame], card: PredictorCard, form: Format
) -> int:
    """Write all frames, a file whole or not at all; returns the number of rows."""
    if form == "parquet":
        return _write_parquet(Path(path), frames)
    if str(path) == STDOUT:
        return _write_text(frames, card, form, _print)
    with atomic.open_atomic(path) as file:
        return _write_text(frames, card, form, _writer(file))


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _writer(file: IO[bytes]) -> Callable[[str], None]:
    def write(text: str) -> None:
        file.write(text.encode())

    return write


def _write_text(
    frames: Iterable[pl.DataFrame], card: PredictorCard, form: Format, write: Callable[[str], None]
) -> int:
    n = 0
    for frame in frames:
        if form == "jsonl":
            rows: Iterator[str] = (
                json.dumps(row, ensure_ascii=False) for row in make_rows(frame, card)
            )
            write("".join(f"{row}\n" for row in rows))
        else:
            if card.kind == "multilabel":
                frame = frame.with_columns(pl.col("prediction").list.join(";"))
            separator = "," if form == "csv" else "\t"
            write(frame.write_csv(separator=separator, include_header=n == 0))
        n += frame.height
    return n


def _write_parquet(path: Path, frames: Iterable[pl.DataFrame]) -> int:
    """Parts of bounded size, which polars then joins into one file as a stream."""
    path.parent.mkdir(parents=True, exist_ok=True)
    n = 0
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".genodiff-") as folder:
        plain = find_plain_path(folder)
        for i, frame in enumerate(frames):
            frame.write_parquet(f"{plain}/{i:08d}.parquet")
            n += frame.height
        with atomic.open_atomic(path) as file:
            pl.scan_parquet(sorted(Path(plain).iterdir())).sink_parquet(file)
    return n
