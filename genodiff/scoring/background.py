"""Scores of random variants of a genome, drawn once and kept in the cache folder.

`--background N` draws N places for SNVs, each with its three alternatives. A longer variant takes
more windows to score, so of its class there are fewer: N divided by those windows, but at least
`LEAST`. Only the classes that a file has are drawn.

A cached part holds `PART` draws. Its name is a digest of all that the scores depend on: the model,
the genome, the class, how variants are scored, the seed and the numbers of the draws.
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from genodiff.errors import UsageError
from genodiff.io import atomic
from genodiff.io.cache import cache_dir, lock_folder
from genodiff.io.identity import sha256_json
from genodiff.io.target import read_json_object
from genodiff.io.variants import Allele
from genodiff.scoring.background_draws import VariantDraws
from genodiff.scoring.background_ranks import (
    LEAST,
    RandomScore,
    Rank,
    ScoreRanks,
    describe_calibration,
)
from genodiff.scoring.background_strata import SizeClass, find_class, list_strata, scale_score
from genodiff.scoring.scored_variants import Score
from genodiff.scoring.variant_windows import Contigs

DEFAULT = 10_000
"""Places of SNVs that `--background on` draws."""
PART = 1000
_VERSION = 1  # of the draws: another number, and nothing that is cached is used
_LONGEST_CHAIN, _ORDERS, _NELBO = 8, 8, 104
_log = logging.getLogger("genodiff")

Tick = Callable[[str, int, int], None]
"""Told the class, how many of its variants are drawn and scored, and how many there will be."""


class BackgroundRequest(NamedTuple):
    """How many random variants, and all that their scores depend on beside the genome."""

    n: int
    seed: int
    method: str
    settings: Mapping[str, object]

    def count(self, size: SizeClass) -> int:
        """How many variants of a class are drawn (of SNVs, places)."""
        return max(LEAST, self.n // count_windows(size, self.method))

    def cost(self, size: SizeClass) -> int:
        """About how many windows the network reads for a class; with nelbo, at least."""
        return self.count(size) * count_windows(size, self.method)


class Background:
    """The random variants of those classes that a file needs."""

    def __init__(self, genome: Contigs, classes: Mapping[SizeClass, list[RandomScore]]) -> None:
        self._genome = genome
        self.classes = classes
        self._ranks = {size: ScoreRanks(scores) for size, scores in classes.items()}

    def rank(self, allele: Allele, value: float) -> Rank | None:
        """The rank of an allele's score in nats, None where there is too little to compare with."""
        size = find_class(len(allele.ref), len(allele.alt))
        if size is None or size not in self._ranks:
            return None
        strata = list_strata(allele, size, self._genome)
        return self._ranks[size].rank(strata, scale_score(allele, size, value))

    def describe(self) -> dict[str, Any]:
        """What a sidecar says, by class; scores in nats."""
        return {
            size.name: {
                "scores": len(scores),
                "per_base": size.per_base,
                **describe_calibration(scores),
            }
            for size, scores in sorted(self.classes.items())
        }


def parse_background(text: str | int) -> int | None:
    """How many places `--background` asks for, None for off. Raises `UsageError`."""
    if str(text) == "off":
        return None
    if str(text) == "on":
        return DEFAULT
    if not str(text).isdecimal() or not LEAST <= int(text) <= 10**9:
        fix = f"give off, on ({DEFAULT:,}), or a number from {LEAST}"
        raise UsageError(f"--background {text} is no number of variants", fix=fix)
    return int(text)


def count_windows(size: SizeClass, method: str) -> int:
    """About how many windows one score of a class takes; those of an SNV's place are shared."""
    ref, alt = size.ref[1], size.alt[1]
    if method == "auto":
        single = ref == alt == 1
        method = "llr" if single else "chain" if max(ref, alt) <= _LONGEST_CHAIN else "nelbo"
    if method == "nelbo":
        return _NELBO * (3 if size.kind == "snv" else 1)
    if method == "llr" or size.kind == "snv":
        return 1 if ref == alt else (ref > 0) + (alt > 0)
    return sum(min(2**m - 1, _ORDERS * m) for m in (ref, alt)) - (ref == alt)


def find_classes(sizes: Iterable[tuple[int, int]]) -> list[SizeClass]:
    """The classes of variants with these numbers of bases of REF and ALT, in order."""
    return sorted({size for one in sizes if (size := find_class(*one)) is not None})


def draw_background(
    genome: Contigs,
    genome_hash: str,
    classes: Iterable[SizeClass],
    request: BackgroundRequest,
    score: Score,
    tick: Tick | None = None,
) -> Background:
    """The random variants of some classes, with their scores: from the cache, or made and kept.

    Raises `MachineError` where the cache cannot be written.
    """
    found: dict[SizeClass, list[RandomScore]] = {}
    for size in classes:
        draws, total = VariantDraws(genome, size, request.seed), request.count(size)
        held: list[RandomScore] = []
        for first in range(0, total, PART):
            numbers = range(first, min(first + PART, total))
            key = {
                **request.settings, "version": _VERSION, "genome": genome_hash, "class": size.name,
                "method": request.method, "seed": request.seed, "draws": [first, numbers.stop],
            }  # fmt: skip
            rows = _open_part(key, partial(_score_part, draws, numbers, score))
            for number, chrom, start, ref, alt, value in rows:
                allele = Allele(chrom, start, ref, alt)
                strata = list_strata(allele, size, genome)
                held.append(RandomScore(number, strata, scale_score(allele, size, value)))
            if tick is not None:
                tick(size.name, numbers.stop, total)
        if len(held) < total:
            _log.warning("background: %s of %s have %s", size.name, f"{total:,}", f"{len(held):,}")
        found[size] = held
    return Background(genome, found)


Row = list[Any]
"""Number of the draw, contig, start, REF, ALT, score in nats."""


def _score_part(draws: VariantDraws, numbers: range, score: Score) -> list[Row]:
    drawn = [(number, one) for number in numbers for one in draws.draw(number)]
    scores = score(one for _, one in drawn)
    return [
        [number, one.chrom, one.start, one.ref, one.alt, found.value]
        for (number, one), found in zip(drawn, scores, strict=True)
        if found.value is not None
    ]


def _open_part(key: Mapping[str, object], make: Callable[[], list[Row]]) -> list[Row]:
    """The rows of a cached part. One that is damaged is made again."""
    path = cache_dir() / "backgrounds" / f"{sha256_json(key)[:32]}.json"
    rows = _read_part(path, key)
    if rows is not None:
        return rows
    with lock_folder(path, "scores random variants"):
        rows = _read_part(path, key)
        if rows is None:
            rows = make()
            told = {"key": dict(key), "rows": rows, "sha256": sha256_json(rows)}
            atomic.write_text(path, json.dumps(told) + "\n")
    return rows


def _read_part(path: Path, key: Mapping[str, object]) -> list[Row] | None:
    told = read_json_object(path)
    rows = told.get("rows")
    if told.get("key") != key or not isinstance(rows, list):
        return None
    return rows if sha256_json(rows) == told.get("sha256") else None
