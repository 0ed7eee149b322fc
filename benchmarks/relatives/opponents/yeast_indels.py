"""Natural indels of yeast, each beside a control of the same length, repeat class and region.

    last.sh sacCer3.fa WORK/last_strains Scer_SK1=FILE ...        one-to-one alignments of strains
    python yeast_indels.py WORK OUT.tsv.gz [CONTIG ...]

Natural: gaps of 1 to 30 bases between two stretches of 12 identical columns, left-aligned, in any
of the strains. Control: a position with no difference of a strain within 20 bases, for which these
agree with the natural indel: length; insertion or deletion; whether the inserted or deleted bases
are one base repeated; how far the bases behind repeat them (0, 1, 2, ..., capped at 20); within or
between the non-dubious ORFs (never across an edge). All positions are looked through, those of the
same chromosome first, then those of the others that are named. Columns: chrom, pos (1-based, of the
base before), ref, alt, natural (1, 0, or `alone` without a control), region, repeat, strains.
"""

import gzip
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parent.parent))

from compare import BED
from rotate import read_fasta
from star import read_blocks

LONGEST, FLANK, FAR, REPEAT, EDGE, SEED = 30, 12, 20, 20, 60, 1
ALONE = "alone"
Indel = tuple[str, int, str, str]
"""Contig, position of the first base that differs (0-based), deleted bases, inserted bases."""


def shift_left(text: str, at: int, bases: str) -> tuple[int, str]:
    while at > 1 and text[at - 1] == bases[-1]:
        at, bases = at - 1, bases[-1] + bases[:-1]
    return at, bases


def count_repeat(text: str, at: int, bases: str) -> int:
    """How many bases from `at` repeat `bases`, cyclically."""
    n = 0
    while n < REPEAT and at + n < len(text) and text[at + n] == bases[n % len(bases)]:
        n += 1
    return n


def describe(text: str, indel: Indel) -> tuple:
    """What a control agrees in, but for the region."""
    _, at, gone, new = indel
    bases = gone or new
    return len(bases), bool(new), len(set(bases)) == 1, count_repeat(text, at + len(gone), bases)


def read_indels(path: Path, genome: dict[str, str], marked: dict[str, np.ndarray]) -> set[Indel]:
    """The indels of one strain; every difference is marked."""
    found: set[Indel] = set()
    for _, top, low in read_blocks(path):
        contig, start = top[1], int(top[2])
        x, y = top[6].upper(), low[6].upper()
        a, b = (np.frombuffer(row.encode(), np.uint8) for row in (x, y))
        gap = (a == ord("-")) | (b == ord("-"))
        where = start + np.cumsum(a != ord("-")) - 1
        marked[contig][where[(a != b)].clip(0)] = True
        edge = np.flatnonzero(np.diff(np.concatenate([[0], gap.view(np.int8), [0]])))
        for first, last in edge.reshape(-1, 2).tolist():
            size = last - first
            near = slice(max(first - FLANK, 0), first), slice(last, last + FLANK)
            alike = all(x[s] == y[s] and len(x[s]) == FLANK and "N" not in x[s] for s in near)
            gone, new = x[first:last].replace("-", ""), y[first:last].replace("-", "")
            if size > LONGEST or not alike or (gone and new) or set(gone + new) - set("ACGT"):
                continue
            at = int(where[first - 1]) + 1
            at, bases = shift_left(genome[contig], at, gone or new)
            found.add((contig, at, bases, "") if gone else (contig, at, "", bases))
    return found


def mark_genes(genome: dict[str, str]) -> dict[str, np.ndarray]:
    """Of each base the number of the ORF it lies in, from 1; 0 between."""
    out = {name: np.zeros(len(text), np.int32) for name, text in genome.items()}
    with gzip.open(BED, "rt") as lines:
        for number, line in enumerate(lines, 1):
            row = line.split()
            if row[0] in out:
                out[row[0]][int(row[1]) : int(row[2])] = number
    return out


def tell_region(genes: np.ndarray, indel: Indel) -> str:
    """ "gene", "between", or nothing across an edge."""
    _, at, gone, _ = indel
    span = genes[max(at - 1, 0) : at + max(len(gone), 1)]
    return "" if (span != span[0]).any() else "gene" if span[0] else "between"


