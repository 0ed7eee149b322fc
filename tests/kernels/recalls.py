"""Recalls and draws of every awkward shape, for the tests of each copy of the library."""

import numpy as np
import torch
from far_homologs import check_far

from genodiff.generate.constrained import draw_in_c
from genodiff.memory.alignment import Aligned, align_window, align_windows, choose_diagonals
from genodiff.memory.columns import ColumnNumbers, combine, start_numbers
from genodiff.memory.memory import Memory
from genodiff.memory.numbers import RelativeNumbers
from genodiff.memory.search import Effort
from genodiff.memory.tables import Floats, build_table
from genodiff.memory.text import NONE, Codes
from genodiff.memory.tree import Tree

EFFORTS = (Effort(scored=300, most=6), Effort(scored=None, most=5, least_odds=-30.0))


def make_memory() -> Memory:
    """700 bases in two stretches, with a copy, a turned copy and N."""
    genome = np.random.default_rng(1).integers(0, 4, 700).astype(np.uint8)
    genome[300:400] = genome[20:120]
    genome[500:600] = 3 - genome[20:120][::-1]
    genome[650:655] = NONE
    return Memory.build([("one", 0, genome[:430]), ("two", 0, genome[430:])], k=5)


def make_windows(memory: Memory, length: int) -> tuple[Codes, list[tuple[int, int]]]:
    """Windows of the text, masked, one with an interval to leave out."""
    codes = memory.text.codes[8192:]
    rng = np.random.default_rng(length)
    rows = [np.where(rng.random(length) < 0.3, NONE, codes[a : a + length]) for a in (10, 300, 640)]
    return np.stack(rows).astype(np.uint8), [(0, 0), (290, 340), (0, 0)]


def recall_many() -> int:
    """A window of a tandem repeat between runs of N: more rows than are held, and linked ones.
    Returns the number of diagonals.
    """
    rng = np.random.default_rng(3)
    unit = rng.integers(0, 4, 31).astype(np.uint8)
    genome = np.concatenate([np.full(9000, NONE, np.uint8), np.tile(unit, 60)])
    memory = Memory.build([("one", 0, genome)], k=5).with_effort(Effort(scored=None, most=60))
    window = np.where(rng.random(710) < 0.3, NONE, np.tile(unit, 23)[:710]).astype(np.uint8)
    found = memory.find_all(window[None])
    memory.recall(window[None])
    return sum(map(len, found[0]))


def align_both(memory: Memory, length: int) -> tuple[list[Aligned], list[Aligned]]:
    """How windows lie over the text, in NumPy and in C."""
    prepared, found = memory.search(*make_windows(memory, length))
    numbers, text = RelativeNumbers(), memory.text
    slow = [
        align_window(text, w, choose_diagonals(text, w, d, numbers), numbers)
        for w, d in zip(prepared, found, strict=True)
    ]
    return slow, [
        Aligned(*one) for one in zip(*align_windows(text, prepared, found, numbers), strict=True)
    ]


def make_columns(relatives: int, length: int) -> tuple[Floats, Codes, Floats, ColumnNumbers]:
    """What two windows of a length are combined of."""
    rng = np.random.default_rng(length)
    tree = {1: Tree((-1, 0), (0.0, 0.2)), 2: Tree((-1, 3, 3, 0), (0.0, 0.1, 0.3, 0.1))}[relatives]
    over = np.ascontiguousarray(rng.dirichlet(np.ones(5), (relatives, 2, length))[..., :4])
    codes = rng.integers(0, 5, (2, length)).astype(np.uint8)
    return over, codes, rng.dirichlet(np.ones(4), (2, length)), start_numbers(tree, 0.4)


def recall_shapes() -> None:
    """Recall windows of many lengths, by seeds and exhaustively, and fill tables; lay them over
    the text, and one of a far relative, and combine what relatives say.
    """
    assert recall_many() * 710 > 32_768
    memory = make_memory()
    for k in (4, 9):
        build_table(memory.text, k)
        sampled = Memory.build_sampled(memory.text, k=k)
    for length in (1, 2, 57, 64, 130):
        windows, without = make_windows(memory, length)
        for effort in EFFORTS:
            memory.with_effort(effort).recall(windows, without)
            sampled.with_effort(effort).recall(windows, without)
        align_both(memory, length)
        check_far(length, sifted=length != 64)
        for relatives in (1, 2):
            combine(*make_columns(relatives, length))
    assert torch.get_num_threads() > 0


def draw_shapes() -> None:
    """Draws from layers of many sizes with dead ends, of all, some and no positions."""
    shapes = ([1], [1, 1], [1, 3, 2], [1, 4, 5, 4, 1], [1, 70, 67, 66, 65, 67, 3], [1] + [9] * 40)
    for sizes in shapes:
        rng = np.random.default_rng(len(sizes))
        after = [*sizes[1:], 1]
        tables = [rng.integers(-1, m, (n, 4)) for n, m in zip(sizes, after, strict=True)]
        for table in tables:
            table[:, 2] = np.arange(len(table)) % max(1, table.max() + 1)
        first = np.cumsum([0, *sizes, 1])
        for share in (0.0, 0.5, 1.0):
            n = len(sizes)
            p, due, u = np.exp(rng.normal(0, 1, (n, 4))), rng.random(n) < share, rng.random(n)
            p[rng.random(n) < 1 - share] = np.arange(4) == 2  # known, in runs, and never dead
            for error in (0.0, 1e-4, 1.0):
                for gains in (None, rng.uniform(0.1, 1, (first[-2], 4))):
                    moves = np.concatenate(tables).astype(np.int32)
                    found = draw_in_c(moves, first[:-2], first, gains, p, due, u, error)
                    assert found is not None
                    assert len(found[0]) == due.sum()
