"""Scores of random variants of a genome, drawn once and kept in the cache folder.

`--background N` draws N places for SNVs, each with its three alternatives. A longer variant takes
more windows to score, so of its class there are fewer: N divided by those windows, but at least
`LEAST`. Only the classes that a file has are drawn.

Of the kinds within a class (`background_strata`) those that the file has get `least` scores each,
from further draws if need be (`background_rare`).

A cached part holds `PART` draws, or a rare kind. Its name is a digest of all that the scores depend
on: the model, the genome, the class, how variants are scored, the seed and the numbers of the
draws.

Random variants of the kinds that a genome has few of, such as insertions into long homopolymers.

Among so many random variants there may be none of a rare kind. Its members are then looked for
among further draws of its class, and those alone are scored. They have the law of all random
variants, given their kind. So the percentile of a variant among them is what it is among the
members of a common kind.

At most `MOST_DRAWS` draws are looked through. What is rarer than that has no percentile.
"""

import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from genodiff.io import atomic
from genodiff.io.cache import cache_dir, lock_folder
from genodiff.io.identity import sha256_json
from genodiff.io.target import read_json_object
from genodiff.io.variants import Allele
from genodiff.scoring.methods import find_method
from genodiff.scoring.variant_windows import Contigs
from genodiff.variants.background_draws import (
    SizeClass,
    VariantDraws,
    find_class,
    list_strata,
    scale_score,
)
from genodiff.variants.background_ranks import (
    LEAST,
    LEAST_OF_GROUP,
    RandomScore,
    Rank,
    ScoreRanks,
    describe_calibration,
)
from genodiff.variants.scored_variants import Score

MOST_DRAWS = 1 << 16

FindGroup = Callable[[Sequence[str]], str | None]
"""The group of a variant, by its strata."""


class RareSearch:
    """Looks for members of several groups at once, the first time that one of them is asked for.

    `wanted` says how many of each; `first` is the number of the first draw. What is found of one
    group does not depend on which others are wanted. `tick` is told how many draws were looked at.
    """

    def __init__(
        self,
        draws: VariantDraws,
        find_group: FindGroup,
        wanted: Mapping[str, int],
        first: int,
        tick: Callable[[int, int], None] | None = None,
    ) -> None:
        self._draws, self._find_group, self._first = draws, find_group, first
        self._wanted, self._tick = dict(wanted), tick

    def find(self, group: str) -> list[Allele]:
        """The members of a group, in the order of their draws; fewer than wanted if it is rare."""
        return self._found[group]

    @cached_property
    def _found(self) -> dict[str, list[Allele]]:
        found: dict[str, list[Allele]] = {group: [] for group in self._wanted}
        lacking = {group for group, n in self._wanted.items() if n > 0}
        size, genome = self._draws.size, self._draws.genome
        for number in range(MOST_DRAWS):
            if not lacking:
                break
            for one in self._draws.draw(self._first + number):
                group = self._find_group(list_strata(one, size, genome))
                if group is None or group not in lacking:
                    continue
                found[group].append(one)
                if len(found[group]) == self._wanted[group]:
                    lacking.remove(group)
            if self._tick is not None and not number % 512:
                self._tick(number, MOST_DRAWS)
        return found


PART = 1000
_VERSION = 2  # of the draws: another number, and nothing that is cached is used
_log = logging.getLogger("genodiff")

Row = list[Any]
"""Number of the draw, contig, start, REF, ALT, score in nats."""
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
        return max(LEAST, self.n // max(1, count_windows(size, self.method)))

    def least(self, size: SizeClass) -> int:
        """How many scores a kind within a class needs to be compared with."""
        share = self.n // (10 * max(1, count_windows(size, self.method)))
        return min(LEAST, max(LEAST_OF_GROUP, share))

    def cost(self, size: SizeClass) -> int:
        """About how many windows the network reads for a class; with nelbo, at least."""
        return self.count(size) * count_windows(size, self.method)


class Background:
    """The random variants of those classes that a file needs.

    `more` holds, by class, what was drawn of rare groups.
    """

    def __init__(
        self,
        genome: Contigs,
        classes: Mapping[SizeClass, list[RandomScore]],
        request: BackgroundRequest,
        more: Mapping[SizeClass, Mapping[str, list[float]]] | None = None,
    ) -> None:
        self._genome, self._request = genome, request
        self.classes, self.more = classes, more or {}
        self._ranks = {
            size: ScoreRanks(scores, request.least(size), self.more.get(size))
            for size, scores in classes.items()
        }

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
                **describe_calibration(scores, self._request.least(size)),
                "rare": {
                    group: self._ranks[size].count(group)
                    for group in sorted(self.more.get(size, ()))
                },
            }
            for size, scores in sorted(self.classes.items())
        }


