"""A published network as a run folder of our own, or as the start of one (`train --init`).

    RUN/config.yaml  model.safetensors  model.json  provenance.json

It has no checkpoints and no state of an optimiser: nothing can go on from it but with `train
--init`. Of its source it keeps the config and the sha256 of every file, in `model.json` and in
`provenance.json`.
"""

import hashlib
import logging
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from torch import nn

from genodiff.backbones.backbone import BackboneSettings
from genodiff.backbones.settings import TO_FILL
from genodiff.diffusion.objective import OBJECTIVES
from genodiff.hub.published_network import (
    SANE_BITS,
    PublishedNetwork,
    blame_file,
    compute_probe_logits,
    probe_network,
)
from genodiff.hub.source import read_source
from genodiff.io import atomic
from genodiff.io.target import check_new_folder
from genodiff.runs.checkpoint import CARD, WEIGHTS, describe_model
from genodiff.runs.config import RunConfig
from genodiff.runs.feed import OWN, write_tokenizer
from genodiff.runs.folder import describe_session, write_provenance
from genodiff.runs.model import (
    TrainedModel,
    build_backbone,
    collect_tensors,
    fill_module,
    load_model,
)
from genodiff.runs.resolve import (
    CONFIG,
    expand_names,
    merge_settings,
    read_config,
    resolve_config,
)
from genodiff.runs.run_paths import is_no_network, locate
from genodiff.runs.sealed_files import encode_tensors, sha256_tensors
from genodiff.settings import to_yaml
from genodiff.training.start import WarmStart

_log = logging.getLogger("genodiff")

_SEQ_LEN = 1024

SCORE = "score.safetensors"
"""The classifier of a sequence-classification network, under `score.weight`, kept for export."""


def read_diffusion(config: dict[str, Any], *, causal: bool) -> dict[str, Any]:
    """What a published config says of the objective; nothing is MDLM.

    Ours is under "diffusion", that of the MDLM family under "parameterization" ("subs" is MDLM),
    and UDLM's is the type of the model.
    """
    if "diffusion" in config:
        return dict(config["diffusion"])
    if config.get("model_type") == "udlm":
        return {"objective": "uniform"}
    objective = "ar" if causal else str(config.get("parameterization"))
    return {"objective": objective} if objective in OBJECTIVES else {}


def open_published(
    path: str | Path, device: str = "cpu", *, tokenizer: str | None = None
) -> tuple[TrainedModel, dict[str, bytes]]:
    """The network in a published folder as a model, and its tokenizer's files; nothing is written.

    It is what `adopt_network` would give, with the same digest. `tokenizer` (a name or a
    path) is needed by networks of text. Raises `CheckpointError` for a folder that
    cannot be read, for logits that are not finite and for strands that disagree.
    """
    source = read_source(path, tokenizer=tokenizer)
    model, _, _ = _open(source, tokenizer=tokenizer)
    model.backbone.to(device)
    return model, source.tokenizer


def _open(
    source: PublishedNetwork,
    seq_len: int | None = None,
    seed: int = 1,
    tokenizer: str | None = None,
) -> tuple[TrainedModel, dict[str, Any], bytes]:
    """The network as a model, what a probe has seen of it, and its weights as they are written.

    Raises `CheckpointError` where its logits are not finite or its strands disagree.
    """
    alphabet = source.vocabulary.alphabet
    sizes: dict[str, Any] = {"seq_len": seq_len or source.seq_len or _SEQ_LEN}
    if tokenizer is not None:
        sizes["tokenizer"] = tokenizer
    config = resolve_config(
        {
            "recipe": OWN, "domain": alphabet.domain, "seed": seed, "data": sizes,
            "backbone": source.settings.model_dump(),
            "diffusion": read_diffusion(source.config, causal=source.settings.causal),
        }
    )  # fmt: skip
    backbone = build_backbone(config, alphabet, seed=TO_FILL)
    fill_module(backbone, source.tensors)
    seen = blame_file(source.path, lambda: probe_network(backbone.eval(), alphabet))
    weights = encode_tensors(source.tensors)
    digest = hashlib.sha256(weights).hexdigest()
    data = {"source": source.record(), "fingerprint": digest}
    model = TrainedModel(backbone, alphabet, config, 0, digest[:12], source.path, data)
    return model, seen, weights


