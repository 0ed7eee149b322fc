"""How well a model knows text: as dna_evaluation.py, in bits per byte and as perplexity per
token.

The nats are those of every token of the scored windows, end tokens included (they are paid for and
say no byte); start tokens and padding are given. Bits per byte divides them by the bytes of UTF-8
that the windows hold, which no tokenizer changes, so that models with different tokenizers can be
compared; a tokenizer that loses text (case, spaces) flatters itself there, and `lossless` says so.
Perplexity per token is the field's word-piece perplexity.

`RUN/eval.json` holds one object per split, as for DNA, with `domain` "text" and these keys of the
same meaning: split, seed, repeats, checkpoint, step, objective, figure, recipe, fingerprint,
seq_len, context, windows, windows_total, dropped, tokens, nelbo_nats (per token), nelbo_nats_total,
perplexity (per token), curve (per masked token), seconds, device, created; and

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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.data.loader import EvalBatches
from genodiff.data.text_store import TextStore
from genodiff.data.text_windows import PackedWindows, PaddedWindows
from genodiff.domain import TEXT
from genodiff.evaluation import ngram
from genodiff.evaluation.bound import Progress, WindowDraws, choose_windows, measure_bound
from genodiff.evaluation.eval_data import describe_request, describe_work, open_data
from genodiff.evaluation.request import EvalOptions
from genodiff.evaluation.summary import rate_curve
from genodiff.runs.trained_model import TrainedModel
from genodiff.statistics.interval import BITS, ratio

log = logging.getLogger("genodiff")

_TOKENS_AT_A_TIME = 1 << 17

Floats = NDArray[np.float64]


def evaluate_text(
    model: TrainedModel,
    options: EvalOptions,
    progress: Progress | None = None,
    draws: WindowDraws | None = None,
) -> dict[str, Any]:
    """The figure of `model` on a split of text, beside n-grams on the same tokens: see the module.

    `draws` are those of shards, in place of drawing here.

    Raises `DataError`.
    """
    began = time.monotonic()
    data = open_data(model, options)
    store, tokenizer = data.store, data.tokenizer
    assert isinstance(store, TextStore)
    assert tokenizer is not None
    device = next(model.backbone.parameters()).device
    windows = choose_windows(model, data.windows, options)
    assert isinstance(windows, PackedWindows | PaddedWindows)
    log.info(
        "scoring %d of %d windows of the split %s", len(windows), len(data.windows), options.split
    )
    if draws is not None:
        found = draws.bound(model.objective)
    else:
        batches = EvalBatches(windows, options.batch_size, options.seed, options.repeats)
        found = measure_bound(model.objective, model.backbone, batches, device, progress)
    tokens = found.tokens.sum(0)
    size = windows.store.bytes_of(windows.flat_start, windows.length)
    nats = found.nats.sum(0).mean(0)
    per_token, per_byte = ratio(nats, tokens), ratio(nats, size)
    bits = per_token.scaled(BITS)
    drawn = found.drawn.sum(0)
    ngrams = ngram_nats(store, windows) if options.baselines else None
    lines = {str(k): x for k, x in enumerate([] if ngrams is None else ngrams.nats)}
    gaps = {k: ratio(line - nats, size).scaled(BITS) for k, line in lines.items()}
    return {
        "domain": TEXT.name,
        **describe_request(model, options),
        "recipe": data.recipe.name,
        "text": options.text or (model.config.text if options.recipe is None else None),
        "fingerprint": store.fingerprint,
        "tokenizer": store.vocabulary.name,
        "vocabulary_size": store.vocabulary.n_tokens,
        "lossless": tokenizer.lossless,
        "packing": "padded" if isinstance(windows, PaddedWindows) else "packed",
        "seq_len": windows.seq_len,
        "context": "window",
        "windows": len(windows),
        "windows_total": len(data.windows),
        "dropped": windows.dropped,
        "tokens": int(tokens.sum()),
        "bytes": round(size.sum()),
        "nelbo_nats": per_token.value,
        "nelbo_nats_total": float(nats.sum()),
        "bits_per_byte": per_byte.scaled(BITS).value,
        "ci95_bits": per_byte.scaled(BITS).ends(),
        "bits_per_token": bits.value,
        "ci95_bits_per_token": bits.ends(),
        "perplexity": math.exp(per_token.value),
        "ci95_perplexity": None
        if (ends := per_token.ends()) is None
        else [math.exp(end) for end in ends],
        "uniform_bits": math.log2(len(store.vocabulary.targets)) * float(tokens.sum() / size.sum()),
        "markov_bits": {k: float(line.sum() / size.sum()) * BITS for k, line in lines.items()},
        "markov_perplexity": {k: math.exp(x.sum() / tokens.sum()) for k, x in lines.items()},
        "markov_minus_model_bits": {
            k: {"bits": gap.value, "ci95": gap.ends()} for k, gap in gaps.items()
        },
        "markov_pseudo": [] if ngrams is None else ngrams.lambdas,
        "markov_tokens": 0 if ngrams is None else ngrams.tokens,
        "source_bits": None,
        "curve": rate_curve(drawn, tokens, found.rate),
        **describe_work(device, began),
    }


class NgramLines(NamedTuple):
    """−ln P of windows under n-grams of the train split."""

    nats: Floats  # (orders, windows)
    lambdas: list[float]
    tokens: int  # that were counted


def ngram_nats(store: TextStore, windows: PackedWindows | PaddedWindows) -> NgramLines:
    """The n-gram lines of the store's train split on these windows.

    A context may reach back over a window's start.
    """
    vocabulary = store.vocabulary
    counts = ngram.count(
        _stretches(store, "train"), vocabulary.padded_size, len(vocabulary.targets)
    )
    held_out = next(iter(_stretches(store, "valid")), np.zeros(0, np.uint64))
    lambdas = ngram.fit(counts, held_out)
    out = np.zeros((len(lambdas), len(windows)))
    order, step = counts.order, max(1, _TOKENS_AT_A_TIME // windows.seq_len)
    contig = store.offsets[windows.contig_index]
    for first in range(0, len(windows), step):
        rows = slice(first, first + step)
        start, length = windows.flat_start[rows], windows.length[rows]
        place = start[:, None] + np.arange(-order, int(length.max()))
        inside = (place >= contig[rows, None]) & (place < (start + length)[:, None])
        ids = np.where(inside, store.flat[np.where(inside, place, start[:, None])], 0).astype(
            np.uint64
        )
        words = ngram.pack_words(ids.reshape(-1), counts.bits, order).reshape(ids.shape)[:, order:]
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
