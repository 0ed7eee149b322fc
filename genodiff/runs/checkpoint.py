"""Checkpoints: folders that are complete or absent, written beside a run that may die at any
instruction.

    RUN/checkpoints/step_00000020/   model.safetensors, model.json
    averaged weights, as a user loads them
                                     trainer.safetensors, trainer.json  raw weights, AdamW's
                                     moments, counters
                                     manifest.json
                                     size and sha256 of each, under a seal

A folder is filled under a temporary name, synced, renamed, its parent synced; only then are older
ones pruned. There is no pointer to the latest: the newest valid one is chosen by step. No pickle is
written or read.
"""

import hashlib
import logging
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from genodiff.alphabet import Alphabet
from genodiff.backbones.backbone import Backbone
from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.objective import Objective, objective
from genodiff.diffusion.schedule import schedule
from genodiff.errors import CheckpointError, GenodiffError, UsageError
from genodiff.io import atomic
from genodiff.runs.config import RunConfig
from genodiff.runs.weights import (
    CARD,
    FORMAT_VERSION,
    WEIGHTS,
    Card,
    check_version,
    describe,
    plain,
    read_backbone,
    read_bytes,
    read_card,
    read_json,
    read_tensors,
    seal,
    to_bytes,
)

STATE, STATE_CARD, MANIFEST = "trainer.safetensors", "trainer.json", "manifest.json"
FOLDER = "checkpoints"
PUBLISHED = "config.json"

_MEMBERS = (WEIGHTS, CARD, STATE, STATE_CARD)
_STEP = re.compile(r"step_(\d{8,})$")
_PICKLES = {
    ".pt",
    ".pth",
    ".pkl",
    ".pickle",
    ".bin",
    ".ckpt",
    ".npz",
    ".npy",
    ".joblib",
    ".dill",
    ".tar",
}
_AGAIN = "use an undamaged checkpoint"
_log = logging.getLogger("genodiff")


class Model(NamedTuple):
    """A trained model, ready to use."""

    backbone: Backbone
    diffusion: MaskedDiffusion
    alphabet: Alphabet
    config: RunConfig
    step: int
    digest: str
    run: Path
    data: dict[str, Any] = {}  # noqa: RUF012

    @property
    def objective(self) -> Objective:
        """What the network was trained with, and is to be judged by."""
        return objective_of(self.config, self.diffusion)


class State(NamedTuple):
    """What training goes on from: everything it does not compute anew from (config, step)."""

    step: int
    weights: dict[str, Tensor]
    tensors: dict[str, Tensor]
    counters: dict[str, Any]


def folder_of(run: Path, step: int) -> Path:
    """Where the checkpoint of `step` stands."""
    return run / FOLDER / f"step_{step:08d}"


def steps_of(run: Path) -> list[int]:
    """Steps that have a checkpoint folder, newest first; nothing about them is checked."""
    there = run / FOLDER
    found = (_STEP.fullmatch(p.name) for p in (there.iterdir() if there.is_dir() else ()))
    return sorted((int(match[1]) for match in found if match), reverse=True)


def save(
    run: Path, state: State, config: RunConfig, alphabet: Alphabet, data: dict[str, Any]
) -> Path:
    """Write the checkpoint of `state.step`, whole or not at all; one that stands there already is
    kept if it is sound.

    `data` names the data (fingerprint, source). Raises `MachineError` where the disk is full; older
    checkpoints stay.
    """
    target = folder_of(run, state.step)
    if os.path.lexists(target):
        try:
            verify(target)
            return target
        except CheckpointError as fault:
            set_aside(target, fault)
    weights = to_bytes(state.weights)
    card = describe(config, alphabet, state.step, hashlib.sha256(weights).hexdigest(), data)
    with atomic.atomic_directory(target) as folder:
        atomic.write_bytes(folder / WEIGHTS, weights)
        atomic.write_json(folder / CARD, card)
        atomic.write_bytes(folder / STATE, to_bytes(state.tensors))
        atomic.write_json(folder / STATE_CARD, {"step": state.step, **plain(state.counters)})
        files = {name: _stamp(read_bytes(folder / name)) for name in _MEMBERS}
        atomic.write_json(
            folder / MANIFEST,
            seal({"format_version": FORMAT_VERSION, "step": state.step, "files": files}),
        )
    return target


def prune(run: Path, keep: int) -> None:
    """Remove all but the newest `keep` checkpoints. A folder loses its name first, so that none is
    ever half there.
    """
    for step in steps_of(run)[keep:]:
        folder = folder_of(run, step)
        doomed = folder.with_name(f".genodiff-{os.getpid()}-pruned{step}.tmp")
        atomic.crash_point()
        folder.rename(doomed)
        atomic.crash_point()
        shutil.rmtree(doomed, ignore_errors=True)


