"""Which places hold the difference in bits between chrXIV and two chromosomes that have more.

    python benchmarks/relatives/where_bits.py RUN OUT.json

RUN was trained without the three. Every base of all windows has its leave-one-out bits by the four
relatives, as in `chromosomes.py`, and a class of each of `PARTITIONS`. A class has its share of the
bases, its mean bits, and two parts of the difference that sum to all of it over the classes, m and
M being mean bits of the class and of all, bars the mean of the two sides:

    composition = (share − share') (m̄ − M̄)        within = (m − m') share̅
    with = Σ share' m, the bits with the classes' shares of chrXIV

Intervals: blocks of 10 windows drawn anew, each chromosome by itself.
"""

import gzip
import sys
from pathlib import Path

import numpy as np
from chromosomes import BLOCK
from laws import BED, FASTA, NEW
from numpy.typing import NDArray
from paired import interval, write_lines
from related import FOUR, open_related, weigh_whole
from yeast_laws import Gene, read_genes  # laws.py put its folder on the path
from yeast_setting import LENGTH, cut, read_genome

from genodiff.io.faidx import Genome
from genodiff.memory.tree import share_bases
from genodiff.runs.folder import find_git_revision

BASE = "chrXIV"
SUBTELOMERE, REPEATED, JOINED, REPEAT = 30_000, 20, 100, 100
LIES, DRAWS = 0.5, 1000
PARTITIONS = {
    "relatives that lie there": ("none", "1", "2", "3", "4"),
    "of genes": ("third of codon", "first two", "intron", "ORF, no frame", "between genes"),
    "stretch": ("subtelomere", "repeat", "other"),
    "window beside CBS432": ("lies on < half", "< .85", ".85-.88", ".88-.91", "≥ .91"),
    "few, by stretch": (
        "none or 1, subtelomere",
        "none or 1, repeat",
        "none or 1, other",
        "2 to 4",
    ),
    "genes and relatives": tuple(
        f"{kind}, {n}"
        for kind in ("third of codon", "first two", "outside codons")
        for n in ("none", "1-2", "3-4")
    ),
}
Labels = dict[str, NDArray[np.int64]]


