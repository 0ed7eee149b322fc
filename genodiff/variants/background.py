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
from dataclasses import astuple
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from genodiff.io import atomic
from genodiff.io.file_kinds import sha256_json
from genodiff.io.target import cache_dir, lock_folder, read_json_object
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


def find_rare(
    draws: VariantDraws,
    find_group: FindGroup,
    wanted: Mapping[str, int],
    first: int,
    tick: Callable[[int, int], None] | None = None,
) -> dict[str, list[Allele]]:
    """So many members of each group, in the order of their draws; fewer of one that is too rare.

    `first` is the number of the first draw. What is found of one group does not depend on which
    others are wanted. `tick` is told how many draws were looked at.
    """
    found: dict[str, list[Allele]] = {group: [] for group in wanted}
    for number in range(MOST_DRAWS):
        lacking = {group for group, n in wanted.items() if len(found[group]) < n}
        if not lacking:
            break
        for one in draws.draw(first + number):
            group = find_group(list_strata(one, draws.size, draws.genome))
            if group in lacking and len(found[group]) < wanted[group]:
                found[group].append(one)
        if tick is not None and not number % 512:
            tick(number, MOST_DRAWS)
    return found


PART = 1000
_VERSION = 2  # of the draws: another number, and nothing that is cached is used
_log = logging.getLogger("genodiff")

Row = list[Any]
"""Number of the draw, contig, start, REF, ALT, score in nats."""
Key = Mapping[str, object]
Drawn = Callable[[], Iterable[tuple[int, Allele]]]
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

    def read(size: SizeClass, key: Key, n: int, drawn: Drawn) -> list[Row]:
        return _open_part(key, partial(_score_rows, drawn(), score))

    found: dict[SizeClass, list[RandomScore]] = {}
    more: dict[SizeClass, dict[str, list[float]]] = {}
    for size, held, rare in _walk(genome, genome_hash, kinds, request, read, tick):
        found[size], more[size] = held, rare
        if len(held) < (total := request.count(size)):
            _log.warning("background: %s of %s have %s", size.name, f"{total:,}", f"{len(held):,}")
    return Background(genome, found, request, more)


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
    cost = BackgroundCost({}, {size.name: 0 for size in kinds})

    def read(size: SizeClass, key: Key, n: int, drawn: Drawn) -> list[Row]:
        rows = _read_part(_find_part(key), key)
        if rows is not None:
            return rows
        cost.windows[size.name] += n * count_windows(size, request.method)
        if "rare" in key:
            cost.rare[size.name] = cost.rare.get(size.name, 0) + n
            return []
        return [[number, *astuple(one), 0.0] for number, one in drawn()]

    for _ in _walk(genome, genome_hash, kinds, request, read):
        pass
    return cost


def _walk(
    genome: Contigs, genome_hash: str, kinds: Kinds, request: BackgroundRequest,
    read: Callable[[SizeClass, Key, int, Drawn], list[Row]], tick: Tick | None = None,
) -> Iterator[tuple[SizeClass, list[RandomScore], dict[str, list[float]]]]:  # fmt: skip
    """The scores of each class, and of its rare groups; `read` gives the rows of a cached part, by
    its class, key, number of draws and what is drawn.
    """
    for size, strata in kinds.items():
        draws = VariantDraws(genome, size, request.seed)
        total, least = request.count(size), request.least(size)
        given = {
            "version": _VERSION, "genome": genome_hash, "class": size.name, "seed": request.seed
        }  # fmt: skip
        scored = {**given, **request.settings, "method": request.method}
        held: list[RandomScore] = []
        for first in range(0, total, PART):
            numbers = range(first, min(first + PART, total))
            key = {**scored, "draws": [first, numbers.stop]}
            drawn = partial(_draw, draws, numbers)
            for number, *row, value in read(size, key, len(numbers), drawn):
                one = Allele(*row)
                scaled = scale_score(one, size, value)
                held.append(RandomScore(number, list_strata(one, size, genome), scaled))
            if tick is not None:
                tick(size.name, numbers.stop, total)
        ranks, more = ScoreRanks(held, least), {}
        groups = {ranks.find_group(some) for some in strata} - {None, size.name}
        counts = {group: ranks.count(group) for group in sorted(filter(None, groups))}
        wanted = {group: least - n for group, n in counts.items() if n < least}
        look = tick and partial(tick, f"{size.name}, looking for rare kinds")
        search = cache(partial(find_rare, draws, ranks.find_group, wanted, total, look))
        for group, n in wanted.items():
            told = {"places": total, "least": least, "rare": group, "most": MOST_DRAWS}
            members = partial(_open_members, {**given, **told}, search, group)
            rows = read(size, {**scored, **told}, n, members)
            more[group] = [scale_score(Allele(*row[1:5]), size, row[5]) for row in rows]
        yield size, held, more


def _draw(draws: VariantDraws, numbers: range) -> Iterator[tuple[int, Allele]]:
    return ((number, one) for number in numbers for one in draws.draw(number))


def _open_members(
    key: Key, search: Callable[[], dict[str, list[Allele]]], group: str
) -> Iterable[tuple[int, Allele]]:
    rows = _open_part(key, lambda: [[*astuple(one)] for one in search()[group]])
    return enumerate(Allele(*row) for row in rows)


def _score_rows(numbered: Iterable[tuple[int, Allele]], score: Score) -> list[Row]:
    drawn = list(numbered)
    scores = score(one for _, one in drawn)
    return [
        [number, *astuple(one), found.value]
        for (number, one), found in zip(drawn, scores, strict=True)
        if found.value is not None
    ]


def _open_part(key: Key, make: Callable[[], list[Row]]) -> list[Row]:
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


def _find_part(key: Key) -> Path:
    return cache_dir() / "backgrounds" / f"{sha256_json(key)[:32]}.json"


def _read_part(path: Path, key: Key) -> list[Row] | None:
    told = read_json_object(path)
    rows = told.get("rows")
    if told.get("key") != key or not isinstance(rows, list):
        return None
    return rows if sha256_json(rows) == told.get("sha256") else None