def verify(folder: Path) -> State:
    """The state in a checkpoint folder, after every check: manifest, hashes, description, shapes,
    values.

    Raises `CheckpointError` naming the file at fault.
    """
    card, _ = verify_files(folder)
    counters = read_json(folder / STATE_CARD)
    if counters.get("step") != card.step:
        raise CheckpointError(
            f"is of step {counters.get('step')}, the weights of {card.step}",
            file=folder / STATE_CARD,
            fix=_AGAIN,
        )
    weights = read_tensors(folder / WEIGHTS, sha256=card.weights_sha256)
    return State(card.step, weights, read_tensors(folder / STATE), counters)


def verify_files(folder: Path) -> tuple[Card, dict[str, Any]]:
    """The description and the manifest of a checkpoint folder whose every file has its recorded
    hash.
    """
    refuse_pickles(folder)
    manifest = read_json(folder / MANIFEST)
    check_version(manifest, folder / MANIFEST)
    if seal(manifest) != manifest or not isinstance(manifest.get("files"), dict):
        raise CheckpointError(
            "the manifest was changed after it was written (checksum differs)",
            file=folder / MANIFEST,
            fix=_AGAIN,
        )
    files: dict[str, Any] = manifest["files"]
    for name in _MEMBERS:
        if name not in files:
            raise CheckpointError(
                f"does not list {name}: incomplete", file=folder / MANIFEST, fix=_AGAIN
            )
    for name in files:
        if Path(name).name != name:
            raise CheckpointError(
                f"lists '{name}', a path outside the folder", file=folder / MANIFEST, fix=_AGAIN
            )
        stamp = _stamp(read_bytes(folder / name))
        if stamp != files[name]:
            what = (
                "size"
                if not isinstance(files[name], dict) or stamp["bytes"] != files[name].get("bytes")
                else "sha256"
            )
            raise CheckpointError(
                f"is corrupt: its {what} differs from the manifest (checksum)",
                file=folder / name,
                fix=_AGAIN,
            )
    card = read_card(folder)
    named = _STEP.fullmatch(folder.name)
    if manifest.get("step") != card.step or (named and int(named[1]) != card.step):
        raise CheckpointError(
            f"is of step {card.step}, the folder or manifest of another",
            file=folder / CARD,
            fix=_AGAIN,
        )
    return card, manifest


def restore(run: Path) -> State | None:
    """The newest sound checkpoint's state, or None where the run has no checkpoint yet.

    A corrupt one is renamed to `*.corrupt`, with a warning, and the one before it is taken. Raises
    `CheckpointError` where all are corrupt (training never starts anew over a run) and where one is
    from a newer genodiff.
    """
    faults: list[tuple[Path, CheckpointError]] = []
    for step in steps_of(run):
        folder = folder_of(run, step)
        try:
            state = verify(folder)
        except CheckpointError as fault:
            if "format_version" in fault.what or fault.what.startswith("is a pickle"):
                raise
            faults.append((folder, fault))
            continue
        for bad, why in faults:
            set_aside(bad, why)
        return state
    if faults:
        named = "; ".join(str(fault) for _, fault in faults)
        fix = "restore one of them, or train into another --out"
        raise CheckpointError(f"no usable checkpoint: {named}", file=run, fix=fix)
    return None


def set_aside(folder: Path, fault: CheckpointError) -> None:
    """Rename a folder to `*.corrupt`, with a number where that is taken, and say so."""
    names = (folder.with_name(f"{folder.name}.corrupt{n or ''}") for n in range(1_000_000))
    target = next(name for name in names if not os.path.lexists(name))
    _log.warning("%s (renamed to %s; the checkpoint before it is used)", fault, target.name)
    atomic.crash_point()
    folder.rename(target)


def publish(run: Path, step: int) -> None:
    """Copy a checkpoint's model to the top of the run: weights, then the description that names
    their hash.
    """
    for name in (WEIGHTS, CARD):
        atomic.write_bytes(run / name, read_bytes(folder_of(run, step) / name))


def load_model(path: str | Path, device: str = "cpu") -> Model:
    """The model in a run folder (its newest weights) or in a checkpoint folder: averaged weights,
    in evaluation mode.

    Everything is judged before anything is allocated. In a run folder a corrupt checkpoint is
    passed over with a warning for the one before it. Raises `CheckpointError`, naming the file and
    the fault.
    """
    path = Path(path)
    if not path.exists():
        raise CheckpointError(
            "is not there (not found)", file=path, fix="give a run folder or a checkpoint folder"
        )
    if not path.is_dir():
        pickled = path.suffix.lower() in _PICKLES
        kind = (
            "pickles and archives are not supported: refused"
            if pickled
            else "is a file, not a folder"
        )
        raise CheckpointError(
            kind, file=path, fix="give a run folder with model.safetensors and model.json"
        )
    refuse_pickles(path)
    if not os.path.lexists(path / CARD) and os.path.lexists(path / WEIGHTS):
        read_tensors(
            path / WEIGHTS
        )  # of weights without a description, what is wrong with them is said first
    missing = _no_model(path)
    if missing.file == path / PUBLISHED and not steps_of(path):
        raise missing
    for folder in candidates(path):
        try:
            if folder != path or (folder / MANIFEST).exists():
                card, _ = verify_files(folder)
            else:
                card = read_card(folder)
            return _model(folder, card, path, device)
        except CheckpointError as fault:
            if folder == path:
                raise
            _log.warning("%s; trying the checkpoint before it", fault)
            missing = fault
    raise missing


