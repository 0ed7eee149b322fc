"""Generative perplexity: exact under a judge that is known, and never alone."""

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from genodiff.alphabet import DNA
from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.objectives.ar import Ar
from genodiff.diffusion.objectives.mdlm import Mdlm
from genodiff.diffusion.schedule import Linear
from genodiff.errors import DataError, UsageError
from genodiff.evaluation.generative import distinct, figures, measure_unigram_entropy, token_nats

TRANSITION = torch.tensor(
    [[0.7, 0.1, 0.1, 0.1], [0.2, 0.4, 0.2, 0.2], [0.25, 0.25, 0.25, 0.25], [0.05, 0.05, 0.1, 0.8]]
)


class Chain(nn.Module):
    """Next-base logits of a Markov chain; all are equally likely after what is no base."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.cat([TRANSITION.log(), torch.full((1, 4), math.log(0.25))]))

    def forward(self, xt: Tensor, sigma: Tensor, lengths: Tensor | None = None) -> Tensor:
        code = torch.where((xt >= 7) & (xt < 11), xt - 7, 4)
        logits = torch.full((*xt.shape, 16), 20.0)
        logits[..., 7:11] = self.table[code]
        return logits


def judge(seq_len: int, objective: Any = Ar) -> Any:
    diffusion = MaskedDiffusion(Linear(), DNA.mask_id, DNA.targets)
    config = SimpleNamespace(data=SimpleNamespace(seq_len=seq_len))
    return SimpleNamespace(backbone=Chain(), diffusion=diffusion, objective=objective(diffusion),
                           alphabet=DNA, config=config, recalls=False)  # fmt: skip


def truth(ids: np.ndarray) -> np.ndarray:
    code = ids - 7
    return np.array(
        [math.log(4)] + [-math.log(TRANSITION[a, b]) for a, b in itertools.pairwise(code)]
    )


@pytest.mark.parametrize("length", [1, 5, 16, 17, 24, 25, 61])
def test_every_token_of_a_sequence_of_any_length_counts_once(length):
    ids = np.random.default_rng(length).integers(7, 11, length)
    found = token_nats(judge(16), [ids, ids[: max(1, length // 2)]])
    np.testing.assert_allclose(found[0], truth(ids), rtol=1e-5)
    np.testing.assert_allclose(found[1], truth(ids[: max(1, length // 2)]), rtol=1e-5)


def test_the_figures_are_those_of_the_definitions_and_n_is_not_scored():
    ids = np.array([7, 7, 8, 9, 10, 10])
    unknown = np.array([7, 11, 8])
    found = figures(judge(64), [ids, ids, unknown])
    nats = 2 * truth(ids).sum() + 2 * math.log(4)
    assert (found["samples"], found["tokens"], found["duplicates"]) == (3, 14, 1)
    assert found["nats_per_token"] == pytest.approx(nats / 14, rel=1e-5)
    assert found["perplexity"] == pytest.approx(math.exp(nats / 14), rel=1e-5)
    assert found["distinct"]["4"] == 0.5
    assert found["distinct"]["16"] is None
    assert measure_unigram_entropy(np.array([1, 1, 2, 2])) == pytest.approx(math.log(2))
    assert distinct([np.array([1, 1, 1, 2])], 2) == pytest.approx(2 / 3)


def test_a_masked_judge_gives_a_bound_that_is_exact_where_bases_are_independent():
    class Composition(nn.Module):
        """The same law at every position: the bound of any masks is then -log p itself."""

        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.full((16,), 20.0))
            self.table.data[7:11] = torch.tensor([0.4, 0.1, 0.2, 0.3]).log()

        def forward(self, xt: Tensor, sigma: Tensor, lengths: Tensor | None = None) -> Tensor:
            return self.table.expand(*xt.shape, 16)

    model = judge(16, Mdlm)
    model.backbone = Composition()
    chance = np.array([0.4, 0.1, 0.2, 0.3])
    rng = np.random.default_rng(1)
    # One sequence of one base and two of several windows, with an N that is not paid for.
    sequences = [np.array([9]), rng.integers(7, 11, 37), np.append(rng.integers(7, 11, 20), 11)]
    found = figures(model, sequences, repeats=400)
    nats = sum(-np.log(chance[ids[ids < 11] - 7]).sum() for ids in sequences)
    assert (found["figure"], found["tokens"]) == ("bound", 58)
    assert found["nats_per_token"] == pytest.approx(nats / 58, rel=0.02)
    assert figures(judge(16), sequences)["figure"] == "exact"


def test_a_masked_judge_of_text_and_an_empty_file_are_refused():
    text = judge(16, Mdlm)
    text.alphabet = SimpleNamespace(domain="text")
    with pytest.raises(UsageError, match="--objective ar"):
        figures(text, [np.array([7])])
    with pytest.raises(DataError, match="no sample"):
        figures(judge(16), [np.array([], int)])
    with pytest.raises(DataError, match="all N"):
        figures(judge(16), [np.array([11, 11])])
