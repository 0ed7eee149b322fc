"""The measured variants of `benchmarks/variants`: one reader for each data set, in one registry.

A direction is written down here, before anything is scored, and no figure turns it round.
"""

import csv
import gzip
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from genodiff.io.faidx import Genome

FLANK = 24
"""Bases on either side of a variant that the counting baselines read."""
CONTEXT = 92
"""Bases of genome on either side of an edited insert."""
ELEMENTS = (
    "F9", "GP1BA", "HBB", "HBG1", "HNF4A", "LDLR", "MSMB", "PKLR-24h", "TERT-GBM",
    "IRF4", "IRF6", "MYCrs6983267", "SORT1", "ZFAND3",
)  # fmt: skip
"""The nine promoters and five enhancers of CAGI5, each in one cell line and one release."""
_TURN = str.maketrans("ACGT", "TGCA")


@dataclass
class Examples:
    """Variants with what was measured of them.

    `truth` is a value, or 0 and 1. `block` names what hangs together, and is resampled whole.
    `rows` are (chrom, pos from 1, ref, alt) of `fasta`; without it `before` and `after` are scored.
    `known` are columns that came with the data, in the direction that is expected. `places` are
    genome coordinates (contig, start from 0), none where there are none.
    """

    truth: np.ndarray
    block: list[str]
    before: list[str]
    after: list[str]
    rows: list[tuple[str, int, str, str]] = field(default_factory=list)
    fasta: Path | None = None
    known: dict[str, np.ndarray] = field(default_factory=dict)
    places: list[tuple[str, int]] = field(default_factory=list)
    strata: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.truth)


@dataclass(frozen=True)
class VariantSet:
    """A data set: how it is read, which run scores it, and what is expected of a score."""

    name: str
    run: str  # yeast | human
    read: Callable[[Path, Path, int, int], Examples]
    expected: str  # in words
    gc_sign: int  # of GC(alt) - GC(ref), beside a score of sign +
    classes: bool
    source: str
    note: str


def pick(n: int, limit: int, seed: int) -> np.ndarray:
    """The rows that are kept of n, in order: all, or `limit` drawn without replacement."""
    if n <= limit:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, limit, replace=False))


def reverse_complement(sequence: str) -> str:
    return sequence.translate(_TURN)[::-1]


def cut_pairs(genome: Genome, rows: list[tuple[str, int, str, str]]) -> tuple[list[str], list[str]]:
    """REF and ALT with FLANK bases on either side, fewer at the ends of a contig."""
    before, after = [], []
    for chrom, pos, ref, alt in rows:
        start = pos - 1
        left = genome.fetch(chrom, max(start - FLANK, 0), start).decode().upper()
        end = min(start + len(ref) + FLANK, genome.contigs[chrom])
        right = genome.fetch(chrom, start + len(ref), end).decode().upper()
        before.append(left + ref + right)
        after.append(left + alt + right)
    return before, after


def name_blocks(positions: list[int], gap: int) -> list[str]:
    """A name for each position; positions at most `gap` apart, in a chain, share one."""
    order = np.argsort(positions, kind="stable")
    names, block, last = [""] * len(positions), -1, None
    for i in order.tolist():
        if last is None or positions[i] - last > gap:
            block += 1
        names[i], last = f"block{block}", positions[i]
    return names


def read_brca1(data: Path, work: Path, limit: int, seed: int) -> Examples:
    """Function scores of 3,893 SNVs of BRCA1; blocks are stretches with no gap above 100 bases."""
    table = pl.read_parquet(data / "variants/brca1_sge_findlay2018.parquet")
    rows = [
        (f"chr{c}", p, r, a)
        for c, p, r, a in table.select("chromosome", "pos_hg38", "ref", "alt").iter_rows()
    ]
    fasta = data / "genomes/hg38_sparse.fa.gz"
    with Genome(fasta) as genome:
        before, after = cut_pairs(genome, rows)
    known = {
        "CADD (supervised, came with the data)": -table["CADD"].to_numpy(),
        "phyloP (conservation, came with the data)": -table["phyloP"].to_numpy(),
    }
    return Examples(
        table["function_score"].to_numpy(), name_blocks([row[1] for row in rows], 100), before,
        after, rows, fasta, known, [(row[0], row[1] - 1) for row in rows],
    )  # fmt: skip


