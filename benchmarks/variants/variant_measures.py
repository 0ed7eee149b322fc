"""Rank statistics with intervals over blocks of variants, and the baselines of counting."""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from scipy import stats

DRAWS = 1000


def spearman(score: np.ndarray, truth: np.ndarray) -> float:
    """Spearman's rank correlation, ties at their mean rank; nan where one of both is constant."""
    return pearson(stats.rankdata(score), stats.rankdata(truth))


def pearson(score: np.ndarray, truth: np.ndarray) -> float:
    """Pearson's correlation; nan where one of both is constant."""
    a, b = score - score.mean(), truth - truth.mean()
    norm = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / norm if norm > 0 else float("nan")


def auroc(score: np.ndarray, positive: np.ndarray) -> float:
    """The chance that a positive scores above a negative, ties one half; nan with one class."""
    n1 = int(positive.sum())
    n0 = len(positive) - n1
    if not n1 or not n0:
        return float("nan")
    ranks = stats.rankdata(score)
    return float((ranks[positive].sum() - n1 * (n1 + 1) / 2) / (n1 * n0))


def auprc(score: np.ndarray, positive: np.ndarray) -> float:
    """Average precision, tied scores as one step; nan without a positive."""
    if not positive.any():
        return float("nan")
    order = np.argsort(-score, kind="stable")
    hits = np.cumsum(positive[order])
    last = np.append(np.flatnonzero(np.diff(score[order])), len(order) - 1)
    recall = hits[last] / hits[-1]
    return float((np.diff(recall, prepend=0.0) * hits[last] / (last + 1)).sum())


def rank_within(values: np.ndarray, strata: Sequence[str]) -> np.ndarray:
    """Ranks within each stratum, from 0 to 1, ties at their mean."""
    names, out = np.array(strata), np.empty(len(values))
    for name in np.unique(names):
        mine = names == name
        out[mine] = (stats.rankdata(values[mine]) - 0.5) / mine.sum()
    return out


def bootstrap(
    measure: Callable[..., float],
    columns: Sequence[np.ndarray],
    block: Sequence[str],
    *,
    seed: int,
    draws: int = DRAWS,
) -> dict[str, float]:
    """The figure and its 95 % percentile interval, whole blocks drawn with replacement."""
    _, member = np.unique(np.array(block), return_inverse=True)
    n = int(member.max()) + 1
    order = np.argsort(member, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(member))[:-1])
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(draws):
        rows = np.concatenate([parts[i] for i in rng.integers(0, n, n)])
        found.append(measure(*(column[rows] for column in columns)))
    kept = [value for value in found if np.isfinite(value)]
    low, high = np.quantile(kept, [0.025, 0.975]) if n > 1 and kept else (float("nan"),) * 2
    return {"value": measure(*columns), "low": float(low), "high": float(high), "blocks": n}


def gc_change(before: Sequence[str], after: Sequence[str]) -> np.ndarray:
    """Bases G and C of the alternative less those of the reference."""

    def count(sequence: str) -> int:
        return sequence.count("G") + sequence.count("C")

    return np.array([count(b) - count(a) for a, b in zip(before, after, strict=True)], float)


def word_changes(before: Sequence[str], after: Sequence[str], size: int) -> np.ndarray:
    """(n, 4^size): how often each word stands in the alternative less in the reference."""
    place = {"".join(word): i for i, word in enumerate(product("ACGT", repeat=size))}
    out = np.zeros((len(before), len(place)), np.float32)
    for row, pair in enumerate(zip(before, after, strict=True)):
        for sign, sequence in zip((-1, 1), pair, strict=True):
            for i in range(len(sequence) - size + 1):
                at = place.get(sequence[i : i + size])
                if at is not None:
                    out[row, at] += sign
    return out


def ridge_left_out(
    features: np.ndarray, truth: np.ndarray, block: Sequence[str], *, seed: int, folds: int = 10
) -> np.ndarray:
    """Predictions of a ridge regression for blocks that it was not fitted on.

    Blocks go to at most `folds` folds. The strength is chosen inside the fitted part.
    """
    from sklearn.linear_model import RidgeCV
    from sklearn.preprocessing import StandardScaler

    names, member = np.unique(np.array(block), return_inverse=True)
    fold = np.random.default_rng(seed).permutation(len(names)) % min(folds, len(names))
    out = np.empty(len(truth))
    for i in range(min(folds, len(names))):
        test = fold[member] == i
        scaler = StandardScaler().fit(features[~test])
        ridge = RidgeCV(alphas=10.0 ** np.arange(1, 6)).fit(
            scaler.transform(features[~test]), truth[~test]
        )
        out[test] = ridge.predict(scaler.transform(features[test]))
    return out
