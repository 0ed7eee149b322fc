"""The chosen records of a file of variants, each judged against the genome once."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import IO, Any

from genodiff.errors import DataError
from genodiff.io.faidx import Genome
from genodiff.io.input_file import VARIANTS, is_planning
from genodiff.io.phasing import RecordPhaser
from genodiff.io.regions import hold_contigs, parse_region
from genodiff.io.variant_source import VariantSource
from genodiff.io.variants import (
    Allele,
    Unscorable,
    VariantRecord,
    VariantSurvey,
    anchor_record,
    explain_contradictions,
    judge_alt,
    judge_record,
    survey_variants,
    trim_ends,
)
from genodiff.jobs.shards import Shard
from genodiff.scoring.allele_score import AlleleScore
from genodiff.variants.haplotype_scores import HaplotypeWalk, count_haplotypes
from genodiff.variants.scored_variants import Judged, ScoredRecord, ScoreTally

HELD, _BLOCK = 1 << 20, 1 << 16  # bytes of what is judged: in memory, and read at a time


class RecordSelection:
    """Records that overlap one of the regions (all, where there is none), in the file's order."""

    def __init__(self, regions: Sequence[str], contigs: Mapping[str, int]) -> None:
        self._contigs, self.outside = contigs, 0
        self._regions: dict[str, list[tuple[int, int]]] = {}
        for text in regions:
            contig, start, end = parse_region(text, hold_contigs(contigs))
            self._regions.setdefault(contig, []).append((start, end))

    def choose(self, records: Iterable[VariantRecord]) -> Iterator[VariantRecord]:
        """Those of `records` that are chosen; at their end, `outside` counts the others."""
        n = 0
        for record in records:
            if self.holds(record):
                yield record
            else:
                n += 1
        self.outside = n

    def share(self) -> float:
        """The part of the genome's bases that is chosen, about."""
        chosen = sum(e - s for some in self._regions.values() for s, e in some)
        return min(1.0, chosen / max(1, sum(self._contigs.values()))) if self._regions else 1.0

    def holds(self, record: VariantRecord) -> bool:
        """Whether this record is one of them; a telomere belongs to the base beside it."""
        if not self._regions:
            return True
        first, last = record.pos - 1, record.pos - 1 + len(record.ref)
        length = self._contigs.get(record.chrom, 0)
        if record.is_at_telomere(length):
            first, last = (0, 1) if record.pos == 0 else (length - 1, length)
        return any(s < last and first < e for s, e in self._regions.get(record.chrom, ()))


