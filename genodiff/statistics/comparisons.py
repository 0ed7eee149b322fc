"""What the comparisons of one table together carry: Holm's correction, and words.

A table of m comparisons at 5 % each finds differences where there are none. Holm's correction
(1979) keeps the chance of even one at 5 %, whatever the comparisons have in common. Two models are
called equivalent only within a margin that was stated: both one-sided tests (TOST, Schuirmann 1987)
reject a difference beyond it, corrected likewise. All else "cannot be told apart".
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from genodiff.statistics.seeds import JointEstimate

LEVEL = 0.05
"""The chance, for a whole table, of a claim that is wrong."""


class JudgedDifference(NamedTuple):
    """The figure of `a` minus that of `b`, judged among all comparisons of a table.

    `p_holm` and `p_equivalent` (TOST for `margin`) are corrected; None where there is no interval
    or no margin.
    """

    a: str
    b: str
    estimate: JointEstimate
    p_holm: float | None
    margin: float | None = None
    p_equivalent: float | None = None

    @property
    def is_different(self) -> bool:
        """Whether the difference is significant after Holm's correction."""
        return self.p_holm is not None and self.p_holm < LEVEL

    @property
    def is_equivalent(self) -> bool:
        """Whether the difference is within the margin, after Holm's correction."""
        return self.p_equivalent is not None and self.p_equivalent < LEVEL

    def describe(self, *, higher_is_better: bool = True) -> str:
        """The verdict in words: all that may be said of `a` against `b`."""
        estimate = self.estimate
        if not estimate.parts:
            return f"no interval: {estimate.why_none}"
        ahead = (estimate.value > 0) == higher_is_better
        if self.is_different:
            word = "ahead" if ahead else "behind"
            return f"{word}, within ±{self.margin:g}" if self.is_equivalent else word
        return (
            f"equivalent within ±{self.margin:g}" if self.is_equivalent else "cannot be told apart"
        )

    def to_json(self) -> dict[str, Any]:
        """The names, the difference with its interval and p values, and why there are none."""
        found = self.estimate
        return {
            "a": self.a, "b": self.b, "difference": found.value, "se": found.se,
            "ci95": found.ci95, "p": found.p, "p_holm": self.p_holm,
            "margin": self.margin, "p_equivalent": self.p_equivalent,
            "why_none": found.why_none or None,
        }  # fmt: skip


def judge_differences(
    pairs: Sequence[tuple[str, str, JointEstimate]], margin: float | None = None
) -> list[JudgedDifference]:
    """All comparisons of a table, corrected together; `pairs` are (a, b, estimate of a - b).

    Comparisons without an interval make no claim and are not counted.
    """
    p = adjust_holm([estimate.p for *_, estimate in pairs])
    same: list[float | None] = [None] * len(pairs)
    if margin is not None:
        same = adjust_holm([estimate.test_equivalence(margin) for *_, estimate in pairs])
    return [
        JudgedDifference(a, b, estimate, mine, margin, within)
        for (a, b, estimate), mine, within in zip(pairs, p, same, strict=True)
    ]


def adjust_holm(p: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p values, in the order given; None stays None and is not counted."""
    known = np.array([i for i, value in enumerate(p) if value is not None], np.int64)
    found: list[float | None] = [None] * len(p)
    if not len(known):
        return found
    values = np.array([p[i] for i in known], np.float64)
    order = np.argsort(values, kind="stable")
    steps = values[order] * np.arange(len(values), 0, -1)
    for i, value in zip(known[order], np.minimum(np.maximum.accumulate(steps), 1), strict=True):
        found[i] = float(value)
    return found


def show_p(p: float | None) -> str:
    """A p value as a table shows it; empty for None."""
    if p is None:
        return ""
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}" if p < 0.1 else f"{p:.2f}"
