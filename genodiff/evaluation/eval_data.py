"""The windows that an evaluation scores, the train split that its baselines are counted on, and the
memory of the training genome beside them.

Of a window that overlaps the train split its own locus is left out (`runs/training_memory.py`).
"""

import logging
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch

from genodiff.data.dna_store import build_dna_store, find_dna_store
from genodiff.data.loader import Batch
from genodiff.data.recipe import ALL, Recipe
from genodiff.data.store import Store
from genodiff.data.text_recipe import TextRecipe
from genodiff.data.tokenizer import Tokenizer
from genodiff.data.windows import Windows
from genodiff.diffusion.masked import Denoiser
from genodiff.diffusion.objectives.block import BlockDiffusion
from genodiff.errors import DataError, GenodiffError
from genodiff.evaluation.request import EvalOptions
from genodiff.io.file_kinds import sha256_file, stamp_time
from genodiff.io.input_file import GENOME_BYTES, is_planning
from genodiff.memory.remembering import remembering
from genodiff.runs import feed
from genodiff.runs.config import OWN, RunConfig
from genodiff.runs.known_contigs import StoreLetters
from genodiff.runs.trained_model import TrainedModel
from genodiff.runs.trained_on import have_same_contigs
from genodiff.runs.training_memory import OwnLoci, open_loci, search_everywhere

log = logging.getLogger("genodiff")


class EvalData(NamedTuple):
    """What is scored."""

    recipe: Recipe | TextRecipe
    store: Store
    windows: Windows
    tokenizer: Tokenizer | None


def open_data(model: TrainedModel, options: EvalOptions = EvalOptions()) -> EvalData:
    """The windows of a split of the model's own data, or of those that the options name instead.

    Raises `DataError`, `UsageError`, `CheckpointError`.
    """
    config = _data_config(model, options)
    try:
        told = options.split != ALL  # else how it was split is of no account
        how: dict[str, Any] = {"offline": options.offline, "tell_splits": told}
        data = feed.open_data(config, model.run, alphabet=model.alphabet, **how)
        windows = data.cut(options.split)
    except DataError as fault:
        if options.bed is None and config.bed is not None and str(fault.file) == config.bed:
            fix = "this is the BED that the run remembers; give another one with --bed"
            where: dict[str, Any] = {"line": fault.line, "record": fault.record}
            raise DataError(fault.what, file=fault.file, **where, fix=fix) from None
        raise
    return EvalData(data.recipe, data.store, windows, data.tokenizer)


def _data_config(model: TrainedModel, options: EvalOptions) -> RunConfig:
    """The run's configuration with the data that the options name.

    The run's BED is for the run's own genome, wherever its file now stands. Another genome that is
    scored as a whole needs no splits, so the run's recipe does not apply to it.
    """
    given = options.inputs()
    if options.fasta is not None:
        given["genomes"] = None
    if options.fasta is None or (options.split != ALL and model.config.bed is None):
        return model.config.model_copy(update=given)
    if options.split == ALL and not _is_own_file(model, options.fasta):
        given |= {"recipe": OWN, "bed": None}
    elif options.bed is None and model.config.bed and not _is_own_file(model, options.fasta):
        given["bed"] = None
        what = "%s: the run's BED (%s) is of another genome and is not applied; give this one's"
        log.warning(f"{what} with --bed", options.fasta, model.config.bed)
    return model.config.model_copy(update=given)


def _is_own_file(model: TrainedModel, fasta: str | Path) -> bool:
    """Whether a file has the contigs that the run was trained on, whatever it is called or how it
    is packed.
    """
    known = model.data.get("source_sha256")
    if known is None or not Path(fasta).is_file():
        return False
    size = Path(fasta).stat().st_size
    if is_planning() and size > GENOME_BYTES:
        return bool(size == model.data.get("source_size"))
    if sha256_file(Path(fasta)) == known:
        return True
    try:
        recipe = feed.find_recipe(model.config)
        own = find_dna_store(recipe, model.data)
        if own is None:
            return False
        plain = Recipe(name=OWN, ignore=recipe.ignore)
        return have_same_contigs(own, build_dna_store(plain, fasta, tell_splits=False))
    except GenodiffError:
        return False  # what is wrong with either is told where it is read


