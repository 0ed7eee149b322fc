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
    kinds = {"noise": _noise_schedules, "process": _process, "sampling": _sampling, "bert": _bert}
    return kinds[str(_kind(case))](case)


def _kind(case: Case) -> str | None:
    meta = case.meta
    sampler, known = str(meta.get("sampler", "")), meta.get("parameterization") in ("subs", "sedd")
    if any(key.endswith("/move_chance") for key in case.wanted) and set(case.inputs) == {"t"}:
        return "noise"
    if {"sample_categorical", "noise", "mask_index", "vocab_size"} <= set(meta):
        return "process"
    if known and sampler.startswith(("ddpm", "analytic")):
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
        ends = _ends(noise, t)
        found = {
            "total": noise.sigma(t),
            "rate": noise.rate(t),
            "move_chance": noise.masked(t),
            "loss_weight_dsigma_over_expm1sigma": _weight(noise, t),
            "sigma_min": ends[0],
            "sigma_max": ends[1],
            "importance_sampling_transformation": _importance_time(noise, t, ends),
        }
        out |= {f"out/{name}/{kind}": value for kind, value in found.items()}
    return out


def _ends(noise: Schedule, t: Tensor) -> tuple[Tensor, Tensor]:
    """The reference's own smallest sigma, which is not that of t = 0 (21), and the largest."""
    end = torch.ones_like(t[:1])
    low = end * noise.eps if isinstance(noise, LogLinear) else noise.sigma(0 * end)
    return low, noise.sigma(end)


def _weight(noise: Schedule, t: Tensor) -> Tensor:
    """In single precision the reference's cosines go through a rounded alpha (1.5 % off at t =
    1e-3); ours do not.
    """
    if t.dtype == torch.float64 or not isinstance(noise, Cosine | CosineSquared):
        return noise.weight(t)
    return noise.rate(t) / torch.expm1(-torch.log(noise.alpha(t)))


def _importance_time(noise: Schedule, t: Tensor, ends: tuple[Tensor, Tensor]) -> Tensor:
    """The time at which ln(1 - alpha) has gone the share 1 - t of its way from the start to the
    end.
    """
    return noise.inverse(-torch.expm1(_log_masked(t, ends)))


def _log_masked(t: Tensor, ends: tuple[Tensor, Tensor]) -> Tensor:
    first, last = (torch.log1p(-torch.exp(-sigma)) for sigma in ends)
    return t * last + (1 - t) * first


def make_process(
    case: Case, noise: Schedule, time_conditioning: bool = True, rows: int | None = None
) -> MaskedDiffusion:
    """SUBS there forbids the mask only, so that ids of the padding keep a chance (17)."""
    mask_id = case.meta["mask_index"]
    targets = tuple(i for i in range(rows or case.meta["vocab_size"]) if i != mask_id)
    return MaskedDiffusion(noise, mask_id, targets, time_conditioning)


def draw_times(u: Tensor, eps: float, method: str = "stratified") -> Tensor:
    """Times from uniforms, none below `eps`."""
    return (1 - eps) * times(method, u, 0.0, torch.arange(len(u)), len(u)) + eps


def round_up(t: Tensor, n_steps: int) -> Tensor:
    """The end of the step that each time lies in; the times themselves where there are none."""
    return (t * n_steps).long().to(t.dtype) / n_steps + 1 / n_steps if n_steps else t


def charge(
    kind: str,
    process: MaskedDiffusion,
    logits: Tensor,
    clean: Tensor,
    x0: Tensor,
    masked: Tensor,
    t: Tensor,
    n_steps: int,
) -> Tensor:
    """The reference's loss of each token; `clean` are the logits of what is all visible."""
    nll, weight = process.nll(logits, x0, masked), process.schedule.weight(t)[:, None]
    if kind == "sedd":
        return weight * score_entropy(process, logits, x0, masked)
    if kind == "subs":
        return _discrete_loss(t, n_steps, nll) if n_steps else weight.to(nll.dtype) * nll
    x_mask = log_mask_chance(process, logits).exp()
    loss = _discrete_loss(t, n_steps, _d3pm(process, logits, x0, masked)[1], x_mask)
    return loss - _with_mask(process, clean).gather(-1, x0[..., None])[..., 0]


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
    return adapter_score.columns(diffusion, log_target, log_mask)


