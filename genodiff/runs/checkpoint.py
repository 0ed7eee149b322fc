"""Checkpoints: folders that are complete or absent, beside a run that may die at any instruction.

    RUN/checkpoints/step_00000020/
        model.safetensors, model.json      averaged weights, and what they are weights of
        trainer.safetensors, trainer.json  raw weights, AdamW's moments, counters
        manifest.json                      size and sha256 of each, under a seal

A folder is filled under a temporary name, synced, renamed, its parent synced. Only then are older
ones removed. There is no pointer to the latest: the newest valid one is chosen by step.
"""

import hashlib
import json
import logging
import os
import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from genodiff.alphabet import ALPHABETS, Alphabet
from genodiff.errors import CheckpointError, GenodiffError
from genodiff.io import atomic
from genodiff.runs.config import RunConfig
from genodiff.runs.run_paths import CONFIG
from genodiff.runs.sealed_files import (
    AGAIN,
    FLOAT,
    FORMAT_VERSION,
    HALF,
    check_seal,
    check_version,
    encode_tensors,
    read_bytes,
    read_json,
    read_tensors,
    refuse_pickles,
    seal,
    to_utf8,
)
from genodiff.version import __version__
from genodiff.vocabulary import Vocabulary, alphabet_from_json

WEIGHTS, CARD = "model.safetensors", "model.json"
STATE, STATE_CARD, MANIFEST = "trainer.safetensors", "trainer.json", "manifest.json"
FOLDER = "checkpoints"

_MEMBERS = (WEIGHTS, CARD, STATE, STATE_CARD)
_STEP = re.compile(r"step_(\d{8,})$")
_KEYS = {
    "format_version", "genodiff", "step", "domain", "alphabet", "alphabet_sha256", "config",
    "weights_sha256", "data", "seal",
}  # fmt: skip
_DTYPE = "weights_dtype"  # stands there where weights are not kept in float32
_log = logging.getLogger("genodiff")


class Card(NamedTuple):
    """A judged `model.json`."""

    step: int
    alphabet: Alphabet
    config: RunConfig
    weights_sha256: str
    data: dict[str, Any]
    dtype: str = FLOAT


def describe_model(
    config: RunConfig,
    alphabet: Alphabet,
    step: int,
    weights_sha256: str,
    data: dict[str, Any],
    dtype: str = FLOAT,
) -> dict[str, Any]:
    """The content of `model.json`; `dtype` is how the weights are kept, F32 or F16."""
    kept = {} if dtype == FLOAT else {_DTYPE: dtype}
    return seal(
        {
            "format_version": FORMAT_VERSION,
            "genodiff": __version__,
            "step": step,
            "domain": alphabet.domain,
            "alphabet": json.loads(json.dumps(alphabet.to_json())),
            "alphabet_sha256": alphabet.fingerprint(),
            "config": to_utf8(config.model_dump(mode="json")),
            "weights_sha256": weights_sha256,
            "data": to_utf8(data),
            **kept,
        }
    )


def read_card(folder: Path) -> Card:
    """`model.json` of `folder`, after every check.

    Raises `CheckpointError`, naming the file and the value at fault.
    """
    path = folder / CARD
    values = read_json(path)
    check_version(values, path)
    unknown = sorted(values.keys() - _KEYS - {_DTYPE})
    if unknown:
        what = (
            f"unknown key '{unknown[0]}'; no outside path and no remote code is followed from here"
        )
        raise CheckpointError(what, file=path, fix="remove it")
    for key in sorted(_KEYS - values.keys()):
        raise CheckpointError(f"the key '{key}' is missing", file=path, fix=AGAIN)
    alphabet = _alphabet(values, path)
    if not isinstance(values["config"], dict):
        raise CheckpointError("config is not an object: invalid", file=path, fix=AGAIN)
    config = RunConfig.parse(values["config"], file=path, error=CheckpointError)
    if config.domain != alphabet.domain:
        what = f"config is of domain {config.domain}, the vocabulary of {alphabet.domain}"
        raise CheckpointError(what, file=path, fix=AGAIN)
    step, digest, data = values["step"], values["weights_sha256"], values["data"]
    if (
        type(step) is not int
        or step < 0
        or not isinstance(digest, str)
        or not isinstance(data, dict)
    ):
        what = "step, weights_sha256 or data has an invalid value"
        raise CheckpointError(what, file=path, fix=AGAIN)
    dtype = values.get(_DTYPE, FLOAT)
    if dtype not in (FLOAT, HALF):
        what = f"{_DTYPE} is {dtype!r}: must be {FLOAT} or {HALF}"
        raise CheckpointError(what, file=path, fix=AGAIN)
    check_seal(values, path)
    return Card(step, alphabet, config, digest, data, dtype)


