"""The scores of a variant as they are defined, one window at a time: the truth of the fast ones.

Each takes a denoiser `(xt, sigma) -> logits`, the process, and the two spellings of a window with
their spans marked. Nothing is shared, kept or drawn; `naive_chain` goes through all orders, and
`naive_nelbo` through all masks, so both are for small spans and small windows.
"""

from collections.abc import Sequence
from itertools import permutations
from math import log

import numpy as np
import torch

from genodiff.diffusion.loss import count_terms, nelbo_exact
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.memory.relatives import Relatives
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


def naive_headcount(relatives: Relatives, codes: Sequence[int], site: int, alt: int) -> float:
    """Relatives one by one at `site` of a window of codes (4: unknown), which is hidden, and at the
    32 places on either side.
    """
    hidden = np.array([[4 if i == site else code for i, code in enumerate(codes)]], np.uint8)
    has, differ, total = [0.5] * 4, 0.5, 5.0
    for genome in relatives.genomes:
        over = Relatives((genome,), None).align(hidden)[0, 0].tolist()
        for base in range(4):
            has[base] += over[site][base]
        for i in range(max(0, site - 32), min(len(codes), site + 33)):
            if hidden[0, i] < 4:
                total += sum(over[i])
                differ += sum(over[i]) - over[i][codes[i]]
    return log(has[alt]) - log(has[codes[site]]) + 0.6 * log(differ / total)


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
