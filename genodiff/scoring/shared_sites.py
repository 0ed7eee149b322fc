"""Many sites of one window from one evaluation, where the model leaves them independent.

A contig is cut into tiles of half a context. A site's tile stands in the middle of one window, and
in that window every `spacing`-th base of the tile is masked, the site among them. All sites of the
tile with the same remainder share this evaluation. Which bases are masked depends on the place in
the contig alone, never on the variants of a file: so a score has the same bits in any order, shard
and company.

It is an approximation. Bases `spacing` apart do not see one another, and a site is not in the
middle of its window. `measure_spacing` scores sites of the genome both ways, and takes the smallest
spacing whose scores agree with those of `llr` to `TOLERANCE`.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from genodiff.alphabet import Alphabet
from genodiff.counter import Purpose, uniforms
from genodiff.io.variants import Allele
from genodiff.scoring.masked_reader import Logs, MaskedReader
from genodiff.scoring.span_scores import Estimate, Steps, mask_where
from genodiff.scoring.spelling_pair import Ids
from genodiff.scoring.variant_windows import Contigs, place_window

TOLERANCE = 1e-3
"""Nats by which a shared score may differ from `llr`."""
SITES = 64
"""Sites of the genome that a spacing is measured at."""
_SHARE = 0.95  # of these sites are within the tolerance
_SPACINGS = (8, 16, 32, 64, 128, 256, 512)
_TRIES = 20  # places for each site, before a genome of N is given up
_SEED = 1


class Spacing(NamedTuple):
    """The spacing of masked bases, and how far shared scores were from `llr`, in nats."""

    bases: int
    error: float  # the largest of the 95 % of sites that agree best
    worst: float
    sites: int


class SharedWindow(NamedTuple):
    """The evaluation of a site: contig[start:end] with its masks, and which mask is the site's."""

    start: int
    end: int
    window: Ids
    place: int


def share_window(
    genome: Contigs, alphabet: Alphabet, reader: MaskedReader, contig: str, site: int,
    context: int, spacing: int,
) -> SharedWindow:  # fmt: skip
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
    return SharedWindow(
        start, end, mask_where(reader, ids, masked), int(masked[: site - start].sum())
    )


def score_shared(reader: MaskedReader, shared: SharedWindow, ref: int, alt: int) -> Steps:
    """The score of a substitution of the id `ref` by `alt`, from its shared window."""
    (logs,) = yield [shared.window]
    return Estimate(compare_bases(reader, logs[shared.place], ref, alt), 0.0, windows=1)


def compare_bases(reader: MaskedReader, logs: Logs, ref: int, alt: int) -> float:
    """log p(alt) − log p(ref) of one masked base."""
    columns = reader.columns(np.array([ref, alt], np.uint8))
    return float(logs[columns[1]]) - float(logs[columns[0]])


def measure_spacing(
    reader: MaskedReader, alphabet: Alphabet, genome: Contigs, context: int
) -> Spacing | None:
    """The smallest spacing with errors below `TOLERANCE`, or None where none saves anything.

    The sites are drawn from the genome with a fixed seed, so every run finds the same.
    """
    spacings = [spacing for spacing in _SPACINGS if 2 * spacing <= context // 2]
    sites = list(draw_sites(reader, alphabet, genome, SITES))
    if not sites or not spacings:
        return None
    alone = []
    for contig, site in sites:
        start, end = place_window(site, site + 1, 1, context, genome.contigs[contig])
        ids = alphabet.encode(genome.fetch(contig, start, end))
        alone.append(mask_where(reader, ids, np.arange(start, end) == site))
    exact = [logs[0] for logs in reader.read(alone)]
    found = None
    for spacing in reversed(spacings):
        shared = [
            share_window(genome, alphabet, reader, contig, site, context, spacing)
            for contig, site in sites
        ]
        logs = reader.read([one.window for one in shared])
        errors = sorted(
            float(np.ptp(some[one.place] - other))
            for some, one, other in zip(logs, shared, exact, strict=True)
        )
        error = errors[int(np.ceil(_SHARE * len(errors))) - 1]
        if error > TOLERANCE:
            break
        found = Spacing(spacing, error, errors[-1], len(errors))
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


def allele_ids(alphabet: Alphabet, allele: Allele) -> tuple[int, int]:
    """The ids of the two bases of a substitution."""
    ref, alt = alphabet.encode(allele.ref + allele.alt).tolist()
    return ref, alt
