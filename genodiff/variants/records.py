"""Scoring the records of one file: survey, scores into a journal, and the journal read again."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from genodiff.errors import DataError
from genodiff.io.faidx import Genome
from genodiff.io.phasing import RecordPhaser
from genodiff.io.variant_alignment import judge_record
from genodiff.io.variant_check import VariantSurvey, explain_contradictions, survey_variants
from genodiff.io.variant_source import VariantSource
from genodiff.io.variants import Allele, VariantRecord
from genodiff.jobs.shards import Shard
from genodiff.variants.haplotype_scores import HaplotypeTally, HaplotypeWalk, count_haplotypes
from genodiff.variants.scored_variants import AltScore, Score, score_records
from genodiff.variants.selection import RecordSelection
from genodiff.variants.variant_journal import VariantJournal


@dataclass
class VariantTally:
    """What the records of an output hold."""

    records: int = 0
    scored: int = 0
    """ALTs with a score."""
    unscored: Counter[str] = field(default_factory=Counter)
    """ALTs without, by reason."""
    evaluations: int = 0
    haplotypes: HaplotypeTally | None = None

    def add(self, scores: tuple[AltScore, ...]) -> None:
        """Count one record."""
        self.records += 1
        for one in scores:
            self.evaluations += one.evaluations
            if one.value is None:
                self.unscored[one.flags[0]] += 1
            else:
                self.scored += 1

    def describe(self) -> dict[str, Any]:
        """As a sidecar has it."""
        haplotypes = self.haplotypes and {"haplotypes": self.haplotypes.describe()}
        return {
            "records": self.records,
            "scored": self.scored,
            "unscored": dict(sorted(self.unscored.items())),
            "evaluations": self.evaluations,
            **(haplotypes or {}),
        }


class VariantRun:
    """The chosen records of a file, or one shard of them.

    A shard judges its own records alone; the others are counted, to know where it begins.
    """

    def __init__(
        self, source: VariantSource, genome: Genome, regions: Sequence[str], shard: Shard | None
    ) -> None:
        """Count the records. Raises `DataError` for a file that cannot be read exactly."""
        self.source, self.genome, self.shard = source, genome, shard
        self._selection = RecordSelection(regions, genome.contigs)
        if shard is None:
            self.own_survey = self._survey_all()
            self.cut = (0, self.own_survey.records)
        else:
            self.cut = shard.cut(sum(1 for _ in self._selection.choose(source.records())))
            self.own_survey = survey_variants(self.records(), genome)
        self.tally = VariantTally()
        self.span: int | None = None
        """The longest stretch of a haplotype; None scores none."""
        self.joint = 0
        """How many haplotypes are to be scored."""
        self.joint_windows = 0
        """About how many windows they take."""

    def ask_haplotypes(self, span: int, method: str) -> tuple[Counter[str], int]:
        """Score phased haplotypes of up to `span` bases too: how many by method, and windows.

        Raises `DataError` for a file without samples, and for records that are not sorted.
        """
        self.require_samples()
        self.span = span
        methods, windows = count_haplotypes(self._walk(), method)
        self.joint, self.joint_windows = methods.total(), windows
        return methods, windows

    def require_samples(self) -> None:
        """Raises `DataError` for a file without samples."""
        header = self.source.header
        if header is None or not header.samples:
            what = "has no samples, and haplotypes are read from genotypes (GT)"
            raise DataError(what, file=self.source.shown, fix="give a phased VCF or BCF")

    @property
    def samples(self) -> list[str] | None:
        """Names of the samples whose haplotypes are scored, None where none are."""
        header = self.source.header
        return None if self.span is None or header is None else header.samples

    def _walk(self) -> HaplotypeWalk:
        assert self.span is not None
        phaser = RecordPhaser(self.genome, self.span, self.source.shown)
        phased = phaser.phase(self.source.records())
        chosen = (one for one in phased if self._selection.holds(one.record))
        return HaplotypeWalk(chosen, *self.cut)

    def __len__(self) -> int:
        return self.cut[1] - self.cut[0]

    def refuse_other_genome(self) -> None:
        """Raises `DataError` where most records of the file do not fit the genome.

        Of a file like that some shard has as many. So the others do not look at all of it, and
        what it is refused for is missing when the shards are merged.
        """
        survey = self.own_survey
        if survey.contradictions > survey.records / 2 and self.shard is not None:
            survey = self._survey_all()
        fault = explain_contradictions(survey, self.source.shown, self.genome)
        if fault is not None and survey.contradictions > survey.records / 2:
            raise fault

    def _survey_all(self) -> VariantSurvey:
        return survey_variants(self._selection.choose(self.source.records()), self.genome)

    def records(self) -> Iterator[VariantRecord]:
        """Its records, in the file's order."""
        return self._selection.choose_shard(self.source.records(), self.cut)

    def alleles(self) -> Iterator[Allele]:
        """Each ALT that can be scored, in the file's order."""
        for record in self.records():
            yield from (x for x in judge_record(record, self.genome) if isinstance(x, Allele))

    def fill(
        self,
        journal: VariantJournal,
        score: Score,
        tick: Callable[[int, tuple[AltScore, ...]], None] | None = None,
    ) -> None:
        """Score what the journal does not hold yet.

        `tick` is told how many records are done, and the scores of the last.
        """
        rest = islice(self.records(), journal.kept, None)
        for scores in score_records(rest, self.genome, score):
            journal.append(scores)
            if tick is not None:
                tick(journal.kept, scores)
        if self.span is None:
            return
        after = islice(self.joint_alleles(), journal.kept - len(self), None)
        for found in score(after):
            scores = (AltScore.of(found),)
            journal.append(scores)
            if tick is not None:
                tick(journal.kept, scores)

    def scored(
        self, journal: VariantJournal
    ) -> Iterator[tuple[VariantRecord, tuple[AltScore, ...]]]:
        """Each record with its scores; they are counted in `tally`."""
        own = islice(journal.scores(), len(self))
        joint = (one for (one,) in islice(journal.scores(), len(self), None))
        yield from self.join_scores(own, joint)

    def join_scores(
        self, own: Iterable[tuple[AltScore, ...]], joint: Iterator[AltScore]
    ) -> Iterator[tuple[VariantRecord, tuple[AltScore, ...]]]:
        """Each record with its scores: its ALTs' `own`, and those of `joint_alleles`, in order."""
        rows: Iterable[tuple[VariantRecord, tuple[AltScore, ...]]]
        if self.span is None:
            rows = zip(self.records(), own, strict=True)
        else:
            walk = self._walk()
            self.tally.haplotypes = walk.tally
            rows = walk.attach(own, joint)
        for record, scores in rows:
            self.tally.add(scores)
            yield record, scores

    def joint_alleles(self) -> Iterator[tuple[Allele, ...]]:
        """The alleles of each haplotype that has a score of its own."""
        return iter(()) if self.span is None else self._walk().alleles()
