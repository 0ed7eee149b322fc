"""Saturation mutagenesis of regions, in memory and as a file: `genodiff ism`."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from genodiff.errors import UsageError
from genodiff.jobs import machine
from genodiff.jobs.request import find_named
from genodiff.maps.map_files import SaturationMap, make_saturation_frame, stack_saturation
from genodiff.maps.map_job import MapForms, MapJob, MapReader, read_maps, tell_time
from genodiff.maps.map_regions import MapRegion
from genodiff.maps.request import SaturationFields, SaturationRequest
from genodiff.maps.saturation import (
    LONGEST,
    count_saturation,
    score_oracle,
    score_saturation,
)
from genodiff.models.opening import ModelHolder
from genodiff.runs.model import TrainedModel, name_relatives
from genodiff.runs.training_memory import OwnLoci, name_memory, open_loci
from genodiff.scoring.variant_windows import Contigs

if TYPE_CHECKING:
    from genodiff.finetuning.fitted_model import FittedModel
    from genodiff.finetuning.oracle import FittedOracle

_OWN = "log p(base) − log p(reference), given all others"


class SaturationReader(MapReader):
    """Scores of every substitution, by a language model or by a fine-tuned one."""

    longest = LONGEST
    forms = MapForms(
        make_saturation_frame,
        stack_saturation,
        "genodiff.reports.ism_page:list_ism_picture",
        "genodiff.reports.ism_page:render_ism_page",
    )

    def __init__(
        self,
        asked: SaturationFields,
        model: "TrainedModel | FittedModel",
        genome: Contigs,
        regions: Sequence[MapRegion],
    ) -> None:
        self._asked, self._model, self._genome, self._regions = asked, model, genome, regions
        self._oracle: FittedOracle | None = None
        self._loci: OwnLoci | None = None
        if not isinstance(model, TrainedModel):
            self._oracle = _open_oracle(asked, model, regions)
            return
        model.check_fills_dna()
        if asked.label is not None:
            raise UsageError("--label is of a fine-tuned model", fix="leave it out")
        self._loci = open_loci(model, genome, asked.memory, longest=asked.context)

    def count(self) -> dict[str, int]:
        n = count_saturation(self._regions, oracle=self._oracle is not None)
        return {"evaluations": n}

    def time(self, evaluations: int) -> dict[str, Any]:
        asked, model = self._asked, self._model
        if self._oracle is not None:
            oracle, some = self._oracle, [one.letters.encode() for one in self._regions[:8]]
            each = machine.time_steps(lambda: len(oracle(some))) if some else 0.0
            return {"seconds": round(evaluations * each, 1)}
        assert isinstance(model, TrainedModel)
        places = ((one.contig, at) for one in self._regions for at in range(one.start, one.end))
        return tell_time(
            model, self._genome, places, evaluations, context=asked.context,
            memory=asked.memory, batch_size=asked.batch_size,
        )  # fmt: skip

    def identify(self) -> dict[str, Any]:
        asked, model, context = self._asked, self._model, None
        if isinstance(model, TrainedModel):
            context = asked.context or model.config.data.seq_len
        return {
            "checkpoint": model.digest, "label": asked.label, "context": context,
            **name_memory(self._loci), **name_relatives(self._model),
        }  # fmt: skip

    def rows(self, skip: int) -> Iterator[bytes]:
        asked = self._asked
        if self._oracle is not None:
            rows = score_oracle(self._oracle, self._regions, skip=skip)
        else:
            assert isinstance(self._model, TrainedModel)
            rows = score_saturation(
                self._model, self._genome, self._regions, context=asked.context,
                batch_size=asked.batch_size, skip=skip, loci=self._loci,
            )  # fmt: skip
        return (row.tobytes() for row in rows)

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
        """The unit of the scores: of a regression that of its labels."""
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
    fitted = find_named("genodiff.finetuning.oracle:FittedOracle")
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
