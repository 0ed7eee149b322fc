"""Variants of a genome: records of a file, alleles as they are scored, and what is wrong with them.

An `Allele` is one ALT of one record. `start` counts from 0, and the interval that changes is
contig[start : start + len(ref)]. What both spellings share at either end is trimmed, and an
insertion or deletion is placed as far left as it can be, so two spellings of one indel are one
`Allele`. There is no anchor base: an insertion has an empty `ref`, a deletion an empty `alt`. Each
record is judged against the genome, and a `VariantSurvey` counts what does not fit it.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal, Self

from genodiff.errors import DataError, format_count
from genodiff.io.faidx import Genome
from genodiff.io.regions import suggest_contig
from genodiff.io.text_lines import RowReader

BASES = frozenset("ACGT")
POSITION = "position (POS, which counts from 1)"
_REF = re.compile("[A-Za-z]+")
Kind = Literal["snv", "mnv", "ins", "del", "delins"]


@dataclass(frozen=True)
class Allele:
    """One alternative spelling of contig[start : start + len(ref)], in upper-case A, C, G, T."""

    chrom: str
    start: int
    ref: str
    alt: str

    @property
    def end(self) -> int:
        """The end of the reference's stretch (0-based, half-open)."""
        return self.start + len(self.ref)

    @property
    def kind(self) -> Kind:
        """What the lengths of `ref` and `alt` say."""
        if len(self.ref) == len(self.alt):
            return "snv" if len(self.ref) == 1 else "mnv"
        if not self.ref:
            return "ins"
        return "delins" if self.alt else "del"


class Unscorable(StrEnum):
    """Why an ALT has no score: its word in FILTER and in tables, and `meaning` for headers."""

    meaning: str
    REF = "ref_mismatch", "REF is not what the FASTA has there"
    CONTIG = "unknown_contig", "the FASTA has no contig of this name"
    OUTSIDE = "outside_contig", "POS or REF is outside the contig"
    SYMBOLIC = "symbolic", "ALT is symbolic, such as <DEL>"
    BREAKEND = "breakend", "ALT is a breakend"
    STAR = "spanning_deletion", "ALT is * (a deletion that spans the site)"
    AMBIGUOUS = "ambiguous_base", "REF or ALT has a letter other than A, C, G and T"
    SAME = "alt_is_ref", "ALT is the same as REF"
    NO_ALT = "no_alt", "there is no ALT"
    FAILED = "not_scored", "the model gives no score here (see the flags)"

    def __new__(cls, word: str, meaning: str = "") -> Self:
        made = str.__new__(cls, word)
        made._value_, made.meaning = word, meaning
        return made

    @property
    def contradicts(self) -> bool:
        """Whether the record is at odds with the genome, so that its file may be of another."""
        return self in (Unscorable.REF, Unscorable.CONTIG, Unscorable.OUTSIDE)


@dataclass(frozen=True, slots=True)
class VariantRecord:
    """One row of a file of variants, its letters as they stand there. `pos` counts from 1."""

    line: int
    chrom: str
    pos: int
    id: str
    ref: str
    alts: tuple[str, ...]
    rest: tuple[str, ...] = ()
    """The columns after ALT, as they stand (QUAL, FILTER, INFO, FORMAT, samples)."""

    @property
    def place(self) -> str:
        """CHROM:POS, as messages name the record."""
        return f"{self.chrom}:{self.pos}"

    def is_at_telomere(self, length: int) -> bool:
        """Whether POS is 0 or N + 1, where breakends and symbolic alleles may stand."""
        return self.pos in (0, length + 1)


_STEP = 64  # letters read at a time while an indel moves to the left

Fetch = Callable[[int, int], str]
"""Upper-case letters of start..end (0-based, half-open) of one contig."""


def trim_ends(ref: str, alt: str) -> tuple[int, int]:
    """How many letters both begin with and both end with; what could be either is an end."""
    shorter, tail, lead = min(len(ref), len(alt)), 0, 0
    while tail < shorter and ref[-1 - tail] == alt[-1 - tail]:
        tail += 1
    while lead < shorter - tail and ref[lead] == alt[lead]:
        lead += 1
    return lead, tail


def align_left(start: int, ref: str, alt: str, fetch: Fetch) -> tuple[int, str, str]:
    """(start, ref, alt) without common ends, an insertion or deletion moved to the left."""
    lead, tail = trim_ends(ref, alt)
    start, ref, alt = start + lead, ref[lead : len(ref) - tail], alt[lead : len(alt) - tail]
    if ref and alt:
        return start, ref, alt
    moving = ref or alt
    behind, at = "", start  # letters before `start` that are at hand
    turned = 0
    while moving and start > 0:
        if not behind:
            at = max(0, start - _STEP)
            behind = fetch(at, start)
        if behind[-1] != moving[-1 - turned % len(moving)]:
            break
        turned, start, behind = turned + 1, start - 1, behind[:-1]
    turned %= len(moving) or 1
    moving = moving[len(moving) - turned :] + moving[: len(moving) - turned]
    return (start, moving, "") if ref else (start, "", moving)


