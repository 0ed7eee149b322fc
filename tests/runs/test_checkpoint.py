"""Checkpoints: whole or absent, judged before use, the newest sound one chosen by its step."""

import json
import pickle
import shutil
from collections.abc import Callable
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tiny_training import tiny

from genodiff.alphabet import DNA
from genodiff.errors import CheckpointError, MachineError
from genodiff.runs import checkpoint
from genodiff.runs.checkpoint import (
    State,
    list_steps,
    locate_checkpoint,
    prune_checkpoints,
    read_state,
    restore_state,
    save_checkpoint,
)
from genodiff.runs.model import build_backbone, collect_tensors, load_model
from genodiff.runs.sealed_files import seal

FILES = (*checkpoint._MEMBERS, checkpoint.MANIFEST)


def write(run: Path, step: int, **changes: Any) -> Path:
    """A checkpoint of an untrained network."""
    config = tiny(**changes)
    weights = collect_tensors(build_backbone(config, DNA))
    tensors = {f"weights.{n}": t + step for n, t in weights.items()}
    state = State(step, weights, tensors, {"seconds": 0.1, "tokens": step})
    return save_checkpoint(run, state, config, DNA, {"fingerprint": "f"})


def edit(path: Path, change: Callable[[dict[str, Any]], Any], *, sealed: bool = False) -> None:
    """Change a JSON file; with `sealed`, as someone would who knows the seal."""
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(seal(values) if sealed else values))


def test_a_checkpoint_gives_back_every_bit(tmp_path):
    write(tmp_path, 20)
    state = restore_state(tmp_path)
    assert (state.step, state.counters) == (20, {"step": 20, "seconds": 0.1, "tokens": 20})
    for name, tensor in collect_tensors(build_backbone(tiny(), DNA)).items():
        assert torch.equal(state.weights[name], tensor)
        assert torch.equal(state.tensors[f"weights.{name}"], tensor + 20)


def test_the_newest_is_chosen_by_step_not_by_name_or_time(tmp_path):
    for step in (99999999, 7, 100000000, 20):
        write(tmp_path, step)
    (tmp_path / "checkpoints" / "step_0000003x").mkdir()
    assert list_steps(tmp_path) == [100000000, 99999999, 20, 7]
    state = restore_state(tmp_path)
    assert state.step == 100000000


def test_pruning_keeps_the_newest(tmp_path):
    for step in (5, 10, 15, 20):
        write(tmp_path, step)
    prune_checkpoints(tmp_path, 2)
    assert list_steps(tmp_path) == [20, 15]
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2


def test_the_same_state_gives_the_same_bytes(tmp_path):
    one, two = write(tmp_path / "a", 3), write(tmp_path / "b", 3)
    for name in FILES:
        assert (one / name).read_bytes() == (two / name).read_bytes()


