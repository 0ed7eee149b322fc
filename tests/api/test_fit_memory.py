"""`genodiff.fit_memory` and `genodiff checkpoint fit-memory`: the numbers of a run's memory."""

import json
import shutil
from typing import Any

import pytest
from tiny_run import write_run

import genodiff
from genodiff.errors import CheckpointError, DataError, UsageError
from genodiff.memory.numbers import MemoryNumbers
from genodiff.runs import memory_fit, training_memory
from genodiff.runs.model import load_model
from genodiff.runs.training_memory import open_train_memory
from tests.commands import command

VALID: dict[str, Any] = {
    "split": "valid", "memory": "on", "baselines": False, "keep": False, "device": "cpu",
}  # fmt: skip


@pytest.fixture(scope="module")
def fitted_run(tmp_path_factory):
    """A run whose valid split, the end of c1, holds a copy of what is in train."""
    folder = tmp_path_factory.mktemp("fit")
    bed = folder / "splits.bed"
    bed.write_text("c1\t0\t5600\ttrain\nc1\t5600\t6000\tvalid\nc2\t0\t4000\ttest\n")
    return write_run(folder, bed=str(bed))


@pytest.fixture
def copied(fitted_run, tmp_path):
    shutil.copytree(fitted_run, tmp_path / "run")
    return tmp_path / "run"


def test_fitted_numbers_cost_less_and_are_taken_from_then_on(copied, monkeypatch):
    splits = set[str]()
    read = memory_fit.list_stretches
    for module in (memory_fit, training_memory):
        monkeypatch.setattr(
            module,
            "list_stretches",
            lambda store, split, **how: splits.add(split) or read(store, split, **how),
        )
    before = genodiff.evaluate(copied, **VALID)
    told = genodiff.fit_memory(copied, windows=6, draws=2, device="cpu")
    assert splits == {"train", "valid"}
    fitted = told["fitted_on"]
    assert fitted["bits_after"] < fitted["bits_before"] < fitted["bits_alone"]
    assert json.loads((copied / "memory.json").read_text()) == told
    numbers = MemoryNumbers.parse(told["numbers"])
    assert numbers != MemoryNumbers()
    assert open_train_memory(load_model(copied)).memory.numbers == numbers
    after = genodiff.evaluate(copied, **VALID)
    assert before["memory"]["numbers"] == MemoryNumbers().model_dump(mode="json")
    assert after["memory"]["numbers"] == told["numbers"]
    assert after["bits_per_base"] != before["bits_per_base"]
    changed = {"minus_model_bits": after["without_memory"]["minus_model_bits"]}
    assert after["without_memory"] == before["without_memory"] | changed
    assert genodiff.fit_memory(copied, windows=6, draws=2, seed=2, device="cpu") != told


def test_the_command_says_what_it_gained(copied, capsys):
    words = ("checkpoint", "fit-memory", copied, "--windows", 3, "--draws", 1, "--json")
    code, out, err = command(capsys, *words, "--threads", 1)
    assert code == 0
    assert json.loads(out)["fitted_on"]["windows"] == 3
    assert "without the memory" in err
    assert "--memory on" in err


def test_a_published_folder_is_not_fitted(copied, tmp_path):
    genodiff.export_checkpoint(copied, out=tmp_path / "theirs", format="caduceus")
    with pytest.raises(UsageError, match="is a published folder"):
        genodiff.fit_memory(tmp_path / "theirs", device="cpu")


def test_what_cannot_be_fitted_or_used_is_one_line(copied, monkeypatch):
    with pytest.raises(UsageError, match="--windows 0 is below 1"):
        genodiff.fit_memory(copied, windows=0)
    monkeypatch.setattr(memory_fit, "cut_windows", lambda *_: [])
    with pytest.raises(DataError, match="no window of 64 known bases"):
        genodiff.fit_memory(copied, device="cpu")
    model = load_model(copied)
    path = copied / "memory.json"
    numbers = MemoryNumbers().model_dump(mode="json")
    effort = {"scored": 1, "most": 1, "wild": 1, "least_odds": 0.0}
    kept = {"fingerprint": "0" * 64, "numbers": numbers, "effort": effort, "fitted_on": {}}
    path.write_text(json.dumps(kept))
    with pytest.raises(DataError, match="another memory than the run recorded"):
        open_train_memory(model)
    for wrong in (
        "{", [], {}, {"fingerprint": 1, "numbers": 2, "effort": {}, "fitted_on": 1},
        kept | {"effort": effort | {"scored": "many"}}, kept | {"numbers": {"start": 2}},
    ):  # fmt: skip
        path.write_text(wrong if isinstance(wrong, str) else json.dumps(wrong))
        with pytest.raises(CheckpointError):
            open_train_memory(model)
