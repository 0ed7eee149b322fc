"""From a run's configuration to its data: the recipe, the built genome, and the batches of training and validation."""

import logging
from pathlib import Path
from typing import Any, NamedTuple

from genodiff.alphabet import ALPHABETS, Alphabet
from genodiff.data.loader import EvalBatches, TrainBatches
from genodiff.data.recipe import Recipe, load_recipe, user_recipe
from genodiff.data.store import Store, build_store
from genodiff.data.windows import Windows
from genodiff.errors import DataError, UsageError
from genodiff.train.config import RunConfig

_log = logging.getLogger("genodiff")

OWN = "own"
"""The recipe's name for a user's FASTA that no recipe describes."""


class Feed(NamedTuple):
    """What a run reads."""

    recipe: Recipe
    store: Store
    alphabet: Alphabet
    train: Windows
    valid: Windows | None


def recipe_of(config: RunConfig) -> Recipe:
    """The recipe of a configuration, its BED and its overrides applied. Raises `UsageError`."""
    if config.recipe == OWN:
        if config.fasta is None:
            raise UsageError(f"recipe '{OWN}' means your own FASTA, and there is none", fix="give --fasta FILE")
        recipe = user_recipe(config.fasta, config.bed).model_copy(update={"name": OWN})
    else:
        recipe = load_recipe(config.recipe, bed=config.bed)
    chosen = {name: getattr(config.data, name) for name in ("max_n_fraction", "soft_mask_weight")}
    return recipe.model_copy(update={name: value for name, value in chosen.items() if value is not None})


def feed_of(config: RunConfig, *, offline: bool = False, remembered: dict[str, Any] | None = None) -> Feed:
    """The data of a configuration, built or found again; `remembered` is the identity of a resumed run's data.

    Raises `DataError` where there is none to train on, or where the file has changed.
    """
    recipe = recipe_of(config)
    store = build_store(recipe, None if config.fasta is None else Path(config.fasta), offline=offline, remembered=remembered)
    seq_len, legacy = config.data.seq_len, config.data.legacy_caduceus_tiling
    train = Windows(store, recipe, "train", seq_len, legacy_caduceus_tiling=legacy)
    valid = None
    if config.train.validate_windows:
        try:
            valid = Windows(store, recipe, "valid", seq_len, legacy_caduceus_tiling=legacy)
        except DataError as fault:
            _log.warning("no validation during training: %s", fault)
    return Feed(recipe, store, ALPHABETS[config.domain], train, valid)


def train_batches(feed: Feed, config: RunConfig, *, rank: int = 0, world_size: int = 1) -> TrainBatches:
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
