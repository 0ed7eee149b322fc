"""Records of variants with the scores of their ALTs, and the rows that tables have of them."""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from genodiff.io.faidx import Genome
from genodiff.io.variants import Allele, Unscorable, VariantRecord, anchor_allele
from genodiff.scoring.allele_score import AlleleScore, Item
from genodiff.variants.background_ranks import Rank
from genodiff.variants.consequences import Consequences

TOO_RARE = "too_rare"
"""Of a score without percentile: the genome has too few variants of its kind."""
NATS_PER_BIT = 0.6931471805599453
_UNSAFE = re.compile(r"[\s;,=]+")

SCHEMA: dict[str, Any] = {
    "chrom": pl.String, "pos": pl.Int64, "id": pl.String, "ref": pl.String, "alt": pl.String,
    "kind": pl.String, "method": pl.String, "score": pl.Float64, "se": pl.Float64,
    "n_evaluations": pl.Int64, "flags": pl.List(pl.String), "normal": pl.String,
    "percentile": pl.Float64, "z": pl.Float64, "phred": pl.Float64, "background": pl.String,
    "n_background": pl.Int64,
}  # fmt: skip
"""Columns of the frame; `pos` counts from 1, and `score` is null where `flags` says why."""
HAPLOTYPES = "haplotypes"
HAPLOTYPE_SCHEMA: dict[str, Any] = {
    "sample": pl.String, "copy": pl.Int64, "phase_set": pl.String, "first": pl.Int64,
    "last": pl.Int64, "variants": pl.Int64, "method": pl.String, "score": pl.Float64,
    "se": pl.Float64, "n_evaluations": pl.Int64, "flags": pl.List(pl.String),
}  # fmt: skip
"""Fields of the column `haplotypes`: a row for each copy that carries the ALT, copies from 1."""
RELATED: dict[str, Any] = {
    "votes": pl.Float64, "ancestral": pl.String, "p_ancestral": pl.Float64, "rs": pl.Float64,
}  # fmt: skip
"""The columns that relatives add."""
CONSEQUENCE_SCHEMA: dict[str, Any] = {
    "gene": pl.String, "consequence": pl.String, "protein": pl.String,
    "transcripts": pl.List(pl.String),
}  # fmt: skip
"""Columns that an annotation adds."""
ALL_COLUMNS = HAPLOTYPE_SCHEMA | SCHEMA | RELATED | CONSEQUENCE_SCHEMA
VCF_TYPES: dict[Any, str] = {pl.Float64: "Float", pl.Int64: "Integer"}
"""Types of VCF by those of columns; all else is a String."""

Judged = Allele | Unscorable
Scores = Sequence[AlleleScore]
Score = Callable[[Iterable[Item]], Iterator[AlleleScore]]
"""A score for each allele, or sequence of alleles of one haplotype, in order."""
FindRank = Callable[[Allele, float], Rank | None]
"""Where the score of an allele, in nats, stands among those of random variants."""


class CopyScore(NamedTuple):
    """The score of the haplotype in which an ALT stands, on one copy of one sample.

    `sample` and `copy` count from 0. `first` and `last` (from 1, inclusive) are the stretch that it
    changes, and `variants` how many it has; all are 0 where `score` has a reason instead.
    """

    sample: int
    copy: int
    ploidy: int
    phase_set: str
    first: int
    last: int
    variants: int
    score: AlleleScore


class ScoredRecord(NamedTuple):
    """A record; what each of its ALTs is, its score, and with haplotypes the copies that carry it.

    A record without ALT has one reason.
    """

    record: VariantRecord
    judged: Sequence[Judged]
    scores: Scores
    copies: Sequence[Sequence[CopyScore]] = ()


