"""The score of a whole window, `nelbo`: what a variant does to its span and to all around it.

    score = NELBO(x_ref) − NELBO(x_alt),   NELBO(x) = E_k [ n/k · sum of −log p at k masks of n ]

Both bounds are those of `diffusion/loss.py`, in nats of a window. The spellings share their
draws: one time t gives both their counts, k = ceil(t n), and a base of the flanks has one uniform
for both. Spans share theirs from the first base on. So what the spellings have in common cancels.

What is left varies most where few bases are masked, since n/k is large. So each base has a control:
its cross-entropy c in one of `PHASES` windows in which every fourth base is masked. A draw is then

    sum of c over all bases + n/k · sum of (−log p − c) over the k masked

with the same mean, whatever c is, because a base is masked with chance k/n.

A round is four draws at times that are spread evenly over (0, 1] and turned by one uniform. Rounds
are independent, and their spread gives the standard error. After a first stage the number of rounds
that the wanted error takes is known; few looks at the error keep its interval honest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.counter import Purpose, generator
from genodiff.scoring.span_scores import (
    Estimate,
    Steps,
    count_distinct,
    find_standard_error,
    take_logs,
)
from genodiff.scoring.spelling_pair import Flags, Ids, Logs, SpellingPair

if TYPE_CHECKING:
    from genodiff.scoring.masked_reader import MaskedReader

DRAWS = 4
"""Draws of a round."""
PHASES = 4
"""Windows of each spelling that the controls come from."""
FIRST_ROUNDS = 12
"""Rounds before the standard error is looked at."""
CONTROLS = 2 * PHASES
"""Windows of both spellings that the controls come from."""
_STAGES = 3  # looks at the error
_SPARE = 1.1  # more rounds than the error of a stage asks for
_AT_A_TIME = 16  # rounds whose windows are held together


def score_nelbo(reader: MaskedReader, pair: SpellingPair, seed: int, se: float, most: int) -> Steps:
    """Rounds until the standard error is `se` nats, or `most` windows have been asked for.

    Those of the controls do not count, and `FIRST_ROUNDS` are read whatever `most` is.
    """
    key = pair.key()
    spellings = (_DrawnSpelling(reader, pair, False), _DrawnSpelling(reader, pair, True))
    windows = [reader.hide(one.ids, mask) for one in spellings for mask in one.phases]
    logs = yield windows
    for number, one in enumerate(spellings):
        one.set_controls(logs[number * PHASES : (number + 1) * PHASES])
    asked, values, wanted = count_distinct(windows), list[float](), FIRST_ROUNDS
    last = max(FIRST_ROUNDS, most // (2 * DRAWS))
    for _ in range(_STAGES):
        while len(values) < wanted:
            rounds = range(len(values), min(wanted, len(values) + _AT_A_TIME))
            drawn = [list(one.draw_rounds(key, seed, rounds)) for one in spellings]
            windows = [draw.window for some in drawn for draw in some]
            logs = yield windows
            of_ref = spellings[0].price(drawn[0], logs[: len(drawn[0])])
            of_alt = spellings[1].price(drawn[1], logs[len(drawn[0]) :])
            values.extend((of_ref - of_alt).reshape(-1, DRAWS).mean(1).tolist())
            asked += count_distinct(windows)
        error = find_standard_error(np.array(values))
        if error <= se or len(values) >= last:
            break
        wanted = min(last, math.ceil(_SPARE * len(values) * (error / se) ** 2))
    value, note = math.fsum(values) / len(values), "se_above_wanted" if error > se else ""
    return Estimate(value, error, len(values) - 1, asked, note)


class _WindowDraw(NamedTuple):
    window: Ids
    mask: Flags
    scale: float  # n / k, 0 where nothing can be masked


class _DrawnSpelling:
    """One spelling of a pair, and the controls of its bases."""

    def __init__(self, reader: MaskedReader, pair: SpellingPair, of_alt: bool) -> None:
        self._reader, self._longest = reader, max(pair.widths)
        self.ids, self._span = (pair.alt, pair.alt_span) if of_alt else (pair.ref, pair.ref_span)
        self._maskable = reader.are_targets(self.ids)
        self._n = int(self._maskable.sum())
        # Flanks and span are counted apart, so a base of the flanks has one phase in both.
        phase = np.where(self._span, self._span.cumsum() - 1, (~self._span).cumsum() - 1) % PHASES
        self.phases = [self._maskable & (phase == number) for number in range(PHASES)]
        self._controls = np.zeros(len(self.ids))

    def set_controls(self, logs: list[Logs]) -> None:
        for mask, some in zip(self.phases, logs, strict=True):
            self._controls[mask] = -take_logs(self._reader, some, self.ids[mask])

    def draw_rounds(self, key: int, seed: int, rounds: range) -> Iterator[_WindowDraw]:
        span, n_span = self._span, int(self._span.sum())
        for number in rounds:
            draws = generator(seed, Purpose.VARIANT_MASK, key, number)
            turn = draws.random()
            for slot in range(DRAWS):
                u = np.empty(len(span))
                u[~span] = draws.random(len(span) - n_span)
                u[span] = draws.random(self._longest)[:n_span]
                u[~self._maskable] = np.inf
                t = (slot / DRAWS + turn) % 1 or 1.0
                k = min(math.ceil(t * self._n), self._n)
                mask = np.zeros(len(u), np.bool_)
                mask[np.argsort(u, kind="stable")[:k]] = True
                window = self._reader.hide(self.ids, mask)
                yield _WindowDraw(window, mask, self._n / k if k else 0.0)

    def price(self, draws: list[_WindowDraw], logs: list[Logs]) -> NDArray[np.float64]:
        """The estimate of the bound that each draw gives, in nats."""
        known = math.fsum(self._controls[self._maskable])
        found = [
            known
            + scale
            * math.fsum(-take_logs(self._reader, some, self.ids[mask]) - self._controls[mask])
            for (_, mask, scale), some in zip(draws, logs, strict=True)
        ]
        return np.array(found)
