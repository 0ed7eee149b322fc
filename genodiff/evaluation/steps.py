"""What sampling in T steps costs: the bound of a chain of T steps.

The chain's masks have a law of their own over counts (`step_chain`): near T values of k / n for a
small T, as good as uniform for a large one. A window whose k comes from that law has the estimate
(n / k) S_k, as it has of the bound of infinitely many steps from a uniform k.

    --t-steps 10 20     the windows are masked once more for each repeat, k by the laws of those
                        chains whose own is far from uniform
    without it          only chains whose law is close to uniform are reported, from the draws of
                        the bound itself

Either way all draws serve each T: a draw weighs p_T(k) / g(k), with g the mixture of laws that the
draws are of. A curve c(k / n) fitted to the draws (`mask_curve`) is taken out with its exact mean
under p_T, so that weights that differ scatter little. Each estimate is unbiased, and its interval
is over windows and masks.

A network that is told the time sees another one at each step: it has no such figure.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from genodiff.data.loader import EvalBatches
from genodiff.data.windows import Windows
from genodiff.diffusion.likelihood import window_nelbo
from genodiff.diffusion.masked import Denoiser
from genodiff.diffusion.objective import Objective
from genodiff.errors import UsageError
from genodiff.evaluation.bound import Bound, Progress
from genodiff.evaluation.eval_options import EvalOptions
from genodiff.evaluation.mask_curve import choose_degree, cross_fit, split_folds
from genodiff.evaluation.step_chain import (
    StepChain,
    count_density,
    draw_counts,
    make_chain,
    mean_powers,
)
from genodiff.runs.denoiser import make_inputs
from genodiff.runs.model import TrainedModel
from genodiff.statistics.interval import BITS, Interval, ratio

STEPS = (10, 20, 50, 100, 200, 500, 1000)
_MOST_SCATTER = 2.0
"""Mean squared weight of a uniform draw up to which it serves a chain: 1 where the laws agree."""

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


class CountDraws(NamedTuple):
    """Estimates (n / k) S_k of windows in nats, and the counts that they are of."""

    nats: Floats  # (2, repeats, windows): of upper case and of soft-masked tokens
    k: Counts  # (repeats, windows); 0 where a window has nothing to mask


class WindowSizes(NamedTuple):
    """How many tokens windows have (windows,), and by what their nats are divided."""

    maskable: Floats
    counted: Floats
    size: Floats


def has_steps(objective: Objective) -> bool:
    """Whether the bound of T steps is a cross-entropy of counted masks: see the module."""
    return objective.bound_counts_masks and not objective.diffusion.time_conditioning


def check_steps(objective: Objective, asked: Sequence[int] | None, context: str) -> None:
    """Raises `UsageError` where the bound of T steps was asked for and cannot be had."""
    if asked is None:
        return
    if context != "window":
        raise UsageError("--t-steps is for windows alone", fix="leave out --context contig")
    if not has_steps(objective):
        raise UsageError(
            "--t-steps bounds a chain of masks (mdlm, mlm) whose network has no time conditioning",
            fix="leave it out",
        )


def describe_steps(
    model: TrainedModel,
    options: EvalOptions,
    windows: Windows,
    bound: Bound,
    progress: Progress | None = None,
    size: Floats | None = None,
) -> dict[str, Any]:
    """The keys of an evaluation about T steps; `size` (windows,) in place of the tokens that count.

    It masks the windows again where the options ask for it.
    """
    asked = options.t_steps is not None
    found: dict[str, Any] = {"t_steps": {}, "t_steps_asked": asked, "t_steps_repeats": 0}
    if options.context != "window" or bound.rate is None:
        return found
    objective, maskable = model.objective, bound.tokens.sum(0)
    chains, far = choose_chains(objective, maskable, options.t_steps)
    own = None
    if far:
        batches = EvalBatches(
            windows, options.batch_size, options.seed, options.repeats, drawn=options.repeats
        )
        device = next(model.backbone.parameters()).device
        own = measure_chains(objective, model.backbone, batches, far, device, progress)
        found["t_steps_repeats"] = options.repeats
    rows = slice(0, 2 if options.soft_masked else 1)
    counted = bound.tokens[rows].sum(0)
    found["t_steps"] = step_bits(
        objective,
        WindowSizes(maskable, counted, counted if size is None else size),
        rows,
        bound.nats[rows].sum(0).mean(0),
        chains,
        count_uniform(bound.drawn, maskable, bound.rate),
        far,
        own,
    )
    return found


def choose_chains(
    objective: Objective, n: Floats, asked: Sequence[int] | None
) -> tuple[list[StepChain], list[StepChain]]:
    """The chains that are reported of windows with `n` tokens, and those that need draws of their
    own. Without `asked` the latter are none.
    """
    if not has_steps(objective):
        return [], []
    schedule = objective.diffusion.schedule
    chains = [make_chain(schedule, steps) for steps in sorted(set(asked or STEPS))]
    most = int(n.max())
    k = np.arange(1, most + 1)
    scatter = [np.square(count_density(c, np.full(most, most), k)).mean() for c in chains]
    pairs = list(zip(chains, scatter, strict=True))
    if asked is None:
        return [chain for chain, by in pairs if by <= _MOST_SCATTER], []
    return chains, [chain for chain, by in pairs if by > _MOST_SCATTER]


@torch.no_grad()
def measure_chains(
    objective: Objective,
    denoiser: Denoiser,
    batches: EvalBatches,
    chains: Sequence[StepChain],
    device: torch.device | str = "cpu",
    progress: Progress | None = None,
) -> CountDraws:
    """Every window of `batches` masked with counts of the chains' law, once for each repeat."""
    n = len(batches.windows)
    nats, ks = np.zeros((2, batches.repeats, n)), np.zeros((batches.repeats, n), np.int64)
    for done, batch in enumerate(batches, 1):
        of, clean, draws = make_inputs(batch, denoiser, device)
        k = torch.from_numpy(
            draw_counts(chains, clean.n.cpu().numpy(), draws.times("systematic").cpu().numpy())
        ).to(clean.n.device)
        found = window_nelbo(objective.diffusion, of, clean, k, draws.u_mask)
        soft = batch.soft.to(found.ce.device)
        repeat, window = np.divmod(batch.index.numpy(), n)
        repeat = repeat - batches.drawn
        nats[0, repeat, window] = (
            (found.scale * found.ce.masked_fill(soft, 0).sum(-1)).cpu().numpy()
        )
        nats[1, repeat, window] = (
            (found.scale * found.ce.masked_fill(~soft, 0).sum(-1)).cpu().numpy()
        )
        ks[repeat, window] = found.k.cpu().numpy()
        if progress is not None:
            progress(done, len(batches))
    return CountDraws(nats, ks)


