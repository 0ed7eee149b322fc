"""bcftools' own tests: our normalised records and haplotypes are its expected files."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from genodiff.io.faidx import Genome
from genodiff.io.fasta import Record
from genodiff.io.fasta_writer import write_fasta
from genodiff.io.phasing import PhasedHaplotype, RecordPhaser, read_genotype
from genodiff.io.variants import (
    Allele,
    Unscorable,
    VariantRecord,
    anchor_allele,
    judge_record,
)
from genodiff.io.vcf import read_vcf
from tests.consensus import Change, apply_changes, choose_change, leave_out_overlaps
from tests.io.bcftools_lines import (
    FOLDER,
    Line,
    read_lines,
    read_sequences,
    read_sites,
)

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no shared folder here")
ASKED = [line for line in (read_lines() if FOLDER.is_dir() else []) if line.not_asked is None]


def records_of(line: Line) -> Iterator[VariantRecord]:
    return read_vcf(FOLDER / f"{line.given}.vcf")[1]


@pytest.fixture
def genome(request, tmp_path):
    """The FASTA of a line, without the trailing line that is no sequence."""
    (line,) = (one for one in request.node.callspec.params.values() if isinstance(one, Line))
    found = read_sequences(str(line.fasta))
    rows = [
        Record(name.split()[0], "", "".join(c for c in letters if c.isalpha()).encode(), 1)
        for name, letters in found.items()
    ]
    write_fasta(tmp_path / "ref.fa", rows)
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
