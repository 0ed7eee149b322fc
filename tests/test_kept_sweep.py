"""A sweep that travels without its weights, and sweeps of different tasks put together."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks" / "finetune"))

from kept_sweep import join_sweep, pack_sweep, unpack_sweep


def write_sweep(folder: Path, task: str) -> Path:
    unit = folder / "units" / f"key-{task}"
    unit.mkdir(parents=True)
    (unit / "result.json").write_text(task)
    (unit / "model.safetensors").write_bytes(b"weights")
    (folder / "results.jsonl").write_text(json.dumps({"task": task}) + "\n")
    (folder / "tasks.json").write_text(json.dumps({f"gue {task}": {"n": 1}}))
    (folder / "sessions.json").write_text(json.dumps({"sessions": [{"command": task}]}))
    (folder / "RESULTS.md").write_text(task)
    return folder


def test_what_is_packed_comes_back_but_the_weights(tmp_path: Path) -> None:
    sweep = write_sweep(tmp_path / "a", "one")
    assert pack_sweep(sweep, tmp_path / "a.tar.xz") == 4
    unpack_sweep(tmp_path / "a.tar.xz", tmp_path / "b")
    assert (tmp_path / "b/units/key-one/result.json").read_text() == "one"
    assert not (tmp_path / "b/units/key-one/model.safetensors").exists()


def test_joined_sweeps_have_the_rows_of_both_and_twice_is_once(tmp_path: Path) -> None:
    one, two = write_sweep(tmp_path / "a", "one"), write_sweep(tmp_path / "b", "two")
    for _ in range(2):
        join_sweep(one, two)
    rows = [json.loads(line)["task"] for line in (one / "results.jsonl").read_text().splitlines()]
    assert rows == ["one", "two"]
    assert set(json.loads((one / "tasks.json").read_text())) == {"gue one", "gue two"}
    sessions = json.loads((one / "sessions.json").read_text())["sessions"]
    assert [session["command"] for session in sessions] == ["one", "two"]
    assert (one / "units/key-two/result.json").read_text() == "two"
    assert (one / "RESULTS.md").read_text() == "one"
