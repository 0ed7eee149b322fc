"""What a model says of each base, as files: GFF3 and BED of genes or classes, bigWig of the rest.

OUT.gff3    genes        the best path of each contig
OUT.bed     genes, classes   BED12 of genes; stretches of the likeliest class
OUT/        all of them: labels.gff3, labels.bed, and NAME.bw of each class, track, or of the
            coding bases of each strand (coding+.bw: the sum of the three exon states)
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.annotation.base_labels import NONE
from genodiff.annotation.gene_files import format_bed12, format_gff3
from genodiff.annotation.gene_grammar import CodingGene, list_genes
from genodiff.errors import UsageError
from genodiff.finetuning.base_windows import Span
from genodiff.finetuning.kept_labeller import KeptLabeller
from genodiff.io import atomic
from genodiff.io.faidx import Genome
from genodiff.io.target import describe_file, is_own_folder
from genodiff.io.value_tracks import import_bigwig, write_bigwigs

SIDECAR = "labels.json"
Blocks = Callable[[], Iterable[tuple[Span, NDArray[Any]]]]
"""Cores and their scores, in the order of the intervals."""


def check_kind(out: str | Path, kind: str) -> None:
    """Raises `UsageError` for a file that cannot hold labels of a kind, `MachineError`."""
    ending = Path(out).suffix
    if (ending == ".gff3" and kind != "genes") or (ending == ".bed" and kind == "values"):
        what = f"'{Path(out).name}' cannot hold {kind}"
        raise UsageError(what, fix="give a folder, for bigWig files" if kind == "values" else
                         "give x.bed, or a folder")  # fmt: skip
    if not ending:
        import_bigwig()


def list_names(kind: str, out: str | Path) -> list[str]:
    """The files of one output that are not bigWig, by their endings."""
    if Path(out).suffix:
        return [Path(out).suffix]
    return {"genes": [".gff3", ".bed"], "classes": [".bed"], "values": []}[kind]


def write_text_form(
    path: str | Path, ending: str, model: KeptLabeller, genome: Genome, blocks: Blocks
) -> None:
    """Write one file of genes or classes."""
    if model.card.kind == "genes":
        joined = join_blocks(blocks())
        genes = ((one[0], find_genes(model, genome.fetch(*one), one, rows)) for one, rows in joined)
        lines = format_gff3(genes, genome.contigs) if ending == ".gff3" else format_bed12(genes)
    else:
        lines = _list_stretches(model, blocks())
    with atomic.open_atomic(path, "w") as file:
        for line in lines:
            file.write(line)


def write_folder(
    out: str | Path,
    model: KeptLabeller,
    genome: Genome,
    blocks: Blocks,
    told: Mapping[str, Any],
) -> dict[str, Any]:
    """Write all files of a folder that is complete or not there; what its sidecar says."""
    own = is_own_folder(out, SIDECAR)
    with atomic.atomic_directory(out, aside=not own, replace=own) as folder:
        for ending in list_names(model.card.kind, out):
            write_text_form(folder / f"labels{ending}", ending, model, genome, blocks)
        _write_values(folder, model, genome.contigs, blocks)
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


def join_blocks(
    blocks: Iterable[tuple[Span, NDArray[Any]]],
) -> Iterator[tuple[Span, NDArray[Any]]]:
    """Cores that touch as one, held in memory until they end."""
    first: Span | None = None
    end, held = 0, list[NDArray[Any]]()
    for (contig, start, last), scores in blocks:
        if first is None or (contig, start) != (first[0], end):
            if first is not None:
                yield (first[0], first[1], end), np.concatenate(held)
            first, held = (contig, start, last), []
        held.append(scores)
        end = last
    if first is not None:
        yield (first[0], first[1], end), np.concatenate(held)


def _list_stretches(
    model: KeptLabeller, blocks: Iterable[tuple[Span, NDArray[Any]]]
) -> Iterator[str]:
    """Lines of BED: stretches of one class, the likeliest at each base, which is not `none`."""
    names = model.card.names
    for (contig, begin, _), scores in join_blocks(blocks):
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


def _write_values(
    folder: Path, model: KeptLabeller, contigs: Mapping[str, int], blocks: Blocks
) -> None:
    columns = list_values(model)
    with write_bigwigs(folder, columns, contigs) as add:
        whole = model.network.chain is not None
        for (contig, start, _), scores in join_blocks(blocks()) if whole else blocks():
            values = model.read(scores)
            for name, some in columns.items():
                add(name, contig, start, values[:, some].sum(1))
