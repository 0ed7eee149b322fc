"""A trained model from a run folder or a checkpoint folder: its weights, read and judged."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from genodiff.alphabet import Alphabet
from genodiff.backbones.backbone import Backbone
from genodiff.backbones.settings import TO_FILL
from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.objective import Objective, objective
from genodiff.diffusion.schedule import schedule
from genodiff.errors import CheckpointError
from genodiff.runs.checkpoint import (
    CARD,
    MANIFEST,
    WEIGHTS,
    Card,
    find_run_folder,
    list_steps,
    locate_checkpoint,
    read_card,
    read_state,
    verify_folder,
)
from genodiff.runs.config import RunConfig
from genodiff.runs.run_paths import SPLITS, is_no_network, locate
from genodiff.runs.sealed_files import (
    AGAIN,
    HALF,
    PICKLES,
    read_bytes,
    read_json,
    read_tensors,
    refuse_file,
    refuse_pickles,
)
from genodiff.runs.trained_model import TrainedModel as TrainedModel
from genodiff.runs.trained_model import open_composition

PUBLISHED = "config.json"
"""What a published network of others has in the place of `model.json`."""

_POINTER = 1024  # bytes: what is left in place of weights is smaller than any

_log = logging.getLogger("genodiff")


def load_model(path: str | Path, device: str = "cpu") -> TrainedModel:
    """The model in a run folder or a checkpoint folder, in evaluation mode.

    The weights are the averaged ones; of a run folder, the newest. Everything is judged before
    anything is allocated. In a run folder a corrupt checkpoint gives a warning, and the one before
    it is taken. Raises `CheckpointError`, naming the file and the fault.
    """
    path = locate(path)
    if is_no_network(path):
        return open_composition(path, device)
    if not path.is_dir():
        pickled = path.suffix.lower() in PICKLES
        kind = "pickles and archives are not supported: refused" if pickled else None
        fix = "give a run folder with model.safetensors and model.json"
        raise CheckpointError(kind or "is a file, not a folder", file=path, fix=fix)
    refuse_pickles(path)
    if not os.path.lexists(path / CARD) and os.path.lexists(path / WEIGHTS):
        read_tensors(path / WEIGHTS)  # a fault of the weights is said before the missing card
    missing = _explain_no_model(path)
    if missing.file == path / PUBLISHED and not list_steps(path):
        raise missing
    for folder in _find_candidates(path):
        try:
            is_whole = folder != path or (folder / MANIFEST).exists()
            card = verify_folder(folder) if is_whole else read_card(folder)
            backbone = _read_backbone(folder, card, device)
            digest, run = card.weights_sha256[:12], find_run_folder(path)
            config = card.config
            if config.bed == SPLITS and (folder / SPLITS).is_file():
                config = config.model_copy(update={"bed": str(folder / SPLITS)})
            return TrainedModel(backbone, card.alphabet, config, card.step, digest, run, card.data)
        except CheckpointError as fault:
            if folder == path:
                raise
            _log.warning("%s; trying the checkpoint before it", fault)
            missing = fault
    raise missing


def _explain_no_model(path: Path) -> CheckpointError:
    if os.path.lexists(path / CARD) or not os.path.lexists(path / PUBLISHED):
        fix = "give a run folder or a checkpoint folder"
        return CheckpointError("is missing (not found)", file=path / CARD, fix=fix)
    domain = read_json(path / PUBLISHED).get("domain")
    of = f" of the domain {domain}" if isinstance(domain, str) else ""
    what = f"describes a published network{of}, not a run of genodiff ({CARD} is not found)"
    fix = "make a run folder of it: genodiff checkpoint import"
    return CheckpointError(what, file=path / PUBLISHED, fix=fix)


def check_folder(path: Path) -> dict[str, Any]:
    """What stands in a run or checkpoint folder, after all of it has been read.

    Step, digest and parameters of the model, and the steps of all checkpoints. Raises
    `CheckpointError` for the first fault.
    """
    model = load_model(path)
    steps = list_steps(path)
    for step in steps:
        read_state(locate_checkpoint(path, step))
    if (path / MANIFEST).exists():
        read_state(path)
    return {
        "step": model.step,
        "digest": model.digest,
        "checkpoints": steps,
        "parameters": sum(p.numel() for p in model.backbone.parameters()),
    }


def _find_candidates(path: Path) -> Iterator[Path]:
    """Folders that may hold the model of `path`, newest first; a run's top before its copy."""
    steps = list_steps(path)
    top = any((path / name).exists() or (path / name).is_symlink() for name in (WEIGHTS, CARD))
    if top and (not steps or read_card(path).step >= steps[0]):
        yield path
    else:
        yield from (locate_checkpoint(path, step) for step in steps)


