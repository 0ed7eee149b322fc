"""Golden cases of kernels and networks: scans, convolution, norms, one mixer, whole models of
Caduceus and of the MDLM family, with classes or as a classifier; the sinusoid of a noise level.

All maths is the product's. What stands here is naming, layouts (the reference puts channels before
time), scans with B and C given per group or per channel, and what the reference does differently
(conformance README 8, 12).
"""

import re
from math import gcd
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from genodiff.backbones.backbone import InitialValues, Norm
from genodiff.backbones.conditioning import NoiseLevel, make_sinusoid
from genodiff.backbones.dimamba import DiMamba
from genodiff.backbones.kinds.caduceus import CaduceusSettings
from genodiff.backbones.mamba import Mamba
from genodiff.hub.caduceus import from_published, map_state_names, read_published_complement
from genodiff.hub.mdlm_layout import find_prefix, from_published_mdlm, map_mdlm_names
from genodiff.hub.tensor_names import reshape_as_published
from genodiff.kernels.conv import causal_conv1d
from genodiff.kernels.scan import selective_scan

Case = SimpleNamespace
Tensors = dict[str, Tensor]

_HEAD = "output_layer."


def run(case: Case) -> Tensors:
    mdlm = (_sinusoids, _mdlm, _mdlm_classifier)
    parts = (*mdlm, _scan, _conv, _add_norm, _mixer, _masked_lm, _decoder)
    return next((found for part in parts if (found := part(case)) is not None), {})


def precisions(case: Case) -> list[tuple[torch.dtype, str]]:
    """The precisions that are wanted, and what their names end in."""
    both = ((torch.float64, "_f64"), (torch.float32, ""))
    return [one for one in both if any(("f64" in name) == bool(one[1]) for name in case.wanted)]


def _to(tensors: Tensors, dtype: torch.dtype) -> Tensors:
    return {name: x.to(dtype) if x.is_floating_point() else x for name, x in tensors.items()}


def _scan(case: Case) -> Tensors | None:
    if case.meta.get("op") != "selective_scan":
        return None
    out: Tensors = {}
    for dtype, suffix in ((torch.float64, "_f64"), (torch.float32, "_f32")):
        x = _to(case.inputs, dtype)
        grad = x.pop("grad_out")
        y, state = _grouped_scan(
            {name: value.requires_grad_() for name, value in x.items()},
            bool(case.meta.get("delta_softplus", False)),
        )
        grads = torch.autograd.grad(y, list(x.values()), grad)
        out |= {f"out/y{suffix}": y, f"out/last_state{suffix}": state}
        out |= {f"grad{suffix}/{name}": g for name, g in zip(x, grads, strict=True)}
    return out


