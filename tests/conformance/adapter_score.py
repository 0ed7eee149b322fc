"""Golden cases of score entropy and of the analytic sampler: the reference's scores, which have a
column for every id.

In the reference the score of the mask is 1 at a masked position; at a visible one the scores are of
ratios to what is there (1 in its own column), and nothing is ever drawn from the others.
"""

from collections.abc import Callable
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import Tensor

from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.objectives.sedd import log_ratios, score_entropy

Tensors = dict[str, Tensor]


def columns(diffusion: MaskedDiffusion, of_targets: Tensor, of_mask: Tensor) -> Tensor:
    whole = of_targets.new_zeros(*of_targets.shape[:-1], len(diffusion.targets) + 1)
    whole[..., list(diffusion.targets)] = of_targets
    whole[..., diffusion.mask_id] = of_mask
    return whole


def log_score(diffusion: MaskedDiffusion, logits: Tensor, xt: Tensor, t: Tensor) -> Tensor:
    """log s, and 0 in the column of xt itself."""
    scale = torch.log(torch.expm1(diffusion.schedule.sigma(t)))[:, None]
    n = torch.tensor(len(diffusion.targets), dtype=logits.dtype)
    of_mask = logits[..., diffusion.mask_id] - torch.log(n) - scale
    score = columns(diffusion, log_ratios(diffusion, logits) - scale[..., None], of_mask)
    return score.scatter(-1, xt[..., None], 0.0)


def kernel(diffusion: MaskedDiffusion, log_h: Tensor, xt: Tensor, reveal: Tensor) -> Tensor:
    """p(xs | xt) of the analytic sampler: r h and 1 - r sum h where masked, certainty where
    visible.
    """
    revealed = reveal[:, None, None] * log_h.exp()
    p = columns(diffusion, revealed, 1 - revealed.sum(-1))
    there = F.one_hot(xt, p.shape[-1]).to(p.dtype)
    return torch.where((xt == diffusion.mask_id)[..., None], p, there)


def last(diffusion: MaskedDiffusion, log_h: Tensor, xt: Tensor) -> Tensor:
    """The denoising step at the end: h, which need not sum to one, and no mask."""
    p = kernel(diffusion, log_h, xt, torch.ones(len(xt), dtype=log_h.dtype))
    p[..., diffusion.mask_id] = 0
    return p


def gumbel(p: Tensor, u: Tensor, xt: Tensor) -> Tensor:
    """The reference's draw from given uniforms, at all positions."""
    return (p / (1e-10 - torch.log(u + 1e-10))).argmax(-1)


def process(diffusion: MaskedDiffusion, given: Tensors, xt: Tensor) -> Tensors:
    x0, t, logits, u = (given[name] for name in ("x0", "t", "logits", "u_categorical"))
    masked, excess = xt == diffusion.mask_id, torch.expm1(diffusion.schedule.sigma(t)[:, None])
    score = log_score(diffusion, logits, xt, t)
    entropy = score_entropy(diffusion, logits, x0, masked) / excess
    log_h = log_ratios(diffusion, logits)
    log_x = diffusion.target_logits(logits).log_softmax(-1)
    there = F.one_hot(xt, score.shape[-1]).to(score.dtype)[..., list(diffusion.targets)]
    visible = columns(diffusion, there, excess.expand(xt.shape))
    subs = columns(diffusion, log_x.exp() / excess[..., None], torch.ones_like(entropy))
    out = {
        "out/sedd_log_score": score,
        "out/sedd_score_entropy": entropy,
        "out/sedd_loss": diffusion.schedule.rate(t)[:, None] * entropy,
        "out/rev/sedd/score": score.exp(),
        "out/rev/subs/score": torch.where(masked[..., None], subs, visible),
    }
    reveal = diffusion.reveal(t, t - given["dt"])
    steps = {
        "sedd/analytic": kernel(diffusion, log_h, xt, reveal),
        "subs/analytic": kernel(diffusion, log_x, xt, reveal),
        "sedd/denoiser": last(diffusion, log_h, xt),
    }
    for name, p in steps.items():
        out |= {f"out/rev/{name}/probs": p, f"out/rev/{name}/x_next": gumbel(p, u, xt)}
    return out


def sampling(
    diffusion: MaskedDiffusion, denoiser: Callable[[Tensor, Tensor], Tensor], case: SimpleNamespace
) -> Tensors:
    """The reference's chain from t = 1 down to eps, and the denoising step."""

    u, steps, eps = case.inputs["u_categorical"], case.meta["steps"], case.meta["eps"]
    sedd = case.meta["parameterization"] == "sedd"

    def ratios(x: Tensor, t: Tensor) -> Tensor:
        logits = denoiser(x, diffusion.sigma(t))
        if sedd:
            return log_ratios(diffusion, logits)
        return diffusion.target_logits(logits).log_softmax(-1)

    grid, path = torch.linspace(1, eps, steps + 1, dtype=u.dtype), []
    x = torch.full(u.shape[1:3], diffusion.mask_id)
    for i in range(steps):
        t = grid[i].expand(len(x))
        p = kernel(diffusion, ratios(x, t), x, diffusion.reveal(t, t - (1 - eps) / steps))
        x = gumbel(p, u[i], x)
        path.append(x)
    x = gumbel(last(diffusion, ratios(x, grid[-1].expand(len(x))), x), u[steps], x)
    return {"out/x_steps": torch.stack([*path, x]), "out/samples": x}