def _read_backbone(folder: Path, card: Card, device: str) -> Backbone:
    weights = folder / WEIGHTS
    if not weights.is_file() or weights.stat().st_size < _POINTER:
        read_bytes(weights)  # says what stands there instead
    _check_size(folder, card)
    backbone = build_backbone(card.config, card.alphabet, seed=TO_FILL)
    wanted = {name: tuple(t.shape) for name, t in collect_tensors(backbone).items()}
    tensors = read_tensors(folder / WEIGHTS, wanted, card.weights_sha256, card.dtype)
    fill_module(backbone, tensors)
    return backbone.to(device).eval()


def _check_size(folder: Path, card: Card) -> None:
    """Raises `CheckpointError` where the network is larger than the weight file."""
    config, alphabet = card.config, card.alphabet
    each, kept = (2, "float16") if card.dtype == HALF else (4, "float32")
    try:
        there = (folder / WEIGHTS).stat().st_size
    except OSError:
        there = 0
    asked = config.backbone.n_parameters(alphabet.padded_size)
    if each * asked > there + each * alphabet.padded_size * config.backbone.d_model:
        shape = f"d_model {config.backbone.d_model} and n_layer {config.backbone.n_layer}"
        what = f"{shape} ask for {asked} parameters ({each * asked} bytes of memory), but "
        what += f"{WEIGHTS} is only {there} bytes large: it is cut short, or its dtype is "
        raise refuse_file(folder / CARD, f"{what}not {kept}")


def build_backbone(config: RunConfig, alphabet: Alphabet, *, seed: int = 0) -> Backbone:
    """The network of a configuration, with weights drawn from `seed`, or to be filled."""
    return config.backbone.build(alphabet.padded_size, alphabet.complement, seed=seed)


def build_diffusion(config: RunConfig, alphabet: Alphabet) -> MaskedDiffusion:
    """The diffusion that a configuration names."""
    noise = schedule(config.diffusion.schedule, **config.diffusion.schedule_options)
    return MaskedDiffusion(
        noise, alphabet.mask_id, alphabet.targets, config.backbone.time_conditioned
    )


def build_objective(config: RunConfig, diffusion: MaskedDiffusion) -> Objective:
    """The objective that a configuration names."""
    return objective(config.diffusion.objective, diffusion, **config.diffusion.own())


def collect_tensors(module: nn.Module) -> dict[str, Tensor]:
    """The state of a module, each tensor once: tied ones stand under their first name."""
    seen: set[int] = set()
    out = {}
    for name, tensor in module.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            out[name] = tensor.detach()
    return out


def fill_module(module: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Copy `tensors` (names as `collect_tensors` gives them) into the module, bit for bit."""
    mine = collect_tensors(module)
    if mine.keys() != tensors.keys():
        what = f"tensors {sorted(mine.keys() ^ tensors.keys())[:3]} do not belong together"
        raise CheckpointError(what, fix=AGAIN)
    with torch.no_grad():
        for name, tensor in mine.items():
            tensor.copy_(tensors[name])
