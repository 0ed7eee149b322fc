"""How long evaluations of the network take here, for plans: a second of the work itself."""

import time
from collections.abc import Callable, Iterable
from itertools import islice

import numpy as np

from genodiff.alphabet import Alphabet
from genodiff.scoring.masked_reader import MaskedReader
from genodiff.scoring.span_scores import mask_where
from genodiff.scoring.variant_windows import Contigs, place_window

_TIMING = 1.0  # seconds
PROBE = 1 << 15
"""Bases of one step, or one window."""
_WINDOWS = 16  # of one step, at most

Place = tuple[str, int]
"""A contig and a base, from 0."""


def time_steps(step: Callable[[], int]) -> float:
    """Seconds of one unit: `step` does some work and says how many units it was.

    The first step warms up; the others go on for about a second.
    """
    step()
    began, done = time.perf_counter(), 0
    while not done or time.perf_counter() - began < _TIMING:
        done += step()
    return (time.perf_counter() - began) / done


def time_evaluations(
    reader: MaskedReader,
    genome: Contigs,
    alphabet: Alphabet,
    places: Iterable[Place],
    context: int,
    every: int | None = None,
) -> float:
    """Seconds of one evaluation of a window of `context` bases around some of `places`.

    The base itself is masked; with `every`, all bases so far apart. 0.0 without any place.
    """
    rows = max(1, min(reader.batch_size or _WINDOWS, _WINDOWS, PROBE // context))
    windows, own = [], []
    for contig, place in islice(places, rows):
        start, end = place_window(place, place + 1, 1, context, genome.contigs[contig])
        ids = alphabet.encode(genome.fetch(contig, start, end))
        at = np.arange(start, end)
        masked = at == place if every is None else (at - place) % every == 0
        windows.append(mask_where(reader, ids, masked))
        own.append((contig, start, end))
    if not windows:
        return 0.0

    def step() -> int:
        before = reader.evaluations
        reader.read(windows, own)
        return reader.evaluations - before

    return time_steps(step)
