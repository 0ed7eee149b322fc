"""`genodiff.load` of a fine-tuned run: what it predicts, and what it says that it is not."""

import pytest

import genodiff
from genodiff.errors import UsageError
from genodiff.finetuning.fitted_model import load_fitted
from genodiff.finetuning.model_spec import parse_models
from genodiff.finetuning.model_words import list_baselines
from genodiff.finetuning.protocol import FitSettings
from genodiff.finetuning.scored_unit import run_unit
from genodiff.finetuning.unit import Unit
from tests.commands import command
from tests.finetuning.motif_task import task_data
from tests.tiny_run import write_run


@pytest.fixture(scope="module")
def unit_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    (model,) = parse_models([f"ours={write_run(folder)}"], list_baselines("dna"))
    settings = FitSettings.parse({"epochs": 1, "batch_size": 16, "lr": 1e-2, "rc": "conjoin"})
    unit = Unit(
        suite="own", task="motif", split="official", data="x", model=model, settings=settings,
        seed=1,
    )  # fmt: skip
    run_unit(unit, task_data(), folder / "sweep")
    return unit.folder(folder / "sweep")


def test_a_fine_tuned_run_predicts_as_its_fit(unit_folder):
    model = genodiff.load(unit_folder, device="cpu")
    assert isinstance(model, genodiff.FinetunedModel)
    texts = ["ACGTACGTGG", "TTTTCACGTGACC", "acg"]
    found = model.predict(texts, batch_size=2)
    assert found.equals(load_fitted(unit_folder).predict(texts))
    assert found.columns == ["name", "prediction", *(f"p_{label}" for label in model.labels)]
    assert set(found["prediction"]) <= set(model.labels)
    assert "classes" in repr(model)
    assert next(model.network.parameters()).device == model.device


def test_what_is_of_a_language_model_is_refused_in_one_line(unit_folder):
    model = genodiff.load(unit_folder)
    for ask in (model.sample, model.infill, model.embed, model.bits, model.encode):
        with pytest.raises(UsageError, match="load the run that it was tuned from"):
            ask("ACGT")
    for name in ("config", "objective", "step", "trained"):
        with pytest.raises(UsageError, match="load the run that it was tuned from"):
            getattr(model, name)


@pytest.mark.parametrize("verb", ["sample", "embed"])
def test_a_verb_that_needs_a_language_model_writes_nothing(unit_folder, tmp_path, capsys, verb):
    given = tmp_path / "in.fa"
    given.write_text(">a\nACGTACGT\n")
    out = tmp_path / "out.npz"
    words = ("embed", unit_folder, given) if verb == "embed" else ("sample", unit_folder, "-n", 1)
    code, said, err = command(capsys, *words, "-o", out, "--threads", 1)
    assert (code, said, err.count("\n")) == (2, "", 1)
    assert "load the run that it was tuned from" in err
    assert [p.name for p in tmp_path.iterdir()] == ["in.fa"]
