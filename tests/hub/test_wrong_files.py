"""Foreign files that are wrong, hostile or damaged: one line with file, reason and remedy; nothing
is run, nothing large is made.

Of the shared corpus of bad checkpoints (prefix K), the good ones are of a layout that stands for
any tool's own, so they are not ours to accept; what they test is tested on runs of ours.
"""

import io
import json
import os
import pickle
import re
import resource
import shutil
import struct
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from folders import SHARED
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from published_folders import CONFIG, write_published
from safetensors.torch import load_file, save_file

from genodiff.errors import CheckpointError
from genodiff.hub.archive import Archive, Opaque
from genodiff.hub.source import read_source
from genodiff.hub.weight_files import open_weights
from tests.commands import exit_code

WORD = "caduceus.backbone.embeddings.word_embeddings.embedding.weight"
LAYER = "caduceus.backbone.layers.0.mixer.submodule.mamba_fwd"


class Payload:
    """What an attacker pickles: a call that leaves a trace."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.canary}",)


Change = Callable[[Path], Any]
CONF, WEIGHTS = "config.json", "model.safetensors"


def config(**changes: Any) -> Change:
    return lambda folder: (folder / CONF).write_text(json.dumps(CONFIG | changes))


def state(change: Callable[[dict[str, torch.Tensor]], Any]) -> Change:
    def reweigh(folder: Path) -> None:
        tensors = load_file(folder / WEIGHTS)
        change(tensors)
        save_file({n: x.contiguous() for n, x in tensors.items()}, folder / WEIGHTS)

    return reweigh


def more(**tensors: torch.Tensor) -> Change:
    return state(lambda s: s.update(tensors))


def header(**changes: Any) -> Change:
    """Change what the header of the safetensors file says of `WORD`; the numbers stay."""

    def rehead(folder: Path) -> None:
        raw = (folder / WEIGHTS).read_bytes()
        size = struct.unpack("<Q", raw[:8])[0]
        told = json.loads(raw[8 : 8 + size])
        told[WORD].update(changes)
        text = json.dumps(told).encode()
        (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + size :])

    return rehead


def data(change: Callable[[bytes], bytes], name: str = WEIGHTS) -> Change:
    return lambda folder: (folder / name).write_bytes(change((folder / name).read_bytes()))


def drop(name: str) -> Change:
    return lambda folder: (folder / name).unlink()


def write_index(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    index = {"weight_map": {"x": "../../x.safetensors"}}
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index))


SWAPPED = "[CLS] [SEP] [BOS] [MASK] [PAD] [RESERVED] [UNK] C A G T N w x y z".split()
REV = f"{LAYER.replace('fwd', 'rev')}.in_proj.weight"
OTHER = {"blk.0.A_log": torch.ones(2, 12)}
WRONG: dict[str, tuple[Change, str, str]] = {
    "the config is missing": (drop(CONF), CONF, "missing"),
    "the config is empty": (data(lambda b: b"", CONF), CONF, "empty"),
    "the config is cut": (data(lambda b: b[:99], CONF), CONF, "JSON"),
    "the config is a list": (data(lambda b: b"[]", CONF), CONF, "object"),
    "the weights are missing": (drop(WEIGHTS), "", "no weights"),
    "the weights are empty": (data(lambda b: b""), WEIGHTS, "truncated"),
    "the header is cut": (data(lambda b: b[:50]), WEIGHTS, "header"),
    "the numbers are cut": (data(lambda b: b[:-1]), WEIGHTS, "truncated"),
    "something follows the numbers": (data(lambda b: b + b"PK\x03\x04"), WEIGHTS, "invalid"),
    "the header is not UTF-8": (data(lambda b: b[:9] + b"\xff" + b[10:]), WEIGHTS, "header"),
    "a shape overflows": (header(shape=[1 << 62, 8]), WEIGHTS, "header"),
    "offsets overlap": (header(data_offsets=[0, 768]), WEIGHTS, "header"),
    "a tensor is missing": (state(lambda s: s.pop(f"{LAYER}.A_log")), WEIGHTS, "A_log"),
    "the embedding is missing": (state(lambda s: s.pop(WORD)), WEIGHTS, "no embedding"),
    "a tensor is too many": (more(**{"x.weight": torch.zeros(1)}), WEIGHTS, "x.weight"),
    "a tensor has another shape": (more(**{f"{LAYER}.D": torch.ones(7)}), WEIGHTS, "(7,)"),
    "a number is NaN": (state(lambda s: s[WORD].fill_(float("nan"))), WEIGHTS, "not finite"),
    "tied tensors differ": (more(**{REV: torch.ones(48, 12)}), WEIGHTS, "should equal"),
    "the complement is scrambled": (
        more(**{"lm_head.complement_map": torch.arange(16)}), WEIGHTS, "complement",
    ),
    "the width is missing": (
        data(lambda b: b.replace(b'"d_model"', b'"dim"'), CONF), CONF, "d_model",
    ),
    "the width is absurd": (config(d_model=10**9), CONF, "d_model"),
    "the width is more than absurd": (config(d_model=10**18), CONF, "too large"),
    "the width is no number": (config(d_model="12"), CONF, "d_model"),
    "the depth is negative": (config(n_layer=-1), CONF, "at least 1"),
    "the depth is absurd": (config(n_layer=10**9), CONF, "n_layer"),
    "the depth is another": (config(n_layer=3), CONF, "2 layers"),
    "a switch is a word": (config(rcps="false"), CONF, "rcps"),
    "the strands are others": (config(rcps=False), WEIGHTS, "lacks"),
    "the states are others": (config(ssm_cfg={"d_state": 5}), WEIGHTS, "shape"),
    "ssm_cfg is a word": (config(ssm_cfg="x"), CONF, "ssm_cfg"),
    "the mixer is another": (config(ssm_cfg={"layer": "Mamba2"}), "", "Mamba2"),
    "the vocabulary is another": (config(vocab_size=20), CONF, "vocab_size"),
    "two letters are exchanged": (config(vocab=SWAPPED), CONF, "vocab"),
    "A is its own complement": (
        config(complement_map={str(i): i for i in range(16)}), CONF, "complement",
    ),
    "the complement is a word": (config(complement_map={"a": "b"}), CONF, "complement_map"),
    "a path leads outside": (config(tensors="/etc/passwd"), CONF, "outside"),
    "a path climbs outside": (config(tensors="../x"), CONF, "outside"),
    "the version is of the future": (config(format_version=999), CONF, "upgrade"),
    "another architecture": (lambda f: save_file(OTHER, f / WEIGHTS), WEIGHTS, "blk.0.A_log"),
    "an index that leads outside": (write_index, f"{WEIGHTS}.index.json", "outside"),
}  # fmt: skip


@pytest.mark.few(20)
@pytest.mark.parametrize(("wrong", "file", "reason"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named(tmp_path, wrong, file, reason):
    write_published(tmp_path)
    read_source(tmp_path)
    wrong(tmp_path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(CheckpointError) as caught:
        read_source(tmp_path)
    assert file in str(caught.value)
    assert reason in str(caught.value)
    assert caught.value.fix
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 18  # kB


def tar_of(path: Path, canary: Path) -> None:
    with tarfile.open(path, "w") as archive:
        raw = pickle.dumps(Payload(canary))
        member = tarfile.TarInfo("pickle")
        member.size = len(raw)
        archive.addfile(member, io.BytesIO(raw))


def zip_of(path: Path, canary: Path) -> None:
    torch.save({"x": torch.ones(2)}, path)
    with zipfile.ZipFile(path) as archive:
        members = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, raw in members.items():
            payload = pickle.dumps({"x": Payload(canary)}, protocol=2)
            archive.writestr(name, payload if name.endswith("data.pkl") else raw)


HOSTILE: dict[str, Callable[[Path, Path], Any]] = {
    "model.safetensors": lambda p, c: p.write_bytes(pickle.dumps(Payload(c))),
    "pytorch_model.bin": zip_of,
    "model.pt": tar_of,
    "last.ckpt": zip_of,
    "model.pkl": lambda p, c: p.write_bytes(pickle.dumps({"state_dict": Payload(c)})),
    "model.npz": lambda p, c: np.savez(p, x=np.array([Payload(c)], dtype=object)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_payload_never_runs(tmp_path, name):
    canary = tmp_path / "CANARY"
    HOSTILE[name](tmp_path / name, canary)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    for source in (tmp_path / name, tmp_path):
        with pytest.raises(CheckpointError) as caught:
            read_source(source)
        assert caught.value.fix
    assert not canary.exists()


def test_a_payload_beside_good_weights_stays_a_name(tmp_path):
    canary, path = tmp_path / "CANARY", tmp_path / "x.ckpt"
    good = {"state_dict": {"a": torch.arange(6.0).reshape(2, 3)}, "epoch": 3}
    torch.save(good | {"hyper_parameters": Payload(canary)}, path)
    weights = open_weights([path])
    assert torch.equal(weights.read(["a"])["a"], torch.arange(6.0).reshape(2, 3))
    assert isinstance(weights.extra["hyper_parameters"], Opaque)
    assert weights.extra["epoch"] == 3
    assert not canary.exists()


def test_remote_code_is_named_and_never_imported(tmp_path, caplog):
    write_published(tmp_path, auto_map={"AutoModel": "evil.Model"})
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')")
    assert "auto_map" not in read_source(tmp_path).config
    assert "remote code (auto_map): ignored" in caplog.text


def test_archives_read_as_data_equal_what_torch_reads(tmp_path):
    shared = torch.randn(4, 6)
    content = {
        "state_dict": {
            "a": shared, "b": shared.t(), "c": torch.nn.Parameter(shared[1:3, 2:]),
            "d": torch.tensor(2.0), "e": torch.zeros(0, 3),
        },
        "half": torch.ones(3, dtype=torch.bfloat16), "numbers": [1, 2.5, -(10**20), None, True, (1,
        "x"), {3: b"y"}],
    }  # fmt: skip
    path = tmp_path / "x.ckpt"
    for protocol in (2, 4):
        torch.save(content, path)
        wanted = torch.load(path, weights_only=True)
        torch.save(content, path, pickle_protocol=protocol)
        archive = Archive(path, path)
        assert list(archive.content["state_dict"]) == list("abcde")
        for n, t in archive.content["state_dict"].items():
            assert torch.equal(archive.tensor(t), wanted["state_dict"][n])
        assert torch.equal(archive.tensor(archive.content["half"]), wanted["half"])
        assert archive.content["numbers"] == wanted["numbers"]


def test_a_tensor_that_its_storage_cannot_hold_is_refused_before_it_is_made(tmp_path):
    path = tmp_path / "x.bin"
    torch.save({"x": torch.zeros(1).expand(1 << 40)}, path)
    with pytest.raises(CheckpointError, match="storage of 1 numbers cannot hold"):
        Archive(path, path)


def damaged(raw: bytes, kind: str, where: float, bit: int) -> bytes:
    at = int(where * (len(raw) - 1))
    if kind == "cut":
        return raw[:at]
    return raw[:at] + bytes([raw[at] ^ (1 << bit)]) + raw[at + 1 :]


@pytest.mark.few(1)
@pytest.mark.parametrize("form", ["safetensors", "bin", "config"])
@settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(st.sampled_from(["cut", "flip"]), st.floats(0, 1), st.integers(0, 7))
def test_no_damage_makes_anything_but_a_clear_refusal_or_a_sound_network(
    tmp_path, form, kind, where, bit
):
    clean = tmp_path / f"clean_{form}"
    if not clean.exists():
        write_published(clean)
        if form == "bin":
            torch.save(load_file(clean / "model.safetensors"), clean / "pytorch_model.bin")
            (clean / "model.safetensors").unlink()
    folder = tmp_path / f"damaged_{form}"
    folder.mkdir(exist_ok=True)
    victim = {"safetensors": WEIGHTS, "bin": "pytorch_model.bin", "config": CONF}[form]
    for path in clean.iterdir():
        raw = path.read_bytes()
        # The interesting damage is in the description, not in the numbers.
        limit = where * 0.3 if form == "safetensors" else where
        raw = damaged(raw, kind, limit, bit) if path.name == victim else raw
        (folder / path.name).write_bytes(raw)
    try:
        found = read_source(folder)
    except CheckpointError:
        return
    assert all(torch.isfinite(x).all() for x in found.tensors.values())


def test_checkpoint_check_judges_a_published_folder_as_import_would(tmp_path, capsys):
    write_published(tmp_path / "sound")
    before = sorted(tmp_path.rglob("*"))
    assert exit_code("checkpoint", "check", tmp_path / "sound") == 0
    assert "genodiff checkpoint import" in capsys.readouterr().err
    assert exit_code("checkpoint", "check", tmp_path / "sound", "--json") == 0
    assert json.loads(capsys.readouterr().out)["config"] == CONFIG
    assert sorted(tmp_path.rglob("*")) == before
    write_published(tmp_path / "wrong")
    (tmp_path / "wrong" / "config.json").write_text(json.dumps(CONFIG | {"d_model": 13}))
    assert exit_code("checkpoint", "check", tmp_path / "wrong") == 4
    error = capsys.readouterr().err
    assert "model.safetensors" in error
    assert error.count("\n") == 1


CORPUS = SHARED / "badinput"
VERBS = {
    "ckpt-load": "checkpoint import {file} --out imported --threads 1",
    "resume": "train --resume {file} --threads 1",
    "sample": "sample --checkpoint {file} --fasta out.fa --n 1 --length 64 --threads 1",
    "train-config": "config check {file}",
}


def cases() -> list[dict[str, Any]]:
    if not (CORPUS / "cases.json").is_file():
        return []
    found = json.loads((CORPUS / "cases.json").read_text())
    wrong = [c for c in found if c["group"] == "ckpt" and c["expected"] != "accept" and c["dir"]]
    return [c for c in wrong if (CORPUS / c["dir"]).is_dir()]


@pytest.mark.parametrize("case", cases() or [None], ids=lambda c: c and f"{c['id']}_{c['slug']}")
def test_a_wrong_checkpoint_is_refused_by_name(case, tmp_path, monkeypatch, capsys):
    if case is None:
        pytest.skip("no shared folder here (set GENODIFF_SHARED)")
    folder = tmp_path / "case"
    shutil.copytree(CORPUS / case["dir"], folder, symlinks=True)
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    if case["prepare"]:
        subprocess.run(["bash", "-c", case["prepare"]], cwd=folder, check=True)
    monkeypatch.chdir(folder)
    before = sorted(str(p) for p in folder.rglob("*"))
    code = exit_code(*VERBS[case["command_class"]].format(file=case["target"]).split())
    said = capsys.readouterr().err
    assert 2 <= code <= 5
    assert "Traceback" not in said
    assert sorted(str(p) for p in folder.rglob("*")) == before
    if case["expected"] == "reject":
        names = case["message_must_name"] or [Path(case["target"]).name]
        assert all(name.lower() in said.lower() for name in names)
        assert re.search(case["locus"] or "", said, re.IGNORECASE)
        assert re.search(case["remedy"] or "", said, re.IGNORECASE)
        assert said.count("genodiff: error: ") == 1
        assert "; " in said.splitlines()[-1]
