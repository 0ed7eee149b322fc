"""The bound of windows: upper bounds on −log p of each, with their tokens, by repeat.

With a memory the network is evaluated once, and its bound without the memory is kept beside. One
that was trained with a memory is evaluated twice: told what is recalled, and told nothing.

The part of the estimate that only tells how much of a window happened to be masked is removed. A
window with n tokens of which k are masked gives y = (n / k) S_k, an estimate of its bound with mean
n C_k / k given k. C_k / k falls or rises steeply with k, so y scatters much more over windows than
the bound does. With a curve c(r) close to C_k / k at the masked share r = k / n,

    y - n (c(r) - mean of c)        mean of c = (1 / n) sum over k = 1..n of c(k / n)

has the same mean for every c, because k is uniform on 1..n: c is a control variate whose mean is
known. What is left scatters as the bounds themselves and the choice of masked positions do.

The curve is a polynomial fitted to the draws. For the draws of each of five parts it is fitted to
the other four, so that it has not seen what it is taken from. With few draws it has a low degree,
or is left out: an interval is then too wide rather than too narrow.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genodiff.data.loader import Batch, EvalBatches
from genodiff.data.windows import Windows
from genodiff.diffusion.loss import check_apart
from genodiff.diffusion.masked import Denoiser
from genodiff.diffusion.objective import Objective
from genodiff.errors import GenodiffError
from genodiff.evaluation.eval_data import WindowMemory
from genodiff.evaluation.request import EvalOptions
from genodiff.memory.remembering import reads_memory
from genodiff.runs.denoiser import make_inputs
from genodiff.runs.trained_model import TrainedModel

_SAFETY = 0.85  # of --max-minutes is planned for, from a measured pace
_PACED = 3  # batches that are measured
_SMALL = 4  # windows in such a batch on a CPU
ENOUGH = 60
"""Draws from which on the curve follows any slope that is met."""
_DEGREES = ((ENOUGH, 4), (20, 2), (12, 1))  # (draws from which on, degree of the curve)
_FOLDS = 5

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]


class Bound(NamedTuple):
    """The bound of windows, in nats and in their order; [0] upper-case, [1] soft-masked tokens."""

    nats: Floats  # (2, repeats, windows), what the masked shares explain removed
    tokens: Floats  # (2, windows)
    rate: Floats | None
    """(repeats, windows): masked share k / n, 0 where a window has no token to score. None where
    the objective has no curve."""
    drawn: Floats  # as nats, as it was drawn: points of the curve C_k / k
    shared: NDArray[np.int64] | None = None
    """(windows,): windows of one number had their masks counted together; None: each has its own"""
    without: Floats | None = None
    """As nats, of the network without its memory; None where there is none."""


class WindowDraws(NamedTuple):
    """What was drawn of windows: the bound's `drawn`, its `tokens`, and masked shares."""

    nats: Floats  # (2, repeats, windows)
    tokens: Floats  # (2, windows)
    rate: Floats  # (repeats, windows)
    without: Floats | None = None  # as nats, without the memory
    ordered: Floats | None = None  # as of `OrderScorer.measure`, (3, windows)

    @classmethod
    def empty(cls, repeats: int, windows: int, *, memory: bool = False) -> "WindowDraws":
        """Of no draws yet."""
        nats, tokens, rate = ((2, repeats, windows), (2, windows), (repeats, windows))
        without = np.zeros(nats) if memory else None
        return cls(np.zeros(nats), np.zeros(tokens), np.zeros(rate), without)

    def put(self, repeat: int, windows: slice | NDArray[np.int64], found: Sequence[Floats]) -> None:
        """Put in what `measure_batch` found."""
        self.nats[0, repeat, windows], self.nats[1, repeat, windows] = found[0], found[1]
        self.tokens[0, windows], self.tokens[1, windows] = found[2], found[3]
        self.rate[repeat, windows] = found[4]
        if self.without is not None:
            self.without[0, repeat, windows], self.without[1, repeat, windows] = found[5:]

    def bound(self, objective: Objective) -> Bound:
        """The bound. Raises `GenodiffError` where it is not finite."""
        rate = self.rate if objective.curve else None
        if self.without is None:
            return make_bound(self.nats, self.tokens, rate)
        # The curve is the network's. What the memory changes is paired, and nearly 0 in most
        # windows: a curve fitted to it would put the noise of a few windows into all of them.
        alone = make_bound(self.without, self.tokens, rate).nats
        check_finite(self.nats)
        return Bound(alone + (self.nats - self.without), self.tokens, rate, self.nats, None, alone)


