"""The scores of a variant as they are defined, one window at a time: the truth of the fast ones.

Each takes a denoiser `(xt, sigma) -> logits`, the process, and the two spellings of a window with
their spans marked. Nothing is shared, kept or drawn; `naive_chain` goes through all orders, and
`naive_nelbo` through all masks, so both are for small spans and small windows.
"""

from itertools import permutations

import numpy as np
import torch

from genodiff.diffusion.likelihood import count_terms, nelbo_exact
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.scoring.spelling_pair import Flags, Ids, SpellingPair


def naive_llr(denoiser: Denoiser, diffusion: MaskedDiffusion, pair: SpellingPair) -> float:
    """Each base of a span given the flanks, the whole span masked."""

    def log_p(ids: Ids, span: Flags) -> float:
        return sum(
            _log_base(denoiser, diffusion, ids, span, i) for i in np.flatnonzero(span).tolist()
        )

    return log_p(pair.alt, pair.alt_span) - log_p(pair.ref, pair.ref_span)


def naive_chain(denoiser: Denoiser, diffusion: MaskedDiffusion, pair: SpellingPair) -> float:
    """The bases of a span one after the other, averaged over all orders."""

    def log_p(ids: Ids, span: Flags) -> float:
        orders = list(permutations(np.flatnonzero(span).tolist()))
        return sum(one_order(ids, span, order) for order in orders) / len(orders)

    def one_order(ids: Ids, span: Flags, order: tuple[int, ...]) -> float:
        masked, total = span.copy(), 0.0
        for base in order:
            total += _log_base(denoiser, diffusion, ids, masked, base)
            masked[base] = False
        return total

    return log_p(pair.alt, pair.alt_span) - log_p(pair.ref, pair.ref_span)


def naive_nelbo(denoiser: Denoiser, diffusion: MaskedDiffusion, pair: SpellingPair) -> float:
    """The difference of the windows' exact bounds, from all masks of at most 16 bases."""

    def bound(ids: Ids) -> float:
        x0 = torch.from_numpy(ids.astype(np.int64))
        maskable = torch.isin(x0, torch.tensor(diffusion.targets))
        return float(nelbo_exact(count_terms(diffusion, denoiser, x0, maskable)))

    return bound(pair.ref) - bound(pair.alt)


@torch.inference_mode()
def _log_base(
    denoiser: Denoiser, diffusion: MaskedDiffusion, ids: Ids, masked: Flags, base: int
) -> float:
    """log p of one masked base of `ids`."""
    x0 = torch.from_numpy(ids.astype(np.int64))[None]
    hidden = torch.from_numpy(masked)[None]
    share = hidden.double().mean(1)
    sigma = diffusion.sigma(diffusion.schedule.inverse(1 - share))
    logits = denoiser(diffusion.mask(x0, hidden), sigma)
    return -float(diffusion.nll(logits.double(), x0, hidden)[0, base])
