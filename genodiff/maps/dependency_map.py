"""Dependency maps: how a substitution at one base changes what a model says of another.

Let x be a window, i and j two of its bases, and a another base for x_i. With

    odds_j(k | x) = p(x_j = k | all but j) / (1 − p(x_j = k | all but j))

the change at target j by substituting source i by a is

    change(i, a, j) = log odds_j(k | x with x_i = a) − log odds_j(k | x)

for that base k at which it is largest in size. It is signed, and k is kept beside it. The map is

    dependency(i, j) = max over a of |change(i, a, j)|

in nats, after Tomaz da Silva et al. 2024, bioRxiv 2024.07.27.605418 (Nature Genetics 2025), who
write log2. Two things differ. The target is masked, because a network of masked diffusion says
something of masks alone; theirs reads all targets from one pass with nothing masked. And a network
that reads one strand is asked on both: the logarithms of both strands are averaged before the odds.

The diagonal is 0: a base is masked where it is asked for, so its own letter changes nothing. A base
that is not A, C, G or T is neither source nor target, and its row and column are NaN. All pairs of
a region share one window, with the region in its middle (`place_window`).

By itself each pair takes an evaluation: 3 R (R − 1) + R for R bases (`every` None, or R at most).
With `every` = k the targets k bases apart are masked together, which takes k (3 R + 1) + R, or
fewer. Those do not see one another, so it is an approximation, and `check_pairs` measures it. A
source is never masked: in the group that it belongs to it stays visible, substituted or not.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp  # type: ignore[import-untyped]

from genodiff.alphabet import Alphabet
from genodiff.io.places import Place
from genodiff.maps.map_regions import MapRegion
from genodiff.scoring.masked_reader import Logs, MaskedReader
from genodiff.scoring.spelling_pair import Ids
from genodiff.scoring.variant_windows import Contigs, place_window

LONGEST = 1024
"""Bases of the longest region."""
PAIRS = 64
"""Pairs that the company of other masks is measured at."""

Places = NDArray[np.int64]
Floats = NDArray[np.float64]


class MapWindow(NamedTuple):
    """Ids of contig[start:end], and where the region stands in them: [first, last).

    Of a region on - they are those of the reverse complement.
    """

    ids: Ids
    first: int
    last: int
    start: int
    end: int
    contig: str


class SourceRow(NamedTuple):
    """The changes by one source: (4, R) in nats, float32, and (4, R) the base k that moved most.

    Rows are A, C, G, T in place of the source; that of its own base is 0 with base −1.
    """

    change: NDArray[np.float32]
    base: NDArray[np.int8]


def cut_map_window(
    genome: Contigs, alphabet: Alphabet, region: MapRegion, context: int
) -> MapWindow:
    """The window of a region: `context` bases, and at least half of that around the region."""
    length, width = genome.contigs[region.contig], region.end - region.start
    start, end = place_window(region.start, region.end, width, context, length)
    window = Place(region.contig, start, end, region.name, region.strand)
    first = end - region.end if region.strand == "-" else region.start - start
    ids = alphabet.encode(window.read(genome.fetch))
    return MapWindow(ids, first, first + width, start, end, region.contig)


class DependencyMap:
    """The map of one window; `every` (2 or more) None asks for each target by itself."""

    def __init__(
        self, reader: MaskedReader, window: MapWindow, targets: tuple[int, ...], every: int | None
    ) -> None:
        self.reader, self.window, self._targets = reader, window, targets
        inside = window.ids[window.first : window.last]
        self._columns = reader.columns(inside)
        self.known = np.flatnonzero(self._columns >= 0)
        self.groups = group_targets(self.known, len(inside), every)
        self._given: Floats | None = None

    def __len__(self) -> int:
        return self.window.last - self.window.first

    def read_given(self) -> Floats:
        """(R, 4): the logarithms at each base of the region as it stands; NaN where it is N."""
        if self._given is None:
            found = np.full((len(self), len(self._targets)), np.nan)
            logs = self._read([self._mask(group) for group in self.groups])
            for group, some in zip(self.groups, logs, strict=True):
                found[group] = some
            self._given = found
        return self._given

    def read_source(self, source: int) -> SourceRow:
        """The row of one base of the region, counted from 0."""
        shape = (len(self._targets), len(self))
        change, base = np.full(shape, np.nan), np.full(shape, -1, np.int8)
        own = int(self._columns[source])
        if own < 0:
            return SourceRow(change.astype(np.float32), base)
        before, asked, places = self.read_given().copy(), list[Ids](), list[tuple[int, Places]]()
        change[:, self.known] = 0.0
        others = [column for column in range(len(self._targets)) if column != own]
        for group in self.groups:
            rest = group[group != source]
            if not len(rest):
                continue
            if len(rest) < len(group):  # here the source would be masked, so it is read visible
                asked.append(self._mask(rest))
                places.append((own, rest))
            for column in others:
                asked.append(self._mask(rest, source, self._targets[column]))
                places.append((column, rest))
        after = {column: before.copy() for column in others}
        for (column, rest), logs in zip(places, self._read(asked), strict=True):
            (before if column == own else after[column])[rest] = logs
        for column in others:
            moved = find_log_odds(after[column][self.known]) - find_log_odds(before[self.known])
            best = np.abs(moved).argmax(1)
            change[column, self.known] = np.take_along_axis(moved, best[:, None], 1)[:, 0]
            base[column, self.known] = best
        change[:, source], base[:, source] = 0.0, -1
        return SourceRow(change.astype(np.float32), base)

    def read_pair(self, source: int, target: int) -> float:
        """The dependency of one pair of known bases, each by itself: four windows."""
        own, place = int(self._columns[source]), np.array([target])
        letters = [own, *(column for column in range(len(self._targets)) if column != own)]
        asked = [self._mask(place, source, self._targets[column]) for column in letters]
        odds = [find_log_odds(logs) for logs in self._read(asked)]
        return max(float(np.abs(other - odds[0]).max()) for other in odds[1:])

    def read_sources(self, skip: int = 0) -> Iterator[SourceRow]:
        """The rows of all bases after the first `skip`, in order."""
        return map(self.read_source, range(skip, len(self)))

    def _read(self, windows: list[Ids]) -> list[Logs]:
        one = self.window
        return self.reader.read(windows, [(one.contig, one.start, one.end)] * len(windows))

    def _mask(self, targets: Places, source: int | None = None, letter: int = 0) -> Ids:
        ids = self.window.ids.copy()
        ids[self.window.first + targets] = self.reader.mask_id
        if source is not None:
            ids[self.window.first + source] = letter
        return ids


def group_targets(known: Places, length: int, every: int | None) -> list[Places]:
    """The targets that are masked together: `every` bases apart, or each by itself."""
    step = length if every is None else min(every, length)
    groups = [known[known % step == phase] for phase in range(step)]
    return [group for group in groups if len(group)]


def count_pair_evaluations(regions: Sequence[MapRegion], every: int | None) -> int:
    """How many evaluations the maps of `regions` take."""
    return sum(
        _count_groups(group_targets(np.flatnonzero(one.columns >= 0), len(one.letters), every))
        for one in regions
    )


def _count_groups(groups: Sequence[Places]) -> int:
    found, known = len(groups), sum(map(len, groups))
    for group in groups:
        # A source of the group is read visible, and leaves nothing where it was alone.
        found += 3 * (known - len(group)) + (4 * len(group) if len(group) > 1 else 0)
    return found


def find_log_odds(logs: Logs) -> Floats:
    """log p − log(1 − p) from logarithms (..., K) that need not be normalised."""
    found = np.empty_like(logs)
    for column in range(logs.shape[-1]):
        others = np.delete(logs, column, -1)
        found[..., column] = logs[..., column] - logsumexp(others, axis=-1)
    return found


def check_pairs(exact: DependencyMap, dependency: NDArray[np.float32]) -> dict[str, Any] | None:
    """How far a map that was read in groups is from `exact`, a map of the same window, in nats.

    Of so many `pairs`, half of them the strongest and the others spread evenly over the map, the
    company of other masks moved the `median` and the `worst`; `strongest` is the largest dependency
    among them, measured by itself. None where there is no pair.
    """
    off = ~np.eye(len(dependency), dtype=bool) & np.isfinite(dependency)
    places = np.flatnonzero(off)
    if not len(places):
        return None
    half = PAIRS // 2
    strong = places[np.argsort(-dependency.ravel()[places], kind="stable")[:half]]
    spread = places[np.linspace(0, len(places) - 1, half).round().astype(int)]
    chosen = np.unique(np.concatenate([strong, spread]))
    found = np.array([exact.read_pair(*divmod(int(place), len(dependency))) for place in chosen])
    moved = np.abs(found - dependency.ravel()[chosen])
    return {
        "pairs": len(chosen), "median": float(np.median(moved)), "worst": float(moved.max()),
        "strongest": float(found.max()),
    }  # fmt: skip
