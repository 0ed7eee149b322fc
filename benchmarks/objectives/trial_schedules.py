"""The noise schedule and the bound of one network.

The mean does not depend on the schedule; the variance of an estimate does.

For a network that ignores time, the integral of w(t) E[sum of cross-entropies at t] over (0, 1] is
the same under every schedule: a change of variables. How much single draws of t scatter about it is
not (MDLM, arXiv 2406.07524, table 9). Times are drawn independently here; the exact-count estimator
of `eval` knows no schedule and scatters least.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from genodiff.data.loader import EvalBatches
from genodiff.data.windows import Windows
from genodiff.diffusion.loss import decompose, exact_count_bound
from genodiff.diffusion.masked import counts
from genodiff.diffusion.schedule import schedule
from genodiff.runs.denoiser import make_inputs
from genodiff.runs.trained_model import TrainedModel
from genodiff.statistics.interval import BITS, Interval, ratio

EXACT_COUNT = "exact count"


class ScheduleFigure(NamedTuple):
    """A bound estimated under one schedule."""

    name: str
    bits: Interval  # per token, over windows and draws
    variance: (
        float  # of a single draw's bits per token about its window's mean, averaged over windows
    )
    row: str = ""  # whose network it is, in a comparison


@torch.no_grad()
def schedule_figures(
    model: TrainedModel, windows: Windows, names: Sequence[str], repeats: int = 8
) -> list[ScheduleFigure]:
    """One figure for each schedule, and one for exact counts.

    The prior's share, at most alpha(1) ln V, is left out.
    """
    device = next(model.backbone.parameters()).device
    found = []
    for name in (*names, EXACT_COUNT):
        diffusion = (
            model.diffusion
            if name == EXACT_COUNT
            else replace(model.diffusion, schedule=schedule(name))
        )
        nats, tokens = np.zeros((repeats, len(windows))), np.zeros(len(windows))
        for batch in EvalBatches(windows, 32, 1, repeats):
            repeat, window = np.divmod(batch.index.numpy(), len(windows))
            denoiser, clean, draws = make_inputs(batch, model.backbone, device)
            t, u = 1 - draws.u_time, draws.u_mask
            if name == EXACT_COUNT:
                part = exact_count_bound(diffusion, denoiser, clean, counts(t, clean.n), u)
                estimate = part.scale * part.ce.sum(-1)
            else:
                terms = decompose(diffusion, denoiser, clean, t, u)
                estimate = terms.reconstruction + terms.diffusion
            nats[repeat, window] = estimate.double().cpu().numpy()
            tokens[window] = clean.n.cpu().numpy()
        some = tokens > 0
        each = nats[:, some] / tokens[some] * BITS
        found.append(
            ScheduleFigure(
                name, ratio(nats.mean(0), tokens).scaled(BITS), float(each.var(0, ddof=1).mean())
            )
        )
    return found
