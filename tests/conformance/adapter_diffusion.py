"""Golden cases of the diffusion itself: noise schedules, masking, SUBS, losses, reverse steps,
whole sampling runs.

All maths is the product's; what stands here is only what the reference does differently (numbers of
the conformance README in brackets): times cut off at 1e-3 (20), a loss of finite T that uses alpha
= 1 - t and stays below t = 1 (18), reverse probabilities left unnormalised and the cached sampler's
own move chances (19), Gumbel draws from given uniforms (20), a last step by argmax (19), and score
entropy with a column for the mask and one for what is visible (`adapter_score`).
"""

import re
from collections.abc import Callable
from types import SimpleNamespace

import adapter_score
import torch
from torch import Tensor

from genodiff.alphabet import DNA
from genodiff.diffusion.loss import continuous_time_loss, decompose
from genodiff.diffusion.masked import Clean, MaskedDiffusion, times
from genodiff.diffusion.objectives.mdlm import log1mexp, log_mask_chance, step_cost
from genodiff.diffusion.objectives.mlm import show
from genodiff.diffusion.objectives.sedd import score_entropy
from genodiff.diffusion.schedule import (
    Cosine,
    CosineSquared,
    Geometric,
    Linear,
    LogLinear,
    Schedule,
    SigmaLinear,
)

Case = SimpleNamespace
Tensors = dict[str, Tensor]


def handles(case: Case) -> bool:
    return _kind(case) is not None


def run(case: Case) -> Tensors:
    kind = _kind(case)
    if kind is None:
        return {}
    found = {"noise": _noise_schedules, "process": _process, "sampling": _sampling, "bert": _bert}[
        kind
    ](case)
    return {name: value for name, value in found.items() if name in case.wanted}


def _kind(case: Case) -> str | None:
    meta = case.meta
    if any(key.endswith("/move_chance") for key in case.wanted) and set(case.inputs) == {"t"}:
        return "noise"
    if "sample_categorical" in meta and {"noise", "mask_index", "vocab_size"} <= set(meta):
        return "process"
    if meta.get("parameterization") in ("subs", "sedd") and str(meta.get("sampler", "")).startswith(
        ("ddpm", "analytic")
    ):
        return "sampling"
    if {"bern_select", "rand_choice", "eligible"} <= set(case.inputs):
        return "bert"
    return None


def _schedule(name: str, eps: float) -> Schedule:
    """The reference's schedule from its name, numbers included: loglinear, cosine, linear_1e-3_7,
    geometric_1e-4_20.
    """
    low, high = ([float(x) for x in re.findall(r"[0-9.]+(?:e[+-]?\d+)?", name)] + [1e-3, 1.0])[:2]
    if name.startswith("geometric"):
        return Geometric(low, high)
    if name.startswith("linear"):
        return SigmaLinear(low, high)
    return {"loglinear": LogLinear, "cosinesqr": CosineSquared, "cosine": Cosine}[name](eps=eps)


def _eps(text: object) -> float:
    found = re.search(r"\d[0-9.]*(?:e[+-]?\d+)?", str(text))
    return float(found.group()) if found else 1e-3


def _noise_schedules(case: Case) -> Tensors:
    t, out = case.inputs["t"], {}
    for name in {key.split("/")[1] for key in case.wanted}:
        noise = _schedule(name, _eps(case.meta.get("eps")))
        end = torch.ones_like(t[:1])
        sigma_max = noise.sigma(end)
        sigma_min = (
            end * noise.eps if isinstance(noise, LogLinear) else noise.sigma(0 * end)
        )  # the reference's own (21)
        out |= {
            f"out/{name}/total": noise.sigma(t),
            f"out/{name}/rate": noise.rate(t),
            f"out/{name}/move_chance": noise.masked(t),
            f"out/{name}/loss_weight_dsigma_over_expm1sigma": _weight(noise, t),
            f"out/{name}/sigma_min": sigma_min,
            f"out/{name}/sigma_max": sigma_max,
            f"out/{name}/importance_sampling_transformation": _importance_time(
                noise, t, sigma_min, sigma_max
            ),
        }
    return out


def _weight(noise: Schedule, t: Tensor) -> Tensor:
    """In single precision the reference's cosines go through a rounded alpha (1.5 % off at t =
    1e-3); ours do not.
    """
    if t.dtype == torch.float64 or not isinstance(noise, Cosine | CosineSquared):
        return noise.weight(t)
    return noise.rate(t) / torch.expm1(-torch.log(noise.alpha(t)))


