"""Many sites of one window from one evaluation, where the model leaves them independent.

A contig is cut into tiles of half a context. A tile stands in the middle of one window, and in that
window every `spacing`-th base of the tile is masked, the site among them. All sites of the tile
with the same remainder share this evaluation. Which bases are masked depends on the place in the
contig alone, never on the variants of a file: so a score has the same bits in any order, shard and
company.

Bases that are masked together do not see one another. `measure_spacing` scores sites of the genome
in these windows alone and in company, and takes the smallest spacing at which none differs by more
than `TOLERANCE`. A site is also not in the middle of its window: it has at least a quarter of the
context on either side. `--exact` gives each site a window of its own, with the site in the middle.
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
"""Nats that the company of other sites may move a score by."""
SITES = 32
"""Sites of the genome that a spacing is measured at."""
_SHARES = (2, 3, 4, 6, 8, 12, 16, 24, 32)  # sites of a tile that share an evaluation
_TRIES = 20  # places for each site, before a genome of N is given up
_SEED = 1


class Spacing(NamedTuple):
    """The spacing of masked bases, and by how many nats company moved the scores of sites."""

    bases: int
    median: float
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
    """The smallest spacing whose company moves no score by `TOLERANCE`, None where there is none.

    A score is the log-ratio of any two bases. The sites are drawn from the genome with a fixed
    seed, so every run finds the same.
    """
    core = context // 2
    sites = list(draw_sites(reader, alphabet, genome, SITES))
    if not sites:
        return None

    def read(spacing: int) -> list[Logs]:
        shared = [
            share_window(genome, alphabet, reader, contig, site, context, spacing)
            for contig, site in sites
        ]
        logs = reader.read([one.window for one in shared])
        return [some[one.place] for some, one in zip(logs, shared, strict=True)]

    alone, found = read(max(1, core)), None
    for spacing in [core // share for share in _SHARES if core // share > 1]:
        moved = [
            float(np.ptp(one - other)) for one, other in zip(alone, read(spacing), strict=True)
        ]
        if max(moved) > TOLERANCE:
            break
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


def allele_ids(alphabet: Alphabet, allele: Allele) -> tuple[int, int]:
    """The ids of the two bases of a substitution."""
    ref, alt = alphabet.encode(allele.ref + allele.alt).tolist()
    return ref, alt
