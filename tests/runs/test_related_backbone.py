"""Relatives where a reader of masks and a bound take a memory."""

import numpy as np
import pytest
import torch

from genodiff.alphabet import DNA
from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.schedule import Linear
from genodiff.memory.memory import NOWHERE, Memory
from genodiff.memory.numbers import RELATIVE_SEARCH
from genodiff.memory.relatives import Relatives
from genodiff.memory.relatives_fit import fit_relatives
from genodiff.memory.text import NONE
from genodiff.runs.own_loci import Place
from genodiff.runs.relatives_loci import RelativesLoci
from genodiff.scoring.masked_reader import MaskedReader

LENGTH = 200
RNG = np.random.default_rng(1)
TARGET = RNG.integers(0, 4, 3000).astype(np.uint8)
RELATIVE = np.where(RNG.random(3000) < 0.08, (TARGET + 1) % 4, TARGET).astype(np.uint8)
COMPLEMENT = np.array(DNA.complement, np.uint8)
IDS = np.array([*DNA.targets, DNA.mask_id], np.uint8)


class FakeLoci:
    """Where windows stand in one genome: at the place that they say."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def leave_out(self, place: Place | None) -> tuple[int, int]:
        return NOWHERE if place is None else self.memory.exclude(*place)


@pytest.fixture(scope="module")
def relatives() -> Relatives:
    memories = [Memory.build([("r", 0, RELATIVE)])]
    windows = np.stack([TARGET[a : a + LENGTH] for a in range(0, 1600, 200)])
    return fit_relatives(memories, windows, rounds=3)


def make_reader(loci: RelativesLoci | None) -> MaskedReader:
    def denoiser(xt: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        return torch.zeros((*xt.shape, 16))

    process = MaskedDiffusion(Linear(), DNA.mask_id, DNA.targets)
    return MaskedReader(denoiser, process, complement=COMPLEMENT, both_strands=True, loci=loci)


def test_a_reader_says_what_relatives_say(relatives: Relatives) -> None:
    (genome,) = relatives.genomes
    assert genome.memory.numbers == RELATIVE_SEARCH
    loci = RelativesLoci(relatives, [FakeLoci(genome.memory)], {"relatives": 1})  # type: ignore
    clean = TARGET[2000 : 2000 + LENGTH]
    codes = np.where(RNG.random(LENGTH) < 0.3, NONE, clean).astype(np.uint8)
    hidden = codes == NONE
    reader = make_reader(loci)
    here, there = reader.read([IDS[codes]] * 2, [None, ("r", 2000, 2000 + LENGTH)])
    assert reader.evaluations == 2
    truth = clean[hidden]
    bits = -np.take_along_axis(here, truth[:, None].astype(int), 1).mean() / np.log(2)
    assert bits < 0.8
    factors = relatives.weigh(codes[None], np.full((1, LENGTH, 4), 0.25))[0][hidden]
    np.testing.assert_allclose(np.exp(here), factors / factors.sum(1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(there, np.log(0.25), atol=0.02)
    np.testing.assert_allclose(make_reader(None).read([IDS[codes]])[0], np.log(0.25), atol=1e-6)


def test_loci_are_of_each_relative(relatives: Relatives) -> None:
    with pytest.raises(ValueError, match="0 loci for 1 relatives"):
        RelativesLoci(relatives, [], {})


def test_one_pass_says_what_is_left_out_of_each_place(relatives: Relatives) -> None:
    """At a visible place: what all others say of it, as where it alone is masked."""
    clean = TARGET[2300 : 2300 + LENGTH]
    prior = np.full((1, LENGTH, 4), 0.25)
    once = relatives.weigh(clean[None], prior)[0]
    for place in (0, 77, LENGTH - 1):
        codes = clean.copy()
        codes[place] = NONE
        found = relatives.weigh(codes[None], prior)[0, place]
        np.testing.assert_allclose(once[place], found, atol=0.02)
