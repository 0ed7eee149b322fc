"""Regions of a far relative: the same in C as in NumPy, and homologs that no diagonal tells."""

import numpy as np
import pytest
from numpy.typing import NDArray

from genodiff.memory.alignment import align_window, align_windows
from genodiff.memory.copying import SeenWindow
from genodiff.memory.far import WIDTH, find_far, search_far
from genodiff.memory.memory import Memory
from genodiff.memory.numbers import RelativeNumbers
from genodiff.memory.relatives import RelativeGenome, Relatives
from genodiff.memory.relatives_fit import DISTANT, DISTANT_START, fit_genome, measure_divergence
from genodiff.memory.text import NONE, Codes, join_stretches

FAR = RelativeNumbers(**DISTANT_START)


def change(codes: Codes, rng: np.random.Generator, differ: float = 0.33) -> tuple[Codes, Codes]:
    """A homolog with a gap or an insert every 20 bases, and for each base of `codes` the place of
    the homolog over it, or -1.
    """
    out: list[int] = []
    over = np.full(len(codes), -1)
    for i, base in enumerate(codes.tolist()):
        at = rng.random()
        if at < 0.025:
            continue
        if at > 0.975:
            out += rng.integers(0, 4, 3).tolist()
        over[i] = len(out)
        out.append((base + int(rng.integers(1, 4))) % 4 if rng.random() < differ else base)
    return np.array(out, np.uint8), over


def make_far(length: int, seed: int = 1) -> tuple[Memory, Codes, NDArray[np.int64]]:
    """A text with the homologs of three windows, of which one is turned and one at the end of the
    text; the windows, with hidden bases and N, and the intervals to leave out.
    """
    rng = np.random.default_rng(seed)
    windows = rng.integers(0, 4, (4, length)).astype(np.uint8)
    fill = [rng.integers(0, 4, n).astype(np.uint8) for n in (300, 200, 400)]
    first, turned, last = (change(one, rng)[0] for one in windows[:3])
    text = [fill[0], first, fill[1], 3 - turned[::-1], np.full(40, NONE, np.uint8), fill[2], last]
    memory = Memory.build_sampled(join_stretches([("a", 0, np.concatenate(text))]), k=5)
    windows[0] = np.where(rng.random(length) < 0.1, NONE, windows[0])
    without = np.zeros((4, 2), np.int64)
    without[1] = 300, 300 + length // 3
    return memory, windows, without


def check_far(length: int, *, sifted: bool) -> int:
    """C and NumPy say the same of windows of a length; how many regions they find."""
    memory, windows, without = make_far(length)
    found = None if sifted else memory.find_all(windows)
    seen = memory.prepare(windows, [(int(a), int(b)) for a, b in without])
    slow = [find_far(memory.text, w, found and found[i]) for i, w in enumerate(seen)]
    quick = seek(memory, seen, found)
    for (pair, n), window, fast in zip(slow, *quick, strict=True):
        assert window.n_near == WIDTH * n
        for one, other in zip(pair, fast, strict=True):
            np.testing.assert_array_equal(other, one)
    for window, pair, fast in zip(*quick, align_windows(memory.text, *quick, FAR), strict=True):
        one = align_window(memory.text, window, pair, FAR)
        np.testing.assert_allclose(fast.over, one.over, atol=1e-9)
        np.testing.assert_allclose(fast.likelihood, one.likelihood, rtol=1e-9)
    return sum(n for _, n in slow)


def seek(memory, seen: list[SeenWindow], found):  # type: ignore[no-untyped-def]
    """`search_far`, with the diagonals of a search in the place of a sift where there are any."""
    from genodiff.memory import far

    kept, far.LONGEST = far.LONGEST, far.LONGEST if found is None else 0
    try:
        return search_far(memory.text, seen, found)
    finally:
        far.LONGEST = kept


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
    fitted = fit_genome(memory, genome[: 24 * 1024].reshape(24, 1024), rounds=3)
    assert fitted.numbers.far == is_far
    assert ("far" in fitted.numbers.model_dump()) == is_far
    assert (measure_divergence(fitted.numbers) > DISTANT) == is_far