def _alphabet(values: dict[str, Any], path: Path) -> Alphabet:
    if not isinstance(values["alphabet"], dict):
        raise CheckpointError("the vocabulary is not an object: invalid", file=path, fix=AGAIN)
    try:
        alphabet = alphabet_from_json(values["alphabet"])
    except GenodiffError as fault:
        raise CheckpointError(f"the vocabulary {fault.what}", file=path, fix=AGAIN) from None
    own = alphabet if isinstance(alphabet, Vocabulary) else ALPHABETS.get(alphabet.name)
    if own is None or values["domain"] != alphabet.domain:
        what = (
            f"domain '{values['domain']}' with vocabulary '{alphabet.name}' is none that this "
            f"genodiff knows"
        )
        raise CheckpointError(what, file=path, fix=AGAIN)
    known = own.fingerprint()
    if alphabet.fingerprint() != known or values["alphabet_sha256"] != known:
        what = (
            f"the vocabulary or its complement differs from '{alphabet.name}' (fingerprint "
            f"{known[:12]})"
        )
        raise CheckpointError(what, file=path, fix=AGAIN)
    return alphabet


class State(NamedTuple):
    """What training goes on from: everything it does not compute anew from (config, step)."""

    step: int
    weights: dict[str, Tensor]
    tensors: dict[str, Tensor]
    counters: dict[str, Any]


def locate_checkpoint(run: Path, step: int) -> Path:
    """Where the checkpoint of `step` stands."""
    return run / FOLDER / f"step_{step:08d}"


def find_run_folder(path: Path) -> Path:
    """The run folder that a checkpoint folder belongs to; any other path as it is."""
    is_one = _STEP.fullmatch(path.name) and path.parent.name == FOLDER
    return path.parent.parent if is_one else path


def is_run(folder: Path) -> bool:
    """Whether a folder is a run or a checkpoint of ours."""
    named = any(os.path.lexists(folder / name) for name in (CARD, CONFIG))
    return named or bool(list_steps(folder))


def list_steps(run: Path) -> list[int]:
    """Steps that have a checkpoint folder, newest first; nothing about them is checked."""
    there = run / FOLDER
    found = (_STEP.fullmatch(p.name) for p in (there.iterdir() if there.is_dir() else ()))
    return sorted((int(match[1]) for match in found if match), reverse=True)


def save_checkpoint(
    run: Path, state: State, config: RunConfig, alphabet: Alphabet, data: dict[str, Any]
) -> Path:
    """Write the checkpoint of `state.step`, whole or not at all.

    One that exists already is kept if it is sound. `data` names the data (fingerprint, source).
    Raises `MachineError` where the disk is full; older checkpoints stay.
    """
    target = locate_checkpoint(run, state.step)
    if os.path.lexists(target):
        try:
            read_state(target)
            return target
        except CheckpointError as fault:
            set_aside(target, fault)
    weights = encode_tensors(state.weights)
    card = describe_model(config, alphabet, state.step, hashlib.sha256(weights).hexdigest(), data)
    with atomic.atomic_directory(target) as folder:
        atomic.write_bytes(folder / WEIGHTS, weights)
        atomic.write_json(folder / CARD, card)
        atomic.write_bytes(folder / STATE, encode_tensors(state.tensors))
        atomic.write_json(folder / STATE_CARD, to_utf8({"step": state.step} | state.counters))
        files = {name: _stamp(read_bytes(folder / name)) for name in _MEMBERS}
        atomic.write_json(
            folder / MANIFEST,
            seal({"format_version": FORMAT_VERSION, "step": state.step, "files": files}),
        )
    return target


