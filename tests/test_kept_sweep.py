"""A sweep that is kept without its units, and sweeps of different tasks put together."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks" / "finetune"))

from kept_sweep import (
    drop_superseded,
    forget_places,
    join_sweep,
    keep_estimates,
    pack_sweep,
    read_estimates,
    unpack_sweep,
)

from genodiff.statistics.seeds import JointEstimate


def write_sweep(folder: Path, task: str) -> Path:
    unit = folder / "units" / f"key-{task.split()[0]}"
    unit.mkdir(parents=True)
    (unit / "result.json").write_text(task)
    (unit / "model.safetensors").write_bytes(b"weights")
    (unit / "validation.safetensors").write_bytes(b"predictions of a trial")
    (folder / "results.jsonl").write_text(json.dumps({"task": task, "key": task}) + "\n")
    (folder / "tasks.json").write_text(json.dumps({f"gue {task}": {"n": 1}}))
    (folder / "sessions.json").write_text(json.dumps({"sessions": [{"command": task}]}))
    (folder / "RESULTS.md").write_text(task)
    return folder


def test_what_is_packed_comes_back_but_the_units(tmp_path):
    sweep = write_sweep(tmp_path / "a", "one")
    assert pack_sweep(sweep, tmp_path / "a.tar.xz") == 3
    unpack_sweep(tmp_path / "a.tar.xz", tmp_path / "b")
    assert sorted(p.name for p in (tmp_path / "b").iterdir()) == [
        "results.jsonl", "sessions.json", "tasks.json",
    ]  # fmt: skip
    pack_sweep(sweep, tmp_path / "c.tar.xz")
    assert (tmp_path / "a.tar.xz").read_bytes() == (tmp_path / "c.tar.xz").read_bytes()


def test_a_sweep_that_joins_another_brings_its_predictions_and_no_weights(tmp_path):
    sweep = write_sweep(tmp_path / "a", "one")
    join_sweep(tmp_path / "b", sweep)
    unit = tmp_path / "b" / "units" / "key-one"
    assert sorted(p.name for p in unit.iterdir()) == ["result.json", "validation.safetensors"]


def test_estimates_are_kept_and_those_of_now_stand_over_them(tmp_path):
    old = JointEstimate(0.5, ((0.01, 4.0), (0.02, 99.0)), 5)
    new = JointEstimate(0.6, (), 1, "one seed")
    keep_estimates(tmp_path, {"a b": old, "c": old})
    assert keep_estimates(tmp_path, {"a b": new, "c": None}) == {"a b": new, "c": old}
    assert read_estimates(tmp_path)["c"].ci95 == old.ci95


def test_joined_sweeps_have_the_rows_of_both_and_twice_is_once(tmp_path):
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


def test_of_two_rows_of_a_unit_the_other_sweep_has_the_last_word(tmp_path):
    one, two = write_sweep(tmp_path / "a", "one"), write_sweep(tmp_path / "b", "one")
    row = {"task": "one", "key": "one", "choices": ["chosen with more minutes"]}
    (two / "results.jsonl").write_text(json.dumps(row) + "\n")
    join_sweep(one, two)
    assert [json.loads(r) for r in (one / "results.jsonl").read_text().splitlines()] == [row]


def write_row(sweep: Path, seed: int, budget: int, created: str) -> None:
    row = {"suite": "gue", "task": "tf/2", "split": "official", "data": "d", "model": "m"}
    row |= {"method": "full", "seed": seed, "key": f"{budget}-{seed}", "created": created}
    row |= {"settings": {"epochs": budget}, "choices": [{"budget_minutes": budget}]}
    (sweep / "units" / row["key"]).mkdir(parents=True)
    with (sweep / "results.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def test_a_line_chosen_anew_takes_the_place_of_the_old_one_once_it_has_as_many_seeds(tmp_path):
    for seed in (1, 2):
        write_row(tmp_path, seed, 10, f"2026-01-0{seed}")
    write_row(tmp_path, 1, 60, "2026-02-01")
    assert drop_superseded(tmp_path) == 0
    write_row(tmp_path, 2, 60, "2026-02-02")
    assert drop_superseded(tmp_path) == 2
    rows = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert [row["key"] for row in rows] == ["60-1", "60-2"]
    assert sorted(p.name for p in (tmp_path / "units").iterdir()) == ["60-1", "60-2"]
    assert drop_superseded(tmp_path) == 0


def test_a_unit_that_both_fitted_is_taken_from_the_other(tmp_path):
    one, two = write_sweep(tmp_path / "a", "one"), write_sweep(tmp_path / "b", "one")
    (two / "units/key-one/result.json").write_text("anew")
    join_sweep(one, two)
    assert (one / "units/key-one/result.json").read_text() == "anew"


def test_commands_of_a_kept_sweep_do_not_name_this_machine(tmp_path):
    sweep = write_sweep(
        tmp_path / "out" / "gue", f"genodiff --out {tmp_path}/out/gue --data /far/d"
    )
    forget_places(sweep, {"OUT": tmp_path / "out", "DATA": Path("/far"), "RUNS": None})
    (session,) = json.loads((sweep / "sessions.json").read_text())["sessions"]
    assert session["command"] == "genodiff --out OUT/gue --data DATA/d"
