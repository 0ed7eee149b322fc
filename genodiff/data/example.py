"""A small made-up genome with two related genomes, genes, and variants of a population.

It is drawn from a seed, so the same files are written on every machine, and nothing is fetched. A
genome is evolved along the tree ((genome, near), far) by mutations of HKY85, each kept with a
probability that depends on what stands there: all of those between genes and those that leave an
amino acid as it is, a tenth of those that change one or hit a conserved element, none of stops and
splice sites. The near genome is in pieces and partly on the other strand, both have insertions and
deletions: they are not aligned.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from Bio.Data.CodonTable import standard_dna_table
from numpy.typing import NDArray

from genodiff.io import atomic
from genodiff.io.target import check_target

GENOME, NEAR, FAR, GENES, VARIANTS = (
    "genome.fa", "near.fa", "far.fa", "genes.gff3", "variants.vcf",
)  # fmt: skip
_CONTIGS = {"chr1": 70_000, "chr2": 30_000}
_SHARE = np.array([0.31, 0.19, 0.19, 0.31])
_KAPPA = 2.5
_BRANCHES = {"genome": 0.05, "near": 0.07, "stem": 0.06, "far": 0.22}
_STEP = 0.01
_SLOW, _UTR = 0.1, 0.6
_SITES, _SAMPLES = 900, 6
_LETTERS = np.array(list("ACGT"))
_CODE: Any = standard_dna_table
_STOPS, _ACID_OF = tuple(_CODE.stop_codons), _CODE.forward_table

Bases = NDArray[np.int64]


@dataclass
class _Layout:
    """A contig: its bases, how much of all mutations is kept, the codon that each base is in."""

    bases: Bases
    keep: NDArray[np.float64]
    codon: Bases
    """(n, 3): the codon's positions in the order of reading; -1 outside."""
    genes: list[tuple[int, int, int, list[tuple[int, int]]]] = field(default_factory=list)
    """Start, end, strand, and the parts of the CDS by place."""


def make_example(seed: int = 1) -> dict[str, str]:
    """The text of each file by its name."""
    rng = np.random.Generator(np.random.PCG64(seed))
    genomes: dict[str, dict[str, str]] = {GENOME: {}, NEAR: {}, FAR: {}}
    features, rows = ["##gff-version 3"], list[str]()
    for contig, length in _CONTIGS.items():
        root = _lay_out(length, rng)
        stem = _evolve(root, root.bases, _BRANCHES["stem"], rng)
        bases = _evolve(root, stem, _BRANCHES["genome"], rng)
        near = _evolve(root, stem, _BRANCHES["near"], rng)
        far = _evolve(root, root.bases, _BRANCHES["far"], rng)
        rows += _draw_variants(contig, root, bases, rng)
        genomes[GENOME][contig] = _spell(bases)
        near = _shift(root, near, 0.07, rng)
        half = len(near) // 2
        genomes[NEAR][f"{contig}_a"] = _spell(3 - near[:half][::-1])
        genomes[NEAR][f"{contig}_b"] = _spell(near[half:])
        genomes[FAR][f"scaffold_{contig}"] = _spell(_shift(root, far, 0.2, rng))
        features += _list_features(contig, root)
    head = ["##fileformat=VCFv4.2"]
    head += [f"##contig=<ID={name},length={n}>" for name, n in _CONTIGS.items()]
    head += ['##INFO=<ID=TRUE_AA,Number=1,Type=String,Description="Ancestral base, as simulated">']
    head += ['##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">']
    samples = "\t".join(f"sample{i}" for i in range(1, _SAMPLES + 1))
    head += [f"#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t{samples}"]
    made = {
        name: "".join(f">{contig}\n{_wrap(letters)}" for contig, letters in contigs.items())
        for name, contigs in genomes.items()
    }
    return {**made, GENES: "\n".join(features) + "\n", VARIANTS: "\n".join([*head, *rows]) + "\n"}


