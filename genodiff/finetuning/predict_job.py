"""A fine-tuned model on new sequences, as a frame and as a file: `genodiff predict`.

An entry of the job is the name of a sequence, a line of JSON, and then its scores in float64.
Files are written as they come, in the columns of `fitted_model`: memory holds one chunk of rows.
Several classes of one prediction are joined by ; in .csv and .tsv, and a list in the others.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from genodiff.errors import UsageError
from genodiff.finetuning.fitted_model import (
    CHUNK,
    make_frame,
    make_rows,
    predict_queries,
    read_fitted,
    score_queries,
)
from genodiff.finetuning.predict_request import STDOUT, Format, PredictRequest
from genodiff.finetuning.unit_selection import UnitChoice, find_units
from genodiff.io import atomic
from genodiff.io.input_file import find_share, is_file, name_input
from genodiff.io.tables import write_parquet
from genodiff.jobs import machine
from genodiff.jobs.job import Job, Rows
from genodiff.tasks.metrics import Floats
from genodiff.tasks.unlabelled import Query, read_queries

if TYPE_CHECKING:
    from genodiff.finetuning.predictor_files import PredictorCard


def write_predictions(
    path: str | Path, frames: Iterable[pl.DataFrame], card: PredictorCard, form: Format
) -> int:
    """Write all frames, a file whole or not at all; returns the number of rows."""
    if form == "parquet":
        return write_parquet(Path(path), frames)
    n = 0
    opened: AbstractContextManager[Any] = nullcontext(sys.stdout)
    if str(path) != STDOUT:
        opened = atomic.open_atomic(path, "w")
    with opened as file:
        for frame in frames:
            if form == "jsonl":
                rows = (json.dumps(row, ensure_ascii=False) for row in make_rows(frame, card))
                file.write("".join(f"{row}\n" for row in rows))
            else:
                if card.kind == "multilabel":
                    frame = frame.with_columns(pl.col("prediction").list.join(";"))
                separator = "," if form == "csv" else "\t"
                file.write(frame.write_csv(separator=separator, include_header=n == 0))
            file.flush()
            n += frame.height
    return n


_log = logging.getLogger("genodiff")


class QueryReader:
    """The models of a request, and its sequences, read as these models read them.

    All that can be read twice is read once before, so that a fault comes before hours of work.
    """

    def __init__(self, asked: PredictRequest, device: str) -> None:
        choice = UnitChoice(asked.task, asked.model, asked.method, asked.setting, asked.seed)
        folders = find_units(asked.folder, choice, all_seeds=asked.ensemble)
        if asked.ensemble and len(folders) < 2:
            what, fix = "--ensemble: one seed only is here", "leave it out, or fit more --seeds"
            raise UsageError(what, file=asked.folder, fix=fix)
        self.models = [read_fitted(folder, device=device) for folder in folders]
        self.card = self.models[0].card
        self.source = self.models[0].source(asked.column, asked.fasta, asked.region)
        self.given = asked.sequences
        if isinstance(self.given, Iterator) and not hasattr(self.given, "read"):
            self.given = list(self.given)  # an iterator cannot be read twice
        self.total = self.n_cut = self.n_turned = 0
        if str(self.given) == STDOUT:
            return
        first: Query | None = None
        for query in self:
            self.total += 1
            self.n_turned += query.strand == "-"
            if self.models[0].cuts(query.sequence):
                self.n_cut, first = self.n_cut + 1, first or query
        share = find_share(name_input(self.given)) if isinstance(self.given, str | Path) else 1.0
        seen = self.total, self.n_cut, self.n_turned
        self.total, self.n_cut, self.n_turned = (round(n / share) for n in seen)
        if first is not None:
            longest = f"{self.card.max_length:,}"
            _log.warning(
                "%s of %s sequences are longer than %s bases and are cut to their first %s, as the "
                "fit's own were (the first: %s)",
                f"{self.n_cut:,}", f"{self.total:,}", longest, longest, first.name,
            )  # fmt: skip
        if self.n_turned:
            said = "%s of %s rows are on -, and are read as their reverse complement"
            _log.info(said, f"{self.n_turned:,}", f"{self.total:,}")

    def __iter__(self) -> Iterator[Query]:
        return read_queries(self.given, self.source)


def predict_frame(asked: PredictRequest) -> pl.DataFrame:
    """What `genodiff.predict` gives without an output."""
    reader = QueryReader(asked, machine.choose_device(asked.device))
    return pl.concat(predict_queries(reader.models, reader, batch_size=asked.batch_size))


class PredictJob(Job[PredictRequest]):
    """The file of `genodiff predict`."""

    noun = "sequences"

    def open(self, stack: ExitStack) -> None:
        asked = self.request
        self.reader = QueryReader(asked, self.device)
        self.total = self.reader.total
        given = asked.sequences
        self.keeps = given is None or (is_file(given) and str(given) != STDOUT)

    def plan(self) -> dict[str, Any]:
        reader = self.reader
        some = list(islice(iter(reader) if self.total else (), self.request.batch_size))
        each = machine.time_steps(lambda: sum(1 for _ in self._score(some))) if some else 0.0
        return {
            "sequences": self.total, "cut": reader.n_cut, "on_minus": reader.n_turned,
            "seconds": round(self.total * each, 1), "device": self.device,
        }  # fmt: skip

    def identify(self) -> dict[str, Any]:
        return {"weights": [one.digest for one in self.reader.models]}

    def entries(self, first: int) -> Iterator[bytes]:
        for name, scores in self._score(islice(self.reader, first, None)):
            yield json.dumps(name).encode() + b"\n" + scores.tobytes()

    def write(self, rows: Rows) -> dict[str, Any]:
        asked, reader, card = self.request, self.reader, self.reader.card
        n = write_predictions(asked.out, self._frames(rows()), card, asked.ending)
        unit = card.unit
        return {
            "format": asked.ending, "rows": n, "cut": reader.n_cut, "on_minus": reader.n_turned,
            "max_length": card.max_length, "run": str(asked.folder), "suite": unit.suite,
            "task": unit.task, "model": unit.model, "method": unit.method, "kind": card.kind,
            "classes": list(card.classes),
            "strands": None if card.settings is None else card.settings.rc,
            "units": [
                {"key": one.card.unit.key, "seed": one.card.unit.seed, "weights": one.digest}
                for one in reader.models
            ],
            "sequences": self.name_file("sequences"), "fasta": self.name_file("fasta"),
            "columns": list(asked.column), "regions": list(asked.region) or None,
        }  # fmt: skip

    def _score(self, queries: Iterable[Query]) -> Iterator[tuple[str, Floats]]:
        size = self.request.batch_size
        for names, scores in score_queries(self.reader.models, queries, batch_size=size):
            yield from zip(names, scores.swapaxes(0, 1), strict=True)

    def _frames(self, entries: Iterable[bytes]) -> Iterator[pl.DataFrame]:
        """The table, a chunk of rows at a time."""
        rest, shape = iter(entries), (len(self.reader.models), -1)
        while some := [entry.split(b"\n", 1) for entry in islice(rest, CHUNK)]:
            names = [json.loads(name) for name, _ in some]
            rows = [np.frombuffer(numbers).reshape(shape) for _, numbers in some]
            scores = np.stack(rows, 1)
            one = self.reader.card.kind == "regression"
            yield make_frame(names, scores[..., 0] if one else scores, self.reader.card)
