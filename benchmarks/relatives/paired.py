"""Rank figures with intervals over whole blocks (genes, promoters), and paired differences.

A figure is a function of how often each row counts. So blocks are drawn once, and the same draws
serve every score: the difference of two scores has its own interval.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

Figure = Callable[[np.ndarray], float]


def make_auroc(score: np.ndarray, positive: np.ndarray) -> Figure:
    """The chance that a positive scores above a negative, ties one half."""
    order, starts = _sort(score)
    first = positive[order]

    def measure(weights: np.ndarray) -> float:
        w = weights[order]
        up = np.add.reduceat(np.where(first, w, 0.0), starts)
        down = np.add.reduceat(np.where(first, 0.0, w), starts)
        both = up.sum() * down.sum()
        below = np.cumsum(down) - down / 2
        return float((up * below).sum() / both) if both else float("nan")

    return measure


def make_spearman(score: np.ndarray, truth: np.ndarray) -> Figure:
    """Spearman's rank correlation, ties at their mean rank."""
    sides = [_sort(score), _sort(truth)]

    def measure(weights: np.ndarray) -> float:
        ranks = []
        for order, starts in sides:
            w = np.add.reduceat(weights[order], starts)
            sizes = np.diff(np.append(starts, len(order)))
            rank = np.empty(len(order))
            rank[order] = np.repeat(np.cumsum(w) - w / 2, sizes)
            ranks.append(rank - np.average(rank, weights=weights))
        a, b = ranks
        norm = np.sqrt((weights * a * a).sum() * (weights * b * b).sum())
        return float((weights * a * b).sum() / norm) if norm > 0 else float("nan")

    return measure


def make_gap(score: np.ndarray, high: np.ndarray, low: np.ndarray) -> Figure:
    """Mean score of the rows `high` less that of the rows `low`."""

    def measure(weights: np.ndarray) -> float:
        up, down = weights * high, weights * low
        if not up.any() or not down.any():
            return float("nan")
        return float((up * score).sum() / up.sum() - (down * score).sum() / down.sum())

    return measure


def _sort(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The order, and where each run of equal values begins."""
    order = np.argsort(values, kind="stable")
    return order, np.flatnonzero(np.append(True, np.diff(values[order]) != 0))


class Draws:
    """Blocks drawn with replacement, `draws` times."""

    def __init__(self, block: Sequence[str] | np.ndarray, draws: int = 1000, seed: int = 1) -> None:
        _, self._member = np.unique(np.asarray(block), return_inverse=True)
        self.blocks = int(self._member.max()) + 1
        rng = np.random.default_rng(seed)
        self._drawn = [
            np.bincount(rng.integers(0, self.blocks, self.blocks), minlength=self.blocks)
            for _ in range(draws)
        ]

    def measure(self, figure: Figure) -> tuple[float, np.ndarray]:
        """The figure of all rows, and of each draw."""
        drawn = [figure(counts[self._member].astype(float)) for counts in self._drawn]
        return figure(np.ones(len(self._member))), np.array(drawn)

    def judge(self, figures: Mapping[str, Figure], best: Sequence[str]) -> dict[str, dict]:
        """Each figure with its interval; and how much each of `best` is ahead of every other."""
        known = {name: self.measure(figure) for name, figure in figures.items()}
        out = {name: {"value": interval(*known[name])} for name in known}
        for name in best:
            out[name]["ahead of"] = {
                other: interval(known[name][0] - value, known[name][1] - drawn)
                for other, (value, drawn) in known.items()
                if other != name
            }
        return out


def interval(value: float, drawn: np.ndarray) -> list[float]:
    """The value and the 95 % interval of its draws."""
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return [round(float(x), 4) for x in (value, low, high)]


def write_lines(path: Path, out: Mapping[str, object]) -> None:
    """JSON with a line for each key."""
    lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in out.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
