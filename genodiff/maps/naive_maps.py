"""Maps as they are defined, one window at a time: the truth of the fast ones.

Nothing is shared, batched or kept. `denoiser` is `(xt, sigma) -> logits`.

Tracks in their plainest form: one base, one window, one evaluation. The truth for the fast form.

It shares with it what a tile is, and no more.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.scoring.masked_reader import Logs
from genodiff.scoring.spelling_pair import Ids
from genodiff.scoring.variant_windows import find_tile, place_window

Floats = NDArray[np.float64]


def naive_saturation(
    denoiser: Denoiser, diffusion: MaskedDiffusion, ids: Ids, complement: Ids | None = None
) -> Floats:
    """(L, K): log p(b | all but i) − log p(x_i | all but i) at each base of one window.

    `complement` (ids by id) asks for both strands, whose logarithms are averaged.
    """
    found = np.full((len(ids), len(diffusion.targets)), np.nan)
    for i, own in enumerate(ids.tolist()):
        if own in diffusion.targets:
            logs = _log_p(denoiser, diffusion, _mask(diffusion, ids, i), i, complement)
            found[i] = logs - logs[diffusion.targets.index(own)]
    return found


def naive_dependencies(
    denoiser: Denoiser, diffusion: MaskedDiffusion, ids: Ids, complement: Ids | None = None
) -> Floats:
    """(L, L): the dependency of each target on each source, by a double loop over one window."""
    length, targets = len(ids), diffusion.targets
    found = np.full((length, length), np.nan)
    for i in range(length):
        for j in range(length):
            if ids[i] not in targets or ids[j] not in targets:
                continue
            masked = _mask(diffusion, ids, j)
            before = _log_odds(_log_p(denoiser, diffusion, masked, j, complement))
            found[i, j] = 0.0
            for letter in targets:
                changed = ids.copy()
                changed[i] = letter
                masked = _mask(diffusion, changed, j)
                after = _log_odds(_log_p(denoiser, diffusion, masked, j, complement))
                found[i, j] = max(found[i, j], np.abs(after - before).max())
    return found


def _log_odds(logs: Floats) -> Floats:
    """log p − log(1 − p) of one distribution, from logarithms that need not be normalised."""
    p = np.exp(logs - logs.max())
    p = p / p.sum()
    odds: Floats = np.log(p) - np.log([p.sum() - one for one in p])
    return odds


def _mask(diffusion: MaskedDiffusion, ids: Ids, at: int) -> Ids:
    window = ids.copy()
    window[at] = diffusion.mask_id
    return window


def _log_p(
    denoiser: Denoiser, diffusion: MaskedDiffusion, window: Ids, at: int, complement: Ids | None
) -> Floats:
    """log p of each target at a masked place of a window."""
    given = _read(denoiser, diffusion, window, at)
    if complement is None:
        return given
    other = _read(denoiser, diffusion, complement[window[::-1]], len(window) - 1 - at)
    turned = [diffusion.targets.index(int(complement[one])) for one in diffusion.targets]
    return (given + other[turned]) / 2


@torch.inference_mode()
def _read(denoiser: Denoiser, diffusion: MaskedDiffusion, window: Ids, at: int) -> Floats:
    xt = torch.from_numpy(window.astype(np.int64))[None]
    hidden = xt == diffusion.mask_id
    sigma = diffusion.sigma(diffusion.schedule.inverse(1 - hidden.double().mean(1)))
    logits = denoiser(xt, sigma)[0, at]
    logs: Floats = diffusion.target_logits(logits).double().log_softmax(-1).numpy()
    return logs


def naive_tracks(
    denoiser: Denoiser,
    diffusion: MaskedDiffusion,
    contig: Ids,
    context: int,
    *,
    every: int | None = None,
    complement: Ids | None = None,
) -> Logs:
    """(L, 4): the chances of each base of a contig, NaN at ids that are no base.

    With `complement`, the logarithms of both strands are averaged.
    """
    targets = list(diffusion.targets)
    found = np.full((len(contig), len(targets)), np.nan)
    for base in range(len(contig)):
        if contig[base] not in targets:
            continue
        first, last = find_tile(len(contig), context, base)
        start, end = place_window(first, last, last - first, context, len(contig))
        window = contig[start:end].copy()
        for other in range(first, last):
            together = every is not None and (other - base) % every == 0
            if contig[other] in targets and (other == base or together):
                window[other - start] = diffusion.mask_id
        logs = _log_p(denoiser, diffusion, window, base - start, complement)
        found[base] = np.exp(logs) / np.exp(logs).sum()
    return found
