"""What the model is compared with on each window: Markov lines, matches with the train split, and
the toy source's probability.

Everything is counted on a train split: that of the data that is scored, or the run's own. Figures
are returned window by window, so that differences from the model's bound can be taken in pairs. A
Markov context may reach over the start of a window, but not of a contig. The model's cannot.

How long that takes is planned before, in seconds of one core of a common server, which are told as
"about". What is kept in the cache costs nothing.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import LETTERS, SOFT, encode_bases
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.kmers import measure_shared_cover, shared_kmers
from genodiff.data.store import Codes, Store, Stretch, find_intervals, split_stretches
from genodiff.data.toy import ToySource
from genodiff.evaluation.adaptive import adaptive_nats
from genodiff.evaluation.contigs import find_spans
from genodiff.evaluation.markov import KmerCounts, Markov, count, fit, fit_pseudo
from genodiff.io.file_kinds import sha256_array
from genodiff.io.kept_arrays import is_kept, keep_array
from genodiff.io.progress import ProgressDisplay, format_duration
from genodiff.kernels import library
from genodiff.statistics.counted_lines import LINES

log = logging.getLogger("genodiff")

MARKOV_ORDER = 8
_DEEPEST = 10  # a table of 4^11 counts is still small beside a chunk
_BASES_AT_A_TIME = 1 << 18
_MIXTURE_WORTH = 10**8  # train bases, for each so many scored ones, that are read unasked
_SCORED_WORTH = 1 << 22
KEPT = "lines-1"  # another number where other figures come of the same windows
_REMEMBERED = 1 << 30  # bases of which the adaptive mixture can keep an index of 32 bits
_MARKOV, _MARKOV_BASE, _ADAPTIVE = 3.0, 0.15e-6, 1.1e-6  # seconds: once, and for each base
_SHARE = 0.5
"""The part of a limit that the lines may have; the network has the rest."""
_TOLD = 10.0  # seconds that are worth a line
STAGES = ("markov", "adaptive", "adaptive_from_train")
"""What is counted one after another."""


class MarkovLines(NamedTuple):
    """−ln P of windows, nats: [..., 0, :] is upper case, [..., 1, :] soft-masked."""

    fixed: NDArray[np.float64]
    """(MARKOV_ORDER + 1, 2, windows): orders 0 .. 8, λ = 20."""
    fitted: NDArray[np.float64] | None
    """(2, windows): order and λs fitted on the valid split; None where that is empty."""
    pseudo: list[float]
    """The fitted λ of each order, from 0 up to the fitted order."""
    adaptive: NDArray[np.float64] | None = None
    """(2, windows): the adaptive mixture; None where it was not run."""
    from_train: NDArray[np.float64] | None = None
    """(2, windows): the same, remembering the train split alone."""


def markov_lines(
    windows: DnaWindows,
    mixture: bool | None = None,
    fitted_on: Store | None = None,
    tell: Callable[[str], None] | None = None,
) -> MarkovLines:
    """The Markov lines of a store's train split on these windows: the windows' own by default.

    The fitted line has an order of at most 10, and at most one that the train split has a base for
    each (order + 1)-mer for. The adaptive mixtures need the C library. They are left out where
    `mixture` is False, or None and they would take long. `tell` is told of each of `STAGES` when it
    begins.
    """
    tell = tell or (lambda stage: None)
    tell("markov")
    store = fitted_on or windows.store
    bases = max(store.splits.intervals["train"].n_bases, 1)
    deepest = min(max(int(np.log2(bases)) // 2 - 1, MARKOV_ORDER), _DEEPEST)
    counts = count_train_words(store, deepest, legacy_caduceus_tiling=windows.legacy)
    fixed = markov_nats(fit(KmerCounts(counts.tables[: MARKOV_ORDER + 1])), windows)
    held_out = count(split_stretches(store, "valid"), deepest)
    if not held_out.bases:
        return MarkovLines(fixed, None, [])
    pseudo = fit_pseudo(counts, held_out)
    adaptive = from_train = None
    if mixture or (mixture is None and is_quick(windows, counts.bases // 2)):
        tell("adaptive")
        adaptive = keep_adaptive(windows, store)
        tell("adaptive_from_train")
        from_train = keep_adaptive(windows, store, grow=False)
    fitted = markov_nats(fit(counts, pseudo), windows)[-1]
    return MarkovLines(fixed, fitted, pseudo, adaptive, from_train)


def keep_adaptive(
    windows: DnaWindows, store: Store, *, grow: bool = True
) -> NDArray[np.float64] | None:
    """`adaptive_mixture_nats`, kept in the cache: of all windows of the intervals that are read.

    None without the C library, and for a train split of more than 2^30 bases.
    """
    if not can_run_adaptive(windows, store):
        return None
    whole, rows = find_read_windows(windows)
    made_from = identify_line("adaptive" if grow else "adaptive_from_train", whole, store)
    make = partial(adaptive_mixture_nats, whole, store, grow=grow)
    return keep_array(KEPT, made_from, (2, len(whole)), make)[:, rows]


def find_read_windows(windows: DnaWindows) -> tuple[DnaWindows, NDArray[np.int64]]:
    """All windows of the intervals that have some of these, and the numbers of these among them."""
    whole, rows = windows.whole()
    spans = find_spans(windows)
    first = np.array([start for start, _, _ in spans])
    last = np.array([end for _, end, _ in spans])
    of = np.searchsorted(first, whole.flat_start, "right") - 1
    read = np.flatnonzero((of >= 0) & (whole.flat_start < last[of]))
    return whole.take(read), np.searchsorted(read, rows)


def identify_line(line: str, windows: DnaWindows, store: Store) -> list[str | bool]:
    """All that decides the figures of a line on windows, as values of JSON."""
    of = [sha256_array(part) for part in (windows.flat_start, windows.length)]
    return [KEPT, line, store.fingerprint, windows.legacy, str(windows.store.manifest["key"]), *of]


def adaptive_mixture_nats(
    windows: DnaWindows, store: Store, *, grow: bool = True
) -> NDArray[np.float64]:
    """(2, windows): −ln P of the bases under the adaptive mixture (see `adaptive`), in nats.

    It remembers `store`'s train split, learns its weights on the valid split, and reads the windows
    in genome order; with `grow` it remembers them too. It needs the C library.
    """
    train = split_stretches(store, "train", legacy_caduceus_tiling=windows.legacy)
    alone = "" if grow else ", of the train split alone"
    log.info("running the adaptive mixture of contexts and copies%s", alone)
    spans = [(start, end) for start, end, _ in find_spans(windows)]
    data = [windows.store.flat[start:end] for start, end in spans]
    text = [encode_bases(part) for part in data]
    found = adaptive_nats(
        _join(train), _join(split_stretches(store, "valid")), _join(text), grow=grow
    )
    assert found is not None
    # Sums up to each base, of upper case and of soft-masked bases, for differences of windows.
    soft = np.concatenate([np.append(part >= SOFT, False) for part in data])
    upto = [np.concatenate([[0.0], np.cumsum(np.where(soft == s, found, 0.0))]) for s in (0, 1)]
    first = np.array([start for start, _ in spans])
    offset = np.concatenate([[0], np.cumsum([end - start + 1 for start, end in spans])[:-1]])
    of = np.searchsorted(first, windows.flat_start, "right") - 1
    at = windows.flat_start - first[of] + offset[of]
    return np.stack([sums[at + windows.length] - sums[at] for sums in upto])


def can_run_adaptive(windows: DnaWindows, store: Store) -> bool:
    """Whether there is a C library, and the train split is not too long."""
    train = find_intervals(store, "train", legacy_caduceus_tiling=windows.legacy)
    return train.n_bases <= _REMEMBERED and library.is_loaded()


def _join(stretches: Sequence[Stretch]) -> Codes:
    """All stretches as codes, an end after each."""
    end = np.full(1, len(LETTERS), np.uint8)
    parts = [part for stretch in stretches for part in (stretch[0 : len(stretch)], end)]
    return np.concatenate([np.zeros(0, np.uint8), *parts])


def is_quick(windows: DnaWindows, bases: int) -> bool:
    """Whether the mixtures take little time; `bases` of the train split are no N."""
    passes = 1 + -(-len(windows) * windows.seq_len // _SCORED_WORTH)
    return passes * bases <= _MIXTURE_WORTH


def count_train_words(
    store: Store, order: int, *, legacy_caduceus_tiling: bool = False
) -> KmerCounts:
    """The k-mer counts of the train split, cached: counting a large genome takes a minute."""
    first = np.cumsum([0] + [4**k for k in range(order + 1)]).tolist()

    def make() -> NDArray[np.int64]:
        log.info("counting k-mers of 1 to %d bases in the train split", order + 1)
        train = split_stretches(store, "train", legacy_caduceus_tiling=legacy_caduceus_tiling)
        return np.concatenate(count(train, order).tables)

    made_from = [store.fingerprint, legacy_caduceus_tiling, order]
    rows = keep_array("markov", made_from, (first[-1], 4), make, np.int64)
    return KmerCounts(tuple(rows[a:b] for a, b in pairwise(first)))


def markov_nats(markov: Markov, windows: DnaWindows) -> NDArray[np.float64]:
    """(order + 1, 2, windows): −ln P_k in nats; [:, 0] upper-case, [:, 1] soft-masked bases."""
    out = np.empty((markov.order + 1, 2, len(windows)))
    before = markov.order
    for rows, data in _chunks(windows, before):
        nll = markov.nll(encode_bases(data).reshape(-1)).reshape(-1, *data.shape)[:, :, before:]
        soft = data[:, before:] >= SOFT
        out[:, 0, rows] = np.where(soft, np.float32(0), nll).sum(-1, dtype=np.float64)
        out[:, 1, rows] = np.where(soft, nll, np.float32(0)).sum(-1, dtype=np.float64)
    return out


def measure_train_cover(windows: DnaWindows, store: Store | None = None) -> NDArray[np.float64]:
    """For each window, the share of its bases in 24-mers of a train split, on either strand."""
    train = split_stretches(store or windows.store, "train", legacy_caduceus_tiling=windows.legacy)
    return measure_shared_cover(_codes(windows), shared_kmers(_codes(windows), train))


def source_nats(source: ToySource, windows: DnaWindows) -> NDArray[np.float64]:
    """−ln P of each window under its own source, in nats. No model is better on average."""
    out = np.empty(len(windows))
    for rows, data in _chunks(windows, 0):
        out[rows] = -source.log_likelihood(data)
    return out


def _codes(windows: DnaWindows) -> Iterator[Codes]:
    for _, data in _chunks(windows, 0):
        yield from encode_bases(data)


def _chunks(windows: DnaWindows, before: int) -> Iterator[tuple[slice, NDArray[np.uint8]]]:
    """Stored bytes of windows, a few at a time, with `before` bytes of their contig on their left;
    0 where none is.
    """
    flat, contig_start = windows.store.flat, windows.store.offsets[windows.contig_index]
    step = max(1, _BASES_AT_A_TIME // windows.seq_len)
    for first in range(0, len(windows), step):
        rows = slice(first, min(first + step, len(windows)))
        start = windows.flat_start[rows, None]
        place = start + np.arange(-before, windows.seq_len)
        inside = (place >= contig_start[rows, None]) & (place < start + windows.length[rows, None])
        yield rows, np.where(inside, flat[np.where(inside, place, start)], 0).astype(np.uint8)


class LinePlan(NamedTuple):
    """Which lines are counted, and the seconds that each stage of it takes."""

    markov: bool
    """False: none is counted."""
    mixture: bool | None
    """As it was asked for; False where it is left out."""
    seconds: dict[str, float]

    @property
    def total(self) -> float:
        """Seconds of all stages."""
        return sum(self.seconds.values())


def plan_lines(
    windows: DnaWindows, train: Store | None, mixture: bool | None, minutes: float | None = None
) -> LinePlan:
    """The lines of a train split on these windows, as far as a limit of `minutes` leaves them.

    Of more windows than will be scored the seconds are a little too many. `mixture` True is asked
    for, and is counted whatever it takes; None is where it takes little time.
    """
    if train is None:
        return LinePlan(False, False, {})
    markov = _MARKOV + _MARKOV_BASE * train.splits.intervals["train"].n_bases
    mixed = mixture or (mixture is None and is_quick(windows, count_known_bases(train)))
    plan = LinePlan(
        True, mixture, {"markov": markov} | (estimate_mixtures(windows, train) if mixed else {})
    )
    if minutes is None or mixture:
        return plan
    limit = 60 * minutes * _SHARE
    told = f"of the {format_duration(60 * minutes)} that --max-minutes gives"
    if markov > limit:
        log.warning("skipping the baselines, which take about %s %s", format_duration(markov), told)
        return LinePlan(False, False, {})
    if plan.total > limit:
        more = format_duration(plan.total - markov)
        log.warning(
            "skipping the mixtures, which take about %s %s; --mixture counts them", more, told
        )
        return LinePlan(True, False, {"markov": markov})
    return plan


def estimate_mixtures(windows: DnaWindows, store: Store) -> dict[str, float]:
    """Seconds to count each of the mixtures on these windows; of what is kept, none."""
    if not can_run_adaptive(windows, store):
        return {}
    bases = sum(store.splits.intervals[split].n_bases for split in ("train", "valid"))
    bases += sum(end - start for start, end, _ in find_spans(windows))
    whole = find_read_windows(windows)[0]
    return {
        name: 0.0 if is_kept(KEPT, identify_line(name, whole, store)) else _ADAPTIVE * bases
        for name in STAGES[1:]
    }


def count_known_bases(store: Store) -> int:
    """The bases of the train split that are no N."""
    runs = store.n_runs
    upto = np.concatenate([[0], np.cumsum(runs[:, 1] - runs[:, 0])])
    train = store.splits.intervals["train"]

    def count_before(place: NDArray[np.int64]) -> NDArray[np.int64]:
        number = np.searchsorted(runs[:, 0], place, "right")
        over = np.append(0, runs[:, 1])[number] - place
        known: NDArray[np.int64] = upto[number] - np.maximum(over, 0)
        return known

    start = store.offsets[train.contig] + train.start
    end = store.offsets[train.contig] + train.end
    return train.n_bases - int((count_before(end) - count_before(start)).sum())


def make_clock(plan: LinePlan, display: ProgressDisplay) -> Callable[[str], None]:
    """Tell how long the counting of lines takes; the function tells it of a stage that begins.

    That is how long it is to the end, at the pace of the stages before.
    """
    began = time.monotonic()
    if plan.total < _TOLD:
        return lambda stage: None
    shown = format_duration(plan.total)
    log.info("counting the baselines, about %s; --no-baselines leaves them out", shown)

    def begin(stage: str) -> None:
        done = sum(plan.seconds.get(name, 0.0) for name in STAGES[: STAGES.index(stage)])
        pace = (time.monotonic() - began) / done if done else 1.0
        left = format_duration((plan.total - done) * pace)
        line = next((line.title for line in LINES if line.name == stage), "Markov lines")
        display.show(f"counting: {line} · {left} to go", done, plan.total or None)

    return begin