class ScoreForm(NamedTuple):
    """How scores are shown: in `unit`, nats or bits, and what stands beside them.

    `about` says in a header what they come from. `find_rank` ranks them among those of random
    variants, None without a background. `samples` are the names of those whose haplotypes are
    shown, None without haplotypes. `consequences` are those of an annotation, None without one.
    `votes` says whether the votes of relatives are shown.
    """

    genome: Genome
    unit: str
    about: Mapping[str, object] = {}
    find_rank: FindRank | None = None
    samples: Sequence[str] | None = None
    consequences: Consequences | None = None
    votes: bool = False

    def convert(self, nats: float | None) -> float | None:
        """`nats` in the unit."""
        return nats if nats is None or self.unit == "nats" else nats / NATS_PER_BIT


@dataclass
class HaplotypeTally:
    """Counts of the haplotypes of one output; those of shards add up to those of one run."""

    alleles: int = 0
    """ALTs on copies of samples."""
    scored: int = 0
    unscored: Counter[str] = field(default_factory=Counter)
    """ALTs on copies without a score, by reason."""
    joint: int = 0
    """Haplotypes of several variants that were scored; one of several copies counts once."""
    evaluations: int = 0

    def add(self, copies: Iterable[CopyScore]) -> None:
        """Count some copies."""
        for one in copies:
            self.alleles += 1
            if one.score.value is None:
                self.unscored[one.score.flags[0]] += 1
            else:
                self.scored += 1

    def describe(self) -> dict[str, Any]:
        """As a sidecar has it."""
        return {**vars(self), "unscored": dict(sorted(self.unscored.items()))}


FEW_VALUES = 12
"""Of rejected substitutions: a base that few genomes cover has no more, and a reader is told."""


@dataclass
class ScoreTally:
    """What the records of an output hold."""

    records: int = 0
    scored: int = 0
    """ALTs with a score."""
    unscored: Counter[str] = field(default_factory=Counter)
    """ALTs without, by reason; the header says what each means."""
    evaluations: int = 0
    haplotypes: HaplotypeTally | None = None
    rs_values: set[float] = field(default_factory=set)
    """The values of rejected substitutions, as far as they are few."""

    def add(self, scores: Scores) -> None:
        """Count one record."""
        self.records += 1
        for one in scores:
            self.evaluations += one.evaluations
            if one.value is None:
                first, *more = one.flags  # the model's own reason goes before that it failed
                self.unscored[more[0] if first == Unscorable.FAILED and more else first] += 1
            else:
                self.scored += 1
            if one.rs is not None and len(self.rs_values) <= FEW_VALUES:
                self.rs_values.add(round(one.rs, 3))

    def describe(self) -> dict[str, Any]:
        """As a sidecar has it."""
        told = {**vars(self), "unscored": dict(sorted(self.unscored.items()))}
        del told["haplotypes"], told["rs_values"]
        few = 0 < len(self.rs_values) <= FEW_VALUES
        told |= {"rs_values": len(self.rs_values)} if few else {}
        return told | ({"haplotypes": self.haplotypes.describe()} if self.haplotypes else {})


def score_records(
    records: Iterable[Sequence[Judged]], score: Score
) -> Iterator[tuple[AlleleScore, ...]]:
    """The scores of each record's ALTs, as they were judged; without ALT, one with its reason.

    Memory holds the records that `score` holds, and those between them.
    """
    waiting: deque[Sequence[Judged]] = deque()

    def feed() -> Iterator[Allele]:
        for judged in records:
            waiting.append(judged)
            yield from (one for one in judged if isinstance(one, Allele))

    found = score(feed())
    while True:
        # The first record that needs a score pulls those before it into `waiting`
        first = next(found, None)
        while waiting and not any(isinstance(one, Allele) for one in waiting[0]):
            yield _join(waiting.popleft(), iter(()))
        if first is None:
            return
        yield _join(waiting.popleft(), chain([first], found))


def _join(judged: Sequence[Judged], found: Iterator[AlleleScore]) -> tuple[AlleleScore, ...]:
    return tuple(
        next(found) if isinstance(one, Allele) else AlleleScore.without(one.value) for one in judged
    )


