"""Golden cases of kernels and networks: scans, convolution, norms, one mixer, whole Caduceus
models.

All maths is the product's. What stands here is naming, layouts (the reference puts channels before
time), scans with B and C given per group or per channel, and what the reference does differently
(conformance README 8, 12).
"""

from math import gcd
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from published_classifier import SequenceClassifier, pool
from torch import Tensor

from genodiff.backbones.backbone import InitialValues, Norm
from genodiff.backbones.caduceus import Caduceus
from genodiff.backbones.kinds.caduceus import CaduceusSettings
from genodiff.backbones.mamba import Mamba
from genodiff.hub.caduceus import from_published, map_state_names, read_published_complement
from genodiff.hub.tensor_names import reshape_as_published
from genodiff.kernels.conv import causal_conv1d
from genodiff.kernels.scan import selective_scan

Case = SimpleNamespace
Tensors = dict[str, Tensor]


def run(case: Case) -> Tensors:
    for part in (_scan, _conv, _add_norm, _mixer, _masked_lm, _classifier, _decoder):
        found = part(case)
        if found is not None:
            return {name: value for name, value in found.items() if name in case.wanted}
    return {}


def _wants(case: Case, dtype: torch.dtype) -> bool:
    return any(("f64" in name) == (dtype == torch.float64) for name in case.wanted)


def _suffix(dtype: torch.dtype) -> str:
    return "_f64" if dtype == torch.float64 else ""


def _to(tensors: Tensors, dtype: torch.dtype) -> Tensors:
    return {name: x.to(dtype) if x.is_floating_point() else x for name, x in tensors.items()}


def _scan(case: Case) -> Tensors | None:
    if case.meta.get("op") != "selective_scan":
        return None
    out: Tensors = {}
    for dtype in (torch.float64, torch.float32):
        x = {
            name: value.requires_grad_()
            for name, value in _to(case.inputs, dtype).items()
            if name != "grad_out"
        }
        y, state = _grouped_scan(x, bool(case.meta.get("delta_softplus", False)))
        if dtype == torch.float32:
            out |= {"out/y_f32": y, "out/last_state_f32": state}
            continue
        grads = torch.autograd.grad(y, list(x.values()), case.inputs["grad_out"].to(dtype))
        out |= {"out/y_f64": y, "out/last_state_f64": state} | {
            f"grad_f64/{name}": g for name, g in zip(x, grads, strict=True)
        }
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
        part = {
            name: m[:, i * width : (i + 1) * width].transpose(1, 2)
            for name, m in x.items()
            if name in ("u", "delta", "z")
        }
        part |= {
            name: m[i * width : (i + 1) * width]
            for name, m in x.items()
            if name in ("A", "D", "delta_bias")
        }
        y, state = selective_scan(**part, B=of_group(x["B"], i), C=of_group(x["C"], i),
                                  delta_softplus=softplus, return_state=True)  # fmt: skip
        ys.append(y.transpose(1, 2))
        states.append(state)
    return torch.cat(ys, 1), torch.cat(states, 1)


def _conv(case: Case) -> Tensors | None:
    if case.meta.get("op") != "causal_conv1d":
        return None
    out = {}
    for dtype, suffix in ((torch.float64, "_f64"), (torch.float32, "_f32")):
        x = _to(case.inputs, dtype)
        y = causal_conv1d(
            x["x"].transpose(1, 2),
            x["weight"],
            x.get("bias"),
            activation=case.meta.get("activation"),
        )
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
    for dtype in (torch.float64, torch.float32):
        if not _wants(case, dtype):
            continue
        mixer.to(dtype)
        with torch.no_grad():
            for here, p in mixer.named_parameters():
                p.copy_(case.params[theirs[here]].reshape(p.shape))
        x = case.inputs["x"].to(dtype).requires_grad_()
        y = mixer(x)
        parameters = dict(mixer.named_parameters())
        grads = torch.autograd.grad(y, [x, *parameters.values()], case.inputs["grad_out"].to(dtype))
        out[f"out/y{_suffix(dtype)}"] = y
        names_out = ["x", *(theirs[here] for here in parameters)]
        out |= {
            f"grad{_suffix(dtype)}/{name}": reshape_as_published(name, g)
            for name, g in zip(names_out, grads, strict=True)
        }
    return out


def _published_name(here: str) -> str:
    plain = here.removeprefix("ahead.")
    return {
        "conv_weight": "conv1d.weight", "conv_bias": "conv1d.bias", "dt_weight": "dt_proj.weight",
        "dt_bias": "dt_proj.bias",
    }.get(plain, plain)  # fmt: skip