def count_windows(size: SizeClass, method: str) -> int:
    """About how many windows one draw of a class takes: an SNV's place has three ALTs."""
    widths = size.ref[1], size.alt[1]
    found = find_method(widths, method)
    apart = size.kind == "snv" and not found.shares_windows
    return found.windows(*widths) * (3 if apart else 1)


Kinds = Mapping[SizeClass, Collection[tuple[str, ...]]]
"""The classes that a file has, and the strata of its variants in each."""


def find_kinds(alleles: Iterable[Allele], genome: Contigs) -> dict[SizeClass, set[tuple[str, ...]]]:
    """The kinds of these variants, classes in order."""
    found: dict[SizeClass, set[tuple[str, ...]]] = {}
    for one in alleles:
        size = find_class(len(one.ref), len(one.alt))
        if size is not None:
            found.setdefault(size, set()).add(tuple(list_strata(one, size, genome)))
    return dict(sorted(found.items()))


def draw_background(
    genome: Contigs,
    genome_hash: str,
    kinds: Kinds,
    request: BackgroundRequest,
    score: Score,
    tick: Tick | None = None,
) -> Background:
    """The random variants of some classes, with their scores: from the cache, or made and kept.

    Raises `MachineError` where the cache cannot be written.
    """
    found: dict[SizeClass, list[RandomScore]] = {}
    more: dict[SizeClass, dict[str, list[float]]] = {}
    for size in kinds:
        draws, total = VariantDraws(genome, size, request.seed), request.count(size)
        given, scored = _name_class(genome_hash, size, request)
        held: list[RandomScore] = []
        for numbers, key in _list_parts(scored, total):
            drawn = ((number, one) for number in numbers for one in draws.draw(number))
            rows = _open_part(key, partial(_score_rows, drawn, score))
            for number, chrom, start, ref, alt, value in rows:
                allele = Allele(chrom, start, ref, alt)
                strata = list_strata(allele, size, genome)
                held.append(RandomScore(number, strata, scale_score(allele, size, value)))
            if tick is not None:
                tick(size.name, numbers.stop, total)
        if len(held) < total:
            _log.warning("background: %s of %s have %s", size.name, f"{total:,}", f"{len(held):,}")
        found[size] = held
        least = request.least(size)
        asked = {"places": total, "least": least}
        more[size] = _add_rare(
            draws, ScoreRanks(held, least), kinds[size], {**given, **asked}, {**scored, **asked},
            score, tick,
        )  # fmt: skip
    return Background(genome, found, request, more)


def _add_rare(
    draws: VariantDraws,
    ranks: ScoreRanks,
    strata: Iterable[Sequence[str]],
    given: Mapping[str, Any],
    scored: Mapping[str, Any],
    score: Score,
    tick: Tick | None,
) -> dict[str, list[float]]:
    """Scores of further random variants, for each group of `strata` that has too few."""
    size = draws.size
    wanted = _list_wanted(ranks, strata, size, given["least"])

    def look(done: int, total: int) -> None:
        if tick is not None:
            tick(f"{size.name}, looking for rare kinds", done, total)

    search = RareSearch(draws, ranks.find_group, wanted, given["places"], look)
    found = {}
    for group in wanted:
        told = _name_rare(group)
        members = _open_part({**given, **told}, partial(_list_members, search, group))
        alleles = [Allele(*row) for row in members]
        rows = _open_part({**scored, **told}, partial(_score_rows, enumerate(alleles), score))
        found[group] = [scale_score(Allele(*row[1:5]), size, row[5]) for row in rows]
    return found


