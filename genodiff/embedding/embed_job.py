"""Embeddings of DNA windows, in memory and as a file: `genodiff embed`.

An entry of the job is a line of JSON, the window's row in the output, followed by its numbers.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain, islice
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from genodiff.embedding.embed import Array, Reading, Window, cut_windows, embed, make_reading
from genodiff.embedding.embedding_files import Kept, write_kept
from genodiff.embedding.request import EmbedFields, EmbedRequest, HeldEmbeddingRequest
from genodiff.errors import UsageError, format_count
from genodiff.io import atomic
from genodiff.io.faidx import Genome
from genodiff.io.input_file import find_share, is_file, name_input
from genodiff.io.target import describe_file
from genodiff.jobs import machine
from genodiff.jobs.job import Job, Rows
from genodiff.models.opening import ModelHolder, open_language, refuse_fitted
from genodiff.runs.related_model import refit_model
from genodiff.runs.relatives_plan import describe_waiting
from genodiff.runs.trained_model import TrainedModel, name_relatives


class EmbedJob(Job[EmbedRequest]):
    """The file of `genodiff embed`."""

    noun = "windows"

    def open(self, stack: ExitStack) -> None:
        asked = self.request
        self.is_stored = _is_stored(asked)
        if self.is_stored:  # check regions and features before a model is opened
            next(_cut(asked), None)
        self.model = open_language(
            asked.run, self.device, asked.relatives, strains=asked.strains,
            fasta=asked.sequences if _reads_genome(asked) else None, plan=asked.plan,
        )  # fmt: skip
        self.how = _read_as(asked, self.model)
        network = self.model.backbone
        self.shape = self.how.shape(network.d_out, network.paired)
        self.cut = None if asked.part is None else self._cut_shard()
        self.total = 0 if self.cut is None else self.cut[1] - self.cut[0]

    def plan(self) -> dict[str, Any]:
        rest = self._windows()
        sample = list(_take_sample(rest, self.request.batch_size))
        n = bases = 0
        for window in chain(sample, rest):
            n, bases = n + 1, bases + len(window.letters)
        if is_file(self.request.sequences):
            share = find_share(name_input(self.request.sequences))
            n, bases = round(n / share), round(bases / share)
        rows = bases if self.how.pool == "none" else n

        def step() -> int:
            return sum(len(window.letters) for window, _ in self._read(sample))

        each = machine.time_steps(step) if sample else 0.0  # seconds of a base
        return {
            "windows": n, "bases": bases, "shape": [rows, *self.shape],
            "bytes": 4 * rows * prod(self.shape), "seconds": round(bases * each, 1),
            "device": self.device, **describe_waiting(self.model.relatives),
        }  # fmt: skip

    def identify(self) -> dict[str, Any]:
        return {"checkpoint": self.model.digest}

    def entries(self, first: int) -> Iterator[bytes]:
        for window, row in self._read(islice(self._windows(), first, None)):
            yield json.dumps(Kept.of(window)).encode() + b"\n" + row.tobytes()

    def write(self, rows: Rows) -> dict[str, Any]:
        asked, how, out = self.request, self.how, Path(self.request.out)
        written = write_kept(out, (self._parse(entry) for entry in rows()), how, self.shape)
        return {
            "format": asked.ending[1:], "windows": written.windows, "bases": written.bases,
            "shape": list(written.shape), "axes": how.axes(), "layers": list(how.layers),
            "pool": how.pool, "strand": how.strand, "run": str(asked.run),
            "checkpoint": self.model.digest, "step": self.model.step,
            "fasta": self.name_file("sequences"), "bed": self.name_file("bed"),
            **name_relatives(self.model),
            "shard": None if asked.part is None else list(asked.part),
            "cut": self.cut and list(self.cut), "request": self.name_request(whole=True),
        }  # fmt: skip

    def finish(self, told: dict[str, Any]) -> dict[str, Any]:
        told |= {"file": describe_file(self.request.out)}
        atomic.write_json(self.request.sidecar_file, told)
        return told

    def _windows(self) -> Iterator[Window]:
        windows = _cut(self.request)
        return windows if self.cut is None else islice(windows, *self.cut)

    def _cut_shard(self) -> tuple[int, int]:
        """Return the start and end of the shard's windows. Raises `UsageError` if it is empty."""
        part = self.request.part
        assert part is not None
        if not self.is_stored:
            raise UsageError("--shard needs a file, not a stream", fix="give the file itself")
        n = sum(1 for _ in _cut(self.request))
        first, last = part.cut(n)
        if first == last:
            what = f"--shard {part.number}/{part.of} has none of {format_count(n, 'window')}"
            raise UsageError(what, fix="give fewer shards")
        return first, last

    def _read(self, windows: Iterable[Window]) -> Iterator[tuple[Window, Array]]:
        size = self.request.batch_size
        return embed(self.model.backbone, self.model.alphabet, windows, self.how, batch_size=size)

    def _parse(self, entry: bytes) -> tuple[Kept, Array]:
        head, _, numbers = entry.partition(b"\n")
        kept = Kept(*json.loads(head))
        bases = (kept.bases,) if self.how.pool == "none" else ()
        return kept, np.frombuffer(numbers, np.float32).reshape(*bases, *self.shape)


def embed_sequences(asked: HeldEmbeddingRequest, holder: ModelHolder) -> Any:
    """Return the answer of `genodiff.Model.embed`: (n, D), or a list of arrays if unpooled."""
    model = refuse_fitted(holder.inner)
    if _reads_genome(asked):
        with Genome(asked.sequences) as genome:
            model = refit_model(model, genome)
    how = _read_as(asked, model)
    rows = embed(model.backbone, model.alphabet, _cut(asked), how, batch_size=asked.batch_size)
    arrays = [array for _, array in rows]
    return arrays if asked.pool == "none" else np.stack(arrays)


def _is_stored(asked: EmbedFields) -> bool:
    return is_file(asked.sequences) and str(asked.sequences) != "-"


def _reads_genome(asked: EmbedFields) -> bool:
    return _is_stored(asked) and (asked.bed is not None or bool(asked.region))


def _read_as(asked: EmbedFields, model: TrainedModel) -> Reading:
    return make_reading(model.backbone, model.alphabet, asked.layers, asked.pool, asked.strand)


def _cut(asked: EmbedFields) -> Iterator[Window]:
    return cut_windows(
        asked.sequences, bed=asked.bed, regions=asked.region, features=asked.features,
        window=asked.window, stride=asked.stride,
    )  # fmt: skip


def _take_sample(windows: Iterator[Window], most: int) -> Iterator[Window]:
    """Yield the first windows, at most `most`, up to `PROBE` bases: the sample to be timed."""
    bases = 0
    for window in islice(windows, most):
        yield window
        bases += len(window.letters)
        if bases >= machine.PROBE:
            return