def find_repeats(codes: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Whether each base is in a stretch of `REPEAT` that the genome has again, on either strand.

    Words of `REPEATED` bases that stand twice, joined where at most `JOINED` lie between.
    """
    turned = {}
    for contig, c in codes.items():
        at = c.astype(np.uint64)
        n = len(c) - REPEATED + 1
        there, back = np.zeros(n, np.uint64), np.zeros(n, np.uint64)
        for i in range(REPEATED):
            there = there << np.uint64(2) | at[i : i + n]
            back = back << np.uint64(2) | (np.uint64(3) - at[REPEATED - 1 - i :][:n])
        turned[contig] = np.minimum(there, back)
    known, count = np.unique(np.concatenate(list(turned.values())), return_counts=True)
    twice = known[count > 1]
    out = {}
    for contig, word in turned.items():
        inside = np.zeros(len(codes[contig]), bool)
        starts = np.flatnonzero(
            twice[np.searchsorted(twice, word).clip(max=len(twice) - 1)] == word
        )
        parts = np.split(starts, np.flatnonzero(np.diff(starts) > REPEATED + JOINED) + 1)
        for part in parts:
            if len(part) and part[-1] + REPEATED - part[0] >= REPEAT:
                inside[part[0] : part[-1] + REPEATED] = True
        out[contig] = inside
    return out


def label_genes(contig: str, size: int, genes: list[Gene], spans: list[tuple]) -> NDArray[np.int64]:
    """The class of each base in "of genes"; where genes overlap, the later in the file."""
    out = np.full(size, 4)
    for at, start, end in spans:
        if at == contig:
            out[start:end] = 3
    for gene in genes:
        if gene.contig == contig:
            places = np.arange(gene.start, gene.end)[:: gene.strand]
            first, end = gene.intron or (0, 0)
            coding = np.r_[places[:first], places[end:]]
            out[coding], out[coding[2::3]], out[places[first:end]] = 1, 0, 2
    return out


def read_spans() -> list[tuple[str, int, int]]:
    """Open reading frames, introns inside them."""
    rows = (line.split() for line in gzip.decompress(BED.read_bytes()).decode().splitlines())
    return [(r[0], int(r[1]), int(r[2])) for r in rows]


def label(over: np.ndarray, clean: np.ndarray, genes: NDArray, repeat: NDArray) -> Labels:
    """`over` (4, B, L, 4) → the class (B, L) of every base in each partition."""
    lies = over.sum(-1) > LIES
    n = lies.sum(0)
    place = np.arange(clean.size).reshape(clean.shape)
    ends = np.minimum(place, len(repeat) - 1 - place) < SUBTELOMERE
    fits = lies[0] & (over[0].argmax(-1) == clean)
    share = lies[0].mean(1)
    alike = fits.sum(1) / np.maximum(lies[0].sum(1), 1)
    window = np.where(share < 0.5, 0, 1 + np.searchsorted((0.85, 0.88, 0.91), alike, "right"))
    genes, repeat = (x[: clean.size].reshape(clean.shape) for x in (genes, repeat))
    some = (n > 0).astype(int) + (n > 2)
    stretch = np.where(ends, 0, np.where(repeat, 1, 2))
    return dict(zip(PARTITIONS, (
        n, genes, stretch, np.repeat(window[:, None], LENGTH, 1), np.where(n < 2, stretch, 3),
        3 * np.minimum(genes, 2) + some,
    ), strict=True))  # fmt: skip


def measure_bits(p: np.ndarray, clean: np.ndarray) -> np.ndarray:
    p = p / p.sum(-1, keepdims=True)
    return -np.log2(np.take_along_axis(p, clean[..., None].astype(int), -1)[..., 0])


def count(labels: NDArray, bits: np.ndarray, classes: int) -> np.ndarray:
    """(blocks, classes, 2): bases and bits; the last block may be shorter."""
    starts = np.arange(0, len(bits), BLOCK)
    out = np.zeros((len(starts), classes, 2))
    for c in range(classes):
        inside = labels == c
        out[..., c, 0] = np.add.reduceat(inside.sum(1), starts)
        out[..., c, 1] = np.add.reduceat((bits * inside).sum(1), starts)
    return out


def draw_totals(blocks: np.ndarray, seed: int) -> np.ndarray:
    """(1 + DRAWS, classes, 2): of all blocks, then of blocks drawn anew."""
    rng = np.random.default_rng(seed)
    at = rng.integers(0, len(blocks), (DRAWS, len(blocks)))
    return np.concatenate([blocks.sum(0)[None], blocks[at].sum(1)])


def split(totals: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Share (D, classes), mean bits (D, classes), all (D,)."""
    bases, bits = totals[..., 0], totals[..., 1]
    mean = np.where(bases > 0, bits / np.maximum(bases, 1), np.nan)
    return bases / bases.sum(1)[:, None], mean, bits.sum(1) / bases.sum(1)


def spell(values: np.ndarray) -> list[float | None]:
    """None where no base is of a class."""
    return [None if np.isnan(x) else x for x in interval(float(values[0]), values[1:])]


def compare(one: np.ndarray, base: np.ndarray, names: tuple[str, ...]) -> dict:
    """What the classes give to the difference of `one` from `base`."""
    (s, m, all_), (s0, m0, all0) = split(one), split(base)
    m, m0 = (np.nan_to_num(np.where(np.isnan(a), b, a)) for a, b in ((m, m0), (m0, m)))
    middle = ((all_ + all0) / 2)[:, None]
    shift = (s - s0) * ((m + m0) / 2 - middle)
    within = (m - m0) * (s + s0) / 2
    return {
        "difference": spell(all_ - all0),
        "composition": spell(shift.sum(1)), "within": spell(within.sum(1)),
        "with": spell((s0 * m).sum(1)),
        "by class": {
            name: {"composition": spell(shift[:, c]), "within": spell(within[:, c])}
            for c, name in enumerate(names)
        },
    }  # fmt: skip


def main() -> None:
    run, target = sys.argv[1], Path(sys.argv[2])
    related = open_related(run, FOUR)
    chosen = related.choose(FOUR)
    assert chosen.columns is not None
    bases, order = share_bases(chosen.columns.gc), [related.names.index(n) for n in FOUR]
    codes = {c: x for c, x in read_genome(FASTA).items() if c != "chrM"}
    repeats, spans = find_repeats(codes), read_spans()
    with Genome(FASTA) as genome:
        genes = read_genes(BED, genome)
    blocks: dict[str, dict[str, np.ndarray]] = {}
    for contig in (BASE, *sorted(NEW)):
        clean = cut(contig, 10**9)
        over = related.relatives.align(clean)
        bits = measure_bits(weigh_whole(chosen, over, clean) * bases, clean)
        labels = label(over[order], clean, label_genes(contig, len(codes[contig]), genes, spans),
                       repeats[contig])  # fmt: skip
        blocks[contig] = {
            part: count(labels[part], bits, len(names)) for part, names in PARTITIONS.items()
        }
        print(contig, round(float(bits.mean()), 4), flush=True)
    write_lines(target, summarise(blocks))


def summarise(blocks: dict[str, dict[str, np.ndarray]]) -> dict:
    """Each partition: its classes on each chromosome, and the differences from `BASE`."""
    out: dict[str, dict] = {"commit": {"commit": find_git_revision()}}
    for part, names in PARTITIONS.items():
        totals = {c: draw_totals(blocks[c][part], i) for i, c in enumerate(blocks)}
        here: dict[str, dict] = {}
        for contig, total in totals.items():
            share, mean, all_ = split(total)
            here[contig] = {"all": spell(all_)} | {
                name: {"share": spell(share[:, c]), "bits": spell(mean[:, c])}
                for c, name in enumerate(names)
            }
        new = {c: totals[c] for c in sorted(NEW)}
        new["both"] = draw_totals(np.concatenate([blocks[c][part] for c in sorted(NEW)]), 9)
        for name, one in new.items():
            here[f"{name} less {BASE}"] = compare(one, totals[BASE], names)
        out[part] = here
    return out


if __name__ == "__main__":
    main()
