"""How long evaluations of the network take here, for plans: a second of the work itself. And how
long relatives take.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice

import numpy as np

from genodiff.alphabet import Alphabet
from genodiff.io.variants import Allele
from genodiff.jobs import machine
from genodiff.scoring.masked_reader import MaskedReader
from genodiff.scoring.methods import ScoreOptions, find_method
from genodiff.scoring.related_sites import RelatedSites
from genodiff.scoring.span_scores import run_steps
from genodiff.scoring.variant_windows import (
    Contigs,
    UnscorableError,
    cut_window,
    place_window,
)

_WINDOWS = 16  # of one step, at most

Place = tuple[str, int]
"""A contig and a base, from 0."""


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
    rows = max(1, min(reader.batch_size or _WINDOWS, _WINDOWS, machine.PROBE // context))
    windows, own = [], []
    for contig, place in islice(places, rows):
        start, end = place_window(place, place + 1, 1, context, genome.contigs[contig])
        ids = alphabet.encode(genome.fetch(contig, start, end))
        at = np.arange(start, end)
        masked = at == place if every is None else (at - place) % every == 0
        windows.append(reader.hide(ids, masked))
        own.append((contig, start, end))
    if not windows:
        return 0.0

    def step() -> int:
        before = reader.evaluations
        reader.read(windows, own)
        return reader.evaluations - before

    return machine.time_steps(step)


def time_spans(
    reader: MaskedReader,
    genome: Contigs,
    alphabet: Alphabet,
    alleles: Sequence[Allele],
    options: ScoreOptions,
    context: int,
) -> float:
    """Seconds of a score of one of some alleles that read no network; 0.0 without any."""
    windows = []
    for one in alleles:
        with suppress(UnscorableError):
            windows.append(cut_window(genome, alphabet, [one], context, options.longest))
    if not windows:
        return 0.0

    def step() -> int:
        for cut in windows:
            place = cut.contig, cut.start, cut.end
            method = find_method(cut.pair.widths, options.method)
            run_steps(method.start(reader, cut.pair, options, place), reader)
        return len(windows)

    return machine.time_steps(step)


def time_related_sites(sites: RelatedSites, alleles: Sequence[Allele]) -> float:
    """Seconds for one of some substitutions, of what relatives say; 0.0 without any."""
    if not alleles:
        return 0.0

    def step() -> int:
        for one in alleles:
            sites.prepare(one)
        sites.read()
        sites.clear()
        return len(alleles)

    return machine.time_steps(step)