def _no_model(path: Path) -> CheckpointError:
    """Why there is no model in a folder without a checkpoint."""
    if os.path.lexists(path / CARD) or not os.path.lexists(path / PUBLISHED):
        return CheckpointError(
            "is missing (not found)",
            file=path / CARD,
            fix="give a run folder or a checkpoint folder",
        )
    domain = read_json(path / PUBLISHED).get("domain")
    of = f" of the domain {domain}" if isinstance(domain, str) else ""
    what = f"describes a published network{of}, not a run of genodiff ({CARD} is not found)"
    return CheckpointError(
        what, file=path / PUBLISHED, fix="make a run folder of it: genodiff checkpoint import"
    )


def why_no_run(path: Path) -> GenodiffError:
    """What is in the way of going on in a folder without a `config.yaml`. Raises `CheckpointError`
    where it carries a pickle.
    """
    if not path.is_dir():
        return UsageError(
            "is no run folder (no such config.yaml)", file=path, fix="give an existing run folder"
        )
    refuse_pickles(path)
    if (path / STATE_CARD).is_file():
        said = ", ".join(
            f"{k} {v}"
            for k, v in read_json(path / STATE_CARD).items()
            if isinstance(v, int | str | None)
        )
        what = (
            f"holds no exact state of the optimizer and of random numbers, and {path.name} "
            f"no config.yaml (it says {said[:80]})"
        )
        return CheckpointError(
            what,
            file=path / STATE_CARD,
            fix="give a run folder of genodiff, or begin from the weights with --init",
        )
    if any(os.path.lexists(path / name) for name in (WEIGHTS, CARD, PUBLISHED)):
        what = "is no run folder (no config.yaml): weights only, without the state of an optimizer"
        return CheckpointError(
            what, file=path, fix="begin from them with --init, and another --out"
        )
    inside = sorted(p.name for p in path.iterdir() if p.is_dir())
    if inside:
        what = (
            f"is no run folder (no config.yaml), and none of {', '.join(inside[:4])} is a "
            f"usable checkpoint of genodiff"
        )
        return CheckpointError(what, file=path, fix="give an existing run folder")
    return UsageError(
        "is no run folder (no such config.yaml)", file=path, fix="give an existing run folder"
    )


def check(path: Path) -> dict[str, Any]:
    """What stands in a run or checkpoint folder, all of it read and judged: step, digest, steps of
    all checkpoints.

    Raises `CheckpointError` for the first thing that is not sound; nothing is passed over.
    """
    model = load_model(path)
    steps = steps_of(path)
    for step in steps:
        verify(folder_of(path, step))
    if (path / MANIFEST).exists():
        verify(path)
    return {
        "step": model.step,
        "digest": model.digest,
        "checkpoints": steps,
        "parameters": _size(model),
    }


def _size(model: Model) -> int:
    return sum(p.numel() for p in model.backbone.parameters())


def candidates(path: Path) -> Iterator[Path]:
    """Folders that may hold the model of `path`, best first: newest step first, the top of a run
    before its copy.
    """
    steps = steps_of(path)
    top = any((path / name).exists() or (path / name).is_symlink() for name in (WEIGHTS, CARD))
    if top and (not steps or read_card(path).step >= steps[0]):
        yield path
    else:
        yield from (folder_of(path, step) for step in steps)


def _model(folder: Path, card: Card, run: Path, device: str) -> Model:
    backbone = read_backbone(folder, card, device)
    run = run.parent.parent if _STEP.fullmatch(run.name) and run.parent.name == FOLDER else run
    return Model(
        backbone,
        diffusion_of(card.config, card.alphabet),
        card.alphabet,
        card.config,
        card.step,
        card.weights_sha256[:12],
        run,
        card.data,
    )


def diffusion_of(config: RunConfig, alphabet: Alphabet) -> MaskedDiffusion:
    """The diffusion that a configuration names."""
    noise = schedule(config.diffusion.schedule, **config.diffusion.schedule_options)
    return MaskedDiffusion(
        noise, alphabet.mask_id, alphabet.targets, config.backbone.time_conditioned
    )


def objective_of(config: RunConfig, diffusion: MaskedDiffusion) -> Objective:
    """The objective that a configuration names."""
    return objective(config.diffusion.objective, diffusion, **config.diffusion.own())


def refuse_pickles(folder: Path) -> None:
    """Raises `CheckpointError` where a folder that is to be read carries a file that could be a
    pickle.
    """
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.suffix.lower() in _PICKLES:
            what = (
                "is a pickle or an archive, which may run code: refused; only safetensors "
                "and JSON are read"
            )
            raise CheckpointError(what, file=path, fix="remove it")


def _stamp(raw: bytes) -> dict[str, Any]:
    return {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
