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
    FLOAT,
    FORMAT_VERSION,
    HALF,
    check_seal,
    check_version,
    encode_tensors,
    read_alphabet,
    read_bytes,
    read_json,
    read_tensors,
    refuse_file,
    refuse_pickles,
    seal,
    to_utf8,
)
from genodiff.version import __version__
from genodiff.vocabulary import Vocabulary

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
    told = {
        "format_version": FORMAT_VERSION,
        "genodiff": __version__,
        "step": step,
        "domain": alphabet.domain,
        "alphabet": json.loads(json.dumps(alphabet.to_json())),
        "alphabet_sha256": alphabet.fingerprint(),
        "config": to_utf8(config.model_dump(mode="json")),
        "weights_sha256": weights_sha256,
        "data": to_utf8(data),
    }
    return seal(told if dtype == FLOAT else told | {_DTYPE: dtype})


def read_card(folder: Path) -> Card:
    """`model.json` of `folder`, after every check. Raises `CheckpointError` naming the fault."""
    path = folder / CARD
    values = read_json(path)
    check_version(values, path)
    unknown = sorted(values.keys() - _KEYS - {_DTYPE})
    if unknown:
        what = f"unknown key '{unknown[0]}'; no outside path and no remote code is followed from"
        raise CheckpointError(f"{what} here", file=path, fix="remove it")
    for key in sorted(_KEYS - values.keys()):
        raise refuse_file(path, f"the key '{key}' is missing")
    alphabet = _alphabet(values, path)
    if not isinstance(values["config"], dict):
        raise refuse_file(path, "config is not an object: invalid")
    config = RunConfig.parse(values["config"], file=path, error=CheckpointError)
    if config.domain != alphabet.domain:
        what = f"config is of domain {config.domain}, the vocabulary of {alphabet.domain}"
        raise refuse_file(path, what)
    step, digest, data = values["step"], values["weights_sha256"], values["data"]
    kinds = type(step) is int and isinstance(digest, str) and isinstance(data, dict)
    if not kinds or step < 0:
        raise refuse_file(path, "step, weights_sha256 or data has an invalid value")
    dtype = values.get(_DTYPE, FLOAT)
    if dtype not in (FLOAT, HALF):
        raise refuse_file(path, f"{_DTYPE} is {dtype!r}: must be {FLOAT} or {HALF}")
    check_seal(values, path)
    return Card(step, alphabet, config, digest, data, dtype)


def _alphabet(values: dict[str, Any], path: Path) -> Alphabet:
    if not isinstance(values["alphabet"], dict):
        raise refuse_file(path, "the vocabulary is not an object: invalid")
    try:
        alphabet = read_alphabet(values["alphabet"])
    except GenodiffError as fault:
        raise refuse_file(path, f"the vocabulary {fault.what}") from None
    own = alphabet if isinstance(alphabet, Vocabulary) else ALPHABETS.get(alphabet.name)
    if own is None or values["domain"] != alphabet.domain:
        what = f"domain '{values['domain']}' with vocabulary '{alphabet.name}' is none that this "
        what += "genodiff knows"
        raise refuse_file(path, what)
    known = own.fingerprint()
    if alphabet.fingerprint() != known or values["alphabet_sha256"] != known:
        what = f"the vocabulary or its complement differs from '{alphabet.name}' (fingerprint "
        what += f"{known[:12]})"
        raise refuse_file(path, what)
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
        manifest = {"format_version": FORMAT_VERSION, "step": state.step, "files": files}
        atomic.write_json(folder / MANIFEST, seal(manifest))
    return target


def prune_checkpoints(run: Path, keep: int) -> None:
    """Remove all but the newest `keep` checkpoints; each is renamed first, never half there."""
    for step in list_steps(run)[keep:]:
        folder = locate_checkpoint(run, step)
        doomed = folder.with_name(f".genodiff-{os.getpid()}-pruned{step}.tmp")
        atomic.crash_point()
        folder.rename(doomed)
        atomic.crash_point()
        shutil.rmtree(doomed, ignore_errors=True)


def read_state(folder: Path) -> State:
    """The state in a checkpoint folder, after every check. Raises `CheckpointError`."""
    card = verify_folder(folder)
    counters = read_json(folder / STATE_CARD)
    if counters.get("step") != card.step:
        what = f"is of step {counters.get('step')}, the weights of {card.step}"
        raise refuse_file(folder / STATE_CARD, what)
    weights = read_tensors(folder / WEIGHTS, sha256=card.weights_sha256)
    return State(card.step, weights, read_tensors(folder / STATE), counters)


def verify_folder(folder: Path) -> Card:
    """The card of a checkpoint folder whose files all have their hashes."""
    refuse_pickles(folder)
    manifest = read_json(folder / MANIFEST)
    sound = seal(manifest) == manifest
    if sound:  # else a damaged byte may have made another version of it
        check_version(manifest, folder / MANIFEST)
    if not sound or not isinstance(manifest.get("files"), dict):
        what = "the manifest was changed after it was written (checksum differs)"
        raise refuse_file(folder / MANIFEST, what)
    files: dict[str, Any] = manifest["files"]
    for name in _MEMBERS:
        if name not in files:
            raise refuse_file(folder / MANIFEST, f"does not list {name}: incomplete")
    for name in files:
        if Path(name).name != name:
            raise refuse_file(folder / MANIFEST, f"lists '{name}', a path outside the folder")
        stamp = _stamp(read_bytes(folder / name))
        if stamp != files[name]:
            said = files[name].get("bytes") if isinstance(files[name], dict) else None
            what = "sha256" if stamp["bytes"] == said else "size"
            what = f"is corrupt: its {what} differs from the manifest (checksum)"
            raise refuse_file(folder / name, what)
    card = read_card(folder)
    named = _STEP.fullmatch(folder.name)
    if manifest.get("step") != card.step or (named and int(named[1]) != card.step):
        what = f"is of step {card.step}, the folder or manifest of another"
        raise refuse_file(folder / CARD, what)
    return card


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
    """Copy a checkpoint's weights, then the card with their hash, to the top of the run."""
    for name in (WEIGHTS, CARD):
        atomic.write_bytes(run / name, read_bytes(locate_checkpoint(run, step) / name))


def _stamp(raw: bytes) -> dict[str, Any]:
    return {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
