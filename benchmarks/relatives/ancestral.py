"""Ancestral bases of yeast's natural SNPs, beside a genome that was left out, and their load.

    python benchmarks/relatives/ancestral.py OUT chrV chrXIV

SNPs are positions of the contigs at which one of four strains of S. cerevisiae has another base
than S288C, as their assemblies are aligned by genodiff itself. `genodiff score none` is told of
CBS432, S. arboricola and S. eubayanus; UFRJ50816 is left out, and decides: a SNP counts where it
has REF or one ALT. Written: OUT/snps.vcf, OUT/scored.vcf, OUT/load.tsv, OUT/ancestral.json.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import genodiff
from genodiff.alphabet import DNA
from genodiff.data.stretches import encode_bases
from genodiff.io.faidx import Genome
from genodiff.memory.column_rates import call_columns
from genodiff.memory.relatives import Relatives
from genodiff.runs.related_genome import relate_genome

SHARED = Path(os.environ["GENODIFF_SHARED"]) / "data"
FASTA = SHARED / "genomes" / "sacCer3.fa.gz"
YEASTS = SHARED / "relatives" / "yeast"
STRAINS = ("Scer_SK1", "Scer_DBVPG6044", "Scer_Y12", "Scer_YPS128")
TOLD = ("Spar_CBS432", "Sarb_H6", "Seub_FM1318_orfs")
LEFT_OUT = "Spar_UFRJ50816"
CONTEXT, STEP, BATCH = 1024, 512, 16


def list_files(names: tuple[str, ...]) -> list[Path]:
    return [YEASTS / f"{name}.fa.gz" for name in names]


def align(genome: Genome, contig: str, relatives: Relatives) -> np.ndarray:
    """(L, 1 + G): the column of each base of a contig, 4 where there is none."""
    codes = np.array(encode_bases(DNA.encode(genome.fetch(contig, 0, genome.contigs[contig]))))
    out = np.full((len(codes), 1 + len(relatives.genomes)), 4, np.uint8)
    starts = [*range(0, len(codes) - CONTEXT, STEP), len(codes) - CONTEXT]
    for first in range(0, len(starts), BATCH):
        some = starts[first : first + BATCH]
        windows = np.stack([codes[at : at + CONTEXT] for at in some])
        _, homologous = relatives.align_homologs(windows)
        for b, at in enumerate(some):
            low = 0 if at == 0 else CONTEXT // 4
            high = CONTEXT if at == starts[-1] else CONTEXT - CONTEXT // 4
            called = call_columns(homologous[:, b], windows[b])
            out[at + low : at + high] = called[low:high]
    return out


def list_snps(contig: str, columns: np.ndarray) -> Iterator[tuple[int, str]]:
    """Position and line of the VCF of each SNP."""
    differ = (columns[:, 1:] < 4) & (columns[:, 1:] != columns[:, :1]) & (columns[:, :1] < 4)
    for at in np.flatnonzero(differ.any(1)).tolist():
        ref, own = columns[at, 0], columns[at, 1:]
        alts = sorted({int(x) for x in own[differ[at]]})
        calls = ["." if x == 4 else "0" if x == ref else str(alts.index(int(x)) + 1) for x in own]
        letters = ",".join("ACGT"[x] for x in alts)
        rest = "\t".join(["0", *calls])
        yield at, f"{contig}\t{at + 1}\t.\t{'ACGT'[ref]}\t{letters}\t.\t.\t.\tGT\t{rest}"


def measure(rows: list[tuple[str, float, str]], bins: int = 10) -> dict[str, object]:
    """Share that is right, and expected calibration error; rows (base, probability, truth)."""
    right = np.array([base == truth for base, _, truth in rows])
    chance = np.array([p for _, p, _ in rows])
    at = np.minimum((chance * bins).astype(int), bins - 1)
    table = [
        {
            "from": b / bins, "n": int((at == b).sum()),
            "right": round(float(right[at == b].mean()), 4),
            "said": round(float(chance[at == b].mean()), 4),
        }
        for b in np.unique(at).tolist()
    ]  # fmt: skip
    error = sum(one["n"] * abs(one["right"] - one["said"]) for one in table) / len(rows)
    return {"n": len(rows), "right": right.mean().round(4), "ece": round(error, 4), "bins": table}


def main(out: Path, contigs: list[str]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    lines, truth = [], {}
    with Genome(FASTA) as genome:
        strains = relate_genome(genome, list_files(STRAINS), strains=True).relatives
        judge = relate_genome(genome, list_files((LEFT_OUT,))).relatives
        for contig in contigs:
            decided = align(genome, contig, judge)[:, 1]
            for at, line in list_snps(contig, align(genome, contig, strains)):
                lines.append(line)
                truth[contig, at + 1] = "ACGTN"[decided[at]]
        names = "\t".join(["S288C", *sorted(STRAINS)])
        head = ["##fileformat=VCFv4.2"]
        head += [f"##contig=<ID={name},length={genome.contigs[name]}>" for name in contigs]
    head += ['##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">']
    head += [f"#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t{names}"]
    (out / "snps.vcf").write_text("\n".join([*head, *lines]) + "\n")
    genodiff.score(
        "none", out / "snps.vcf", fasta=FASTA, relatives=list_files(TOLD), out=out / "scored.vcf",
        load=out / "load.tsv", force=True,
    )  # fmt: skip
    rows, unknown = [], 0
    for line in (out / "scored.vcf").read_text().splitlines():
        if line.startswith("#"):
            continue
        contig, pos, _, ref, alts, _, _, info, *_ = line.split("\t")
        said = dict(one.partition("=")[::2] for one in info.split(";"))
        base = truth[contig, int(pos)]
        if base not in (ref, *alts.split(",")):
            continue
        if "AA" not in said:
            unknown += 1
            continue
        rows.append((said["AA"], float(said["GD_AAP"]), base))
    told = {"snps": len(lines), "decided": len(rows) + unknown, "without_aa": unknown}
    told |= measure(rows)
    (out / "ancestral.json").write_text(json.dumps(told, indent=1) + "\n")
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
