"""Homologs that no diagonal tells, and what C and NumPy say of them, for tests of `far.py`."""

import numpy as np
from numpy.typing import NDArray

from genodiff.memory import far
from genodiff.memory.alignment import align_window, align_windows, place_window
from genodiff.memory.far import WIDTH, find_far, search_far
from genodiff.memory.memory import Memory
from genodiff.memory.numbers import RelativeNumbers
from genodiff.memory.relatives_fit import DISTANT_START
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
    first, turned, last = (change(one, rng, 0.1)[0] for one in windows[:3])
    text = [fill[0], first, fill[1], 3 - turned[::-1], np.full(40, NONE, np.uint8), fill[2], last]
    memory = Memory.build_sampled(join_stretches([("a", 0, np.concatenate(text))]), k=5)
    windows[0] = np.where(rng.random(length) < 0.1, NONE, windows[0])
    without = np.zeros((4, 2), np.int64)
    without[1] = 300, 300 + length // 3
    return memory, windows, without


def check_far(length: int, *, sifted: bool) -> int:
    """C and NumPy say the same of windows of a length; how many regions they find. Not `sifted`:
    the diagonals of a search vote.
    """
    memory, windows, without = make_far(length)
    found = None if sifted else memory.find_all(windows)
    seen = memory.prepare(windows, [(int(a), int(b)) for a, b in without])
    slow = [find_far(memory.text, w, found and found[i]) for i, w in enumerate(seen)]
    longest, far.LONGEST = far.LONGEST, far.LONGEST if sifted else 0
    try:
        quick = search_far(memory.text, seen, found)
    finally:
        far.LONGEST = longest
    for (pair, n), window, fast in zip(slow, *quick, strict=True):
        assert window.n_near == WIDTH * n
        for one, other in zip(pair, fast, strict=True):
            np.testing.assert_array_equal(other, one)
    alike = np.array(FAR.divergence) < 0.6
    places, _ = align_windows(memory.text, *quick, FAR, alike, places=True)
    for b, (over, likelihood) in enumerate(
        zip(*align_windows(memory.text, *quick, FAR), strict=True)
    ):
        given = memory.text, quick[0][b], quick[1][b], FAR
        one = align_window(*given)
        np.testing.assert_allclose(over, one.over, atol=1e-9)
        np.testing.assert_allclose(likelihood, one.likelihood, rtol=1e-9)
        np.testing.assert_array_equal(places[b], place_window(*given, alike))
    return sum(n for _, n in slow)
