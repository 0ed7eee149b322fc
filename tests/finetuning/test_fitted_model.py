"""Fits that are kept: they answer as the test pass did, whatever stands beside a sequence, and a
damaged folder is one line.
"""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import genodiff
from genodiff.errors import CheckpointError, UsageError
from genodiff.finetuning.fitted_model import FittedModel, load_fitted, predict_queries
from genodiff.finetuning.model_spec import parse_models
from genodiff.finetuning.model_words import list_baselines
from genodiff.finetuning.pooling.conv import ConvPooling
from genodiff.finetuning.protocol import FitSettings
from genodiff.finetuning.scored_unit import read_predictions, run_unit
from genodiff.finetuning.unit import FITTED, MODEL, PREDICTOR, README, RESULT, UNITS, Unit
from genodiff.finetuning.unit_selection import UnitChoice, _find_missing, _list_units, find_units
from genodiff.io.fasta import Record
from genodiff.tasks.task import TaskData
from genodiff.tasks.unlabelled import Query
from tests.commands import check_refused, exit_code
from tests.finetuning.motif_task import task_data
from tests.labelled_files import random_dna
from tests.tiny_run import write_run

TRANSFORMER = {"kind": "dit", "d_model": 16, "n_layer": 1, "n_head": 2}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    write_run(folder)
    write_run(folder, "dit", backbone=TRANSFORMER)
    return folder


def unit_of(home: Path, word: str, *, seed: int = 1, **settings: object) -> Unit:
    path = {"run": f"ours={home / 'run'}", "dit": str(home / "dit")}.get(word, word)
    (model,) = parse_models([path], list_baselines("dna"))
    if model.kind == "baseline":
        own = FitSettings()
    else:
        rc = "conjoin" if model.shape()[0].paired else "average"
        own = FitSettings.parse({"epochs": 1, "batch_size": 16, "lr": 1e-2, "rc": rc} | settings)
    about = {"suite": "own", "task": "motif", "split": "official", "data": "x"}
    return Unit(**about, model=model, settings=own, seed=seed)


def fitted(home: Path, out: Path, data: TaskData, word: str, **more: object) -> FittedModel:
    unit = unit_of(home, word, **more)  # type: ignore[arg-type]
    run_unit(unit, data, out)
    return load_fitted(unit.folder(out))


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel", "regression"])
@pytest.mark.parametrize(
    ("word", "settings"),
    [
        ("run", {}),
        ("run", {"head": "attention"}),
        ("scratch:caduceus-ph-tiny", {"head": "conv"}),
        ("dit", {"head": "parts", "parts": 4}),
        ("cnn", {}),
        ("kmer-lr", {}),
    ],
    ids=lambda value: str(value),
)
def test_every_form_and_kind_answers_as_its_test_pass_did_in_any_company(
    home, tmp_path, kind, word, settings
):
    data = task_data(30, 40, (20, 44), kind)
    model = fitted(home, tmp_path, data, word, **settings)
    whole = model.score(data.test.sequences)
    assert np.allclose(whole, read_predictions(model.folder)[0], rtol=1e-6, atol=2e-7)
    alone = [model.score([sequence])[0] for sequence in data.test.sequences[:6]]
    assert np.array_equal(np.stack(alone), whole[:6])
    assert whole.shape == ((40,) if kind == "regression" else (40, len(data.task.classes)))
    assert model.labels == data.task.classes


def test_longer_sequences_are_read_as_far_as_the_fit_read(home, tmp_path):
    data = task_data(30, 12)
    model = fitted(home, tmp_path, data, "run", max_length=25)
    cut = [sequence[:25] for sequence in data.test.sequences]
    assert np.array_equal(model.score(data.test.sequences), model.score(cut))
    assert model.cuts(b"A" * 26)
    assert not model.cuts(b"A" * 25)


def test_a_frame_has_names_answers_and_a_column_for_each_class(home, tmp_path):
    data = task_data(30, 8, kind="multilabel")
    model = fitted(home, tmp_path, data, "run")
    frame = model.predict({"first": "ACGTACGTAC", "second": "acgtacgtac", "third": "TTTTTT"})
    assert frame.columns == ["name", "prediction", "p_x", "p_y", "p_z"]
    assert frame["name"].to_list() == ["first", "second", "third"]
    assert frame.row(0)[1:] == frame.row(1)[1:]  # upper and lower case
    assert frame.schema["p_x"] == pl.Float32
    yes = [name for name in "xyz" if frame[f"p_{name}"][0] >= 0.5]
    assert frame["prediction"][0].to_list() == yes
    again = model.predict([Record("r", "", b"ACGTACGTAC", 1), Record("q", "", b"GG", 2)])
    assert again.row(0)[2:] == frame.row(0)[2:]