def _grouped_scan(x: Tensors, softplus: bool) -> tuple[Tensor, Tensor]:
    """B and C are (B, N, L), (B, G, N, L) with channels in G equal groups, or (E, N), constant in
    time.
    """
    channels, length = x["u"].shape[1:]

    def n_groups(m: Tensor) -> int:
        return {2: channels, 3: 1}.get(m.ndim) or m.shape[1]

    n = n_groups(x["B"]) * n_groups(x["C"]) // gcd(n_groups(x["B"]), n_groups(x["C"]))
    width = channels // n

    def of_group(m: Tensor, i: int) -> Tensor:
        if m.ndim == 2:
            return m[i].expand(x["u"].shape[0], length, -1)
        return (m if m.ndim == 3 else m[:, i * m.shape[1] // n]).transpose(1, 2)

    ys, states = [], []
    for i in range(n):
        here = slice(i * width, (i + 1) * width)
        part = {k: x[k][:, here].transpose(1, 2) for k in ("u", "delta", "z") if k in x}
        part |= {k: x[k][here] for k in ("A", "D", "delta_bias") if k in x}
        part |= {k: of_group(x[k], i) for k in ("B", "C")}
        y, state = selective_scan(**part, delta_softplus=softplus, return_state=True)
        ys.append(y.transpose(1, 2))
        states.append(state)
    return torch.cat(ys, 1), torch.cat(states, 1)


def _conv(case: Case) -> Tensors | None:
    if case.meta.get("op") != "causal_conv1d":
        return None
    out = {}
    for dtype, suffix in ((torch.float64, "_f64"), (torch.float32, "_f32")):
        x = _to(case.inputs, dtype)
        how = {"activation": case.meta.get("activation")}
        y = causal_conv1d(x["x"].transpose(1, 2), x["weight"], x.get("bias"), **how)
        out[f"out/y{suffix}"] = y.transpose(1, 2)
    return out


def _add_norm(case: Case) -> Tensors | None:
    if "norm" not in str(case.meta.get("op", "")):
        return None
    x, out = case.inputs, {}
    total = x["x"] + x["residual"]
    for name in case.wanted:
        kind, _, eps = name.removeprefix("out/").partition("_eps")
        if kind.startswith("residual"):
            out[name] = total
            continue
        norm = Norm("rms" if kind.startswith("rms") else "layer", total.shape[-1], float(eps))
        norm.weight.data = x["weight"]
        if norm.bias is not None:
            norm.bias.data = x["bias"]
        out[name] = norm(total)
    return out


def _mixer(case: Case) -> Tensors | None:
    if case.meta.get("cls") != "mamba_ssm Mamba":
        return None
    names = {"bias": "proj_bias"}
    known = {"d_model", "d_state", "d_conv", "expand", "dt_rank", "conv_bias", "bias"}
    shape = {names.get(k, k): v for k, v in case.meta["kwargs"].items() if k in known}
    settings = CaduceusSettings.parse(shape | {"n_layer": 1, "bidirectional": False})
    mixer = Mamba(settings.d_model, settings, InitialValues(0))
    theirs = {here: _published_name(here) for here, _ in mixer.named_parameters()}
    out: Tensors = {}
    for dtype, suffix in precisions(case):
        mixer.to(dtype)
        with torch.no_grad():
            for here, p in mixer.named_parameters():
                p.copy_(case.params[theirs[here]].reshape(p.shape))
        x = case.inputs["x"].to(dtype).requires_grad_()
        y = mixer(x)
        out[f"out/y{suffix}"] = y
        loss = (y * case.inputs["grad_out"].to(dtype)).sum()
        out |= gradients(loss, mixer, theirs, f"grad{suffix}", {"x": x})
    return out


def _published_name(here: str) -> str:
    plain = here.removeprefix("ahead.")
    for part in ("conv", "dt"):
        full = {"conv": "conv1d", "dt": "dt_proj"}[part]
        plain = re.sub(rf"^{part}_(weight|bias)$", rf"{full}.\1", plain)
    return plain


def build(case: Case, dtype: torch.dtype) -> tuple[Any, dict[str, str]]:
    """The network of a case and, for each of its parameters, the reference's name."""
    if find_prefix(case.params) is not None:
        return _build_mdlm(case, dtype)
    state = {name: x for name, x in case.params.items() if name != "score.weight"}
    config = case.meta["config"]
    settings, ours = from_published(state, config)
    complement = read_published_complement(config, ours["embedding"].shape[0])
    if complement is None and "complement_map" in case.inputs:
        complement = tuple(case.inputs["complement_map"].tolist())
    model = settings.build(ours["embedding"].shape[0], complement).eval().to(dtype)
    model.load_state_dict(ours)
    if config.get("residual_in_fp32") and not config.get("fused_add_norm", True):
        model.residual_dtype = torch.float32  # so the reference stores it in float64 too (12)
    return model, map_state_names(state, settings)


def gradients(
    loss: Tensor, model: nn.Module, names: dict[str, str], prefix: str, more: Tensors | None = None
) -> Tensors:
    """Of all parameters that the loss depends on, by the reference's names."""
    of = dict(model.named_parameters()) | (more or {})
    grads = torch.autograd.grad(loss, list(of.values()), retain_graph=True, allow_unused=True)
    found = {names.get(here, here): g for here, g in zip(of, grads, strict=True) if g is not None}
    return {f"{prefix}/{theirs}": reshape_as_published(theirs, g) for theirs, g in found.items()}


def _masked_lm(case: Case) -> Tensors | None:
    if case.meta.get("cls") not in ("CaduceusForMaskedLM", "Caduceus"):
        return None
    out: Tensors = {}
    given = case.inputs
    for dtype, suffix in precisions(case):
        model, names = build(case, dtype)
        logits = model(given["input_ids"])
        with torch.no_grad():
            hidden = model.hidden_states(given["input_ids"])
            out |= {f"out/hidden_{i}{suffix}": h for i, h in enumerate(hidden)}
            out[f"out/last_hidden{suffix}"] = model.features(given["input_ids"])
            if "input_ids_rc" in given:
                out[f"out/logits_of_rc_input{suffix}"] = model(given["input_ids_rc"])
        out[f"out/logits{suffix}"] = logits.detach()
        if "labels" in given:
            loss = F.cross_entropy(logits.flatten(0, 1), given["labels"].flatten())
            out[f"out/mlm_loss{suffix}"] = loss.detach().reshape(1)
            out |= gradients(loss, model, names, f"grad{suffix}")
    return out


def pool(h: Tensor, how: str) -> Tensor:
    """(B, D) of the features (B, L, D) of all positions."""
    if how in ("first", "last"):
        return h[:, 0 if how == "first" else -1]
    return {"mean": h.mean(1), "max": h.amax(1), "sum": h.sum(1)}[how]


def _decoder(case: Case) -> Tensors | None:
    """A linear map of pooled features, averaged over the strands where they are conjoined; features
    are given.
    """
    if "SequenceDecoder" not in str(case.meta.get("cls")):
        return None
    given, out = case.inputs, {}
    for name in case.wanted:
        how, strands = name.removeprefix("out/").split("_")
        h = [given["x"]] if strands == "plain" else list(given["x_conjoin"].unbind(-1))
        pooled = torch.stack([pool(x, "mean" if how == "pool" else how) for x in h])
        out[name] = F.linear(pooled, given["weight"], given["bias"]).mean(0)
    return out


def _is_classifier(case: Case) -> bool:
    return f"{_HEAD}weight" in case.params


def _sinusoids(case: Case) -> Tensors | None:
    if case.params or not any(name.startswith("out/emb_") for name in case.wanted):
        return None
    sigma, kinds = case.inputs["sigma"], {"f64": torch.float64, "f32": torch.float32}
    asked = {name: name.removeprefix("out/emb_").split("_") for name in case.wanted}
    return {n: make_sinusoid(sigma.to(kinds[kind]), int(w)) for n, (w, kind) in asked.items()}


def _build_mdlm(case: Case, dtype: torch.dtype) -> tuple[nn.Module, dict[str, str]]:
    """Time conditioning is always on: the reference zeroes the level outside of its networks."""
    state = {
        name: x
        for name, x in case.params.items()
        if not (_is_classifier(case) and name.startswith(_HEAD))
    }
    settings, tensors = from_published_mdlm(state, case.meta["config"])
    if getattr(settings, "conditioning", "") != "none":
        settings = settings.model_copy(update={"time_conditioning": True})
    rows = tensors["embedding"].shape[0] - getattr(settings, "spare_rows", 0)
    model = settings.build(rows, None).eval().to(dtype)
    model.load_state_dict(tensors)
    return model, map_mdlm_names(
        settings, find_prefix(state) or "", classifier=_is_classifier(case)
    )


def _level(case: Case, sigma: Tensor) -> Tensor:
    """silu of the map of the noise level; there also where the network does not read it."""
    stem = f"{find_prefix(case.params)}sigma_map.mlp."
    layers = {"first": "0", "second": "2"}
    weights = {
        f"{here}.{kind}": case.params[f"{stem}{at}.{kind}"]
        for here, at in layers.items()
        for kind in ("weight", "bias")
    }
    level = NoiseLevel(len(weights["first.bias"]), InitialValues(0)).to(sigma.dtype)
    level.load_state_dict(weights)
    with torch.no_grad():
        return level(sigma)


def _mdlm(case: Case) -> Tensors | None:
    if find_prefix(case.params) is None or _is_classifier(case):
        return None
    given, out = case.inputs, {}
    ids, labels = given["input_ids"], given.get("cond")
    for dtype, suffix in precisions(case):
        model, names = build(case, dtype)
        sigma = given["sigma"].to(dtype)
        with torch.no_grad():
            for level, s in {"": sigma, "_sigma0": torch.zeros_like(sigma)}.items():
                free = model(ids, s)
                out |= {f"out/logits{level}{more}{suffix}": free for more in ("", "_nocond")}
                if labels is not None:
                    none = torch.full_like(labels, model.settings.n_classes)
                    out[f"out/logits{level}_cond{suffix}"] = model(ids, s, labels=labels)
                    out[f"out/logits{level}_uncond{suffix}"] = model(ids, s, labels=none)
            if isinstance(model, DiMamba):
                onehot = F.one_hot(ids, model.vocab_size).to(dtype)
                out[f"out/logits_onehot{suffix}"] = model(onehot, sigma)
            out[f"out/cond_silu{suffix}"] = _level(case, sigma)
        if any(name.startswith(f"grad{suffix}/") for name in case.wanted):
            logits = model(ids, sigma) if labels is None else model(ids, sigma, labels=labels)
            loss = (logits * given["grad_weight"].to(dtype)).sum()
            out |= gradients(loss, model, names, f"grad{suffix}")
    return out


def _mdlm_classifier(case: Case) -> Tensors | None:
    if not _is_classifier(case):
        return None
    given, out = case.inputs, {}
    how = case.meta["config"].get("classifier_model", {}).get("pooling", "mean")
    for dtype, suffix in precisions(case):
        model, _ = build(case, dtype)
        head = [case.params[f"{_HEAD}{kind}"].to(dtype) for kind in ("weight", "bias")]
        ids, sigma = given["input_ids"], given["sigma"].to(dtype)
        onehot = F.one_hot(ids, model.vocab_size).to(dtype).requires_grad_()
        scores = []
        for x in (ids, onehot):
            h = model.features(x, sigma)
            pooled = h if how == "no_pooling" else pool(h, "first" if how == "cls" else how)
            scores.append(F.linear(pooled, *head))
        out[f"out/logits{suffix}"], out[f"out/logits_onehot{suffix}"] = scores
        for name in case.wanted:
            if asked := re.fullmatch(rf"grad{suffix}/onehot_of_logprob_class(\d+)", name):
                wanted = scores[1].log_softmax(-1)[..., int(asked[1])].sum()
                out[name] = torch.autograd.grad(wanted, onehot, retain_graph=True)[0]
    return out
