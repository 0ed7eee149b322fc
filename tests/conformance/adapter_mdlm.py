"""Golden cases of the networks of the MDLM family: DiT, DiMamba, with classes, as a classifier; the
sinusoid of a noise level.

The backbones are called with a noise level as it stands in the case, so time conditioning is on in
all of them (the reference zeroes the noise level outside of its networks).
"""

import re
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from published_classifier import pool
from torch import Tensor

from genodiff.backbones.backbone import InitialValues
from genodiff.backbones.conditioning import NoiseLevel, make_sinusoid
from genodiff.backbones.dimamba import DiMamba
from genodiff.backbones.dit import DiT
from genodiff.hub.mdlm_layout import find_prefix, from_published_mdlm, map_mdlm_names
from genodiff.hub.tensor_names import reshape_as_published

Case = SimpleNamespace
Tensors = dict[str, Tensor]

_HEAD = "output_layer."
_POOLS = {"cls": "first"}


def handles(case: Case) -> bool:
    """Whether the case is one of a network, or of the sinusoid; training runs are not."""
    if any(name.startswith("out/emb_") for name in case.wanted):
        return True
    return find_prefix(case.params) is not None and "optimizer" not in case.meta


def run(case: Case) -> Tensors:
    found = (
        _sinusoids(case)
        if not case.params
        else _classifier(case)
        if _is_classifier(case)
        else _network(case)
    )
    return {name: value for name, value in found.items() if name in case.wanted}


def _is_classifier(case: Case) -> bool:
    return f"{_HEAD}weight" in case.params


def _sinusoids(case: Case) -> Tensors:
    out = {}
    for name in case.wanted:
        width, kind = name.removeprefix("out/emb_").split("_")
        out[name] = make_sinusoid(
            case.inputs["sigma"].to({"f64": torch.float64, "f32": torch.float32}[kind]), int(width)
        )
    return out


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


def _dtypes(case: Case) -> list[tuple[torch.dtype, str]]:
    found = [(torch.float64, "_f64"), (torch.float32, "")]
    return [
        (dtype, suffix)
        for dtype, suffix in found
        if any(name.endswith("_f64") == bool(suffix) for name in case.wanted)
    ]


def _level(case: Case, sigma: Tensor) -> Tensor:
    """silu of the map of the noise level; there also where the network does not read it."""
    root = find_prefix(case.params)
    weights = {
        name: case.params[f"{root}sigma_map.mlp.{at}"]
        for name, at in (("first", "0.weight"), ("second", "2.weight"))
    }
    level = NoiseLevel(weights["first"].shape[0], InitialValues(0)).to(sigma.dtype)
    with torch.no_grad():
        for layer, at in ((level.first, 0), (level.second, 2)):
            layer.weight.copy_(case.params[f"{root}sigma_map.mlp.{at}.weight"])
            layer.bias.copy_(case.params[f"{root}sigma_map.mlp.{at}.bias"])  # type: ignore[union-attr]
        return level(sigma)  # type: ignore[no-any-return]


def _network(case: Case) -> Tensors:
    given, out = case.inputs, {}
    ids, labels = given["input_ids"], given.get("cond")
    for dtype, suffix in _dtypes(case):
        model, names = build(case, dtype)
        sigma = given["sigma"].to(dtype)
        told = {"": sigma, "_sigma0": torch.zeros_like(sigma)}
        with torch.no_grad():
            for level, s in told.items():
                out[f"out/logits{level}{suffix}"] = out[f"out/logits{level}_nocond{suffix}"] = (
                    model(ids, s)
                )
                if labels is not None:
                    none = torch.full_like(labels, model.settings.n_classes)
                    out[f"out/logits{level}_cond{suffix}"] = model(ids, s, labels=labels)
                    out[f"out/logits{level}_uncond{suffix}"] = model(ids, s, labels=none)
            if isinstance(model, DiMamba):
                out[f"out/logits_onehot{suffix}"] = model(
                    F.one_hot(ids, model.vocab_size).to(dtype), sigma
                )
            out[f"out/cond_silu{suffix}"] = _level(case, sigma)
        if "grad_weight" in given and any(
            name.startswith(f"grad{suffix}/") for name in case.wanted
        ):
            logits = model(ids, sigma, labels=labels) if labels is not None else model(ids, sigma)
            parameters = dict(model.named_parameters())
            grads = torch.autograd.grad(
                (logits * given["grad_weight"].to(dtype)).sum(), list(parameters.values())
            )
            theirs = [names[here] for here in parameters]
            out |= {
                f"grad{suffix}/{name}": reshape_as_published(name, g)
                for name, g in zip(theirs, grads, strict=True)
            }
    return out


def _classifier(case: Case) -> Tensors:
    given, out = case.inputs, {}
    how = case.meta["config"].get("classifier_model", {}).get("pooling", "mean")
    for dtype, suffix in _dtypes(case):
        model, _ = build(case, dtype)
        assert isinstance(model, DiMamba)
        weight, bias = (case.params[f"{_HEAD}{kind}"].to(dtype) for kind in ("weight", "bias"))
        ids, sigma = given["input_ids"], given["sigma"].to(dtype)

        def scores(
            x: Tensor,
            model: DiMamba = model,
            sigma: Tensor = sigma,
            weight: Tensor = weight,
            bias: Tensor = bias,
        ) -> Tensor:
            h = model.features(x, sigma)
            return F.linear(
                h if how == "no_pooling" else pool(h, _POOLS.get(how, how)), weight, bias
            )

        onehot = F.one_hot(ids, model.vocab_size).to(dtype).requires_grad_()
        of_onehot = scores(onehot)
        out |= {
            f"out/logits{suffix}": scores(ids).detach(),
            f"out/logits_onehot{suffix}": of_onehot.detach(),
        }
        for name in case.wanted:
            if asked := re.fullmatch(rf"grad{suffix}/onehot_of_logprob_class(\d+)", name):
                wanted = of_onehot.log_softmax(-1)[..., int(asked[1])].sum()
                out[name] = torch.autograd.grad(wanted, onehot, retain_graph=True)[0]
    return out
