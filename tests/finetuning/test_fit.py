"""Fitting: it learns, it stops by validation alone, it goes on after a kill to the same bits."""

import numpy as np
import pytest
import torch

from genodiff.alphabet import DNA
from genodiff.backbones.caduceus import CaduceusSettings
from genodiff.errors import GenodiffError
from genodiff.finetuning.adapters import adapted_weights
from genodiff.finetuning.batches import EncodedPart, draw_hidden, encode, shuffle_batches
from genodiff.finetuning.fit import probabilities, raw_scores
from genodiff.finetuning.fit_loop import FitLoop, Tick
from genodiff.finetuning.head import Classifier
from genodiff.finetuning.protocol import FitSettings
from genodiff.runs.model import collect_tensors
from genodiff.tasks.metrics import measure
from tests.finetuning.motif_task import fit, task_data

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


def weights(fitted: FitLoop) -> dict[str, bytes]:
    return {k: v.numpy().tobytes() for k, v in collect_tensors(fitted.lesson.network).items()}


@pytest.mark.slow
def test_a_fit_learns_a_planted_motif():
    settings = FitSettings(epochs=8, batch_size=32, lr=2e-2, weight_decay=0.0)
    found = fit(network(), (both := parts(n=600)), settings)
    best = found.history[found.best_epoch].valid
    assert best == max(e.valid for e in found.history) >= 0.85
    assert found.history[-1].train_loss < 0.5 * found.history[0].train_loss
    predicted = probabilities("binary", raw_scores(found.lesson.network, both[1]))
    assert measure("accuracy", "binary", both[1].labels, predicted) == best


@pytest.mark.parametrize("kind", ["multiclass", "multilabel", "regression"])
def test_every_kind_of_task_can_be_fitted(kind):
    task = task_data(kind=kind).task
    n_out, both = task.n_out, parts(kind, 48, (30, 50))
    settings = FitSettings(epochs=2, batch_size=16, lr=1e-2)
    lesson = fit(network(n_out), both, settings, kind=kind, metric=task.metrics[0]).lesson
    predicted = probabilities(kind, raw_scores(lesson.network, both[1]), lesson.scale)
    assert predicted.shape == ((24,) if kind == "regression" else (24, n_out))
    if kind == "regression":
        assert 9 < predicted.mean() < 14  # in the values' own unit
    else:
        assert ((predicted >= 0) & (predicted <= 1)).all()


@pytest.mark.few(3)
@pytest.mark.parametrize("strands", ["paired", "single"])
@pytest.mark.parametrize("ema", [0.0, 0.9])
@pytest.mark.parametrize("adapter", [None, "lora:r=2"])
@pytest.mark.parametrize("stop_at", [1, 4, 7, 9])
def test_a_fit_that_is_stopped_anywhere_goes_on_to_the_same_bits(
    strands, ema, adapter, stop_at, tmp_path, monkeypatch
):
    settings = FitSettings(
        epochs=3, batch_size=16, lr=1e-2, dropout=0.2, ema=ema, mask_share=ema / 9
    )
    both, steps = parts(n=60, lengths=(20, 60)), list[int]()

    class Killed(Exception):
        pass

    def run(stop_at: int | None = None, **how: object) -> FitLoop:
        def watch(tick: Tick) -> None:
            steps.append(tick.step)
            if tick.step == stop_at:
                raise Killed

        classifier = network(strands=strands, dropout=0.2)
        with adapted_weights(classifier.backbone, adapter, 7):
            return fit(classifier, both, settings, 7, watch=watch, **how)

    calm = run()
    full = sum(p.numel() for p in calm.lesson.network.parameters())
    assert calm.trained == full if adapter is None else calm.trained < full / 3
    monkeypatch.setattr("genodiff.finetuning.fit_loop.SAVE_SECONDS", -1.0)  # after every step
    state = {"state": tmp_path / "state.safetensors", "identity": "a"}
    with pytest.raises(Killed):
        run(stop_at, **state)
    steps.clear()
    found = run(**state)
    assert steps[0] == stop_at + 1
    assert weights(found) == weights(calm)
    assert found.history == calm.history


def test_a_foreign_or_damaged_state_is_told_and_not_used(tmp_path, caplog):
    both, settings = parts(n=20), FitSettings(epochs=1, batch_size=16)
    state = tmp_path / "state.safetensors"
    calm = fit(network(), both, settings, state=state, identity="a")
    raw = state.read_bytes()
    half = len(raw) // 2
    flipped = raw[:half] + bytes([raw[half] ^ 1]) + raw[half + 1 :]
    for identity, given in (("b", raw), *(("a", x) for x in (raw[:-8], flipped, b"", b"x" * 99))):
        state.write_bytes(given)
        caplog.clear()
        again = fit(network(), both, settings, state=state, identity=identity)
        assert "starting again" in caplog.text
        assert (again.step, weights(again)) == (calm.step, weights(calm))


def test_an_average_of_the_weights_is_judged_and_kept():
    both = parts(n=100)
    plain = FitSettings(epochs=1, batch_size=16, lr=1e-2)
    learner = network()
    mean = {name: tensor.double() for name, tensor in collect_tensors(learner).items()}

    def watch(tick: Tick) -> None:
        decay = min(0.3, (1 + tick.step) / (10 + tick.step))
        for name, tensor in collect_tensors(learner).items():
            mean[name] = decay * mean[name] + (1 - decay) * tensor.double()

    last = fit(learner, both, plain, watch=watch)
    averaged = fit(network(), both, plain.model_copy(update={"ema": 0.3}))
    for name, tensor in collect_tensors(averaged.lesson.network).items():
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
    fit(classifier, (train, valid), settings, 5)
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
    nothing = FitSettings(epochs=50, batch_size=16, lr=1e-9, warmup_lr=0, patience=3)
    found = fit(network(), parts(n=40), nothing)
    assert len(found.history) == 4
    assert found.best_epoch == 0


def test_steps_can_be_limited_in_place_of_epochs():
    found = fit(network(), parts(n=40), FitSettings(max_steps=5, batch_size=16))
    assert [e.step for e in found.history] == [3, 5]


def test_a_loss_that_is_not_finite_ends_the_fit_in_one_line():
    broken = network()
    with torch.no_grad():
        broken.weight[0, 0] = float("nan")
    with pytest.raises(GenodiffError, match="not finite"):
        fit(broken, parts(n=20), FitSettings(epochs=1))


def test_the_learning_rate_warms_up_and_falls_to_its_share():
    settings = FitSettings(lr=2e-3)
    rates = np.array([settings.learning_rate(i, 1000) for i in range(1001)])
    assert rates[0] == pytest.approx(1e-6)
    assert rates[10] == rates.max() == pytest.approx(2e-3)
    assert rates[1000] == pytest.approx(2e-4)
    assert (np.diff(rates[10:]) <= 0).all()
