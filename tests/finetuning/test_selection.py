"""Settings chosen by validation: the test part is read once for each frozen choice, what was tried
is known after a stop, and too few examples choose nothing.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genodiff.alphabet import DNA
from genodiff.finetuning import choosing, selection
from genodiff.finetuning.batches import encode
from genodiff.finetuning.choosing import describe_choice
from genodiff.finetuning.fitted_model import load_fitted
from genodiff.finetuning.protocol import FitSettings
from genodiff.finetuning.selection import FILE, list_head_candidates, shorten
from genodiff.finetuning.sweep import SweepPlan, sweep
from genodiff.finetuning.unit import MODEL, PREDICTOR, README, UNITS, read_results
from genodiff.finetuning.unit_selection import UnitChoice
from genodiff.reports.benchmark import write_benchmark
from tests.finetuning.motif_task import examples, write_tables
from tests.finetuning.test_sweep import plan_of, rows_of

SEEDS = 2
MODELS = ["scratch:caduceus-ph-tiny"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("selection")
    write_tables(folder, 40, 20, (30, 40), ("without", "with"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "FEW", 4)  # 4 of 40 examples validate
        patch.setattr(choosing, "LEAST_STEPS", (3, 12))  # of the 12 of a fit
        yield folder


@pytest.fixture(scope="module")
def calm(home):
    """A sweep that nothing disturbed."""
    sweep(plan(home), home / "calm")
    return home / "calm"


def plan(home: Path, **more: object) -> SweepPlan:
    over = {"epochs": 4, "batch_size": 16, "lr": 1e-2}
    return plan_of(home, MODELS, over=over, choose_head=True, seeds=SEEDS, **more)


@pytest.mark.slow
def test_a_choice_stands_in_the_rows_and_the_card(calm):
    rows = read_results(calm)
    (choice,) = rows[0]["choices"]
    assert choice == rows[1]["choices"][0]
    assert choice["by"] == "validation of seed 1"
    assert choice["n_valid"] == 4
    short = [t for t in choice["trials"] if t["share"] < 1]
    assert [t["candidate"] for t in short] == ["mean", "parts 7", "attention", "conv"]
    assert all(t["epochs"] == 1 for t in short)
    assert rows[0]["settings"]["head"] == choice["chosen"].split()[0]
    whole = {t["candidate"]: t["valid"] for t in choice["trials"] if t["share"] == 1}
    assert rows[0]["valid"] == whole[choice["chosen"]]  # the fit of seed 1 is not made again
    folder = calm / UNITS / rows[0]["key"]
    assert choice["chosen"] in (folder / README).read_text()
    assert json.loads((folder / PREDICTOR).read_text())["choices"] == rows[0]["choices"]
    weights = {path.parent.name for path in (calm / UNITS).glob(f"*/{MODEL}")}
    assert weights == {row["key"] for row in rows}  # those of trials are removed
    model = load_fitted(calm, UnitChoice(seed=1))
    assert model.card.settings.head == rows[0]["settings"]["head"]


def test_a_choice_stands_under_the_table_and_on_the_page(calm):
    table, page = (path.read_text() for path in write_benchmark(calm)["files"])
    (choice,) = read_results(calm)[0]["choices"]
    line = f"{MODELS[0]}, head {choice['chosen']}: {choice['why']}"
    assert f"- {line} (accuracy on 4 examples of seed 1: " in table
    assert "after 0.25 of the epochs" in table
    assert line in page


@pytest.mark.slow
def test_what_was_tried_before_a_stop_is_not_tried_again(home, calm, monkeypatch):
    again = home / "again"
    tried: list[str] = []
    run = selection.run_units

    def stop_after_three(units: Any, place: Any, report: Any) -> Any:
        if len(tried) == 3 and not stopped:
            raise KeyboardInterrupt
        tried.append(units[0].key)
        return run(units, place, report)

    stopped = False
    monkeypatch.setattr(selection, "run_units", stop_after_three)
    with pytest.raises(KeyboardInterrupt):
        sweep(plan(home), again)
    stopped = True
    sweep(plan(home), again)
    assert len(set(tried)) == len(tried) > 3
    assert rows_of(again) == rows_of(calm)


@pytest.mark.slow
def test_too_few_examples_choose_the_simplest_and_nothing_is_tried(home, monkeypatch):
    monkeypatch.setattr(choosing, "FEW", 9)  # of two seeds
    rows = sweep(plan(home), home / "few")
    assert rows[0]["settings"]["head"] == "mean"
    assert rows[0]["choices"][0]["trials"] == []
    assert "8 validation examples are too few" in rows[0]["choices"][0]["why"]
    assert not (home / "few" / FILE).exists()


@pytest.mark.slow
def test_few_validation_examples_are_joined_by_those_of_more_seeds(home, monkeypatch):
    monkeypatch.setattr(choosing, "FEW", 5)
    monkeypatch.setattr(choosing, "ENOUGH", 10)
    rows = sweep(plan(home)._replace(seeds=3), home / "joined")
    trials = [json.loads(line) for line in (home / "joined" / FILE).read_text().splitlines()]
    assert {t["seed"] for t in trials} == {1, 2, 3}
    for choice in rows[0]["choices"]:
        assert (choice["by"], choice["n_valid"]) == ("validation of seeds 1 to 3", 12)
    given = rows[0]["choices"][0]["trials"][0]
    of_it = [t["valid"] for t in trials if t["settings"] == trials[0]["settings"]]
    assert (given["candidate"], given["share"] < 1) == ("mean", True)
    assert given["valid"] == pytest.approx(np.mean(of_it))
    assert len(of_it) == 3
    assert rows[0]["settings"] == rows[1]["settings"]
    assert "on 12 examples of seeds 1 to 3" in describe_choice(rows[0]["choices"][0])


def test_own_parts_are_a_candidate_and_a_share_of_a_fit_is_one_of_its_steps():
    own = list_head_candidates(FitSettings(parts=9))
    assert [(c.name, c.settings.parts) for c in own[:2]] == [("mean", 1), ("parts 9", 9)]
    assert shorten(FitSettings(max_steps=10), 0.25).max_steps == 2


def test_cropped_examples_are_stretches_of_the_given_ones_and_new_in_each_epoch():
    part = encode(examples(30, 3, (6, 60)), DNA, 100)
    seen = []
    for epoch in range(2):
        some = part.crop(7, epoch, 4)
        starts, ends = some.starts - part.starts, some.starts + some.lengths
        kept = part.lengths <= 8
        assert (starts >= 0).all()
        assert (starts <= 4).all()
        assert (part.starts + part.lengths - ends <= 4).all()
        assert (some.lengths[kept] == part.lengths[kept]).all()
        assert len(set(starts[~kept].tolist())) == 5
        seen.append(starts)
    assert (seen[0] != seen[1]).any()
    assert (seen[0] == part.crop(7, 0, 4).starts - part.starts).all()
