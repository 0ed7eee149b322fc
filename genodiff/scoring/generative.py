"""Generative perplexity: what a causal language model of yours thinks of samples, and why that
alone says little.

    perplexity   exp of the judge's exact negative log-likelihood per token, over all samples
    entropy      of the tokens of one sample (its own unigram counts, in nats), mean over samples
    distinct     how many of all n-grams differ, for several n; `duplicates`: samples that stand
                 there more than once

A judge likes what is likely: dull, repetitive text has a low perplexity. So entropy and diversity
stand beside it, and the same figures of real sequence of the judge's own held-out split: good
samples come near to that, not below it. Samplers that draw in single precision lower the
temperature of a large vocabulary without saying so (Zheng et al. 2024, arXiv 2409.02908): of our
own samples, the sidecar says how they were drawn; ours are drawn in double precision.

A sequence longer than the judge's window is read in windows that overlap by half; every token
counts once.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from genodiff.diffusion.objectives.ar import shifted
from genodiff.errors import DataError, UsageError
from genodiff.runs.model import TrainedModel
from genodiff.scoring.interval import ratio

Ids = NDArray[Any]
_DISTINCT = {"dna": (4, 8, 12, 16), "text": (1, 2, 3, 4)}
_TOKENS_AT_A_TIME = 8192


def check_judge(model: TrainedModel) -> None:
    """Raises `UsageError` unless the model gives exact likelihoods from left to right."""
    if model.objective.kind != "causal":
        what = (
            f"the judge was trained with objective {model.objective.name}, whose figure is "
            f"only a bound"
        )
        raise UsageError(what, fix="give a run that was trained with --objective ar")


@torch.no_grad()
def token_nats(model: TrainedModel, sequences: Sequence[Ids]) -> list[NDArray[np.float64]]:
    """-log p of every token of each sequence, in nats; 0 for what is not scored (N in DNA)."""
    check_judge(model)
    window, device = model.config.data.seq_len, next(model.backbone.parameters()).device
    stride, found = max(1, window // 2), [np.zeros(len(ids)) for ids in sequences]
    pieces: list[
        tuple[int, int, int]
    ] = []  # sequence, start of the window, first token that counts
    for i, ids in enumerate(sequences):
        for start in range(0, max(1, len(ids) - window + stride), stride):
            pieces.append((i, start, 0 if start == 0 else start + window - stride))
    targets = torch.tensor(model.diffusion.targets, device=device)
    rows = max(1, _TOKENS_AT_A_TIME // window)
    for first in range(0, len(pieces), rows):
        part = pieces[first : first + rows]
        cut = [sequences[i][start : start + window] for i, start, _ in part]
        lengths = torch.tensor([len(ids) for ids in cut], device=device)
        x0 = torch.full(
            (len(part), int(lengths.max())), model.alphabet.pad_id, dtype=torch.long, device=device
        )
        for row, ids in zip(x0, cut, strict=True):
            row[: len(ids)] = torch.from_numpy(np.asarray(ids, np.int64)).to(device)
        inside = torch.arange(x0.shape[1], device=device) < lengths[:, None]
        sigma = torch.zeros(len(x0), device=device)
        full = bool(inside.all())
        logits = model.backbone(
            shifted(x0, model.diffusion.mask_id), sigma, None if full else lengths
        )
        nats = (
            model.diffusion.nll(logits, x0, inside & torch.isin(x0, targets)).double().cpu().numpy()
        )
        for (i, start, begin), row, length in zip(part, nats, lengths.tolist(), strict=True):
            found[i][max(start, begin) : start + length] = row[max(start, begin) - start : length]
    return found


def figures(model: TrainedModel, sequences: Sequence[Ids]) -> dict[str, Any]:
    """What the module describes, as plain values.

    Raises `DataError` where there is nothing to score.
    """
    sequences = [ids for ids in sequences if len(ids)]
    if not sequences:
        raise DataError("there is no sample to score", fix="give a file with at least one sequence")
    targets = np.array(model.diffusion.targets)
    scored = np.array([float(np.isin(ids, targets).sum()) for ids in sequences])
    if not scored.any():
        raise DataError(
            "no token of the samples can be scored", fix="give samples that are not all N"
        )
    nats = np.array([part.sum() for part in token_nats(model, sequences)])
    found = ratio(nats, scored)
    return {
        "samples": len(sequences),
        "tokens": int(scored.sum()),
        "nats_per_token": found.value,
        "perplexity": math.exp(found.value),
        "ci95_perplexity": None if found.ci95 is None else [math.exp(end) for end in found.ci95],
        "entropy_nats": float(np.mean([unigram_entropy(ids) for ids in sequences])),
        "distinct": {str(n): distinct(sequences, n) for n in _DISTINCT[model.alphabet.domain]},
        "duplicates": len(sequences)
        - len({np.asarray(ids, np.int64).tobytes() for ids in sequences}),
    }


def unigram_entropy(ids: Ids) -> float:
    """Entropy of a sequence's own token counts, nats."""
    p = np.unique(np.asarray(ids), return_counts=True)[1] / len(ids)
    return float(-(p * np.log(p)).sum())


def distinct(sequences: Sequence[Ids], n: int) -> float | None:
    """Different n-grams over all n-grams; None where no sequence is as long."""
    counted: Counter[bytes] = Counter()
    for ids in sequences:
        if len(ids) >= n:
            rows = np.lib.stride_tricks.sliding_window_view(np.asarray(ids, np.int32), n)
            counted.update(row.tobytes() for row in np.ascontiguousarray(rows))
    return len(counted) / total if (total := counted.total()) else None