class BackgroundCost(NamedTuple):
    """What is still to be scored, by class: members of rare groups, and about how many windows."""

    rare: dict[str, int]
    windows: dict[str, int]


def count_background(
    genome: Contigs, genome_hash: str, kinds: Kinds, request: BackgroundRequest
) -> BackgroundCost:
    """What `draw_background` would score; nothing is scored, and what is cached costs nothing.

    Of a group that hardly has members fewer are found. With nelbo the windows are the least.
    """
    rare: dict[str, int] = {}
    windows: dict[str, int] = {}
    for size in kinds:
        draws, each = VariantDraws(genome, size, request.seed), count_windows(size, request.method)
        total, least = request.count(size), request.least(size)
        _, scored = _name_class(genome_hash, size, request)
        held: list[RandomScore] = []
        for numbers, key in _list_parts(scored, total):
            rows = _read_part(_find_part(key), key)
            windows[size.name] = windows.get(size.name, 0) + len(numbers) * each * (rows is None)
            alleles = [Allele(*row[1:5]) for row in rows or ()]
            if rows is None:
                alleles = [one for number in numbers for one in draws.draw(number)]
            held += [RandomScore(0, list_strata(one, size, genome), 0.0) for one in alleles]
        asked = {**scored, "places": total, "least": least}
        for group, n in _list_wanted(ScoreRanks(held, least), kinds[size], size, least).items():
            key = {**asked, **_name_rare(group)}
            if _read_part(_find_part(key), key) is None:
                rare[size.name] = rare.get(size.name, 0) + n
                windows[size.name] += n * each
    return BackgroundCost(rare, windows)


def _name_class(
    genome_hash: str, size: SizeClass, request: BackgroundRequest
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the random variants of a class depend on, and what their scores do."""
    given = {"version": _VERSION, "genome": genome_hash, "class": size.name, "seed": request.seed}
    return given, {**given, **request.settings, "method": request.method}


def _list_parts(scored: Mapping[str, Any], total: int) -> Iterator[tuple[range, dict[str, Any]]]:
    """The numbers of the draws of each cached part of a class, and its key."""
    for first in range(0, total, PART):
        numbers = range(first, min(first + PART, total))
        yield numbers, {**scored, "draws": [first, numbers.stop]}


def _list_wanted(
    ranks: ScoreRanks, strata: Iterable[Sequence[str]], size: SizeClass, least: int
) -> dict[str, int]:
    """How many more scores each group of `strata` needs; of the class itself all are drawn."""
    groups = {group for some in strata if (group := ranks.find_group(some)) is not None}
    groups.discard(size.name)
    return {
        group: least - ranks.count(group) for group in sorted(groups) if ranks.count(group) < least
    }


def _name_rare(group: str) -> dict[str, Any]:
    return {"rare": group, "most": MOST_DRAWS}


def _list_members(search: RareSearch, group: str) -> list[Row]:
    return [[one.chrom, one.start, one.ref, one.alt] for one in search.find(group)]


def _score_rows(numbered: Iterable[tuple[int, Allele]], score: Score) -> list[Row]:
    drawn = list(numbered)
    scores = score(one for _, one in drawn)
    return [
        [number, one.chrom, one.start, one.ref, one.alt, found.value]
        for (number, one), found in zip(drawn, scores, strict=True)
        if found.value is not None
    ]


def _open_part(key: Mapping[str, object], make: Callable[[], list[Row]]) -> list[Row]:
    """The rows of a cached part. One that is damaged is made again."""
    path = _find_part(key)
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


def _find_part(key: Mapping[str, object]) -> Path:
    return cache_dir() / "backgrounds" / f"{sha256_json(key)[:32]}.json"


def _read_part(path: Path, key: Mapping[str, object]) -> list[Row] | None:
    told = read_json_object(path)
    rows = told.get("rows")
    if told.get("key") != key or not isinstance(rows, list):
        return None
    return rows if sha256_json(rows) == told.get("sha256") else None
