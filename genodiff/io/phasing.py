"""Which variants stand together on one copy of a chromosome, record after record of a VCF.

A haplotype here holds the variants of one copy (a place in GT) of one sample and phase set, as long
as the stretch from the first changed base to the last is not longer than `span`. Counted from the
left, the next variant begins the next haplotype. The rules:

- FORMAT/PS names the phase set. Phased calls of a contig without PS make one set (VCF 4.5, 1.6.2).
- A call whose alleles are all the same, `1/1` or a hemizygous `1`, needs no phase. Without PS it
  joins the phase set before it, at the start of a contig the one behind it.
- Other unphased calls and missing ones (`0/1`, `./1`, `.|1`) are on no known copy. A haplotype that
  spans one is `incomplete`, as it is with a symbolic ALT, a breakend, a REF that disagrees, or a
  variant of another phase set.
- A haplotype never spans a change of ploidy.
- Members that overlap are no haplotype. Each is placed by its own changed bases, not by POS, so an
  SNV on the anchor base of a deletion does not overlap it. Then an indel moves to the left up to
  the member before it, so two spellings of one haplotype are one.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import NamedTuple

from genodiff.errors import DataError
from genodiff.io.faidx import Genome
from genodiff.io.variants import (
    Allele,
    Unscorable,
    VariantRecord,
    align_left,
    fetcher,
    judge_record,
    trim_ends,
)

UNPHASED = "unphased"
_FORMAT = 3  # place of FORMAT in `VariantRecord.rest`
_HARMLESS = (Unscorable.STAR, Unscorable.SAME)
"""ALTs without letters that leave no doubt: the deletion that spans a `*` has its own record."""


class Genotype(NamedTuple):
    """The alleles of one sample at one record: 0 is REF, None a missing call.

    `0|1` says which copy of the chromosome is which, within a phase set.
    """

    alleles: tuple[int | None, ...]
    phased: bool
    phase_set: str
    """FORMAT/PS, empty where there is none."""


def read_genotype(record: VariantRecord, sample: int) -> Genotype | None:
    """The genotype of the sample of this number (from 0), None where the record has no GT.

    Raises `DataError` for a GT that is none, or that names an ALT which is not there.
    """
    if len(record.rest) <= _FORMAT:
        return None
    names, told = record.rest[_FORMAT].split(":"), record.rest[_FORMAT + 1 + sample].split(":")
    values = dict(zip(names, told, strict=False))  # the last values may be left out
    text = values.get("GT")
    if text is None:
        return None
    alleles = []
    for one in re.split(r"[/|]", text.lstrip("/|")):
        if one != "." and not (one.isdecimal() and int(one) <= len(record.alts)):
            what = f"GT {text} names an allele that is not there"
            raise DataError(what, line=record.line, record=record.place, fix="correct the genotype")
        alleles.append(None if one == "." else int(one))
    phase_set = values.get("PS", ".")
    phased = "/" not in text and (len(alleles) > 1 or phase_set != ".")
    return Genotype(tuple(alleles), phased, "" if phase_set == "." else phase_set)


@dataclass(eq=False)
class PhasedHaplotype:
    """Variants of one copy, in order of the contig; `alleles` is empty until it is closed."""

    phase_set: str = ""
    alleles: tuple[Allele, ...] = ()
    overlaps: bool = False
    """Whether members overlap, so that there is no such haplotype."""
    incomplete: bool = False
    """Whether something in its stretch is not known of this copy."""
    closed: bool = False

    @property
    def is_joint(self) -> bool:
        """Whether it has a score of its own: several variants, of which none overlap."""
        return len(self.alleles) > 1 and not self.overlaps


class CopyCall(NamedTuple):
    """An ALT on one copy: its haplotype, or why it has none. `alt` counts from 1, 0 is no ALT."""

    alt: int
    haplotype: PhasedHaplotype | None = None
    reason: str = ""


class PhasedRecord(NamedTuple):
    """A record and, for each sample, what stands on each copy; `()` for a sample without ALT."""

    record: VariantRecord
    calls: tuple[tuple[CopyCall, ...], ...]

    def haplotypes(self) -> Iterator[PhasedHaplotype]:
        """Those of all its samples and copies; one of several copies comes as often."""
        calls = chain.from_iterable(self.calls)
        return (call.haplotype for call in calls if call.haplotype is not None)


@dataclass(eq=False)
class _Growing:
    """A haplotype that later records may join."""

    found: PhasedHaplotype
    members: list[Allele] = field(default_factory=list)
    first: int = 0
    last: int = 0
    grown: int = 0
    doubt: bool = False  # a call in between is unknown; it matters if another member follows

    def reaches(self, placed: Allele, span: int) -> bool:
        """Whether an allele belongs to the same stretch of `span` bases, or overlaps it."""
        if self.first < placed.end and placed.start < self.last:
            return True
        width = max(self.last, placed.end) - min(self.first, placed.start)
        grown = self.grown + len(placed.alt) - len(placed.ref)
        return max(width, width + grown) <= span

    def add(self, placed: Allele) -> None:
        self.found.incomplete |= self.doubt
        self.doubt = False
        self.first = min(self.first, placed.start) if self.members else placed.start
        self.last = max(self.last, placed.end) if self.members else placed.end
        self.grown += len(placed.alt) - len(placed.ref)
        self.members.append(placed)

    def close(self, genome: Genome) -> None:
        self.found.closed = True
        some = sorted(self.members, key=lambda one: (one.start, one.end))
        for one, after in pairwise(some):
            twice = one.start == one.end == after.start == after.end  # which insertion is first?
            if after.start < one.end or twice:
                self.found.overlaps = True
                return
        alleles: list[Allele] = []
        for one in some:
            alleles.append(_align_behind(one, alleles[-1].end if alleles else 0, genome))
        self.found.alleles = tuple(alleles)


def place_allele(record: VariantRecord, alt: str) -> Allele:
    """An ALT at the bases that its record changes: what both begin with is cut off first."""
    ref, alt = record.ref.upper(), alt.upper()
    tail, lead = trim_ends(ref[::-1], alt[::-1])
    start = record.pos - 1 + lead
    return Allele(record.chrom, start, ref[lead : len(ref) - tail], alt[lead : len(alt) - tail])


def _align_behind(allele: Allele, floor: int, genome: Genome) -> Allele:
    """`allele` moved to the left as far as the base `floor`."""
    fetch = fetcher(genome, allele.chrom)
    start, ref, alt = align_left(
        allele.start - floor,
        allele.ref,
        allele.alt,
        lambda first, last: fetch(first + floor, last + floor),
    )
    return Allele(allele.chrom, start + floor, ref, alt)


@dataclass(eq=False)
class _Sample:
    """One sample on one contig: its phase set so far, and haplotypes by phase set and copy."""

    phase_set: str | None = None  # None: no call has named one yet
    ploidy: int | None = None
    growing: dict[tuple[str | None, int], _Growing] = field(default_factory=dict)


class RecordPhaser:
    """Passes records on, in their order, each as soon as all its haplotypes are known."""

    def __init__(self, genome: Genome, span: int, shown: str) -> None:
        """`span` is in bases; `shown` is the file's name in messages."""
        self.genome, self.span, self.shown = genome, span, shown
        self._samples: list[_Sample] = []
        self._waiting: deque[PhasedRecord] = deque()
        self._at = ("", 0)
        self._contigs: set[str] = set()

    def phase(self, records: Iterable[VariantRecord]) -> Iterator[PhasedRecord]:
        """Each record with its samples' calls. Raises `DataError` if not sorted, or for no GT."""
        for record in records:
            self._move_to(record)
            self._waiting.append(PhasedRecord(record, tuple(self._read_calls(record))))
            yield from self._pass_on()
        self._close_all()
        yield from self._pass_on()

    def _pass_on(self) -> Iterator[PhasedRecord]:
        while self._waiting and all(one.closed for one in self._waiting[0].haplotypes()):
            yield self._waiting.popleft()

    def _move_to(self, record: VariantRecord) -> None:
        chrom, pos = self._at
        if record.chrom != chrom:
            self._close_all()
            self._samples = [_Sample() for _ in self._samples]
            if record.chrom in self._contigs:
                raise self._refuse(record, f"stands apart from the others of {record.chrom}")
        elif record.pos < pos:
            raise self._refuse(record, f"stands behind {chrom}:{pos}")
        self._contigs.add(record.chrom)
        self._at = (record.chrom, record.pos)
        start = record.pos - 1
        for sample in self._samples:
            growing = sample.growing.items()
            far = [k for k, one in growing if start >= max(one.last, one.first + self.span + 1)]
            self._close(sample, far)

    def _refuse(self, record: VariantRecord, how: str) -> DataError:
        what = f"haplotypes need sorted records, and this one {how}"
        fix = "sort the file (bcftools sort)"
        return DataError(what, file=self.shown, line=record.line, record=record.place, fix=fix)

    def _close_all(self) -> None:
        for sample in self._samples:
            self._close(sample, list(sample.growing))

    def _close(self, sample: _Sample, keys: Iterable[tuple[str | None, int]]) -> None:
        for key in keys:
            sample.growing.pop(key).close(self.genome)

    def _read_calls(self, record: VariantRecord) -> Iterator[tuple[CopyCall, ...]]:
        columns = record.rest[4:]
        while len(self._samples) < len(columns):
            self._samples.append(_Sample())
        judged: list[Allele | Unscorable] | None = None
        for index, (text, sample) in enumerate(zip(columns, self._samples, strict=True)):
            if text in ("0|0", "0/0"):
                yield ()
                continue
            try:
                genotype = read_genotype(record, index)
            except DataError as fault:
                fault.file = self.shown
                raise
            if genotype is None or set(genotype.alleles) == {0}:
                yield ()
                continue
            if judged is None:
                judged = judge_record(record, self.genome)
            yield self._place(record, judged, genotype, sample)

    def _place(
        self,
        record: VariantRecord,
        judged: list[Allele | Unscorable],
        genotype: Genotype,
        sample: _Sample,
    ) -> tuple[CopyCall, ...]:
        alleles = genotype.alleles
        known = set(alleles)
        if known == {None}:
            self._doubt(sample, None)
            return ()
        if sample.ploidy != len(alleles):
            self._close(sample, list(sample.growing))
            sample.ploidy, sample.phase_set = len(alleles), None
        same = len(known) == 1
        if not same and not genotype.phased:
            self._doubt(sample, None)
            return tuple(CopyCall(one or 0, reason=UNPHASED if one else "") for one in alleles)
        if genotype.phased and (genotype.phase_set or not same):
            self._name_phase_set(sample, genotype.phase_set)
        for key, one in sample.growing.items():
            one.doubt |= key[0] != sample.phase_set
        keys = ((sample.phase_set, copy) for copy in range(len(alleles)))
        return tuple(
            self._join(record, judged, sample, key, alt)
            for key, alt in zip(keys, alleles, strict=True)
        )

    def _join(
        self,
        record: VariantRecord,
        judged: list[Allele | Unscorable],
        sample: _Sample,
        key: tuple[str | None, int],
        alt: int | None,
    ) -> CopyCall:
        """What stands on one copy of a call whose copies are known."""
        growing = sample.growing.get(key)
        if not alt:
            if alt is None:
                self._doubt(sample, key)
            return CopyCall(0)
        allele = judged[alt - 1]
        if isinstance(allele, Unscorable):
            if allele not in _HARMLESS:
                self._doubt(sample, key)
            return CopyCall(alt, None, allele.value)
        placed = place_allele(record, record.alts[alt - 1])
        if growing is not None and not growing.reaches(placed, self.span):
            self._close(sample, [key])
            growing = None
        if growing is None:
            growing = sample.growing[key] = _Growing(PhasedHaplotype(key[0] or ""))
        growing.add(placed)
        return CopyCall(alt, growing.found)

    @staticmethod
    def _doubt(sample: _Sample, key: tuple[str | None, int] | None) -> None:
        """Note that a call is unknown to the haplotype `key`, or to all of the sample."""
        for other, one in sample.growing.items():
            one.doubt |= key is None or key == other

    def _name_phase_set(self, sample: _Sample, name: str) -> None:
        """What stood without a set so far belongs to the first one that is named."""
        if sample.phase_set is None:
            for phase_set, copy in list(sample.growing):
                one = sample.growing.pop((phase_set, copy))
                one.found.phase_set = name
                sample.growing[name, copy] = one
        sample.phase_set = name