def find_ancestral(scored: ScoredRecord) -> tuple[str | None, float | None]:
    """The likeliest of REF and the ALTs to be the ancestral base, and its probability.

    None where no related genome is present, and where an ALT is not one base for another.
    """
    odds = [one.ancestral for one in scored.scores]
    if None in odds or not odds:
        return None, None
    shares = np.exp(np.array([0.0, *odds]) - max(0.0, *odds))  # type: ignore[type-var]
    best = int(shares.argmax())
    base = [scored.record.ref, *scored.record.alts][best].upper()
    return base, float(shares[best] / shares.sum())


def describe_alts(scored: ScoredRecord, form: ScoreForm) -> list[dict[str, Any]]:
    """A row for each ALT, as tables have them. `score` and `se` are in the unit of `form`.

    `normal` is the normal form, CHROM:POS:REF:ALT, where the record has another spelling. What a
    background tells is null without it, and where there is no score; where it tells nothing of a
    score, `flags` has `TOO_RARE`. With samples, `haplotypes` has a row for each copy that carries
    the ALT. With `form.votes` there are the votes of relatives and the constraint of the site, null
    where the ALT is not one base for another, and the ancestral base of the record. With
    consequences there are gene, consequence, protein and transcripts.
    """
    rows: list[dict[str, Any]] = []
    record = scored.record
    ancestral = dict(zip(("ancestral", "p_ancestral"), find_ancestral(scored), strict=True))
    for alt, one, score in zip(record.alts or (".",), scored.judged, scored.scores, strict=True):
        normal = ""
        if isinstance(one, Allele):
            pos, ref, other = anchor_allele(one, form.genome)
            if (pos, ref, other) != (record.pos, record.ref.upper(), alt.upper()):
                normal = f"{record.chrom}:{pos}:{ref}:{other}"
        rank, flags = None, list(score.flags)
        if form.find_rank is not None and isinstance(one, Allele) and score.value is not None:
            rank = form.find_rank(one, score.value)
            flags += [] if rank else [TOO_RARE]
        values = (
            record.chrom, record.pos, record.id, record.ref, alt,
            one.kind if isinstance(one, Allele) else "", score.method, form.convert(score.value),
            form.convert(score.se), score.evaluations, flags, normal, rank and rank.percentile,
            rank and rank.z, rank and rank.phred, rank.stratum if rank else "", rank and rank.n,
        )  # fmt: skip
        rows.append(dict(zip(SCHEMA, values, strict=True)))
        if form.votes:
            rows[-1] |= {"votes": form.convert(score.votes), **ancestral, "rs": score.rs}
        if form.consequences is not None:
            rows[-1] |= form.consequences.describe(one if isinstance(one, Allele) else None)
    if form.samples is not None:
        for row, copies in zip(rows, scored.copies, strict=True):
            row[HAPLOTYPES] = [describe_copy(one, form) for one in copies]
    return rows


def describe_copy(one: CopyScore, form: ScoreForm) -> dict[str, Any]:
    """The row of a copy, as `HAPLOTYPE_SCHEMA`."""
    assert form.samples is not None
    stretch = (one.first, one.last, one.variants) if one.variants else (None, None, None)
    score = one.score
    values = (
        form.samples[one.sample], one.copy + 1, one.phase_set, *stretch, score.method,
        form.convert(score.value), form.convert(score.se), score.evaluations, list(score.flags),
    )  # fmt: skip
    return dict(zip(HAPLOTYPE_SCHEMA, values, strict=True))


def format_value(value: object) -> str:
    """A value of a row as a field has it."""
    if isinstance(value, float):
        return format_number(value)
    if value is None or value in ("", [], 0):
        return "."
    text = "&".join(map(str, value)) if isinstance(value, list) else str(value)
    return _UNSAFE.sub("_", text)


def format_number(value: float) -> str:
    """A score as texts have it: six significant digits."""
    return f"{value + 0.0:.6g}"