def _process(case: Case) -> Tensors:
    given, meta = case.inputs, case.meta
    name, _, rest = meta["noise"].partition(" ")
    noise = _schedule(name, _eps(rest))
    diffusion = make_process(case, noise)
    x0, t, logits, u = (given[name] for name in ("x0", "t", "logits", "u_categorical"))
    s, mask_id = t - given["dt"], diffusion.mask_id
    everywhere = torch.ones_like(x0, dtype=torch.bool)
    xt = diffusion.corrupt(x0, t, given["u_move"], everywhere)
    masked = xt == mask_id
    logp, nll = diffusion.log_x0(logits, xt), diffusion.nll(logits, x0, masked)
    clean = Clean(x0, everywhere)
    terms = decompose(diffusion, lambda x, s: logits, clean, t, given["u_move"])
    d3pm, d3pm_nll = _d3pm(diffusion, logits, x0, masked)
    out = {
        "out/sigma": diffusion.sigma(t),
        "out/dsigma": noise.rate(t),
        "out/move_chance": noise.masked(t)[:, None],
        "out/xt": xt,
        "out/subs_log_p": logp,
        "out/subs_nelbo_per_token": noise.weight(t)[:, None] * nll,
        "out/subs_reconstruction_loss": torch.zeros_like(nll) + terms.reconstruction[:, None],
        "out/d3pm_log_p": d3pm,
        "out/d3pm_subsmask_log_p": _all_masked(diffusion, logits).clamp(min=-1e6),
        "out/d3pm_reconstruction_loss": -d3pm.gather(-1, x0[..., None])[..., 0],
    }
    x_mask = log_mask_chance(diffusion, logits).exp()
    for key in given:
        if found := re.fullmatch(r"t_T(\d+)", key):
            n_steps = int(found[1])
            loss = _discrete_loss(given[key], n_steps, nll)
            out |= {f"out/{kind}_loss_T{n_steps}": loss for kind in ("subs", "d3pm_subsmask")}
            out[f"out/d3pm_loss_T{n_steps}"] = _discrete_loss(given[key], n_steps, d3pm_nll, x_mask)
    score = adapter_score.log_score(diffusion, logits, xt, t)
    steps = {"subs/denoiser": logp.exp()}
    for sampler, chain in (("ddpm", diffusion), ("ddpm_cache", make_process(case, Linear()))):
        steps[f"subs/{sampler}"] = _reverse(chain, logp, xt, t, s)
        steps[f"sedd/{sampler}"] = _reverse(chain, score, xt, t, s, subs=False)
    steps["d3pm/ddpm"] = _reverse(diffusion, d3pm, xt, t, s, subs=False)
    for name, p in steps.items():
        out[f"out/rev/{name}/probs"] = p
        out[f"out/rev/{name}/x_next"] = _gumbel(p, u, xt, mask_id)
    out |= adapter_score.process(diffusion, given, xt)
    for variant, description in meta.get("variants", {}).items():
        how = description["kw"]
        found = _forward_pass(case, noise, how)
        if "T" in how and logits.dtype == torch.float64:  # the reference leaves it there
            found = {"t_sampled": found["t_sampled"]}
        out |= {f"out/fwd/{variant}/{name}": value for name, value in found.items()}
    return out


def _all_masked(diffusion: MaskedDiffusion, logits: Tensor) -> Tensor:
    """SUBS where every position is masked."""
    return diffusion.log_x0(logits, torch.full(logits.shape[:-1], diffusion.mask_id))


