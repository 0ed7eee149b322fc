"""Laws of genes that need no measurement: what a variant does to a protein, from the annotation.

The annotation is BED rows of open reading frames with introns inside. A frame is believed where
the genome agrees: length in threes, a start, a stop at the end, none before. An intron is found
where removing one stretch GT ... AG with a branch point makes such a frame; one answer only.
"""

import gzip
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from genodiff.io.faidx import Genome

_BASES = "TCAG"
_ACIDS = "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG"
CODE = {
    a + b + c: _ACIDS[16 * i + 4 * j + k]
    for i, a in enumerate(_BASES)
    for j, b in enumerate(_BASES)
    for k, c in enumerate(_BASES)
}
_TURN = str.maketrans("ACGT", "TGCA")
_DONOR = re.compile("(?=GTA[TC]G)")
_BRANCH = re.compile("TACTAAC[ACGT]{5,80}?[CT]AG")


class Gene(NamedTuple):
    """A frame: `sequence` as it is read, from 0-based `start` to `end`; `intron` within it."""

    contig: str
    start: int
    end: int
    name: str
    strand: int
    sequence: str
    intron: tuple[int, int] | None


class LawVariant(NamedTuple):
    """A substitution, plus strand, `pos` from 1, and what it does."""

    contig: str
    pos: int
    ref: str
    alt: str
    kind: str
    gene: str
    codon_position: int  # 1 to 3, 0 outside codons


def is_frame(sequence: str) -> bool:
    """Whether it is an open reading frame from ATG to its first stop."""
    if len(sequence) % 3 or not sequence.startswith("ATG") or len(sequence) < 9:
        return False
    acids = [CODE.get(sequence[i : i + 3], "*") for i in range(0, len(sequence), 3)]
    return acids[-1] == "*" and "*" not in acids[:-1]


def find_intron(sequence: str) -> tuple[int, int] | None:
    """The one stretch whose removal leaves a frame; None where there is none, or several."""
    found = set()
    for donor in _DONOR.finditer(sequence):
        for branch in _BRANCH.finditer(sequence, donor.start() + 40):
            cut = (donor.start(), branch.end())
            if is_frame(sequence[: cut[0]] + sequence[cut[1] :]):
                found.add(cut)
    return found.pop() if len(found) == 1 else None


def read_genes(bed: Path, genome: Genome) -> list[Gene]:
    """The frames of a BED file that the genome agrees with, in its order."""
    genes = []
    with gzip.open(bed, "rt") as file:
        for line in file:
            contig, start, end, name, _, strand = line.split()[:6]
            if contig not in genome.contigs or contig == "chrM":
                continue
            sequence = genome.fetch(contig, int(start), int(end)).decode().upper()
            if strand == "-":
                sequence = sequence.translate(_TURN)[::-1]
            intron = None
            if not is_frame(sequence):
                intron = find_intron(sequence)
                if intron is None:
                    continue
            sign = -1 if strand == "-" else 1
            genes.append(Gene(contig, int(start), int(end), name, sign, sequence, intron))
    return genes


def substitute(gene: Gene, at: int, kind: str, codon_position: int = 0) -> Iterable[LawVariant]:
    """The three substitutions at place `at` of the gene as it is read, all of one kind."""
    for alt in "ACGT".replace(gene.sequence[at], ""):
        yield place(gene, at, alt, kind, codon_position)


def place(gene: Gene, at: int, alt: str, kind: str, codon_position: int = 0) -> LawVariant:
    ref = gene.sequence[at]
    pos = gene.start + at if gene.strand > 0 else gene.end - 1 - at
    if gene.strand < 0:
        ref, alt = ref.translate(_TURN), alt.translate(_TURN)
    return LawVariant(gene.contig, pos + 1, ref, alt, kind, gene.name, codon_position)


def change_codon(gene: Gene, at: int) -> Iterable[LawVariant]:
    """The nine substitutions of the codon at `at`: synonymous, missense or stop."""
    codon = gene.sequence[at : at + 3]
    for i in range(3):
        for alt in "ACGT".replace(codon[i], ""):
            acid = CODE[codon[:i] + alt + codon[i + 1 :]]
            kind = "synonymous" if acid == CODE[codon] else "stop" if acid == "*" else "missense"
            yield place(gene, at + i, alt, kind, i + 1)


def draw_variants(genes: list[Gene], contigs: set[str], limit: int, seed: int) -> list[LawVariant]:
    """Substitutions of drawn codons, of starts beside ATG inside, of splice sites beside GT and AG.

    Codons and starts are those of genes without an intron on `contigs`; introns are of all
    contigs, because there are few. A control has the same letters in the same gene.
    """
    rng = np.random.default_rng(seed)
    whole = [g for g in genes if g.intron is None and g.contig in contigs]
    out: list[LawVariant] = []
    for i in sorted(rng.choice(len(whole), min(len(whole), limit // 20), replace=False).tolist()):
        gene = whole[i]
        last = len(gene.sequence) // 3 - 1
        inside = 3 * (1 + rng.permutation(last - 1)[:4])
        for at in sorted(inside.tolist()):
            out += change_codon(gene, at)
    for i in sorted(rng.choice(len(whole), min(len(whole), limit // 10), replace=False).tolist()):
        gene = whole[i]
        others = [
            at for at in range(3, len(gene.sequence) - 3, 3) if gene.sequence.startswith("ATG", at)
        ]
        if others:
            control = int(rng.choice(others))
            for j in range(3):
                out += substitute(gene, j, "start codon")
                out += substitute(gene, control + j, "ATG inside")
    for gene in genes:
        if gene.intron is None:
            continue
        first, end = gene.intron
        for kind, at, pair in (("donor", first, "GT"), ("acceptor", end - 2, "AG")):
            middle = gene.sequence[first + 6 : end - 6]
            others = [m.start() + first + 6 for m in re.finditer(pair, middle)]
            if others:
                control = int(rng.choice(others))
                for j in range(2):
                    out += substitute(gene, at + j, kind)
                    out += substitute(gene, control + j, f"{pair} in the intron")
    return list(dict.fromkeys(out))


LAWS = (
    ("synonymous - missense", "synonymous", "missense"),
    ("missense - stop", "missense", "stop"),
    ("synonymous - stop", "synonymous", "stop"),
    ("ATG inside - start codon", "ATG inside", "start codon"),
    ("GT in the intron - donor", "GT in the intron", "donor"),
    ("AG in the intron - acceptor", "AG in the intron", "acceptor"),
    ("third base - first two bases of codons", "third", "first two"),
)
"""Name, the kind expected to score higher, the kind expected to score lower."""


def is_of(one: LawVariant, kind: str) -> bool:
    """Whether a variant is of a kind of `LAWS`."""
    if kind == "third":
        return one.codon_position == 3
    if kind == "first two":
        return one.codon_position in (1, 2)
    return one.kind == kind


def mean_gap(score: np.ndarray, high: np.ndarray, low: np.ndarray) -> float:
    """Mean score of the variants of one kind less that of the other."""
    if not high.any() or not low.any():
        return float("nan")
    return float(score[high].mean() - score[low].mean())