def prune_checkpoints(run: Path, keep: int) -> None:
    """Remove all but the newest `keep` checkpoints.

    A folder loses its name first, so that no half of one is ever found.
    """
    for step in list_steps(run)[keep:]:
        folder = locate_checkpoint(run, step)
        doomed = folder.with_name(f".genodiff-{os.getpid()}-pruned{step}.tmp")
        atomic.crash_point()
        folder.rename(doomed)
        atomic.crash_point()
        shutil.rmtree(doomed, ignore_errors=True)


def read_state(folder: Path) -> State:
    """The state in a checkpoint folder, after every check.

    Manifest, hashes, description, shapes and values are checked. Raises `CheckpointError` naming
    the file at fault.
    """
    card, _ = verify_folder(folder)
    counters = read_json(folder / STATE_CARD)
    if counters.get("step") != card.step:
        what = f"is of step {counters.get('step')}, the weights of {card.step}"
        raise CheckpointError(what, file=folder / STATE_CARD, fix=AGAIN)
    weights = read_tensors(folder / WEIGHTS, sha256=card.weights_sha256)
    return State(card.step, weights, read_tensors(folder / STATE), counters)


def verify_folder(folder: Path) -> tuple[Card, dict[str, Any]]:
    """The card and the manifest of a checkpoint folder whose files all have their hashes."""
    refuse_pickles(folder)
    manifest = read_json(folder / MANIFEST)
    sound = seal(manifest) == manifest
    if sound:  # else a damaged byte may have made another version of it
        check_version(manifest, folder / MANIFEST)
    if not sound or not isinstance(manifest.get("files"), dict):
        what = "the manifest was changed after it was written (checksum differs)"
        raise CheckpointError(what, file=folder / MANIFEST, fix=AGAIN)
    files: dict[str, Any] = manifest["files"]
    for name in _MEMBERS:
        if name not in files:
            what = f"does not list {name}: incomplete"
            raise CheckpointError(what, file=folder / MANIFEST, fix=AGAIN)
    for name in files:
        if Path(name).name != name:
            what = f"lists '{name}', a path outside the folder"
            raise CheckpointError(what, file=folder / MANIFEST, fix=AGAIN)
        stamp = _stamp(read_bytes(folder / name))
        if stamp != files[name]:
            if not isinstance(files[name], dict) or stamp["bytes"] != files[name].get("bytes"):
                what = "size"
            else:
                what = "sha256"
            raise CheckpointError(
                f"is corrupt: its {what} differs from the manifest (checksum)",
                file=folder / name,
                fix=AGAIN,
            )
    card = read_card(folder)
    named = _STEP.fullmatch(folder.name)
    if manifest.get("step") != card.step or (named and int(named[1]) != card.step):
        what = f"is of step {card.step}, the folder or manifest of another"
        raise CheckpointError(what, file=folder / CARD, fix=AGAIN)
    return card, manifest


def restore_state(run: Path) -> State | None:
    """The newest sound checkpoint's state, or None where the run has no checkpoint yet.

    A corrupt one is renamed to `*.corrupt`, with a warning, and the one before it is taken. Raises
    `CheckpointError` where all are corrupt (training never starts anew over a run) and where one is
    from a newer genodiff.
    """
    faults: list[tuple[Path, CheckpointError]] = []
    for step in list_steps(run):
        folder = locate_checkpoint(run, step)
        try:
            state = read_state(folder)
        except CheckpointError as fault:
            if "is newer than" in fault.what or fault.what.startswith("is a pickle"):
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


def publish_model(run: Path, step: int) -> None:
    """Copy a checkpoint's model to the top of the run.

    The weights go first, then the card that names their hash.
    """
    for name in (WEIGHTS, CARD):
        atomic.write_bytes(run / name, read_bytes(locate_checkpoint(run, step) / name))


def _stamp(raw: bytes) -> dict[str, Any]:
    return {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