def _model(case: Case, dtype: torch.dtype) -> tuple[Caduceus, dict[str, str]]:
    """The network of a case and, for each of its parameters, the reference's name."""
    state = {name: x for name, x in case.params.items() if name != "score.weight"}
    config = case.meta["config"]
    settings, ours = from_published(state, config)
    complement = read_published_complement(config, ours["embedding"].shape[0])
    if complement is None and "complement_map" in case.inputs:
        complement = tuple(case.inputs["complement_map"].tolist())
    model = settings.build(ours["embedding"].shape[0], complement).eval().to(dtype)
    model.load_state_dict(ours)
    if config.get("residual_in_fp32") and not config.get("fused_add_norm", True):
        model.residual_dtype = (
            torch.float32
        )  # the reference stores it so even in a float64 run (12)
    return model, map_state_names(state, settings)


def _gradients(
    loss: Tensor, model: Caduceus, names: dict[str, str], prefix: str, more: Tensors | None = None
) -> Tensors:
    parameters = dict(model.named_parameters()) | (more or {})
    grads = torch.autograd.grad(
        loss, list(parameters.values()), retain_graph=True, allow_unused=True
    )
    found = {
        names.get(here, here): g for here, g in zip(parameters, grads, strict=True) if g is not None
    }
    return {f"{prefix}/{theirs}": reshape_as_published(theirs, g) for theirs, g in found.items()}


def _masked_lm(case: Case) -> Tensors | None:
    if case.meta.get("cls") not in ("CaduceusForMaskedLM", "Caduceus"):
        return None
    out: Tensors = {}
    ids = case.inputs["input_ids"]
    for dtype in (torch.float64, torch.float32):
        if not _wants(case, dtype):
            continue
        suffix, (model, names) = _suffix(dtype), _model(case, dtype)
        logits = model(ids)
        with torch.no_grad():
            hidden = model.hidden_states(ids)
            out |= {f"out/last_hidden{suffix}": model.features(ids)} | {
                f"out/hidden_{i}{suffix}": h for i, h in enumerate(hidden)
            }
            if "input_ids_rc" in case.inputs:
                out[f"out/logits_of_rc_input{suffix}"] = model(case.inputs["input_ids_rc"])
        out[f"out/logits{suffix}"] = logits.detach()
        if "labels" in case.inputs:
            loss = F.cross_entropy(
                logits.flatten(0, 1), case.inputs["labels"].flatten(), ignore_index=-100
            )
            out[f"out/mlm_loss{suffix}"] = loss.detach().reshape(1)
            out |= _gradients(loss, model, names, f"grad{suffix}")
    return out


def _classifier(case: Case) -> Tensors | None:
    meta = case.meta
    if meta.get("cls") != "CaduceusForSequenceClassification":
        return None
    out: Tensors = {}
    for dtype in (torch.float64, torch.float32):
        if not _wants(case, dtype):
            continue
        suffix, (model, names) = _suffix(dtype), _model(case, dtype)
        score = case.params["score.weight"]
        classifier = SequenceClassifier(
            model, score.shape[0], pooling=meta.get("pooling_strategy") or "mean",
            conjoin_train=bool(meta.get("conjoin_train")),
            conjoin_eval=bool(meta.get("conjoin_eval")),
        ).to(dtype)  # fmt: skip
        classifier.train(meta.get("mode") == "train")
        with torch.no_grad():
            classifier.score.copy_(score)

        def classify(ids: Tensor, classifier: SequenceClassifier = classifier) -> Tensor:
            return classifier(ids[..., 0], None, ids[..., 1]) if ids.ndim == 3 else classifier(ids)

        logits = classify(case.inputs["input_ids"])
        loss = F.cross_entropy(logits, case.inputs["labels"])
        out |= {
            f"out/logits{suffix}": logits.detach(),
            f"out/ce_loss{suffix}": loss.detach().reshape(1),
        }
        with torch.no_grad():
            out[f"out/logits_of_rc_input{suffix}"] = classify(case.inputs["input_ids_rc"])
        out |= _gradients(loss, model, names, f"grad{suffix}", {"score.weight": classifier.score})
    return out


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
        pooled = [pool(x, "mean" if how == "pool" else how) for x in h]
        out[name] = torch.stack([F.linear(p, given["weight"], given["bias"]) for p in pooled]).mean(
            0
        )
    return out
