"""`train --init`: a run, a checkpoint, a published folder or a weight file as a start."""

import os
from pathlib import Path
from typing import Any

from torch import nn

from genodiff.backbones.backbone import BackboneSettings
from genodiff.backbones.settings import TO_FILL
from genodiff.hub.probe import compute_probe_logits
from genodiff.hub.source import read_source
from genodiff.runs.checkpoint import CARD
from genodiff.runs.config import RunConfig
from genodiff.runs.model import collect_tensors, fill_module, load_model
from genodiff.runs.resolve import CONFIG, expand_names, merge_settings, read_config
from genodiff.runs.run_paths import is_no_network, locate
from genodiff.runs.sealed_files import sha256_tensors
from genodiff.training.start import WarmStart


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
