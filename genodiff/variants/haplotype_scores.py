"""Scores of phased haplotypes beside those of their variants.

A haplotype of several variants is scored as one: its spans together, given all that both spellings
share. One of a single variant has that variant's score. Copies and samples that carry the same
haplotype share one evaluation of it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from genodiff.io.phasing import CopyCall, PhasedHaplotype, PhasedRecord
from genodiff.io.variants import Allele, VariantRecord
from genodiff.scoring.allele_score import LONGEST_SPAN, AlleleScore
from genodiff.scoring.methods import choose_method, find_method
from genodiff.variants.scored_variants import CopyScore, HaplotypeTally, ScoredRecord

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
    score: AlleleScore | None = None


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
        self, rows: Iterable[ScoredRecord], found: Iterator[AlleleScore]
    ) -> Iterator[ScoredRecord]:
        """Each record with the copies that carry its ALTs; `found` are the scores of `alleles`."""
        for (phased, slots), row in zip(self._walk(), rows, strict=True):
            for slot in slots:
                slot.score = next(found)
                if not slot.earlier:
                    self.tally.joint += slot.score.value is not None
                    self.tally.evaluations += slot.score.evaluations
            copies: list[list[CopyScore]] = [[] for _ in row.scores]
            for sample, calls in enumerate(phased.calls):
                for copy, call in enumerate(calls):
                    if call.alt:
                        own = row.scores[call.alt - 1]
                        score = self._score(sample, copy, len(calls), call, own, phased.record)
                        copies[call.alt - 1].append(score)
            self.tally.add(one for some in copies for one in some)
            yield row._replace(copies=copies)

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
        self, sample: int, copy: int, ploidy: int, call: CopyCall, own: AlleleScore,
        record: VariantRecord,
    ) -> CopyScore:  # fmt: skip
        """What an ALT on one copy has; `own` is its score by itself."""
        haplotype = call.haplotype
        if haplotype is None or haplotype.overlaps:
            reason = call.reason or OVERLAP
            phase_set = haplotype.phase_set if haplotype else ""
            none = AlleleScore.without(reason)
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
        stretch = haplotype.phase_set, first, last, len(alleles)
        return CopyScore(sample, copy, ploidy, *stretch, score)


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
