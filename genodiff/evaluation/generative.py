"""Generative perplexity: what a language model of yours thinks of samples, and why that alone says
little.

    perplexity   exp of the judge's negative log-likelihood per token, over all samples: exact
                 (`figure` "exact") of an autoregressive judge; of a masked one at most so much
                 ("bound"), from `repeats` masks for each window
    entropy      of the tokens of one sample (its own unigram counts, in nats), mean over samples
    distinct     how many of all n-grams differ, for several n; `duplicates`: samples that stand
                 there more than once

A judge likes what is likely: dull, repetitive text has a low perplexity. So entropy and diversity
stand beside it, and the same figures of real sequence of the judge's own held-out split: good
samples come near to that, not below it. Samplers that draw in single precision lower the
temperature of a large vocabulary without saying so (Zheng et al. 2024, arXiv 2409.02908): of our
own samples, the sidecar says how they were drawn; ours are drawn in double precision.

A sequence longer than an autoregressive judge's window is read in windows that overlap by half, of
a masked judge in windows side by side; every token counts once.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from genodiff.alphabet import DNA as DNA_LETTERS
from genodiff.data.dna_windows import SequenceWindows
from genodiff.data.loader import EvalBatches
from genodiff.diffusion.objectives.ar import shifted
from genodiff.domain import DNA
from genodiff.errors import DataError, UsageError
from genodiff.evaluation.bound import measure_bound
from genodiff.io.fasta import Record
from genodiff.runs.trained_model import TrainedModel
from genodiff.statistics.interval import ratio

Ids = NDArray[Any]
_DISTINCT = {"dna": (4, 8, 12, 16), "text": (1, 2, 3, 4)}
_TOKENS_AT_A_TIME = 8192


def check_judge(model: TrainedModel) -> None:
    """Raises `UsageError` where the model cannot judge: a masked model of text."""
    if model.objective.kind != "causal" and model.alphabet.domain != DNA.name:
        what = (
            f"a judge of text must be autoregressive, and this one was trained with objective "
            f"{model.objective.name}"
        )
        raise UsageError(what, fix="give a run that was trained with --objective ar")


@torch.no_grad()
def token_nats(model: TrainedModel, sequences: Sequence[Ids]) -> list[NDArray[np.float64]]:
    """-log p of every token of each sequence under a causal model, in nats.

    It is 0 for what is not scored (N in DNA).
    """
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


def bound_nats(
    model: TrainedModel, sequences: Sequence[Ids], *, repeats: int = 1, seed: int = 1
) -> NDArray[np.float64]:
    """An upper bound on -log p of each sequence of DNA under a masked model, in nats."""
    records = [
        Record(str(i), "", DNA_LETTERS.decode(ids).encode("ascii"), 0)
        for i, ids in enumerate(sequences)
    ]
    windows = SequenceWindows(records, model.config.data.seq_len)
    device = next(model.backbone.parameters()).device
    rows = max(1, _TOKENS_AT_A_TIME // windows.seq_len)
    found = measure_bound(
        model.objective, model.backbone, EvalBatches(windows, rows, seed, repeats), device
    )
    nats = found.nats.sum(0).mean(0)
    return np.bincount(windows.contig_index, nats, len(sequences)).astype(np.float64)


def figures(
    model: TrainedModel, sequences: Sequence[Ids], *, repeats: int = 1, seed: int = 1
) -> dict[str, Any]:
    """What the module describes, as plain values.

    Raises `DataError` where there is nothing to score.
    """
    check_judge(model)
    sequences = [ids for ids in sequences if len(ids)]
    if not sequences:
        raise DataError("there is no sample to score", fix="give a file with at least one sequence")
    targets = np.array(model.diffusion.targets)
    scored = np.array([float(np.isin(ids, targets).sum()) for ids in sequences])
    if not scored.any():
        raise DataError(
            "no token of the samples can be scored", fix="give samples that are not all N"
        )
    if model.objective.kind == "causal":
        nats = np.array([part.sum() for part in token_nats(model, sequences)])
    else:
        nats = bound_nats(model, sequences, repeats=repeats, seed=seed)
    found = ratio(nats, scored)
    return {
        "samples": len(sequences),
        "tokens": int(scored.sum()),
        "figure": model.objective.figure,
        "nats_per_token": found.value,
        "perplexity": math.exp(found.value),
        "ci95_perplexity": None if found.ci95 is None else [math.exp(end) for end in found.ci95],
        "entropy_nats": float(np.mean([measure_unigram_entropy(ids) for ids in sequences])),
        "distinct": {str(n): distinct(sequences, n) for n in _DISTINCT[model.alphabet.domain]},
        "duplicates": len(sequences)
        - len({np.asarray(ids, np.int64).tobytes() for ids in sequences}),
    }


def measure_unigram_entropy(ids: Ids) -> float:
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