def anchor_allele(allele: Allele, genome: Genome) -> tuple[int, str, str]:
    """POS (from 1), REF and ALT of an allele as a VCF writes it, with an anchor base if needed."""
    if allele.ref and allele.alt:
        return allele.start + 1, allele.ref, allele.alt
    fetch = fetcher(genome, allele.chrom)
    if allele.start:
        anchor = fetch(allele.start - 1, allele.start)
        return allele.start, anchor + allele.ref, anchor + allele.alt
    anchor = fetch(allele.end, allele.end + 1)
    return 1, allele.ref + anchor, allele.alt + anchor


def anchor_record(record: VariantRecord, genome: Genome) -> VariantRecord:
    """Replace - for no base, as tables have it, by alleles with the genome's base beside it."""
    alleles = [record.ref, *record.alts]
    if "-" not in alleles:
        return record
    bare = ["" if one == "-" else one for one in alleles]
    at = record.pos if record.ref == "-" else record.pos - 1  # of the base before, from 1
    end = at + len(bare[0])
    if not 0 <= at <= end <= genome.contigs.get(record.chrom, -1):
        return record
    fetch = fetcher(genome, record.chrom)
    if at:
        spelt = [fetch(at - 1, at) + one for one in bare]
    elif end < genome.contigs[record.chrom]:
        at, spelt = 1, [one + fetch(end, end + 1) for one in bare]
    else:
        return record
    return replace(record, pos=at, ref=spelt[0], alts=tuple(spelt[1:]))


def judge_record(record: VariantRecord, genome: Genome) -> list[Allele | Unscorable]:
    """Each ALT as an `Allele`, or why it cannot be one; a record without ALT gives one reason."""
    fault = _judge_reference(record, genome)
    alts = record.alts or (".",)
    if fault is not None:
        return [fault if fault.contradicts else judge_alt(alt) or fault for alt in alts]
    ref = record.ref.upper()
    found: list[Allele | Unscorable] = []
    for alt in alts:
        letters = alt.upper()
        reason = judge_alt(alt) or (Unscorable.SAME if letters == ref else None)
        if reason is not None:
            found.append(reason)
        elif len(ref) == len(letters) == 1:
            found.append(Allele(record.chrom, record.pos - 1, ref, letters))
        else:
            aligned = align_left(record.pos - 1, ref, letters, fetcher(genome, record.chrom))
            found.append(Allele(record.chrom, *aligned))
    return found


def fetcher(genome: Genome, chrom: str) -> Fetch:
    """The upper-case letters of one contig by start and end."""
    return lambda start, end: genome.fetch(chrom, start, end).decode("latin-1").upper()


def _judge_reference(record: VariantRecord, genome: Genome) -> Unscorable | None:
    length = genome.contigs.get(record.chrom)
    if length is None:
        return Unscorable.CONTIG
    start, end = record.pos - 1, record.pos - 1 + len(record.ref)
    no_letters = all(judge_alt(alt) is not None for alt in record.alts or (".",))
    if record.is_at_telomere(length) and no_letters:
        return Unscorable.SYMBOLIC
    if start < 0 or end > length:
        return Unscorable.OUTSIDE
    there = fetcher(genome, record.chrom)(start, end)
    ref = record.ref.upper()
    if there == ref and BASES.issuperset(ref):
        return None
    agrees = all(a == b or not BASES.issuperset((a, b)) for a, b in zip(ref, there, strict=True))
    return Unscorable.AMBIGUOUS if agrees else Unscorable.REF


def judge_alt(alt: str) -> Unscorable | None:
    """Why the letters of an ALT are no sequence of A, C, G and T; None where they are."""
    if BASES.issuperset(alt.upper()) and alt:
        return None
    if alt in (".", ""):
        return Unscorable.NO_ALT
    if alt == "*":
        return Unscorable.STAR
    if "[" in alt or "]" in alt or alt.startswith(".") or alt.endswith("."):
        return Unscorable.BREAKEND
    return Unscorable.SYMBOLIC if alt.startswith("<") else Unscorable.AMBIGUOUS


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
                start = record.pos - 1 + shift
                end = start + len(record.ref)
                if start >= 0 and end <= genome.contigs[record.chrom]:
                    there = fetcher(genome, record.chrom)(start, end)
                    self.shifted[shift] += there == record.ref.upper()

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
        here, found = _cut(record.ref), _cut(there.decode("latin-1"))
        what, fix = f"REF mismatch: {here} here, {found} in the FASTA", _advise(survey)
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


def _cut(letters: str) -> str:
    return letters if len(letters) <= 12 else f"{letters[:12]}… ({len(letters)} bases)"


def check_alleles(ref: str, alt: str, reader: RowReader, no_base: str | None = None) -> None:
    """Raises `DataError` for a REF that is neither letters nor `no_base`, and for NA, null, quotes.

    NA and NAN beside an allele that begins with N are bases: a deletion, or an insertion.
    """
    for what, allele, other in (("REF", ref, alt), ("ALT", alt, ref)):
        bases = allele.upper() in ("NA", "NAN") and other[:1] in ("N", "n")
        if allele and not bases:
            reader.check_given(allele, what, "give its bases, or remove the row; no ALT is .")
        reader.check_name(allele, what)
        if not allele.isascii():
            what = f"the {what} '{allele}' has a letter that is not ASCII"
            raise reader.fault(what, "write A, C, G, T or N")
    if not _REF.fullmatch(ref) and ref != no_base:
        what = f"REF '{ref}' is not a sequence of bases" if ref else "REF is empty"
        raise reader.fault(what, "give at least one base; an insertion has the base before it")
