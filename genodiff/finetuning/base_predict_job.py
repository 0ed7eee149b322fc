"""Labels at each base of a genome, written: `genodiff predict` of a model of `finetune bases`.

An entry of the job is the scores of a few windows. A shard is a .npy file of the entries of a part
of the genome; from all of them `genodiff merge` writes what one run writes.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import DataError, UsageError
from genodiff.finetuning.base_output import (
    check_kind,
    list_names,
    list_values,
    write_folder,
    write_text_form,
)
from genodiff.finetuning.base_windows import Span, tile_cores
from genodiff.finetuning.kept_labeller import KeptLabeller, batch, list_spans
from genodiff.finetuning.predict_request import PredictRequest
from genodiff.finetuning.prediction_format import LABELS
from genodiff.io import atomic
from genodiff.io.faidx import Genome
from genodiff.io.target import check_target, describe_file
from genodiff.io.value_tracks import SUFFIX, sort_contigs
from genodiff.jobs import machine
from genodiff.jobs.job import Job, Rows
from genodiff.jobs.shards import ShardFile, describe_merge


class BasePredictJob(Job[PredictRequest]):
    """The file, the folder or the shard of a model that labels bases."""

    noun = "bases"

    def open(self, stack: ExitStack) -> None:
        asked = self.request
        self.model = KeptLabeller(asked.folder, self.device, asked.relatives)
        if asked.part is None:
            check_kind(asked.out, self.model.card.kind)
        self.genome = stack.enter_context(Genome(asked.genome))
        self.hashes[str(asked.genome)] = self.genome.sha256
        self.model.relate(self.genome)
        self.spans = merge_spans(self.genome.contigs, asked.region)
        whole = list(batch(list(tile_cores(self.spans, self.model.card.core))))
        self.cut = (0, len(whole)) if asked.part is None else asked.part.cut(len(whole))
        self.batches = whole[slice(*self.cut)]
        self.total = sum(end - start for some in self.batches for _, start, end in some)

    def list_files(self) -> list[str]:
        asked = self.request
        if asked.part is not None or Path(asked.out).suffix:
            return super().list_files()
        kind = self.model.card.kind
        names = [f"labels{ending}" for ending in list_names(kind, asked.out)]
        names += [f"{name}{SUFFIX}" for name in list_values(self.model)]
        return [f"{str(asked.out).rstrip('/')}/{name}" for name in names]

    def plan(self) -> dict[str, Any]:
        first = self.batches[0] if self.batches else []

        def step() -> int:
            self.model.score(self.genome, first)
            return sum(end - start for _, start, end in first)

        each = machine.time_steps(step) if first else 0.0
        return {"bases": self.total, "seconds": round(each * self.total, 1), "device": self.device}

    def identify(self) -> dict[str, Any]:
        return {"weights": self.model.card.weights_sha256}

    def entries(self, first: int) -> Iterator[bytes]:
        for some in self.batches[first:]:
            yield np.concatenate(self.model.score(self.genome, some)).tobytes()

    def weigh(self, entry: bytes) -> int:
        return len(entry) // (np.dtype(self.model.dtype).itemsize * len(self.model.labels))

    def write(self, rows: Rows) -> dict[str, Any]:
        asked, self.rows = self.request, rows
        if asked.part is not None:
            with atomic.open_atomic(asked.out, "wb") as file:
                shape = (self.total, len(self.model.labels))
                about = {"descr": np.lib.format.dtype_to_descr(np.dtype(self.model.dtype)),
                         "fortran_order": False, "shape": shape}  # fmt: skip
                np.lib.format.write_array_header_1_0(file, about)
                for entry in rows():
                    file.write(entry)
        elif ending := Path(asked.out).suffix:
            write_text_form(asked.out, ending, self.model, self.genome, self._blocks)
        return describe(self.model, self.genome, self.spans, asked.folder) | {"bases": self.total}

    def finish(self, told: dict[str, Any]) -> dict[str, Any]:
        asked = self.request
        if asked.part is not None:
            told |= {
                "holds": LABELS, "format": "npy", "shard": list(asked.part), "cut": list(self.cut),
                "request": self.name_request(whole=True),
            }  # fmt: skip
        if asked.part is not None or Path(asked.out).suffix:
            return super().finish(told)
        return write_folder(asked.out, self.model, self.genome, self._blocks, told)

    def _blocks(self) -> Iterator[tuple[Span, NDArray[Any]]]:
        arrays = (np.frombuffer(entry, self.model.dtype) for entry in self.rows())
        cores = [span for some in self.batches for span in some]
        yield from deal(cores, arrays, len(self.model.labels))


def describe(
    model: KeptLabeller, genome: Genome, spans: Sequence[Span], folder: Path
) -> dict[str, Any]:
    """What the sidecars of a whole and of a shard say alike."""
    return {
        "run": str(folder), "kind": model.card.kind, "names": list(model.labels),
        "weights": model.card.weights_sha256,
        "fasta": {"path": str(genome.path), "sha256": genome.sha256},
        "intervals": [list(one) for one in spans],
    }  # fmt: skip


def merge_spans(contigs: dict[str, int], region: Sequence[str]) -> list[Span]:
    """What is read, each base once, in the order of a bigWig. Raises `UsageError` for nothing."""
    order = {name: place for place, name in enumerate(sort_contigs(contigs))}
    found: list[Span] = []
    for _, (contig, start, end) in sorted(
        list_spans(contigs, region), key=lambda one: (order[one[1][0]], *one[1][1:])
    ):
        if found and found[-1][0] == contig and start <= found[-1][2]:
            found[-1] = (contig, found[-1][1], max(end, found[-1][2]))
        else:
            found.append((contig, start, end))
    if not found:
        raise UsageError("the genome has no base", fix="give another FASTA file")
    return found


def deal(
    cores: Sequence[Span], arrays: Iterable[NDArray[Any]], columns: int
) -> Iterator[tuple[Span, NDArray[Any]]]:
    """The cores with their scores, of arrays that hold several each."""
    rest = iter(cores)
    for array in arrays:
        rows, at = array.reshape(-1, columns), 0
        while at < len(rows):
            span = next(rest)
            size = span[2] - span[1]
            yield span, rows[at : at + size]
            at += size


def predict_arrays(asked: PredictRequest) -> dict[str, NDArray[np.float32]]:
    """What `genodiff.predict` gives without an output."""
    model = KeptLabeller(asked.folder, machine.choose_device(asked.device), asked.relatives)
    return model.predict(asked.sequences, fasta=asked.fasta, region=asked.region)


def merge_bases(parts: list[ShardFile], out: str, *, force: bool) -> dict[str, Any]:
    """Write what one run writes, from the scores of all shards.

    Raises `DataError` where the genome or the model is not the one that was read, `UsageError`,
    `MachineError`.
    """
    told = parts[0].told
    request = PredictRequest(
        run=told["run"], sequences=Path(told["fasta"]["path"]), out=out, force=force
    )
    request.check()
    model = KeptLabeller(request.folder)
    check_kind(out, model.card.kind)
    if model.card.weights_sha256 != told["weights"]:
        what = "is not the model of the shards"
        raise DataError(what, file=request.folder, fix="merge with the model that was read")
    with Genome(told["fasta"]["path"]) as genome:
        if genome.sha256 != told["fasta"]["sha256"]:
            fix = "merge with the genome that was read"
            raise DataError("is not the genome of the shards", file=genome.path, fix=fix)
        spans = [(str(one[0]), int(one[1]), int(one[2])) for one in told["intervals"]]
        cores = list(tile_cores(spans, model.card.core))

        def blocks() -> Iterator[tuple[Span, NDArray[Any]]]:
            arrays = (np.load(one.path, mmap_mode="r") for one in parts)
            yield from deal(cores, arrays, len(model.labels))

        summary = describe(model, genome, spans, request.folder) | describe_merge(parts, out)
        summary["bases"] = sum(one.told["bases"] for one in parts)
        if not (ending := Path(out).suffix):
            return write_folder(out, model, genome, blocks, summary)
        check_target(out, force=force)
        write_text_form(out, ending, model, genome, blocks)
        summary["file"] = describe_file(out)
        atomic.write_json(f"{out}.json", summary)
        return summary
