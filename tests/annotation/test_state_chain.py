"""Chains of states against all paths of small worlds; the grammar of genes under random scores; the
best path by pieces is the plain one, with equals, of any length and any piece.
"""

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from torch import Tensor

from genodiff.annotation.gene_grammar import N_STATES, allow_steps
from genodiff.annotation.state_chain import (
    FORBIDDEN,
    ChainScores,
    find_best_path,
    find_long_path,
    log_partition,
    marginals,
    round_scores,
)

STEPS = np.where(allow_steps(), 0.0, FORBIDDEN).astype(np.float32)
FREE = np.zeros(N_STATES, np.float32)


def make_chain(length: int, states: int, seed: int, each_step: bool, forbid: bool) -> ChainScores:
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    steps = draw(2, length - 1, states, states) if each_step else draw(states, states)
    if forbid:
        steps = steps.masked_fill(torch.rand(states, states, generator=generator) < 0.3, FORBIDDEN)
    return ChainScores(draw(2, length, states), steps, draw(states), draw(states))


def path_score(chain: ChainScores, path: Tensor) -> Tensor:
    """The logarithm of the weight of one path, for each row."""
    states, steps, begin, end = chain
    every = steps.expand(len(states), len(path) - 1, *steps.shape[-2:])
    found = begin[path[0]] + end[path[-1]] + sum(states[:, i, s] for i, s in enumerate(path))
    return found + sum(every[:, i, a, b] for i, (a, b) in enumerate(pairwise(path)))


@pytest.mark.few(10)
@pytest.mark.parametrize("each_step", [False, True])
@pytest.mark.parametrize("forbid", [False, True])
@pytest.mark.parametrize("length", [1, 2, 3, 5, 6])
def test_sums_marginals_and_best_paths_are_those_of_all_paths(length, each_step, forbid):
    chain = make_chain(length, 3, length, each_step, forbid)
    chain.states.requires_grad_()
    paths = torch.tensor(list(product(range(3), repeat=length)))
    scores = torch.stack([path_score(chain, p) for p in paths], 1)
    total = log_partition(chain)
    torch.testing.assert_close(total, scores.logsumexp(1), atol=1e-9, rtol=0)
    shares = scores.softmax(1)
    wanted = torch.stack([(shares[:, :, None] * (paths == s)).sum(1) for s in range(3)], -1)
    torch.testing.assert_close(marginals(chain), wanted, atol=1e-9, rtol=0)
    (gradient,) = torch.autograd.grad(total.sum(), chain.states)
    torch.testing.assert_close(gradient, wanted, atol=1e-9, rtol=0)
    for row in range(2):
        steps = chain.steps[row] if each_step and length > 1 else chain.steps
        best = find_best_path(
            chain.states[row].detach().numpy(), steps.numpy() if length > 1 else np.zeros((3, 3)),
            chain.begin.numpy(), chain.end.numpy(),
        )  # fmt: skip
        assert best.tolist() == paths[scores[row].argmax()].tolist()


def test_a_long_chain_is_its_own_forward_pass():
    """8,191 places in float32, against the recursion in float64."""
    allowed = torch.from_numpy(allow_steps())
    steps = torch.zeros(N_STATES, N_STATES).masked_fill(~allowed, FORBIDDEN)
    states = torch.randn(1, 8191, N_STATES, generator=torch.Generator().manual_seed(1)) * 3
    nothing = torch.zeros(N_STATES)
    found = log_partition(ChainScores(states, steps, nothing, nothing))
    forward = states[0, 0].double()
    for i in range(1, states.shape[1]):
        forward = (forward[:, None] + steps.double()).logsumexp(0) + states[0, i].double()
    assert abs(float(found) / float(forward.logsumexp(0)) - 1) < 1e-6
    chances = marginals(ChainScores(states, steps, nothing, nothing))
    torch.testing.assert_close(chances.sum(-1), torch.ones(1, 8191), atol=1e-3, rtol=0)
    assert torch.isfinite(chances).all()


@pytest.mark.few(24)
@pytest.mark.parametrize("piece", [1, 2, 7, 64, 2048])
@pytest.mark.parametrize("length", [1, 2, 3, 63, 64, 65, 500, 1501])
@pytest.mark.parametrize("coarse", [False, True])
def test_it_is_the_plain_path_of_rounded_scores(piece, length, coarse):
    draw = np.random.default_rng(length * 7 + piece)
    scores = draw.normal(0, 3, (length, N_STATES)).astype(np.float32)
    if coarse:
        scores = np.round(scores / 4)  # many equals
    steps = np.where(allow_steps(), draw.normal(0, 1, STEPS.shape), FORBIDDEN).astype(np.float32)
    begin, end = draw.normal(0, 2, (2, N_STATES)).astype(np.float32)
    for given in ((steps, begin, end), (STEPS, FREE, FREE)):
        exact = [round_scores(one) for one in (scores, *given)]
        found = find_long_path(scores, *given, piece=piece)
        assert (found == find_best_path(*exact)).all()


def test_what_lies_far_away_may_decide():
    """Between two bases all is alike: pieces go again until the first reaches the last."""
    scores = np.zeros((901, 2), np.float32)
    scores[0, 1] = 1
    stay = np.where(np.eye(2) > 0, 0, FORBIDDEN).astype(np.float32)
    free = np.zeros(2, np.float32)
    assert (find_long_path(scores, stay, free, free, piece=30) == 1).all()
    scores[-1, 0] = 2
    assert (find_long_path(scores, stay, free, free, piece=30) == 0).all()


def test_no_path_is_told_and_a_long_one_of_small_scores_is_not():
    free, none = np.zeros(2, np.float32), np.full((2, 2), FORBIDDEN, np.float32)
    for find in (find_long_path, find_best_path):
        with pytest.raises(ValueError, match="no path"):
            find(np.zeros((3, 2), np.float32), none, free, free)
        low = np.full((600, 2), -2000, np.float32)  # together below what is forbidden
        assert (find(low, np.zeros((2, 2), np.float32), free, free) == 0).all()