def test_saving_a_step_again_keeps_a_sound_checkpoint_and_replaces_a_corrupt_one(tmp_path):
    folder = write(tmp_path, 3)
    before = folder.stat().st_ino
    write(tmp_path, 3)
    assert folder.stat().st_ino == before
    (folder / "trainer.json").write_text("{}")
    write(tmp_path, 3)
    read_state(folder)
    assert (tmp_path / "checkpoints" / "step_00000003.corrupt").is_dir()


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "a file is missing": lambda f: (f / "trainer.safetensors").unlink(),
    "a file is empty": lambda f: (f / "model.safetensors").write_bytes(b""),
    "a file is cut": lambda f: (f / "trainer.safetensors").write_bytes(
        (f / "trainer.safetensors").read_bytes()[:-1]
    ),
    "the manifest is missing": lambda f: (f / "manifest.json").unlink(),
    "the manifest is empty": lambda f: (f / "manifest.json").write_bytes(b""),
    "the manifest lists less": lambda f: edit(
        f / "manifest.json", lambda v: v["files"].pop("trainer.json"), sealed=True
    ),
    "the manifest is of another step": lambda f: edit(
        f / "manifest.json", lambda v: v.update(step=4), sealed=True
    ),
    "a description was edited": lambda f: edit(
        f / "model.json", lambda v: v["config"]["optim"].update(lr=0.1)
    ),
    "a file is a link": lambda f: (
        (f / "model.json").rename(f / "x.json"),
        (f / "model.json").symlink_to("x.json"),
    ),
    "a file is a folder": lambda f: ((f / "model.json").unlink(), (f / "model.json").mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_newest_checkpoint_is_set_aside_and_the_one_before_it_taken(
    tmp_path, damage, caplog
):
    write(tmp_path, 10)
    newest = write(tmp_path, 20)
    damage(newest)
    state = restore_state(tmp_path)
    assert state.step == 10
    assert newest.with_name("step_00000020.corrupt").is_dir()
    assert "step_00000020" in caplog.text
    assert load_model(tmp_path).step == 10


@settings(
    max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(st.sampled_from(FILES), st.floats(0, 1), st.integers(0, 7))
def test_no_flipped_bit_goes_unseen(tmp_path, name, where, bit):
    folder = tmp_path / "checkpoints" / "step_00000020"
    if not folder.exists():
        write(tmp_path, 20)
    path = folder / name
    raw = path.read_bytes()
    at = int(where * (len(raw) - 1))
    path.write_bytes(raw[:at] + bytes([raw[at] ^ 1 << bit]) + raw[at + 1 :])
    try:
        if name == "manifest.json" and same_json(raw, path.read_bytes()):
            read_state(folder)
        else:
            with pytest.raises(CheckpointError):
                read_state(folder)
    finally:
        path.write_bytes(raw)


def same_json(one: bytes, two: bytes) -> bool:
    """Whether a flipped byte left the same values: white space, or e for E."""
    try:
        return bool(json.loads(one) == json.loads(two))
    except ValueError:
        return False


def test_where_all_are_corrupt_training_does_not_start_anew_and_names_them(tmp_path):
    for step in (10, 20):
        (write(tmp_path, step) / "trainer.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"step_00000020.*step_00000010"):
        restore_state(tmp_path)
    assert list_steps(tmp_path) == [20, 10]


def test_a_checkpoint_of_a_later_version_is_refused_not_passed_over(tmp_path):
    write(tmp_path, 10)
    edit(write(tmp_path, 20) / "manifest.json", lambda v: v.update(format_version=999), sealed=True)
    with pytest.raises(CheckpointError, match=r"999 is newer.*upgrade"):
        restore_state(tmp_path)


@pytest.mark.parametrize(
    "damage", [(b'_version": 1', b'_version": 5'), (b'"format_v', b'"bormat_v')]
)
def test_a_damaged_byte_in_the_version_is_damage_and_no_later_version(tmp_path, damage):
    write(tmp_path, 10)
    path = write(tmp_path, 20) / "manifest.json"
    path.write_bytes(path.read_bytes().replace(*damage))
    state = restore_state(tmp_path)
    assert state.step == 10
    assert (tmp_path / "checkpoints" / "step_00000020.corrupt").is_dir()


def test_a_pickle_in_a_checkpoint_is_refused_and_never_read(tmp_path):
    folder = write(tmp_path, 10)
    (folder / "optimizer.pt").write_bytes(pickle.dumps({}))
    for use in (restore_state, load_model):
        with pytest.raises(CheckpointError, match=r"optimizer\.pt.*pickle"):
            use(tmp_path)


def model_only(folder: Path) -> Path:
    """A user's copy of the two model files, without manifest."""
    source = write(folder / "run", 20)
    target = folder / "model"
    target.mkdir()
    for name in ("model.safetensors", "model.json"):
        shutil.copy(source / name, target / name)
    return target


def test_the_two_model_files_alone_are_a_model(tmp_path):
    folder = model_only(tmp_path)
    model = load_model(folder)
    assert (model.step, model.run, model.alphabet) == (20, folder, DNA)
    assert len(model.digest) == 12
    assert not model.backbone.training
    assert model.diffusion.targets == DNA.targets
    weights = collect_tensors(build_backbone(tiny(), DNA))
    assert all(torch.equal(t, weights[n]) for n, t in collect_tensors(model.backbone).items())


def put(at: str, value: Any) -> Callable[[dict[str, Any]], Any]:
    """A change of one value, at a dotted place."""
    *above, last = at.split(".")
    return lambda values: reduce(getitem, above, values).update({last: value})


TOKENS = list(DNA.tokens)
TOKENS[7], TOKENS[8] = TOKENS[8], TOKENS[7]
BAD_CARDS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "of a later version": (put("format_version", 999), "999 is newer"),
    "of no version": (put("format_version", "1"), "format_version"),
    "with a permuted vocabulary": (put("alphabet.tokens", TOKENS), "or its complement differs"),
    "with another complement": (put("alphabet.complement", [*range(16)]), "complement differs"),
    "with a broken vocabulary": (put("alphabet.mask_id", 99), "vocabulary"),
    "of another domain": (put("domain", "text"), "domain 'text'"),
    "that asks for a giant": (put("config.backbone.d_model", 10**9), "d_model 1000000000 .* mem"),
    "with layers below zero": (put("config.backbone.n_layer", -1), "n_layer"),
    "that names code": (put("auto_map", {"AutoModel": "evil.Model"}), "auto_map.*no remote code"),
    "that names a path": (put("tensors", "/etc/passwd"), "tensors.*no outside path"),
    "without a key": (lambda v: v.pop("config"), "'config' is missing"),
    "with a wider network": (put("config.backbone.d_model", 15), "shape"),
    "of other weights": (put("weights_sha256", "0" * 64), "hash"),
    "with a step that is no number": (put("step", "20"), "step"),
}


@pytest.mark.parametrize("case", BAD_CARDS, ids=str)
@pytest.mark.parametrize("sealed", [False, True], ids=["naively", "with a new seal"])
def test_a_description_is_judged_before_anything_is_allocated(tmp_path, case, sealed):
    folder = model_only(tmp_path)
    change, message = BAD_CARDS[case]
    edit(folder / "model.json", change, sealed=sealed)
    with pytest.raises(
        CheckpointError, match=message if sealed else f"{message}|changed after it was written"
    ) as caught:
        load_model(folder)
    assert "model" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"a": NaN}', '{"a": 1, "a": 2}', "\xff", "[" * 100_000]
)
def test_a_description_that_is_no_json_object_is_refused(tmp_path, text):
    folder = model_only(tmp_path)
    (folder / "model.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(CheckpointError, match=r"model\.json.*(JSON|empty)"):
        load_model(folder)


def rewrite(folder: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    """Change the weights, and the hash in the description with them."""
    import hashlib

    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    edit(folder / "model.json", put("weights_sha256", digest), sealed=True)


BAD_WEIGHTS: dict[str, tuple[Callable[[dict[str, torch.Tensor]], Any], str]] = {
    "one of another shape": (
        lambda t: t.update(embedding=t["embedding"][:, :4].contiguous()),
        r"embedding has shape \[16, 4\], not \[16, 16\]",
    ),
    "one too few": (lambda t: t.pop("embedding"), "embedding is missing"),
    "one too many": (lambda t: t.update(extra=torch.zeros(1)), "extra does not belong"),
    "half precision": (lambda t: t.update(embedding=t["embedding"].half()), "dtype F16"),
    "a value that is no number": (
        lambda t: t["embedding"].view(-1)[3:4].fill_(float("nan")),
        "embedding .* not finite",
    ),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS, ids=str)
def test_weights_that_do_not_fit_their_description_are_refused(tmp_path, case):
    folder = model_only(tmp_path)
    change, message = BAD_WEIGHTS[case]
    rewrite(folder, change)
    with pytest.raises(CheckpointError, match=message):
        load_model(folder)


@pytest.mark.parametrize(
    "content", [pickle.dumps([1]), b"PK\x03\x04", b"", b"\x08" + bytes(7) + b"notjson!", bytes(100)]
)
def test_a_file_that_is_no_safetensors_is_refused(tmp_path, content):
    folder = model_only(tmp_path)
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        load_model(folder)


def test_a_link_to_the_weights_is_refused(tmp_path):
    folder = model_only(tmp_path)
    (folder / "model.safetensors").rename(tmp_path / "elsewhere")
    (folder / "model.safetensors").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match="symlink"):
        load_model(folder)


def test_no_folder_a_file_and_an_empty_folder_are_told_apart(tmp_path):
    with pytest.raises(CheckpointError, match="not there"):
        load_model(tmp_path / "nothing")
    (tmp_path / "model.pt").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"model\.pt: pickles"):
        load_model(tmp_path / "model.pt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"model\.json: is missing"):
        load_model(tmp_path / "empty")


def test_a_full_disk_leaves_the_older_checkpoint_and_nothing_else(tmp_path, monkeypatch):
    write(tmp_path, 10)

    def full(*_: object) -> None:
        raise MachineError("cannot be written: No space left on device", file="x")

    monkeypatch.setattr(checkpoint.atomic, "write_json", full)
    with pytest.raises(MachineError, match="No space"):
        write(tmp_path, 20)
    assert [p.name for p in (tmp_path / "checkpoints").iterdir()] == ["step_00000010"]
    read_state(locate_checkpoint(tmp_path, 10))


def test_an_edited_description_is_seen_without_a_manifest_too(tmp_path):
    folder = model_only(tmp_path)
    edit(folder / "model.json", lambda v: v["config"]["optim"].update(lr=0.1))
    with pytest.raises(CheckpointError, match=r"model\.json: was changed after it was written"):
        load_model(folder)
