"""The memory of a store's split: built once, kept in the cache folder, found again by its key.

A run that is trained with a memory remembers it in its checkpoints (`data["memory"]`): where it
is, its fingerprint, its numbers and its effort. Whoever opens that run's memory gets the same one,
or an error. Numbers that were fitted afterwards are kept with the run (`memory_fit.py`).

Where windows of a genome stand in a memory: the loci that they must not read.

A contig of a genome is the memory's own where it has the same bases (`known_contigs.py`). A window
of such a contig leaves its own locus out, with its length on either side, on both strands.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from genodiff.alphabet import DNA
from genodiff.data.dna_store import build_dna_store, find_dna_store
from genodiff.data.recipe import Recipe
from genodiff.data.store import Coded, Store, find_intervals, read_stretches
from genodiff.errors import CheckpointError, DataError, UsageError
from genodiff.io import atomic
from genodiff.io.faidx import Genome
from genodiff.io.file_kinds import sha256_json
from genodiff.io.target import cache_dir, lock_folder
from genodiff.memory.memory import (
    FORMAT,
    NOWHERE,
    Memory,
    fingerprint_memory,
    open_memory,
    write_memory,
)
from genodiff.memory.numbers import MemoryNumbers
from genodiff.memory.search import Effort
from genodiff.memory.tables import ORDER
from genodiff.memory.text import MOST_WINDOW, NONE, Codes
from genodiff.registry import find_named
from genodiff.runs.known_contigs import KnownContigs, LetterSource, hash_contig, hash_letters
from genodiff.runs.trained_model import TrainedModel


class TrainMemory(NamedTuple):
    """The memory of a model's train split, its genome's contigs, and what an output says of it."""

    memory: Memory
    contigs: KnownContigs
    told: dict[str, Any]
    store: Store
    """The genome itself."""


_FEED, _FITTED = "genodiff.runs.feed", "genodiff.runs.memory_fit:read_fitted"  # import torch
_log = logging.getLogger("genodiff")


def list_stretches(
    store: Store, split: str, *, legacy_caduceus_tiling: bool = False
) -> list[tuple[str, int, Coded]]:
    """The intervals of a split: each its contig, its start there and its codes, read one by one."""
    intervals = find_intervals(store, split, legacy_caduceus_tiling=legacy_caduceus_tiling)
    names = [store.names[contig] for contig in intervals.contig.tolist()]
    codes = read_stretches(store, intervals)
    return list(zip(names, intervals.start.tolist(), codes, strict=True))


def cut_windows(store: Store, split: str, length: int) -> Codes:
    """(B, L): the windows of a split without N, side by side."""
    parts = [np.empty((0, length), np.uint8)]
    for _, _, codes in list_stretches(store, split):
        parts.append(codes[0 : len(codes) // length * length].reshape(-1, length))
    whole = np.concatenate(parts)
    return whole[(whole < NONE).all(1)]


def open_train_memory(
    model: TrainedModel,
    store: Store | None = None,
    *,
    named: str | Path | None = None,
    offline: bool = False,
    fitted: bool = True,
) -> TrainMemory:
    """The memory of what a model was trained on; `store` is looked at first, then the FASTA file
    `named`.

    Without `fitted` it has the numbers of before a fit. Raises `CheckpointError` where the model
    does not say what it was trained on; `DataError` where the genome is not to be had or has
    changed.
    """
    if store is None or store.fingerprint != model.data.get("fingerprint"):
        store = open_trained_store(model, offline, named)
    legacy = model.config.data.legacy_caduceus_tiling
    remembered = model.data.get("memory") or (find_named(_FITTED)(model.run) if fitted else None)
    return open_memory_of_run(store, legacy_caduceus_tiling=legacy, remembered=remembered)


def open_memory_of_run(
    store: Store, *, legacy_caduceus_tiling: bool = False, remembered: dict[str, Any] | None = None
) -> TrainMemory:
    """The memory that a run is trained with, of its store's train split.

    `remembered` is what a run that goes on says of its own. Raises `DataError` where that is
    another one.
    """
    memory, folder = open_split_memory(store, legacy_caduceus_tiling=legacy_caduceus_tiling)
    contigs, fingerprint = KnownContigs.of_store(store), fingerprint_memory(folder)
    if remembered is not None:
        if (before := remembered.get("fingerprint")) != fingerprint:
            what = "is another memory than the run recorded: its fingerprint is "
            fix = "restore that training genome, or start a new run (or fit again what was "
            fix += "fitted: `genodiff checkpoint fit-memory`)"
            raise DataError(f"{what}{fingerprint}, but was {before}", file=folder, fix=fix)
        numbers = MemoryNumbers.parse(remembered["numbers"], file=folder, error=DataError)
        memory = memory.with_numbers(numbers).with_effort(Effort(**remembered["effort"]))
    told = {
        "folder": str(folder),
        "fingerprint": fingerprint,
        "source": store.source.path,
        "content": contigs.content,
        "split": "train",
        "bases": memory.text.n_bases,
        "numbers": memory.numbers.model_dump(mode="json"),
        "effort": asdict(memory.effort),
    }
    return TrainMemory(memory, contigs, told, store)


def search_everywhere(found: TrainMemory) -> TrainMemory:
    """The same memory, which tries every place of its text and not only those of its index."""
    memory = found.memory.with_effort(replace(found.memory.effort, scored=None))
    return found._replace(memory=memory, told={**found.told, "effort": asdict(memory.effort)})


def leave_out_own(
    memory: Memory, store: Store, flat_start: Sequence[int], length: Sequence[int]
) -> list[tuple[int, int]]:
    """For windows of a memory's own store: the interval of its text that each must not read.

    A window that holds a base of the memory leaves out its own locus, with its length on either
    side; any other leaves out nothing.
    """
    found = []
    contigs = store.find_contigs(flat_start).tolist()
    for at, n, contig in zip(flat_start, length, contigs, strict=True):
        start = int(at) - int(store.offsets[contig])
        found.append(leave_out_locus(memory, store.names[contig], start, start + int(n)))
    return found


def leave_out_locus(memory: Memory, contig: str, start: int, end: int) -> tuple[int, int]:
    """The interval that a window of the memory's own contig must not read."""
    if memory.text.find_interval(contig, start, end) == NOWHERE:
        return NOWHERE
    return memory.exclude(contig, start, end)


