"""Tracks in their plainest form: one base, one window, one evaluation. The truth for the fast form.

It shares with it what a tile is, and no more.
"""

import numpy as np
import torch

from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.scoring.masked_reader import Logs
from genodiff.scoring.spelling_pair import Ids
from genodiff.scoring.variant_windows import find_tile, place_window


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
        logs = _read_base(denoiser, diffusion, window, base - start)
        if complement is not None:
            turned = complement[window][::-1].copy()
            other_logs = _read_base(denoiser, diffusion, turned, end - 1 - base)
            for column, target in enumerate(targets):
                logs[column] += other_logs[targets.index(int(complement[target]))]
            logs /= 2
        found[base] = np.exp(logs) / np.exp(logs).sum()
    return found


def _read_base(denoiser: Denoiser, diffusion: MaskedDiffusion, window: Ids, place: int) -> Logs:
    xt = torch.from_numpy(window.astype(np.int64))[None]
    share = torch.tensor([1 - float((window == diffusion.mask_id).mean())], dtype=torch.float64)
    sigma = diffusion.sigma(diffusion.schedule.inverse(share))
    with torch.inference_mode():
        logits = denoiser(xt, sigma)[0, place]
    logs: Logs = diffusion.target_logits(logits).double().log_softmax(-1).numpy()
    return logs