def read_mpra(data: Path, work: Path, limit: int, seed: int) -> Examples:
    """log2 effects of single substitutions in 14 elements (GRCh38, 10 barcodes or more)."""
    fasta = work / "elements.fa"
    starts, lines = {}, []
    for line in (data / "variants/mpra_saturation_elements_ref.fa").read_text().splitlines():
        if line.startswith(">"):
            name, place, *_ = line[1:].split()
            starts[name] = int(place.split(":")[1].split("-")[0])
            lines.append(f">{name}")
        else:
            lines.append(line)
    fasta.write_text("\n".join(lines) + "\n")
    found = []
    with gzip.open(data / "variants/mpra_saturation_elements.tsv.gz", "rt") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            taken = row["Release"] == "GRCh38" and row["Element"] in ELEMENTS
            single = len(row["Ref"]) == len(row["Alt"]) == 1 and row["Alt"] in "ACGT"
            if taken and single and int(row["Barcodes"]) >= 10:
                found.append(row)
    kept = [found[i] for i in pick(len(found), 4 * limit, seed).tolist()]
    rows = [
        (r["Element"], int(r["Pos"]) - starts[r["Element"]] + 1, r["Ref"], r["Alt"]) for r in kept
    ]
    with Genome(fasta) as genome:
        before, after = cut_pairs(genome, rows)
    return Examples(
        np.array([float(r["Coefficient"]) for r in kept]), [r["Element"] for r in kept], before,
        after, rows, fasta, places=[(f"chr{r['Chrom']}", int(r["Pos"]) - 1) for r in kept],
        strata=[r["Element"] for r in kept],
    )  # fmt: skip


def read_scan(path: Path) -> tuple[list[str], np.ndarray, str]:
    """Sequences (U read as T) and scores of a deep mutational scan, and the wild type.

    The wild type is a sequence with its mutations undone. Rows without a score are left out.
    """
    with gzip.open(path, "rt") as file:
        rows = [row for row in csv.DictReader(file) if row["DMS_score"]]
    wild = list(rows[-1]["sequence"])
    for change in filter(None, rows[-1]["mutant"].split(",")):
        wild[int(change[1:-1]) - 1] = change[0]
    return (
        [row["sequence"].upper().replace("U", "T") for row in rows],
        np.array([float(row["DMS_score"]) for row in rows]),
        "".join(wild).upper().replace("U", "T"),
    )


def place_scan(
    sequences: list[str],
    scores: np.ndarray,
    genome: Genome,
    place: tuple[str, int, int],
    limit: int,
    seed: int,
) -> Examples:
    """Edited inserts of one length in the genome's context; `place` is (contig, start, strand)."""
    contig, start, strand = place
    size = len(sequences[0])
    whole = genome.fetch(contig, start - CONTEXT, start + size + CONTEXT).decode().upper()
    if strand < 0:
        whole = reverse_complement(whole)
    wild = whole[CONTEXT : CONTEXT + size]
    usable = [i for i, s in enumerate(sequences) if len(s) == size and s != wild]
    kept = [usable[i] for i in pick(len(usable), limit, seed).tolist()]
    after = [whole[:CONTEXT] + sequences[i] + whole[CONTEXT + size :] for i in kept]
    return Examples(
        scores[kept], [f"row{i}" for i in kept], [whole] * len(kept), after,
        places=[(contig, start)] * len(kept),
    )  # fmt: skip


def read_trna(data: Path, work: Path, limit: int, seed: int) -> Examples:
    """Fitness of edited copies of one yeast tRNA, in the place of its gene on chrX."""
    sequences, scores, wild = read_scan(data / "dms/Domingo_2018_tRNA.csv.gz")
    with Genome(data / "genomes/sacCer3.fa.gz") as genome:
        return place_scan(
            sequences, scores, genome, find_wild(genome, wild, "chrX", 538554), limit, seed
        )


def read_core_promoters(data: Path, work: Path, limit: int, seed: int) -> Examples:
    """Expression of other core promoters in the place of one of yeast, on chrV."""
    sequences, scores, wild = read_scan(data / "dms/Shai_2015_promoter.csv.gz")
    with Genome(data / "genomes/sacCer3.fa.gz") as genome:
        return place_scan(
            sequences, scores, genome, find_wild(genome, wild, "chrV", 167569), limit, seed
        )


def find_wild(genome: Genome, wild: str, contig: str, near: int) -> tuple[str, int, int]:
    """Where the wild type stands, within 300 bases of `near`: (contig, start from 0, strand).

    It is the stretch, on either strand, that differs from it least; more than 3 are an error.
    """
    target, size, found = np.array(list(wild)), len(wild), []
    for start in range(max(near - 300, 0), min(near + 300, genome.contigs[contig] - size) + 1):
        here = genome.fetch(contig, start, start + size).decode().upper()
        for strand in (1, -1):
            one = np.array(list(here if strand > 0 else reverse_complement(here)))
            found.append((int((target != one).sum()), start, strand))
    differ, start, strand = min(found)
    if differ > 3:
        raise ValueError(f"the wild type is not near {contig}:{near}: {differ} bases differ")
    return contig, start, strand


