"""Draws under constraints of every awkward shape, for the tests of each copy of the library."""

import numpy as np

from genodiff.generate.constrained import draw_in_c


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
