"""The benchmark of fine-tuning: its suites are ours, and its lines are picked by validation."""

import importlib
import sys

import pytest

from genodiff.tasks.suite import load_suite


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))  # the script puts its folder there
    return importlib.import_module("benchmarks.finetune.run")


def test_every_task_of_a_suite_is_known_to_genodiff(run):
    for name, suite in run.SUITES.items():
        known = {task.name for task in load_suite(name).tasks}
        assert set(suite.tasks) <= known
        assert len(set(suite.tasks)) == len(suite.tasks)
    assert len(run.SUITES["gue"].tasks) == 10
    assert len(run.SUITES["idna-ms"].tasks) == len(load_suite("idna-ms").tasks) == 16


def test_the_line_of_a_table_is_picked_by_validation_not_by_test(run):
    from finetune_page import Line, pick_by_validation

    lines = [
        Line("a", "scratch", 0.9, None, 0.6, 1, 0, 1, 5),
        Line("b", "scratch", 0.7, None, 0.8, 1, 0, 1, 5),
        Line("c", "baseline", 0.99, None, 0.99, 1, 0, 1, 5),
        Line("d", "scratch", 1.0, None, float("nan"), 1, 0, 1, 5),
    ]
    picked = pick_by_validation(lines, ("model", "scratch"))
    assert picked.name == "b"
    assert pick_by_validation(lines[3:], ("scratch",)) is None


def test_a_protocol_is_chosen_by_validation_within_its_minutes(run, tmp_path):
    from protocol_search import as_words, choose, list_protocols

    protocols = list_protocols(1e-3, 10, 1_000, turns=True)
    assert protocols[0] == {}
    assert protocols[2] == {
        "epochs": 20, "dropout": 0.3, "ema": 0.998, "mask_share": 0.1, "shift": 4, "patience": 5,
    }  # fmt: skip
    assert len({tuple(one.items()) for one in protocols}) == len(protocols) == 98
    assert not any({"shift", "rc"} & set(one) for one in list_protocols(1, 1, 999, turns=False))
    assert list_protocols(1e-3, 10, 170, turns=False)[1] == {"epochs": 59, "patience": 5}
    assert list(as_words({"weight_decay": 0.1})) == ["--weight-decay", 0.1]
    values = iter([0.5, 0.7, 0.7, 0.9])
    asked = protocols, lambda flags: (next(values), 60.0), "mcc"
    assert choose(*asked, 3.0, tmp_path / "tried.json") == protocols[1]
    assert choose(*asked, 3.0, tmp_path / "tried.json") == protocols[1]  # nothing is tried again
    assert choose(*asked, 4.0, tmp_path / "tried.json") == protocols[3]
