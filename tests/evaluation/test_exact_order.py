"""`eval --order`: the exact likelihood of windows under a sampler's order, beside the bound."""

import itertools
import json
from typing import Any

import numpy as np
import pytest
import torch
from tiny_run import SEQ_LEN, differ, genome_text
from torch import Tensor, nn

import genodiff
from genodiff.data.loader import EvalBatches
from genodiff.diffusion.order_likelihood import index_order, order_likelihood
from genodiff.diffusion.sampler import SAMPLERS, SamplerOptions
from genodiff.errors import GenodiffError, UsageError
from genodiff.evaluation.bound import measure_bound
from genodiff.evaluation.eval_data import open_data, open_window_memory
from genodiff.evaluation.exact_order import OrderScorer, measure_order, read_order
from genodiff.evaluation.request import EvalOptions
from genodiff.memory.memory import NOWHERE
from genodiff.memory.remembering import remembering
from genodiff.runs.trained_model import TrainedModel
from genodiff.runs.training_memory import open_train_memory
from tests.commands import command

ALL = ["left-to-right", "both-ends", "confidence", "entropy-bounded", "random"]


def measure(model: TrainedModel, size: int = 4, **asked: Any) -> np.ndarray:
    """(3, windows) of three windows, one of which is short."""
    options = EvalOptions(**asked)
    data = open_data(model)
    windows = data.windows.take(np.r_[0:2, len(data.windows) - 1])
    memory = open_window_memory(model, options, data)
    order = read_order(model, options)
    assert order is not None
    scorer = OrderScorer(model, order, size, None if memory is None else memory.of(windows))
    return measure_order(scorer, EvalBatches(windows, size, 1))


@pytest.mark.few(1)
@pytest.mark.parametrize("order", ALL)
def test_no_batch_changes_a_figure(model, order):
    whole, single = measure(model, 4, order=order), measure(model, 1, order=order)
    np.testing.assert_allclose(whole, single, rtol=1e-6)
    if order != "entropy-bounded":  # one evaluation for each base
        batches = EvalBatches(open_data(model).windows, 4, 1)
        bases = measure_bound(model.objective, model.backbone, batches)
        assert whole[2, 0] == bases.tokens[:, 0].sum()


def test_from_left_to_right_it_is_the_sum_over_bases(model):
    data = open_data(model)
    batch = EvalBatches(data.windows.take(np.array([1])), 1, 1).batch(0, 0)
    nats, x0 = 0.0, batch.x0
    for i in range(int(batch.lengths[0])):
        if batch.maskable[0, i]:
            xt = model.diffusion.mask(x0, batch.maskable & (torch.arange(x0.shape[1]) >= i))
            law = model.diffusion.log_x0(model.backbone(xt, None), xt)
            nats -= law[0, i, x0[0, i]].item()
    assert measure(model, order="left-to-right")[:2, 1].sum() == pytest.approx(nats, rel=1e-6)


@pytest.mark.slow
def test_some_evaluations_estimate_all_without_bias(model):
    data = open_data(model)
    windows = data.windows.take(np.arange(2))
    totals = []
    for seed in range(25):
        order = read_order(model, EvalOptions(order="both-ends", order_evaluations=5))
        assert order is not None
        found = measure_order(OrderScorer(model, order, 16), EvalBatches(windows, 2, seed))
        assert found[2].tolist() == [5, 5]
        totals.append(found[:2].sum(0))
    exact = measure(model, order="both-ends")[:2, :2].sum(0)
    mean, error = np.mean(totals, 0), np.std(totals, 0) / np.sqrt(len(totals))
    assert (np.abs(mean - exact) < 4 * error).all()
    every = measure(model, order="both-ends", order_evaluations=SEQ_LEN)
    np.testing.assert_array_equal(every, measure(model, order="both-ends"))


def score_fillings(model: TrainedModel, name: str, text: str, denoiser: Any) -> Tensor:
    """−ln p of the 64 fillings of a gap of three bases in a window, in a sampler's order."""
    window = torch.from_numpy(model.alphabet.encode(text).astype(np.int64))
    gap, x0 = [20, 21, 44], window.repeat(64, 1)
    x0[:, gap] = torch.tensor(list(itertools.product(model.diffusion.targets, repeat=3)))
    hidden = torch.zeros_like(x0, dtype=torch.bool)
    hidden[:, gap] = True
    options = SamplerOptions(index_order(64, 64), torch.zeros(64, 64, dtype=torch.float64), 64)
    settings = {"bound": 0.0} if name == "entropy-bounded" else {}
    asked = (SAMPLERS[name], model.diffusion, denoiser, x0, hidden, options)
    return order_likelihood(*asked, **settings).total


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["confidence", *ALL[:2], "entropy-bounded", "first-hitting"])
def test_with_a_memory_all_fillings_of_a_gap_sum_to_one(model, name):
    """The gap stands where the memory has a copy, so that it has much to say."""
    memory = open_train_memory(model).memory
    text = genome_text().splitlines()[1].upper()[1000:1064]
    model.backbone.double()

    def always_all(xt: Tensor, sigma: Tensor) -> Tensor:
        return remembering(model.backbone, memory, without=[NOWHERE] * len(xt))(xt, sigma)

    found = score_fillings(model, name, text, always_all)
    assert (-found).exp().sum().item() == pytest.approx(1, abs=1e-5)
    assert (score_fillings(model, name, text, model.backbone) - found).abs().max() > 0.3


