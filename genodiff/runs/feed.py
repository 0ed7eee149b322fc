"""From a run's configuration to its data: the recipe, the store, and the batches of training and
validation.

`open_data` opens those of every domain; nothing else here asks what the sequences are.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from genodiff.alphabet import ALPHABETS, DNA, SOFT, Alphabet
from genodiff.data.dna_store import build_dna_store
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.genomes.mixing import GenomeMix
from genodiff.data.genomes.store import GenomesStore, GenomesWindows, open_genomes
from genodiff.data.labels import WindowLabels, place_labels, read_labels, table_labels
from genodiff.data.loader import EvalBatches, TrainBatches
from genodiff.data.recipe import Recipe, load_recipe, make_user_recipe
from genodiff.data.store import Store
from genodiff.data.text_recipe import TextRecipe, load_text_recipe, make_text_recipe
from genodiff.data.text_store import build_text_store
from genodiff.data.text_windows import open_text_windows
from genodiff.data.tokenizer import (
    JSON,
    MERGES,
    VOCAB,
    WORDS,
    FileTokenizer,
    Tokenizer,
    name_tokenizer,
    open_tokenizer,
    read_vocabulary,
    rebuild_tokenizer,
)
from genodiff.data.windows import Windows
from genodiff.domain import TEXT
from genodiff.errors import CheckpointError, DataError, UsageError
from genodiff.io import atomic
from genodiff.io.process import count_usable_cores
from genodiff.runs.config import OWN, RunConfig
from genodiff.runs.sealed_files import read_bytes
from genodiff.runs.sections import SPECIES
from genodiff.vocabulary import Vocabulary

_log = logging.getLogger("genodiff")
TOKENIZER = "tokenizer"
"""The folder of a run with the tokenizer files of its training."""
_LARGEST = 256 << 20
_LOOKED_AT = 1 << 26  # bases
USUAL_DROPOUT = 0.1
"""The share of windows that hide their label; Ho and Salimans 2022, arXiv 2207.12598."""


class RunData(NamedTuple):
    """The data of a configuration, opened."""

    recipe: Recipe | TextRecipe
    store: Store
    alphabet: Alphabet
    cut: Callable[[str], Windows]
    """The windows of a split. Raises `DataError`."""
    tokenizer: Tokenizer | None = None


class Feed(NamedTuple):
    """What a run reads."""

    recipe: Recipe | TextRecipe
    store: Store
    alphabet: Alphabet
    train: Windows
    valid: Windows | None
    tokenizer: dict[str, bytes]  # its files, for the run folder; none where it is built in
    labels: WindowLabels | None = None


def open_data(
    config: RunConfig,
    run: Path | None = None,
    *,
    alphabet: Alphabet | None = None,
    offline: bool = False,
    remembered: dict[str, Any] | None = None,
    tell_splits: bool = True,
) -> RunData:
    """The data of a configuration, built or found again.

    A tokenizer in the folder `run` goes before the one that the configuration names. With the
    `alphabet` of a trained model it must be that model's own. `remembered` is the identity of a
    resumed run's data; other data are refused. With `tell_splits`, notes on how a genome was split
    are logged. Raises `UsageError`, `DataError`, `CheckpointError`.
    """
    if config.domain == TEXT.name:
        return _open_text(config, run, alphabet, offline, remembered)
    recipe, seq_len = find_recipe(config), config.data.seq_len
    known: dict[str, Any] = {"offline": offline, "remembered": remembered}
    if config.genomes is not None:
        genomes = open_genomes(config.genomes, jobs=count_usable_cores(), **known)

        def cut_genomes(split: str) -> Windows:
            return GenomesWindows(genomes, recipe, split, seq_len)

        return RunData(recipe, genomes, ALPHABETS[config.domain], cut_genomes)
    store = build_dna_store(recipe, config.fasta, tell_splits=tell_splits, **known)

    def cut(split: str) -> Windows:
        legacy = config.data.legacy_caduceus_tiling
        return DnaWindows(store, recipe, split, seq_len, legacy_caduceus_tiling=legacy)

    return RunData(recipe, store, ALPHABETS[config.domain], cut)


def open_feed(
    config: RunConfig,
    *,
    offline: bool = False,
    remembered: dict[str, Any] | None = None,
    run: Path | None = None,
) -> Feed:
    """What a run with this configuration reads. Raises as `open_data`."""
    data = open_data(config, run, offline=offline, remembered=remembered)
    train, valid = data.cut("train"), None
    if config.train.validate_windows:
        try:
            valid = data.cut("valid")
        except DataError as fault:
            _log.warning("no validation during training: %s", fault)
    files = {} if data.tokenizer is None else data.tokenizer.files
    labels = open_labels(config, data.store, train)
    return Feed(data.recipe, data.store, data.alphabet, train, valid, files, labels)


def open_labels(config: RunConfig, store: Store, train: Windows) -> WindowLabels | None:
    """The labels of a run's windows, if any. Raises `DataError` for another file, or no window."""
    if not config.classes:
        return None
    if config.labels is None:
        raise UsageError("the run has classes, and no file of labels", fix="give --labels FILE")
    how = config.data
    if config.labels == SPECIES and isinstance(store, GenomesStore):
        named, digest = store.species_of_contigs(), store.species_digest()
        table = table_labels(str(config.genomes), named, digest)
    else:
        table = read_labels(config.labels, quantiles=how.label_quantiles, column=how.label_column)
    if table.sha256 != config.labels_sha256 or table.classes != config.classes:
        what = "is not the file of labels that the run was started with"
        raise DataError(what, file=config.labels, fix="give that file, or another --out")
    labels = place_labels(table, store)
    seen = labels.of(train.flat_start, train.length)
    count = np.bincount(seen[seen >= 0], minlength=len(config.classes))
    if not count.any():
        what = "labels no window of the train split"
        raise DataError(what, file=config.labels, fix="label other intervals, or check their names")
    told = ", ".join(f"{name} {n:,}" for name, n in zip(config.classes[:12], count, strict=False))
    _log.info("labels of %d windows: %s; without: %d", len(seen), told, (seen < 0).sum())
    for name, n in zip(config.classes, count, strict=True):
        if not n:
            _log.warning("no window of the train split has the label %s", name)
    return labels


