"""Dependency maps of regions, in memory and as a file: `genodiff dependencies`."""

import logging
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from genodiff.maps.dependency_map import (
    LONGEST,
    DependencyMap,
    check_pairs,
    count_pair_evaluations,
    cut_map_window,
)
from genodiff.maps.map_job import MapForms, MapJob, MapReader, read_maps, tell_time
from genodiff.maps.map_regions import MapRegion, PairMap, make_pair_frame, stack_pairs
from genodiff.maps.request import DependencyRequest
from genodiff.models.opening import ModelHolder, refuse_fitted
from genodiff.runs.trained_model import name_memory, name_relatives
from genodiff.runs.training_memory import open_loci
from genodiff.scoring.masked_reader import open_reader

_SCORE = "largest change of the log-odds of the target by substituting the source"
_log = logging.getLogger("genodiff")


class DependencyReader(MapReader):
    """How substitutions at one base move the odds of the others."""

    longest = LONGEST
    forms = MapForms(make_pair_frame, stack_pairs, "genodiff.reports.map_page:DEPENDENCIES")

    def open(self) -> None:
        asked, model = self._asked, refuse_fitted(self._model)
        model.check_fills_dna()
        self._context = asked.context or model.config.data.seq_len
        self._loci = open_loci(model, self._genome, asked.memory, longest=self._context)
        self._reader = open_reader(model, batch_size=asked.batch_size, loci=self._loci)
        self._maps: dict[tuple[MapRegion, int | None], DependencyMap] = {}

    def count(self) -> dict[str, int]:
        return {
            "evaluations": count_pair_evaluations(self._regions, self._asked.apart),
            "exact_evaluations": count_pair_evaluations(self._regions, None),
        }

    def time(self, evaluations: int) -> dict[str, Any]:
        asked, places = self._asked, ((one.contig, one.start) for one in self._regions)
        return tell_time(self._model, self._genome, places, evaluations, asked, asked.apart)

    def identify(self) -> dict[str, Any]:
        return {
            "checkpoint": self._model.digest, "every": self._asked.apart,
            "context": self._context, **name_memory(self._loci), **name_relatives(self._model),
        }  # fmt: skip

    def _open(self, region: MapRegion, every: int | None) -> DependencyMap:
        """The map of a region, kept: what it read of the region as it stands is read once."""
        if (region, every) not in self._maps:
            model = self._model
            window = cut_map_window(self._genome, model.alphabet, region, self._context)
            opened = DependencyMap(self._reader, window, model.diffusion.targets, every)
            self._maps[region, every] = opened
        return self._maps[region, every]

    def rows(self, skip: int) -> Iterator[bytes]:
        for region in self._regions:
            n = len(region.letters)
            if skip < n:
                for row in self._open(region, self._asked.apart).read_sources(skip):
                    yield row.change.tobytes() + row.base.tobytes()
            skip = max(0, skip - n)

    def split(self, rows: Sequence[bytes]) -> list[PairMap]:
        maps, at, scale = [], 0, np.float32(self._scale)
        for region in self._regions:
            n = len(region.letters)
            own = rows[at : at + n]
            at += n
            change = np.stack([np.frombuffer(row, np.float32, 4 * n).reshape(4, n) for row in own])
            base = np.stack([np.frombuffer(row[16 * n :], np.int8).reshape(4, n) for row in own])
            opened = self._open(region, self._asked.apart)
            logs = opened.read_given().T
            p = np.exp(logs - logs.max(0))
            window = (opened.window.start, opened.window.end)
            maps.append(PairMap(region, change / scale, base, p / p.sum(0), window))
        return maps

    def describe(self, maps: Sequence[PairMap]) -> dict[str, Any]:
        """With what the company of other masks changed, at pairs of the longest region, in nats."""
        apart = self._asked.apart
        company = None
        longest = max(maps, key=lambda one: len(one.region.letters))
        if apart is not None and len(longest.region.letters) > apart:
            exact = self._open(longest.region, None)
            company = check_pairs(exact, longest.dependency * self._scale)
        if company is not None:
            _log.info(
                "%s pairs read by themselves as well: the company of other masks moved them by "
                "%.3g nats in the middle and %.3g at most, where the strongest is %.3g",
                *(company[name] for name in ("pairs", "median", "worst", "strongest")),
            )  # fmt: skip
        return {"score": _SCORE, "unit": self._asked.unit, "company": company}

    @property
    def _scale(self) -> float:
        return math.log(2) if self._asked.unit == "bits" else 1.0


class DependencyJob(MapJob):
    """The file of `genodiff dependencies`."""

    kind, noun = DependencyReader, "bases"


def map_dependencies(asked: DependencyRequest, holder: ModelHolder) -> Any:
    """What `genodiff.Model.dependencies` gives: a map, or a list of them."""
    maps, alone = read_maps(DependencyReader, asked, holder)
    return maps[0] if alone else maps
