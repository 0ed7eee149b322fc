"""Fitting: it learns, it stops by validation alone, it goes on after a kill to the same bits."""

import numpy as np
import pytest
import torch

from genodiff.alphabet import DNA
from genodiff.backbones.caduceus import CaduceusSettings
from genodiff.errors import CheckpointError, GenodiffError
from genodiff.finetuning.batches import EncodedPart, draw_hidden, encode, shuffle_batches
from genodiff.finetuning.fit import (
    FitOptions,
    FitResult,
    Tick,
    count_outputs,
    fit,
    probabilities,
    raw_scores,
)
from genodiff.finetuning.head import Classifier
from genodiff.finetuning.protocol import FitSettings
from genodiff.runs.model import collect_tensors
from genodiff.tasks.metrics import measure
from tests.finetuning.motif_task import task_data

NETWORK = {"d_model": 16, "n_layer": 1, "d_state": 4}


def network(n_out: int = 2, strands: str = "paired", seed: int = 1, **head: object) -> Classifier:
    backbone = CaduceusSettings(**NETWORK, strands=strands).build(
        DNA.padded_size, DNA.complement, seed=seed
    )  # type: ignore[arg-type]
    return Classifier(backbone, n_out, FitSettings(**head), DNA.complement, seed=seed)  # type: ignore[arg-type]


def parts(
    kind: str = "binary", n: int = 64, lengths: tuple[int, int] = (40, 40)
) -> tuple[EncodedPart, EncodedPart]:
    data = task_data(n, 24, lengths, kind)
    return encode(data.train, DNA, 200), encode(data.test, DNA, 200)


def weights(fitted: FitResult) -> dict[str, bytes]:
    return {k: v.numpy().tobytes() for k, v in collect_tensors(fitted.classifier).items()}


def test_a_fit_learns_a_planted_motif():
    train, valid = parts(n=600)
    settings = FitSettings(epochs=8, batch_size=32, lr=2e-2, weight_decay=0.0)
    found = fit(network(), train, valid, FitOptions("binary", "accuracy", settings, 1))
    assert found.valid >= 0.85
    assert found.history[-1].train_loss < 0.5 * found.history[0].train_loss
    predicted = probabilities("binary", raw_scores(found.classifier, valid))
    assert measure("accuracy", "binary", valid.labels, predicted) == found.valid
    best = found.history[found.best_epoch].valid
    assert found.valid == best == max(e.valid for e in found.history)


@pytest.mark.parametrize("kind", ["multiclass", "multilabel", "regression"])
def test_every_kind_of_task_can_be_fitted(kind):
    data = task_data(48, 24, (30, 50), kind)
    train, valid = encode(data.train, DNA, 200), encode(data.test, DNA, 200)
    n_out = count_outputs(kind, data.task.classes)
    metric = data.task.metrics[0]
    settings = FitSettings(epochs=2, batch_size=16, lr=1e-2)
    found = fit(network(n_out), train, valid, FitOptions(kind, metric, settings, 1))
    predicted = probabilities(kind, raw_scores(found.classifier, valid), found.scale)
    assert predicted.shape == ((24,) if kind == "regression" else (24, n_out))
    if kind == "regression":
        assert 9 < predicted.mean() < 14  # in the values' own unit
    else:
        assert ((predicted >= 0) & (predicted <= 1)).all()


@pytest.mark.few(3)
@pytest.mark.parametrize("strands", ["paired", "single"])
@pytest.mark.parametrize("ema", [0.0, 0.9])
@pytest.mark.parametrize("stop_at", [1, 4, 7, 9])
def test_a_fit_that_is_stopped_anywhere_goes_on_to_the_same_bits(
    strands, ema, stop_at, tmp_path, monkeypatch
):
    train, valid = parts(n=60, lengths=(20, 60))
    settings = FitSettings(
        epochs=3, batch_size=16, lr=1e-2, dropout=0.2, ema=ema, mask_share=ema / 9
    )
    options = FitOptions("binary", "accuracy", settings, 7)
    calm = fit(network(strands=strands, dropout=0.2), train, valid, options)
    monkeypatch.setattr("genodiff.finetuning.fit_loop.SAVE_SECONDS", -1.0)  # after every step
    state = tmp_path / "state.safetensors"

    class Killed(Exception):
        pass

    def watch(tick: Tick) -> None:
        if tick.step == stop_at:
            raise Killed

    with pytest.raises(Killed):
        fit(network(strands=strands, dropout=0.2), train, valid, options, state=state, identity="a",
            watch=watch)  # fmt: skip
    steps: list[int] = []
    found = fit(
        network(strands=strands, dropout=0.2),
        train,
        valid,
        options,
        state=state,
        identity="a",
        watch=lambda t: steps.append(t.step),
    )
    assert steps[0] == stop_at + 1
    assert weights(found) == weights(calm)
    assert found.history == calm.history


