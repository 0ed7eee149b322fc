"""Labels at each base of a genome, written: `genodiff predict` of a model of `finetune bases`.

An entry of the job is the scores of a few windows. A shard is a .npy file of the entries of a part
of the genome; from all of them `genodiff merge` writes what one run writes.

OUT.gff3    genes        the best path of each contig
OUT.bed     genes, classes   BED12 of genes; stretches of the likeliest class
OUT/        all of them: labels.gff3, labels.bed, and NAME.bw of each class, track, or of the
            coding bases of each strand (coding+.bw: the sum of the three exon states)
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.annotation.base_labels import NONE
from genodiff.annotation.gene_grammar import CodingGene, format_bed12, format_gff3, list_genes
from genodiff.errors import DataError, UsageError
from genodiff.finetuning.base_windows import Scored, Span, join_cores, tile_cores
from genodiff.finetuning.kept_labeller import KeptLabeller, batch, list_spans
from genodiff.finetuning.predict_request import LABELS, PredictRequest
from genodiff.io import atomic
from genodiff.io.faidx import Genome
from genodiff.io.target import check_target, describe_file, is_own_folder
from genodiff.io.value_tracks import SUFFIX, import_bigwig, sort_contigs, write_bigwigs
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
        names = [f"labels{ending}" for ending in TEXT_FORMS[self.model.card.kind]]
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
        return describe(self.model, self.genome, self.spans, asked.folder) | {"bases": self.total}

    def finish(self, told: dict[str, Any]) -> dict[str, Any]:
        asked = self.request
        if asked.part is not None:
            told |= {
                "holds": LABELS, "format": "npy", "shard": list(asked.part), "cut": list(self.cut),
                "request": self.name_request(whole=True),
            }  # fmt: skip
            return super().finish(told)
        return write_labels(asked.out, self.model, self.genome, self._blocks, told)

    def _blocks(self) -> Iterator[Scored]:
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


def deal(cores: Sequence[Span], arrays: Iterable[NDArray[Any]], columns: int) -> Iterator[Scored]:
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

        def blocks() -> Iterator[Scored]:
            arrays = (np.load(one.path, mmap_mode="r") for one in parts)
            yield from deal(cores, arrays, len(model.labels))

        summary = describe(model, genome, spans, request.folder) | describe_merge(parts, out)
        summary["bases"] = sum(one.told["bases"] for one in parts)
        if Path(out).suffix:
            check_target(out, force=force)
        return write_labels(out, model, genome, blocks, summary)


SIDECAR = "labels.json"
TEXT_FORMS = {"genes": (".gff3", ".bed"), "classes": (".bed",), "values": ()}
"""The endings of a folder's files that are not bigWig, by the kind of labels."""
Blocks = Callable[[], Iterable[Scored]]
"""Cores and their scores, in the order of the intervals."""


def check_kind(out: str | Path, kind: str) -> None:
    """Raises `UsageError` for a file that cannot hold labels of a kind, `MachineError`."""
    ending = Path(out).suffix
    if (ending == ".gff3" and kind != "genes") or (ending == ".bed" and kind == "values"):
        what = f"'{Path(out).name}' cannot hold {kind}"
        fix = "give a folder, for bigWig files" if kind == "values" else "give x.bed, or a folder"
        raise UsageError(what, fix=fix)
    if not ending:
        import_bigwig()


def write_text_form(
    path: str | Path, ending: str, model: KeptLabeller, genome: Genome, blocks: Blocks
) -> None:
    """Write one file of genes or classes."""
    if model.card.kind == "genes":
        joined = join_cores(blocks())
        genes = ((one[0], find_genes(model, genome.fetch(*one), one, rows)) for one, rows in joined)
        lines = format_gff3(genes, genome.contigs) if ending == ".gff3" else format_bed12(genes)
    else:
        lines = _list_stretches(model, blocks())
    with atomic.open_atomic(path, "w") as file:
        for line in lines:
            file.write(line)


def write_labels(
    out: str | Path, model: KeptLabeller, genome: Genome, blocks: Blocks, told: dict[str, Any]
) -> dict[str, Any]:
    """Write a file with its sidecar, or a folder that is complete or not there; the sidecar."""
    if ending := Path(out).suffix:
        write_text_form(out, ending, model, genome, blocks)
        told |= {"file": describe_file(out)}
        atomic.write_json(f"{out}.json", told)
        return told
    own = is_own_folder(out, SIDECAR)
    with atomic.atomic_directory(out, aside=not own, replace=own) as folder:
        for ending in TEXT_FORMS[model.card.kind]:
            write_text_form(folder / f"labels{ending}", ending, model, genome, blocks)
        columns, chained = list_values(model), model.network.chain is not None
        with write_bigwigs(folder, columns, genome.contigs) as add:
            for (contig, start, _), scores in join_cores(blocks()) if chained else blocks():
                values = model.read(scores)
                for name, some in columns.items():
                    add(name, contig, start, values[:, some].sum(1))
        files = sorted(one.name for one in folder.iterdir())
        summary = {**told, "files": {name: describe_file(folder / name) for name in files}}
        atomic.write_json(folder / SIDECAR, summary)
    return summary


def find_genes(
    model: KeptLabeller, letters: bytes, span: Span, scores: NDArray[Any]
) -> list[CodingGene]:
    """The genes of an interval and its letters, at their places in the contig."""
    return [
        CodingGene(gene.strand, tuple((a + span[1], b + span[1]) for a, b in gene.parts))
        for gene in list_genes(model.decode(scores, letters))
    ]


def _list_stretches(model: KeptLabeller, blocks: Iterable[Scored]) -> Iterator[str]:
    """Lines of BED: stretches of one class, the likeliest at each base, which is not `none`."""
    names = model.card.names
    for (contig, begin, _), scores in join_cores(blocks):
        best = scores.argmax(1)
        edges = np.flatnonzero(np.diff(best)) + 1
        for first, last in zip([0, *edges.tolist()], [*edges.tolist(), len(best)], strict=True):
            name = names[best[first]]
            if name == NONE:
                continue
            stranded = name[-1] in "+-"
            mean = float(np.exp(scores[first:last, best[first]].astype(np.float64)).mean())
            row = (contig, begin + first, begin + last, name[:-1] if stranded else name,
                   round(1000 * mean), name[-1] if stranded else ".")  # fmt: skip
            yield "\t".join(map(str, row)) + "\n"


def list_values(model: KeptLabeller) -> dict[str, list[int]]:
    """What has a bigWig, and the columns whose sum it is."""
    names = model.card.names
    if model.card.kind == "genes":
        return {
            f"coding{way}": [
                i for i, one in enumerate(names) if one.startswith("exon") and one[-1] == way
            ]
            for way in "+-"
        }
    return {name: [i] for i, name in enumerate(names) if name != NONE}
