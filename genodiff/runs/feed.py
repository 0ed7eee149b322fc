"""From a run's configuration to its data: the recipe, the built genome, and the batches of training
and validation.
"""

import logging
from pathlib import Path
from typing import Any, NamedTuple

from genodiff.alphabet import ALPHABETS, Alphabet
from genodiff.data.loader import EvalBatches, TrainBatches
from genodiff.data.recipe import Recipe, load_recipe, user_recipe
from genodiff.data.store import Store, build_store
from genodiff.data.text_recipe import TextRecipe, load_text_recipe, own_text_recipe
from genodiff.data.text_store import TextStore, build_text_store
from genodiff.data.text_windows import PackedWindows, PaddedWindows, text_windows
from genodiff.data.tokenizer import FileTokenizer, Tokenizer, name_of, open_tokenizer
from genodiff.data.windows import Windows
from genodiff.errors import DataError, UsageError
from genodiff.runs.config import OWN, RunConfig
from genodiff.runs.tokenizer_files import FOLDER as TOKENIZER
from genodiff.runs.tokenizer_files import read_tokenizer

_log = logging.getLogger("genodiff")


class Feed(NamedTuple):
    """What a run reads."""

    recipe: Recipe | TextRecipe
    store: Store
    alphabet: Alphabet
    train: Windows
    valid: Windows | None
    tokenizer: dict[str, bytes]  # its files, for the run folder; none where it is built in


def recipe_of(config: RunConfig) -> Recipe:
    """The recipe of a configuration, its BED and its overrides applied. Raises `UsageError`."""
    if config.recipe == OWN:
        if config.fasta is None:
            raise UsageError(
                f"recipe '{OWN}' means your own FASTA, and there is none", fix="give --fasta FILE"
            )
        recipe = user_recipe(config.fasta, config.bed).model_copy(update={"name": OWN})
    else:
        recipe = load_recipe(config.recipe, bed=config.bed)
    chosen = {name: getattr(config.data, name) for name in ("max_n_fraction", "soft_mask_weight")}
    return recipe.model_copy(
        update={name: value for name, value in chosen.items() if value is not None}
    )


def feed_of(
    config: RunConfig,
    *,
    offline: bool = False,
    remembered: dict[str, Any] | None = None,
    run: Path | None = None,
) -> Feed:
    """The data of a configuration, built or found again; `remembered` is the identity of a resumed
    run's data.

    A run on text reads the tokenizer that stands in its folder `run`, where one does. Raises
    `DataError` where there is no data to train on, or where the file has changed.
    """
    if config.domain == "text":
        return _text_feed(config, offline, remembered, run)
    recipe = recipe_of(config)
    store = build_store(
        recipe,
        None if config.fasta is None else Path(config.fasta),
        offline=offline,
        remembered=remembered,
    )
    seq_len, legacy = config.data.seq_len, config.data.legacy_caduceus_tiling
    train = Windows(store, recipe, "train", seq_len, legacy_caduceus_tiling=legacy)
    valid = None
    if config.train.validate_windows:
        try:
            valid = Windows(store, recipe, "valid", seq_len, legacy_caduceus_tiling=legacy)
        except DataError as fault:
            _log.warning("no validation during training: %s", fault)
    return Feed(recipe, store, ALPHABETS[config.domain], train, valid, {})


def text_recipe_of(config: RunConfig) -> TextRecipe:
    """The text recipe of a configuration. Raises `UsageError`."""
    if config.recipe != OWN:
        return load_text_recipe(config.recipe)
    if config.text is None:
        raise UsageError(
            f"recipe '{OWN}' means your own text, and there is none", fix="give --text FILE"
        )
    return own_text_recipe(config.text).model_copy(update={"name": OWN})


def tokenizer_of(config: RunConfig, run: Path | None, *, offline: bool = False) -> Tokenizer:
    """The tokenizer that stands in a run folder, else the one that the configuration names."""
    files = read_tokenizer(run) if run is not None else {}
    if files:
        assert run is not None
        return FileTokenizer(files, name_of(files), run / TOKENIZER)
    return open_tokenizer(config.data.tokenizer, offline=offline)


def text_data(
    config: RunConfig,
    run: Path | None,
    *,
    offline: bool = False,
    remembered: dict[str, Any] | None = None,
) -> tuple[TextRecipe, TextStore, Tokenizer]:
    """Recipe, store and tokenizer of a configuration for text, built or found again. Raises
    `UsageError`, `DataError`.
    """
    recipe = text_recipe_of(config)
    tokenizer = tokenizer_of(config, run, offline=offline)
    return (
        recipe,
        build_text_store(recipe, config.text, tokenizer, offline=offline, remembered=remembered),
        tokenizer,
    )


def windows_of(
    config: RunConfig, recipe: TextRecipe, store: TextStore, split: str
) -> PackedWindows | PaddedWindows:
    """The windows of a split of text, as the configuration cuts them. Raises `DataError`."""
    data = config.data
    return text_windows(
        store,
        recipe,
        split,
        data.seq_len,
        packing=data.packing,
        by_document=data.document_attention,
    )


def _text_feed(
    config: RunConfig, offline: bool, remembered: dict[str, Any] | None, run: Path | None
) -> Feed:
    recipe, store, tokenizer = text_data(config, run, offline=offline, remembered=remembered)
    train = windows_of(config, recipe, store, "train")
    valid = None
    if config.train.validate_windows:
        try:
            valid = windows_of(config, recipe, store, "valid")
        except DataError as fault:
            _log.warning("no validation during training: %s", fault)
    return Feed(recipe, store, store.vocabulary, train, valid, tokenizer.files)


def train_batches(
    feed: Feed, config: RunConfig, *, rank: int = 0, world_size: int = 1
) -> TrainBatches:
    """The training batches: micro-batch k is a pure function of (seed, k)."""
    return TrainBatches(
        feed.train,
        config.seed,
        config.train.batch_size,
        accumulate=config.train.accumulate,
        rank=rank,
        world_size=world_size,
        rc_augment=config.rc_augment,
    )


def valid_batches(feed: Feed, config: RunConfig) -> EvalBatches | None:
    """The validation batches, always the same windows and masks; None where there is no validation."""
    if feed.valid is None:
        return None
    some = feed.valid.spread(config.train.validate_windows)
    return EvalBatches(some, min(config.train.batch_size, len(some)), config.seed)