def copy_model(source: Path, out: Path, *, plan: bool, force: bool) -> dict[str, Any]:
    """Copy the weights of a folder that genodiff itself wrote, an exported one or a run, to the run
    folder `out`; returns what was found. Raises `CheckpointError` for the first fault.
    """
    model = load_model(source)
    files = [path for path in sorted(source.iterdir()) if path.is_file()]
    found = _describe(model, out) | {
        "layout": "genodiff", "vocabulary": model.alphabet.name, "weights": "averaged",
        "out": str(out), "classes": None, "files": [path.name for path in files],
    }  # fmt: skip
    if plan:
        return found
    found["probe"] = probe_network(model.backbone, model.alphabet)
    with atomic.atomic_directory(out, aside=force) as folder:
        for path in files:
            shutil.copy2(path, folder / path.name)
    return found


def adopt_network(
    source: PublishedNetwork,
    out: Path,
    *,
    seq_len: int | None = None,
    seed: int = 1,
    tokenizer: str | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Write the run folder `out`, whole or not at all, after a probe; returns what was found.

    With `force` a folder that is there is renamed.

    Raises `UsageError` where `out` exists, `CheckpointError` where the network's logits are not
    finite or its strands disagree.
    """
    check_new_folder(out, force=force)
    model, probe, weights = _open(source, seq_len=seq_len, seed=seed, tokenizer=tokenizer)
    config, alphabet, data = model.config, model.alphabet, model.data
    if alphabet.domain == "dna" and probe["bits_per_base"] > SANE_BITS:
        what = (
            "%s: has %.2f bits per base on a known repeat, more than the 2 of a uniform guess: are "
            "these trained weights?"
        )
        _log.warning(what, source.path, probe["bits_per_base"])
    with atomic.atomic_directory(out, aside=force) as folder:
        atomic.write_text(folder / CONFIG, to_yaml(config))
        write_tokenizer(folder, source.tokenizer)
        if source.score is not None:
            atomic.write_bytes(folder / SCORE, encode_tensors({"score.weight": source.score}))
        atomic.write_bytes(folder / WEIGHTS, weights)
        card = describe_model(config, alphabet, 0, data["fingerprint"], data)
        atomic.write_json(folder / CARD, card)
        session = describe_session(sys.argv, "cpu", 0) | {"probe": probe}
        write_provenance(folder, config, data, session)
    return _describe(model, out) | {
        "layout": source.layout, "vocabulary": source.vocabulary.name, "weights": source.weights,
        "classes": None if source.score is None else source.score.shape[0],
        "files": source.files, "unused": list(source.unused), "probe": probe,
    }  # fmt: skip


def _describe(model: TrainedModel, out: Path) -> dict[str, Any]:
    parameters = sum(p.numel() for p in model.backbone.parameters())
    network = model.config.backbone.model_dump(mode="json")
    told = {"run": str(out), "digest": model.digest, "parameters": parameters}
    return told | {"network": network}


def read_warm_start(path: str | Path) -> WarmStart:
    """The weights at `path`, read and judged. Raises `CheckpointError`."""
    path = locate(path, there=False)
    if is_no_network(path) or (path / CARD).exists() or (path / CONFIG).exists():
        model = load_model(path)
        model.check_network()
        network, settings, alphabet = model.backbone, model.config.backbone, model.alphabet
        tensors = collect_tensors(network)
        digest = sha256_tensors(tensors)
        record: dict[str, Any] = {"path": str(path), "sha256": digest, "step": model.step}
    else:
        source = read_source(path)
        settings, alphabet = source.settings, source.vocabulary.alphabet
        tensors, digest = source.tensors, source.digest
        network = settings.build(alphabet.padded_size, alphabet.complement, seed=TO_FILL)
        fill_module(network, tensors)
        record = {"path": str(path), "sha256": digest, "files": source.files}
    wanted = compute_probe_logits(network.eval(), alphabet)

    def parity(candidate: nn.Module) -> float:
        was = candidate.training
        found = compute_probe_logits(candidate.eval(), alphabet)
        candidate.train(was)
        return float((found - wanted).abs().max() / wanted.abs().max().clamp(min=1.0))

    return WarmStart(
        os.path.abspath(path), digest, settings, alphabet.fingerprint(), tensors, parity, record
    )


def put_network_below(network: BackboneSettings, given: Any) -> Any:
    """`given` (the settings of a file) over the network of the weights."""
    if not isinstance(given, dict):
        return given
    under = expand_names(given)
    return merge_settings({} if under.get("preset") else {"backbone": network.model_dump()}, under)


def find_remembered_config(folder: Path | None, init: str) -> RunConfig | None:
    """The configuration of a run in `folder` that began from `init`, which may be gone by now."""
    if os.path.lexists(init) or folder is None or not (folder / CONFIG).is_file():
        return None
    config = read_config(folder / CONFIG)
    return config if config.init == os.path.abspath(init) else None