def count_uniform(nats: Floats, tokens: Floats, rate: Floats) -> CountDraws:
    """The draws of the bound itself, from their masked shares `rate` (repeats, windows)."""
    return CountDraws(nats, np.rint(rate * tokens).astype(np.int64))


def step_bits(
    objective: Objective,
    tokens: WindowSizes,
    counted: slice,
    model: Floats,
    chains: Sequence[StepChain],
    uniform: CountDraws,
    far: Sequence[StepChain] = (),
    own: CountDraws | None = None,
) -> dict[str, dict[str, Any]]:
    """{"10": {"bits", "ci95", "minus_model_bits"}, ...}: NELBO_T of `chains` in bits per unit of
    `tokens.size`, under the objective's schedule.

    `counted` are the rows of nats that count. `model` (windows,) are estimates of the bound of
    infinitely many steps, which the paired difference is from. `uniform` are draws of uniform
    counts, `own` those of the law of the chains `far`.
    """
    some = tokens.counted > 0
    if not chains or not some.any():
        return {}
    tokens, model = WindowSizes(*(part[some] for part in tokens)), model[some]
    n = tokens.maskable.round().astype(np.int64)
    sets = [uniform] if own is None else [uniform, own]
    y = np.concatenate([part.nats[counted].sum(0)[:, some] for part in sets])
    k = np.concatenate([part.k[:, some] for part in sets]).clip(1)
    wide = np.broadcast_to(n, k.shape)
    share = 0.0 if own is None else len(own.k) / len(k)
    law = np.full(k.shape, 1 - share)
    for chain in far if own is not None else ():
        law += share / len(far) * count_density(chain, wide, k)
    curve = _Curve(y, k, n, tokens.counted)
    diffusion, found = objective.diffusion, {}
    for chain in chains:
        weight = count_density(chain, wide, k) / law
        revealed = (weight * curve.left + curve.mean_under(chain)).mean(0)
        prior = (1 - chain.hidden) * math.log(len(diffusion.targets)) * tokens.counted
        nats = chain.hidden * revealed + prior
        found[str(chain.steps)] = {
            **_figure(ratio(nats, tokens.size)),
            "minus_model_bits": _figure(ratio(nats - model, tokens.size)),
        }
    return found


def _figure(nats: Interval) -> dict[str, Any]:
    found = nats.scaled(BITS)
    return {"bits": found.value, "ci95": found.ends()}


class _Curve:
    """c(k / n) fitted to draws, part by part: `left` (repeats, windows) is what it leaves."""

    def __init__(self, y: Floats, k: Counts, n: Counts, counted: Floats) -> None:
        self.n, self.counted = n, counted
        self.degree = choose_degree(y.size)
        self.fitted = np.zeros((*y.shape, self.degree + 1))
        self.left = y
        if not self.degree:
            return
        weigh = np.broadcast_to(counted, y.shape)
        rate = (k / n).reshape(-1, 1) ** np.arange(1, self.degree + 1)
        flat = self.fitted.reshape(-1, self.degree + 1)
        root = np.sqrt(weigh.reshape(-1))
        for held, fitted in cross_fit((y / weigh).reshape(-1), root, rate, split_folds(y.size)):
            flat[held] = fitted
        powers = np.column_stack([np.ones(y.size), rate])
        self.left = y - weigh * (powers * flat).sum(1).reshape(y.shape)

    def mean_under(self, chain: StepChain) -> Floats:
        """(repeats, windows): nats of the curve's mean under the chain's law of counts."""
        if not self.degree:
            return np.zeros(self.left.shape)
        means = mean_powers(chain, self.n, self.degree)
        found: Floats = self.counted * (self.fitted * means).sum(-1)
        return found
