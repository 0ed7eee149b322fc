"""Golden training runs: some AdamW steps on given batches, times and masks; losses, gradient norms,
final weights and averages.

The optimiser, its clipping and the average of the weights are the product's, and so are the
networks and the losses; what the reference does differently at the edges (times cut off at 1e-3, T
steps with alpha = 1 - t) comes from `adapter_diffusion`.
"""

import re
from collections.abc import Callable
from types import SimpleNamespace

import torch
from adapter_diffusion import charge, draw_times, make_process, round_up
from adapter_networks import build, precisions
from torch import Tensor, nn

from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.schedule import LogLinear
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
    for dtype, suffix in precisions(case):
        out |= _train(case, dtype, suffix)
    return out


def _train(case: Case, dtype: torch.dtype, suffix: str) -> Tensors:
    model, names = build(case, dtype)
    settings = _optimizer(case)
    decay = _number(str(case.meta.get("ema", "")), "decay", 0.9999)
    optimizer, average = adamw(model, settings), WeightAverage(model, decay)
    rows = len(dict(model.named_parameters())["embedding"])
    is_timed = bool(case.meta.get("time_conditioning", True))
    process = make_process(case, LogLinear(eps=_EPS), is_timed, rows)
    losses, norms, out = [], [], {}

    def take(kind: str, network: nn.Module, read: Callable[[Tensor], Tensor]) -> None:
        for here, p in network.named_parameters():
            out[f"{kind}{suffix}/{names[here]}"] = reshape_as_published(names[here], read(p))

    for step in range(case.meta["steps"]):
        given = {name: x[step] for name, x in case.inputs.items() if name != "complement_map"}
        nats, weight = _nats(case, model, process, given, dtype)
        loss = (nats * weight).sum() / weight.sum()
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            take("grad0", model, lambda p: p.grad.clone())
            out[f"out/loss_per_token_step0{suffix}"] = (nats * weight).detach()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip))
        optimizer.step()
        average.update(model)
        losses.append(loss.detach())
    out[f"out/losses{suffix}"] = torch.stack(losses)
    out[f"out/grad_norm_before_clip{suffix}"] = torch.stack(norms)
    take("out/final", model, torch.detach)
    take("out/ema", average.module, torch.detach)
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


def _nats(
    case: Case, model: nn.Module, process: MaskedDiffusion, given: Tensors, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """What each token costs in a step, and what it weighs in the mean."""
    x0, u_move = given["x0"], given["u_move"].to(dtype)
    weight = given.get("attention_mask", torch.ones_like(u_move)).to(dtype)
    n_steps, kind = int(case.meta.get("T", 0)), case.meta.get("parameterization", "subs")
    t = round_up(draw_times(given["u_t"].to(dtype), _EPS), n_steps)
    masked = process.draw_mask(t, u_move, torch.ones_like(x0, dtype=torch.bool))

    def see(x: Tensor, t: Tensor) -> Tensor:
        return model(x, process.sigma(t).to(dtype))

    logits = see(process.mask(x0, masked), t)
    clean = see(x0, torch.zeros_like(t)) if kind == "d3pm" else logits
    return charge(kind, process, logits, clean, x0, masked, t, n_steps), weight