@torch.no_grad()
def measure_bound(
    objective: Objective,
    denoiser: Denoiser,
    batches: EvalBatches,
    device: torch.device | str = "cpu",
    progress: Progress | None = None,
    memory: WindowMemory | None = None,
) -> Bound:
    """The bound of every window of `batches`, once for each of its repeats."""
    n = len(batches.windows)
    check_network(objective, denoiser, batches, device)
    draws = WindowDraws.empty(batches.repeats, n, memory=memory is not None)
    memory = memory and memory.of(batches.windows)
    for done, batch in enumerate(batches, 1):
        repeat, window = divmod(int(batch.index[0]), n)
        found = measure_batch(objective, denoiser, batch, device, memory)
        draws.put(repeat, slice(window, window + len(batch.index)), found)
        if progress is not None:
            progress(done, len(batches))
    return draws.bound(objective)


@torch.no_grad()
def check_network(
    objective: Objective, denoiser: Denoiser, batches: EvalBatches, device: torch.device | str
) -> None:
    """Raises `UsageError` for a network whose positions' predictions depend on one another.

    It is asked about one window of all masks.
    """
    if objective.kind in ("masked", "uniform") and len(batches.windows):
        one = EvalBatches(batches.windows.spread(1), 1, batches.seed).batch(0, 0)
        told, clean, _ = make_inputs(one, denoiser, device)
        xt = objective.diffusion.mask(clean.x0, clean.maskable)
        sigma = torch.zeros(1, dtype=torch.float64, device=xt.device)
        more = () if clean.lengths is None else (clean.lengths,)
        check_apart(objective.diffusion, told, xt, sigma, *more)


def make_bound(
    drawn: Floats, tokens: Floats, rate: Floats | None, shared: NDArray[np.int64] | None = None
) -> Bound:
    """The bound of windows from what was drawn. Raises `GenodiffError` where it is not finite."""
    check_finite(drawn)
    nats = drawn if rate is None else remove_curve(drawn, tokens, rate, shared)
    return Bound(nats, tokens, rate, drawn, shared)


def check_finite(nats: Floats, of: str = "bound") -> None:
    """Raises `GenodiffError` where a bound or likelihood is not finite."""
    if not np.isfinite(nats).all():
        what = f"the model's {of} is not finite on some windows"
        raise GenodiffError(what, fix="train with a lower --lr")


def measure_batch(
    objective: Objective,
    denoiser: Denoiser,
    batch: Batch,
    device: torch.device | str,
    memory: WindowMemory | None = None,
) -> list[Floats]:
    """Of each window: nats and tokens of upper case and of soft-masked bases, and masked share.

    They are in the order upper nats, soft nats, upper tokens, soft tokens, share. With a memory of
    these windows, upper and soft nats without it follow.
    """
    if memory is None:
        return _measure(objective, denoiser, batch, device)
    answers: list[Tensor] = []

    def record(*given: Tensor) -> Tensor:
        answers.append(denoiser(*given))
        return answers[-1]

    alone, again = record, lambda *_: answers.pop(0)  # the network is asked once for both
    if reads_memory(denoiser):  # it answers otherwise where it reads the memory
        alone = again = denoiser
    without = _measure(objective, alone, batch, device)
    found = _measure(objective, memory.wrap(again, batch), batch, device)
    return [*found, *without[:2]]


def _measure(
    objective: Objective, denoiser: Denoiser, batch: Batch, device: torch.device | str
) -> list[Floats]:
    found, soft = objective.bound(*make_inputs(batch, denoiser, device)), batch.soft.to(device)
    of_soft = found.scale * torch.where(soft, found.ce, 0.0).sum(-1)
    upper = found.scale * torch.where(soft, 0.0, found.ce).sum(-1)
    tokens = [(batch.maskable & of).sum(-1) for of in (~batch.soft, batch.soft)]
    columns = (upper, of_soft, *tokens, found.rate)
    return [column.cpu().numpy().astype(np.float64) for column in columns]


