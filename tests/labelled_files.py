"""Small labelled data sets in the layouts of benchmarks, from counter-based randomness."""

from pathlib import Path

import numpy as np

from genodiff.counter import Purpose, generator


def random_dna(n: int, length: int, seed: int = 1) -> list[str]:
    letters = generator(seed, Purpose.BOOTSTRAP, length).integers(0, 4, (n, length))
    return ["".join(row) for row in np.array(list("ACGT"))[letters]]


def write_folder(
    root: Path,
    *,
    n: int = 6,
    length: int = 30,
    classes: tuple[str, ...] = ("negative", "positive"),
    order: int = 1,
) -> Path:
    """The upstream folder layout; `order` -1 makes folders and files in the opposite order."""
    sequences = iter(random_dna(2 * len(classes) * n, length))
    files = [
        (part, name, i, next(sequences))
        for part in ("train", "test")
        for name in classes
        for i in range(n)
    ]
    for part, name, i, sequence in files[::order]:
        path = root / part / name / f"{i}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(sequence)
    return root