def open_trained_store(
    model: TrainedModel,
    offline: bool,
    named: str | Path | None = None,
    *,
    needed_for: str = "a memory",
    fix: str = "give --memory off",
) -> Store:
    """The genome that a model was trained on. Raises as `open_train_memory`.

    `named` is a FASTA file that a verb reads. Where it holds that genome no other is looked for.
    `needed_for` and `fix` are words of what is raised.
    """
    if model.alphabet.domain != DNA.domain or "fingerprint" not in model.data:
        what = f"does not record its training genome, which is needed for {needed_for}"
        raise CheckpointError(what, file=model.run, fix=f"give a run of genodiff, or {fix}")
    try:
        # The FASTA file itself may be gone: what was built of it serves.
        recipe = find_named(f"{_FEED}:find_recipe")(model.config)
        store: Store | None = find_dna_store(recipe, model.data)
        if store is None and named is not None:
            with Genome(named, goes_round=True) as genome:
                is_own = is_own_genome(recipe, model.data, genome)
            if is_own:
                store = build_dna_store(recipe, named, offline=True, tell_splits=False)
        if store is None:
            store = find_named(f"{_FEED}:open_data")(
                model.config, model.run, offline=offline, remembered=model.data, tell_splits=False
            ).store
            store.check_same(model.data)
        return store
    except DataError as fault:
        what = f"the run's training genome is needed for {needed_for}: {fault.what}"
        raise DataError(what, file=fault.file, fix=f"restore it, or {fix}") from None