def time_window(
    model: TrainedModel, windows: Windows, batch_size: int, memory: WindowMemory | None = None
) -> float:
    """How long one window takes here: the median of a few small batches, after one to warm up."""
    device = next(model.backbone.parameters()).device
    sample = windows.spread(
        min(len(windows), batch_size, batch_size if device.type == "cuda" else _SMALL)
    )
    elapsed = []
    for seed in range(_PACED + 1):
        start = time.monotonic()
        batches = EvalBatches(sample, batch_size, seed)
        measure_bound(model.objective, model.backbone, batches, device, memory=memory)
        elapsed.append(time.monotonic() - start)
    return max(sorted(elapsed[1:])[_PACED // 2] / len(sample), 1e-9)


def choose_windows(
    model: TrainedModel,
    windows: Windows,
    options: EvalOptions,
    memory: WindowMemory | None = None,
    *,
    taken: float = 0.0,
    passes: float = 0.0,
) -> Windows:
    """Those windows, evenly spread, that the options' limits leave.

    `taken` are the seconds of --max-minutes that go elsewhere, `passes` how often each window goes
    through the network besides.
    """
    if options.max_windows is not None:
        windows = windows.spread(options.max_windows)
    if options.max_minutes is not None:
        began = time.monotonic()
        pace = time_window(model, windows, options.batch_size, memory)
        left = (60 * options.max_minutes - taken) * _SAFETY - (time.monotonic() - began)
        windows = windows.spread(max(1, int(left / (pace * (options.repeats + passes)))))
    return windows


def count_draws(tokens: Floats, repeats: int, shared: NDArray[np.int64] | None) -> int:
    """How many counts of masks were drawn for windows of `tokens` (2, windows)."""
    counts = tokens.sum(0) > 0
    return repeats * (int(counts.sum()) if shared is None else len(np.unique(shared[counts])))


def remove_curve(
    nats: Floats, tokens: Floats, rate: Floats, shared: NDArray[np.int64] | None = None
) -> Floats:
    """`nats` (2, repeats, windows) less what the masked shares `rate` (repeats, windows) explain.

    `tokens` (2, windows) are upper case and soft-masked; a row of no tokens stays 0. `shared`
    (windows,) numbers what had its masks counted together.
    """
    draws, mine = count_draws(tokens, len(rate), shared), tokens.sum(0)
    degree = next((degree for least, degree in _DEGREES if draws >= least), 0)
    if not degree:
        return nats
    n = np.broadcast_to(mine, rate.shape)
    drawn = (n > 0) & (rate > 0)
    number = np.arange(rate.size).reshape(rate.shape)
    counted = n
    if shared is not None:
        number = shared + (int(shared.max()) + 1) * np.arange(len(rate))[:, None]
        counted = np.broadcast_to(np.bincount(shared, mine)[shared], rate.shape)
    y, root = nats.sum(0)[drawn] / n[drawn], np.sqrt(n[drawn])
    columns = _powers(rate[drawn], degree) - _mean_powers(counted[drawn], degree)
    fold = np.unique(number[drawn], return_inverse=True)[1] % _FOLDS
    explained = np.zeros(rate.shape)
    curve = np.zeros(len(y))
    weighted = root[:, None] * np.column_stack([np.ones(len(y)), columns])
    for part in range(_FOLDS):
        held, others = fold == part, fold != part
        fitted = np.linalg.lstsq(weighted[others], (root * y)[others], rcond=None)[0]
        curve[held] = columns[held] @ fitted[1:]
    explained[drawn] = curve
    result: Floats = nats - tokens[:, None] * explained
    return result


def _powers(rate: Floats, degree: int) -> Floats:
    return rate[:, None] ** np.arange(1, degree + 1)


def _mean_powers(n: Floats, degree: int) -> Floats:
    """(draws, degree): the means of (k / n)^p over k = 1..n, for p = 1..degree."""
    sizes, of = np.unique(n.round().astype(np.int64), return_inverse=True)
    means = [_powers(np.arange(1, size + 1) / size, degree).mean(0) for size in sizes.tolist()]
    found: Floats = np.stack(means)[of]
    return found