def _importance_time(noise: Schedule, t: Tensor, sigma_min: Tensor, sigma_max: Tensor) -> Tensor:
    """The time at which ln(1 - alpha) has gone the share 1 - t of its way from the start to the
    end.
    """
    return noise.inverse(-torch.expm1(_log_masked(t, sigma_min, sigma_max)))


def _log_masked(t: Tensor, sigma_min: Tensor, sigma_max: Tensor) -> Tensor:
    first, last = torch.log1p(-torch.exp(-sigma_min)), torch.log1p(-torch.exp(-sigma_max))
    return t * last + (1 - t) * first


def _diffusion(case: Case, noise: Schedule, time_conditioning: bool = True) -> MaskedDiffusion:
    mask_id = case.meta["mask_index"]
    targets = tuple(
        i for i in range(case.meta["vocab_size"]) if i != mask_id
    )  # SUBS there forbids the mask only (17)
    return MaskedDiffusion(noise, mask_id, targets, time_conditioning)


def _discrete_loss(t: Tensor, n_steps: int, nll: Tensor, x_mask: Tensor | float = 0.0) -> Tensor:
    """The reference's loss of T steps at given times: alpha = 1 - t, t held below 1, 0/0 at i = 1
    (18).
    """
    below = t.clamp(max=1 - 1e-4)[:, None]
    x_mask = torch.as_tensor(x_mask, dtype=nll.dtype).expand(nll.shape)
    cost = step_cost(nll, x_mask, below, (below - 1 / n_steps).clamp(min=0))
    return n_steps * torch.where(nll == 0, 0.0, cost)  # nothing is paid where nothing is masked


def _with_mask(diffusion: MaskedDiffusion, logits: Tensor) -> Tensor:
    """D3PM's log x_theta: the targets share what the mask leaves."""
    log_mask = log_mask_chance(diffusion, logits)
    log_target = diffusion.target_logits(logits).log_softmax(-1) + log1mexp(log_mask)[..., None]
    whole = logits.new_zeros(logits.shape, dtype=log_target.dtype)
    return whole.index_copy(-1, torch.tensor(diffusion.targets), log_target).index_fill(
        -1, torch.tensor([diffusion.mask_id]), 0.0
    ) + log_mask[..., None] * torch.nn.functional.one_hot(
        torch.tensor(diffusion.mask_id), logits.shape[-1]
    )


def _process(case: Case) -> Tensors:
    given, meta = case.inputs, case.meta
    name, _, rest = meta["noise"].partition(" ")
    noise = _schedule(name, _eps(rest))
    diffusion = _diffusion(case, noise)
    x0, t, logits = given["x0"], given["t"], given["logits"]
    everywhere = torch.ones_like(x0, dtype=torch.bool)
    xt = diffusion.corrupt(x0, t, given["u_move"], everywhere)
    masked = xt == diffusion.mask_id
    logp, nll = diffusion.log_x0(logits, xt), diffusion.nll(logits, x0, masked)
    out = {
        "out/sigma": diffusion.sigma(t),
        "out/dsigma": noise.rate(t),
        "out/move_chance": noise.masked(t)[:, None],
        "out/xt": xt,
        "out/subs_log_p": logp,
        "out/subs_nelbo_per_token": noise.weight(t)[:, None] * nll,
        "out/subs_reconstruction_loss": torch.zeros_like(nll)
        + decompose(
            diffusion, lambda x, s: logits, Clean(x0, everywhere), t, given["u_move"]
        ).reconstruction[:, None],
        "out/rev/subs/denoiser/probs": logp.exp(),
        "out/rev/subs/denoiser/x_next": _gumbel(
            logp.exp(), given["u_categorical"], xt, diffusion.mask_id
        ),
    }
    for key in given:
        if found := re.fullmatch(r"t_T(\d+)", key):
            out[f"out/subs_loss_T{found.group(1)}"] = _discrete_loss(
                given[key], int(found.group(1)), nll
            )
    s = t - given["dt"]
    for sampler, chain in (("ddpm", noise), ("ddpm_cache", Linear())):
        p = _reverse(_diffusion(case, chain), logp, xt, t, s)
        out[f"out/rev/subs/{sampler}/probs"] = p
        out[f"out/rev/subs/{sampler}/x_next"] = _gumbel(
            p, given["u_categorical"], xt, diffusion.mask_id
        )
    d3pm_logp, d3pm_nll = _d3pm(diffusion, logits, x0, masked)
    x_mask = log_mask_chance(diffusion, logits).exp()
    out |= {
        "out/d3pm_log_p": d3pm_logp,
        "out/d3pm_subsmask_log_p": diffusion.log_x0(
            logits, torch.full_like(xt, diffusion.mask_id)
        ).clamp(min=-1e6),
        "out/d3pm_reconstruction_loss": -d3pm_logp.gather(-1, x0[..., None])[..., 0],
    }
    for key in given:
        if found := re.fullmatch(r"t_T(\d+)", key):
            n_steps = int(found.group(1))
            out[f"out/d3pm_loss_T{n_steps}"] = _discrete_loss(given[key], n_steps, d3pm_nll, x_mask)
            out[f"out/d3pm_subsmask_loss_T{n_steps}"] = _discrete_loss(given[key], n_steps, nll)
    p = _reverse(diffusion, d3pm_logp, xt, t, s, keep_mask=False)
    out |= {
        "out/rev/d3pm/ddpm/probs": p,
        "out/rev/d3pm/ddpm/x_next": _gumbel(p, given["u_categorical"], xt, diffusion.mask_id),
    }
    out |= adapter_score.process(diffusion, logits, x0, xt, t, s, given["u_categorical"])
    cached = _diffusion(case, Linear())
    score = adapter_score.log_score(diffusion, logits, xt, t)
    for sampler, chain in (("ddpm", diffusion), ("ddpm_cache", cached)):
        p = _reverse(chain, score, xt, t, s, keep_mask=False)
        drawn = _gumbel(p, given["u_categorical"], xt, diffusion.mask_id)
        out |= {f"out/rev/sedd/{sampler}/probs": p, f"out/rev/sedd/{sampler}/x_next": drawn}
    for variant, description in meta.get("variants", {}).items():
        kw = description["kw"]
        found = _forward_pass(case, noise, kw)
        if (
            "T" in kw and logits.dtype == torch.float64
        ):  # the reference leaves double precision there
            found = {"t_sampled": found["t_sampled"]}
        out |= {f"out/fwd/{variant}/{name}": value for name, value in found.items()}
    return out


