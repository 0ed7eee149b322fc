"""A chain's cost against every path one by one; strands alike; what it learns of lengths."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch

from genodiff.annotation.base_labels import BaseLabels
from genodiff.annotation.codon_states import decode_path
from genodiff.annotation.gene_grammar import (
    INTRON,
    N_STATES,
    STATES,
    UNKNOWN,
    CodingGene,
    allow_steps,
    label_genes,
    list_genes,
    list_introns,
    mirror_states,
)
from genodiff.annotation.state_chain import ChainScores, marginals
from genodiff.finetuning.base_labeller import BaseLabeller, GeneChain
from genodiff.finetuning.base_lesson import count_steps
from genodiff.finetuning.base_windows import BaseWindows
from genodiff.finetuning.kept_labeller import Held

MIRROR = list(mirror_states())


def chain(seed: int = 0) -> GeneChain:
    found = GeneChain().double()
    torch.nn.init.normal_(found.weight, generator=torch.Generator().manual_seed(seed))
    return found


def windows(n: int, length: int, seed: int = 0) -> torch.Tensor:
    numbers = torch.Generator().manual_seed(seed)
    return torch.randn(n, length, N_STATES, generator=numbers, dtype=torch.float64)


@pytest.mark.parametrize(
    "labels", [[0, 1, 2, 3], [0, UNKNOWN, 2, UNKNOWN], [UNKNOWN] * 4, [UNKNOWN, 4, 4, 2]]
)
def test_the_cost_is_that_of_all_paths(labels):
    model, scores = chain(), windows(1, 4)
    steps, allowed = model.steps().detach().numpy(), allow_steps()
    every = agreeing = 0.0
    for path in product(range(N_STATES), repeat=4):
        if all(allowed[a, b] for a, b in pairwise(path)):
            weight = sum(float(scores[0, i, s]) for i, s in enumerate(path))
            weight += sum(steps[a, b] for a, b in pairwise(path))
            every += np.exp(weight)
            if all(y in (UNKNOWN, s) for s, y in zip(path, labels, strict=True)):
                agreeing += np.exp(weight)
    wanted = np.log(every / agreeing) / max(1, sum(y != UNKNOWN for y in labels))
    found = model.cost(scores, torch.tensor([labels])).detach()
    assert float(found) == pytest.approx(wanted, abs=1e-9)


def test_both_strands_cost_the_same_and_have_the_same_genes():
    model, scores = chain(1), windows(2, 60, 1)
    genes = [CodingGene(1, ((5, 9), (20, 25))), CodingGene(-1, ((40, 46),))]
    path, _ = label_genes(genes, 60)
    path[30:35] = UNKNOWN
    labels = torch.from_numpy(np.stack([path, path]))
    mirror = np.array(MIRROR)
    turned = torch.from_numpy(np.where(labels == UNKNOWN, UNKNOWN, mirror[labels]).copy()).flip(1)
    other = scores.flip(1)[..., MIRROR]
    given = model.cost(scores, labels).detach()
    torch.testing.assert_close(model.cost(other, turned).detach(), given)
    steps = model.steps().detach().float().numpy()
    pair = (some[0].float().numpy() for some in (scores * 3, other * 3))
    here, there = (list_genes(decode_path(some, steps)) for some in pair)
    assert here
    assert there == [
        CodingGene(-g.strand, tuple((60 - b, 60 - a) for a, b in reversed(g.parts)))
        for g in reversed(here)
    ]


def test_without_scores_of_steps_the_best_path_is_that_of_the_bases():
    scores = (windows(1, 300, 2)[0] * 3).float().numpy()
    steps = GeneChain().steps().detach().numpy()
    assert (decode_path(scores, steps) == decode_path(scores)).all()


@pytest.mark.parametrize("length", [1, 5, 80, 83])
def test_chances_are_the_chains_own_whole_or_by_pieces(length):
    model, scores = chain(4).float(), windows(1, length, 4)[0].float() * 2
    free = torch.zeros(N_STATES)
    exact = marginals(ChainScores(scores[None], model.steps().detach(), free, free))[0].numpy()
    assert np.allclose(exact.sum(1), 1, atol=1e-4)
    assert np.allclose(model.chances(scores.numpy()), exact, atol=1e-5)
    assert np.allclose(model.chances(scores.numpy(), piece=20, beside=40), exact, atol=0.02)


def test_a_chain_begins_with_the_shares_of_steps_on_both_strands():
    path, _ = label_genes([CodingGene(1, ((7, 19),)), CodingGene(-1, ((30, 36), (44, 50)))], 90)
    path[70:75] = UNKNOWN
    labels = BaseLabels("genes", STATES, {"c": path})
    genome = Held({"c": b"A" * 90})
    windows = BaseWindows(genome, labels, [("c", 0, 90)], core=60, context=9)  # type: ignore[arg-type]
    counts = count_steps(windows)
    wanted = np.zeros((N_STATES, N_STATES), int)
    for i in range(89):
        if UNKNOWN not in path[i : i + 2] and i != 59:  # a step between two cores is in neither
            wanted[path[i], path[i + 1]] += 1
    assert (counts == wanted).all()
    model = GeneChain()
    model.begin(counts)
    steps, mirror = model.steps().detach(), np.array(MIRROR)
    assert torch.allclose(steps, steps.T[MIRROR][:, MIRROR])
    allowed, turned = allow_steps(), np.ix_(mirror, mirror)
    share = (wanted + allowed) + (wanted + allowed).T[turned]
    share = share / share.sum(1, keepdims=True)
    share = np.log(share, where=allowed, out=np.zeros(share.shape))
    both = (share + share.T[turned]) / 2
    assert np.allclose(steps.numpy()[allow_steps()], both[allow_steps()], atol=1e-5)
    assert steps[0, 0] > steps[0, 1] + 2


def test_training_makes_steps_that_occur_likely():
    """Scores of states say nothing: introns of 40 bases and none of one are learnt from steps."""
    model = GeneChain()
    genes = [CodingGene(1, ((a, a + 9), (a + 49, a + 58))) for a in range(3, 240, 80)]
    path, left_out = label_genes(genes, 260)
    assert not left_out
    labels, scores = torch.from_numpy(path)[None], torch.zeros(1, 260, N_STATES)
    best = torch.optim.Adam(model.parameters(), lr=0.1)
    costs = []
    for _ in range(25):
        cost = model.cost(scores, labels)
        best.zero_grad()
        cost.backward()
        best.step()
        costs.append(float(cost.detach()))
    assert costs[-1] < costs[0] / 2
    steps = model.steps().detach()
    assert steps[6, 6] > steps[6, 1]  # an intron behind base 2 of a codon goes on
    assert torch.equal(steps, steps.T[MIRROR][:, MIRROR])


@pytest.mark.slow
def test_a_state_that_labels_never_held_is_in_no_gene():
    model, scores = chain(3), windows(1, 400, 3)
    plain = (scores[0] * 4).float().numpy()
    plain[:, INTRON : INTRON + 3] += 1.0  # the network would have them
    for phases in ((), (1,), (0, 1, 2)):
        backbone = torch.nn.Identity()
        backbone.d_out = N_STATES  # type: ignore[assignment]
        network = BaseLabeller(backbone, MIRROR, complement=None, chain=True, introns=phases)
        network.chain.load_state_dict(model.float().state_dict())  # type: ignore[union-attr]
        never = set(list_introns({0, 1, 2}.difference(phases)))
        found = network.chain.chances(plain, never=network.never)  # type: ignore[union-attr]
        assert found[:, sorted(never)].sum() == 0
        for one in (network.chain, None):
            network.chain = one
            for letters in (None, b"ATGAAATAG" * 44 + b"ACGT"):
                path = set(network.decode(plain, letters).tolist())
                assert not path & never
                assert (phases == (0, 1, 2)) <= bool(path & set(list_introns((0, 1, 2))))
