"""SNVs between three strains of E. coli and MG1655, each beside a matched control.

    python ecoli_snvs.py OUT.tsv.gz          (minimap2 in the path; GENODIFF_SHARED)

Strains are aligned by minimap2 (asm10). A position counts where every strain covers it by exactly
one alignment of 5 kb or more, at least 5 bases from an indel. A control has the bases and the class
of its SNV (between genes, or strand and codon position of a CDS), lies within 20 kb, and no strain
differs there. The alternative of a position with several is the one of most strains. At most 12,000
SNVs are drawn, seed 1. Positions in two CDSs are left out. Columns as yeast_natural_snvs.tsv.gz.
"""

import gzip
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent))

from yeast_setting import SHARED, read_genome

STRAINS = ("Ecoli_IAI39", "Ecoli_ATCC11775", "Shigella_flexneri_ATCC29903")
LEAST_LENGTH, FROM_INDEL, REACH, MOST, SEED = 5000, 5, 20_000, 12_000, 1
BASES = "TCAG"
ACIDS = "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG"
CODONS = {a + b + c: ACIDS[16 * i + 4 * j + k]
          for i, a in enumerate(BASES) for j, b in enumerate(BASES)
          for k, c in enumerate(BASES)}  # fmt: skip
STEP = re.compile(r"(:\d+|\*[a-z]{2}|[+-][a-z]+)")


def read_strain(target: Path, strain: Path, n: int) -> tuple[np.ndarray, np.ndarray]:
    """How often each position is covered, and the strain's base there (4 near indels)."""
    covered, base = np.zeros(n, np.int32), np.full(n, -1, np.int8)
    command = ["minimap2", "-cx", "asm10", "--cs", "--secondary=no", str(target), str(strain)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for line in lines.splitlines():
        row = line.split("\t")
        at, end = int(row[7]), int(row[8])
        if end - at < LEAST_LENGTH:
            continue
        covered[at:end] += 1
        cs = next(tag[5:] for tag in row[12:] if tag.startswith("cs:Z:"))
        gaps = []
        for step in STEP.findall(cs):
            if step[0] == ":":
                at += int(step[1:])
            elif step[0] == "*":
                base[at] = "acgt".find(step[2])
                at += 1
            else:
                gaps.append((at, at + (len(step) - 1 if step[0] == "-" else 0)))
                at = gaps[-1][1]
        for a, b in gaps:
            covered[max(a - FROM_INDEL, 0) : b + FROM_INDEL] += 2
    return covered, base


def read_classes(path: Path, n: int) -> tuple[np.ndarray, dict[int, tuple[int, int]]]:
    """0 between genes, 1 to 3 and 4 to 6 in a CDS by strand and codon position, -1 left out; and
    of each codon position the CDS's first base and strand."""
    kind, frame = np.zeros(n, np.int8), {}
    spans = []
    with gzip.open(path, "rt") as lines:
        for line in lines:
            row = line.rstrip("\n").split("\t")
            if len(row) > 8 and row[2] in ("CDS", "gene", "pseudogene", "tRNA", "rRNA", "ncRNA"):
                a, b = int(row[3]) - 1, int(row[4])
                spans.append((row[2], a, b, row[6], (b - a) % 3 == 0))
    for what, a, b, _, _ in spans:
        if what != "CDS":
            kind[a:b] = -1
    seen = np.zeros(n, np.int8)
    for what, a, b, strand, whole in spans:
        if what == "CDS":
            seen[a:b] += 1
            phase = np.arange(b - a) % 3
            kind[a:b] = (1 + phase if strand == "+" else 4 + phase[::-1]) if whole else -1
            for i in range(a, b):
                frame[i] = (a, 1) if strand == "+" else (b - 1, -1)
    kind[seen > 1] = -1
    return kind, frame


def name_effect(codes: np.ndarray, at: int, alt: int, start: int, strand: int) -> str:
    """synonymous, missense or stop."""
    first = at - (at - start) % 3 if strand > 0 else at + (start - at) % 3
    codon = [int(codes[first + strand * i]) for i in range(3)]
    new = list(codon)
    new[abs(at - first)] = alt
    spelt = ["".join("ACGT"[b if strand > 0 else 3 - b] for b in one) for one in (codon, new)]
    old, now = (CODONS[one] for one in spelt)
    return "synonymous" if old == now else "stop" if "*" in (old, now) else "missense"


def main() -> None:
    ((name, codes),) = read_genome(SHARED / "genomes" / "ecoli_K12_MG1655.fa.gz").items()
    n, folder = len(codes), SHARED / "relatives" / "ecoli"
    with tempfile.TemporaryDirectory() as work:
        target = Path(work) / "target.fa"
        target.write_text(f">{name}\n{''.join('ACGT'[c] for c in codes)}\n")
        read = [read_strain(target, folder / f"{s}.fa.gz", n) for s in STRAINS]
    clear = np.all([covered == 1 for covered, _ in read], 0)
    bases = np.stack([np.where(base < 0, codes, base) for _, base in read])
    differs = (bases != codes).any(0)
    kind, frame = read_classes(folder / "MG1655_GCF_000005845.2.gff.gz", n)
    use = clear & (kind >= 0)
    rng = np.random.default_rng(SEED)
    snvs = rng.permutation(np.flatnonzero(use & differs))[:MOST]
    free: dict[tuple[int, int], np.ndarray] = {}
    for k in range(7):
        for b in range(4):
            free[k, b] = np.flatnonzero(use & ~differs & (kind == k) & (codes == b))
    taken: set[int] = set()
    with gzip.open(sys.argv[1], "wt") as out:
        out.write("chrom\tpos\tref\talt\tnatural\tkind\n")
        written = 0
        for at in np.sort(snvs).tolist():
            ref, other = int(codes[at]), bases[:, at]
            alt = int(np.bincount(other[other != ref], minlength=4).argmax())
            some = free[int(kind[at]), ref]
            lo, hi = np.searchsorted(some, (at - REACH, at + REACH))
            near = [i for i in some[lo:hi].tolist() if i not in taken]
            if not near:
                continue
            control = near[int(rng.integers(len(near)))]
            taken.add(control)
            for one, natural in ((at, 1), (control, 0)):
                effect = "intergenic"
                if kind[one]:
                    effect = name_effect(codes, one, alt, *frame[one])
                row = (name, one + 1, "ACGT"[ref], "ACGT"[alt], natural, effect)
                out.write("\t".join(map(str, row)) + "\n")
            written += 1
    print(written, "pairs;", int(use.sum()), "positions,", int((use & differs).sum()), "differ")


if __name__ == "__main__":
    main()
