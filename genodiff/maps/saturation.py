"""In-silico saturation mutagenesis: the score of every base in place of every base of a region.

A run of masked diffusion scores a substitution by the masked marginal, in nats,

    score(i, b) = log p(b | all but i) − log p(x_i | all but i)

from one evaluation of the network a site, with the site in the middle of its window. It is what
`genodiff score --exact` gives for the same SNVs. A row has a column for each of A, C, G and T; that
of the reference is 0.

An oracle, such as a fine-tuned model, reads the whole region with one base changed, and a row has
the change of the number that it gives.

A site that is not A, C, G or T has a row of NaN. Of a region on - the rows run in its direction,
and bases are those of its strand.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from genodiff.io.places import orient
from genodiff.io.variants import Allele
from genodiff.maps.map_regions import BASES, MapRegion
from genodiff.runs.model import TrainedModel
from genodiff.runs.training_memory import OwnLoci
from genodiff.scoring.score_options import ScoreOptions
from genodiff.scoring.variant_scores import score_alleles
from genodiff.scoring.variant_windows import Contigs

Row = NDArray[np.float64]

LONGEST = 100_000
"""Bases of the longest region."""
_SITES = 64  # that are computed together


def count_saturation(regions: Sequence[MapRegion], *, oracle: bool = False) -> int:
    """How many evaluations of the network the rows of `regions` take."""
    sites = [int((region.columns >= 0).sum()) for region in regions]
    return sum(3 * n + 1 if n else 0 for n in sites) if oracle else sum(sites)


def score_saturation(
    model: TrainedModel,
    genome: Contigs,
    regions: Sequence[MapRegion],
    *,
    context: int | None = None,
    batch_size: int = 8,
    skip: int = 0,
    loci: OwnLoci | None = None,
) -> Iterator[Row]:
    """A row (4,) for each site of each region, in their order, in nats.

    `context` is in bases, None for the trained length. The first `skip` sites are left out.
    `loci` is a memory that the network is given. Raises `UsageError` for a model of text or one
    that reads from left to right.
    """
    options = ScoreOptions(
        method="llr", exact=True, context=context, batch_size=batch_size, memory="off"
    )
    sites = [(region, place) for region in regions for place in range(len(region.letters))]
    for first in range(skip, len(sites), _SITES):
        some = sites[first : first + _SITES]
        scores = score_alleles(
            model,
            genome,
            [allele for site in some for _, allele in list_substitutions(*site)],
            options,
            loci,
        )
        for region, place in some:
            row = np.full(4, np.nan)
            if region.letters[place] in BASES:
                row[BASES.index(region.letters[place])] = 0.0
            for column, _ in list_substitutions(region, place):
                value = next(scores).value
                row[column] = np.nan if value is None else value
            yield row


def list_substitutions(region: MapRegion, place: int) -> list[tuple[int, Allele]]:
    """The three substitutions of one base of a region; none of N.

    Each is the column of the base that is put there, and the allele as the genome has it.
    """
    ref = region.letters[place]
    if ref not in BASES:
        return []
    start = int(region.positions[place])
    pairs = [(column, ref + alt) for column, alt in enumerate(BASES) if alt != ref]
    spelled = [(column, orient(two.encode(), region.strand).decode()) for column, two in pairs]
    at, to = (1, 0) if region.strand == "-" else (0, 1)
    return [(column, Allele(region.contig, start, two[at], two[to])) for column, two in spelled]


def score_oracle(
    ask: Callable[[list[bytes]], NDArray[np.float64]],
    regions: Sequence[MapRegion],
    *,
    skip: int = 0,
) -> Iterator[Row]:
    """A row (4,) for each site of each region: the change of what an oracle says of the region.

    `ask` gives a number for each of several sequences, such as `FittedOracle`. The first `skip`
    sites are left out.
    """
    for region in regions:
        if skip >= len(region.letters):
            skip -= len(region.letters)
            continue
        before = ask([region.letters.encode()])[0]
        for first in range(skip, len(region.letters), _SITES):
            places = range(first, min(first + _SITES, len(region.letters)))
            changed = [
                (region.letters[:place] + BASES[column] + region.letters[place + 1 :]).encode()
                for place in places
                for column, _ in list_substitutions(region, place)
            ]
            found = iter(ask(changed).tolist() if changed else [])
            for place in places:
                row = np.full(4, np.nan)
                for column, _ in list_substitutions(region, place):
                    row[BASES.index(region.letters[place])] = 0.0
                    row[column] = next(found) - before
                yield row
        skip = 0
