"""The seeds whose validation parts choose settings: seed 1, or more where it has few examples.

A share of the train part validates, drawn anew for each seed. Sixty examples of one seed cannot
tell heads apart that differ by five points, so small tasks ask several seeds. No test part is read.
"""

import math
from collections.abc import Sequence

from genodiff.tasks.task import TaskData, seed_split

FEW, ENOUGH, MOST = 100, 200, 5
"""With fewer than `FEW` validation examples, as many seeds as have `ENOUGH` together, at most
`MOST`."""


def list_choosing_seeds(data: TaskData, seed: int) -> range:
    """The seeds from `seed` on; one alone where the validation part is published."""
    if data.valid_index is not None:
        return range(seed, seed + 1)
    return range(seed, seed + count_choosing_seeds(len(seed_split(data, seed)[1])))


def count_choosing_seeds(n_valid: int) -> int:
    """How many seeds choose where each draws so many validation examples of its own."""
    return 1 if n_valid >= FEW else min(MOST, math.ceil(ENOUGH / max(1, n_valid)))


def name_seeds(seeds: Sequence[int]) -> str:
    """`seed 1` or `seeds 1 to 4`."""
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