def _forward_pass(case: Case, noise: Schedule, kw: dict[str, object]) -> Tensors:
    """A training step from uniforms: times, what the backbone is told, the loss of each token, and
    their mean.
    """
    given, eps = case.inputs, case.meta["sampling_eps"]
    x0, u, logits, attended = given["x0"], given["u_t"], given["logits"], given["attention_mask"]
    n = len(u)
    method = "stratified" if kw.get("antithetic", True) else "iid"
    t = (1 - eps) * times(method, u, 0.0, torch.arange(n), n) + eps
    end = torch.ones_like(t[:1])
    sigma_min, sigma_max = (
        end * noise.eps if isinstance(noise, LogLinear) else noise.sigma(0 * end),
        noise.sigma(end),
    )
    if kw.get("importance"):
        t = _importance_time(noise, t, sigma_min, sigma_max)
    sampled, n_steps = t, int(kw.get("T", 0))
    if n_steps:
        t = (t * n_steps).long() / n_steps + 1 / n_steps
    diffusion = _diffusion(case, noise, bool(kw.get("time_conditioning", True)))
    everywhere = torch.ones_like(x0, dtype=torch.bool)
    masked, told = diffusion.draw_mask(t, given["u_move"], everywhere), diffusion.sigma(t)
    if kw.get("cov"):
        masked, told = given["u_move"] < torch.exp(_log_masked(t, sigma_min, sigma_max))[:, None], t
    nll, kind = diffusion.nll(logits, x0, masked), kw.get("parameterization", "subs")
    if kind == "sedd":  # without time conditioning the reference divides by expm1(0) (16)
        blind = not kw.get("time_conditioning", True)
        loss = torch.where(
            masked & torch.tensor(blind),
            torch.nan,
            noise.weight(t)[:, None] * score_entropy(diffusion, logits, x0, masked),
        )
    elif kind == "d3pm":
        logp, nll_all = _d3pm(diffusion, logits, x0, masked)
        x_mask = log_mask_chance(diffusion, logits).exp()
        if kw.get("subs_masking"):
            logp, nll_all, x_mask = (
                diffusion.log_x0(logits, torch.full_like(x0, diffusion.mask_id)),
                nll,
                torch.zeros_like(nll),
            )
        loss = _discrete_loss(t, n_steps, nll_all, x_mask) - logp.gather(-1, x0[..., None])[..., 0]
    elif n_steps:
        loss = _discrete_loss(t, n_steps, nll)
    elif kw.get("importance") or kw.get("cov"):
        loss = (
            -torch.log1p(-torch.exp(-sigma_min)) * nll
        )  # the weight is the whole range of ln(1 - alpha), one end of it
    else:
        loss = noise.weight(t)[:, None] * nll
    mean = (loss * attended).sum() / attended.sum()
    if kind == "subs" and not (n_steps or kw.get("importance") or kw.get("cov")):
        weight = attended.to(loss.dtype)
        terms = continuous_time_loss(
            diffusion, lambda x, s: logits, Clean(x0, everywhere, weight), t, given["u_move"]
        )
        mean = terms.nats / attended.sum()
    return {
        "t_sampled": sampled,
        "sigma_to_backbone": told,
        "loss_per_token": loss,
        "loss_masked_mean": mean.reshape(1),
    }


