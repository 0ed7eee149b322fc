"""What a network says at the masks of windows (`masked_reader.py`); torch is imported here."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.memory.memory import Memory
from genodiff.memory.remembering import remembering
from genodiff.scoring.spelling_pair import Ids, Logs


@torch.inference_mode()
def read_network(
    denoiser: Denoiser,
    diffusion: MaskedDiffusion,
    group: Ids,
    masked: NDArray[np.bool_],
    device: torch.device | str,
    memory: tuple[Memory, list[tuple[int, int]]] | None,
) -> Logs:
    """(M, K): the logarithms at the M `masked` places of windows (B, L) of ids, in float64.

    `memory` is one, and what each window leaves out of it.
    """
    xt = torch.from_numpy(np.ascontiguousarray(group).astype(np.int64)).to(device)
    if memory is not None:
        denoiser = remembering(denoiser, memory[0], without=memory[1])
    chosen = _ask(denoiser, diffusion, xt, masked)
    logs: Logs = diffusion.target_logits(chosen).double().log_softmax(-1).cpu().numpy()
    return logs


def _ask(
    denoiser: Denoiser, diffusion: MaskedDiffusion, xt: Tensor, masked: NDArray[np.bool_]
) -> Tensor:
    """The logits (M, V) of all masks, row after row; no more is computed than they need."""
    at = int(masked[0].argmax())
    logits_at = getattr(denoiser, "logits_at", None)
    if logits_at is not None and masked[:, at].all() and masked.sum() == len(masked):
        found: Tensor = logits_at(xt, at)
        return found
    # What the network is told of the noise: that of the time with this share of masks.
    visible = 1 - torch.from_numpy(masked.mean(1))
    sigma = diffusion.sigma(diffusion.schedule.inverse(visible)).to(xt.device)
    rows = torch.from_numpy(masked).to(xt.device)
    if getattr(denoiser, "selects_rows", False):
        found = denoiser(xt, sigma, rows=rows)
        return found
    return denoiser(xt, sigma)[rows]
