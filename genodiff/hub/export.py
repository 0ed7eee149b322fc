"""Export of a run as a folder that other programs read, with a model card.

    caduceus      config.json  model.safetensors  tokenizer_config.json  special_tokens_map.json
                  README.md
    mdlm          config.json  model.safetensors  README.md
    safetensors   model.json   model.safetensors  config.yaml  README.md
                  (a run folder that holds only weights; of a Caduceus also config.json and the
                  tokenizer, with which transformers reads it through `genodiff.hf`; with
                  the splits of a BED, splits.bed)

A published layout of a DNA model is read back before the folder gets its name. Its logits on the
probe must agree with those of the run.
"""

import copy
import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save

from genodiff.backbones.caduceus import Caduceus, CaduceusSettings
from genodiff.backbones.settings import TO_FILL
from genodiff.errors import CheckpointError, UsageError
from genodiff.hub.adopt import SCORE, read_diffusion
from genodiff.hub.caduceus import (
    BARE,
    CLASSIFIER,
    MASKED_LM,
    exchange_form,
    make_published_config,
    make_published_state,
)
from genodiff.hub.mdlm_layout import MdlmSettings, make_mdlm_config, to_published_mdlm
from genodiff.hub.model_card import format_card
from genodiff.hub.published_network import CONFIG, compute_probe_logits
from genodiff.hub.source import read_source
from genodiff.hub.tensor_names import order_rows
from genodiff.hub.vocabulary import (
    PublishedVocabulary,
    find_vocabulary,
    find_vocabulary_by_name,
    make_text_vocabulary,
)
from genodiff.hub.weight_files import SAFETENSORS
from genodiff.io import atomic
from genodiff.io.file_kinds import hide_all_folders, hide_folders
from genodiff.io.target import check_new_folder
from genodiff.runs.checkpoint import CARD, WEIGHTS, describe_model
from genodiff.runs.config import RunConfig
from genodiff.runs.model import (
    TrainedModel,
    build_backbone,
    collect_tensors,
    fill_module,
    load_model,
)
from genodiff.runs.run_paths import SPLITS
from genodiff.runs.sealed_files import FLOAT, HALF, encode_tensors, read_tensors, sha256_tensors
from genodiff.settings import to_yaml

README = "README.md"
_TOLERANCE = 1e-3  # relative to the largest logit: float32 sums in another order differ
SPECIAL_TOKENS = {
    "bos_token": "[BOS]", "cls_token": "[CLS]", "eos_token": "[SEP]", "mask_token": "[MASK]",
    "pad_token": "[PAD]", "sep_token": "[SEP]",
    "unk_token": "[UNK]",
}  # fmt: skip


class Origin(NamedTuple):
    """The published form of a network: its vocabulary, config and class."""

    vocabulary: PublishedVocabulary
    config: dict[str, Any]
    architecture: str