def is_own_genome(recipe: Recipe, remembered: Mapping[str, Any], genome: Genome) -> bool:
    """Whether a file is what a run remembers, or has its recipe's contigs (letters, or lengths)."""
    if genome.sha256 == remembered.get("source_sha256"):
        return True
    if not recipe.contigs or not recipe.contigs.items() <= genome.contigs.items():
        return False
    letters = next((one.letters for one in recipe.sources if one.letters), None)
    if letters is None:
        return True
    rows = [(name, n, hash_contig(genome, name)) for name, n in recipe.contigs.items()]
    return hash_letters(rows) == letters


def open_split_memory(
    store: Store,
    split: str = "train",
    *,
    k: int | None = None,
    legacy_caduceus_tiling: bool = False,
    folder: str | Path | None = None,
) -> tuple[Memory, Path]:
    """The memory of a split of a genome's store, built where it lacks, and its folder.

    `folder`: in place of the cache's own. A folder that holds the memory of something else is
    refused. Raises `DataError` for that, and where the split is empty or too long for a memory.
    """
    stretches = list_stretches(store, split, legacy_caduceus_tiling=legacy_caduceus_tiling)
    if not stretches:
        fix = "choose a split that has intervals"
        raise DataError(f"split {split} holds nothing to index", file=store.path, fix=fix)
    made_from = {
        "format": FORMAT,
        "content": store.manifest["key"],
        "intervals": sha256_json([[name, a, len(c)] for name, a, c in stretches], compact=True),
        "k": k,
        "order": ORDER,
    }
    own = cache_dir() / "memories" / sha256_json(made_from, compact=True)[:32]
    place = own if folder is None else Path(folder)
    with lock_folder(place, "builds the same memory"):
        if not place.exists():
            atomic.clear_leftovers(place.parent)
            _log.info("building the memory of %s: %s", split, place)
            write_memory(place, Memory.build(stretches, k=k), made_from)
    return open_memory(place, made_from=made_from), place


Place = tuple[str, int, int]
"""A contig, and start and end of a window on it (0-based, half-open)."""


class OwnLoci:
    """A memory, and the contigs of `genome` that it knows; without one nothing is left out."""

    def __init__(self, found: TrainMemory, genome: LetterSource | None) -> None:
        self.memory, self.told, self.found = found.memory, found.told, found
        self._known, self._genome = found.contigs, genome
        self._names: dict[str, str | None] = {}

    def leave_out(self, place: Place | None) -> tuple[int, int]:
        """What the window at `place` must not read; around an origin, all of its contig."""
        if place is None or self._genome is None:
            return NOWHERE
        contig, start, end = place
        if end > self._genome.contigs[contig]:
            start, end = 0, self._genome.contigs[contig]
        name = self.find_name(contig)
        return NOWHERE if name is None else leave_out_locus(self.memory, name, start, end)

    def find_name(self, contig: str) -> str | None:
        """The name that a contig of the genome has in the memory; None where it is not there."""
        if contig not in self._names:
            assert self._genome is not None
            self._names[contig] = self._known.find(self._genome, contig)
        return self._names[contig]


def open_loci(
    model: TrainedModel,
    genome: LetterSource | None,
    memory: str | None,
    *,
    longest: int | None = None,
    store: Store | None = None,
    offline: bool = False,
) -> OwnLoci | None:
    """The memory of a model's training genome beside a genome whose windows are read.

    `memory` is "on", "off", or None: on where the network was trained with one. `longest` is that
    of a window, in bases; None is the trained length. `store` is looked at first for the training
    genome. Raises `UsageError` for windows that are too long and networks that are not masked;
    `DataError` and `CheckpointError` where the training genome is not to be had.
    """
    if memory not in (None, "on", "off"):
        raise UsageError(f"no memory '{memory}'", fix="give on or off")
    if not model.asks_memory(memory):
        return None
    if not model.is_masked:
        what = f"--memory on is for masked networks, and this is {model.objective.name}"
        raise UsageError(what, fix="leave it out")
    longest = longest or model.config.data.seq_len
    if longest > MOST_WINDOW:
        what = f"--memory on takes windows of at most {MOST_WINDOW:,} bases, not {longest:,}"
        raise UsageError(what, fix="give smaller windows, or --memory off")
    named = getattr(genome, "path", None)
    return OwnLoci(open_train_memory(model, store, named=named, offline=offline), genome)