def find_train_store(model: TrainedModel, options: EvalOptions, store: Store) -> Store | None:
    """The store whose train split baselines are counted on; None, with a warning, without one.

    It is the scored data's own, unless that has no train split or is another file that is scored as
    a whole: then the run's own. Raises nothing.
    """
    whole = options.split == ALL and store.fingerprint != model.data.get("fingerprint")
    if not whole and len(store.splits.intervals["train"]):
        return store
    try:
        # Never fetched: a genome is not downloaded for its baselines.
        own = feed.open_data(model.config, model.run, alphabet=model.alphabet, offline=True).store
    except (GenodiffError, OSError) as fault:
        log.warning("no baselines: %s has no train rows, and %s", store.source.path, fault)
        return None
    if not len(own.splits.intervals["train"]):
        log.warning("no baselines: %s has no train rows", store.source.path)
        return None
    log.warning(
        "baselines are counted on the train split that the run was trained on: %s",
        "this BED has no train rows" if not whole else "all of this file is scored",
    )
    return own


def is_toy(data: EvalData) -> bool:
    """Whether the toy genome is scored, whose source is known."""
    generator = getattr(data.recipe, "generator", None)
    return generator == "toy" and data.store.source.path is None


def choose_mixture(data: EvalData, options: EvalOptions) -> bool | None:
    """Whether the mixtures are counted; None: where they take little time."""
    return False if is_toy(data) and options.mixture is None else options.mixture


def find_trained_weight(model: TrainedModel) -> float | None:
    """What a soft-masked base weighed in the model's training; None where that is not known."""
    if not model.step:  # weights of others
        return None
    try:
        return feed.find_recipe(model.config).soft_mask_weight
    except GenodiffError:
        return None


def describe_request(model: TrainedModel, options: EvalOptions) -> dict[str, Any]:
    """The keys of an evaluation that say what was asked of which model."""
    return {
        "split": options.split,
        "seed": options.seed,
        "repeats": options.repeats,
        "checkpoint": model.digest,
        "step": model.step,
        "objective": model.config.diffusion.objective,
        "figure": model.objective.figure,
        **({"block": model.objective.block} if isinstance(model.objective, BlockDiffusion) else {}),
    }


def describe_work(device: torch.device, began: float) -> dict[str, Any]:
    """The keys of an evaluation that say where and when it was made; `began` is monotonic time."""
    return {
        "seconds": round(time.monotonic() - began, 3),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "created": stamp_time(),
    }


class WindowMemory(NamedTuple):
    """A memory, and which windows of a store read it."""

    loci: OwnLoci
    windows: Windows

    def of(self, windows: Windows) -> "WindowMemory":
        """The same memory for other windows of the store."""
        return self._replace(windows=windows)

    def wrap(self, denoiser: Denoiser, batch: Batch) -> Denoiser:
        """`denoiser` with the memory, for the windows of this batch."""
        rows = (batch.index % len(self.windows)).tolist()
        return remembering(
            denoiser, self.loci.memory, without=[self.leave_out(row) for row in rows]
        )

    def leave_out(self, row: int) -> tuple[int, int]:
        """The interval of the memory's text that a window must not read: its own locus."""
        contig = self.windows.store.names[int(self.windows.contig_index[row])]
        start = int(self.windows.start[row])
        return self.loci.leave_out((contig, start, start + int(self.windows.length[row])))


def open_window_memory(
    model: TrainedModel, options: EvalOptions, data: EvalData
) -> WindowMemory | None:
    """The memory of what a model was trained on, for windows that are scored; None without one.

    A network that was trained with a memory has it unless the options say "off".

    Raises `UsageError` for a network or windows that it cannot serve, `DataError` and
    `CheckpointError` where the training genome is not to be had.
    """
    if not model.asks_memory(options.memory):
        return None
    options.check_memory(True)
    letters, longest = StoreLetters(data.store), data.windows.seq_len
    loci = open_loci(
        model, letters, "on", longest=longest, store=data.store, offline=options.offline
    )
    if loci is None:
        return None
    if options.memory == "exhaustive":
        loci = OwnLoci(search_everywhere(loci.found), letters)
    return WindowMemory(loci, data.windows)