class VariantRecords:
    """The chosen records of a file, or one shard of them; `survey` counts them.

    A shard judges its own records alone; the others are counted, to know where it begins. What is
    judged of a record is `kept` in a temporary file, some 20 bytes each. Raises `DataError` for a
    file that cannot be read exactly.
    """

    def __init__(
        self, source: VariantSource, genome: Genome, regions: Sequence[str], shard: Shard | None,
        kept: IO[bytes],
    ) -> None:  # fmt: skip
        self.source, self.genome, self.shard = source, genome, shard
        self._selection, self._kept = RecordSelection(regions, genome.contigs), kept
        self.cut: tuple[int, int | None] = (0, None)
        self.span: int | None = None
        """The longest stretch of a haplotype; None scores none."""
        self._times = self._forecast() if is_planning() else 1.0
        if shard is not None and self._times == 1:
            self.cut = shard.cut(sum(1 for _ in self.records()))
        self.survey = VariantSurvey()
        for record in self.records():
            head = genome.head
            if head is not None and not head.holds(record.chrom, record.pos + len(record.ref)):
                judged = [judge_unseen(record, alt) for alt in record.alts or (".",)]
            else:
                judged = judge_record(record, genome)
            self.survey.add(record, judged, genome)
            kept.write(_pack(record.chrom, judged))
        if self._times != 1:
            multiply_survey(self.survey, self._times)
            return
        self.cut = (self.cut[0], self.cut[0] + self.survey.records)

    def __len__(self) -> int:
        return self.survey.records

    def records(self) -> Iterator[VariantRecord]:
        """Its records, in the file's order."""
        return islice(self._selection.choose(self._read()), *self.cut)

    def _read(self) -> Iterator[VariantRecord]:
        """All records of the file; those of a table have an anchor base where they lack one."""
        named = self.source.records(self.genome.contigs)
        if is_planning():
            named = islice(named, VARIANTS)
        if self.source.format != "table":
            return named
        return (anchor_record(one, self.genome) for one in named)

    def _forecast(self) -> float:
        """How many times as many records a plan counts as it reads; 1 where it reads them all."""
        some = list(islice(self.source.records(self.genome.contigs), VARIANTS + 1))
        if len(some) <= VARIANTS:
            return 1.0
        times = self.source.forecast(some[0].line, some[-1].line) / VARIANTS
        share = self._selection.share()
        if share < 1:
            self._selection = RecordSelection((), self.genome.contigs)
        return times * share / (1 if self.shard is None else self.shard.of)

    def describe_rest(self) -> dict[str, Any]:
        """What of the file is not in the output: records outside of the regions, and samples."""
        header = self.source.header
        told = {"outside_regions": self._selection.outside} if self._selection.outside else {}
        if header is not None and header.samples and self.span is None:
            told["samples_not_scored"] = len(header.samples)
        return told | ({"columns_not_written": [*self.source.other]} if self.source.other else {})

    def judged(self) -> Iterator[list[Judged]]:
        """What was judged of each record, in the file's order."""
        at = 0
        while True:
            self._kept.seek(at)
            lines = self._kept.readlines(_BLOCK)
            if not lines:
                return
            at += sum(map(len, lines))
            yield from map(_unpack, lines)

    def alleles(self) -> Iterator[Allele]:
        """Each ALT that can be scored, in the file's order."""
        return (one for some in self.judged() for one in some if isinstance(one, Allele))

    def refuse_other_genome(self) -> None:
        """Raises `DataError` where most records of the file do not fit the genome.

        Of a file like that some shard has as many. So the others do not look at all of it, and
        what it is refused for is missing when the shards are merged.
        """
        survey = self.survey
        if survey.contradictions > survey.records / 2 and self.shard is not None:
            survey = survey_variants(self._selection.choose(self._read()), self.genome)
        fault = explain_contradictions(survey, self.source.shown, self.genome)
        if fault is not None and survey.contradictions > survey.records / 2:
            raise fault

    def list_samples(self) -> list[str]:
        """The names of all samples. Raises `DataError` for a file without any."""
        header = self.source.header
        if header is None or not header.samples:
            what = "has no samples, but genotypes (GT) are requested"
            raise DataError(what, file=self.source.shown, fix="give a VCF or BCF with samples")
        return list(header.samples)

    def ask_haplotypes(self, span: int, method: str) -> tuple[Counter[str], int]:
        """Score phased haplotypes of up to `span` bases too: how many by method, and windows.

        Raises `DataError` for a file without samples, and for records that are not sorted.
        """
        self.list_samples()
        self.span = span
        methods, windows = count_haplotypes(self._walk(), method)
        if self._times != 1:
            methods = Counter({one: round(n * self._times) for one, n in methods.items()})
        return methods, round(windows * self._times)

    @property
    def samples(self) -> list[str] | None:
        """Names of the samples whose haplotypes are scored, None where none are."""
        header = self.source.header
        return None if self.span is None or header is None else header.samples

    def joint_alleles(self) -> Iterator[tuple[Allele, ...]]:
        """The alleles of each haplotype that has a score of its own."""
        return iter(()) if self.span is None else self._walk().alleles()

    def join(
        self, own: Iterable[Sequence[AlleleScore]], joint: Iterator[AlleleScore], tally: ScoreTally
    ) -> Iterator[ScoredRecord]:
        """Each record with its scores: its ALTs' `own`, and those of `joint_alleles`, in order.

        They are counted in `tally`.
        """
        some = zip(self.records(), self.judged(), own, strict=True)
        rows: Iterator[ScoredRecord] = (ScoredRecord(*one) for one in some)
        if self.span is not None:
            walk = self._walk()
            tally.haplotypes = walk.tally
            rows = walk.attach(rows, joint)
        for one in rows:
            tally.add(one.scores)
            yield one

    def _walk(self) -> HaplotypeWalk:
        assert self.span is not None
        phaser = RecordPhaser(self.genome, self.span, self.source.shown)
        phased = phaser.phase(self._read())
        chosen = (one for one in phased if self._selection.holds(one.record))
        return HaplotypeWalk(chosen, *self.cut)


def _pack(chrom: str, judged: Iterable[Judged]) -> bytes:
    """A record's line: its contig, and start, REF and ALT of each ALT, or why it has none."""
    rows = [[x.start, x.ref, x.alt] if isinstance(x, Allele) else x.value for x in judged]
    return json.dumps([chrom, *rows]).encode() + b"\n"


def _unpack(line: bytes) -> list[Judged]:
    chrom, *rows = json.loads(line)
    return [Unscorable(x) if isinstance(x, str) else Allele(chrom, *x) for x in rows]


def judge_unseen(record: VariantRecord, alt: str) -> Judged:
    """An ALT, where the genome is not at hand to judge REF by."""
    if (reason := judge_alt(alt)) is not None:
        return reason
    lead, tail = trim_ends(record.ref.upper(), alt.upper())
    ref, new = (one.upper()[lead : len(one) - tail] for one in (record.ref, alt))
    return Allele(record.chrom, record.pos - 1 + lead, ref, new) if ref != new else Unscorable.SAME


def multiply_survey(survey: VariantSurvey, by: float) -> None:
    """Let the records that were counted stand for `by` times as many."""
    for name in ("records", "alleles", "sites", "contradictions", "judged"):
        setattr(survey, name, round(getattr(survey, name) * by))
    counts: tuple[Counter[Any], ...] = (survey.kinds, survey.sizes, survey.reasons)
    for count in counts:
        count.update({one: round(n * by) - n for one, n in count.items()})
