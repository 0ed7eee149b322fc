"""Golden training runs: some AdamW steps on given batches, times and masks; losses, gradient norms,
final weights and averages.

The optimiser, its clipping and the average of the weights are the product's, and so are the
networks and the losses; what the reference does differently at the edges (times cut off at 1e-3, T
steps with alpha = 1 - t) comes from `adapter_diffusion`.
"""

import re
from types import SimpleNamespace

import adapter_diffusion
import adapter_mdlm
import adapter_networks
import torch
from torch import Tensor, nn

from genodiff.diffusion.masked import MaskedDiffusion, times
from genodiff.diffusion.objectives.mdlm import log_mask_chance
from genodiff.diffusion.objectives.sedd import score_entropy
from genodiff.diffusion.schedule import LogLinear
from genodiff.hub.mdlm_layout import find_prefix
from genodiff.hub.tensor_names import reshape_as_published
from genodiff.runs.sections import OptimSettings
from genodiff.training.optimizer import WeightAverage, adamw

Case = SimpleNamespace
Tensors = dict[str, Tensor]

_EPS = 1e-3  # of the schedule, and of the earliest time (20)


def handles(case: Case) -> bool:
    return (
        "optimizer" in case.meta
        and "steps" in case.meta
        and {"x0", "u_t", "u_move"} <= set(case.inputs)
    )


def run(case: Case) -> Tensors:
    out: Tensors = {}
    for dtype, suffix in ((torch.float64, "_f64"), (torch.float32, "")):
        if any(("_f64" in name) == bool(suffix) for name in case.wanted):
            out |= _train(case, dtype, suffix)
    return {name: value for name, value in out.items() if name in case.wanted}


def _train(case: Case, dtype: torch.dtype, suffix: str) -> Tensors:
    model, names = (
        adapter_mdlm.build(case, dtype)
        if find_prefix(case.params) is not None
        else adapter_networks._model(case, dtype)
    )
    settings = _optimizer(case)
    optimizer, average = adamw(model, settings), WeightAverage(model, _ema_decay(case))
    diffusion = _diffusion(
        case, int(next(p for n, p in model.named_parameters() if n == "embedding").shape[0])
    )
    losses, norms, out = [], [], {}
    for step in range(case.meta["steps"]):
        nats, weight = _nats(case, model, diffusion, step, dtype)
        loss = (nats * weight).sum() / weight.sum()
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            out |= {
                f"grad0{suffix}/{names[n]}": reshape_as_published(names[n], p.grad.clone())
                for n, p in model.named_parameters()
            }
            out[f"out/loss_per_token_step0{suffix}"] = (nats * weight).detach()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip))
        optimizer.step()
        average.update(model)
        losses.append(loss.detach())
    out |= {
        f"out/losses{suffix}": torch.stack(losses),
        f"out/grad_norm_before_clip{suffix}": torch.stack(norms),
    }
    for kind, found in (("final", model), ("ema", average.module)):
        parameters = dict(found.named_parameters())
        out |= {
            f"out/{kind}{suffix}/{names[n]}": reshape_as_published(names[n], p.detach())
            for n, p in parameters.items()
        }
    return out


def _number(text: str, after: str, default: float) -> float:
    found = re.search(rf"{after} (\d*\.?\d+(?:e[+-]?\d+)?)", text)
    return float(found[1]) if found else default


def _optimizer(case: Case) -> OptimSettings:
    said = case.meta["optimizer"]
    betas = re.search(r"betas (\d*\.\d+) (\d*\.\d+)", said)
    return OptimSettings(
        lr=_number(said, "lr", 1e-3),
        weight_decay=_number(said, "wd", 0.0),
        eps=_number(said, "eps", 1e-8),
        betas=(float(betas[1]), float(betas[2])) if betas else (0.9, 0.999),
        clip=_number(said, "clip_grad_norm", 1.0),
    )


def _ema_decay(case: Case) -> float:
    return _number(str(case.meta.get("ema", "")), "decay", 0.9999)


def _diffusion(case: Case, rows: int) -> MaskedDiffusion:
    """SUBS there forbids the mask only, so that ids of the padding keep a chance."""
    mask_id = case.meta["mask_index"]
    targets = tuple(i for i in range(rows) if i != mask_id)
    return MaskedDiffusion(
        LogLinear(eps=_EPS), mask_id, targets, bool(case.meta.get("time_conditioning", True))
    )


def _nats(
    case: Case, model: nn.Module, diffusion: MaskedDiffusion, step: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """What each token costs in a step, and what it weighs in the mean."""
    given = {name: case.inputs[name][step] for name in ("x0", "u_t", "u_move")}
    x0, u_move = given["x0"], given["u_move"].to(dtype)
    weight = (
        case.inputs["attention_mask"][step].to(dtype)
        if "attention_mask" in case.inputs
        else torch.ones_like(u_move)
    )
    n, n_steps, kind = (
        len(x0),
        int(case.meta.get("T", 0)),
        case.meta.get("parameterization", "subs"),
    )
    t = (1 - _EPS) * times("stratified", given["u_t"].to(dtype), 0.0, torch.arange(n), n) + _EPS
    if n_steps:
        t = (t * n_steps).long().to(dtype) / n_steps + 1 / n_steps
    everywhere = torch.ones_like(x0, dtype=torch.bool)

    def denoiser(xt: Tensor, sigma: Tensor) -> Tensor:
        logits: Tensor = model(xt, sigma.to(dtype))
        return logits

    masked = diffusion.draw_mask(t, u_move, everywhere)
    xt, told = diffusion.mask(x0, masked), diffusion.sigma(t)
    logits = denoiser(xt, told)
    if kind == "subs" and not n_steps:
        return diffusion.schedule.weight(t)[:, None].to(dtype) * diffusion.nll(
            logits, x0, masked
        ), weight
    if kind == "sedd":
        return diffusion.schedule.weight(t)[:, None] * score_entropy(
            diffusion, logits, x0, masked
        ), weight
    if kind == "subs":
        return adapter_diffusion._discrete_loss(
            t, n_steps, diffusion.nll(logits, x0, masked)
        ), weight
    nll = adapter_diffusion._d3pm(diffusion, logits, x0, masked)[1]
    clean = denoiser(x0, diffusion.sigma(torch.zeros_like(t)))
    reconstruction = -adapter_diffusion._d3pm(diffusion, clean, x0, masked)[0].gather(
        -1, x0[..., None]
    )[..., 0]
    return adapter_diffusion._discrete_loss(
        t, n_steps, nll, log_mask_chance(diffusion, logits).exp()
    ) + reconstruction, weight
