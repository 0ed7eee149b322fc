"""One step: the same objective however it is split, soft-masked bases weighted, nothing non-finite
let through.
"""

import json
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from tiny_training import build_parts, read_rows, run_tiny, tiny

from genodiff.alphabet import DNA
from genodiff.data.loader import Batch
from genodiff.errors import GenodiffError
from genodiff.runs.checkpoint import list_steps, locate_checkpoint, read_state
from genodiff.runs.feed import open_feed, open_train_batches, open_valid_batches
from genodiff.runs.model import collect_tensors, load_model
from genodiff.training import callbacks
from genodiff.training import module as module_file
from genodiff.training.module import batch_loss
from genodiff.training.trainer import validate


def batch(rows: int, length: int, seed: int = 0, pad: int = 0) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    x0 = torch.randint(7, 12, (rows, length), generator=generator)
    lengths = torch.full((rows,), length)
    lengths[-1] -= pad
    x0[torch.arange(length) >= lengths[:, None]] = DNA.pad_id
    u = torch.rand((rows, length + 1), generator=generator, dtype=torch.float64)
    return Batch(
        x0=x0,
        maskable=(x0 >= 7) & (x0 < 11),
        soft=torch.rand((rows, length), generator=generator) < 0.3,
        lengths=lengths,
        u_mask=u[:, 1:].contiguous(),
        u_time=u[:, 0].contiguous(),
        u_shared=0.3,
        slot=torch.arange(rows),
        n_slots=rows,
        index=torch.arange(rows),
    )


def rows_of(whole: Batch, rows: slice) -> Batch:
    return Batch(*(part[rows] if isinstance(part, torch.Tensor) else part for part in whole))


@pytest.mark.parametrize("exact_count", [True, False])
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000), cut=st.integers(1, 5), pad=st.integers(0, 20))
def test_a_batch_and_its_parts_have_the_same_objective(exact_count, seed, cut, pad):
    backbone, objective = build_parts(tiny(exact_count=exact_count))
    whole = batch(6, 32, seed, pad)
    terms, weights = batch_loss(objective, backbone, whole, 0.1)
    parts = [
        batch_loss(objective, backbone, rows_of(whole, rows), 0.1)
        for rows in (slice(0, cut), slice(cut, 6))
    ]
    for name in ("nats", "nats_unweighted"):
        torch.testing.assert_close(
            sum(getattr(p[0], name) for p in parts), getattr(terms, name), rtol=1e-5, atol=1e-4
        )
    assert sum(int(p[0].n_tokens) for p in parts) == int(terms.n_tokens)
    torch.testing.assert_close(sum(p[1] for p in parts), weights)


def test_soft_masked_bases_weigh_what_they_are_given():
    backbone, objective = build_parts(tiny())
    one = batch(4, 32)
    (full, sum_full), (half, sum_half), (none, sum_none) = (
        batch_loss(objective, backbone, one, w) for w in (1.0, 0.5, 0.0)
    )
    torch.testing.assert_close(half.nats, (full.nats + none.nats) / 2)
    torch.testing.assert_close(full.nats.detach(), full.nats_unweighted)
    assert none.nats < full.nats
    assert float(sum_full) == float(one.maskable.sum())
    assert float(sum_none) == float((one.maskable & ~one.soft).sum())
    assert float(sum_half) == (float(sum_full) + float(sum_none)) / 2
    assert none.nats_unweighted == full.nats_unweighted


def test_the_logged_figures_are_those_of_the_step(tmp_path):
    run_tiny(tmp_path / "run", steps=4)
    for row in read_rows(tmp_path / "run"):
        assert int(row["tokens"]) == int(row["step"]) * 4 * 64
        optimised = float.fromhex(row["loss_hex"]) / math.log(2)
        assert float(row["weighted_bits"]) == pytest.approx(optimised, abs=1e-5)
        assert float(row["loss_bits"]) == pytest.approx(optimised, abs=1e-5)
        assert row["skipped"] == "0"
    assert [r["step"] for r in read_rows(tmp_path / "run") if r["valid_bits"]] == ["3", "4"]


@pytest.mark.few(1)
@pytest.mark.parametrize("accumulate", [2, 4])
def test_micro_batches_train_the_same_model(tmp_path, accumulate):
    run_tiny(tmp_path / "one", steps=4)
    run_tiny(tmp_path / "many", steps=4, accumulate=accumulate)
    for a, b in zip(read_rows(tmp_path / "one"), read_rows(tmp_path / "many"), strict=True):
        assert float.fromhex(a["loss_hex"]) == pytest.approx(float.fromhex(b["loss_hex"]), rel=1e-5)
        assert float(a["grad_norm"]) == pytest.approx(float(b["grad_norm"]), rel=1e-3)
    one, many = (collect_tensors(load_model(tmp_path / name).backbone) for name in ("one", "many"))
    for name, tensor in one.items():
        torch.testing.assert_close(many[name], tensor, rtol=1e-3, atol=1e-4)


def test_what_users_load_is_the_average_and_not_the_raw_weights(tmp_path):
    run_tiny(tmp_path / "run", steps=6, lr=0.05)
    state = read_state(locate_checkpoint(tmp_path / "run", 6))
    loaded = collect_tensors(load_model(tmp_path / "run").backbone)
    raw = {n for n in state.tensors if n.startswith("weights.")}
    assert raw == {f"weights.{n}" for n in loaded}
    assert all(torch.equal(loaded[n], state.weights[n]) for n in loaded)
    assert not torch.equal(loaded["embedding"], state.tensors["weights.embedding"])
    assert state.counters["averaged"] == 7


