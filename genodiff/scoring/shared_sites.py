"""Score many sites of one window in one evaluation, if the model's predictions allow it.

A contig is cut into tiles of half a context. A tile is in the middle of one window, in which every
`spacing`-th base of the tile is masked, including the site. All sites of the tile with the same
remainder share this evaluation. Which bases are masked depends only on the position in the contig,
never on the variants of a file, so a score has the same bits in any order, shard and batch.

Bases masked together do not see one another, and a site is not in the middle of its window: it has
at least a quarter of the context on either side. `measure_spacing` scores sites of the genome in
windows of their own (the definition) and in shared windows, and returns the smallest spacing at
which none of them differs by more than half of `TOLERANCE`. Sites are measured a few at a time, and
the first that differs stops the measurement. `--exact` gives every site its own window.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from genodiff.alphabet import Alphabet
from genodiff.counter import Purpose, uniforms
from genodiff.errors import MachineError
from genodiff.io import atomic
from genodiff.io.file_kinds import sha256_json
from genodiff.io.target import cache_dir, read_json_object
from genodiff.io.variants import Allele
from genodiff.scoring.masked_reader import Logs, MaskedReader
from genodiff.scoring.spelling_pair import Ids
from genodiff.scoring.variant_windows import Contigs, place_window

TOLERANCE = 1e-3
"""Nats by which sharing may move a score. The measured sites must stay within half of it, since
other sites may move more."""
SITES = 32
"""Sites of the genome that a spacing is measured at."""
_SHARES = (2, 3, 4, 6, 8, 12, 16, 24, 32)  # sites of a tile that share an evaluation
_AT_A_TIME = 4  # sites that are measured together
_TRIES = 20  # places for each site, before a genome of N is given up
_SEED = 1


Site = tuple[str, int]
"""A contig and a place, from 0."""


class Spacing(NamedTuple):
    """The spacing of masked bases, and the change of scores in nats by masking sites together."""

    bases: int
    median: float
    worst: float
    sites: int


class SiteWindow(NamedTuple):
    """contig[start:end] with the `masks` of sites; `turned`: the other strand, of one alone."""

    start: int
    end: int
    window: Ids
    masks: list[int]
    turned: bool = False

    def find_row(self, site: int) -> int:
        """Which of the masks is that of a site."""
        return 0 if self.turned else bisect_left(self.masks, site - self.start)


def keep_spacing(
    key: Mapping[str, object], measure: Callable[[], Spacing | None]
) -> Spacing | None:
    """Cache the result of `measure`, so that each shard does not repeat it.

    If the cache folder is read-only it is measured each time.
    """
    key = {**key, "tolerance": TOLERANCE, "shares": list(_SHARES), "measured": SITES}
    path = cache_dir() / "spacings" / f"{sha256_json(key)[:32]}.json"
    told = read_json_object(path)
    if told.get("key") == key and "spacing" in told:
        kept = told["spacing"]
        return None if kept is None else Spacing(**kept)
    found = measure()
    with suppress(MachineError):
        atomic.write_json(path, {"key": key, "spacing": found and found._asdict()})
    return found


class SiteScores:
    """Scores of substitutions: all those of one site from one evaluation, each window read once.

    With a `spacing`, sites share windows. Without, each is in the middle of a window of its own,
    read on the strand whose bytes come first, so that a variant has the same bits on both strands.
    """

    def __init__(
        self, genome: Contigs, alphabet: Alphabet, reader: MaskedReader, context: int,
        spacing: int | None = None,
    ) -> None:  # fmt: skip
        self._genome, self._alphabet, self._reader = genome, alphabet, reader
        self._context, self._spacing, self._core = context, spacing, max(1, context // 2)
        self._windows: dict[tuple[str, int, int], SiteWindow] = {}
        self._logs: dict[tuple[str, int, int], Logs] = {}
        bases = alphabet.encode("ACGT")
        other = bases if reader.complement is None else reader.complement[bases]
        self._columns, self._turned = (
            dict(zip("ACGT", reader.columns(ids).tolist(), strict=True)) for ids in (bases, other)
        )

    def __len__(self) -> int:
        return len(self._windows)

    def prepare(self, allele: Allele) -> tuple[int, int]:
        """Start and end of the window of a substitution, which the next `read` reads."""
        key = self._key(allele)
        if key not in self._windows:
            self._windows[key] = self._cut(allele)
        return self._windows[key][:2]

    def read(self) -> None:
        """Read all prepared windows."""
        places = [(key[0], one.start, one.end) for key, one in self._windows.items()]
        logs = self._reader.read([one.window for one in self._windows.values()], places)
        self._logs = dict(zip(self._windows, logs, strict=True))

    def score(self, allele: Allele) -> float:
        """log p(alt) − log p(ref) of a prepared substitution, after `read`."""
        key = self._key(allele)
        found = self._windows[key]
        row = self._logs[key][found.find_row(allele.start)]
        columns = self._turned if found.turned else self._columns
        return float(row[columns[allele.alt]]) - float(row[columns[allele.ref]])

    def clear(self) -> None:
        """Forget the windows."""
        self._windows, self._logs = {}, {}

    def _key(self, allele: Allele) -> tuple[str, int, int]:
        if self._spacing is None:
            return allele.chrom, allele.start, 0
        tile, place = divmod(allele.start, self._core)
        return allele.chrom, tile, place % self._spacing

    def _cut(self, allele: Allele) -> SiteWindow:
        site = self._genome, self._alphabet, self._reader, allele.chrom, allele.start, self._context
        if self._spacing is not None:
            return share_window(*site, self._spacing)
        found, complement = cut_site(*site), self._reader.complement
        if complement is None:
            return found
        other = np.ascontiguousarray(complement[found.window[::-1]])
        first = other.tobytes() < found.window.tobytes()
        return found._replace(window=other, turned=True) if first else found


def cut_site(
    genome: Contigs, alphabet: Alphabet, reader: MaskedReader, contig: str, site: int, context: int
) -> SiteWindow:
    """The window with `site` masked in its middle."""
    start, end = place_window(site, site + 1, 1, context, genome.contigs[contig])
    ids = alphabet.encode(genome.fetch(contig, start, end))
    window = reader.hide(ids, np.arange(start, end) == site)
    return SiteWindow(start, end, window, [site - start])


def share_window(
    genome: Contigs, alphabet: Alphabet, reader: MaskedReader, contig: str, site: int,
    context: int, spacing: int,
) -> SiteWindow:  # fmt: skip
    """The window that `site` shares with the other sites of its tile and remainder.

    Raises `ValueError` where there is no A, C, G or T.
    """
    length, core = genome.contigs[contig], max(1, context // 2)
    first = site - site % core
    start, end = place_window(
        first, min(first + core, length), min(core, length - first), context, length
    )
    ids = alphabet.encode(genome.fetch(contig, start, end))
    masked = np.zeros(len(ids), np.bool_)
    masked[first + site % core % spacing - start : first + core - start : spacing] = True
    masked &= reader.are_targets(ids)
    if not masked[site - start]:
        raise ValueError(f"no base at {contig}:{site + 1}")
    window = reader.hide(ids, masked)
    return SiteWindow(start, end, window, np.flatnonzero(reader.asks(window)).tolist())


def measure_spacing(
    reader: MaskedReader, alphabet: Alphabet, genome: Contigs, context: int
) -> Spacing | None:
    """Find the smallest spacing that changes no score by half of `TOLERANCE`; None if there is
    none.

    A score is the log-ratio of any two bases. The sites are drawn from the genome with a fixed
    seed, so every run gives the same result.
    """
    core = context // 2
    sites = list(draw_sites(reader, alphabet, genome, SITES))
    if not sites:
        return None

    def read(some: Sequence[Site], *spacing: int) -> list[Logs]:
        cut: Callable[..., SiteWindow] = share_window if spacing else cut_site
        windows = [cut(genome, alphabet, reader, *site, context, *spacing) for site in some]
        pairs = list(zip(some, windows, strict=True))
        logs = reader.read(
            [one.window for one in windows], [(site[0], one.start, one.end) for site, one in pairs]
        )
        return [
            rows[one.find_row(site)] for rows, ((_, site), one) in zip(logs, pairs, strict=True)
        ]

    found = None
    alone: list[Logs] = []
    shares = (core,) if reader.visible else _SHARES  # what is seen hides nothing from the others
    for spacing in [core // share for share in shares if core // share > 1 or reader.visible]:
        moved: list[float] = []
        for first in range(0, len(sites), _AT_A_TIME):
            some = slice(first, first + _AT_A_TIME)
            if len(alone) == first:
                alone += read(sites[some])
            pairs = zip(alone[some], read(sites[some], spacing), strict=True)
            moved += [float(np.ptp(one - other)) for one, other in pairs]
            if max(moved) > TOLERANCE / 2:
                return found
        found = Spacing(spacing, float(np.median(moved)), max(moved), len(moved))
    return found


def draw_sites(
    reader: MaskedReader, alphabet: Alphabet, genome: Contigs, n: int
) -> Iterator[tuple[str, int]]:
    """At most `n` random sites with A, C, G or T, uniform over the genome."""
    names = list(genome.contigs)
    ends = np.cumsum([genome.contigs[name] for name in names])
    for number in range(n):
        for u in uniforms(_SEED, Purpose.VARIANT_SITE, number, _TRIES):
            place = int(u * ends[-1])
            which = int(np.searchsorted(ends, place, side="right"))
            site = place - int(ends[which - 1] if which else 0)
            letter = genome.fetch(names[which], site, site + 1)
            if reader.are_targets(alphabet.encode(letter))[0]:
                yield names[which], site
                break
