"""Variants against a genome before any work is done: how many, and what is wrong with them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from genodiff.errors import DataError, format_count
from genodiff.io.faidx import Genome
from genodiff.io.regions import suggest_contig
from genodiff.io.variant_alignment import judge_record
from genodiff.io.variants import Allele, Unscorable, VariantRecord


@dataclass
class VariantSurvey:
    """Counts over the records of one file."""

    records: int = 0
    alleles: int = 0
    """ALTs that can be scored."""
    kinds: Counter[str] = field(default_factory=Counter)
    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)
    """By the bases of REF and of ALT that differ."""
    sites: int = 0
    """Places of SNVs; those of one place that stand together count once."""
    site: tuple[str, int] | None = None
    """The last of them."""
    reasons: Counter[Unscorable] = field(default_factory=Counter)
    """Why ALTs cannot be scored."""
    first: dict[Unscorable, VariantRecord] = field(default_factory=dict)
    contradictions: int = 0
    """Records that are at odds with the genome."""
    shifted: dict[int, int] = field(default_factory=lambda: {1: 0, -1: 0})
    """How many records whose REF disagrees agree so many bases to the right."""
    judged: int = 0
    """How many records lie within a contig of the genome, so that their REF was compared."""

    def add(self, record: VariantRecord, found: list[Allele | Unscorable], genome: Genome) -> None:
        """Count one record."""
        self.records += 1
        wrong = False
        for one in found:
            if isinstance(one, Allele):
                self.alleles += 1
                self.kinds[one.kind] += 1
                self.sizes[len(one.ref), len(one.alt)] += 1
                if one.kind == "snv" and self.site != (one.chrom, one.start):
                    self.sites, self.site = self.sites + 1, (one.chrom, one.start)
                continue
            self.reasons[one] += 1
            self.first.setdefault(one, record)
            wrong |= one.contradicts
        self.contradictions += wrong
        self.judged += not {Unscorable.CONTIG, Unscorable.OUTSIDE} & set(found)
        if Unscorable.REF in found:
            for shift in self.shifted:
                self.shifted[shift] += _agrees(record, genome, shift)

    def describe(self) -> list[str]:
        """A line for each reason for which ALTs have no score."""
        return [
            f"{n:,} {'ALTs' if n != 1 else 'ALT'} cannot be scored: {reason}, {reason.meaning} "
            f"(first: line {self.first[reason].line}, {self.first[reason].place})"
            for reason, n in self.reasons.items()
        ]


def survey_variants(records: Iterable[VariantRecord], genome: Genome) -> VariantSurvey:
    """Counts over all records. Raises `DataError` where the file cannot be read."""
    survey = VariantSurvey()
    for record in records:
        survey.add(record, judge_record(record, genome), genome)
    return survey


def explain_contradictions(survey: VariantSurvey, shown: str, genome: Genome) -> DataError | None:
    """The error for records at odds with the genome, at the first of them; None where all fit."""
    wrong = [reason for reason in survey.first if reason.contradicts]
    if not wrong:
        return None
    reason = min(wrong, key=lambda reason: survey.first[reason].line)
    record = survey.first[reason]
    n, of = survey.contradictions, f"{survey.records:,} record{'s' * (survey.records != 1)}"
    summary = f" ({n:,} of {of} {'do' if n != 1 else 'does'} not fit the FASTA)"
    if reason is Unscorable.CONTIG:
        what = f"unknown contig '{record.chrom}': not in the FASTA"
        fix = suggest_contig(record.chrom, genome.contigs)
    elif reason is Unscorable.OUTSIDE:
        length = genome.contigs[record.chrom]
        what = f"POS {record.pos} with {format_count(len(record.ref), 'base')} of REF is outside "
        what += f"{record.chrom} (length {length})"
        fix = "POS counts from 1: correct the row, or give the right FASTA"
    else:
        there = genome.fetch(record.chrom, record.pos - 1, record.pos - 1 + len(record.ref))
        what = (
            f"REF mismatch: {_cut(record.ref)} here, {_cut(there.decode('latin-1'))} in the FASTA"
        )
        fix = _advise(survey)
    return DataError(what + summary, file=shown, line=record.line, record=record.place, fix=fix)


def _advise(survey: VariantSurvey) -> str:
    n = survey.reasons[Unscorable.REF]
    if n > 1 and survey.shifted[1] == n:
        return "each REF is one base to the right: the positions are 0-based, and POS counts from 1"
    if n > 1 and survey.shifted[-1] == n:
        return "each REF is one base to the left: the positions are off by one"
    if n > survey.judged / 2:
        return "is the file of another reference build?"
    return "correct the row, or give the reference that it was called against"


def _agrees(record: VariantRecord, genome: Genome, shift: int) -> bool:
    start = record.pos - 1 + shift
    end = start + len(record.ref)
    if start < 0 or end > genome.contigs[record.chrom]:
        return False
    return genome.fetch(record.chrom, start, end).decode("latin-1").upper() == record.ref.upper()


def _cut(letters: str) -> str:
    return letters if len(letters) <= 12 else f"{letters[:12]}… ({len(letters)} bases)"
