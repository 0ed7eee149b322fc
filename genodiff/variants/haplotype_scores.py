"""Scores of phased haplotypes beside those of their variants.

A haplotype of several variants is scored as one: its spans together, given all that both spellings
share. One of a single variant has that variant's score. Copies and samples that carry the same
haplotype share one evaluation of it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from genodiff.io.phasing import CopyCall, PhasedHaplotype, PhasedRecord
from genodiff.io.variants import Allele, VariantRecord
from genodiff.scoring.methods import choose_method, find_method
from genodiff.scoring.variant_windows import LONGEST_SPAN
from genodiff.variants.scored_variants import AltScore, CopyScore

OVERLAP, INCOMPLETE = "overlap", "incomplete"
"""Flags of a haplotype: its members overlap; its stretch has a call that is not known."""


def find_span(context: int) -> int:
    """The longest stretch of a haplotype, in bases, for a window of `context` bases.

    It is half of the window, so that both flanks together have the other half.
    """
    return min(context // 2, LONGEST_SPAN)


@dataclass(eq=False)
class _Slot:
    """Where the score of one haplotype goes; all that have the same alleles share it."""

    alleles: tuple[Allele, ...]
    earlier: bool  # an earlier record, in another shard, is the first that has it
    asked: bool = False
    score: AltScore | None = None


@dataclass
class HaplotypeTally:
    """Counts of one output; those of shards add up to those of one run."""

    alleles: int = 0
    """ALTs on copies of samples."""
    scored: int = 0
    unscored: Counter[str] = field(default_factory=Counter)
    """ALTs on copies without a score, by reason."""
    joint: int = 0
    """Haplotypes of several variants that were scored; one of several copies counts once."""
    evaluations: int = 0

    def add(self, scores: tuple[AltScore, ...]) -> None:
        """Count the copies of one record."""
        for alt in scores:
            for one in alt.copies:
                self.alleles += 1
                if one.score.value is None:
                    self.unscored[one.score.flags[0]] += 1
                else:
                    self.scored += 1

    def describe(self) -> dict[str, Any]:
        """As a sidecar has it."""
        return {
            "alleles": self.alleles,
            "scored": self.scored,
            "unscored": dict(sorted(self.unscored.items())),
            "joint": self.joint,
            "evaluations": self.evaluations,
        }


class HaplotypeWalk:
    """The records from number `first` on, and the haplotypes that are to be scored for them."""

    def __init__(self, records: Iterable[PhasedRecord], first: int = 0, last: int | None = None):
        """`records` are all chosen ones, and `first` and `last` + 1 cut out those of a shard."""
        self._records, self._first, self._last = records, first, last
        self._slots: WeakKeyDictionary[PhasedHaplotype, _Slot] = WeakKeyDictionary()
        self.tally = HaplotypeTally()

    def alleles(self) -> Iterator[tuple[Allele, ...]]:
        """The alleles of each haplotype that needs a score, in the order of their records."""
        for _, slots in self._walk():
            yield from (slot.alleles for slot in slots)

    def attach(
        self, scores: Iterable[tuple[AltScore, ...]], found: Iterator[AltScore]
    ) -> Iterator[tuple[VariantRecord, tuple[AltScore, ...]]]:
        """Each record with the scores of its ALTs, and in those the scores of their copies.

        `scores` are those of the records, and `found` those of `alleles`, in order.
        """
        for (phased, slots), alts in zip(self._walk(), scores, strict=True):
            for slot in slots:
                slot.score = next(found)
                if not slot.earlier:
                    self.tally.joint += slot.score.value is not None
                    self.tally.evaluations += slot.score.evaluations
            copies: list[list[CopyScore]] = [[] for _ in alts]
            for sample, calls in enumerate(phased.calls):
                for copy, call in enumerate(calls):
                    if call.alt:
                        own = alts[call.alt - 1]
                        score = self._score(sample, copy, len(calls), call, own, phased.record)
                        copies[call.alt - 1].append(score)
            told = tuple(
                alt._replace(copies=tuple(some)) for alt, some in zip(alts, copies, strict=True)
            )
            self.tally.add(told)
            yield phased.record, told

    def _walk(self) -> Iterator[tuple[PhasedRecord, list[_Slot]]]:
        for number, one in enumerate(self._records):
            if number == self._last:
                return
            earlier = number < self._first
            fresh: dict[tuple[Allele, ...], _Slot] = {}
            wanted: list[_Slot] = []
            for haplotype in one.haplotypes():
                if not haplotype.is_joint:
                    continue
                slot = self._slots.get(haplotype)
                if slot is None:  # copies with the same alleles have the same first record
                    new = _Slot(haplotype.alleles, earlier)
                    slot = self._slots[haplotype] = fresh.setdefault(haplotype.alleles, new)
                if not earlier and not slot.asked:
                    slot.asked = True
                    wanted.append(slot)
            if not earlier:
                yield one, wanted

    def _score(
        self, sample: int, copy: int, ploidy: int, call: CopyCall, own: AltScore,
        record: VariantRecord,
    ) -> CopyScore:  # fmt: skip
        """What an ALT on one copy has; `own` is its score by itself."""
        haplotype = call.haplotype
        if haplotype is None or haplotype.overlaps:
            reason = call.reason or OVERLAP
            phase_set = haplotype.phase_set if haplotype else ""
            none = AltScore(None, None, "", 0, 0, 0, (reason,))
            return CopyScore(sample, copy, ploidy, phase_set, 0, 0, 0, none)
        score = own
        if haplotype.is_joint:
            slot = self._slots[haplotype]
            assert slot.score is not None, record.place
            score = slot.score
        if haplotype.incomplete:
            score = score._replace(flags=(*score.flags, INCOMPLETE))
        alleles = haplotype.alleles
        # An insertion changes no base of the reference: the one before it stands for it
        first = alleles[0].start + 1 if alleles[0].ref else max(1, alleles[0].start)
        last = max(first, alleles[-1].end)
        return CopyScore(
            sample, copy, ploidy, haplotype.phase_set, first, last, len(alleles), score
        )


def count_haplotypes(walk: HaplotypeWalk, method: str) -> tuple[Counter[str], int]:
    """How many haplotypes are to be scored, by method, and about how many windows they take."""
    methods: Counter[str] = Counter()
    windows = 0
    for alleles in walk.alleles():
        ref = sum(len(one.ref) for one in alleles)
        alt = sum(len(one.alt) for one in alleles)
        methods[choose_method((ref, alt), method)] += 1
        windows += find_method((ref, alt), method).windows(ref, alt)
    return methods, windows
