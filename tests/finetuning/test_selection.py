"""Settings chosen by validation: the test part is read once for each frozen choice, what was tried
is known after a stop, and too few examples choose nothing.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genodiff.alphabet import DNA
from genodiff.errors import UsageError
from genodiff.finetuning import budget, choosing_seeds, scored_unit, selection, workers
from genodiff.finetuning.batches import encode
from genodiff.finetuning.choice_words import describe_choice
from genodiff.finetuning.fitted_model import load_fitted
from genodiff.finetuning.protocol import FitSettings
from genodiff.finetuning.results import FILE as RESULTS
from genodiff.finetuning.results import read_results, strip_variable_keys
from genodiff.finetuning.scored_unit import Sealed
from genodiff.finetuning.search import FILE
from genodiff.finetuning.selection import (
    Candidate,
    list_head_candidates,
    list_protocol_candidates,
    measure_noise,
    shorten,
)
from genodiff.finetuning.sweep import SweepPlan, sweep
from genodiff.finetuning.unit import MODEL, PREDICTOR, README, UNITS, VALIDATION
from genodiff.finetuning.unit_selection import UnitChoice
from genodiff.reports.benchmark import write_benchmark
from genodiff.tasks.suite import load_suite
from tests.finetuning.motif_task import examples
from tests.finetuning.test_sweep import plan_of, write_table

SEEDS = 2
MODELS = ["scratch:caduceus-ph-tiny"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("selection")
    write_table(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "TINY", 4)  # 4 of 40 examples validate
        patch.setattr(choosing_seeds, "FEW", 4)
        patch.setattr(budget, "LEAST_STEPS", (3, 12))  # of the 12 of a fit
        yield folder


@pytest.fixture(scope="module")
def calm(home: Path) -> Path:
    """A sweep that nothing disturbed."""
    sweep(plan(home), home / "calm")
    return home / "calm"


def plan(home: Path, **more: object) -> SweepPlan:
    over = {"epochs": 4, "batch_size": 16, "lr": 1e-2}
    return plan_of(home, MODELS, over=over, choose_head=True, seeds=SEEDS, **more)


class GuardedPart:
    """A test part that may be read between `Sealed.open` and the next fit alone."""

    opened: bool = False

    def __init__(self, part: Any) -> None:
        self._part = part

    def take(self, rows: Any) -> Any:
        """Nothing of it may be taken by anyone."""
        assert len(rows) == 0
        return self._part.take(rows)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            assert GuardedPart.opened, f"the test part's {name} were read before it was opened"
        return getattr(self._part, name)


def list_two(start: FitSettings, *_: Any) -> list[Candidate]:
    """Two protocols, of which the first learns nothing."""
    slow = start.model_copy(update={"lr": 1e-7})
    return [Candidate("as given", slow), Candidate("fast", start)]


@pytest.mark.few(1)
@pytest.mark.parametrize("budget", [None, 5.0])
def test_the_test_part_is_read_once_for_each_frozen_choice(
    home: Path, monkeypatch: pytest.MonkeyPatch, budget: float | None
) -> None:
    fits: list[str] = []
    opened: list[int] = []
    load, fit, unseal = workers.load_cached, scored_unit.fit_unit, Sealed.open

    def load_guarded(*given: Any) -> Any:
        data = load(*given)
        return data._replace(test=GuardedPart(data.test))

    def fit_noted(unit: Any, *given: Any, **more: Any) -> Any:
        GuardedPart.opened = False
        fits.append(f"{unit.setting} seed {unit.seed}")
        return fit(unit, *given, **more)

    def open_counted(self: Sealed) -> Any:
        GuardedPart.opened = True
        opened.append(len(fits))
        return unseal(self)

    monkeypatch.setattr(workers, "load_cached", load_guarded)
    monkeypatch.setattr(selection, "load_cached", load_guarded)
    monkeypatch.setattr(scored_unit, "fit_unit", fit_noted)
    monkeypatch.setattr(Sealed, "open", open_counted)
    monkeypatch.setattr(selection, "list_protocol_candidates", list_two)
    rows = sweep(plan(home, budget=budget), home / f"out-{budget}")
    assert len(rows) == SEEDS
    assert len(rows[0]["choices"]) == (1 if budget is None else 3)
    tried = [f for f in fits if f.startswith("tried")]
    assert len(tried) >= 6  # a short fit of each of four heads, and whole ones of two
    assert fits[: len(tried)] == tried  # everything is chosen before anything is scored
    assert opened == [len(tried) + 1 + i for i in range(SEEDS)]  # once after each final fit


def test_a_choice_stands_in_the_rows_and_the_card(calm: Path) -> None:
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
    assert model.card.settings is not None
    assert model.card.settings.head == rows[0]["settings"]["head"]


def test_a_choice_stands_under_the_table_and_on_the_page(calm: Path) -> None:
    table, page = (path.read_text() for path in write_benchmark(calm)[0])
    (choice,) = read_results(calm)[0]["choices"]
    line = f"{MODELS[0]}, head {choice['chosen']}: {choice['why']}"
    assert f"- {line} (accuracy on 4 examples of seed 1: " in table
    assert "after 0.25 of the epochs" in table
    assert line in page


def test_a_choice_does_not_depend_on_the_test_part(calm: Path, tmp_path: Path) -> None:
    write_table(tmp_path)
    text = (tmp_path / "test.csv").read_text()
    turned = text.replace("without", "?").replace("with\n", "without\n").replace("?", "with")
    (tmp_path / "test.csv").write_text(turned)
    (row,) = sweep(plan(tmp_path)._replace(seeds=1), tmp_path / "out")
    before = read_results(calm)[0]
    assert row["value"] == pytest.approx(1 - before["value"])
    assert row["choices"] == before["choices"]


@pytest.mark.slow
def test_what_was_tried_before_a_stop_is_not_tried_again(
    home: Path, calm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = home / "again"
    done: list[str] = []
    run = selection.run_units

    def stop_after_three(units: Any, place: Any, report: Any) -> Any:
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(units[0].key)
        return run(units, place, report)

    monkeypatch.setattr(selection, "run_units", stop_after_three)
    with pytest.raises(KeyboardInterrupt):
        sweep(plan(home), again)
    rest: list[str] = []

    def note(units: Any, place: Any, report: Any) -> Any:
        rest.append(units[0].key)
        return run(units, place, report)

    monkeypatch.setattr(selection, "run_units", note)
    sweep(plan(home), again)
    assert not set(done) & set(rest)
    assert [strip_variable_keys(r) for r in read_results(again)] == [
        strip_variable_keys(r) for r in read_results(calm)
    ]


def test_too_few_examples_choose_the_simplest_and_nothing_is_tried(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "TINY", 5)
    rows = sweep(plan(home), home / "few")
    assert rows[0]["settings"]["head"] == "mean"
    assert rows[0]["choices"][0]["trials"] == []
    assert "4 validation examples are too few" in rows[0]["choices"][0]["why"]
    assert not (home / "few" / FILE).exists()


@pytest.mark.slow
def test_with_a_budget_the_protocol_is_chosen_too_and_within_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "list_protocol_candidates", list_two)
    monkeypatch.setattr(selection, "measure_noise", lambda *given: 0.0)
    rows = sweep(plan(home, budget=5.0)._replace(seeds=1), home / "budget")
    assert [c["of"] for c in rows[0]["choices"]] == ["head", "protocol", "head, again"]
    first, protocol, again = rows[0]["choices"]
    assert again["trials"][0]["candidate"] == first["chosen"]
    assert {t["candidate"] for t in again["trials"]} == {"mean", "parts 7", "attention", "conv"}
    assert (again["metric"], {t["share"] for t in again["trials"]}) == ("auroc", {1.0})
    assert rows[0]["settings"]["head"] == again["chosen"].split()[0]
    assert rows[0]["settings"]["lr"] == (1e-7 if protocol["chosen"] == "as given" else 1e-2)
    assert all(c["budget_minutes"] == 5 for c in rows[0]["choices"])
    assert rows[0]["choice_seconds"] < 300
    for path in (home / "budget" / UNITS).glob(f"*/{VALIDATION}"):
        path.unlink()  # as in a sweep of before; what is compared is fitted again
    shutil.rmtree(home / "budget" / UNITS / rows[0]["key"])
    (home / "budget" / RESULTS).unlink()
    (once_more,) = sweep(plan(home, budget=5.0)._replace(seeds=1), home / "budget")
    assert strip_variable_keys(once_more) == strip_variable_keys(rows[0])
    (longer,) = sweep(plan(home, budget=6.0)._replace(seeds=1), home / "budget")
    assert {c["budget_minutes"] for c in longer["choices"]} == {6}  # it came to the same settings
    assert (longer["settings"], longer["created"]) == (rows[0]["settings"], once_more["created"])
    less = sweep(plan(home, budget=1e-5)._replace(seeds=1), home / "less")
    assert [len(c["trials"]) for c in less[0]["choices"]] == [1, 1, 1]
    assert "the budget allowed 1 of 4 heads" in less[0]["choices"][2]["why"]
    assert "the budget allowed 1 of 4" in less[0]["choices"][0]["why"]
    assert less[0]["settings"]["head"] == "mean"


@pytest.mark.slow
def test_the_best_head_is_taken_and_a_simpler_one_only_before_another_look(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "measure_noise", lambda *given: 1.0)  # all is within noise
    monkeypatch.setattr(selection, "list_protocol_candidates", list_two)
    (row,) = sweep(plan(home)._replace(seeds=1), home / "best")
    (choice,) = row["choices"]
    whole = {t["candidate"]: t["valid"] for t in choice["trials"] if t["share"] == 1}
    assert len(whole) == 2
    assert choice["chosen"] == max(whole, key=lambda name: whole[name])
    assert choice["why"] == "best on validation"
    (row,) = sweep(plan(home, budget=5.0)._replace(seeds=1), home / "simplest")
    first, protocol, again = row["choices"]
    assert (first["chosen"], protocol["chosen"]) == ("mean", "as given")
    found = {t["candidate"]: t["valid"] for t in again["trials"]}
    assert again["chosen"] == max(found, key=lambda name: found[name])
    assert "best on validation" in again["why"]


def test_a_grid_begins_with_what_is_given_and_turns_no_oriented_task() -> None:
    start = FitSettings(lr=1e-3, epochs=10, rc="conjoin", batch_size=32)
    gue = load_suite("gue")
    found = list_protocol_candidates(start, gue.find("mouse/0"), 3_200)
    assert found[0] == Candidate("as given", start)
    assert len({c.settings.model_dump_json() for c in found}) == len(found) == 98
    second, third = found[1].settings, found[2].settings
    assert (second.lr, second.epochs, second.dropout, second.ema) == (1e-3, 20, 0.3, 0.998)
    assert (second.shift, second.rc, second.mask_share) == (4, "conjoin", 0.0)
    assert third == second.model_copy(update={"mask_share": 0.1})
    assert {(c.settings.ema, c.settings.mask_share) for c in [found[0], *found[3:]]} == {(0, 0)}
    assert {c.settings.rc for c in found} == {"conjoin", "none"}
    assert {c.settings.shift for c in found} == {0, 4}
    oriented = list_protocol_candidates(start, gue.find("prom/prom_core_tata"), 3_200)
    assert {(c.settings.rc, c.settings.shift) for c in oriented} == {("conjoin", 0)}
    assert found == list_protocol_candidates(start, gue.find("mouse/0"), 3_200)
    longer = {c.settings.patience for c in found if c.settings.epochs == 20}
    assert (longer, {c.settings.patience for c in found if c.settings.epochs == 10}) == (
        {5},
        {None},
    )
    assert any("epochs 20" in c.name and "patience 5" in c.name for c in found)
    patient = start.model_copy(update={"patience": 2})
    given = list_protocol_candidates(patient, gue.find("mouse/0"), 3_200)
    assert {c.settings.patience for c in given} == {2}
    assert shorten(start.model_copy(update={"max_steps": 10}), 0.25).max_steps == 2


def test_a_head_that_reads_places_is_tried_without_shifts_first() -> None:
    start = FitSettings(lr=1e-3, epochs=10, batch_size=32, rc="conjoin")
    gue = load_suite("gue")
    mean, conv = (
        list_protocol_candidates(
            start.model_copy(update={"head": head}), gue.find("mouse/0"), 3_200
        )
        for head in ("mean", "conv")
    )
    told = [(c.settings.shift, c.settings.mask_share) for c in conv[1:5]]
    assert told == [(0, 0.0), (0, 0.1), (4, 0.0), (4, 0.1)]
    assert [c.name for c in (*conv[:1], *conv[3:])] == [c.name for c in mean]
    oriented = list_protocol_candidates(conv[0].settings, gue.find("prom/prom_core_tata"), 3_200)
    assert [c.settings.ema for c in oriented[:4]] == [0, 0.998, 0.998, 0]


def test_few_examples_are_offered_fits_of_many_epochs_first() -> None:
    start = FitSettings(lr=1e-3, epochs=10, batch_size=32, rc="none")
    task = load_suite("gue").find("mouse/0")
    enough = list_protocol_candidates(start, task, 1_600)  # 20 epochs are 1,000 steps
    few = list_protocol_candidates(start, task, 540)  # 17 steps an epoch
    assert [c.name for c in few[:3]] == [
        "as given",
        "epochs 59, patience 5",
        "epochs 59, dropout 0.3, patience 5",
    ]
    assert few[1].settings.steps(540) >= 1_000
    assert [few[0], *few[3:]] == enough
    capped = list_protocol_candidates(start.model_copy(update={"max_steps": 50}), task, 540)
    assert {c.settings.epochs for c in capped} == {10, 20}


@pytest.mark.slow
def test_few_validation_examples_are_joined_by_those_of_more_seeds(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing_seeds, "FEW", 5)
    monkeypatch.setattr(choosing_seeds, "ENOUGH", 10)
    monkeypatch.setattr(selection, "list_protocol_candidates", list_two)
    rows = sweep(plan(home, budget=5.0), home / "joined")
    trials = [json.loads(line) for line in (home / "joined" / FILE).read_text().splitlines()]
    assert {t["seed"] for t in trials} == {1, 2, 3}
    for choice in rows[0]["choices"]:
        assert (choice["by"], choice["n_valid"]) == ("validation of seeds 1 to 3", 12)
    given = rows[0]["choices"][1]["trials"][0]
    of_it = [t["valid"] for t in trials if t["settings"]["lr"] == 1e-7]
    assert given["candidate"] == "as given"
    assert given["valid"] == pytest.approx(np.mean(of_it))
    assert len(of_it) == 3
    assert rows[0]["settings"] == rows[1]["settings"]
    assert "on 12 examples of seeds 1 to 3" in describe_choice(rows[0]["choices"][0])


def test_heads_with_weights_are_not_tried_on_frozen_features() -> None:
    names = [c.name for c in list_head_candidates(FitSettings(method="probe"))]
    assert names == ["mean", "parts 7"]
    own = list_head_candidates(FitSettings(parts=9))
    assert [(c.name, c.settings.parts) for c in own[:2]] == [("mean", 1), ("parts 9", 9)]


def test_noise_is_that_of_a_paired_difference() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 400)
    hit_a, hit_b = rng.random(400) < 0.8, rng.random(400) < 0.7
    a, b = (np.eye(2)[np.where(hit, truth, 1 - truth)] for hit in (hit_a, hit_b))
    differences = hit_a.astype(float) - hit_b
    expected = differences.std(ddof=1) / 400**0.5
    assert measure_noise("accuracy", "binary", truth, a, b) == pytest.approx(expected, rel=0.15)
    assert measure_noise("accuracy", "binary", truth, a, a) == 0


def test_cropped_examples_are_stretches_of_the_given_ones_and_new_in_each_epoch() -> None:
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


def test_a_budget_without_time_is_refused(home: Path) -> None:
    import genodiff

    with pytest.raises(UsageError, match="--budget 0 is not above 0"):
        genodiff.finetune(home / "train.csv", test=home / "test.csv", budget=0)
