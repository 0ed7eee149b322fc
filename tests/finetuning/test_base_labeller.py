"""Scores at each base: what the other strand, padding and far bases change, and must not."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from genodiff.annotation.codon_states import decode_path
from genodiff.annotation.gene_grammar import (
    STATES,
    UNKNOWN,
    allow_steps,
    list_genes,
    mirror_states,
)
from genodiff.backbones.backbone import InitialValues
from genodiff.finetuning.base_heads import BASE_HEADS, Convolution
from genodiff.finetuning.base_labeller import BaseLabeller
from genodiff.finetuning.base_lesson import BaseTask, balance_classes, class_cost, value_cost
from tests.tiny_networks import COMPLEMENT, bases, network, reverse_complement

HEADS = list(BASE_HEADS)
SMALL = {"linear": {}, "conv": {"channels": 8, "kernel": 5, "layers": 2},
         "unet": {"channels": 8, "kernel": 5, "levels": 2}}  # fmt: skip


def labeller(head: str, strands: str = "paired", rc: str = "auto") -> BaseLabeller:
    found = BaseLabeller(
        network(3, strands=strands), mirror_states(), strands=rc, complement=COMPLEMENT,
        head=head, options=SMALL[head], seed=7,
    )  # fmt: skip
    return found.eval()


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("strands", ["paired", "single"])
def test_scores_of_the_other_strand_are_those_of_the_mirrored_states(head, strands):
    model, x = labeller(head, strands), bases(3, 53)
    lengths = torch.full((3,), 53)
    with torch.no_grad():
        given = model.predict(x, lengths)
        other = model.predict(reverse_complement(x), lengths)
        alone = model.head(model.features(x, lengths), lengths)
    turned = other.flip(1)[..., list(mirror_states())]
    assert (turned - given).abs().max() <= 1e-6
    assert given.shape == (3, 53, len(STATES))
    assert (given - alone).abs().max() > 1e-3  # both strands are read


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("strands", ["paired", "single"])
def test_padding_changes_no_score(head, strands):
    model, x = labeller(head, strands), bases(4, 41)
    lengths = torch.tensor([41, 30, 7, 1])
    with torch.no_grad():
        together = model.predict(x, lengths)
        for row, n in enumerate(lengths.tolist()):
            alone = model.predict(x[row : row + 1, :n], torch.tensor([n]))
            torch.testing.assert_close(together[row, :n], alone[0], atol=1e-5, rtol=0)


def test_a_convolution_is_its_sum_at_every_base():
    layer = Convolution(3, 2, 5, InitialValues(1), step=2)
    torch.nn.init.normal_(layer.bias, generator=torch.Generator().manual_seed(0))
    x = torch.randn(1, 3, 17, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        found = layer(x)[0]
        for at in range(17):
            wanted = layer.bias.clone()
            for j in range(5):
                if 0 <= (place := at + 2 * (j - 2)) < 17:
                    wanted = wanted + layer.weight[:, :, j] @ x[0, :, place]
            torch.testing.assert_close(found[:, at], wanted)


@pytest.mark.parametrize(("head", "reach"), [("linear", 0), ("conv", 6), ("unet", None)])
def test_a_head_sees_as_far_as_it_says(head, reach):
    model = BASE_HEADS[head](6, 4, InitialValues(2), **SMALL[head])
    h = torch.randn(1, 61, 6, generator=torch.Generator().manual_seed(3), requires_grad=True)
    model(h, torch.tensor([61]))[0, 30].sum().backward()
    seen = h.grad[0].abs().sum(1).nonzero()[:, 0]
    if reach is None:  # levels see twice as far each
        assert seen.min() <= 30 - 8
        assert seen.max() >= 30 + 8
    else:
        assert (int(seen.min()), int(seen.max())) == (30 - reach, 30 + reach)
    rebuilt = BASE_HEADS[head](6, 4, InitialValues(2), **model.sizes)
    with torch.no_grad():
        length = torch.tensor([61])
        assert (rebuilt(h, length) == model(h, length)).all()


def test_known_bases_alone_cost_and_each_class_by_its_weight():
    draw = torch.Generator().manual_seed(4)
    scores = torch.randn(2, 6, 3, generator=draw, requires_grad=True)
    labels = torch.tensor([[0, 1, 2, UNKNOWN, UNKNOWN, 1], [UNKNOWN] * 5 + [2]], dtype=torch.int8)
    weights = torch.tensor([1.0, 2.0, 5.0])
    for given in (None, weights):
        total = below = 0.0
        for i, j in ((0, 0), (0, 1), (0, 2), (0, 5), (1, 5)):
            y = int(labels[i, j])
            w = 1.0 if given is None else float(given[y])
            total -= w * float(scores[i, j].detach().log_softmax(0)[y])
            below += w
        found = class_cost(scores, labels, given)
        assert float(found.detach()) == pytest.approx(total / below, rel=1e-6)
        (gradient,) = torch.autograd.grad(found, scores)
        assert (gradient.abs().sum(2) > 0).tolist() == (labels != UNKNOWN).tolist()
    nothing = class_cost(scores, torch.full_like(labels, UNKNOWN), weights)
    assert float(nothing.detach()) == 0
    assert torch.autograd.grad(nothing, scores)[0].abs().max() == 0


def test_values_cost_where_they_are_known():
    draw = torch.Generator().manual_seed(5)
    scores = torch.randn(2, 5, 2, generator=draw)
    values = torch.rand(2, 5, 2, generator=draw) * 4
    values[0, 1:4, 0] = torch.nan
    known = values.isfinite()
    wanted = F.poisson_nll_loss(scores[known], values[known], log_input=True)
    torch.testing.assert_close(value_cost("poisson", scores, values), wanted)
    wanted = F.mse_loss(scores[known], values[known])
    torch.testing.assert_close(value_cost("mse", scores, values), wanted)
    assert float(value_cost("poisson", scores, torch.full_like(values, torch.nan))) == 0
    # At the values that scores mean, each cost is least.
    rates = values[known].clone()
    for loss in ("poisson", "mse"):
        s = torch.zeros_like(rates, requires_grad=True)
        best = torch.optim.LBFGS([s], max_iter=100, line_search_fn="strong_wolfe")

        def step(s=s, best=best, loss=loss) -> torch.Tensor:
            best.zero_grad()
            total = value_cost(loss, s, rates)
            total.backward()
            return total

        best.step(step)
        mean = BaseTask("values", ("track",), loss).read(s.detach())
        torch.testing.assert_close(mean, rates, atol=1e-2, rtol=1e-2)


def test_weights_of_classes_are_between_bases_alike_and_classes_alike():
    counts = np.array([1000, 10, 1, 0])
    assert balance_classes(counts, 0.0).tolist() == [1, 1, 1, 0]
    alike = balance_classes(counts, 1.0) * counts
    assert np.ptp(alike[:3]) < 1e-3
    assert (balance_classes(counts, 0.5) @ counts) == pytest.approx(counts.sum(), rel=1e-6)


@pytest.mark.slow
def test_the_best_path_is_in_the_grammar_and_mirrored_for_the_mirrored_scores():
    """60 contigs of 1 to 330 random scores: about 10,000 bases."""
    draw, steps, mirror = np.random.default_rng(6), allow_steps(), np.array(mirror_states())
    for length in (1, 2, 3, *draw.integers(4, 330, 57)):
        scores = draw.normal(size=(length, len(STATES))).astype(np.float32) * 3
        path = decode_path(scores)
        assert steps[path[:-1], path[1:]].all()
        assert not any(gene.length % 3 for gene in list_genes(path))
        turned = decode_path(np.ascontiguousarray(scores[::-1][:, mirror]))
        assert (turned == mirror[path[::-1]]).all()
