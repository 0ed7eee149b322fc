"""Records of variants with the scores of their ALTs, in the order in which they were read."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, Protocol

from genodiff.io.faidx import Genome
from genodiff.io.variant_alignment import anchor_allele, judge_record
from genodiff.io.variants import Allele, Unscorable, VariantRecord
from genodiff.variants.background_ranks import Rank
from genodiff.variants.consequences import Consequences

TOO_RARE = "too_rare"
"""Of a score without percentile: the genome has too few variants of its kind."""
NATS_PER_BIT = 0.6931471805599453


class ScoreFound(Protocol):
    """What `variant_scores.AlleleScore` tells of one allele."""

    @property
    def value(self) -> float | None: ...
    @property
    def se(self) -> float | None: ...
    @property
    def method(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def evaluations(self) -> int: ...
    @property
    def note(self) -> str: ...


Score = Callable[[Iterable[Allele | Sequence[Allele]]], Iterator[ScoreFound]]
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
    score: "AltScore"


class AltScore(NamedTuple):
    """The score of one ALT in nats, or None and the reason first among `flags`."""

    value: float | None
    se: float | None
    method: str
    evaluations: int
    start: int
    end: int
    flags: tuple[str, ...]
    copies: tuple[CopyScore, ...] = ()
    """The copies that carry it, where haplotypes are asked for."""

    @classmethod
    def unscored(cls, reason: Unscorable) -> "AltScore":
        """That of an ALT that cannot be scored."""
        return cls(None, None, "", 0, 0, 0, (reason.value,))

    @classmethod
    def of(cls, found: ScoreFound) -> "AltScore":
        """That of an allele as the model gives it."""
        flags = tuple(filter(None, found.note.split("; ")))
        if found.value is None:
            flags = (Unscorable.FAILED.value, *flags)
        return cls(
            found.value, found.se, found.method, found.evaluations, found.start, found.end, flags
        )


def score_records(
    records: Iterable[VariantRecord], genome: Genome, score: Score
) -> Iterator[tuple[AltScore, ...]]:
    """The scores of each record's ALTs; of a record without ALT, one with its reason.

    Memory holds the records that `score` holds, and those between them.
    """
    waiting: deque[list[Allele | Unscorable]] = deque()

    def feed() -> Iterator[Allele]:
        for record in records:
            judged = judge_record(record, genome)
            waiting.append(judged)
            for one in judged:
                if isinstance(one, Allele):
                    yield one

    found = score(feed())
    while True:
        # The first record that needs a score pulls those before it into `waiting`
        first = next(found, None)
        while waiting and not any(isinstance(one, Allele) for one in waiting[0]):
            yield _join(waiting.popleft(), iter(()))
        if first is None:
            return
        judged = waiting.popleft()
        yield _join(judged, chain([first], found))


def _join(judged: list[Allele | Unscorable], found: Iterator[ScoreFound]) -> tuple[AltScore, ...]:
    return tuple(
        AltScore.of(next(found)) if isinstance(one, Allele) else AltScore.unscored(one)
        for one in judged
    )


def describe_alts(
    record: VariantRecord,
    scores: tuple[AltScore, ...],
    genome: Genome,
    unit: str,
    find_rank: FindRank | None = None,
    samples: Sequence[str] | None = None,
    consequences: Consequences | None = None,
) -> list[dict[str, Any]]:
    """A row for each ALT, as tables have them. `score` and `se` are in `unit`, nats or bits.

    `normal` is the normal form, CHROM:POS:REF:ALT, where the record has another spelling. What
    `find_rank` tells is null without it, and where there is no score; where it tells nothing of a
    score, `flags` has `TOO_RARE`. With `samples`, the names of the file's samples, `haplotypes` has
    a row for each copy that carries the ALT. With `consequences` there are gene, consequence,
    protein and transcripts.
    """
    rows = []
    judged = judge_record(record, genome)
    for alt, one, score in zip(record.alts or (".",), judged, scores, strict=True):
        normal = ""
        if isinstance(one, Allele):
            pos, ref, other = anchor_allele(one, genome)
            if (pos, ref, other) != (record.pos, record.ref.upper(), alt.upper()):
                normal = f"{record.chrom}:{pos}:{ref}:{other}"
        rank, flags = None, list(score.flags)
        if find_rank is not None and isinstance(one, Allele) and score.value is not None:
            rank = find_rank(one, score.value)
            flags += [] if rank else [TOO_RARE]
        rows.append(
            {
                "chrom": record.chrom,
                "pos": record.pos,
                "id": record.id,
                "ref": record.ref,
                "alt": alt,
                "kind": one.kind if isinstance(one, Allele) else "",
                "method": score.method,
                "score": convert_unit(score.value, unit),
                "se": convert_unit(score.se, unit),
                "n_evaluations": score.evaluations,
                "flags": flags,
                "normal": normal,
                "percentile": rank and rank.percentile,
                "z": rank and rank.z,
                "phred": rank and rank.phred,
                "background": rank.stratum if rank else "",
                "n_background": rank and rank.n,
            }
        )
        if consequences is not None:
            rows[-1] |= consequences.describe(one if isinstance(one, Allele) else None)
        if samples is not None:
            rows[-1]["haplotypes"] = [_describe_copy(one, samples, unit) for one in score.copies]
    return rows


def _describe_copy(one: CopyScore, samples: Sequence[str], unit: str) -> dict[str, Any]:
    scored = one.variants > 0
    return {
        "sample": samples[one.sample],
        "copy": one.copy + 1,
        "phase_set": one.phase_set,
        "first": one.first if scored else None,
        "last": one.last if scored else None,
        "variants": one.variants if scored else None,
        "method": one.score.method,
        "score": convert_unit(one.score.value, unit),
        "se": convert_unit(one.score.se, unit),
        "n_evaluations": one.score.evaluations,
        "flags": list(one.score.flags),
    }


def convert_unit(nats: float | None, unit: str) -> float | None:
    """`nats` in the unit, nats or bits."""
    return nats if nats is None or unit == "nats" else nats / NATS_PER_BIT
