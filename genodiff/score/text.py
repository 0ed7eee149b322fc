"""How well a model knows text: the figure of `perplexity`, in bits per byte and as perplexity per
token.

The nats are those of every token of the scored windows, end tokens included (they are paid for and
say no byte); start tokens and padding are given. Bits per byte divides them by the bytes of UTF-8
that the windows hold, which no tokenizer changes, so that models with different tokenizers can be
compared; a tokenizer that loses text (case, spaces) flatters itself there, and `lossless` says so.
Perplexity per token is the field's word-piece perplexity.

`RUN/eval.json` holds one object per split, as for DNA, with `domain` "text" and these keys of the
same meaning: split, seed, repeats, checkpoint, step, objective, figure, recipe, fingerprint,
seq_len, context, windows, windows_total, dropped, tokens, nelbo_nats (per token), nelbo_nats_total,
perplexity (per token), curve (per masked token), t_steps (per byte), seconds, device, created; and

    text                        file or folder that was read, or null
    tokenizer, vocabulary_size, lossless
    packing                     "packed" or "padded"
    bytes                       of text in the scored windows
    bits_per_byte, ci95_bits    nelbo_nats_total / (bytes ln 2), and its 95 % interval
    bits_per_token, ci95_bits_per_token, ci95_perplexity
    uniform_bits, markov_bits, markov_perplexity, markov_minus_model_bits
                                n-grams of the train split (see ngram.py) on the same tokens: bits
                                and paired differences per byte, perplexity per token;
                                `markov_tokens` were counted; {} without baselines
"""

import logging
import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from genodiff.data.loader import EvalBatches
from genodiff.data.text_recipe import TextRecipe
from genodiff.data.text_store import TextStore, build_text_store
from genodiff.data.text_windows import PackedWindows, PaddedWindows
from genodiff.errors import CheckpointError, UsageError
from genodiff.io.identity import time_stamp
from genodiff.runs.checkpoint import Model
from genodiff.runs.feed import text_recipe_of, windows_of
from genodiff.runs.tokenizer_files import model_tokenizer
from genodiff.score import ngram
from genodiff.score.interval import Interval, ratio
from genodiff.score.perplexity import Progress, bound_of, seconds_per_window
from genodiff.score.steps import step_bits
from genodiff.score.summary import rate_curve

log = logging.getLogger("genodiff")

_SAFETY = 0.85  # of --max-minutes is planned for, from a measured pace
_BITS = 1 / math.log(2)
_TOKENS_AT_A_TIME = 1 << 17

Floats = NDArray[np.float64]


class TextData(NamedTuple):
    """What is scored."""

    recipe: TextRecipe
    store: TextStore
    windows: PackedWindows | PaddedWindows
    total: int  # windows of the split
    lossless: bool


def open_text(
    model: Model,
    split: str = "test",
    *,
    text: str | None = None,
    recipe: str | None = None,
    offline: bool = False,
) -> TextData:
    """The windows of a split of the model's own text, or of another recipe, or of `text` in
    either's place.

    Raises `DataError`, `UsageError`, `CheckpointError`.
    """
    if model.alphabet.domain != "text":
        raise CheckpointError(
            f"is a {model.alphabet.domain} model", file=model.run, fix="give a text run"
        )
    given: dict[str, Any] = {} if text is None else {"text": str(Path(text).absolute())}
    if recipe is not None:
        given |= {"recipe": recipe, "text": given.get("text")}
    config = model.config.model_copy(update=given)
    tokenizer = model_tokenizer(model.run, model.alphabet)
    chosen = text_recipe_of(config)
    store = build_text_store(chosen, config.text, tokenizer, offline=offline)
    windows = windows_of(config, chosen, store, split)
    return TextData(chosen, store, windows, len(windows), tokenizer.lossless)


