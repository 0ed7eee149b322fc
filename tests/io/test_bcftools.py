"""bcftools' own tests of `norm` and `consensus` (in the shared folder): our normalised records and
haplotypes are its expected files, but for those that do not apply here, with the reason.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import pytest

from genodiff.io.faidx import Genome
from genodiff.io.phasing import PhasedHaplotype, RecordPhaser, read_genotype
from genodiff.io.variant_source import read_vcf
from genodiff.io.variants import Allele, Unscorable, VariantRecord, anchor_allele, judge_record
from tests.consensus import Change, apply_changes, choose_change, leave_out_overlaps
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


pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no shared folder here")
ASKED = [line for line in (read_lines() if FOLDER.is_dir() else []) if line.not_asked is None]


def records_of(line: Line) -> Iterator[VariantRecord]:
    return read_vcf(FOLDER / f"{line.given}.vcf")[1]


@pytest.fixture
def genome(request, tmp_path):
    """The FASTA of a line, without the trailing line that is no sequence."""
    (line,) = (one for one in request.node.callspec.params.values() if isinstance(one, Line))
    found = read_sequences(str(line.fasta)).items()
    rows = (f">{name.split()[0]}\n{''.join(filter(str.isalpha, text))}\n" for name, text in found)
    (tmp_path / "ref.fa").write_text("".join(rows))
    return Genome(tmp_path / "ref.fa")


def lines(tool: str, *, aligned: bool) -> list[pytest.param]:  # type: ignore[valid-type]
    some = [one for one in ASKED if one.tool == tool and (one.fasta is not None) == aligned]
    return [pytest.param(one, id=one.expected) for one in some]


def test_every_line_is_asked_or_has_a_reason():
    every = read_lines()
    assert len(every) == 96
    assert len(ASKED) == 44
    assert all(one.not_asked for one in every if one not in ASKED)


@pytest.mark.parametrize("line", lines("norm", aligned=False))
def test_splitting(line):
    ours = [(r.chrom, r.pos, r.ref.upper(), a.upper()) for r in records_of(line)
            for a in r.alts or (".",)]  # fmt: skip
    # With -i, what is not chosen stays as it is
    expected = [
        (c, p, r, a) for c, p, r, alts in read_sites(line.expected) for a in alts.split(",")
    ]
    assert Counter(ours) == Counter(expected)


@pytest.mark.parametrize("line", lines("norm", aligned=True))
def test_left_alignment_and_reference_check(line, genome):
    found = [(record, judge_record(record, genome)) for record in records_of(line)]
    if line.given == "norm.check-ref":
        assert [judged for _, judged in found] == [[Unscorable.REF]]
        return
    ours = Counter(
        (one.chrom, *anchor_allele(one, genome))
        for _, judged in found
        for one in judged
        if isinstance(one, Allele)
    )
    expected = Counter()
    for chrom, pos, ref, alts in read_sites(line.expected):
        there = VariantRecord(
            0, chrom, pos, ".", ref, () if alts == "." else tuple(alts.split(","))
        )
        for alt, one in zip(there.alts, judge_record(there, genome), strict=False):
            if isinstance(one, Allele):
                # Already aligned, alone or, where it was not split, with the other ALTs
                alone = (chrom, *anchor_allele(one, genome))
                assert len(there.alts) > 1 or alone == (chrom, pos, ref, alt)
                expected[alone] += 1
    replaced = sum(Unscorable.AMBIGUOUS in judged for _, judged in found)
    missing = expected - ours
    assert not ours - expected
    assert missing.total() <= (replaced if "-c s" in line.arguments else 0)
    assert ours or "-c s" in line.arguments or line.given in ("norm.telomere", "norm.breakend.1")


@pytest.mark.parametrize("line", lines("consensus", aligned=True))
def test_haplotypes(line):
    genome, expected = read_sequences(str(line.fasta)), read_sequences(line.expected)
    header, records = (None, []) if line.given == "empty" else (
        read_vcf(FOLDER / f"{line.given}.vcf")[0], list(records_of(line)))  # fmt: skip
    compared = 0
    for name, letters in genome.items():
        contig, _, span = name.partition(":")
        first = int(span.partition("-")[0]) - 1 if span else 0
        changes, symbolic = [], False
        for record in records:
            end = record.pos - 1 + len(record.ref)
            inside = first < record.pos and end <= first + len(letters)
            if record.chrom != contig or not inside:
                continue
            allele = choose_allele(line, record, header.samples if header else [])
            change = choose_change(record, allele)
            changes += [] if change is None else [blend(line, record, change)]
            symbolic |= bool(allele) and record.alts[(allele or 1) - 1] == "<DEL>"
        if symbolic:
            continue
        ours = apply_changes(letters, first, leave_out_overlaps(changes)).upper()
        wanted = expected[("xx_" if "xx_" in line.arguments else "") + name].upper()
        wanted = wanted.replace("-", "")  # what --mark-del leaves of a deletion
        if line.expected == "consensus.2.out":  # regions of the genome are masked by N
            assert 0 < wanted.count("N") < 150
            wanted = "".join(
                one if base == "N" else base for one, base in zip(ours, wanted, strict=True)
            )
        assert ours == "".join(
            letters[i].upper() if base == "?" else base for i, base in enumerate(wanted)
        )
        compared += 1
    assert compared


CODES = {"AC": "M", "AG": "R", "AT": "W", "CG": "S", "CT": "Y", "GT": "K"}


def blend(line: Line, record: VariantRecord, change: Change) -> Change:
    """With -H NpIu, a call that is not phased has an ambiguity code."""
    genotype = read_genotype(record, 0) if "pIu" in line.arguments else None
    if genotype is None or genotype.phased:
        return change
    return change._replace(alt=CODES["".join(sorted((change.ref, change.alt)))])


@pytest.mark.parametrize(
    "line", [pytest.param(one, id=one.expected) for one in ASKED if "-H " in one.arguments
             and one.arguments.split("-H ")[1][0].isdigit()]
)  # fmt: skip
def test_haplotypes_that_are_scored_have_the_letters_of_their_copy(line, tmp_path):
    wanted_copy = int(line.arguments.split("-H ")[1][0]) - 1
    records = list(records_of(line))
    found = 0
    for number, (name, letters) in enumerate(read_sequences(str(line.fasta)).items()):
        contig, _, span = name.partition(":")
        first = int(span.partition("-")[0]) - 1 if span else 0
        path = tmp_path / f"{number}.fa"
        path.write_text(f">{contig}\n{letters}\n")
        moved = [
            replace(one, pos=one.pos - first)
            for one in records
            if one.chrom == contig and one.pos - 1 + len(one.ref) <= first + len(letters)
        ]
        with Genome(path) as genome:
            phased = list(RecordPhaser(genome, len(letters), line.given).phase(moved))
        told: dict[int, PhasedHaplotype] = {}
        spelled = []
        for one in phased:
            for copy, call in enumerate(one.calls[0] if one.calls else ()):
                if copy == wanted_copy and call.haplotype is not None:
                    told[id(call.haplotype)] = call.haplotype
                    change = choose_change(one.record, call.alt)
                    spelled += [change] if change else []
        assert not any(one.overlaps for one in told.values())
        ours = [Change(a.start, a.ref, a.alt) for one in told.values() for a in one.alleles]
        # `test_haplotypes` compares the letters of these records with the expected file
        kept = leave_out_overlaps(spelled)
        assert len(kept) == len(spelled)
        assert apply_changes(letters.upper(), 0, ours) == apply_changes(letters.upper(), 0, kept)
        found += len(ours)
    assert found == {"consensus7b.out": 3, "consensus7d.out": 0, "consensus7c.out": 0,
                     "consensus7a.out": 3, "consensus3.2.out": 2, "consensus2.2.out": 4,
                     "consensus.2.out": 1, "consensus.4.out": 1}[line.expected]  # fmt: skip


def choose_allele(line: Line, record: VariantRecord, samples: list[str]) -> int | None:
    """The allele that the line's arguments mean; `-s -` is the first ALT whatever the genotypes."""
    if "-s -" in line.arguments or not samples:
        return 1 if record.alts else None
    named = next((i for i, name in enumerate(samples) if f"-s {name}'" in line.arguments), 0)
    genotype = read_genotype(record, named)
    if "pIu" in line.arguments and not genotype.phased:
        return max(one or 0 for one in genotype.alleles)  # both alleles make one code: `blend`
    if "-H A" in line.arguments or "-H" not in line.arguments:
        return next((one for one in genotype.alleles if one), None)
    copy = int(line.arguments.split("-H ")[1][0]) - 1
    return genotype.alleles[copy] if copy < len(genotype.alleles) else None


def test_what_overlaps_is_left_out_but_for_an_insertion_behind():
    deletion, snv = Change(1, "CGT", "C"), Change(2, "G", "A")
    insertion = Change(3, "T", "TAA")
    assert leave_out_overlaps([deletion, snv]) == [deletion]
    kept = leave_out_overlaps([deletion, insertion, insertion])
    assert apply_changes("ACGTA", 0, kept) == "ACAAA"
