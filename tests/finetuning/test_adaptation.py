"""Adapting reads train sequences alone, no labels; it goes on after a stop, is made once for each
seed, and is a line beside the network that it began from. Frozen features train the head alone.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from genodiff.alphabet import DNA
from genodiff.errors import GenodiffError, Interrupted, UsageError
from genodiff.finetuning import adaptation, fitted_unit
from genodiff.finetuning.adaptation import AdaptationPlan, adapt_network, hash_sequences
from genodiff.finetuning.batches import EncodedPart, encode
from genodiff.finetuning.fit_state import STATE
from genodiff.finetuning.fitted_unit import build_classifier, fit_unit
from genodiff.finetuning.model_spec import parse_models
from genodiff.finetuning.model_words import list_baselines
from genodiff.finetuning.protocol import FitSettings
from genodiff.finetuning.results import read_results
from genodiff.finetuning.scored_unit import remove_test
from genodiff.finetuning.sweep import sweep
from genodiff.finetuning.unit import MODEL, README, Unit
from genodiff.runs.model import collect_tensors
from genodiff.runs.sealed_files import read_tensors
from genodiff.tasks.task import seed_split
from tests.finetuning.motif_task import task_data
from tests.finetuning.test_sweep import plan_of, write_table

SCRATCH = "scratch:caduceus-ph-tiny"
ADAPTED = f"adapted:{SCRATCH}"
PLAN = AdaptationPlan(4, 1, True, "a test")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adaptation")
    write_table(folder)
    return folder


def adapt(
    out: Path, part: EncodedPart, plan: AdaptationPlan = PLAN, **more: Any
) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """(record, weights) of an adaptation of an untrained network."""
    (model,) = parse_models([SCRATCH], list_baselines("dna", is_tuned=False))
    backbone, alphabet = model.network(1)
    given = (backbone, model.find_objective(), part, plan, out, alphabet.complement)
    record = adapt_network(*given, **more)  # type: ignore[arg-type]
    return record, collect_tensors(backbone)


def some_part() -> EncodedPart:
    data = task_data(24, lengths=(31, 40))
    return encode(data.train, DNA, 200)


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(a[name], b[name]) for name in a)


def test_a_sweep_adapts_to_the_train_rows_of_each_seed_and_to_nothing_else(home, monkeypatch):
    read: list[tuple[int, set[bytes]]] = []
    make = adaptation.adapt_network

    def adapt_noted(backbone: Any, objective: Any, part: EncodedPart, plan: Any, *more: Any) -> Any:
        places = zip(part.starts, part.lengths, strict=True)
        read.append((plan.seed, {part.ids[start : start + n].tobytes() for start, n in places}))
        return make(backbone, objective, part, plan, *more)

    monkeypatch.setattr(fitted_unit, "adapt_network", adapt_noted)
    over = {"epochs": 1, "batch_size": 16, "head": "mean", "adapt": 2}
    plan = plan_of(home, [ADAPTED], over=over)
    sweep(plan, home / "read")
    data = plan.request.load("motif")
    encoder = plan.models[0].encoder()
    assert [seed for seed, _ in read] == [1, 2]
    for seed, sequences in read:
        rows, valid = seed_split(data, seed)
        parts = [data.train.take(rows), data.train.take(valid), data.test]
        train, held, test = (
            {np.asarray(encoder.encode(s), np.uint8).tobytes() for s in part.sequences}  # type: ignore[union-attr]
            for part in parts
        )
        assert sequences == train
        assert not sequences & (held | test)


def test_labels_validation_and_test_examples_change_no_bit_of_an_adaptation(tmp_path):
    data = remove_test(task_data(40))
    rows, valid = seed_split(data, 1)
    (model,) = parse_models([ADAPTED], list_baselines("dna", is_tuned=False))
    settings = FitSettings(epochs=1, batch_size=16, adapt=2, rc="average")
    found = []
    for i, change in enumerate(("nothing", "labels", "validation", "train")):
        train = data.train._replace(sequences=list(data.train.sequences))
        if change == "labels":
            train = train._replace(labels=1 - train.labels)
        if change != "nothing":
            at = {"labels": valid, "validation": valid, "train": rows}[change][0]
            train.sequences[at] = b"ACGTTGCA" * 5
        given = {"suite": "own", "task": "motif", "split": "own", "data": str(i)}
        unit = Unit(**given, model=model, settings=settings, seed=1)
        fit_unit(unit, data._replace(train=train), tmp_path / change)
        (weights,) = (tmp_path / change).glob(f"adapted/*/{MODEL}")
        found.append((weights.parent.name, read_tensors(weights)))
    assert found[0][0] == found[1][0] == found[2][0] != found[3][0]
    assert same(found[0][1], found[1][1])
    assert same(found[0][1], found[2][1])
    assert not same(found[0][1], found[3][1])


def test_an_adaptation_that_is_stopped_goes_on_to_the_same_bits(tmp_path):
    part = some_part()
    record, whole = adapt(tmp_path / "calm", part)

    def stop(step: int, steps: int, seconds: float) -> None:
        if step == 2:
            raise Interrupted("stopped", 15)

    with pytest.raises(Interrupted):
        adapt(tmp_path / "stopped", part, watch=stop)
    assert list((tmp_path / "stopped").glob(f"adapted/*/{STATE}"))
    steps: list[int] = []
    again, weights = adapt(tmp_path / "stopped", part, watch=lambda step, *_: steps.append(step))
    assert steps == [3, 4]
    assert same(whole, weights)
    assert again["bits"] == record["bits"]
    assert not list((tmp_path / "stopped").glob(f"adapted/*/{STATE}"))
    steps.clear()
    once_more, read = adapt(tmp_path / "stopped", part, watch=lambda step, *_: steps.append(step))
    assert (once_more, steps) == (again, [])  # it is read, not made again
    assert same(read, weights)


def test_a_spoilt_adaptation_is_made_again(tmp_path):
    part = some_part()
    record, whole = adapt(tmp_path, part)
    (file,) = tmp_path.glob(f"adapted/*/{MODEL}")
    file.write_bytes(file.read_bytes()[:-4] + b"\0\0\0\0")
    again, weights = adapt(tmp_path, part)
    assert same(whole, weights)
    assert again["weights_sha256"] == record["weights_sha256"]


@pytest.mark.slow
def test_adapting_learns_what_the_train_sequences_are_made_of(tmp_path):
    data = task_data(32)
    data.train.sequences[:] = [b"AACGT"[i % 5 :] + b"AACGT" * 6 for i in range(32)]
    part = encode(data.train, DNA, 200)
    record, _ = adapt(tmp_path, part, PLAN._replace(steps=60))
    assert record["bits_first"] > 1.5
    assert record["bits_last"] < record["bits_first"] - 0.3
    assert record["n_sequences"] == 32
    assert record["sequences"] == hash_sequences(part)
    assert record["bases"] == part.lengths.sum()
    assert len(record["bits"]) == 20


def test_sequences_without_a_base_are_refused(tmp_path):
    data = task_data(12)
    data.train.sequences[:] = [b"N" * 30] * 12
    with pytest.raises(GenodiffError, match="no base to learn from"):
        adapt(tmp_path, encode(data.train, DNA, 200))


def test_adapted_and_frozen_models_are_lines_of_their_own(home):
    over = {"epochs": 1, "batch_size": 16, "head": "attention", "adapt": 2, "lr": 1e-2}
    out = home / "lines"
    plan = plan_of(home, [SCRATCH, ADAPTED], over=over, methods=("full", "frozen"), seeds=1)
    rows = {(r["model"], r["method"]): r for r in sweep(plan, out)}
    assert set(rows) == {(m, how) for m in (SCRATCH, ADAPTED) for how in ("full", "frozen")}
    assert len({row["key"] for row in rows.values()}) == 4
    assert len(list(out.glob("adapted/*/adapted.json"))) == 1  # both methods read the same
    told = rows[ADAPTED, "full"]["adapted"]
    record = json.loads(next(out.glob("adapted/*/adapted.json")).read_text())
    assert (told["steps"], told["n_sequences"]) == (2, 36)
    assert record["weights_sha256"].startswith(told["weights"])
    assert "adapted" not in rows[SCRATCH, "full"]
    assert "adapt" not in rows[SCRATCH, "full"]["settings"]
    card = out / "units" / rows[ADAPTED, "full"]["key"] / README
    assert "| adapted | 2 steps on the train sequences, without labels |" in card.read_text()
    start = {n: t for n, t in read_tensors(next(out.glob(f"adapted/*/{MODEL}"))).items()}
    frozen = read_tensors(out / "units" / rows[ADAPTED, "frozen"]["key"] / MODEL)
    full = read_tensors(out / "units" / rows[ADAPTED, "full"]["key"] / MODEL)
    assert all(torch.equal(frozen[f"backbone.{n}"], t) for n, t in start.items())
    assert any(not torch.equal(full[f"backbone.{n}"], t) for n, t in start.items())
    began = build_classifier(
        Unit(**{"suite": "table", "task": "motif", "split": "own", "data": "d"},
        model=plan.models[0], settings=FitSettings.parse(rows[SCRATCH, "frozen"]["settings"]),
        seed=1), plan.request.load("motif").task, "cpu",
    )[0]  # fmt: skip
    heads = {n: t for n, t in collect_tensors(began).items() if not n.startswith("backbone.")}
    moved = read_tensors(out / "units" / rows[SCRATCH, "frozen"]["key"] / MODEL)
    assert all(not torch.equal(moved[n], t) for n, t in heads.items() if n != "bias")
    assert read_results(out) == sweep(plan, out)  # nothing runs again


@pytest.mark.parametrize(
    ("words", "adapt", "said"),
    [
        (["adapted:majority"], None, "a baseline has no pretraining"),
        (["adapted:baselines"], None, "a baseline has no pretraining"),
        (["adapted:scratch:caduceus-ph-tyny"], None, "did you mean 'caduceus-ph-tiny'"),
        (["adapted:nothing"], None, "no model 'nothing'"),
        ([SCRATCH], 3, "none is named"),
        ([ADAPTED], 0, "below 1"),
    ],
)
def test_what_cannot_be_adapted_is_said(home, words, adapt, said):
    from genodiff import finetune

    with pytest.raises(UsageError, match=said):
        finetune(
            home / "train.csv", test=home / "test.csv", model=words, adapt=adapt, out=home / "no"
        )
    assert not (home / "no").exists()