def write_example(folder: Path, *, seed: int = 1, force: bool = False) -> list[Path]:
    """Write the files that lack, and return all paths. Raises `UsageError`, `MachineError`."""
    paths = {folder / name: text for name, text in make_example(seed).items()}
    waiting = {
        path: text for path, text in paths.items()
        if not path.is_file() or path.read_bytes() != text.encode()
    }  # fmt: skip
    for path in waiting:
        check_target(path, force=force)
    for path, text in waiting.items():
        atomic.write_text(path, text)
    return list(paths)


def _lay_out(length: int, rng: np.random.Generator) -> _Layout:
    letters, none = rng.choice(4, length, p=_SHARE), np.full((length, 3), -1, np.int64)
    made = _Layout(letters, np.ones(length), none)
    at = int(rng.integers(200, 500))
    while at < length - 3000:
        at = _put_gene(made, at, rng)
        size = int(rng.integers(60, 140))
        made.keep[at + 120 : at + 120 + size] = _SLOW
        at += 120 + size + int(rng.integers(100, 500))
    return made


def _put_gene(made: _Layout, at: int, rng: np.random.Generator) -> int:
    """A gene from `at` on; where it ends."""
    strand, n = (1 if rng.random() < 0.5 else -1), int(rng.integers(120, 450))
    codons = list(_ACID_OF)
    weights = np.array([np.prod([_SHARE["ACGT".index(b)] for b in c]) for c in codons])
    drawn = rng.choice(len(codons), n, p=weights / weights.sum())
    text = "ATG" + "".join(codons[i] for i in drawn) + _STOPS[int(rng.integers(3))]
    coding = np.array(["ACGT".index(b) for b in text])
    utr, first = int(rng.integers(40, 120)), len(text)
    intron = int(rng.integers(80, 300)) if rng.random() < 0.3 else 0
    if intron:
        first = int(rng.integers(60, len(text) - 60))
    start = at + utr
    end = start + len(text) + intron
    exons = (start, start + first), (start + first + intron, end)
    places = np.concatenate([np.arange(*exon) for exon in exons])
    parts = [(start, start + first), (start + first + intron, end)]
    if strand < 0:
        mirror = start + end - 1
        places, parts = mirror - places, sorted((mirror + 1 - b, mirror + 1 - a) for a, b in parts)
        coding = 3 - coding
    made.keep[at : end + utr] = _UTR
    made.keep[start:end] = 1.0
    made.bases[places] = coding
    made.codon[places] = np.repeat(places.reshape(-1, 3), 3, axis=0)
    if intron:
        gap = np.arange(parts[0][1], parts[1][0])
        sites = np.array([gap[0], gap[1], gap[-2], gap[-1]])
        made.bases[sites] = [2, 3, 0, 2] if strand > 0 else [1, 3, 0, 1]
        made.keep[sites] = 0
    made.keep[places[:3]] = made.keep[places[-3:]] = 0
    made.genes.append((at, end + utr, strand, [one for one in parts if one[0] < one[1]]))
    return end + utr


def _evolve(root: _Layout, bases: Bases, length: float, rng: np.random.Generator) -> Bases:
    """The bases after a branch of `length` substitutions a neutral position."""
    bases = bases.copy()
    for _ in range(round(length / _STEP)):
        sites = np.flatnonzero(rng.random(len(bases)) < 1.5 * _STEP)
        for site, new, u in zip(
            sites.tolist(), _mutate(bases[sites], rng).tolist(), rng.random(len(sites)), strict=True
        ):
            if new != bases[site] and u < _keep(root, bases, site, new):
                bases[site] = new
    return bases


def _mutate(old: Bases, rng: np.random.Generator) -> Bases:
    flow = np.tile(_SHARE, (4, 1))
    bases = np.arange(4)
    flow[(bases[:, None] ^ bases) == 2] *= _KAPPA
    np.fill_diagonal(flow, 0)
    flow /= flow.sum(1).max()
    np.fill_diagonal(flow, 1 - flow.sum(1))
    return np.asarray((rng.random((len(old), 1)) > flow.cumsum(1)[old]).sum(1).clip(max=3))