def test_an_ensemble_is_the_mean_of_its_seeds_with_their_spread(home, tmp_path):
    data = task_data(30, 8)
    models = [fitted(home, tmp_path, data, "run", seed=seed) for seed in (1, 2, 3)]
    queries = [Query(f"q{i}", s, i) for i, s in enumerate(data.test.sequences)]
    (frame,) = predict_queries(models, queries)
    each = np.stack([model.score(data.test.sequences) for model in models])
    assert np.array_equal(frame["p_with"].to_numpy(), each.mean(0)[:, 1].astype(np.float32))
    chosen = each.mean(0).argmax(1)
    spread = each.std(0, ddof=1)[np.arange(8), chosen]
    assert np.allclose(frame["spread"].to_numpy(), spread, rtol=1e-6)
    other = fitted(home, tmp_path / "other", task_data(30, 8, kind="multiclass"), "run")
    with pytest.raises(CheckpointError, match="other classes"):
        next(predict_queries([models[0], other], queries))


def test_a_unit_is_complete_by_itself_and_says_what_it_is(home, tmp_path):
    data = task_data(30, 8)
    model = fitted(home, tmp_path, data, "run")
    moved = tmp_path / "elsewhere"
    shutil.copytree(model.folder, moved)
    for name in (RESULT, FITTED, "test.safetensors"):
        (moved / name).unlink()  # only what is kept for prediction
    before = model.score(data.test.sequences)
    assert np.array_equal(load_fitted(moved).score(data.test.sequences), before)
    card = (moved / README).read_text()
    row = json.loads((model.folder / RESULT).read_text())["row"]
    assert f"| test | accuracy | {row['value']:.4f} | 8 |" in card
    assert "without, with" in card
    assert str(home) not in (moved / PREDICTOR).read_text() + card


def replace(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda f: (f / MODEL).write_bytes((f / MODEL).read_bytes()[:-8]), "truncated|hash"),
        (lambda f: (f / MODEL).unlink(), "not found"),
        (lambda f: (f / PREDICTOR).write_text("{"), "truncated or corrupt"),
        (lambda f: replace(f / PREDICTOR, "with", "w"), "changed after it was written"),
        (lambda f: (f / "head.pkl").write_bytes(b"x"), "pickle"),
    ],
)
def test_a_damaged_folder_is_one_line(home, tmp_path, damage, said):
    model = fitted(home, tmp_path, task_data(20, 4), "kmer-lr")
    damage(model.folder)  # type: ignore[operator]
    with pytest.raises(CheckpointError, match=said) as fault:
        load_fitted(model.folder)
    assert str(model.folder) in str(fault.value)


def test_a_metric_that_is_not_defined_is_none_in_the_row(home, tmp_path):
    data = task_data(30, 8, kind="regression")
    data = data._replace(test=data.test._replace(labels=np.full(8, 3.0)))
    row = run_unit(unit_of(home, "kmer-lr"), data, tmp_path)
    assert (row["metric"], row["value"]) == ("pearson", None)
    json.dumps(row, allow_nan=False)  # as `results.jsonl` wants it


def test_what_was_not_kept_says_how_to_keep_it(home, tmp_path):
    data, unit = task_data(20, 4), unit_of(home, "run")
    row = run_unit(unit, data, tmp_path, keep="none")
    files = sorted(p.name for p in unit.folder(tmp_path).iterdir())
    assert files == [FITTED, RESULT, "test.safetensors"]
    for folder in (unit.folder(tmp_path), tmp_path):
        with pytest.raises(CheckpointError, match="--keep-weights"):
            load_fitted(folder)
    (tmp_path / UNITS / "begun").mkdir()
    with pytest.raises(CheckpointError, match="interrupted: 1 fit begun") as fault:
        load_fitted(tmp_path)
    assert "it resumes" in str(fault.value)
    (tmp_path / UNITS / "begun").rmdir()
    (tmp_path / "labels.partial").touch()
    with pytest.raises(CheckpointError, match="labels: is not finished"):
        load_fitted(tmp_path / "labels")
    row = json.loads(json.dumps(row))
    assert run_unit(unit, data, tmp_path) == row  # what is done stays as it is
    assert not (unit.folder(tmp_path) / PREDICTOR).exists()
    assert run_unit(unit, data, tmp_path, keep="all") == row
    assert load_fitted(tmp_path).card.test["accuracy"] == row["value"]