def find_alphabet(config: RunConfig) -> Alphabet:
    """The alphabet of a configuration, found without its data. Raises `UsageError`."""
    return ALPHABETS.get(config.domain) or read_vocabulary(config.data.tokenizer)


def find_recipe(config: RunConfig) -> Recipe:
    """The recipe of a configuration, its BED and its overrides applied. Raises `UsageError`."""
    if config.recipe == OWN:
        if config.fasta is None and config.genomes is None:
            fix = "give --fasta FILE"
            raise UsageError("no FASTA: neither the recipe nor the run names one", fix=fix)
        recipe = Recipe(name=OWN)
        if config.fasta is not None:
            recipe = make_user_recipe(config.fasta, config.bed).model_copy(update={"name": OWN})
    else:
        recipe = load_recipe(config.recipe, bed=config.bed)
    chosen = {name: getattr(config.data, name) for name in ("max_n_fraction", "soft_mask_weight")}
    return recipe.model_copy(update={name: x for name, x in chosen.items() if x is not None})


def _open_text(
    config: RunConfig,
    run: Path | None,
    alphabet: Alphabet | None,
    offline: bool,
    remembered: dict[str, Any] | None,
) -> RunData:
    if config.recipe != OWN:
        recipe = load_text_recipe(config.recipe)
    elif config.text is None:
        fix = "give --text FILE"
        raise UsageError(f"recipe '{OWN}' means your own text, and there is none", fix=fix)
    else:
        recipe = make_text_recipe(config.text).model_copy(update={"name": OWN})
    data = config.data
    if run is not None and alphabet is not None:
        tokenizer = open_model_tokenizer(run, alphabet)
    elif run is not None and (files := read_tokenizer(run)):
        tokenizer = FileTokenizer(files, name_tokenizer(files), run / TOKENIZER)
    else:
        tokenizer = open_tokenizer(data.tokenizer, offline=offline)
    store = build_text_store(recipe, config.text, tokenizer, offline=offline, remembered=remembered)

    def cut(split: str) -> Windows:
        how: dict[str, Any] = {"packing": data.packing, "by_document": data.document_attention}
        return open_text_windows(store, recipe, split, data.seq_len, **how)

    return RunData(recipe, store, tokenizer.vocabulary, cut, tokenizer)