def test_validation_is_the_bound_of_the_averaged_weights(tmp_path):
    run_tiny(tmp_path / "run", steps=6, lr=0.05)
    model = load_model(tmp_path / "run")
    batches = open_valid_batches(open_feed(model.config), model.config)
    assert batches is not None
    bits, interval = validate(model.objective, model.backbone, batches, "cpu")
    last = read_rows(tmp_path / "run")[-1]
    assert (f"{bits:.6f}", f"{interval:.6f}") == (last["valid_bits"], last["valid_ci"])


class Poison:
    """Stands before the loss and spoils it at chosen calls."""

    def __init__(self, calls: set[int], value: float, where: str) -> None:
        self.calls, self.value, self.where = calls, value, where
        self.count, self.real = 0, module_file.batch_loss

    def __call__(self, diffusion: Any, backbone: torch.nn.Module, *rest: Any) -> Any:
        self.count += 1
        terms, weights = self.real(diffusion, backbone, *rest)  # type: ignore[arg-type]
        if self.count not in self.calls:
            return terms, weights
        if self.where == "loss":
            return terms._replace(nats=terms.nats * self.value), weights
        if self.where == "logged":
            return terms._replace(nats_unweighted=terms.nats_unweighted * self.value), weights
        parameter = dict(backbone.named_parameters())["blocks.0.norm.weight"]
        spoiled = (parameter * self.value).sum() * 0.0 + parameter.sum() * self.value
        return terms._replace(nats=terms.nats + spoiled), weights


@pytest.mark.few(3)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", ["loss", "gradient", "logged"])
def test_a_step_that_is_not_finite_leaves_everything_as_it_was(
    tmp_path, monkeypatch, caplog, where, value
):
    monkeypatch.setattr(module_file, "batch_loss", Poison({3}, value, where))
    run_tiny(tmp_path / "run", steps=3, checkpoint_every=1, keep=9)
    rows = read_rows(tmp_path / "run")
    assert [row["skipped"] for row in rows] == ["0", "0", "1"]
    assert "step 3" in caplog.text
    assert "windows 8 to 11" in caplog.text
    before, after = (tmp_path / "run" / "checkpoints" / f"step_0000000{s}" for s in (2, 3))
    for name in ("model.safetensors", "trainer.safetensors"):
        assert (before / name).read_bytes() == (after / name).read_bytes()
    assert json.loads((after / "trainer.json").read_text())["skipped"] == 1
    if where == "gradient":
        assert "the gradient of" in caplog.text


def test_too_many_such_steps_stop_the_run_and_leave_its_last_sound_state(tmp_path, monkeypatch):
    monkeypatch.setattr(module_file, "batch_loss", Poison({2, 4, 5}, math.nan, "loss"))
    with pytest.raises(GenodiffError, match=r"step 5: .*not finite.*2 such steps") as caught:
        run_tiny(tmp_path / "run", steps=9, max_skipped=2)
    assert caught.value.exit_code == 1
    assert list_steps(tmp_path / "run") == [4, 2]
    monkeypatch.undo()
    monkeypatch.setattr(module_file, "batch_loss", Poison({1}, math.nan, "loss"))
    with pytest.raises(GenodiffError, match="not finite"):
        run_tiny(tmp_path / "run", steps=9, max_skipped=2)
    monkeypatch.undo()
    assert run_tiny(tmp_path / "run", steps=9, max_skipped=2).step == 9


def test_a_state_that_is_not_finite_is_never_saved(tmp_path, monkeypatch):
    real = callbacks.read_moments

    def spoiled(*args: Any) -> dict[str, torch.Tensor]:
        return {name: tensor / 0 for name, tensor in real(*args).items()}

    monkeypatch.setattr(callbacks, "read_moments", spoiled)
    with pytest.raises(GenodiffError, match="no checkpoint is written"):
        run_tiny(tmp_path / "run")
    assert list_steps(tmp_path / "run") == []


@pytest.mark.parametrize("name", ["norm.weight", "A_log"])  # at -inf A_log is a finite decay
def test_weights_that_are_not_finite_stop_the_run_at_once_and_are_named(
    tmp_path, monkeypatch, name
):
    real, count = module_file.batch_loss, iter(range(99))

    def spoil(diffusion: Any, backbone: torch.nn.Module, *rest: Any) -> Any:
        if next(count) == 2:
            with torch.no_grad():
                found = [p for n, p in backbone.named_parameters() if n.endswith(name)]
                found[0].view(-1)[1] = -math.inf
        return real(diffusion, backbone, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(module_file, "batch_loss", spoil)
    with pytest.raises(GenodiffError, match=rf"step 3: the weights \S*{name} are not"):
        run_tiny(tmp_path / "run")
    assert list_steps(tmp_path / "run") == [2]


def test_the_batch_of_a_step_that_is_not_finite_is_kept(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(module_file, "batch_loss", Poison({3}, math.nan, "loss"))
    run_tiny(tmp_path / "run", steps=2, accumulate=2)
    assert "its batch is in faulty_batches/step_00000002_rank_0.safetensors" in caplog.text
    kept = load_file(tmp_path / "run" / "faulty_batches" / "step_00000002_rank_0.safetensors")
    config = tiny(accumulate=2)
    batches = open_train_batches(open_feed(config), config)
    for micro in (0, 1):
        seen = batches.batch(2 + micro)
        assert torch.equal(kept[f"{micro}.x0"], seen.x0)
        assert torch.equal(kept[f"{micro}.u_mask"], seen.u_mask)
