"""Diagonals from an alignment: located windows, both strands, fast beside naive."""

import numpy as np
import pytest
from made_up_text import draw_bases, hide, mutate

from genodiff.kernels import library
from genodiff.memory.aligned import (
    AlignedBlocks,
    AlignedMemory,
    Locator,
    find_reach,
    list_diagonals,
    list_diagonals_slowly,
)
from genodiff.memory.alignment import align_windows, choose_diagonals
from genodiff.memory.memory import Memory
from genodiff.memory.numbers import RelativeNumbers
from genodiff.memory.relatives import RelativeGenome, Relatives
from genodiff.memory.text import join_stretches, turn_codes

LENGTH = 256
TARGET = draw_bases(8000, 1)
MEMORY = Memory.build_sampled(join_stretches([("t", 0, TARGET)]))
NUMBERS = RelativeNumbers()


def planted() -> tuple[Memory, AlignedBlocks]:
    """A relative: the target with a deletion and an insertion, its second half turned."""
    own = mutate(TARGET, 0.1, 2)
    first = np.concatenate([own[:1500], own[1506:3000], draw_bases(4, 3), own[3000:4000]])
    second = turn_codes(own[4000:])
    n = len(first)
    text = join_stretches([("a", 0, first), ("b", 0, second)])
    rows = [
        (0, 0, 1500, 0), (1506, 1500, 1494, 0), (3000, 2998, 1000, 0), (4000, n + 1, 4000, 1),
    ]  # fmt: skip
    return Memory.build_sampled(text), AlignedBlocks.sort(np.array(rows))


RELATIVE, BLOCKS = planted()
ALIGNED = AlignedMemory(RELATIVE.text, None, RELATIVE.chain, blocks=BLOCKS, locator=Locator(MEMORY))
STARTS = (100, 1400, 2900, 3900, 5000, 7700)
WINDOWS = np.stack([TARGET[a : a + LENGTH] for a in STARTS])


def test_windows_lie_where_they_were_planted():
    found = ALIGNED.search(WINDOWS)[1]
    assert [one.tolist() for one in found[0]] == [[100], []]
    assert [one.tolist() for one in found[1]] == [[1394, 1400], []]
    assert [one.tolist() for one in found[2]] == [[2894, 2898], []]
    assert [one.tolist() for one in found[3]] == [
        [3898], [RELATIVE.text.size - 1 - (3900 - 4000) - LENGTH]
    ]  # fmt: skip
    for a, window in zip(STARTS, WINDOWS, strict=True):
        for strand, codes in enumerate((window, turn_codes(window))):
            places = ALIGNED.locator.locate(codes[None]).places[0]
            assert [one.tolist() for one in places] == ([[a], []] if not strand else [[], [a]])


@pytest.mark.parametrize("share", [0.3, 0.6, 0.85])
def test_masked_windows_and_windows_with_edits_are_located(share):
    masked = np.stack([hide(x, share, i) for i, x in enumerate(WINDOWS)])
    edited = WINDOWS.copy()
    edited[:, 40] = (edited[:, 40] + 1) % 4
    inserted = np.concatenate([WINDOWS[:, :100], WINDOWS[:, :3], WINDOWS[:, 100:-3]], 1)
    locator = Locator(MEMORY)
    for rows in (masked, edited, inserted):
        for a, (places, _) in zip(STARTS, locator.locate(rows).places, strict=True):
            assert a in places.tolist()
    strange = draw_bases(LENGTH, 99)[None]
    assert not any(map(len, locator.locate(strange).places[0]))


def test_a_place_depends_on_visible_bases_alone():
    """Of two targets that differ where the window is masked, both give the same places."""
    masked = hide(WINDOWS[0], 0.4, 5)
    other = TARGET.copy()
    hidden = np.flatnonzero(masked > 3) + STARTS[0]
    other[hidden] = (other[hidden] + 1) % 4
    found = [
        Locator(Memory.build_sampled(join_stretches([("t", 0, text)]))).locate(masked[None])
        for text in (TARGET, other)
    ]
    assert [one.tolist() for one in found[0].places[0]] == [[STARTS[0]], []]
    assert [one.tolist() for one in found[1].places[0]] == [[STARTS[0]], []]


def test_fast_and_naive_agree():
    rng = np.random.default_rng(4)
    n = 300
    rows = np.stack(
        [rng.integers(0, 3000, n), rng.integers(0, 3000, n), rng.integers(1, 90, n),
         rng.integers(0, 2, n)], 1,
    )  # fmt: skip
    rows[:5, 2] = 2000
    blocks = AlignedBlocks.sort(rows)
    located = [
        tuple(np.sort(rng.integers(-20, 3000, k)) for k in rng.integers(0, 4, 2)) for _ in range(40)
    ]
    fast = list_diagonals(blocks, located, 64, find_reach(blocks))
    slow = list_diagonals_slowly(blocks, located, 64)
    for one, other in zip(fast, slow, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
    assert list_diagonals(blocks, [], 64, find_reach(blocks)) == []
    none = AlignedBlocks.sort(np.zeros((0, 4), np.int64))
    assert not any(len(a) + len(b) for a, b in list_diagonals(none, located, 64, find_reach(none)))


@pytest.mark.skipif(not library.is_loaded(), reason="the C library was not built")
def test_the_chain_in_c_keeps_to_the_diagonals_of_an_alignment(monkeypatch):
    seen, found = ALIGNED.search(WINDOWS)
    fast, _ = align_windows(ALIGNED.text, seen, found, NUMBERS)
    sums = Relatives((RelativeGenome(ALIGNED, NUMBERS),), None).align_homologs(WINDOWS)
    for window, diagonals in zip(seen, found, strict=True):
        chosen = choose_diagonals(ALIGNED.text, window, diagonals, NUMBERS)
        for some, of in zip(chosen, diagonals, strict=True):
            assert set(some.tolist()) <= set(of.tolist())
    monkeypatch.setattr(library, "is_loaded", lambda: False)
    monkeypatch.setattr("genodiff.memory.fast.is_loaded", lambda: False)
    slow, _ = align_windows(ALIGNED.text, seen, found, NUMBERS)
    np.testing.assert_allclose(fast, slow, atol=1e-9)
    naive = Relatives((RelativeGenome(ALIGNED, NUMBERS),), None).align_homologs(WINDOWS)
    for one, other in zip(sums, naive, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)
    assert (sums[0].sum(-1) > 0.9).mean() > 0.95


def test_a_locus_that_is_left_out_is_not_read():
    start, end = RELATIVE.text.find_interval("a", 100, 1600)
    one = Relatives((RelativeGenome(ALIGNED, NUMBERS),), None)
    assert one.align(WINDOWS[:1]).sum() > 0.9 * LENGTH
    assert not one.align(WINDOWS[:1], [((start, end),)]).any()
