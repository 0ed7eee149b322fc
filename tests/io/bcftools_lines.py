"""bcftools' own tests of `norm` and `consensus`: those that apply here, and why others do not.

Each line of COMMANDS.txt is known by its expected file and arguments. The shared folder holds the
inputs and the expected files.
"""

import re
from typing import NamedTuple

from tests.folders import SHARED

FOLDER = SHARED / "conformance" / "bcftools"

JOINS = "joins records into one, of calls that are on no known copy; ours stay as they are"
DROPS = "drops records by site, also one whose ALT a copy carries; no record is dropped"
ATOMS = "cuts an MNV into SNVs, of calls that are on no known copy; it is scored as one change"
CHAIN = "writes a chain file for liftover"
IUPAC = "writes an ambiguity code for both alleles; a haplotype has one letter"
ABSENT = "writes N or . where no record stands; a haplotype has the genome's letters there"
MARKS = "marks what is changed; a haplotype is letters alone"
SYMBOLIC = "every difference is a symbolic allele, which is reported and has no score"

NOT_ASKED = [
    ("norm", r"-m ?\+", JOINS),
    ("norm", r"-d ", DROPS),
    ("norm", r"^(q\[|\[?')?(-a |--atomize|-m -any --old)", ATOMS),
    ("consensus_chain", "", CHAIN),
    ("consensus", r"--mark-snv :|--mark-del \.|--mask-with", MARKS),
    ("consensus", r"-I\b|-H I|-s smpl|-s b|b\.txt", IUPAC),
    ("consensus", r"-a |--missing|a\.txt", ABSENT),
]
"""Tool, arguments and the reason."""
NOT_ASKED_FILES = {
    "consensus20.2.out": IUPAC,
    "consensus.13.out": SYMBOLIC,
    "consensus22.1.out": "cuts the genome by region, and says what of a <DEL> is left",
    "consensus22.3.out": "cuts the genome by region, and says what of a <DEL> is left",
}


class Line(NamedTuple):
    """One line of COMMANDS.txt."""

    tool: str
    given: str
    expected: str
    fasta: str | None
    arguments: str

    @property
    def not_asked(self) -> str | None:
        """Why it is not asked of us."""
        for tool, pattern, reason in NOT_ASKED:
            if tool == self.tool and re.search(pattern, self.arguments):
                return reason
        return NOT_ASKED_FILES.get(self.expected)


def read_lines() -> list[Line]:
    """All lines that run a test."""
    found = []
    for text in (FOLDER / "COMMANDS.txt").read_text().splitlines():
        match = re.match(r"run_test\(\\&test_vcf_(\w+),\$opts,(.*)\);$", text)
        if match is None:
            continue
        said = dict(re.findall(r"\b(in|out|fai|fa)=>'([^']*)'", match[2]))
        arguments = re.search(r"args=>(.*)$", match[2])
        fasta = f"{said['fai']}.fa" if "fai" in said else said.get("fa")
        found.append(
            Line(match[1], said["in"], said["out"], fasta, arguments[1] if arguments else "")
        )
    return found


def read_sites(name: str) -> list[tuple[str, int, str, str]]:
    """CHROM, POS, REF and ALT of each row of a VCF, in upper case."""
    rows = []
    for line in (FOLDER / name).read_text().splitlines():
        if line and not line.startswith("#"):
            chrom, pos, _, ref, alt = line.split("\t")[:5]
            rows.append((chrom, int(pos), ref.upper(), alt.upper()))
    return rows


def read_sequences(name: str) -> dict[str, str]:
    """The records of a FASTA file, by the whole line of their name."""
    found: dict[str, str] = {}
    for part in (FOLDER / name).read_text().split(">")[1:]:
        head, _, body = part.partition("\n")
        found[head.strip()] = "".join(body.split())
    return found
