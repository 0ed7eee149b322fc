"""The studies of GUE's chosen lines: what is fitted beside them, and the tables they write."""

import argparse
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
import torch
from sklearn.metrics import matthews_corrcoef

from genodiff.finetuning.head import list_heads
from genodiff.finetuning.results import add_rows, read_results
from genodiff.finetuning.sweep import TASKS
from genodiff.finetuning.unit import RESULT, TEST, UNITS
from genodiff.io import atomic
from genodiff.reports.sweep_results import read_sweep
from genodiff.runs.sealed_files import encode_tensors

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks" / "finetune"
AUTO = "scratch:caduceus-ph-85k"


@pytest.fixture
def studies(monkeypatch):
    """The modules of the studies; their folder is on the path for the test alone."""
    names = ("one_change", "heads", "pretraining", "errors")
    monkeypatch.setattr(sys, "path", [str(FOLDER), str(FOLDER.parent), *sys.path])
    for name in ("run", *names):
        monkeypatch.delitem(sys.modules, name, raising=False)
    found = {name: __import__(name) for name in names}
    yield found
    for name in ("run", *names):
        sys.modules.pop(name, None)


def write_sweep(
    out: Path, skills: dict[str, float], heads: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Lines of two seeds on mouse/3, whose answers are right in a share of 400 examples."""
    rng, truth, rows = np.random.default_rng(1), np.arange(400) % 2, []
    for model, skill in skills.items():
        for seed in (1, 2):
            key = f"{model.replace(':', '-')}-{seed}"
            said = np.where(rng.random(400) < skill, truth, 1 - truth)
            predicted = np.eye(2, dtype=np.float32)[said] * 0.8 + 0.1
            tensors = {"predicted": torch.from_numpy(predicted), "truth": torch.from_numpy(truth)}
            tensors["lengths"] = torch.full((400,), 101)
            (out / UNITS / key).mkdir(parents=True)
            atomic.write_bytes(out / UNITS / key / TEST, encode_tensors(tensors))
            value = float(np.corrcoef(said, truth)[0, 1])
            row = {
                "suite": "gue", "task": "mouse/3", "split": "official", "data": "d", "seed": seed,
                "model": model, "kind": "scratch", "method": "full", "setting": "", "key": key,
                "digest": model, "settings": {"head": heads.get(model, "mean")},
                "metric": "mcc", "value": value, "metrics": {"mcc": value}, "valid": 0.5,
                "seconds": 3.0, "parameters": 1, "cut_train": 0, "cut_test": 0,
                "max_length": 101, "n_test": 400, "created": f"2026-01-0{seed}",
            }  # fmt: skip
            rows.append(row)
            atomic.write_json(out / UNITS / key / RESULT, {"row": row})
    add_rows(out, rows)
    about = {"suite": "gue", "task": "mouse/3", "split": "official", "kind": "binary", "notes": []}
    about |= {"classes": ["negative", "positive"], "metric": "mcc", "metrics": ["mcc"]}
    atomic.write_json(out / TASKS, {"gue mouse/3 official d": about | {"audit": None}})


def test_every_head_but_the_chosen_one_is_a_line_and_keeps_the_parts_out(studies):
    asked = argparse.Namespace(preset="caduceus-ph-85k")
    changes = studies["heads"].list_changes(asked, {"head": "parts", "parts": 7})
    assert [c.name for c in changes] == [head for head in list_heads() if head != "parts"]
    assert all(c.flags == {"head": c.name, "parts": None} for c in changes)
    assert {c.model for c in changes} == {AUTO}


def test_the_lines_of_pretraining_are_those_that_are_asked_for(studies, tmp_path):
    (tmp_path / "human").mkdir()
    (tmp_path / "human" / "model.safetensors").touch()  # a run that is done is not repeated
    asked = argparse.Namespace(preset="caduceus-ph-85k", runs=tmp_path, lines="human,human-frozen")
    changes = {c.name: c for c in studies["pretraining"].list_changes(asked, {})}
    assert list(changes) == ["human", "human-frozen"]
    assert {c.model for c in changes.values()} == {str(tmp_path / "human")}
    assert changes["human-frozen"].flags == {"method": "frozen"}


def test_the_table_has_the_chosen_line_in_bold_and_the_best_other_beside_it(studies, tmp_path):
    write_sweep(tmp_path, {AUTO: 0.8, "conv": 0.95, "attention": 0.6})
    change = studies["one_change"]
    head, _, row = change.tabulate(
        studies["heads"].HEADS, tmp_path, read_sweep(tmp_path), tmp_path, "caduceus-ph-85k"
    )
    cells = dict(zip(head.split(" | "), row.split(" | "), strict=True))
    assert cells["mean"].startswith("**0.5")
    assert cells["conv"].startswith("0.8")
    assert "parts" not in cells  # no task has it
    assert cells["best other − chosen"].startswith("conv +0.")
    assert "[" in cells["best other − chosen"]


def test_near_duplicates_of_the_test_part_are_drawn_together(studies, tmp_path):
    write_sweep(tmp_path, {AUTO: 0.8, "conv": 0.95})
    compare = studies["one_change"].compare
    (panel,) = read_sweep(tmp_path)
    alone = compare(tmp_path, panel, AUTO)
    copies = [list(range(at, at + 20)) for at in range(0, 400, 20)]
    known = panel._replace(about=panel.about | {"test_clusters": copies})
    together = compare(tmp_path, known, AUTO)
    assert alone.estimate.value == together.estimate.value
    (_, of_examples), (_, of_groups) = alone.estimate.parts[0], together.estimate.parts[0]
    assert (of_examples, of_groups) == (399, 19)


def test_without_predictions_the_table_is_that_of_the_kept_estimates(studies, tmp_path):
    write_sweep(tmp_path, {AUTO: 0.8, "conv": 0.95, "attention": 0.6})
    change, recall = studies["one_change"], studies["one_change"].recall_panels
    asked = tmp_path, "caduceus-ph-85k"
    table = change.tabulate(studies["heads"].HEADS, tmp_path, recall(tmp_path), *asked)
    shutil.rmtree(tmp_path / UNITS)
    assert change.tabulate(studies["heads"].HEADS, tmp_path, recall(tmp_path), *asked) == table
    (tmp_path / "estimates.json").unlink()
    bare = change.tabulate(studies["heads"].HEADS, tmp_path, recall(tmp_path), *asked)
    assert "[" in table[-1]
    assert "[" not in bare[-1]


def test_a_line_that_has_become_the_chosen_one_is_left_out(studies, tmp_path):
    write_sweep(tmp_path, {AUTO: 0.8, "conv": 0.95, "mean": 0.8, "cnn": 0.7})
    change, rows = studies["one_change"], read_results(tmp_path)
    given = studies["heads"].HEADS, rows, {"mouse/3"}, tmp_path, "caduceus-ph-85k"
    assert {r["model"] for r in change.pick_rows(*given)} == {AUTO, "conv"}
    assert change.pick_rows(*given[:2], set(), *given[3:]) == []


def test_a_line_with_settings_of_an_earlier_choice_is_named_below_the_table(studies, tmp_path):
    write_sweep(tmp_path, {AUTO: 0.8, "human": 0.9, "adapted": 0.8}, {"human": "conv"})
    panels, list_departures = read_sweep(tmp_path), studies["one_change"].list_departures
    (said,) = list_departures(studies["pretraining"].PRETRAINING, panels, "caduceus-ph-85k")
    assert "mouse/3" in said
    assert "human conv" in said
    assert "adapted" not in said
    assert list_departures(studies["heads"].HEADS, panels, "caduceus-ph-85k") == []


def test_errors_are_counted_per_class_and_the_best_threshold_is_found(studies, tmp_path):
    write_sweep(tmp_path, {AUTO: 0.8})
    rows = [r for r in read_results(tmp_path) if r["seed"] == 1]
    part = studies["errors"].read_part(tmp_path / UNITS / rows[0]["key"], TEST)
    positive = np.arange(400) % 2 == 1
    called = part.predicted > 0.5
    assert part.count_errors() == pytest.approx(
        ((positive & ~called).sum() / 200, (~positive & called).sum() / 200)
    )
    rng = np.random.default_rng(2)
    truth = rng.random(60) < 0.3
    graded = studies["errors"].Part(np.round(rng.normal(truth, 1.0), 1), truth)  # with ties
    every = [matthews_corrcoef(truth, graded.predicted > t) for t in graded.predicted]
    assert graded.find_best_mcc() == pytest.approx(max(every))

    familiar = np.arange(400) < 100
    cells = studies["errors"].describe_task(tmp_path, rows, familiar).split("|")[1:-1]
    assert [cell.strip() for cell in cells[:3]] == ["mouse/3", "0.500", f"{rows[0]['value']:.3f}"]
    assert cells[3].strip() == "" == cells[5].strip()  # no validation predictions were kept
    some = called[:100][~positive[:100]].mean()
    assert cells[7].strip() == f"{100 * some:.1f} % of 50"
    assert studies["errors"].describe_task(tmp_path, rows, ~familiar & False).count("none there")


def test_a_study_of_another_suite_has_a_sweep_and_a_table_of_its_own(studies, tmp_path):
    change, heads = studies["one_change"], studies["heads"].HEADS
    out, here = tmp_path / "out", tmp_path / "here"
    write_sweep(out / "gue", {AUTO: 0.8})
    write_sweep(out / change.name_sweep(heads, "gue"), {"conv": 0.9})
    asked = argparse.Namespace(out=out, here=here, data=None, preset="caduceus-ph-85k")
    change.write(asked, heads)
    alone = (here / "HEADS.md").read_text()
    for name in ("ienhancer", change.name_sweep(heads, "ienhancer")):
        write_sweep(out / name, {AUTO if name == "ienhancer" else "parts": 0.7})
        for file in [out / name / "results.jsonl", out / name / TASKS]:
            words = file.read_text().replace("mouse/3", "enhancers").replace('"gue', '"ienhancer')
            file.write_text(words)
    change.write(asked, heads)
    both = (here / "HEADS.md").read_text()
    assert alone.count("\n## ") == 1
    assert both.count("\n## ") == 2
    assert "| enhancers | **0." in both
    assert [line for line in alone.splitlines() if "mouse/3" in line] == [
        line for line in both.splitlines() if "mouse/3" in line
    ]
    assert (here / "heads.tar.xz").exists()
    assert (here / "heads-ienhancer.tar.xz").exists()