def export_model(
    run: Path,
    out: Path,
    *,
    layout: str | None = None,
    fused: bool | None = None,
    licence: str | None = None,
    half: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Write the folder `out` atomically; return a summary of it.

    `layout` None is the published layout of the network's kind. `fused` None keeps the network's
    own form. `licence` goes into the model card. `half` keeps the weights of a run folder in 16
    bits; they are computed with in 32.

    With `force` a folder that is there is renamed.

    Raises `UsageError` if `out` exists or the format does not fit the network, and
    `CheckpointError` for a damaged run.
    """
    check_new_folder(out, force=force)
    model = load_model(run)
    model.check_network()
    layout = layout or ("mdlm" if isinstance(model.config.backbone, MdlmSettings) else "caduceus")
    if layout != "caduceus" and fused is not None:
        what = "--fused and --unfused are only for the format caduceus"
        raise UsageError(what, fix="leave them out, or give --format caduceus")
    if half and layout != "safetensors":
        fix = "leave it out, or give --format safetensors"
        raise UsageError("--half is only for the format safetensors", fix=fix)
    if half:
        backbone = copy.deepcopy(model.backbone).half()
        tensors = collect_tensors(backbone)
        if not all(bool(x.isfinite().all()) for x in tensors.values()):
            what = "has weights that are too large for 16 bits"
            raise CheckpointError(what, file=model.run, fix="leave --half out")
        model = model._replace(network=backbone, digest=sha256_tensors(tensors)[:12])
    writers = {"caduceus": _write_caduceus, "mdlm": _write_mdlm, "safetensors": _write_run}
    with atomic.atomic_directory(out, aside=force) as folder:
        found = writers[layout](model, folder, fused)
        atomic.write_text(folder / README, hide_folders(format_card(model, layout, found, licence)))
        files = sorted(p.name for p in folder.iterdir())
    told = {"format": layout, "out": str(out), "step": model.step, "checkpoint": model.digest}
    return {**told, "files": files, **found}


def _write_run(model: TrainedModel, folder: Path, _: bool | None) -> dict[str, Any]:
    tensors = collect_tensors(model.backbone)
    raw = encode_tensors(tensors)
    dtype = HALF if any(x.dtype == torch.float16 for x in tensors.values()) else FLOAT
    atomic.write_bytes(folder / WEIGHTS, raw)
    digest = hashlib.sha256(raw).hexdigest()
    plain = hide_all_folders(model.config.model_dump(mode="json"))
    if model.config.bed is not None and Path(model.config.bed).is_file():
        atomic.write_bytes(folder / SPLITS, Path(model.config.bed).read_bytes())
        plain["bed"] = SPLITS
    config = RunConfig.model_validate(plain)
    data = hide_all_folders(model.data)
    card = describe_model(config, model.alphabet, model.step, digest, data, dtype)
    atomic.write_json(folder / CARD, card)
    atomic.write_text(folder / "config.yaml", to_yaml(config))
    if isinstance(model.backbone, Caduceus) and find_unwritten(model.backbone) is None:
        # what transformers looks for
        _write_config(model, folder, find_origin(model), model.backbone.settings)
    return {"tensors": len(tensors), "dtype": dtype}


def find_origin(model: TrainedModel) -> Origin:
    """The published form in which a run is exported.

    It is the form of its source if the run was imported, else the default form.
    """
    source = model.data.get("source")
    if not isinstance(source, dict) or "vocabulary" not in source:
        rows = model.alphabet.padded_size
        if model.alphabet.domain != "dna":
            return Origin(make_text_vocabulary(model.alphabet, rows), {}, "")
        return Origin(find_vocabulary(rows, None), {}, MASKED_LM)
    config = dict(source["config"])
    named = (config.get("architectures") or [MASKED_LM])[0]
    score = (model.run / SCORE).exists()
    architecture = CLASSIFIER if score else BARE if named == BARE else MASKED_LM
    vocabulary = find_vocabulary_by_name(source["vocabulary"], source["rows"], model.alphabet)
    return Origin(vocabulary, config, architecture)


def find_unwritten(network: Caduceus) -> str | None:
    """What of a network has no place in the layout caduceus, in words; None if nothing."""
    if network.settings.n_classes:
        return "a network with classes has no place for them in the layout caduceus"
    if network.settings.recalls:
        return "a network that reads a memory has no place for it in the layout caduceus"
    return None


def _write_caduceus(model: TrainedModel, folder: Path, fused: bool | None) -> dict[str, Any]:
    if not isinstance(model.backbone, Caduceus):
        kind = model.config.backbone.kind
        what = f"a network of the kind {kind} cannot be written in the layout caduceus"
        raise UsageError(what, file=model.run, fix="give --format safetensors")
    unwritten = find_unwritten(model.backbone)
    if unwritten is not None:
        raise UsageError(unwritten, file=model.run, fix="give --format safetensors")
    settings, tensors = model.backbone.settings, collect_tensors(model.backbone)
    origin = find_origin(model)
    if settings.strands == "paired" and fused is not None and fused != settings.alternate_strands:
        settings, tensors = exchange_form(settings, tensors)
    score = None
    if origin.architecture == CLASSIFIER:
        score = read_tensors(model.run / SCORE)["score.weight"]
    state = make_published_state(settings, tensors, origin.vocabulary, origin.architecture, score)
    atomic.write_bytes(folder / SAFETENSORS, save(state, metadata={"format": "pt"}))
    config = _write_config(model, folder, origin, settings, fused)
    _check_export(model, folder)
    told = {"fused": config["fused_add_norm"], "architecture": origin.architecture}
    return {**told, "tensors": len(state), "rows": origin.vocabulary.size}


def _write_config(
    model: TrainedModel,
    folder: Path,
    origin: Origin,
    settings: CaduceusSettings,
    fused: bool | None = None,
) -> dict[str, Any]:
    """Write config.json, and the tokenizer where it is Caduceus' own; returns the config."""
    vocabulary, given = origin.vocabulary, origin.config
    config = make_published_config(settings, vocabulary, given, origin.architecture, fused)
    _write_json(model, folder, config)
    if vocabulary.name == "caduceus":
        _write_tokenizer(folder, model)
    return config


def _write_json(model: TrainedModel, folder: Path, config: dict[str, Any]) -> None:
    """Write config.json, with the objective where its layout does not say it."""
    diffusion = model.config.diffusion.model_dump(exclude_defaults=True)
    if diffusion != read_diffusion(config, causal=model.config.backbone.causal):
        config["diffusion"] = diffusion
    atomic.write_text(folder / CONFIG, json.dumps(config, indent=2) + "\n")


def _write_mdlm(model: TrainedModel, folder: Path, _: bool | None) -> dict[str, Any]:
    settings = model.config.backbone
    if not isinstance(settings, MdlmSettings):
        what = f"a network of the kind {settings.kind} cannot be written in the layout mdlm"
        raise UsageError(what, file=model.run, fix="leave out --format")
    origin = find_origin(model)
    length = model.config.data.seq_len
    config = dict(origin.config) or make_mdlm_config(settings, origin.vocabulary.size, length)
    moved = order_rows(collect_tensors(model.backbone), origin.vocabulary.outwards)
    state = {name: x.contiguous() for name, x in to_published_mdlm(settings, moved).items()}
    atomic.write_bytes(folder / SAFETENSORS, save(state, metadata={"format": "pt"}))
    _write_json(model, folder, config)
    if model.alphabet.domain == "dna":
        _check_export(model, folder)
    return {"tensors": len(state), "rows": origin.vocabulary.size}


def _write_tokenizer(folder: Path, model: TrainedModel) -> None:
    tokens, paired = model.alphabet.tokens, model.alphabet.complement or ()
    letters = [token for token in tokens if len(token) == 1]
    complement = {a: tokens[paired[tokens.index(a)]] for a in letters}
    values = {
        "add_prefix_space": False, "characters": letters, "complement_map": complement,
        "model_max_length": model.config.data.seq_len,
        "padding_side": "left", "tokenizer_class": "CaduceusTokenizer", **SPECIAL_TOKENS,
    }  # fmt: skip
    atomic.write_json(folder / "tokenizer_config.json", dict(sorted(values.items())))
    atomic.write_json(folder / "special_tokens_map.json", SPECIAL_TOKENS)


def _check_export(model: TrainedModel, folder: Path) -> None:
    """Read `folder` back and compare its logits on the probe with the run's.

    Raises `CheckpointError` if they differ.
    """
    source = read_source(folder)
    config = model.config.model_copy(update={"backbone": source.settings})
    again = build_backbone(config, model.alphabet, seed=TO_FILL)
    fill_module(again, source.tensors)
    mine, theirs = (
        compute_probe_logits(net.eval(), model.alphabet)[..., list(model.alphabet.targets)]
        for net in (model.backbone, again)
    )
    differ = float((mine - theirs).abs().max() / mine.abs().max().clamp(min=1.0))
    if not differ <= _TOLERANCE:
        what = f"the exported weights give logits that differ by {differ:.1e}; nothing was written"
        raise CheckpointError(what, file=model.run, fix="please report this")
