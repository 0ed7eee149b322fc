"""The yeast genes of this folder: files for the verb, the truth of the test part, and its levels.

The annotation is of spans (BED6). An open reading frame that is whole is a gene of one exon; a span
that is none (spliced, or read by a frameshift) is unknown, since its introns are in no file. ORFs
that overlap are unknown, as in `genodiff finetune bases`.
"""

import gzip
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA
from genodiff.annotation.base_labels import BaseLabels, read_gene_labels
from genodiff.annotation.gene_grammar import CodingGene, list_genes
from genodiff.finetuning.base_windows import Span, subtract
from genodiff.io.faidx import Genome

DATA = Path(os.environ["GENODIFF_SHARED"]) / "data/genomes"
GENOME = DATA / "sacCer3.fa.gz"
SPANS = DATA / "annotation/sacCer3_nondubious_ORFs_and_blocked_reading_frames.bed.gz"
TRAIN, VALID, TEST = ("chrV", 0, 300_000), ("chrXVI", 0, 60_000), ("chrXIV", 300_000, 600_000)
BLOCK = 10_000
"""Bases of a unit of the intervals."""
STOPS = (b"TAA", b"TAG", b"TGA")
LETTERS = np.frombuffer(b"ACGTN", np.uint8)


def is_whole(orf: bytes) -> bool:
    """Whether a sequence is ATG, codons and a stop at its end alone.

    >>> is_whole(b"ATGAAATAA"), is_whole(b"ATGTAATAA")
    (True, False)
    """
    stops = [i for i in range(0, len(orf) - 2, 3) if orf[i : i + 3] in STOPS]
    return len(orf) % 3 == 0 and orf[:3] == b"ATG" and stops == [len(orf) - 3]


def turn(letters: bytes) -> bytes:
    return letters.translate(bytes.maketrans(b"ACGT", b"TGCA"))[::-1]


def write_files(folder: Path, spans: Sequence[Span] = ()) -> tuple[Path, Path]:
    """BED12 of whole ORFs, and BED of what is known: of all nuclear contigs, or within `spans`."""
    genes, known = folder / "genes.bed", folder / "known.bed"
    rows, blocked = [], []
    with Genome(GENOME) as genome:
        spans = spans or [(c, 0, end) for c, end in genome.contigs.items() if c != "chrM"]
        some = {contig for contig, _, _ in spans}
        for line in gzip.decompress(SPANS.read_bytes()).decode().splitlines():
            contig, first, last, name, _, strand = line.split()
            if contig not in some:
                continue
            start, end = int(first), int(last)
            letters = genome.fetch(contig, start, end)
            if not is_whole(letters if strand == "+" else turn(letters)):
                blocked.append((contig, start, end))
                continue
            rows.append(f"{contig}\t{start}\t{end}\t{name}\t0\t{strand}\t{start}\t{end}\t0\t1\t"
                        f"{end - start}\t0\n")  # fmt: skip
    genes.write_text("".join(rows))
    rest = subtract(spans, blocked)
    known.write_text("".join(f"{c}\t{start}\t{end}\n" for c, start, end in rest))
    return genes, known


def read_labels(folder: Path, spans: Sequence[Span] = ()) -> BaseLabels:
    """The labels of `write_files`, as the verb reads them."""
    genes, known = write_files(folder, spans)
    with Genome(GENOME) as genome:
        labels = read_gene_labels(genes, dict(genome.contigs)).mask_unread(genome)
    rows = (line.split() for line in known.read_text().splitlines())
    return labels.mask_outside((c, int(start), int(end)) for c, start, end in rows)


def read_ids(span: Span) -> NDArray[np.int64]:
    """Letters as numbers: A, C, G, T are 0 to 3."""
    with Genome(GENOME) as genome:
        return DNA.encode(genome.fetch(*span)).astype(np.int64) - int(DNA.encode(b"A")[0])


def count_levels(
    path: NDArray[np.int8], said: Iterable[CodingGene], block: int = BLOCK
) -> NDArray[np.int64]:
    """(blocks, 3, 3) numbers of the true, the said and the right of bases, exons and genes.

    `path` is the true labels. A gene is of the block of its middle, and is judged where every base
    from its first to its last is known, and those beside it if it is a true one.
    """
    known = path >= 0
    found = np.zeros((-(-len(path) // block), 3, 3), np.int64)
    sets = []
    for number, genes in enumerate((list_genes(path), list(said))):
        whole, coding = set(), np.zeros((2, len(path)), bool)
        for gene in genes:
            first, last = gene.parts[0][0], gene.parts[-1][1]
            for start, end in gene.parts:
                coding[int(gene.strand < 0), start:end] = True
            beside = known[max(first - 1, 0) : last + 1] if number == 0 else known[first:last]
            if beside.all():
                whole.add((gene.strand, gene.parts))
        exons = {(strand, (part,)) for strand, parts in whole for part in parts}
        sets.append((coding & known, exons, whole))
    right = tuple(a & b for a, b in zip(*sets, strict=True))
    for column, (coding, exons, whole) in enumerate((*sets, right)):
        at = np.flatnonzero(coding.any(0)) if coding.ndim == 2 else coding
        found[:, 0, column] += np.bincount(at // block, coding[:, at].sum(0),
                                           len(found)).astype(np.int64)  # fmt: skip
        for level, spans in ((1, exons), (2, whole)):
            for _, parts in spans:
                found[(parts[0][0] + parts[-1][1]) // 2 // block, level, column] += 1
    return found
