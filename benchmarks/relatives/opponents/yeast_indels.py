"""Natural indels of yeast, each beside a control of the same length, repeat class and region.

    last.sh sacCer3.fa WORK/last_strains Scer_SK1=FILE ...        one-to-one alignments of strains
    python yeast_indels.py WORK OUT.tsv.gz [CONTIG ...]

Natural: gaps of 1 to 30 bases between two stretches of 12 identical columns, left-aligned, in any
of the strains. Control: a position of the same chromosome with no difference of a strain within 20
bases, for which these agree with the natural indel: length; insertion or deletion; whether the
inserted or deleted bases are one base repeated; how far the bases behind repeat them (0, 1, 2, ...,
capped at 20); within or between the non-dubious ORFs (never across an edge). Natural indels with no
such position are left out. Columns: chrom, pos (1-based, of the base before), ref, alt, natural,
region, repeat, strains.
"""

import gzip
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parent.parent))

from compare import BED
from rotate import read_fasta
from star import read_blocks

LONGEST, FLANK, FAR, REPEAT, TRIED, SEED = 30, 12, 20, 20, 40_000, 1
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


def draw_controls(
    text: str, contig: str, wanted: dict, genes: np.ndarray, free: np.ndarray
) -> dict[Indel, Indel]:
    """A control for each natural indel that has one among `TRIED` drawn positions."""
    rng, found, taken = np.random.default_rng(SEED), {}, np.zeros(len(text), bool)
    places = np.flatnonzero(free)
    for at in rng.permutation(places[(places > 60) & (places < len(text) - 60)])[:TRIED].tolist():
        if taken[at - FAR : at + FAR].any():
            continue
        tried = [(contig, at, text[at : at + n], "") for n in {key[0][0] for key in wanted}]
        tried += [(contig, at, "", one[2]) for one in tried]
        tried += [(contig, at, "", rows[-1][3]) for key, rows in wanted.items()
                  if key[0][1] and key[0][3] < key[0][0]]  # fmt: skip
        for control in tried:
            key = describe(text, control), tell_region(genes, control)
            bases = control[2] or control[3]
            if key in wanted and "N" not in bases and shift_left(text, at, bases)[0] == at:
                found[wanted[key].pop()] = control
                taken[at] = True
                if not wanted[key]:
                    del wanted[key]
                break
    return found


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
        for contig in sys.argv[3:] or genome:
            text = genome[contig]
            wanted = defaultdict(list)
            for indel in sorted(one for one in strains if one[0] == contig):
                region = tell_region(genes[contig], indel)
                if region and FAR < indel[1] < len(text) - FAR:
                    wanted[describe(text, indel), region].append(indel)
            near = np.convolve(marked[contig], np.ones(2 * FAR + 1), "same") > 0
            pairs = draw_controls(text, contig, wanted, genes[contig], ~near)
            for natural, control in sorted(pairs.items()):
                region = tell_region(genes[contig], natural)
                for label, one in ((1, natural), (0, control)):
                    _, at, gone, new = one
                    before = text[at - 1]
                    cells = (contig, at, before + gone, before + new, label, region,
                             describe(text, one)[3], strains.get(one, 0))  # fmt: skip
                    out.write("\t".join(map(str, cells)) + "\n")
            left = sum(map(len, wanted.values()))
            print(contig, len(pairs), "pairs;", left, "without", flush=True)


if __name__ == "__main__":
    main()
