"""What else is known of the scored windows: Markov lines, matches with the train split, the toy source's probability.

Everything is counted on the train split of the data that is scored, and returned window by window, so that it can be
summed over the same bases as the model's bound and compared with it in pairs. A Markov context may reach up to `order`
bases back over a window's start (not over a contig's), which the model's cannot.
"""

import io
import logging
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import SOFT
from genodiff.data.splits import stretched
from genodiff.data.store import Store
from genodiff.data.toy import ToySource
from genodiff.data.windows import Windows
from genodiff.io import atomic
from genodiff.io.cache import cache_dir
from genodiff.score.markov import Coded, Codes, Counts, Markov, base_codes, count
from genodiff.score.repeats import shared_cover, shared_kmers

log = logging.getLogger("genodiff")

_BASES_AT_A_TIME = 1 << 18


def train_stretches(store: Store, *, legacy_caduceus_tiling: bool = False) -> list[Coded]:
    """The intervals that the model may have been trained on, as codes that are read as they are used."""
    intervals = store.splits.intervals["train"]
    if legacy_caduceus_tiling:
        intervals = stretched(intervals, store.lengths)
    start = store.offsets[intervals.contig] + intervals.start
    end = store.offsets[intervals.contig] + intervals.end
    return [Coded(store.flat[a:b]) for a, b in zip(start.tolist(), end.tolist(), strict=True)]


def train_counts(store: Store, order: int, *, legacy_caduceus_tiling: bool = False) -> Counts:
    """The k-mer counts of the train split, kept in the cache: counting a large genome takes a minute."""
    name = f"{store.fingerprint[:32]}-{'legacy-' if legacy_caduceus_tiling else ''}order{order}.npy"
    path = cache_dir() / "markov" / name
    first = np.cumsum([0] + [4**k for k in range(order + 1)])
    try:
        rows = np.load(path, allow_pickle=False)
        if rows.shape == (first[-1], 4) and rows.dtype == np.int64:
            return Counts(tuple(rows[a:b] for a, b in pairwise(first.tolist())))
    except (OSError, ValueError, EOFError):
        pass
    log.info("counting k-mers of the train split")
    counts = count(train_stretches(store, legacy_caduceus_tiling=legacy_caduceus_tiling), order)
    buffer = io.BytesIO()
    np.save(buffer, np.concatenate(counts.tables))
    atomic.write_bytes(path, buffer.getvalue())
    return counts


def markov_nats(markov: Markov, windows: Windows) -> NDArray[np.float64]:
    """−ln P_k of each window's bases, nats: (order + 1, 2, windows); [:, 0] is upper case, [:, 1] soft-masked."""
    out = np.empty((markov.order + 1, 2, len(windows)))
    for rows, data, before in _chunks(windows, markov.order):
        nll = markov.nll(base_codes(data).reshape(-1)).reshape(markov.order + 1, *data.shape)[:, :, before:]
        soft = data[:, before:] >= SOFT
        out[:, 0, rows] = np.where(soft, np.float32(0), nll).sum(-1, dtype=np.float64)
        out[:, 1, rows] = np.where(soft, nll, np.float32(0)).sum(-1, dtype=np.float64)
    return out


def train_cover(windows: Windows) -> NDArray[np.float64]:
    """For each window, the share of its bases in 24-mers that the train split has too, on either strand."""
    train = train_stretches(windows.store, legacy_caduceus_tiling=windows.legacy)
    return shared_cover(_codes(windows), shared_kmers(_codes(windows), train))


def source_nats(source: ToySource, windows: Windows) -> NDArray[np.float64]:
    """−ln P of each window under the source that it was drawn from, nats: what no model beats on average."""
    out = np.empty(len(windows))
    for rows, data, _ in _chunks(windows, 0):
        out[rows] = -source.log_likelihood(data)
    return out


def _codes(windows: Windows) -> Iterator[Codes]:
    for _, data, _ in _chunks(windows, 0):
        yield from base_codes(data)


def _chunks(windows: Windows, before: int) -> Iterator[tuple[slice, NDArray[np.uint8], int]]:
    """Stored bytes of windows, a few at a time, with `before` bytes of their contig on their left; 0 where none is."""
    flat, contig_start = windows.store.flat, windows.store.offsets[windows.contig_index]
    step = max(1, _BASES_AT_A_TIME // windows.seq_len)
    for first in range(0, len(windows), step):
        rows = slice(first, min(first + step, len(windows)))
        start = windows.flat_start[rows, None]
        place = start + np.arange(-before, windows.seq_len)
        inside = (place >= contig_start[rows, None]) & (place < start + windows.length[rows, None])
        yield rows, np.where(inside, flat[np.where(inside, place, start)], 0).astype(np.uint8), before