def read_drift(data: Path, work: Path, limit: int, seed: int) -> Examples:
    """Change of expression of yeast promoters by one to three mutations; blocks share a base.

    The table's names are swapped: `evol_measured` belongs to `original_seq`, the base, and
    `original_measured` to `seq`, the mutant. The effect is mutant minus base.
    """
    with gzip.open(data / "promoters/yeast/Drift_pairs_complex.tsv.gz", "rt") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    rows = [rows[i] for i in pick(len(rows), 2 * limit, seed).tolist()]
    return Examples(
        np.array([float(r["original_measured"]) - float(r["evol_measured"]) for r in rows]),
        [r["original_seq"] for r in rows],
        [r["original_seq"] for r in rows],
        [r["seq"] for r in rows],
        known={
            "Vaishnav's network (supervised, came with the data)": np.array(
                [float(r["original_predicted"]) - float(r["evol_predicted"]) for r in rows]
            )
        },
    )


def read_dbsnp(data: Path, work: Path, limit: int, seed: int) -> Examples:
    """Common (5 % or more) and as many rare (0.1 % or less) SNVs of chr21:25-26 Mb, ALT minor."""
    table = pl.read_parquet(data / "variants/dbsnp_ensembl_hg38_chr21_25M-26M.parquet").filter(
        pl.col("is_snv") & (pl.col("failed") == "0") & (pl.col("strand") == 1)
        & (pl.col("minor_allele") == pl.col("alts")) & (pl.col("ref").str.len_chars() == 1)
        & (pl.col("minor_allele_freq") > 0) & (pl.col("start") < 26_000_000)
    )  # fmt: skip
    fasta = data / "genomes/hg38_sparse.fa.gz"
    common = table.filter(pl.col("minor_allele_freq") >= 0.05)
    rare = table.filter(pl.col("minor_allele_freq") <= 0.001)
    n = min(len(common), len(rare), limit // 2)
    both = pl.concat(
        [common[pick(len(common), n, seed).tolist()], rare[pick(len(rare), n, seed).tolist()]]
    ).sort("start")
    rows = [(c, p, r, a) for c, p, r, a in both.select("chrom", "start", "ref", "alts").iter_rows()]
    with Genome(fasta) as genome:
        keep = [
            genome.fetch(c, p - 1, p).decode().upper() == r for c, p, r, _ in rows
        ]  # some reference alleles are of an older release
        rows = [row for row, good in zip(rows, keep, strict=True) if good]
        both = both.filter(pl.Series(keep))
        before, after = cut_pairs(genome, rows)
    with gzip.open(data / "genomes/annotation/hg38_epdnew_tss.bed.gz", "rt") as file:
        fields = [line.split() for line in file]
    tss = np.array([int(f[1]) for f in fields if f[0] == "chr21"])
    away = np.array([int(np.abs(tss - row[1]).min()) for row in rows], float)
    return Examples(
        (both["minor_allele_freq"].to_numpy() >= 0.05).astype(float),
        [str(row[1] // 10_000) for row in rows], before, after, rows, fasta,
        {"distance to the nearest TSS (EPDnew)": away}, [(row[0], row[1] - 1) for row in rows],
    )  # fmt: skip


SETS = {
    one.name: one
    for one in (
        VariantSet(
            "brca1", "human", read_brca1, "likelier alternatives function better: +", 1, False,
            "Findlay et al. 2018, Nature 562:217", "AUROC and AUPRC are of LOF against FUNC and "
            "INT, told by a lower score.",
        ),
        VariantSet(
            "mpra", "human", read_mpra, "likelier alternatives keep activity: +", 1, False,
            "Kircher et al. 2019, Nat Commun 10:3583",
            "Ranks are taken within an element; the context is the element alone.",
        ),
        VariantSet(
            "core_promoters", "yeast", read_core_promoters,
            "likelier promoters express more: +", -1, False,
            "Shalem et al. 2015, PLoS Genet 11:e1005147",
            "One place: nearly all sequences differ from its promoter at half of the bases or "
            "more. So they are other promoters, and the interval is over them, not over places.",
        ),
        VariantSet(
            "trna", "yeast", read_trna, "likelier genes are fitter: +", 1, False,
            "Domingo et al. 2018, Nature 558:117",
            "One gene, so the interval is over its edited copies, not over genes.",
        ),
        VariantSet(
            "drift", "yeast", read_drift, "likelier promoters express more: +", -1, False,
            "Vaishnav et al. 2022, Nature 603:455; pairs of LegNet",
            "The promoters are designed: no genome stands around them.",
        ),
        VariantSet(
            "dbsnp", "human", read_dbsnp, "common alternatives are likelier than rare ones: +", 1,
            True, "dbSNP 149/150 with 1000 Genomes frequencies, through Ensembl",
            "Positives are common, half of all. Distance to the TSS: farther is more common.",
        ),
    )
}  # fmt: skip
PUBLISHED = {
    "drift": "absolute Pearson of the same pairs, from the field note (measured there): LegNet "
    ".902, Vaishnav .877, 5-mer ridge .511, GC .299",
}
