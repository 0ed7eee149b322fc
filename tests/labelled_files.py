"""Small labelled data sets in the layouts of benchmarks, from counter-based randomness."""

import gzip
from pathlib import Path

import numpy as np

from genodiff.counter import Purpose, generator
from genodiff.tasks.data_request import TableFiles, load_own_data
from genodiff.tasks.examples import Examples
from genodiff.tasks.task import TaskData


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


def write(path: Path, text: str | bytes) -> Path:
    """Write text, compressed for .gz, or bytes as they are; the folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = text.encode() if isinstance(text, str) else text
    packed = path.suffix == ".gz" and isinstance(text, str)
    path.write_bytes(gzip.compress(raw) if packed else raw)
    return path


ClassFolders = tuple[Examples, Examples, tuple[str, ...]]


def check_equal(one: ClassFolders, other: ClassFolders) -> None:
    for part in (0, 1):
        assert one[part].sequences == other[part].sequences
        assert one[part].names == other[part].names
        assert np.array_equal(one[part].labels, other[part].labels)
    assert one[2] == other[2]


def load_own(
    train: Path | str, test: Path | str | None = None, *, split: str = "official",
    similarity: float | None = None, **more: object,
) -> TaskData:  # fmt: skip
    """The task of these files; `more` is of `TableFiles`."""
    files = {"train": train, "test": test, **more}
    plain = {name: str(one) if isinstance(one, Path) else one for name, one in files.items()}
    return load_own_data(TableFiles.parse(plain), split=split, similarity=similarity)
