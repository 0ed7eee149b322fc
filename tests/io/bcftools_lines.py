"""What of bcftools' own tests of `norm` and `consensus` is asked of us, and what is not, and why.

A line of COMMANDS.txt is known by its expected file and its arguments. The shared folder holds the
inputs and the expected files.
"""

import re
from pathlib import Path
from typing import NamedTuple

from tests.folders import SHARED

FOLDER = SHARED / "conformance" / "bcftools"

NOT_ASKED = {
    "-m +": "joins records; ours stay as they are, and each ALT has its own score",
    "-d": "drops duplicates; no record is dropped, and both spellings get the same score",
    "atomize": "cuts an MNV into SNVs; an MNV is scored as one change",
    "-c s": "writes the reference's letter over REF; a wrong REF is reported, never replaced",
    "consensus.tab": "masks regions of the sequence; scores have no mask",
    "IUPAC": "writes an ambiguity code for both alleles; a haplotype has one letter",
    "missing": "writes N or ? for a missing genotype; without a call nothing is changed",
    "absent": "writes N or . where no record stands; scores keep the reference's base",
    "mark": "marks changed letters in the output; a haplotype is letters alone",
    "symbolic": "applies <DEL>; symbolic alleles are reported and have no score",
    "chain": "writes a chain file for liftover",
    "pile": "chooses among overlapping calls of unphased genotypes without a haplotype",
    "sorted": "tests the order of the output; ours is the input's",
}


class Line(NamedTuple):
    """One line of COMMANDS.txt."""

    tool: str
    given: str
    expected: str
    fasta: str | None
    arguments: str


def read_lines() -> list[Line]:
    """All lines that run a test."""
    found = []
    for text in (FOLDER / "COMMANDS.txt").read_text().splitlines():
        match = re.match(r"run_test\(\\&test_vcf_(\w+),\$opts,(.*)\);$", text)
        if match is None:
            continue
        said = dict(re.findall(r"\b(in|out|fai|fa)=>'([^']*)'", match[2]))
        arguments = re.search(r"args=>(.*)$", match[2])
        fasta = said.get("fai") or (said["fa"].removesuffix(".fa") if "fa" in said else None)
        found.append(
            Line(match[1], said["in"], said["out"], fasta, arguments[1] if arguments else "")
        )
    return found


def read_sites(name: str) -> list[tuple[str, int, str, str]]:
    """CHROM, POS, REF and ALT of each row of a VCF."""
    rows = []
    for line in (FOLDER / name).read_text().splitlines():
        if line and not line.startswith("#"):
            chrom, pos, _, ref, alt = line.split("\t")[:5]
            rows.append((chrom, int(pos), ref, alt))
    return rows


def path_of(name: str) -> Path:
    return FOLDER / name