def measure_soft_mask(feed: Feed) -> dict[str, float]:
    """The weight of a soft-masked base in training, and their share of the train split's bases.

    Of more than 2^26 bases the share is that of windows that are evenly spread. {} for text.
    """
    if not isinstance(feed.train, DnaWindows):
        return {}
    some = feed.train.spread(max(1, _LOOKED_AT // feed.train.seq_len))
    seen, flat = np.zeros(256, np.int64), np.asarray(feed.store.flat)
    for start, length in zip(some.flat_start.tolist(), some.length.tolist(), strict=True):
        seen += np.bincount(flat[start : start + length], minlength=256)
    soft = int(seen[np.array(DNA.targets) | SOFT].sum())
    bases = soft + int(seen[list(DNA.targets)].sum())
    share = round(soft / max(bases, 1), 4)
    return {"soft_mask_weight": feed.recipe.soft_mask_weight, "soft_masked_share": share}


def describe_soft_mask(found: dict[str, float]) -> str:
    """One line of what `measure_soft_mask` found; empty for text."""
    if not found:
        return ""
    share, weight = found["soft_masked_share"], found["soft_mask_weight"]
    if not share:
        return "train has no soft-masked bases"
    return f"train is {share:.1%} soft-masked; such a base weighs {weight:g} in training"


def open_train_batches(
    feed: Feed, config: RunConfig, *, rank: int = 0, world_size: int = 1
) -> TrainBatches:
    """The training batches: micro-batch k is a pure function of (seed, k)."""
    order, dropout = None, config.data.label_dropout
    if isinstance(feed.train, GenomesWindows):
        order = GenomeMix(feed.train, config.seed, config.data.temperature or 1.0)
    return TrainBatches(
        feed.train,
        config.seed,
        config.train.batch_size,
        accumulate=config.train.accumulate,
        rank=rank,
        world_size=world_size,
        rc_augment=config.rc_augment,
        labels=feed.labels,
        label_dropout=USUAL_DROPOUT if dropout is None else dropout,
        order=order,
    )


def open_valid_batches(feed: Feed, config: RunConfig) -> EvalBatches | None:
    """The validation batches: always the same windows and masks. None without validation."""
    if feed.valid is None:
        return None
    some = feed.valid.spread(config.train.validate_windows)
    return EvalBatches(some, min(config.train.batch_size, len(some)), config.seed)


def write_tokenizer(run: Path, files: dict[str, bytes]) -> None:
    """Write a tokenizer's files into the run folder. Raises `MachineError`."""
    for name, content in files.items():
        path = run / TOKENIZER / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(exist_ok=True)
            atomic.write_bytes(path, content)


def read_tokenizer(run: Path) -> dict[str, bytes]:
    """The tokenizer's files in a run folder, none without it. Raises `CheckpointError`."""
    folder = run / TOKENIZER
    names = [name for name in (JSON, VOCAB, MERGES, WORDS) if (folder / name).exists()]
    return {name: read_bytes(folder / name, _LARGEST) for name in names}


def open_model_tokenizer(run: Path, alphabet: Alphabet) -> Tokenizer:
    """A trained text model's tokenizer. Raises `CheckpointError` if it is missing or another."""
    if not isinstance(alphabet, Vocabulary):
        raise CheckpointError(f"is a {alphabet.domain} model", file=run, fix="give a text run")
    try:
        return rebuild_tokenizer(read_tokenizer(run), alphabet, run / TOKENIZER)
    except UsageError as fault:
        raise CheckpointError(fault.what, file=fault.file, fix=fault.fix) from None