def _forward_pass(case: Case, noise: Schedule, how: dict[str, object]) -> Tensors:
    """A training step from uniforms: times, what the backbone is told, the loss of each token, and
    their mean.
    """
    given = case.inputs
    x0, logits, attended = given["x0"], given["logits"], given["attention_mask"]
    method = "stratified" if how.get("antithetic", True) else "iid"
    t = draw_times(given["u_t"], case.meta["sampling_eps"], method)
    ends = _ends(noise, t)
    if how.get("importance"):
        t = _importance_time(noise, t, ends)
    sampled, n_steps, is_timed = t, int(how.get("T", 0)), bool(how.get("time_conditioning", True))
    t = round_up(t, n_steps)
    diffusion = make_process(case, noise, is_timed)
    everywhere = torch.ones_like(x0, dtype=torch.bool)
    masked, told = diffusion.draw_mask(t, given["u_move"], everywhere), diffusion.sigma(t)
    if how.get("cov"):
        masked, told = given["u_move"] < torch.exp(_log_masked(t, ends))[:, None], t
    kind = str(how.get("parameterization", "subs"))
    loss = charge(kind, diffusion, logits, logits, x0, masked, t, n_steps)
    if kind == "sedd" and not is_timed:  # the reference divides by expm1(0) (16)
        loss = loss.masked_fill(masked, torch.nan)
    if kind == "d3pm" and how.get("subs_masking"):
        seen = _all_masked(diffusion, logits).gather(-1, x0[..., None])[..., 0]
        loss = _discrete_loss(t, n_steps, diffusion.nll(logits, x0, masked)) - seen
    is_whole = how.get("importance") or how.get("cov")
    if is_whole and kind == "subs" and not n_steps:
        # the weight is the whole range of ln(1 - alpha), one end of it
        loss = -torch.log1p(-torch.exp(-ends[0])) * diffusion.nll(logits, x0, masked)
    mean = (loss * attended).sum() / attended.sum()
    if kind == "subs" and not (n_steps or is_whole):
        clean = Clean(x0, everywhere, attended.to(loss.dtype))
        terms = continuous_time_loss(diffusion, lambda x, s: logits, clean, t, given["u_move"])
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
    diffusion: MaskedDiffusion, logp: Tensor, xt: Tensor, t: Tensor, s: Tensor, subs: bool = True
) -> Tensor:
    """The reverse kernel as the reference leaves it: times 1 - alpha(t), and visible rows treated
    like masked ones.

    Where logp is no SUBS, its chance of the mask is overwritten.
    """
    masked_t, masked_s = (diffusion.schedule.masked(time)[:, None] for time in (t, s))
    p = logp.exp() * (masked_t - masked_s)[..., None]
    p[..., diffusion.mask_id] = masked_s
    if not subs:
        return p
    masked = diffusion.reverse(logp, xt, t, s) * masked_t[..., None]
    return torch.where((xt == diffusion.mask_id)[..., None], masked, p)


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
    eps, steps = meta["eps"], meta["steps"]
    process = make_process(case, LogLinear(), meta["time_conditioning"])
    chain = make_process(case, Linear()) if meta["sampler"] == "ddpm_cache" else process
    denoiser, x = _toy_backbone(case), torch.full(u.shape[1:3], process.mask_id)
    if meta["sampler"] == "analytic":
        return adapter_score.sampling(process, denoiser, case)
    grid = torch.linspace(1, eps, steps + 1, dtype=u.dtype)
    dt, path = (1 - eps) / steps, []

    def see(x: Tensor, t: Tensor) -> Tensor:
        return process.log_x0(denoiser(x, process.sigma(t)), x)

    for i in range(steps):
        t = grid[i].expand(len(x))
        x = _gumbel(_reverse(chain, see(x, t), x, t, t - dt), u[i], x, process.mask_id)
        path.append(x)
    if meta.get("noise_removal", True):
        x = see(x, grid[-1].expand(len(x))).argmax(-1)
    return {"out/x_steps": torch.stack(path), "out/samples": x}