def _keep(root: _Layout, bases: Bases, site: int, new: int) -> float:
    """The probability that a mutation lasts."""
    codon = root.codon[site]
    if codon[0] < 0 or root.keep[site] == 0:
        return float(root.keep[site])
    way = codon[1] > codon[0] or codon[2] > codon[1]
    letters = ["ACGT"[b if way else 3 - b] for b in bases[codon].tolist()]
    before = _ACID_OF.get("".join(letters))
    letters[codon.tolist().index(site)] = "ACGT"[new if way else 3 - new]
    after = _ACID_OF.get("".join(letters))
    return 1.0 if after == before else 0.0 if after is None else _SLOW


def _shift(root: _Layout, bases: Bases, far: float, rng: np.random.Generator) -> Bases:
    """With insertions and deletions of a few bases where mutations are kept, outside of genes."""
    free = (root.keep == 1) & (root.codon[:, 0] < 0)
    parts, last = [], 0
    for site in np.flatnonzero(free & (rng.random(len(bases)) < 0.04 * far)).tolist():
        if site < last:
            continue
        size = int(rng.geometric(0.4))
        parts.append(bases[last:site])
        last = site
        if rng.random() < 0.5:
            parts.append(rng.choice(4, size, p=_SHARE))
        else:
            last = site + size
    return np.concatenate([*parts, bases[last:]])


def _draw_variants(contig: str, root: _Layout, bases: Bases, rng: np.random.Generator) -> list[str]:
    """Rows of a VCF: sites at which the population has two bases; where the genome that was drawn
    of it has the derived one, `bases` are changed.
    """
    n = round(_SITES * len(bases) / sum(_CONTIGS.values()))
    rows: list[tuple[int, str]] = []
    for site in rng.permutation(len(bases)).tolist():
        if len(rows) == n:
            break
        old = int(bases[site])
        new = int(_mutate(np.array([old]), rng)[0])
        if new == old or rng.random() > _keep(root, bases, site, new):
            continue
        q = float(np.exp(rng.uniform(np.log(0.04), np.log(0.9))))
        derived, carries = rng.random() < q, rng.random((_SAMPLES, 2)) < q
        if derived:
            bases[site], carries = new, ~carries
        if not carries.any():
            continue
        ref, alt = (_LETTERS[b] for b in ((new, old) if derived else (old, new)))
        calls = "\t".join(f"{int(a)}/{int(b)}" for a, b in carries)
        info = f"TRUE_AA={_LETTERS[old]}"
        rows.append((site, f"{contig}\t{site + 1}\t.\t{ref}\t{alt}\t.\tPASS\t{info}\tGT\t{calls}"))
    return [row for _, row in sorted(rows)]


def _list_features(contig: str, root: _Layout) -> list[str]:
    rows = []
    for number, (start, end, strand, parts) in enumerate(root.genes, 1):
        name, way = f"{contig}_g{number}", "+" if strand > 0 else "-"
        head = f"{contig}\tgenodiff"
        rows.append(f"{head}\tgene\t{start + 1}\t{end}\t.\t{way}\t.\tID={name}")
        rows.append(f"{head}\tmRNA\t{start + 1}\t{end}\t.\t{way}\t.\tID={name}.1;Parent={name}")
        edges = [start, *[edge for part in parts for edge in part][1:-1], end]
        for a, b in zip(edges[::2], edges[1::2], strict=True):
            rows.append(f"{head}\texon\t{a + 1}\t{b}\t.\t{way}\t.\tParent={name}.1")
        skip, phases = 0, {}
        for part in parts if strand > 0 else parts[::-1]:
            phases[part] = skip
            skip = (3 - (part[1] - part[0] - skip) % 3) % 3
        for part in parts:
            row = f"{head}\tCDS\t{part[0] + 1}\t{part[1]}\t.\t{way}\t{phases[part]}\t"
            rows.append(f"{row}ID={name}.cds;Parent={name}.1")
    return rows


def _spell(bases: Bases) -> str:
    return "".join(_LETTERS[bases])


def _wrap(letters: str) -> str:
    return "".join(f"{letters[at : at + 80]}\n" for at in range(0, len(letters), 80))
