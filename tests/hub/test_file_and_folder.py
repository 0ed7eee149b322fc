"""A file of a model and its folder are the same request, wherever a model is named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_run import write_run

import genodiff
from genodiff.hub.adopt import read_warm_start
from genodiff.hub.source import read_source
from genodiff.runs.run_paths import locate
from tests.hub.published_folders import write_published


def save_lightning(state: dict[str, torch.Tensor], file: Path) -> None:
    torch.save({"state_dict": {f"model.{name}": x for name, x in state.items()}}, file)


FORMS: dict[str, tuple[str, Callable[..., Any], int]] = {
    "safetensors": ("model.safetensors", save_file, 1),
    "lightning": ("last.ckpt", save_lightning, 1),
    "pickle": ("pytorch_model.bin", torch.save, 1),
    "shards": ("model.safetensors", save_file, 2),
    "pickled shards": ("pytorch_model.bin", torch.save, 2),
}
"""A file of weights, what writes it, and in how many shards."""


def write_again(folder: Path, name: str, save: Callable[..., Any], parts: int) -> list[str]:
    """Write the weights of a folder in another form; returns the names of the files."""
    state = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    if parts == 1:
        save(state, folder / name)
        return [name]
    stem, _, end = name.partition(".")
    names = [f"{stem}-0000{i + 1}-of-0000{parts}.{end}" for i in range(parts)]
    of = {key: names[i % parts] for i, key in enumerate(state)}
    for part in names:
        save({key: x for key, x in state.items() if of[key] == part}, folder / part)
    (folder / f"{name}.index.json").write_text(json.dumps({"weight_map": of}))
    return [f"{name}.index.json", *names]


@pytest.mark.few(3)
@pytest.mark.parametrize("form", FORMS)
def test_each_published_file_is_read_as_its_folder(tmp_path, form):
    folder = tmp_path / "published"
    write_published(folder)
    weights = genodiff.load(folder, device="cpu").digest
    names = write_again(folder, *FORMS[form])
    digest = read_source(folder).digest
    for name in ["config.json", *names]:
        file = folder / name
        assert read_source(file).digest == digest
        assert read_warm_start(file).digest == digest
        model = genodiff.load(file, device="cpu")
        assert (model.digest, model.path) == (weights, folder)
        assert genodiff.check_checkpoint(file) == genodiff.check_checkpoint(folder)


def test_a_weight_file_that_the_folder_does_not_read_is_taken_for_itself(tmp_path):
    folder = tmp_path / "published"
    write_published(folder)
    state = load_file(folder / "model.safetensors")
    other = {name: x + 1 if x.is_floating_point() else x for name, x in state.items()}
    torch.save(other, folder / "pytorch_model.bin")
    assert read_source(folder / "pytorch_model.bin").digest != read_source(folder).digest
    (folder / "model.safetensors").unlink()
    for name in ("a.ckpt", "b.ckpt"):
        torch.save({"state_dict": state if name == "a.ckpt" else other}, folder / name)
    assert genodiff.load(folder / "a.ckpt").digest != genodiff.load(folder / "b.ckpt").digest


def test_each_file_of_a_run_is_read_as_the_run(tmp_path):
    run = write_run(tmp_path)
    wanted = genodiff.load(run, device="cpu").digest
    step = next((run / "checkpoints").iterdir())
    for file in (run / "config.yaml", step / "model.safetensors", step / "model.json"):
        model = genodiff.load(file, device="cpu")
        assert (model.digest, model.path) == (wanted, run)
        assert locate(file) == file.parent
    assert genodiff.load(step, device="cpu").digest == wanted


def test_parts_of_a_run_and_of_a_sweep_are_the_whole(tmp_path):
    run, sweep = tmp_path / "run", tmp_path / "sweep"
    for file in (run / "checkpoints" / "step_1" / "model.json", run / "config.yaml",
                 run / "metrics.csv", sweep / "units" / "a" / "predictor.json",
                 sweep / "results.jsonl"):  # fmt: skip
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")
    for part in (run / "checkpoints", run / "metrics.csv"):
        assert locate(part, there=False) == run
    for part in (sweep / "units", sweep / "results.jsonl"):
        assert locate(part, there=False) == sweep
    (tmp_path / "other" / "units").mkdir(parents=True)
    for other in (run / "checkpoints" / "step_1", tmp_path / "other" / "units", run / "no.json"):
        assert locate(other, there=False) == other