@pytest.mark.few(1)
@pytest.mark.parametrize("order", ["left-to-right", "confidence"])
def test_with_relatives_all_fillings_of_a_gap_sum_to_one(run, tmp_path, order):
    """A base of the gap tells the relatives what stands beside the next, and no base to come."""
    (tmp_path / "near.fa").write_text(differ(genome_text(), 0.12, 2))
    text = genome_text().splitlines()[1].upper()[2000:2064]
    models = (genodiff.load(run), genodiff.load(run, relatives=[tmp_path / "near.fa"]))
    alone, found = (score_fillings(m.trained, order, text, m.trained.backbone) for m in models)
    assert (-found).exp().sum().item() == pytest.approx(1, abs=1e-5)
    assert (alone - found).abs().max() > 0.3


@pytest.mark.few(1)
@pytest.mark.parametrize("order", ["left-to-right", "confidence"])
def test_a_memory_is_read_whatever_the_batch(model, order):
    found = measure(model, 4, order=order, memory="on")
    np.testing.assert_allclose(found, measure(model, 1, order=order, memory="on"), rtol=1e-6)
    assert np.abs(found[:2] - measure(model, order=order)[:2]).max() > 0.1


def test_the_figure_stands_beside_the_bound(run, capsys):
    asked = {"max_windows": 8, "baselines": False, "repeats": 2}
    plain = genodiff.evaluate(run, **asked)
    found = genodiff.evaluate(run, order="left-to-right", **asked)
    assert plain["order"] is None
    assert found["bits_per_base"] == plain["bits_per_base"]
    told = found["order"]
    assert told["complete"]
    assert told["minus_model_bits"]["bits"] == pytest.approx(told["bits"] - found["bits_per_base"])
    assert told["ci95"][0] < told["bits"] < told["ci95"][1]
    kept = json.loads((run / "eval.json").read_text())
    assert found in kept.values()
    assert plain in kept.values()
    assert any("no order" in name for name in kept)
    asked_on_line = ("--order", "random", "--order-evaluations", 4, "--max-windows", 6)
    code, said, _ = command(capsys, "eval", run, *asked_on_line, "--no-baselines")
    assert (code, "random, exact" in said) == (0, True)


def test_a_plan_counts_the_evaluations(run):
    plain = genodiff.evaluate(run, plan=True, max_windows=4)
    found = genodiff.evaluate(run, plan=True, max_windows=4, order="left-to-right")
    assert found["tokens"] == plain["tokens"] * (1 + SEQ_LEN)


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ({"order": "left-to-rigt"}, "no order 'left-to-rigt'; did you mean 'left-to-right'?"),
        ({"order": "p2"}, "sampler 'p2' has no exact likelihood"),
        ({"order_options": {"steps": 3.0}}, "--order-option is a setting of --order"),
        ({"order_evaluations": 3}, "--order-evaluations is a setting of --order"),
        ({"order": "both-ends", "order_options": {"step": 3.0}}, "has no setting 'step'"),
        ({"order": "both-ends", "order_options": {"at_once": 0.5}}, "not a count of bases"),
        ({"order": "confidence", "order_options": {"steps": 0.0}}, "steps = 0 is not a count"),
        ({"order": "confidence", "order_evaluations": 3}, "'confidence' reads the network"),
        ({"order": "random", "context": "contig"}, "exclude each other"),
        ({"order": "entropy-bounded", "order_options": {"bound": -1.0}}, "entropy bound"),
        ({"order": "random", "order_evaluations": 0}, "order-evaluations"),
    ],
)
def test_what_cannot_be_is_one_line(run, asked, line):
    with pytest.raises(UsageError, match=line.replace("?", r"\?")) as fault:
        genodiff.evaluate(run, **asked)
    assert "\n" not in str(fault.value)


class Coupled(nn.Module):
    """A network that draws a number of its own, which all positions are told of."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, xt: Tensor, *more: Any, **options: Any) -> Tensor:
        logits: Tensor = self.network(xt, *more, **options)
        return logits + 4 * torch.randn(len(xt), 1, logits.shape[-1])


def test_a_network_whose_positions_depend_on_one_another_has_no_bound(model):
    torch.manual_seed(1)
    batches = EvalBatches(open_data(model).windows, 4, 1)
    with pytest.raises(UsageError, match="depend on one another"):
        measure_bound(model.objective, Coupled(model.backbone), batches)
    with pytest.raises(GenodiffError, match="depend on one another"):
        genodiff.evaluate(model._replace(network=Coupled(model.backbone)), keep=False)


def test_sequences_in_memory(run):
    m = genodiff.load(run)
    given = ["ACGTTGCATT", "ACGTTGCATT", "acgtNNgatt", "NNN", "ACGTACGTACGT"]
    found = m.log_likelihood(given, order="both-ends")
    assert found.shape == (5,)
    assert found[0] == found[1]
    assert found[3] == 0
    assert (found[[0, 2, 4]] < 0).all()
    np.testing.assert_allclose(found, m.log_likelihood(given, order="both-ends", batch_size=1))
    assert m.log_likelihood("ACGTTGCATT", order="both-ends")[0] == pytest.approx(found[0])
    every = ["".join(one) for one in itertools.product("ACGT", repeat=3)]
    for order in ("both-ends", "entropy-bounded"):
        p = np.exp(m.log_likelihood(every, order=order))
        assert p.sum() == pytest.approx(1, abs=1e-5)
    with pytest.raises(UsageError, match="100 bases, and a window 64"):
        m.log_likelihood("A" * 100)
    with pytest.raises(UsageError, match="no order 'x'"):
        m.log_likelihood("ACGT", order="x")
