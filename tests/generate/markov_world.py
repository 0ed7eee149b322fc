"""A world in which all is known: a Markov chain over A, C, G, T, its exact denoiser, the exact law
of a sampler.
"""

import copy
import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from genodiff.alphabet import DNA
from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.objectives.mdlm import Mdlm
from genodiff.diffusion.schedule import schedule
from genodiff.generate.infill import Template

BASES = np.array(DNA.targets)
MASK = DNA.mask_id
_FARTHEST = 64


class Chain(nn.Module):
    """The chain's own marginals given what is visible: between two visible bases, P^d[a, x] P^e[x,
    b].

    In float32 the logits may carry noise that changes with the batch and from call to call, as a
    network's do; in float64 they are exact.
    """

    def __init__(self, transition: np.ndarray, start: np.ndarray, noise: float = 0.0) -> None:
        super().__init__()
        powers = np.stack([np.linalg.matrix_power(transition, d) for d in range(_FARTHEST)])
        left = np.zeros((_FARTHEST, 5, 4))
        left[:, :4] = powers
        left[:, 4] = [start @ p for p in powers]  # nothing visible there: the law of position d
        right = np.ones((_FARTHEST, 5, 4))
        right[:, :4] = powers.transpose(0, 2, 1)
        self.left, self.right = (nn.Parameter(torch.tensor(x).float()) for x in (left, right))
        self.exact = (torch.tensor(left), torch.tensor(right))
        self.noise, self.calls, self.rows = noise, 0, 0

    def forward(
        self, xt: Tensor, sigma: Tensor | None = None, lengths: Tensor | None = None
    ) -> Tensor:
        single = self.left.dtype == torch.float32
        left, right = (self.left, self.right) if single else self.exact
        B, L = xt.shape
        code = xt - DNA.targets[0]
        visible = (code >= 0) & (code < 4)
        at = torch.arange(L)
        before = torch.where(visible, at, -1).cummax(1).values
        after = torch.where(visible, at, L).flip(1).cummin(1).values.flip(1)
        a = torch.where(before >= 0, code.gather(1, before.clamp(min=0)), 4)
        b = torch.where(after < L, code.gather(1, after.clamp(max=L - 1)), 4)
        p = left[(at - before).clamp(max=_FARTHEST - 1) - (before < 0).long(), a]
        p = p * right[(after - at).clamp(max=63), b]
        # Forbidden ids are the likeliest: SUBS must cut.
        logits = torch.full((B, L, DNA.padded_size), 30.0, dtype=p.dtype)
        logits[..., list(DNA.targets)] = p.log().clamp(min=-1e4)
        self.calls, self.rows = self.calls + 1, self.rows + B
        if single and self.noise:
            seed = torch.Generator().manual_seed(self.calls * 1000 + B)
            logits = logits + self.noise * (2 * torch.rand(logits.shape, generator=seed) - 1)
        return logits


def model(network: Any, seq_len: int, name: str = "linear", objective: Any = None) -> Any:
    """A chain, or another network, in the place of a trained model."""
    process = MaskedDiffusion(schedule(name), DNA.mask_id, DNA.targets)
    return SimpleNamespace(
        backbone=network,
        diffusion=process,
        objective=objective or Mdlm(process),
        alphabet=DNA,
        config=SimpleNamespace(data=SimpleNamespace(seq_len=seq_len)),
        step=7,
        digest="0123456789ab",
        run=SimpleNamespace(name="toy"),
        recalls=False,
    )


def sticky(stay: float, noise: float = 0.0) -> Chain:
    """A chain that stays with chance `stay` and else moves to any other base; uniform start."""
    transition = np.full((4, 4), (1 - stay) / 3)
    np.fill_diagonal(transition, stay)
    return Chain(transition, np.full(4, 0.25), noise)


def sequences(length: int) -> np.ndarray:
    """All 4^length texts, as ids, in the order of `codes`."""
    return BASES[np.array(list(itertools.product(range(4), repeat=length)))]


def codes(ids: np.ndarray) -> np.ndarray:
    """The number of each row among `sequences`."""
    return (ids - BASES[0]) @ (4 ** np.arange(ids.shape[1])[::-1])


def chain_law(chain: Chain, length: int) -> np.ndarray:
    """The chain's own probability of each text."""
    x = sequences(length) - BASES[0]
    left = chain.exact[0].numpy()
    p = left[0, 4, x[:, 0]]
    for j in range(1, length):
        p = p * left[1, x[:, j - 1], x[:, j]]
    return p


def step_law(chain: Chain, draft: np.ndarray, steps: int) -> np.ndarray:
    """The exact law of the ancestral sampler with `steps` equal steps: a mean over all steps of all
    masks.
    """
    x = torch.tensor(sequences(len(draft)))
    exact = copy.deepcopy(chain).double()
    masked = np.flatnonzero(draft == DNA.mask_id)
    kept = draft != DNA.mask_id
    total = np.zeros(len(x))
    for assigned in itertools.product(range(steps), repeat=len(masked)):
        xt = torch.tensor(draft, dtype=torch.long).repeat(len(x), 1)
        p = np.where((x.numpy()[:, kept] == draft[kept]).all(1), 1.0, 0.0)
        for step in sorted(set(assigned)):
            at = masked[np.array(assigned) == step]
            logp = exact(xt)[..., list(DNA.targets)].log_softmax(-1)
            for j in at:
                p = p * logp[np.arange(len(x)), j, x[:, j] - BASES[0]].exp().numpy()
            xt[:, at] = x[:, at]
        total += p
    return total / steps ** len(masked)


def chi_square(counts: np.ndarray, law: np.ndarray) -> float:
    """How many standard deviations a χ² of counts lies above its mean, rare outcomes taken
    together.
    """
    expected = law * counts.sum()
    rare = expected < 10
    counts, expected = (np.r_[v[~rare], v[rare].sum()] for v in (counts.astype(float), expected))
    counts, expected = counts[expected > 0], expected[expected > 0]
    chi = ((counts - expected) ** 2 / expected).sum()
    df = len(counts) - 1
    return float((chi - df) / np.sqrt(2 * df))


def distance(numbers: Any, law: np.ndarray) -> float:
    """`chi_square` of outcomes given by their numbers."""
    return chi_square(np.bincount(np.asarray(numbers), minlength=law.size), law.ravel())


def drawn(found: Any) -> np.ndarray:
    return np.stack([s.ids for s in found])


def draft(text: str) -> np.ndarray:
    return Template("t", "", text.encode()).ids(DNA)