def test_the_one_that_is_meant_is_asked_for_with_what_there_is(home, tmp_path):
    data = task_data(20, 4)
    for word in ("run", "kmer-lr"):
        for seed in (1, 2):
            run_unit(unit_of(home, word, seed=seed), data, tmp_path)
    with pytest.raises(UsageError, match=r"motif kmer-lr seeds 1, 2; motif ours seeds 1, 2.*") as e:
        find_units(tmp_path)
    assert (e.value.fix or "").startswith("give --model NAME and --seed N, or --ensemble")
    with pytest.raises(UsageError, match="did you mean 'ours'"):
        find_units(tmp_path, UnitChoice(model="our"))
    units = [SimpleNamespace(task="t", model="m", method="full", setting=s, seed=1) for s in "ab"]
    cards = [SimpleNamespace(unit=unit) for unit in units]
    assert _find_missing(units, False) == ["setting"]
    listed = "t m with setting 'a' seed 1; t m with setting 'b' seed 1"
    assert _list_units(cards, with_setting=True) == listed
    with pytest.raises(UsageError, match="known: 1, 2"):
        find_units(tmp_path, UnitChoice(seed=3))
    assert len(find_units(tmp_path, UnitChoice(model="ours"), all_seeds=True)) == 2
    one = load_fitted(tmp_path, UnitChoice(model="ours", seed=2))
    assert (one.card.unit.model, one.card.unit.seed) == ("ours", 2)
    with pytest.raises(CheckpointError, match=r"no fine-tuned model"):
        load_fitted(home / "run")


def test_a_kept_head_is_read_with_the_settings_that_it_had(home, tmp_path, monkeypatch):
    data = task_data(30, 8)
    model = fitted(home, tmp_path, data, "run", head="conv")
    about = json.loads((model.folder / PREDICTOR).read_text())
    assert about["settings"]["head"] == "conv"
    assert about["about"]["head"]["stretches"] == 16
    before = model.score(data.test.sequences)
    monkeypatch.setattr(ConvPooling.__init__, "__defaults__", (8, 3, 1, 4, 2))  # of another version
    assert np.array_equal(load_fitted(model.folder).score(data.test.sequences), before)


def test_a_unit_of_before_heads_had_names_keeps_its_key(home):
    for named, settings in (("mean", {"epochs": 3}), ("parts", {"epochs": 3, "parts": 3})):
        unit = unit_of(home, "scratch:caduceus-ph-tiny", **settings)
        assert unit.settings.head == named
        again = unit_of(home, "scratch:caduceus-ph-tiny", head=named, **settings)
        assert unit.key == again.key
    keys = {unit_of(home, "run", head=head).key for head in ("mean", "attention", "conv")}
    assert len(keys) == 3


LETTERS = "ACGTTGCATAN" + "ACGTT" * 3


def test_a_map_of_a_classifier_is_the_change_of_its_log_odds(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, seed in (("train", 1), ("test", 2)):
        rows = [f"{dna},{'yes' if 'TA' in dna[:9] else 'no'}\n" for dna in random_dna(60, 40, seed)]
        Path(f"{name}.csv").write_text("sequence,label\n" + "".join(rows))
    words = "finetune table --train train.csv --test test.csv --model kmer-lr --seeds 1 --out mine"
    assert exit_code(*words.split(), "--threads", 1) == 0
    model = genodiff.load("mine")
    found = model.ism(LETTERS, label="yes")
    assert np.isnan(found).all(0).tolist() == [letter == "N" for letter in LETTERS]

    def log_odds(sequence: str) -> float:
        p = float(model.predict([sequence])["p_yes"][0])
        return float(np.log(p / (1 - p)))

    for place, letter in ((0, "C"), (8, "G"), (25, "A")):
        other = LETTERS[:place] + letter + LETTERS[place + 1 :]
        wanted = log_odds(other) - log_odds(LETTERS)  # of chances in float32
        assert found["ACGT".index(letter), place] == pytest.approx(wanted, abs=1e-5)
    assert model.ism(LETTERS, label="no")[1, 0] == pytest.approx(-found[1, 0], abs=1e-9)
    for options, said in (({}, "--label is missing"), ({"label": "x"}, "no class")):
        with pytest.raises(UsageError, match=said):
            model.ism(LETTERS, **options)
    with pytest.raises(UsageError, match="without context"):
        model.ism(LETTERS, label="yes", context=64)
    Path("long.fa").write_text(">a\n" + "ACGT" * 20 + "\n")
    words = "ism --model mine --fasta long.fa -o o.tsv --label yes --threads 1"
    check_refused(capsys, words.split(), 2, "the fit reads 40")
