"""Intervals hold what they say: in worlds whose bound is known, 93 to 97 of 100 hold it.

A world is made of groups of g bases, all fixed by any one of them: the first that is revealed costs
two bits, the others nothing, so that the bound is 2 / g bits per base. What a masked base costs
rises steeply with the masked share r, as 2 r^(g - 1).
"""

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from genodiff.alphabet import DNA
from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.schedule import Linear
from genodiff.evaluation.bound import Bound
from genodiff.evaluation.contigs import measure_contig_bound
from genodiff.evaluation.summary import summarise
from tests.evaluation.test_score_bound import scored

BASES, WINDOW = 60_000, 1_000
WORLDS = [(2, 4, None), (2, 6, 5000), (2, 3, 3000), (4, 1, None), (4, 3, 3000), (4, 4, None)]
WORLDS += [(4, 6, 5000)]
DIFFUSION = MaskedDiffusion(Linear(), DNA.mask_id, DNA.targets)


def make_denoiser(group: int, x0: Tensor) -> Any:
    """Sure of a base where another of its group is visible, else undecided. `x0` (B, L)."""

    def denoise(xt: Tensor, sigma: Tensor, lengths: Tensor | None = None) -> Tensor:
        visible = (xt != DNA.mask_id).view(len(xt), -1, group).any(-1)
        known = visible.repeat_interleave(group, -1)
        logits = torch.zeros(*xt.shape, DNA.padded_size)
        true = x0[: len(xt), :, None].long()  # one window may be asked about alone
        return logits.scatter_(-1, true, torch.where(known, 60.0, 0.0)[..., None])

    return denoise


class FakeSplit(SimpleNamespace):
    """What `measure_contig_bound` asks of a split's windows."""

    def __len__(self) -> int:
        return len(self.flat_start)


def summary_of(bound: Bound) -> dict[str, Any]:
    contig = np.zeros(bound.tokens.shape[1], np.int64)
    return summarise(bound, contig, ["c"])


def draw_rows(seed: int, rows: int, length: int) -> np.ndarray:
    return np.random.default_rng(seed).choice(DNA.targets, (rows, length)).astype(np.uint8)


def evaluate_windows(group: int, repeats: int, seed: int) -> dict[str, Any]:
    rows = draw_rows(1, BASES // WINDOW, WINDOW)
    net = make_denoiser(group, torch.from_numpy(rows))
    return summary_of(scored(None, rows, seed=seed, repeats=repeats, denoiser=net))


def evaluate_contig(group: int, repeats: int, seed: int, block: int | None) -> dict[str, Any]:
    flat = draw_rows(1, 1, BASES)[0]
    starts = np.arange(0, BASES, WINDOW)
    windows: Any = FakeSplit(
        seq_len=WINDOW,
        flat_start=starts,
        length=np.full(len(starts), WINDOW),
        store=SimpleNamespace(flat=flat, offsets=np.zeros(1, np.int64)),
        intervals=SimpleNamespace(
            contig=np.zeros(1, np.int64), start=np.zeros(1, np.int64), end=np.full(1, BASES)
        ),
    )
    size = block or BASES
    at = iter([x for x in range(0, BASES, size) for _ in range(repeats)])

    def stream(xt: Tensor) -> Iterator[tuple[int, Tensor]]:
        start = next(at)
        x0 = torch.from_numpy(flat[start : start + len(xt)].copy())[None]
        yield 0, make_denoiser(group, x0)(xt[None], xt)[0]

    how = {"repeats": repeats, "seed": seed, "block": block}
    return summary_of(measure_contig_bound(DIFFUSION, stream, windows, **how))


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("repeats", "block"), [(1, None), (4, None), (50, None), (1, 3000), (4, 5000)]
)
def test_few_counts_of_masks_have_no_interval(repeats, block):
    found = evaluate_contig(2, repeats, 1, block)
    assert found["ci95_bits"] is None
    assert found["se_bits"] is None
    assert (found["mask_se_bits"] is None) == (repeats == 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "repeats", "block"),
    [(2, 1, None), *(pytest.param(*world, marks=pytest.mark.long) for world in WORLDS)],
    ids=str,
)
def test_intervals_hold_the_bound_as_often_as_they_say(group, repeats, block):
    held, values, errors, runs = 0, [], [], 400
    for seed in range(runs):
        if block is None:
            found = evaluate_windows(group, repeats, seed)
        else:
            found = evaluate_contig(group, repeats, seed, block)
        low, high = found["ci95_bits"]
        held += low <= 2 / group <= high
        values.append(found["bits_per_base"])
        errors.append(found["se_bits"])
    spread = float(np.std(values))
    assert 0.8 < np.median(errors) / spread < 1.25
    assert np.mean(values) == pytest.approx(2 / group, abs=4 * spread / math.sqrt(runs))
    assert 0.93 <= held / runs <= 0.97
