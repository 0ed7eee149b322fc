"""Golden cases of the networks of the MDLM family: DiT, DiMamba, with classes, as a classifier; the
sinusoid of a noise level.

The backbones are called with a noise level as it stands in the case, so time conditioning is on in
all of them (the reference zeroes the noise level outside of its networks).
"""

import re
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from adapter_networks import gradients, pool, precisions
from torch import Tensor

from genodiff.backbones.backbone import InitialValues
from genodiff.backbones.conditioning import NoiseLevel, make_sinusoid
from genodiff.backbones.dimamba import DiMamba
from genodiff.backbones.dit import DiT
from genodiff.hub.mdlm_layout import find_prefix, from_published_mdlm, map_mdlm_names

Case = SimpleNamespace
Tensors = dict[str, Tensor]

_HEAD = "output_layer."


def handles(case: Case) -> bool:
    """Whether the case is one of a network, or of the sinusoid; training runs are not."""
    if any(name.startswith("out/emb_") for name in case.wanted):
        return True
    return find_prefix(case.params) is not None and "optimizer" not in case.meta


def run(case: Case) -> Tensors:
    if not case.params:
        return _sinusoids(case)
    return _classifier(case) if _is_classifier(case) else _network(case)


def _is_classifier(case: Case) -> bool:
    return f"{_HEAD}weight" in case.params


def _sinusoids(case: Case) -> Tensors:
    sigma, kinds = case.inputs["sigma"], {"f64": torch.float64, "f32": torch.float32}
    asked = {name: name.removeprefix("out/emb_").split("_") for name in case.wanted}
    return {n: make_sinusoid(sigma.to(kinds[kind]), int(w)) for n, (w, kind) in asked.items()}


def build(case: Case, dtype: torch.dtype) -> tuple[DiT | DiMamba, dict[str, str]]:
    """The network of a case and, for each of its parameters, the reference's name."""
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


def _network(case: Case) -> Tensors:
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


def _classifier(case: Case) -> Tensors:
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
