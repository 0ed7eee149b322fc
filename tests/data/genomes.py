"""Small genomes for the tests of the data room: written as FASTA, built as stores."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genodiff.data.dna_store import DnaStore, build_dna_store
from genodiff.data.recipe import Recipe, SplitRule


def random_dna(length: int, seed: int = 0, letters: str = "ACGT") -> str:
    return "".join(np.random.default_rng(seed).choice(list(letters), length))


def write_fasta(path: Path, contigs: dict[str, str]) -> Path:
    path.write_text("".join(f">{name}\n{sequence}\n" for name, sequence in contigs.items()))
    return path


def recipe_of(
    contigs: dict[str, str],
    *,
    valid: tuple = (),
    test: tuple = (),
    train: object = "rest",
    **more: object,
) -> Recipe:
    rule = SplitRule(train=train, valid=valid, test=test) if valid or test else None
    return Recipe(
        name="small", contigs={c: len(s) for c, s in contigs.items()}, splits=rule, **more
    )


def store_of(
    folder: Path, contigs: dict[str, str], recipe: Recipe | None = None
) -> tuple[DnaStore, Recipe]:
    recipe = recipe or recipe_of(contigs)
    return build_dna_store(recipe, write_fasta(folder / "in.fa", contigs)), recipe


def covered(
    store: DnaStore, starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How often each base of the store lies in a window."""
    count = np.zeros(len(store.flat) + 1, np.int64)
    np.add.at(count, starts, 1)
    np.add.at(count, starts + lengths, -1)
    return np.cumsum(count)[:-1]
