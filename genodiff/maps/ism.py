"""Saturation mutagenesis of regions, in memory and as a file: `genodiff ism`.

In-silico saturation mutagenesis: the score of every base in place of every base of a region.

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

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import UsageError
from genodiff.io.places import orient
from genodiff.io.variants import Allele
from genodiff.jobs import machine
from genodiff.jobs.request import find_named
from genodiff.maps.map_job import MapForms, MapJob, MapReader, read_maps, tell_time
from genodiff.maps.map_regions import (
    BASES,
    MapRegion,
    SaturationMap,
    make_saturation_frame,
    stack_saturation,
)
from genodiff.maps.request import SaturationFields, SaturationRequest
from genodiff.models.opening import ModelHolder
from genodiff.runs.trained_model import TrainedModel, name_memory, name_relatives
from genodiff.runs.training_memory import OwnLoci, open_loci
from genodiff.scoring.methods import ScoreOptions
from genodiff.scoring.variant_scores import score_alleles

if TYPE_CHECKING:
    from genodiff.finetuning.fitted_model import FittedModel, FittedOracle


Row = NDArray[np.float64]

LONGEST = 100_000
"""Bases of the longest region."""
_SITES = 64  # that are computed together


def count_saturation(regions: Sequence[MapRegion], *, oracle: bool = False) -> int:
    """How many evaluations of the network the rows of `regions` take."""
    sites = [int((region.columns >= 0).sum()) for region in regions]
    return sum(3 * n + 1 if n else 0 for n in sites) if oracle else sum(sites)


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


_OWN = "log p(base) − log p(reference), given all others"


class SaturationReader(MapReader):
    """Scores of every substitution, by a language model or by a fine-tuned one."""

    longest = LONGEST
    forms = MapForms(make_saturation_frame, stack_saturation, "genodiff.reports.map_page:ISM")

    def open(self) -> None:
        asked, model = self._asked, self._model
        self._oracle: FittedOracle | None = None
        self._loci: OwnLoci | None = None
        if not isinstance(model, TrainedModel):
            self._oracle = _open_oracle(asked, model, self._regions)
            return
        model.check_fills_dna()
        if asked.label is not None:
            raise UsageError("--label is of a fine-tuned model", fix="leave it out")
        self._loci = open_loci(model, self._genome, asked.memory, longest=asked.context)

    def count(self) -> dict[str, int]:
        return {"evaluations": count_saturation(self._regions, oracle=self._oracle is not None)}

    def time(self, evaluations: int) -> dict[str, Any]:
        if self._oracle is not None:
            oracle, some = self._oracle, [one.letters.encode() for one in self._regions[:8]]
            each = machine.time_steps(lambda: len(oracle(some))) if some else 0.0
            return {"seconds": round(evaluations * each, 1)}
        places = ((one.contig, at) for one in self._regions for at in range(one.start, one.end))
        return tell_time(self._model, self._genome, places, evaluations, self._asked)

    def identify(self) -> dict[str, Any]:
        asked, model, context = self._asked, self._model, None
        if isinstance(model, TrainedModel):
            context = asked.context or model.config.data.seq_len
        return {
            "checkpoint": model.digest, "label": asked.label, "context": context,
            **name_memory(self._loci), **name_relatives(self._model),
        }  # fmt: skip

    def rows(self, skip: int) -> Iterator[bytes]:
        oracle, regions = self._oracle, self._regions
        rows = self._score(skip) if oracle is None else score_oracle(oracle, regions, skip=skip)
        return (row.tobytes() for row in rows)

    def _score(self, skip: int) -> Iterator[Row]:
        """A row (4,) for each site of each region, in their order, in nats."""
        context, batch_size = self._asked.context, self._asked.batch_size
        options = ScoreOptions(
            method="llr", exact=True, context=context, batch_size=batch_size, memory="off"
        )
        sites = [(region, at) for region in self._regions for at in range(len(region.letters))]
        for first in range(skip, len(sites), _SITES):
            some = sites[first : first + _SITES]
            alleles = [allele for site in some for _, allele in list_substitutions(*site)]
            scores = score_alleles(self._model, self._genome, alleles, options, self._loci)
            for region, place in some:
                row = np.full(4, np.nan)
                if region.letters[place] in BASES:
                    row[BASES.index(region.letters[place])] = 0.0
                for column, _ in list_substitutions(region, place):
                    value = next(scores).value
                    row[column] = np.nan if value is None else value
                yield row

    def split(self, rows: Sequence[bytes]) -> list[SaturationMap]:
        scores = np.frombuffer(b"".join(rows)).reshape(-1, 4)
        scale = math.log(2) if self._unit == "bits" else 1.0
        ends = np.cumsum([len(one.letters) for one in self._regions])
        parts = np.split(scores, ends[:-1])
        return [
            SaturationMap(one, part.T / scale)
            for one, part in zip(self._regions, parts, strict=True)
        ]

    def describe(self, maps: Sequence[SaturationMap]) -> dict[str, Any]:
        score = _OWN
        if self._oracle is not None:
            of_class = f"change of the log-odds of {self._asked.label}"
            score = "change of the predicted value" if self._oracle.is_regression else of_class
        return {"score": score, "unit": self._unit}

    @property
    def _unit(self) -> str:
        is_value = self._oracle is not None and self._oracle.is_regression
        return "label" if is_value else self._asked.unit


def _open_oracle(
    asked: SaturationFields, model: "FittedModel", regions: Sequence[MapRegion]
) -> "FittedOracle":
    """Raises `UsageError` for options of a language model."""
    if asked.context is not None:
        what = "a fine-tuned model reads the region by itself, without context"
        raise UsageError(what, fix="leave --context out, and give a longer region")
    if asked.memory == "on":
        what = "a fine-tuned model has no memory of a training genome"
        raise UsageError(what, fix="leave --memory out")
    fitted = find_named("genodiff.finetuning.fitted_model:FittedOracle")
    oracle: FittedOracle = fitted(model, asked.label, batch_size=asked.batch_size)
    oracle.check([len(one.letters) for one in regions])
    return oracle


class SaturationJob(MapJob):
    """The file of `genodiff ism`."""

    kind, noun = SaturationReader, "sites"


def map_saturation(asked: SaturationRequest, holder: ModelHolder) -> Any:
    """What `genodiff.Model.ism` gives: an array (4, L), or a list of them."""
    maps, alone = read_maps(SaturationReader, asked, holder)
    return maps[0].score if alone else [one.score for one in maps]