def test_a_foreign_or_damaged_state_is_refused(tmp_path):
    train, valid = parts(n=20)
    options = FitOptions("binary", "accuracy", FitSettings(epochs=1, batch_size=16), 7)
    state = tmp_path / "state.safetensors"
    fit(network(), train, valid, options, state=state, identity="a")
    with pytest.raises(CheckpointError, match="another fit"):
        fit(network(), train, valid, options, state=state, identity="b")
    raw = state.read_bytes()
    for damaged in (
        raw[:-8],
        raw[: len(raw) // 2] + bytes([raw[len(raw) // 2] ^ 1]) + raw[len(raw) // 2 + 1 :],
        b"",
        b"x" * 99,
    ):
        state.write_bytes(damaged)
        with pytest.raises(CheckpointError):
            fit(network(), train, valid, options, state=state, identity="a")


def test_an_average_of_the_weights_is_judged_and_kept():
    train, valid = parts(n=100)
    plain = FitSettings(epochs=1, batch_size=16, lr=1e-2)
    learner = network()
    mean = {name: tensor.double() for name, tensor in collect_tensors(learner).items()}

    def watch(tick: Tick) -> None:
        decay = min(0.3, (1 + tick.step) / (10 + tick.step))
        for name, tensor in collect_tensors(learner).items():
            mean[name] = decay * mean[name] + (1 - decay) * tensor.double()

    last = fit(learner, train, valid, FitOptions("binary", "accuracy", plain, 1), watch=watch)
    asked = FitOptions("binary", "accuracy", plain.model_copy(update={"ema": 0.3}), 1)
    averaged = fit(network(), train, valid, asked)
    for name, tensor in collect_tensors(averaged.classifier).items():
        assert torch.allclose(tensor.double(), mean[name], atol=1e-6), name
    assert weights(averaged) != weights(last)
    assert averaged.history[0].train_loss == last.history[0].train_loss
    assert averaged.history[0].valid_loss != last.history[0].valid_loss


def test_what_is_off_is_not_in_the_name_of_a_fit():
    assert not {"ema", "mask_share"} & FitSettings().model_dump().keys()
    assert FitSettings(ema=0.9).model_dump()["ema"] == 0.9
    assert FitSettings(mask_share=0.1).model_dump()["mask_share"] == 0.1


def test_training_hides_bases_anew_in_each_epoch_and_validation_none():
    train, valid = parts(n=64, lengths=(20, 60))
    shown: dict[bool, list[torch.Tensor]] = {True: [], False: []}
    classifier = network()
    classifier.register_forward_pre_hook(lambda me, given: shown[me.training].append(given[0]))
    settings = FitSettings(epochs=2, batch_size=64, lr=1e-3, mask_share=0.3)
    fit(classifier, train, valid, FitOptions("binary", "accuracy", settings, 5))
    assert not any((x == DNA.mask_id).any() for x in shown[False])
    masks = []
    for epoch, x in enumerate(shown[True]):
        rows = shuffle_batches(train.lengths, 64, 5, epoch)[0]
        whole, lengths = train.collate(rows)
        hidden = x == DNA.mask_id
        inside = torch.arange(x.shape[1]) < lengths[:, None]
        assert torch.equal(x[~hidden], whole[~hidden])
        assert not hidden[~inside].any()
        assert 0.25 < hidden[inside].float().mean() < 0.35
        masks.append({int(row): h.tolist() for row, h in zip(rows, hidden, strict=True)})
    assert len(masks) == 2
    assert all(masks[0][row] != masks[1][row] for row in masks[0])
    part = draw_hidden(5, 1, np.array([7, 3]), 60, 0.3)
    assert torch.equal(part[1], draw_hidden(5, 1, np.array([3]), 60, 0.3)[0])


def test_patience_ends_a_fit_and_the_best_epoch_is_kept():
    train, valid = parts(n=40)
    nothing = FitSettings(epochs=50, batch_size=16, lr=1e-9, warmup_lr=0, patience=3)
    found = fit(network(), train, valid, FitOptions("binary", "accuracy", nothing, 1))
    assert len(found.history) == 4
    assert found.best_epoch == 0


def test_steps_can_be_limited_in_place_of_epochs():
    train, valid = parts(n=40)
    settings = FitSettings(max_steps=5, batch_size=16)
    found = fit(network(), train, valid, FitOptions("binary", "accuracy", settings, 1))
    assert [e.step for e in found.history] == [3, 5]


def test_a_loss_that_is_not_finite_ends_the_fit_in_one_line():
    train, valid = parts(n=20)
    broken = network()
    with torch.no_grad():
        broken.weight[0, 0] = float("nan")
    with pytest.raises(GenodiffError, match="not finite"):
        fit(broken, train, valid, FitOptions("binary", "accuracy", FitSettings(epochs=1), 1))


def test_the_learning_rate_warms_up_and_falls_to_its_share():
    settings = FitSettings(lr=2e-3)
    rates = np.array([settings.learning_rate(i, 1000) for i in range(1001)])
    assert rates[0] == pytest.approx(1e-6)
    assert rates[10] == rates.max() == pytest.approx(2e-3)
    assert rates[1000] == pytest.approx(2e-4)
    assert (np.diff(rates[10:]) <= 0).all()