def evaluate_text(
    model: Model,
    split: str = "test",
    *,
    text: str | None = None,
    recipe: str | None = None,
    repeats: int = 1,
    batch_size: int = 32,
    seed: int = 1,
    max_windows: int | None = None,
    max_minutes: float | None = None,
    baselines: bool = True,
    offline: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """The figure of `model` on a split of text, beside n-grams on the same tokens: the object that
    the module describes.

    As `perplexity.evaluate`. Raises `DataError`, `UsageError`.
    """
    for name, value in (
        ("repeats", repeats),
        ("batch-size", batch_size),
        ("max-windows", max_windows),
    ):
        if value is not None and value < 1:
            raise UsageError(f"--{name} {value} is below 1", fix="give 1 or more")
    if max_minutes is not None and not 0 < max_minutes < math.inf:
        raise UsageError(
            f"--max-minutes {max_minutes} is not above 0", fix="give a time in minutes"
        )
    began = time.monotonic()
    data = open_text(model, split, text=text, recipe=recipe, offline=offline)
    windows, store = data.windows, data.store
    device = next(model.backbone.parameters()).device
    if max_windows is not None:
        windows = windows.spread(max_windows)
    if max_minutes is not None:
        pace = seconds_per_window(model, windows, batch_size)
        left = 60 * max_minutes * _SAFETY - (time.monotonic() - began)
        windows = windows.spread(max(1, int(left / (pace * repeats))))
    log.info("scoring %d of %d windows of the split %s", len(windows), data.total, split)
    found = bound_of(
        model.objective,
        model.backbone,
        EvalBatches(windows, batch_size, seed, repeats),
        device,
        progress,
    )
    by_repeat, tokens, size = found.nats.sum(0), found.tokens.sum(0), windows.bytes()
    nats = by_repeat.mean(0)
    per_token, per_byte = ratio(nats, tokens), ratio(nats, size)
    bits = per_token.scaled(_BITS)
    curve = rate_curve(by_repeat, tokens, found.rate)[0] if found.rate is not None else []
    ngrams = ngram_nats(store, windows) if baselines else None
    return {
        "domain": "text",
        "split": split,
        "seed": seed,
        "repeats": repeats,
        "checkpoint": model.digest,
        "step": model.step,
        "objective": model.config.diffusion.objective,
        "figure": model.objective.figure,
        "recipe": data.recipe.name,
        "text": text if text is not None else None if recipe is not None else model.config.text,
        "fingerprint": store.fingerprint,
        "tokenizer": store.vocabulary.name,
        "vocabulary_size": store.vocabulary.n_tokens,
        "lossless": data.lossless,
        "packing": "padded" if isinstance(windows, PaddedWindows) else "packed",
        "seq_len": windows.seq_len,
        "context": "window",
        "windows": len(windows),
        "windows_total": data.total,
        "dropped": windows.dropped,
        "tokens": int(tokens.sum()),
        "bytes": round(size.sum()),
        "nelbo_nats": per_token.value,
        "nelbo_nats_total": float(nats.sum()),
        "bits_per_byte": per_byte.scaled(_BITS).value,
        "ci95_bits": _pair(per_byte.scaled(_BITS)),
        "bits_per_token": bits.value,
        "ci95_bits_per_token": _pair(bits),
        "perplexity": math.exp(per_token.value),
        "ci95_perplexity": None
        if (ends := _pair(per_token)) is None
        else [math.exp(end) for end in ends],
        "uniform_bits": math.log2(len(store.vocabulary.targets)) * float(tokens.sum() / size.sum()),
        **_ngram_keys(ngrams, nats, tokens, size),
        "source_bits": None,
        "curve": curve,
        "t_steps": step_bits(model.objective, by_repeat, tokens, found.rate, size),
        "seconds": round(time.monotonic() - began, 3),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "created": time_stamp(),
    }


class NgramLines(NamedTuple):
    """−ln P of windows under n-grams of the train split."""

    nats: Floats  # (orders, windows)
    lambdas: list[float]
    tokens: int  # that were counted


def ngram_nats(store: TextStore, windows: PackedWindows | PaddedWindows) -> NgramLines:
    """The n-gram lines of the store's train split on these windows. A context may reach back over a
    window's start.
    """
    vocabulary = store.vocabulary
    counts = ngram.count(
        _stretches(store, "train"), vocabulary.padded_size, len(vocabulary.targets)
    )
    held_out = next(iter(_stretches(store, "valid")), np.zeros(0, np.uint64))
    lambdas = ngram.fit(counts, np.asarray(held_out[: 1 << 18]).astype(np.uint64))
    out = np.zeros((len(lambdas), len(windows)))
    order, step = counts.order, max(1, _TOKENS_AT_A_TIME // windows.seq_len)
    contig = store.offsets[np.searchsorted(store.offsets, windows.flat_start, "right") - 1]
    for first in range(0, len(windows), step):
        rows = slice(first, first + step)
        start, length = windows.flat_start[rows], windows.length[rows]
        place = start[:, None] + np.arange(-order, int(length.max()))
        inside = (place >= contig[rows, None]) & (place < (start + length)[:, None])
        ids = np.where(inside, store.flat[np.where(inside, place, start[:, None])], 0).astype(
            np.uint64
        )
        words = ngram.packed(ids.reshape(-1), counts.bits, order).reshape(ids.shape)[:, order:]
        known = np.minimum(place[:, order:] - contig[rows, None], order)
        scored = inside[:, order:]
        nll = ngram.nll(counts, lambdas, words[scored], known[scored])
        row = np.nonzero(scored)[0]
        for k in range(len(lambdas)):
            out[k, rows] = np.bincount(row, nll[k], len(start))
    return NgramLines(out, lambdas, counts.tokens)


def _stretches(store: TextStore, split: str) -> list[NDArray[Any]]:
    i = store.splits.intervals[split]
    start = store.offsets[i.contig] + i.start
    return [
        store.flat[a:b]
        for a, b in zip(start.tolist(), (start + i.end - i.start).tolist(), strict=True)
    ]


def _ngram_keys(
    found: NgramLines | None, nats: Floats, tokens: Floats, size: Floats
) -> dict[str, Any]:
    lines = [] if found is None else list(enumerate(found.nats))
    differences = {str(k): ratio(line - nats, size).scaled(_BITS) for k, line in lines}
    return {
        "markov_bits": {str(k): float(line.sum() / size.sum()) * _BITS for k, line in lines},
        "markov_perplexity": {
            str(k): math.exp(float(line.sum() / tokens.sum())) for k, line in lines
        },
        "markov_minus_model_bits": {
            k: {"bits": d.value, "ci95": _pair(d)} for k, d in differences.items()
        },
        "markov_pseudo": [] if found is None else found.lambdas,
        "markov_tokens": 0 if found is None else found.tokens,
    }


def _pair(found: Interval) -> list[float] | None:
    return None if found.ci95 is None else list(found.ci95)