class Sites:
    """Where a contig has controls: positions far from differences, by region, each taken once."""

    def __init__(self, text: str, genes: np.ndarray, free: np.ndarray) -> None:
        self.text, self.genes, self.free = text, genes, free.copy()
        self.free[:EDGE] = self.free[-EDGE:] = False
        self.codes = np.frombuffer(text.encode(), np.uint8)
        self._edge = np.concatenate([[0], (np.diff(genes) != 0).cumsum()])
        self.measure = cache(self._measure)

    def _measure(self, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(L,) each: how far the bases behind the n from here repeat them, whether they are aligned
        to the left, and whether they are one base.
        """
        same = np.zeros(len(self.codes), bool)
        same[:-n] = self.codes[n:] == self.codes[:-n]
        stop = np.where(same, len(same), np.arange(len(same)))
        run = np.minimum.accumulate(stop[::-1])[::-1] - np.arange(len(same))
        left = ~np.concatenate([[True], same[:-1]])
        step = np.concatenate([[True], self.codes[1:] != self.codes[:-1]]).cumsum()
        alike = np.zeros(len(same), bool)
        alike[: len(same) - n + 1] = step[n - 1 :] == step[: len(same) - n + 1]
        return run, left, alike

    def draw(self, key: tuple, natural: Indel, rng: np.random.Generator) -> Indel | None:
        """A control for `natural`, whose description and region are `key`."""
        (n, inserts, alike, repeat), region = key
        run, left, one = self.measure(n)
        new, inside = natural[3], self.genes > 0
        fits = self.free & (inside if region == "gene" else ~inside)
        deep = 0 if inserts else n
        fits[: len(fits) - deep] &= self._edge[deep:] == self._edge[: len(fits) - deep]
        fits[1:] &= self._edge[1:] == self._edge[:-1]
        if inserts and repeat < min(n, REPEAT):
            codes = np.frombuffer(new.encode(), np.uint8)
            for j in range(repeat):
                fits &= np.roll(self.codes, -j) == codes[j]
            fits &= np.roll(self.codes, -repeat) != codes[repeat]
            fits &= np.roll(self.codes, 1) != codes[-1]
        else:
            fits &= (np.minimum(run + n * inserts, REPEAT) == repeat) & left & (one == alike)
            new = ""
        for at in rng.permutation(np.flatnonzero(fits)).tolist():
            bases = new or self.text[at : at + n]
            if "N" not in bases and self.free[at]:
                self.free[max(at - FAR, 0) : at + FAR] = False
                return (natural[0], at, "", bases) if inserts else (natural[0], at, bases, "")
        return None


def main() -> None:
    work, target = Path(sys.argv[1]), Path(sys.argv[2])
    genome = {k: v.upper() for k, v in read_fasta(str(work / "sacCer3.fa")).items() if k != "chrM"}
    every = genome | {"chrM": "N" * 100_000}
    marked = {name: np.zeros(len(text), bool) for name, text in every.items()}
    strains = defaultdict(int)
    for path in sorted((work / "last_strains").glob("Scer_*.maf")):
        if path.name.count(".") == 1:
            for indel in read_indels(path, every, marked):
                strains[indel] += 1
    genes = mark_genes(genome)
    with gzip.open(target, "wt") as out:
        out.write("chrom\tpos\tref\talt\tnatural\tregion\trepeat\tstrains\n")
        contigs, rng = sys.argv[3:] or list(genome), np.random.default_rng(SEED)
        sites = {}
        for contig in contigs:
            near = np.convolve(marked[contig], np.ones(2 * FAR + 1), "same") > 0
            sites[contig] = Sites(genome[contig], genes[contig], ~near)
        for contig in contigs:
            text, found, without = genome[contig], 0, 0
            for natural in sorted(one for one in strains if one[0] == contig):
                region = tell_region(genes[contig], natural)
                if not region or not FAR < natural[1] < len(text) - FAR:
                    continue
                key, rows = (describe(text, natural), region), [(1, natural)]
                for name in [contig, *(one for one in contigs if one != contig)]:
                    control = sites[name].draw(key, natural, rng)
                    if control is not None:
                        rows.append((0, (name, *control[1:])))
                        found += 1
                        break
                without += len(rows) == 1
                for label, one in rows:
                    name, at, gone, new = one
                    before, repeat = genome[name][at - 1], describe(genome[name], one)[3]
                    label = label if len(rows) == 2 else ALONE
                    cells = (name, at, before + gone, before + new, label, region, repeat,
                             strains.get(one, 0))  # fmt: skip
                    out.write("\t".join(map(str, cells)) + "\n")
            print(contig, found, "pairs;", without, "without", flush=True)


if __name__ == "__main__":
    main()
