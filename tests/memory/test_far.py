"""Regions of a far relative: the same in C as in NumPy, and homologs that no diagonal tells."""

import numpy as np
import pytest
from far_homologs import FAR, change, check_far

from genodiff.memory.memory import Memory
from genodiff.memory.numbers import RelativeNumbers
from genodiff.memory.relatives import RelativeGenome, Relatives
from genodiff.memory.relatives_fit import fit_genome
from genodiff.memory.text import join_stretches


@pytest.mark.parametrize("sifted", [True, False])
@pytest.mark.parametrize("length", [1, 2, 57, 64, 130])
def test_c_and_numpy_agree(length, sifted):
    check_far(length, sifted=sifted)


@pytest.mark.slow
@pytest.mark.parametrize("length", [1023, 1025])
def test_c_and_numpy_agree_on_whole_stretches(length):
    assert check_far(length, sifted=True) >= 3


def test_homologs_are_laid_and_others_are_not():
    rng = np.random.default_rng(2)
    windows = rng.integers(0, 4, (6, 1024)).astype(np.uint8)
    pairs = [change(one, rng) for one in windows[:4]]
    text = [rng.integers(0, 4, 20_000).astype(np.uint8)]
    for i, (homolog, _) in enumerate(pairs):
        text += [3 - homolog[::-1] if i % 2 else homolog, rng.integers(0, 4, 5_000)]
    memory = Memory.build_sampled(join_stretches([("a", 0, np.concatenate(text).astype(np.uint8))]))
    laid = {}
    for name, numbers in (("near", RelativeNumbers()), ("far", FAR)):
        genome = RelativeGenome.join(memory, numbers)
        over = Relatives((genome,), None).align(windows)[0]
        assert over[4:].sum(-1).max() < 0.5
        right = [
            over[i, at >= 0, homolog[at[at >= 0]]] > 0.5 for i, (homolog, at) in enumerate(pairs)
        ]
        laid[name] = np.concatenate(right).mean()
    assert laid["far"] > 0.75
    assert laid["near"] < laid["far"] - 0.05


@pytest.mark.slow
@pytest.mark.parametrize(("differ", "is_far"), [(0.08, False), (0.33, True)])
def test_only_a_far_relative_is_searched_by_regions(differ, is_far):
    rng = np.random.default_rng(3)
    genome = rng.integers(0, 4, 30_000).astype(np.uint8)
    memory = Memory.build_sampled(join_stretches([("a", 0, change(genome, rng, differ)[0])]))
    fitted = fit_genome(memory, genome[: 16 * 1024].reshape(16, 1024), rounds=2)
    assert fitted.numbers.far == is_far
    assert ("far" in fitted.numbers.model_dump()) == is_far
    assert fitted.is_distant == is_far
