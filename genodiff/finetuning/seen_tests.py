"""What the pretrained models of a sweep saw of a task's test part, and leaving that out."""

import logging
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from genodiff.errors import DataError
from genodiff.finetuning.model_spec import ModelSpec, open_model
from genodiff.tasks.contamination import (
    Contamination,
    describe_contamination,
    describe_left_out,
    measure_contamination,
)
from genodiff.tasks.data_request import DataRequest, Exclusion, load_cached
from genodiff.tasks.split_names import Level

_log = logging.getLogger("genodiff")


class SeenTests(NamedTuple):
    """What was seen of one task's test part, as its rows tell it: by the digest of the model."""

    pretraining: dict[str, dict[str, Any]]
    left_out: dict[str, Any] | None = None

    def tell(self, model: ModelSpec) -> dict[str, Any]:
        """`pretraining` and `left_out` of a model, as rows and model cards have them."""
        found: dict[str, Any] = {}
        if model.kind == "checkpoint":
            found["pretraining"] = self.pretraining[model.digest]
        if self.left_out is not None:
            found["left_out"] = self.left_out
        return found


def measure_seen_tests(
    request: DataRequest, name: str, models: Iterable[ModelSpec], level: Level | None
) -> tuple[DataRequest, SeenTests]:
    """The request, which from now on leaves out what pretraining saw, and what was seen.

    Without a `level` nothing is left out. Raises `DataError` where something is to be left out and
    it is not known what a model was trained on.
    """
    sequences = load_cached(request.to_json(), name).test.sequences
    found: dict[str, Contamination] = {}
    for model in models:
        if model.kind != "checkpoint":
            continue
        seen = measure_contamination(open_model(str(model.path)), sequences)
        found[model.digest] = seen
        _log.info("%s: %s", name, describe_contamination(model.name, seen.to_json()))
        if level is not None and seen.shares is None:
            raise DataError(
                f"--exclude-overlap: what pretraining of {model.name} saw of the test part is "
                f"not known: {seen.reason}",
                fix="leave out --exclude-overlap, or this model",
            )
    if level is None:
        return request, SeenTests({digest: seen.to_json() for digest, seen in found.items()})
    drop = np.zeros(len(sequences), np.bool_)
    for seen in found.values():
        drop |= seen.reaches(level)
    rows = tuple(np.flatnonzero(drop).tolist())
    excluded = request.excluded | {name: Exclusion(level=level, rows=rows)}
    told = {digest: seen.take(~drop).to_json() for digest, seen in found.items()}
    left_out = {"level": level, "n": len(rows), "of": len(drop)}
    return request.model_copy(update={"excluded": excluded}), SeenTests(told, left_out)


def describe_seen_tests(rows: Sequence[dict[str, Any]]) -> list[str]:
    """What a task's rows tell of pretraining and of examples left out: a sentence each."""
    lines = [describe_left_out(row["left_out"]) for row in rows if row.get("left_out") is not None]
    for row in rows:
        if row["kind"] == "checkpoint":
            told = row.get("pretraining", {"not_known": "not looked for"})
            lines.append(describe_contamination(row["model"], told))
    return list(dict.fromkeys(lines))
