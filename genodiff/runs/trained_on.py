"""The sequence that a model's weights were trained on, as far as this machine knows it.

It is the train split of the run's own data and, where the run began from other weights, of theirs.
A split counts as a whole, however much of it the training came to read.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from genodiff.data.dna_store import build_dna_store, find_dna_store
from genodiff.data.genomes.store import open_genomes
from genodiff.data.splits import Intervals
from genodiff.data.store import Store
from genodiff.data.stretches import Coded, find_intervals, read_stretches
from genodiff.domain import DNA
from genodiff.errors import GenodiffError
from genodiff.io.identity import sha256_json
from genodiff.runs.feed import find_recipe
from genodiff.runs.model import TrainedModel, collect_tensors, load_model
from genodiff.runs.sealed_files import sha256_tensors

_KNOWN_NAMES = {r"caduceus-p[hs]_seqlen-\d+k": "hg38"}
"""Names of published weights, and what their authors say that they were trained on."""


class TrainPart(NamedTuple):
    """The train split of a store, as a model read it."""

    store: Store
    intervals: Intervals

    def stretches(self) -> list[Coded]:
        """Its sequence."""
        return read_stretches(self.store, self.intervals)

    def intervals_on(self, contig: int) -> list[tuple[int, int]]:
        """Start and end of what lies on a contig."""
        mine = self.intervals.take(self.intervals.contig == contig)
        return list(zip(mine.start.tolist(), mine.end.tolist(), strict=True))


class TrainedOn(NamedTuple):
    """What a model was trained on: a key of its content, how to open it, and what it is called.

    `open` takes a store that is open already, and serves where it is the model's own; it raises
    `GenodiffError` or `OSError` where the data are not on this machine. Where they cannot be known,
    `unknown` is the reason.
    """

    key: str
    open: Callable[[Store | None], list[TrainPart]]
    unknown: str = ""
    name: str = ""


def find_trained_on(model: TrainedModel) -> TrainedOn:
    """What a model was trained on; nothing is read but the cards of the runs it began from."""
    source = model.data.get("source")
    if isinstance(source, dict):
        return _unknown(_describe_published(source))
    if model.config.domain != DNA.name:
        return _unknown("it was trained on text")
    if not model.data.get("fingerprint"):
        return _unknown("its run does not say on what data")
    before = None if model.config.init is None else _find_start(model)
    if before is not None and before.unknown:
        return before
    legacy = model.config.data.legacy_caduceus_tiling
    decisive = {"data": model.data["fingerprint"], "legacy": legacy}
    key = sha256_json(decisive | {"before": None if before is None else before.key})

    def open_all(store: Store | None = None) -> list[TrainPart]:
        recipe = find_recipe(model.config)
        if store is not None and store.fingerprint == model.data["fingerprint"]:
            pass
        elif model.config.genomes is None:
            store = find_dna_store(recipe, model.data) or build_dna_store(
                recipe, model.config.fasta, offline=True, remembered=model.data
            )
        else:
            store = open_genomes(model.config.genomes, offline=True, remembered=model.data)
        store.check_same(model.data)
        own = TrainPart(store, find_intervals(store, "train", legacy_caduceus_tiling=legacy))
        return [own] if before is None else [own, *before.open(None)]

    source = model.data.get("source") or model.config.genomes or model.config.recipe
    return TrainedOn(key, open_all, name=Path(str(source)).name)


def _unknown(reason: str) -> TrainedOn:
    return TrainedOn("", lambda store: [], reason)


def _find_start(model: TrainedModel) -> TrainedOn:
    """What the weights that a run began from were trained on."""
    path = str(model.config.init)
    what = f"it started from the weights in {Path(path).name}"
    try:
        start = load_model(path)
    except GenodiffError as fault:
        return _unknown(f"{what}, and of those it is not known ({fault.what})")
    if sha256_tensors(collect_tensors(start.backbone)) != model.config.init_sha256:
        return _unknown(f"{what}, and those are others today")
    found = find_trained_on(start)
    return _unknown(f"{what}: {found.unknown}") if found.unknown else found


def _describe_published(source: dict[str, Any]) -> str:
    config = source.get("config")
    named = config.get("_name_or_path") if isinstance(config, dict) else None
    names = Path(str(source.get("path"))).name, str(named).rpartition("/")[2]
    for pattern, data in _KNOWN_NAMES.items():
        if any(re.match(pattern, name) for name in names):
            return f"published weights, trained on {data} by their authors"
    return "published weights: their training data are not recorded"