def _d3pm(
    diffusion: MaskedDiffusion, logits: Tensor, x0: Tensor, masked: Tensor
) -> tuple[Tensor, Tensor]:
    """D3PM's log x_theta, and -log of it at the clean token where `masked`; a clean token that is a
    mask counts there too.
    """
    logp = _with_mask(diffusion, logits)
    return logp, torch.where(masked, -logp.gather(-1, x0[..., None])[..., 0], 0.0)


def _reverse(
    diffusion: MaskedDiffusion,
    logp: Tensor,
    xt: Tensor,
    t: Tensor,
    s: Tensor,
    keep_mask: bool = True,
) -> Tensor:
    """The reverse kernel as the reference leaves it: times 1 - alpha(t), and visible rows treated
    like masked ones.

    Without `keep_mask` logp is no SUBS: its chance of the mask is overwritten.
    """
    masked_t, masked_s = (diffusion.schedule.masked(time)[:, None] for time in (t, s))
    if not keep_mask:
        p = logp.exp() * (masked_t - masked_s)[..., None]
        p[..., diffusion.mask_id] = masked_s
        return p
    p = diffusion.reverse(logp, xt, t, s) * masked_t[..., None]
    visible = logp.exp() * (masked_t - masked_s)[..., None]
    visible[..., diffusion.mask_id] = masked_s
    return torch.where((xt == diffusion.mask_id)[..., None], p, visible)


def _gumbel(p: Tensor, u: Tensor, xt: Tensor, mask_id: int) -> Tensor:
    """The reference's categorical draw from given uniforms, at masked positions."""
    drawn = (p / (1e-10 - torch.log(u + 1e-10))).argmax(-1)
    return torch.where(xt == mask_id, drawn, xt)


def _toy_backbone(case: Case) -> Callable[[Tensor, Tensor], Tensor]:
    """logits[b, l] = W[x[b, l]] + Pos[l] + mean over l' of E[x[b, l']] + sigma[b] S, as the cases
    describe it.
    """
    w, place, e, s = (case.inputs[name] for name in ("W", "Pos", "E", "S"))
    return lambda xt, sigma: w[xt] + place + e[xt].mean(1, keepdim=True) + sigma[:, None, None] * s


def _bert(case: Case) -> Tensors:
    """Draws of three coins, given; what is not selected has the padding's id as its target (14)."""
    given = case.inputs
    selected = given["bern_select"].bool()
    masked = selected & given["bern_replace"].bool()
    randomised = selected & ~masked & given["bern_random"].bool()
    mask_id, pad_id = DNA.mask_id, DNA.pad_id
    return {
        "out/data": show(
            given["ids"], masked, randomised, given["eligible"][given["rand_choice"]], mask_id
        ),
        "out/target": torch.where(selected, given["ids"], pad_id),
    }


def _sampling(case: Case) -> Tensors:
    meta, u = case.meta, case.inputs["u_categorical"]
    _, batch, length, _ = u.shape
    eps, steps = meta["eps"], meta["steps"]
    process = _diffusion(case, LogLinear(), meta["time_conditioning"])
    chain = _diffusion(case, Linear()) if meta["sampler"] == "ddpm_cache" else process
    denoiser, x = _toy_backbone(case), torch.full((batch, length), process.mask_id)
    if meta["sampler"] == "analytic":
        return adapter_score.sampling(
            process, denoiser, x, u, steps, eps, meta["parameterization"] == "sedd"
        )
    grid = torch.linspace(1, eps, steps + 1, dtype=u.dtype)
    dt, path = (1 - eps) / steps, []
    for i in range(steps):
        t = grid[i].expand(batch)
        logp = process.log_x0(denoiser(x, process.sigma(t)), x)
        x = _gumbel(_reverse(chain, logp, x, t, t - dt), u[i], x, process.mask_id)
        path.append(x)
    if meta.get("noise_removal", True):
        x = process.log_x0(denoiser(x, process.sigma(grid[-1].expand(batch))), x).argmax(-1)
    return {"out/x_steps": torch.stack(path), "out/samples": x}
