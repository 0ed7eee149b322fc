"""How sure a comparison is: seeds and test units together, Holm's correction, equivalence.

    units          windows, tasks or examples, with their values
    difference     `comparisons.py`: of two models on the same units
    interval       `interval.py`: 95 %, by the jackknife over units
    seeds          `seeds.py`: the variance between seeds added
    verdict        `comparisons.py`: significantly different, or equivalent

Read `interval.py`, `comparisons.py`, `seeds.py`.
"""
